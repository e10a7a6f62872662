"""Compares remapped files of address sets with what official Lance says of the rows.

usage: check_sets.py < jobs
A job is a line of JSON: {"table": dataset, "index": name, "kind": BITMAP|LABEL_LIST|NGRAM|RTREE, "stored": file, "remapped": file}.
Both files are read by Lance. Each set of the remapped one must hold, without any other, the addresses that
Dataset.remap_row_addrs gives for the members of the stored one; and of the rows that a scan finds in the fragments that the
index covers, just those that have the key (not for NGRAM). Prints a line of JSON per job: {"sets", "members", "faults": []}.
"""
import json
import struct
import sys

import lance
import pyarrow as pa
from lance.file import LanceFileReader


def roaring(b):
    """The values of a portable 32-bit Roaring bitmap, and its length."""
    (cookie,) = struct.unpack_from("<I", b, 0)
    if cookie & 0xFFFF == 12347:
        n, at = (cookie >> 16) + 1, 4
        flags = b[at:at + (n + 7) // 8]
        at += (n + 7) // 8
    else:
        assert cookie == 12346, cookie
        (n,) = struct.unpack_from("<I", b, 4)
        flags, at = None, 8
    heads = [struct.unpack_from("<HH", b, at + 4 * i) for i in range(n)]
    at += 4 * n
    if flags is None or n >= 4:
        at += 4 * n
    values = []
    for i, (key, last) in enumerate(heads):
        high, card = key << 16, last + 1
        if flags is not None and flags[i // 8] >> (i % 8) & 1:
            (runs,) = struct.unpack_from("<H", b, at)
            for r in range(runs):
                start, more = struct.unpack_from("<HH", b, at + 2 + 4 * r)
                values.extend(range(high + start, high + start + more + 1))
            at += 2 + 4 * runs
        elif card <= 4096:
            values.extend(high + v for v in struct.unpack_from("<%dH" % card, b, at))
            at += 2 * card
        else:
            for w, bits in enumerate(struct.unpack_from("<1024Q", b, at)):
                while bits:
                    values.append(high + 64 * w + (bits & -bits).bit_length() - 1)
                    bits &= bits - 1
            at += 8192
    return values, at


def members(b, wide):
    """The addresses of a RowAddrTreeMap, or of a RoaringTreemap."""
    (n,) = struct.unpack_from("<Q" if wide else "<I", b, 0)
    at, out = 8 if wide else 4, set()
    for _ in range(n):
        (fragment,) = struct.unpack_from("<I", b, at)
        at += 4
        if not wide:
            (size,) = struct.unpack_from("<I", b, at)
            assert size > 0
            at += 4
        values, used = roaring(b[at:])
        assert wide or used == size, (used, size)
        at += used
        out.update(fragment << 32 | v for v in values)
    assert at == len(b), (at, len(b))
    return out


def read(path, kind):
    """The sets of a file by key; the set of a global buffer has the key None, in a tuple of its own."""
    r = LanceFileReader(path)
    t = r.read_all().to_table()
    cells = t.column({"NGRAM": "posting_list", "RTREE": "nulls"}.get(kind, "bitmaps")).to_pylist()
    keys = t.column(0).to_pylist() if kind != "RTREE" else [("null",)]
    sets = {k: None if c is None else members(c, kind == "NGRAM") for k, c in zip(keys, cells, strict=True)}
    if kind == "LABEL_LIST":
        number = int((r.metadata().schema.metadata or {})[b"lance:label_list_nulls"])
        sets[("null",)] = members(bytes(r.read_global_buffer(number)), False)
    return sets


def scanned(ds, kind, column, covered):
    """The sets that the rows themselves say, of the covered fragments."""
    t = ds.scanner(columns=[column], with_row_address=True).to_table()
    sets, live = {}, set()
    for value, addr in zip(t.column(column).to_pylist(), t.column("_rowaddr").to_pylist(), strict=True):
        if addr >> 32 not in covered:
            continue
        live.add(addr)
        if kind == "RTREE":
            keys = [("null",)] if value is None else []
        elif kind == "LABEL_LIST":
            keys = [("null",)] if value is None else set(value)
        else:
            keys = [value]
        for k in keys:
            sets.setdefault(k, set()).add(addr)
    return sets, live


def check(job):
    ds, kind = lance.dataset(job["table"]), job["kind"]
    faults = []
    stored, remapped = read(job["stored"], kind), read(job["remapped"], kind)
    if list(stored) != list(remapped):
        faults.append("other keys")
    fragments = {f.fragment_id for f in ds.get_fragments()}
    for key, old in stored.items():
        got = remapped.get(key)
        if old is None or got is None:
            if old is not got:
                faults.append("key %r: %s is no longer so" % (key, old))
            continue
        want = {a for a in ds.remap_row_addrs(pa.array(sorted(old), pa.uint64())).to_pylist() if a is not None and a >> 32 in fragments}
        if got != want:
            faults.append("key %r: %d members instead of %d" % (key, len(got), len(want)))
    if kind != "NGRAM":
        (index,) = [i for i in ds.list_indices() if i["name"] == job["index"]]
        want, live = scanned(ds, kind, index["fields"][0], set(index["fragment_ids"]))
        for key in set(want) | set(remapped):
            if (remapped.get(key) or set()) & live != want.get(key, set()):
                faults.append("key %r: the rows say otherwise" % (key,))
    return {"sets": len(remapped), "members": sum(len(s) for s in remapped.values() if s is not None), "faults": faults}


for line in sys.stdin:
    print(json.dumps(check(json.loads(line))), flush=True)
