"""Makes tables with a fragment reuse index, and the queries that judge what frifs makes of them.

    make_table.py -     jobs on stdin, a JSON object a line: {"dir", "group", "file_version", "scenario", "history"}

Writes DIR/table.lance and DIR/expected.json (for check_remapped.py; answers from a full scan of the finished table) and
prints, for each job, {"dir", "rows", "fragments", "records", "tagged", "queries", "seconds"} on a line. Keys of a job:
"group" (of kinds.GROUPS: btree, sets, zones, text, vector), "file_version" (2.0 to 2.3), "scenario" (SCENARIOS),
"history" (legacy; lifted: the legacy record under index_version 1; continued: lifted, then pylance went on with it).

A job with "control" instead makes an untouched table of the same live rows: {"dir", "control": DATASET, "index",
"expected"}; see control.py. A job with "forget": TABLE drops the fragment reuse index of TABLE by hand, so that nothing
translates its indices any more.
"""

import json
import os
import sys
import time

import lance
import pyarrow as pa

import control
import kinds
import manifest

ROWS = 300  # of a fragment
LARGE = 10_000  # a compaction with this target leaves one fragment


class Table:
    """A table in the making."""

    def __init__(self, job):
        self.dir, self.history = job["dir"], job["history"]
        self.path = os.path.join(self.dir, "table.lance")
        self.version = job["file_version"]
        self.kinds = kinds.GROUPS[job["group"]](self.version)
        self.next = 0
        os.makedirs(self.dir, exist_ok=True)

    @property
    def ds(self):
        return lance.dataset(self.path)

    def rows(self, fragments):
        """Adds fragments of new rows."""
        ids = range(self.next, self.next + fragments * ROWS)
        self.next = ids.stop
        fields = [pa.field("id", pa.int64()), pa.field("note", pa.string())] + [k.field for k in self.kinds]
        arrays = [pa.array(ids, pa.int64()), pa.array(["n%d" % i for i in ids])]
        arrays += [kinds.arrow_array(k, [k.value(i) for i in ids]) for k in self.kinds]
        mode = "append" if os.path.exists(self.path) else "create"
        lance.write_dataset(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), self.path, mode=mode, max_rows_per_file=ROWS,
                            data_storage_version=self.version)

    def index(self):
        for k in self.kinds:
            k.build(self.ds)

    def delete(self, salt, percent):
        gone = [i for i in range(self.next) if kinds.mix(i, salt) % 100 < percent]
        self.ds.delete("id IN (%s)" % ", ".join(map(str, gone)))

    def update(self, rest):
        self.ds.update({"note": "'moved'"}, where="id %% 7 = %d" % rest)

    def compact(self, target=LARGE):
        self.ds.optimize.compact_files(target_rows_per_fragment=target, defer_index_remap=True, num_threads=1)


def none(t):
    t.rows(5)
    t.index()
    t.compact(700)  # five fragments into two


def before(t):
    t.rows(4)
    t.index()
    t.delete(1, 12)
    t.compact()


def after(t):
    t.rows(5)
    t.index()
    t.compact(700)
    t.delete(2, 12)


def dead(t):
    t.rows(4)
    t.index()
    t.ds.delete("id >= %d AND id < %d" % (ROWS, 2 * ROWS))
    t.delete(3, 5)
    t.compact(500)
    t.ds.delete("id < 40")


def partial(t):
    t.rows(3)
    t.index()
    t.rows(2)
    t.delete(4, 12)
    t.compact()


def segments(t):
    t.rows(2)
    t.index()
    for _ in range(2):
        t.rows(1)
        t.ds.optimize.optimize_indices(num_indices_to_merge=0)
    t.rows(1)
    t.delete(5, 12)
    t.compact()


def chain(t):
    t.rows(5)
    t.index()
    t.delete(6, 12)
    t.compact(600)
    t.rows(2)
    t.delete(7, 15)
    t.compact(500)
    t.rows(1)
    t.delete(8, 15)
    t.compact()


def update(t):
    t.rows(5)
    t.index()
    t.update(3)
    t.compact(700)
    t.update(5)


SCENARIOS = {f.__name__: f for f in (none, before, after, dead, partial, segments, chain, update)}


def go_on(t):
    """What pylance itself does with a tagged table. It would merge what an index covers with what it does not (with
    legacy tables it does not), so each fragment is rewritten by itself, and the rows that are not covered come last."""
    t.delete(9, 15)
    t.compact(150)
    t.rows(1)
    t.delete(10, 3)


def queries(t):
    """The checks of every kind, answered from a scan of all rows without a filter."""
    table = t.ds.to_table()
    ids = table["id"].to_pylist()
    for k in t.kinds:
        checks = k.checks(ids, table[k.name].combine_chunks())
        yield {"index": k.name + "_idx", "type": k.index, "column": k.name, "checks": checks}


def make(job):
    start = time.time()
    t = Table(job)
    SCENARIOS[job["scenario"]](t)
    if t.history != "legacy":
        manifest.lift(t.path)
    if t.history == "continued":
        go_on(t)
    expected = {"id_column": "id", "table": job, "queries": list(queries(t))}
    with open(os.path.join(t.dir, "expected.json"), "w") as f:
        json.dump(expected, f)
    entry = manifest.Newest(t.path).fri()
    details = manifest.parse(manifest.get(manifest.parse(manifest.get(entry, manifest.DETAILS)), 2))
    records = manifest.parse(manifest.get(details, 1, b""))
    tagged = manifest.get(entry, manifest.INDEX_VERSION, 0) == 1
    if tagged != (t.history != "legacy") or not records:
        raise RuntimeError("%s: %d records, tagged %s" % (job, len(records), tagged))
    return {"dir": t.dir, "rows": t.ds.count_rows(), "fragments": len(t.ds.get_fragments()), "records": len(records), "tagged": tagged,
            "queries": sum(len(q["checks"]) for q in expected["queries"]), "seconds": round(time.time() - start, 2)}


def answer(job):
    if "control" in job:
        return control.make(job)
    if "forget" in job:
        return {"forgot": job["forget"], "fragments": manifest.forget(job["forget"])}
    return make(job)


def main():
    for line in sys.stdin:
        if line.strip():
            job = json.loads(line)
            print(json.dumps(answer(job)), flush=True)


if __name__ == "__main__":
    main()
