"""Times indexed queries on a table with a fragment reuse index, for docs/PERFORMANCE.md.

usage: bench_remapped.py make DIR ROWS STEPS              a table with indices, then STEPS deferred compactions
       bench_remapped.py cold DATASET KIND                one open and one query in a fresh process
       bench_remapped.py warm DATASET DATASET KIND N      N queries on each of both in turn, in one process

"make" gives DIR/table.lance: ten fragments, a BTREE (num), a BITMAP (cat), an INVERTED (text) and an IVF_PQ (vec) index,
and before each compaction, which rewrites every fragment, 3 % of the rows deleted at random. It prints {"rows",
"fragments"}. "cold" prints {"open", "first", "ids"}: seconds for the open, for the first query, and a digest of the
answer. "warm" prints {"query": [a, b], "reopened": [a, b], "same"}: medians in seconds, of a query on an open dataset,
and of an open with a query (nothing but the page cache is warm), and whether both gave the same answers.
"""
import hashlib
import json
import os
import statistics
import sys
import time

os.environ.setdefault("LANCE_LOG", "error")  # deprecations are told with every query

import lance  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402

DIM = 16
KINDS = ("btree", "btree_range", "bitmap", "text", "vector")


def batches(rows, step, rng):
    words = np.array(["w%d" % i for i in range(5000)])
    for lo in range(0, rows, step):
        n = min(step, rows - lo)
        i = np.arange(lo, lo + n, dtype=np.int64)
        picks = words[(rng.random((n, 6)) ** 2 * len(words)).astype(np.int64)]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(n * DIM, dtype=np.float32)), DIM)
        yield pa.record_batch({
            "id": i,
            "num": i * 7919 % rows,
            "cat": ["c%d" % c for c in i * 31 % 1000],
            "text": [" ".join(p) for p in picks],
            "vec": vectors,
        })


def make(path, rows, steps):
    rng = np.random.default_rng(4)
    per = rows // 10
    source = batches(rows, min(per, 50_000), rng)
    first = next(source)

    def all_batches():
        yield first
        yield from source

    reader = pa.RecordBatchReader.from_batches(first.schema, all_batches())
    ds = lance.write_dataset(reader, path, max_rows_per_file=per, data_storage_version="2.1")
    ds.create_scalar_index("num", "BTREE")
    ds.create_scalar_index("cat", "BITMAP")
    ds.create_scalar_index("text", "INVERTED", with_position=False)
    ds.create_index("vec", "IVF_PQ", num_partitions=64, num_sub_vectors=8, max_iters=10)
    for step in range(steps):
        ds.delete("(id * 2654435761) %% 4294967296 %% 100 >= %d AND (id * 2654435761) %% 4294967296 %% 100 < %d" % (3 * step, 3 * step + 3))
        ds.optimize.compact_files(target_rows_per_fragment=per, defer_index_remap=True, materialize_deletions_threshold=0.001)
        ds = lance.dataset(path)
    return {"rows": ds.count_rows(), "fragments": len(ds.get_fragments()), "steps": steps}


def query(ds, kind, n):
    """The ids that query number n of a kind gives."""
    rng = np.random.default_rng(n)
    rows = 1_000_000
    if kind == "btree":
        scan = ds.scanner(columns=["id"], filter="num = %d" % rng.integers(rows))
    elif kind == "btree_range":
        at = rng.integers(rows - 2000)
        scan = ds.scanner(columns=["id"], filter="num >= %d AND num < %d" % (at, at + 1000))
    elif kind == "bitmap":
        scan = ds.scanner(columns=["id"], filter="cat = 'c%d'" % rng.integers(1000))
    elif kind == "text":
        scan = ds.scanner(columns=["id"], disable_scoring_autoprojection=True, full_text_query="w%d" % rng.integers(1000, 5000), limit=100)
    else:
        q = rng.standard_normal(DIM, dtype=np.float32)
        scan = ds.scanner(columns=["id"], disable_scoring_autoprojection=True, nearest={"column": "vec", "q": q, "k": 10, "nprobes": 16, "refine_factor": 5})
    return sorted(scan.to_table()["id"].to_pylist())


def timed(work):
    begin = time.perf_counter()
    out = work()
    return time.perf_counter() - begin, out


def cold(path, kind):
    opened, ds = timed(lambda: lance.dataset(path))
    first, ids = timed(lambda: query(ds, kind, 1))
    if not ids:
        raise RuntimeError("the query found nothing")
    return {"open": opened, "first": first, "ids": hashlib.sha256(repr(ids).encode()).hexdigest()}


def warm(paths, kind, n):
    took, again, same = ([], []), ([], []), True
    open_now = [lance.dataset(p) for p in paths]
    for k in range(-2, n):  # two turns to warm up
        answers = []
        for side in (0, 1) if k % 2 else (1, 0):
            s, ids = timed(lambda: query(open_now[side], kind, k + 2))
            answers.append(ids)
            if k >= 0:
                took[side].append(s)
        same = same and (kind == "text" or answers[0] == answers[1])
    for k in range(-1, max(3, n // 4)):
        for side in (0, 1) if k % 2 else (1, 0):
            s, _ = timed(lambda: query(lance.dataset(paths[side]), kind, k + 1))
            if k >= 0:
                again[side].append(s)
    return {"query": [statistics.median(t) for t in took], "reopened": [statistics.median(t) for t in again], "same": same}


def main(args):
    if args[:1] == ["make"] and len(args) == 4:
        out = make(os.path.join(args[1], "table.lance"), int(args[2]), int(args[3]))
    elif args[:1] == ["cold"] and len(args) == 3:
        out = cold(*args[1:])
    elif args[:1] == ["warm"] and len(args) == 5:
        out = warm(args[1:3], args[3], int(args[4]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    print(json.dumps(out), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
