"""Write small Lance files with the official writer, or print what the official reader finds in files.

usage: read_lance_file.py write DIR     makes original-2.0.lance ... original-2.3.lance there
       read_lance_file.py read < paths  prints a JSON object per line of input: rows, columns, globals
A value is printed as null, as a number, or as "<bytes>:<start of its SHA-256>"; other types by the digest of their repr.
The reader's three ways (whole, by range, row by row) must agree.
"""
import hashlib
import json
import os
import sys

import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

ROWS = 300


def write(folder):
    none = {b"lance-encoding:compression": b"none"}
    schema = pa.schema([
        pa.field("ids", pa.uint64(), nullable=False),
        pa.field("cells", pa.binary()),
        pa.field("row", pa.uint64()),
        pa.field("plain", pa.binary(), nullable=False, metadata=none),
        pa.field("large", pa.large_binary()),
        pa.field("text", pa.string()),
        pa.field("small", pa.uint16()),
    ])
    rows = range(ROWS)
    table = pa.table([
        pa.array([r * 7919 % 1000 for r in rows], pa.uint64()),
        pa.array([None if r % 11 == 3 else bytes([r % 256]) * (r * 37 % 900) for r in rows], pa.binary()),
        pa.array([r << 32 for r in rows], pa.uint64()),
        pa.array([bytes([r % 7]) * (r % 400) for r in rows], pa.binary()),
        pa.array([bytes([r % 5]) * (r * 13 % 700) for r in rows], pa.large_binary()),
        pa.array([None if r % 3 == 0 else "value %d" % (r * r) for r in rows], pa.string()),
        pa.array([None if r % 2 == 0 else r % 9 for r in rows], pa.uint16()),
    ], schema=schema)
    for version in ("2.0", "2.1", "2.2", "2.3"):
        with LanceFileWriter(os.path.join(folder, "original-%s.lance" % version), schema, version=version) as w:
            for batch in table.to_batches(max_chunksize=100):
                w.write_batch(batch)
            w.add_global_buffer(b"first buffer")
            w.add_global_buffer(bytes(range(256)) * 20)
            w.add_schema_metadata("batch_size", "4096")


def digest(b):
    return hashlib.sha256(b).hexdigest()[:16]


def show(v):
    if v is None or isinstance(v, (int, bool)):
        return v
    if isinstance(v, bytes):
        return "%d:%s" % (len(v), digest(v))
    return digest(repr(v).encode())


def values(result):
    table = result.to_table()
    return {name: [show(v) for v in table[name].to_pylist()] for name in table.column_names}


def read(path):
    r = LanceFileReader(path)
    n = r.num_rows()
    columns = values(r.read_all(batch_size=64))
    if n > 0:
        if columns != values(r.read_range(0, n)):
            raise SystemExit("%s: a range reads other than the whole" % path)
        some = list(range(0, n, max(1, n // 97)))
        if {name: [v[i] for i in some] for name, v in columns.items()} != values(r.take_rows(some)):
            raise SystemExit("%s: rows read one by one are others" % path)
    globals_, i = [], 1
    while True:
        try:
            globals_.append(show(bytes(r.read_global_buffer(i))))
        except (ValueError, OSError, IndexError):
            break
        i += 1
    return {"path": path, "rows": n, "columns": columns, "globals": globals_}


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    for line in sys.stdin:
        print(json.dumps(read(line.rstrip("\n"))), flush=True)
