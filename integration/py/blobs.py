"""Tables with blob columns. Called as

blobs.py make DIR            makes DIR/t.lance (values inside data files, packed beside them, one file each, and outside of
                             the table), with an index, and DIR/clone.lance, a shallow clone
blobs.py read TABLE...       prints a line for each table: the digest of each value by id, read with take_blobs
"""

import hashlib
import json
import os
import sys

import lance
import pyarrow as pa
from lance import Blob, DatasetBasePath, blob_array, blob_field

SIZES = [0, 10, 100_000, 300_000, 5_000_000]


def values(ids, outside):
    for i in ids:
        if i % 11 == 7:
            yield None
        elif i % 11 == 8:
            yield Blob.from_uri(outside, i, 100)
        else:
            yield bytes([i % 256]) * SIZES[i % 5]


def rows(ids, outside):
    schema = pa.schema([pa.field("id", pa.int64()), blob_field("payload")])
    return pa.table({"id": pa.array(ids, pa.int64()), "payload": blob_array(list(values(ids, outside)))}, schema=schema)


def make(where):
    outside = os.path.join(where, "outside")
    os.makedirs(outside)
    uri = "file://" + os.path.join(outside, "x.bin")
    with open(os.path.join(outside, "x.bin"), "wb") as f:
        f.write(bytes(range(250)) * 10)
    path = os.path.join(where, "t.lance")
    base = DatasetBasePath("file://" + outside, name="outside", is_dataset_root=False)
    ds = lance.write_dataset(rows(range(0, 12), uri), path, data_storage_version="2.2", initial_bases=[base])
    ds.insert(rows(range(12, 24), uri))
    ds.create_scalar_index("id", "BTREE")
    ds.insert(rows(range(24, 36), uri))
    ds.delete("id = 3")
    ds.shallow_clone(os.path.join(where, "clone.lance"), reference=ds.version)


def read(path):
    ds = lance.dataset(path)
    ids = ds.to_table(columns=["id"], with_row_address=True)
    blobs = ds.take_blobs("payload", addresses=ids["_rowaddr"].to_pylist())
    out = {}
    for i, b in zip(ids["id"].to_pylist(), blobs, strict=True):
        out[i] = None if b is None else hashlib.sha256(b.read()).hexdigest()
    for i in (5, 20, 30):  # through the index
        assert ds.to_table(columns=["id"], filter=f"id = {i}")["id"].to_pylist() == [i]
    return out


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    for p in sys.argv[2:]:
        print(json.dumps(read(p)))
