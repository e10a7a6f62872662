"""Runs the recorded queries of a table against a Lance dataset, with the pylance of this interpreter.

    check_remapped.py DATASET EXPECTED_JSON     exit 1 where an answer is wrong, or an index is not used that has to be
    check_remapped.py -                         jobs on stdin, a JSON object a line: {"path", "expected", ...}

Keys of a job, all but the first two optional: "only" (names of indices), "skip" (types of indices), "must_use" (false:
an unused index is no fault, since old releases do not know every index version), "version" (of the dataset). In the
first form SKIP=TYPE,TYPE and MUSTUSE=0 say the same.

Output: a JSON object a line. For each index of the expectation {"path", "index", "type", "column", "checks", "ok",
"used", "listed", "unused", "failed": [{"check", "kind": wrong|error, "query", "say"}]}, then {"path", "done": true,
"ok", "checks", "faults", "pylance"}; a dataset that cannot be opened gives {"path", "error"}.

The expectation holds, per index, checks with the answer of a full scan: "filter" (SQL), "fts" (words; "phrase": true
for a phrase; "distinct": true where a row may be found more than once), "nearest" (a vector; "where": a prefilter) or "minhash" (a text), and "count" and "sha256" of the
ascending ids, or the "ids" themselves.
"""

import json
import os
import sys

import lance
import numpy as np

from answers import right, title

# These may answer from a scan at any time: zone maps and bloom filters where the coverage had to be narrowed.
MAY_BE_UNUSED = ("ZONEMAP", "BLOOMFILTER", "MINHASHLSH")


def scanner(ds, check, kind, column, id_column):
    """The scan that a check asks for."""
    if "nearest" in check:
        hamming = check.get("metric") == "hamming"
        query = np.array(check["nearest"], "u1" if hamming else check.get("dtype", "f4"))
        nearest = {"column": column, "q": query, "k": check["k"], "nprobes": check.get("nprobes", 16)}
        if check.get("metric", "l2") != "l2":
            nearest["metric"] = check["metric"]
        if not hamming:
            nearest["refine_factor"] = check.get("refine", 30)
        if "HNSW" in kind:
            nearest["ef"] = max(600, check["k"] * check.get("refine", 30))
        more = {"filter": check["where"], "prefilter": True} if "where" in check else {}
        return ds.scanner(columns=[id_column], nearest=nearest, **more)
    if "fts" in check:
        from lance.query import MatchQuery, PhraseQuery

        query = PhraseQuery if check.get("phrase") else MatchQuery
        return ds.scanner(columns=[id_column], full_text_query=query(check["fts"], column), limit=1000000)
    if "minhash" in check:
        from lance.query import MinHashQuery

        return ds.scanner(columns=[id_column], nearest=MinHashQuery(check["minhash"], column), limit=check["count"])
    return ds.scanner(columns=[id_column], filter=check["filter"])


def uses(plan, index, kind):
    """Whether a query plan goes through the index."""
    if kind == "INVERTED":
        return "MatchQuery" in plan or "PhraseQuery" in plan
    if kind == "MINHASHLSH":
        return "MinHashSearch" in plan
    if kind.startswith("IVF"):
        return "ANNSubIndex" in plan or "ANNIvf" in plan
    return "@%s(" % index in plan or "ScalarIndexQuery" in plan


def run_index(ds, query, id_column, listed, must_use):
    index, kind = query["index"], query["type"].replace("cfg:", "").upper()
    out = {"index": index, "type": kind, "column": query["column"], "checks": len(query["checks"]), "ok": 0, "used": 0}
    out["listed"], failed = index in listed, []
    for n, check in enumerate(query["checks"]):
        try:
            scan = scanner(ds, check, kind, query["column"], id_column)
            out["used"] += uses(scan.explain_plan(True), index, kind)
            got = scan.to_table()[id_column].to_pylist()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as e:  # a panic of the reader is no Exception
            say = str(e).split(", /")[0][:200]
            failed.append({"check": n, "kind": "error", "query": title(check), "say": say})
            continue
        if right(check, got):
            out["ok"] += 1
        else:
            say = "%d rows instead of %d" % (len(got), check.get("count", check.get("k", 0)))
            failed.append({"check": n, "kind": "wrong", "query": title(check), "say": say})
    wanted = must_use and query.get("lance", {}).get("index_used", 1) and kind not in MAY_BE_UNUSED
    out["unused"] = bool(wanted and query["checks"] and not out["used"])
    out["failed"] = failed
    return out


def run(job, emit):
    """Runs one job; returns the number of indices with a fault."""
    path = job["path"]
    with open(job["expected"]) as f:
        expected = json.load(f)
    try:
        ds = lance.dataset(path, version=job.get("version"))
        listed = {i["name"] for i in ds.list_indices()}
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as e:
        emit({"path": path, "error": str(e)[:400]})
        return 1
    ok = checks = faults = 0
    for query in expected.get("queries") or []:
        if job.get("only") and query["index"] not in job["only"] or query["type"] in job.get("skip", []):
            continue
        out = run_index(ds, query, expected["id_column"], listed, job.get("must_use", True))
        ok, checks = ok + out["ok"], checks + out["checks"]
        faults += bool(out["failed"] or out["unused"])
        emit({"path": path, **out})
    emit({"path": path, "done": True, "ok": ok, "checks": checks, "faults": faults, "pylance": lance.__version__})
    return faults


def emit(line):
    print(json.dumps(line), flush=True)


def main():
    if sys.argv[1:] == ["-"]:
        for line in sys.stdin:
            if line.strip():
                run(json.loads(line), emit)
        return 0
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    job = {"path": sys.argv[1], "expected": sys.argv[2], "must_use": os.environ.get("MUSTUSE", "1") != "0"}
    job["skip"] = [t for t in os.environ.get("SKIP", "").split(",") if t]
    return 1 if run(job, emit) else 0


if __name__ == "__main__":
    sys.exit(main())
