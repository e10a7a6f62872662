"""Time what others offer for the same work, on the same data.

usage: peers.py remap DATASET ROWS_PER_FRAGMENT FRAGMENTS   Dataset.remap_row_addrs in batches of 65,536
       peers.py csv MAPPING_ARROW SCRATCH                   writing mapping.csv from a table that is in memory
Prints a line "name figure" each: addresses a second, or bytes a second. Each is the best of three runs (of two for csv, and one for pandas, which takes a minute).
"""
import os
import sys
import time


def best(work, amount, times=3):
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        n = work()
        took.append((time.perf_counter() - begin) / (n or 1))
    return amount(min(took))


def remap(path, rows, fragments):
    import lance
    import numpy as np
    import pyarrow as pa

    ds = lance.dataset(path)
    batch, batches = 65536, 64
    rng = np.random.default_rng(9)

    def run(batches):
        for b in batches:
            ds.remap_row_addrs(b)
        return len(batches) * batch

    first = np.arange(batch * batches, dtype=np.uint64)
    ordered = [pa.array(first[i * batch:(i + 1) * batch]) for i in range(batches)]
    spread = [pa.array((rng.integers(0, fragments, batch, np.uint64) << np.uint64(32)) | rng.integers(0, rows, batch, np.uint64)) for _ in range(batches)]
    for name, b in (("in_order", ordered), ("random", spread)):
        print(name, best(lambda: run(b), lambda s: int(1 / s)))


def csv(arrow, scratch):
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.csv as pacsv

    t = pa.ipc.open_file(pa.OSFile(arrow)).read_all()
    out = os.path.join(scratch, "out.csv")
    con = duckdb.connect()
    con.register("t", t)
    frame, polar = t.to_pandas(types_mapper=pd.ArrowDtype), pl.from_arrow(t)

    def size(write):
        write()
        n = os.path.getsize(out)
        os.remove(out)
        return n

    for name, write in (
        ("pyarrow", lambda: pacsv.write_csv(t, out)),
        ("polars", lambda: polar.write_csv(out)),
        ("duckdb", lambda: con.sql(f"copy t to '{out}' (header, delimiter ',')")),
        ("pandas", lambda: frame.to_csv(out, index=False)),
    ):
        print(name, best(lambda: size(write), lambda s: int(1 / s), 1 if name == "pandas" else 2), flush=True)


if sys.argv[1] == "remap":
    remap(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    csv(*sys.argv[2:4])
