"""Makes a table with full-text indices in their first form, which has no metadata.lance.

usage: make_legacy_fts.py index FOLDER        (pylance 0.20.0; releases up to 0.27 write that form)
       make_legacy_fts.py compact FOLDER      (pylance 14.0.2)

FOLDER/fts.lance has four fragments of 60 rows, an index with positions on "a" and one without on "b", which has nulls.
Then rows are deleted, fragments 1 and 2 become fragment 4, rows are appended, and rows of the new fragment deleted.
FOLDER/expected.json has the words to look for and the ids that a scan finds, for check_remapped.py. A tar file of FOLDER
is internal/indexfile/testdata/legacy_fts.tar.zst.
"""
import json
import os
import shutil
import sys

import lance
import pyarrow as pa

WORDS = ["amber", "basil", "cedar", "delta", "ember", "fjord", "gravel", "hazel", "indigo", "jasper", "kelp", "lotus"]
MASK = 2**64 - 1


def mix(i, salt):
    x = (i * 0x9E3779B97F4A7C15 + salt * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    return x ^ (x >> 27)


def text(i, salt):
    return " ".join(WORDS[mix(i * 31 + k, salt) % 12 % (3 + i % 10)] for k in range(1 + mix(i, salt) % 6))


def rows(start, n):
    ids = range(start, start + n)
    return pa.table({"id": pa.array(ids, pa.int32()), "a": [text(i, 1) for i in ids], "b": [None if i % 9 == 4 else text(i, 2) for i in ids]})


def index(path):
    shutil.rmtree(path, ignore_errors=True)
    lance.write_dataset(rows(0, 240), path, max_rows_per_file=60, data_storage_version="2.0")
    for column, positions in ("a", True), ("b", False):
        lance.dataset(path).create_scalar_index(column, "INVERTED", name=column + "_idx", with_position=positions)


def compact(path):
    ds = lance.dataset(path)
    ds.delete("(id >= 60 and id < 180 and id % 6 = 3) or id = 7 or id = 200")
    ds.optimize.compact_files(target_rows_per_fragment=50, defer_index_remap=True, num_threads=1, materialize_deletions_threshold=0.1)
    ds = lance.write_dataset(rows(240, 20), path, mode="append")
    ds.delete("id % 50 = 20")
    ds = lance.dataset(path)
    print([(f.fragment_id, f.physical_rows) for f in ds.get_fragments()])
    table, queries = ds.to_table().to_pylist(), []
    for column in "ab":
        checks = []
        for words in WORDS + ["amber basil", "kelp lotus jasper"]:
            found = [r["id"] for r in table if set(words.split()) & set((r[column] or "").split())]
            checks.append({"fts": words, "ids": sorted(found)})
        queries.append({"index": column + "_idx", "type": "INVERTED", "column": column, "checks": checks})
    with open(os.path.join(os.path.dirname(path), "expected.json"), "w") as f:
        json.dump({"id_column": "id", "queries": queries}, f)


if __name__ == "__main__":
    {"index": index, "compact": compact}[sys.argv[1]](os.path.join(sys.argv[2], "fts.lance"))
