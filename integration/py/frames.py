"""Reads a remapped dataset with polars (scan_lance) and with DuckDB (as an Arrow source).

    frames.py DATASET EXPECTED_JSON

Only filters on plain columns are asked, which both push down: prints {"index": polars|duckdb, "checks", "ok", "failed"}.
DuckDB's own Lance extension has to be fetched from its servers, so it is not used here.
"""

import json
import sys

import duckdb
import lance
import polars as pl

from answers import right

PLAIN = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")


def main():
    path, expected = sys.argv[1:]
    with open(expected) as f:
        expected = json.load(f)
    id_column, ds, con = expected["id_column"], lance.dataset(path), duckdb.connect()
    con.register("ds", ds)
    checks = [c for q in expected["queries"] if q["type"] in PLAIN for c in q["checks"] if "X'" not in c["filter"]][::2]

    def in_polars(check):
        return pl.scan_lance(ds).filter(pl.sql_expr(check["filter"])).select(id_column).collect()[id_column].to_list()

    def in_duckdb(check):
        return [row[0] for row in con.execute('SELECT "%s" FROM ds WHERE %s' % (id_column, check["filter"])).fetchall()]

    for name, ask in (("polars", in_polars), ("duckdb", in_duckdb)):
        failed = []
        for n, check in enumerate(checks):
            try:
                got = ask(check)
            except Exception as e:
                failed.append({"check": n, "kind": "error", "query": check["filter"], "say": str(e)[:200]})
                continue
            if not right(check, got):
                failed.append({"check": n, "kind": "wrong", "query": check["filter"], "say": "%d rows" % len(got)})
        print(json.dumps({"index": name, "checks": len(checks), "ok": len(checks) - len(failed), "failed": failed}))


if __name__ == "__main__":
    main()
