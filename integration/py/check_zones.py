"""Asks zone maps and bloom filters with many zones in a fragment, through remapped datasets.

usage: check_zones.py -          (pylance 14.0.2; jobs on stdin)

A job is a line of JSON: {"table": dataset, "version": number, "remapped": dataset, "index", "column", "zone_rows", "sorted"}.
The answers are those of a scan of the table. Prints a line of JSON per job: "table", "version", "index"; "live", "covered":
fragments of the version and those of them that the index of the remapped dataset claims; "checks"; "used": checks
whose plan goes through the index; "pruned": the checks for one value that read few rows of what is covered; and
"faults", in words.
"""
import json
import re
import sys

import lance

UNITS = {"": 1, "K": 1000, "M": 1000000}


def rows_read(scan):
    """How many rows a scan had to look at."""
    rows = 0
    for number, unit in re.findall(r"rows_scanned=([0-9.]+) ?([KM]?)", scan.analyze_plan()):
        rows += float(number) * UNITS[unit]
    return rows


def questions(column, values, ordered):
    """Filters, and what they say of a value; the first ones look for a single value."""
    known = sorted({v for v in values if v is not None})
    singles = [known[len(known) * k // 9] for k in range(9)] + [known[-1]]
    for v in singles:
        yield True, "%s = %d" % (column, v), lambda x, v=v: x == v
    yield False, "%s = -7" % column, lambda x: x == -7
    a, b, c = singles[1], singles[4], singles[7]
    yield False, "%s IN (%d, %d, %d)" % (column, a, b, c), lambda x: x in (a, b, c)
    yield False, "%s IS NULL" % column, lambda x: x is None
    yield False, "%s IS NOT NULL" % column, lambda x: x is not None
    yield False, "%s != %d" % (column, b), lambda x: x is not None and x != b
    if ordered:
        yield False, "%s >= %d AND %s < %d" % (column, a, column, b), lambda x: x is not None and a <= x < b
        yield False, "%s < %d" % (column, a), lambda x: x is not None and x < a
        yield False, "%s > %d" % (column, c), lambda x: x is not None and x > c
        yield False, "%s < %d OR %s IS NULL" % (column, a, column), lambda x: x is None or x < a


def run(job):
    column = job["column"]
    truth = lance.dataset(job["table"], version=job["version"]).to_table(columns=sorted({"id", column}))
    ids, values = truth["id"].to_pylist(), truth[column].to_pylist()
    ds = lance.dataset(job["remapped"])
    live = {f.fragment_id: f.physical_rows for f in ds.get_fragments()}
    covered = set()
    for i in ds.list_indices():
        if i["name"] == job["index"]:
            covered = set(live) & set(i["fragment_ids"])
    rest = sum(rows for f, rows in live.items() if f not in covered)
    out = {"table": job["table"], "version": job["version"], "index": job["index"], "live": sorted(live), "covered": sorted(covered),
           "checks": 0, "used": 0, "pruned": 0, "faults": []}
    for single, question, says in questions(column, values, job["sorted"]):
        scan = ds.scanner(columns=["id"], filter=question)
        got = sorted(scan.to_table()["id"].to_pylist())
        want = sorted(i for i, v in zip(ids, values) if says(v))
        out["checks"] += 1
        used = "@%s(" % job["index"] in scan.explain_plan(True)
        out["used"] += used
        if got != want:
            out["faults"].append("%s: %d rows instead of %d; index used: %s" % (question, len(got), len(want), used))
        if single and used:
            # A zone map of a sorted column leaves a zone, a bloom filter some more.
            enough = 2 * job["zone_rows"] if job["sorted"] else (sum(live.values()) - rest) / 2
            out["pruned"] += rows_read(scan) <= (rest + enough) * 1.001
    print(json.dumps(out), flush=True)


if __name__ == "__main__":
    for line in sys.stdin:
        if line.strip():
            run(json.loads(line))
