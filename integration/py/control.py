"""Control tables: the same live rows in the same fragments with the same kind of index, and no rewrite ever.

A query that an official release gets wrong on such an untouched table is that release's own fault. A job is
{"dir", "control": DATASET, "index", "expected"}: DIR/table.lance becomes a table with the rows of DATASET, one fragment for
each of its own, in the order in which the segments of the index cover them; each segment is built as Lance builds it
(create_index, then optimize_indices without merging). Printed: {"dir", "control", "segments", "uncovered"}.
"""

import json
import os

import lance
import pyarrow as pa
from lance.indices import IndexConfig

import kinds

INVERTED_ARGS = ("with_position", "base_tokenizer", "language", "stem", "remove_stop_words", "lower_case", "ascii_folding", "block_size")


def by_kind(expected, index):
    """How an index of one of our own tables was built."""
    kind = next(k for k in kinds.GROUPS[expected["table"]["group"]](expected["table"]["file_version"]) if k.name + "_idx" == index)
    return kind.build


def by_statistics(ds, query):
    """How an index of the recorded tables is to be built again, from what Lance says of it."""
    name, column, kind = query["index"], query["column"], query["type"].replace("cfg:", "").upper()
    about = next(i for i in ds.describe_indices() if i.name == name)
    stats = ds.stats.index_stats(name)["indices"][0]

    def build(new):
        if kind.startswith("IVF"):
            sub = stats["sub_index"]
            args = {"num_sub_vectors": sub.get("num_sub_vectors"), "num_bits": sub.get("nbits", sub.get("num_bits"))}
            if "PQ" not in kind:
                args.pop("num_sub_vectors")
            if "PQ" not in kind and "RQ" not in kind:
                args.pop("num_bits")
            new.create_index(column, kind, name=name, metric=stats["metric_type"], num_partitions=stats["num_partitions"], **args)
        elif kind == "INVERTED":
            args = {k: v for k, v in stats["params"].items() if k in INVERTED_ARGS}
            new.create_scalar_index(column, kind, name=name, **args)
        elif kind == "JSON":
            target = {"target_index_type": "btree", "path": about.details["path"]}
            new.create_scalar_index(column, IndexConfig(index_type="json", parameters=target), name=name)
        elif kind == "FM":
            new.create_scalar_index(column, IndexConfig(index_type="fm", parameters={}), name=name)
        else:
            new.create_scalar_index(column, kind, name=name)

    return build


def covers(ds, index, live):
    """The live fragments of each segment of an index, first segment first; a fragment counts once."""
    seen, out = set(), []
    for segment in ds.list_indices():
        if segment["name"] == index:
            out.append(sorted(set(segment["fragment_ids"]) & live - seen))
            seen |= set(out[-1])
    return [s for s in out if s]


def make(job):
    source = lance.dataset(job["control"])
    with open(job["expected"]) as f:
        expected = json.load(f)
    query = next(q for q in expected["queries"] if q["index"] == job["index"])
    ours = isinstance(expected["table"], dict)  # the job of make_table.py; else the name of a recorded table
    fragments = {f.fragment_id: f for f in source.get_fragments()}
    segments = covers(source, job["index"], set(fragments))  # none where the index was left out for an old reader
    if segments:
        build = by_kind(expected, job["index"]) if ours else by_statistics(source, query)
    path = os.path.join(job["dir"], "table.lance")
    os.makedirs(job["dir"], exist_ok=True)
    version = source.data_storage_version

    def add(ids):
        for i in ids:
            rows = fragments[i].to_table()
            mode = "append" if os.path.exists(path) else "create"
            lance.write_dataset(pa.Table.from_batches(rows.to_batches(), rows.schema), path, mode=mode, data_storage_version=version)

    for n, segment in enumerate(segments):
        add(segment)
        new = lance.dataset(path)
        if n == 0:
            build(new)
        else:
            new.optimize.optimize_indices(num_indices_to_merge=0)
    rest = sorted(set(fragments) - {i for s in segments for i in s})
    add(rest)
    return {"dir": job["dir"], "control": job["control"], "segments": len(segments), "uncovered": len(rest)}
