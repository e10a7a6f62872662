"""Writes what official Lance reads from single Lance files, as the golden text that the Go tests compare with.

    dump_lance_file.py ROOT...          a line per file and top-level field, on standard output

Below each ROOT every *.lance and *.idx file outside of data/ is read whole with lance.file.LanceFileReader. A line is

    <path below ROOT> TAB <field> TAB <rows> TAB <first 16 hex digits of the SHA-256 of the values' text>

The text of a field has a line per row: `null`; the little-endian bytes of a number (a bool is 00 or 01) or the bytes
of a string in hex; `[item,item]` for a list of any kind; `{member,member}` for a struct.
"""

import hashlib
import os
import sys

import pyarrow as pa
import pyarrow.types as pat
from lance.file import LanceFileReader


def validity(a):
    b = a.buffers()[0]
    if a.null_count == 0 or b is None:
        return None
    v = b.to_pybytes()
    return [v[(a.offset + i) >> 3] >> ((a.offset + i) & 7) & 1 for i in range(len(a))]


def bits(a):
    v = a.buffers()[1].to_pybytes() if len(a) and a.buffers()[1] else b""
    return ["01" if v[(a.offset + i) >> 3] >> ((a.offset + i) & 7) & 1 else "00" for i in range(len(a))] if v else ["00"] * len(a)


def texts(a):
    """The text of each value of an array."""
    t = a.type
    if isinstance(t, pa.ExtensionType) or isinstance(t, pa.BaseExtensionType):
        return texts(a.storage)
    n = len(a)
    if pat.is_null(t):
        return ["null"] * n
    if pat.is_boolean(t):
        out = bits(a)
    elif pat.is_dictionary(t):
        return texts(a.dictionary_decode())
    elif pat.is_struct(t):
        parts = [texts(a.field(i)) for i in range(t.num_fields)]
        out = ["{" + ",".join(p[i] for p in parts) + "}" for i in range(n)]
    elif pat.is_fixed_size_list(t):
        items, d = texts(a.values.slice(a.offset * t.list_size, n * t.list_size)), t.list_size
        out = ["[" + ",".join(items[i * d : (i + 1) * d]) + "]" for i in range(n)]
    elif pat.is_list(t) or pat.is_large_list(t) or pat.is_map(t):
        if pat.is_map(t):
            items = ["{" + k + "," + v + "}" for k, v in zip(texts(a.keys), texts(a.items))]
        else:
            items = texts(a.values)
        ends = [o.as_py() for o in a.offsets]
        out = ["[" + ",".join(items[ends[i] : ends[i + 1]]) + "]" for i in range(n)]
    elif pat.is_string(t) or pat.is_binary(t) or pat.is_large_string(t) or pat.is_large_binary(t):
        w = 8 if pat.is_large_string(t) or pat.is_large_binary(t) else 4
        _, ends, data = a.buffers()
        raw = ends.to_pybytes() if n else b""
        data = data.to_pybytes() if data is not None else b""
        e = [int.from_bytes(raw[w * (a.offset + i) : w * (a.offset + i + 1)], "little") for i in range(n + 1)] if n else [0]
        out = [data[e[i] : e[i + 1]].hex() for i in range(n)]
    else:
        w = t.bit_width // 8
        data = a.buffers()[1].to_pybytes()[w * a.offset : w * (a.offset + n)].hex() if n else ""
        out = [data[2 * w * i : 2 * w * (i + 1)] for i in range(n)]
    v = validity(a)
    if v is not None:
        out = [x if ok else "null" for x, ok in zip(out, v)]
    return out


def dump(path, name, out):
    table = LanceFileReader(path).read_all(batch_size=1 << 20).to_table()
    for field, column in zip(table.schema, table.columns):
        h = hashlib.sha256()
        for chunk in column.chunks:
            for x in texts(chunk):
                h.update(x.encode() + b"\n")
        out.write(f"{name}\t{field.name}\t{table.num_rows}\t{h.hexdigest()[:16]}\n")


def main():
    for root in sys.argv[1:]:
        for top, dirs, files in os.walk(root):
            dirs[:] = sorted(d for d in dirs if d != "data" and not d.startswith("_v") and not d.startswith("_t"))
            for f in sorted(files):
                if f.endswith((".lance", ".idx")):
                    path = os.path.join(top, f)
                    try:
                        dump(os.path.abspath(path), os.path.relpath(path, root), sys.stdout)
                    except Exception as e:
                        print(f"{path}: {e}", file=sys.stderr)


if __name__ == "__main__":
    main()
