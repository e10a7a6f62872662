"""Reads a remapped dataset with LanceDB for Python, which finds it as the table "remapped" of the database DIR.

    lancedb_reads.py DIR EXPECTED_JSON

Prints what check_remapped.py prints for each index: {"path", "index", "type", "checks", "ok", "failed"}. Queries that
LanceDB has no form for are left out: phrases, MinHash, and functions on shapes, which it is built without.
"""

import json
import sys

import lancedb
import numpy as np

from answers import right, title


def answer(table, check, kind, column, id_column):
    if "filter" in check:
        found = table.search().where(check["filter"]).select([id_column]).limit(1000000)
    elif "fts" in check:
        found = table.search(check["fts"], query_type="fts", fts_columns=column).select([id_column]).limit(1000000)
    else:
        metric = check.get("metric", "l2")
        query = np.array(check["nearest"], "u1" if metric == "hamming" else check.get("dtype", "f4"))
        found = table.search(query, vector_column_name=column).distance_type(metric).nprobes(check.get("nprobes", 16))
        found = found.limit(check["k"]).select([id_column])
        if metric != "hamming":
            found = found.refine_factor(check.get("refine", 30))
        if "HNSW" in kind:
            found = found.ef(max(600, check["k"] * check.get("refine", 30)))
        if "where" in check:
            found = found.where(check["where"], prefilter=True)
    return found.to_arrow()[id_column].to_pylist()


def asked(check):
    return not check.get("phrase") and "minhash" not in check and not check.get("filter", "").startswith("st_")


def main():
    folder, path = sys.argv[1:]
    with open(path) as f:
        expected = json.load(f)
    table, id_column = lancedb.connect(folder).open_table("remapped"), expected["id_column"]
    for query in expected["queries"]:
        kind, failed = query["type"].replace("cfg:", "").upper(), []
        checks = [c for c in query["checks"] if asked(c)]
        for n, check in enumerate(checks):
            try:
                got = answer(table, check, kind, query["column"], id_column)
            except Exception as e:
                failed.append({"check": n, "kind": "error", "query": title(check), "say": str(e)[:200]})
                continue
            if not right(check, got):
                failed.append({"check": n, "kind": "wrong", "query": title(check), "say": "%d rows" % len(got)})
        out = {"path": folder, "index": query["index"], "type": kind, "checks": len(checks), "ok": len(checks) - len(failed), "failed": failed}
        print(json.dumps(out))


if __name__ == "__main__":
    main()
