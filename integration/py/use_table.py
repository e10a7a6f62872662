"""Goes on with a table that frifs exported, as any owner of a table would, and checks all answers after each step.

    use_table.py -      jobs on stdin, a JSON object a line: {"dataset", "group", "file_version"} (see make_table.py)

Prints {"dataset", "step", "rows", "checks", "used", "failed": [...]} for each step. The answers come anew from a full scan.
"""

import json
import sys

import lance

import kinds
from check_remapped import run_index
from make_table import LARGE, Table, queries

class Exported(Table):
    def __init__(self, job):
        self.path, self.version = job["dataset"], job["file_version"]
        self.kinds = kinds.GROUPS[job["group"]](self.version)
        self.next = max(self.ds.to_table(columns=["id"])["id"].to_pylist()) + 1

    def compact_now(self):
        self.ds.optimize.compact_files(target_rows_per_fragment=LARGE, num_threads=1)


STEPS = [
    ("export", lambda t: None),
    ("append", lambda t: t.rows(1)),
    ("delete", lambda t: t.delete(20, 8)),
    ("update", lambda t: t.update(2)),
    ("optimize without merging", lambda t: t.ds.optimize.optimize_indices(num_indices_to_merge=0)),
    ("append again", lambda t: t.rows(1)),
    ("optimize", lambda t: t.ds.optimize.optimize_indices()),
    ("delete again", lambda t: t.delete(21, 12)),
    ("compact", lambda t: t.compact_now()),
    ("optimize after compaction", lambda t: t.ds.optimize.optimize_indices()),
]


def use(job):
    t = Exported(job)
    for name, step in STEPS:
        step(t)
        checks = used = 0
        failed = []
        ds = lance.dataset(t.path)
        listed = {i["name"] for i in ds.list_indices()}
        for query in queries(t):
            out = run_index(ds, query, "id", listed, False)
            checks, used = checks + out["checks"], used + out["used"]
            failed += ["%s: %s: %s" % (out["index"], f["query"], f["say"]) for f in out["failed"]]
        yield {"dataset": t.path, "step": name, "rows": ds.count_rows(), "checks": checks, "used": used, "failed": failed}


def main():
    for line in sys.stdin:
        if line.strip():
            for out in use(json.loads(line)):
                print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
