"""Makes tables whose indices hold sets and zones of every form. Without the data files they are
internal/indexfile/testdata/sets.tar.zst.

usage: make_sets.py FOLDER          (pylance 14.0.2)

big    2.1: five fragments of 40,000 rows; BITMAP with two cells of more than 32 KiB, each ZSTD; ZONEMAP of 1,000 rows a
       zone. Compacted to fragments of about 20,000 rows, so that zones are divided.
small  2.0, 2.1, 2.2, 2.3: four fragments of 300 rows; LABEL_LIST with null lists, RTREE with null points, BITMAP, NGRAM,
       ZONEMAP and BLOOMFILTER with 20 rows a zone. Rows deleted, fragments joined, rows deleted, rows appended, fragments
       divided, rows deleted.
"""
import os
import random
import shutil
import sys

import lance
import pyarrow as pa
from lance.indices import IndexConfig

root = sys.argv[1]


def index(ds, column, kind, **args):
    # Only a config carries parameters: as keyword arguments of create_scalar_index they are ignored.
    how = IndexConfig(index_type=kind.lower(), parameters=args) if args else kind
    ds.create_scalar_index(column, how, name=(kind + "_" + column).lower())


def compact(ds, rows):
    ds.optimize.compact_files(target_rows_per_fragment=rows, defer_index_remap=True, num_threads=1, materialize_deletions_threshold=0.0)


def big():
    rnd = random.Random(4)
    n = 200_000
    t = pa.table({"id": pa.array(range(n), pa.int32()), "flag": pa.array([rnd.random() < 0.5 for _ in range(n)])})
    ds = lance.write_dataset(t, root + "/big.lance", max_rows_per_file=40_000, data_storage_version="2.1")
    index(ds, "flag", "BITMAP")
    index(ds, "id", "ZONEMAP", rows_per_zone=1000)
    ds.delete("id % 997 = 5 or (id >= 41000 and id < 43000)")
    compact(ds, 15_000)
    ds.delete("id = 7")
    show(ds)


def rows(rnd, start, n, holes):
    points = [None if holes and rnd.random() < 0.1 else [rnd.uniform(-50, 50), rnd.uniform(-50, 50)] for _ in range(n)]
    point = pa.StructArray.from_arrays(
        [pa.array([p[0] if p else 0.0 for p in points], pa.float64()), pa.array([p[1] if p else 0.0 for p in points], pa.float64())],
        fields=[pa.field("x", pa.float64(), False), pa.field("y", pa.float64(), False)], mask=pa.array([p is None for p in points]))
    return pa.table([
        pa.array(range(start, start + n), pa.int32()),
        pa.array([None if i % 11 == 3 else (start + i) * 3 for i in range(n)], pa.int32()),
        pa.array([None if i % 13 == 3 else "key %d" % rnd.randrange(9) for i in range(n)]),
        pa.array([None if i % 7 == 1 else ["t%d" % rnd.randrange(8) for _ in range(rnd.randrange(3))] for i in range(n)], pa.list_(pa.string())),
        pa.array([None if i % 17 == 3 else rnd.choice(["red", "green", "blue"]) + " " + rnd.choice(["apple", "pear"]) for i in range(n)]),
        pa.array([rnd.randrange(5000) for i in range(n)], pa.int64()),
        point,
    ], schema=pa.schema([
        ("id", pa.int32()), ("num", pa.int32()), ("key", pa.string()), ("tags", pa.list_(pa.string())), ("text", pa.string()), ("bf", pa.int64()),
        pa.field("pt", point.type, metadata={"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": "{}"}),
    ]))


def small(version):
    rnd = random.Random(version)
    path = root + "/small%s.lance" % version.replace(".", "")
    ds = lance.write_dataset(rows(rnd, 0, 1200, version != "2.0"), path, max_rows_per_file=300, data_storage_version=version)
    index(ds, "key", "BITMAP")
    index(ds, "tags", "LABEL_LIST")
    index(ds, "text", "NGRAM")
    index(ds, "num", "ZONEMAP", rows_per_zone=20)
    index(ds, "bf", "BLOOMFILTER", number_of_items=20, probability=0.1)
    index(ds, "pt", "RTREE")
    ds.delete("id % 10 = 4 or (id >= 20 and id < 45) or key = 'key 3'")
    compact(ds, 310)
    ds.delete("id % 50 = 2 or (id >= 1100 and id < 1190)")
    ds = lance.write_dataset(rows(rnd, 2000, 100, version != "2.0"), path, mode="append")
    compact(ds, 150)
    ds = lance.dataset(path)
    ds.delete("id % 41 = 3")
    show(ds)


def show(ds):
    fragments = [(f.fragment_id, f.physical_rows) for f in ds.get_fragments()]
    print(ds.uri, fragments, {i["name"]: str(i["fragment_ids"]) for i in ds.list_indices()})


shutil.rmtree(root, ignore_errors=True)
os.makedirs(root)
big()
for v in "2.0", "2.1", "2.2", "2.3":
    small(v)
