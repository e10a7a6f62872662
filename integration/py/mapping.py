"""Read mapping.csv and mapping.arrow with every library that people use, and print what each saw as JSON.

usage: mapping.py MAPPING_CSV MAPPING_ARROW
A view is [lines, dropped, sum of old addresses, sum of new addresses, sum of new offsets]; all views must be equal.
"""
import json
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.compute as pc
import pyarrow.csv as pacsv

csv, arrow = sys.argv[1:3]
views = {}


def from_arrow(t):
    total = lambda c: int(sum(x.as_py() or 0 for x in (pc.sum(chunk) for chunk in t[c].chunks)))
    return [t.num_rows, t["new_row_addr"].null_count, total("old_row_addr"), total("new_row_addr"), total("new_offset")]


df = pd.read_csv(csv, dtype="UInt64")
views["pandas csv"] = [len(df), int(df.new_row_addr.isna().sum()), sum(map(int, df.old_row_addr)), sum(map(int, df.new_row_addr.dropna())), int(df.new_offset.sum())]

df = pl.read_csv(csv, infer_schema_length=None)
views["polars csv"] = [df.height, df["new_row_addr"].null_count(), sum(df["old_row_addr"].to_list()), sum(df["new_row_addr"].drop_nulls().to_list()), int(df["new_offset"].cast(pl.Int64).sum())]

q = "select count(*), count(*) - count(new_row_addr), sum(old_row_addr::hugeint), sum(new_row_addr::hugeint), sum(new_offset::hugeint) from "
views["duckdb csv"] = [int(x or 0) for x in duckdb.sql(q + f"read_csv('{csv}', header = true, all_varchar = false)").fetchall()[0]]
views["pyarrow csv"] = from_arrow(pacsv.read_csv(csv))

with pa.OSFile(arrow) as f:
    t = pa.ipc.open_file(f).read_all()
t.validate(full=True)
views["pyarrow arrow"] = from_arrow(t)
with pa.memory_map(arrow) as f:
    views["pyarrow arrow, mapped"] = from_arrow(pa.ipc.open_file(f).read_all())
views["duckdb arrow"] = [int(x or 0) for x in duckdb.sql(q + "t").fetchall()[0]]
df = pd.read_feather(arrow, dtype_backend="pyarrow")
views["pandas arrow"] = [len(df), int(df.new_row_addr.isna().sum()), sum(map(int, df.old_row_addr)), sum(map(int, df.new_row_addr.dropna())), int(df.new_offset.sum())]
df = pl.read_ipc(arrow)
views["polars arrow"] = [df.height, df["new_row_addr"].null_count(), sum(df["old_row_addr"].to_list()), sum(df["new_row_addr"].drop_nulls().to_list()), int(df["new_offset"].cast(pl.Int64).sum())]

json.dump({"views": views, "schema": [[f.name, str(f.type), f.nullable] for f in t.schema]}, sys.stdout)
