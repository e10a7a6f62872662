"""Official Lance at work on a table that is mounted meanwhile, and as a reader of what the mount shows.

    writer.py TABLE -     commands on stdin, one a line; a line of JSON for each

append, delete, update, compact (the remap of indices is deferred), index, optimize, tag NAME, untag NAME, branch NAME,
unbranch NAME, grow NAME (a branch), cleanup SECONDS, drop; check DATASET ROWS SUM SEED (opens a remapped dataset and
compares indexed queries with a scan); pages FILE (values and addresses of a BTREE's pages).

The answer of a command that writes tells the newest version, and of each version that it made the rows, the sum of their
ids, and where each row is: {"did", "version", "made": {"7": {"rows", "sum", "addresses", "keys"}}, "branches": {"b": {"8":
{"rows", "sum"}}}}. A row's key is its id * 65536 + the number of times that it was updated: it tells the row apart from
what an update made of it. A command that fails answers {"did", "error"}.
"""

import datetime
import json
import os
import random
import shutil
import sys

import lance
import pyarrow as pa
from lance.file import LanceFileReader

ROWS = 120  # of an append
MOST = 1500  # rows; more are halved
KINDS = 7


def table(ids):
    ids = list(ids)
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "updates": pa.array([0] * len(ids), pa.int64()),
        "kind": pa.array([i % KINDS for i in ids], pa.int32()),
        "zone": pa.array(ids, pa.int64()),
        "note": ["n%d w%d" % (i, i % KINDS) for i in ids],
    })


class Writer:
    def __init__(self, path):
        self.path, self.next, self.seen, self.on_branch = path, 0, 0, {}
        self.next_on_branch = 10**6
        self.random = random.Random(1)

    @property
    def ds(self):
        return lance.dataset(self.path)

    def append(self):
        ids = range(self.next, self.next + ROWS)
        self.next = ids.stop
        lance.write_dataset(table(ids), self.path, mode="append" if os.path.exists(self.path) else "create", max_rows_per_file=50)
        if self.ds.count_rows() > MOST:
            self.ds.delete("id < %d" % (self.next - MOST // 2))

    def delete(self):
        self.ds.delete("id %% %d = %d" % (self.random.choice([11, 13, 17]), self.random.randrange(11)))

    def update(self):
        self.ds.update({"note": "'moved'", "updates": "updates + 1"}, where="id %% 19 = %d" % self.random.randrange(19))

    def compact(self):
        self.ds.optimize.compact_files(target_rows_per_fragment=self.random.choice([100, 200, 400]), defer_index_remap=True, num_threads=1)

    def index(self):
        for column, kind in (("id", "BTREE"), ("kind", "BITMAP"), ("zone", "ZONEMAP"), ("note", "INVERTED")):
            self.ds.create_scalar_index(column, kind, name=column + "_idx", replace=True)

    def optimize(self):
        self.ds.optimize.optimize_indices(num_indices_to_merge=self.random.choice([0, 1, 10]))

    def tag(self, name):
        ds = self.ds
        if name in ds.tags.list():
            ds.tags.update(name, ds.version)
        else:
            ds.tags.create(name, ds.version)

    def untag(self, name):
        if name in self.ds.tags.list():
            self.ds.tags.delete(name)

    def branch(self, name):
        ds = self.ds
        if name not in ds.branches.list():
            ds.create_branch(name, ds.version)
            self.on_branch[name] = 0

    def unbranch(self, name):
        if name in self.ds.branches.list():
            self.ds.branches.delete(name)
        self.on_branch.pop(name, None)

    def grow(self, name):
        """Appends to a branch, and compacts it."""
        if name in self.on_branch:
            path = self.path + "/tree/" + name
            ids = range(self.next_on_branch, self.next_on_branch + 30)
            self.next_on_branch = ids.stop
            lance.write_dataset(table(ids), path, mode="append")
            lance.dataset(path).optimize.compact_files(target_rows_per_fragment=200, defer_index_remap=True, num_threads=1)

    def drop(self):
        """Drops the table; the next append makes it anew, with the same version numbers."""
        shutil.rmtree(self.path)
        self.seen, self.on_branch = 0, {}

    def cleanup(self, seconds):
        self.ds.cleanup_old_versions(older_than=datetime.timedelta(seconds=float(seconds)), error_if_tagged_old_versions=False)

    def check(self, path, rows, total, seed):
        """Judges a remapped dataset: each query with the index and without it, and the rows that the version has."""
        ds = lance.dataset(path)
        scan = ds.to_table(columns=["id", "kind"])
        ids = scan["id"].to_pylist()
        if len(ids) != int(rows) or sum(ids) != int(total):
            raise RuntimeError("%s has %d rows with sum %d" % (path, len(ids), sum(ids)))
        r = random.Random(int(seed))
        some = r.sample(ids, min(20, len(ids)))
        queries = {"id IN (%s)" % ", ".join(map(str, some)): sorted(some)}
        low = r.choice(ids) if ids else 0
        queries["id >= %d AND id < %d" % (low, low + 50)] = sorted(i for i in ids if low <= i < low + 50)
        queries["kind = %d" % (low % KINDS)] = sorted(i for i in ids if i % KINDS == low % KINDS)
        queries["zone >= %d AND zone < %d" % (low, low + 30)] = sorted(i for i in ids if low <= i < low + 30)
        for q, want in queries.items():
            got = sorted(ds.to_table(columns=["id"], filter=q)["id"].to_pylist())
            if got != want:
                raise RuntimeError("%s: %s gives %d rows, a scan %d: %s, %s" % (path, q, len(got), len(want), got[:9], want[:9]))
        return len(ds.list_indices())

    def pages(self, path):
        pages = LanceFileReader(path).read_all().to_table()
        return [pages["values"].to_pylist(), pages["ids"].to_pylist()]

    def made(self):
        out = {}
        if not os.path.exists(self.path):
            return out
        for v in lance.dataset(self.path).versions():
            n = v["version"]
            if n > self.seen:
                rows = lance.dataset(self.path, version=n).to_table(columns=["id", "updates"], with_row_address=True)
                ids, updates = rows["id"].to_pylist(), rows["updates"].to_pylist()
                out[n] = {"rows": len(ids), "sum": sum(ids), "addresses": rows["_rowaddr"].to_pylist(), "keys": [i << 16 | u for i, u in zip(ids, updates)]}
        self.seen = max([self.seen, *out])
        return out

    def made_on_branches(self):
        out = {}
        for name, seen in self.on_branch.items():
            path = self.path + "/tree/" + name
            out[name] = {}
            for v in lance.dataset(path).versions():
                n = v["version"]
                if n > seen:
                    ids = lance.dataset(path, version=n).to_table(columns=["id"])["id"].to_pylist()
                    out[name][n] = {"rows": len(ids), "sum": sum(ids)}
            self.on_branch[name] = max([seen, *out[name]])
        return out


def main():
    w = Writer(sys.argv[1])
    for line in sys.stdin:
        verb, *args = line.split()
        answer = {"did": verb}
        try:
            found = getattr(w, verb)(*args)
            if verb == "check":
                answer["indices"] = found
            elif verb == "pages":
                answer["pages"] = found
            else:
                answer.update(made=w.made(), branches=w.made_on_branches(), version=max(w.seen, 0))
        except Exception as e:  # the test decides what it may be
            answer["error"] = "%s: %s" % (type(e).__name__, str(e)[:2000])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
