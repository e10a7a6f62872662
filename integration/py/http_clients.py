"""Reads a mapping.csv of `frifs serve` with clients that speak HTTP, and prints what each saw as JSON:
{client: [rows, rows without a new address, sum of the old, sum of the new, sum of the new offsets]}.

usage: http_clients.py frames|http BASE DIRECTORY   (BASE: the server, DIRECTORY: the transition's path)

frames: pandas, polars and the official Lance reader, in the environment of requirements.txt.
http: DuckDB with httpfs, fsspec and a WebDAV client, in that of requirements-http.txt.
"""

import csv
import glob
import io
import json
import os
import random
import sys
import tempfile


def view(rows):
    rows = list(rows)
    new = [r for r in rows if r["new_row_addr"] not in ("", None)]
    return [
        len(rows),
        len(rows) - len(new),
        sum(int(r["old_row_addr"]) for r in rows),
        sum(int(r["new_row_addr"]) for r in new),
        sum(int(r["new_offset"]) for r in new),
    ]


def frames(base, directory):
    import lance
    import pandas as pd
    import polars as pl

    url = f"{base}/{directory}/mapping.csv"
    text = lambda frame: frame.to_dict("records")
    seen = {"pandas": view(text(pd.read_csv(url, dtype=str, keep_default_na=False)))}
    seen["polars"] = view(pl.scan_csv(url, infer_schema=False).collect().to_dicts())
    seen["polars ipc"] = view(pl.read_ipc(f"{base}/{directory}/mapping.arrow").to_dicts())
    try:
        lance.dataset(f"{base}/latest/remapped.lance")
        lance_says = "opened"
    except Exception as e:  # whatever class it is: the text is looked at
        lance_says = str(e)
    return {"seen": seen, "lance": lance_says}


def http(base, directory):
    import duckdb
    import duckdb_extension_httpfs
    import fsspec
    from webdav3.client import Client

    url = f"{base}/{directory}/mapping.csv"
    (extension,) = glob.glob(os.path.join(os.path.dirname(duckdb_extension_httpfs.__file__), "extensions/*/httpfs.duckdb_extension"))
    db = duckdb.connect()
    db.execute(f"LOAD '{extension}'")
    row = db.execute(
        f"""SELECT count(*), count(*) - count(new_row_addr), sum(old_row_addr), sum(new_row_addr), sum(new_offset)
        FROM read_csv('{url}')"""
    ).fetchone()
    seen = {"DuckDB httpfs": [int(v) for v in row]}
    versions = db.execute(f"SELECT dataset_version FROM read_json('{base}/latest/fri/history.json')").fetchall()

    fs = fsspec.filesystem("http", block_size=4096)
    whole = fs.cat_file(url)
    seen["fsspec"] = view(csv.DictReader(io.StringIO(whole.decode())))
    rng = random.Random(1)
    with fs.open(url) as f:
        assert f.size == len(whole), (f.size, len(whole))
        for _ in range(50):
            at, n = rng.randrange(len(whole)), rng.randrange(1, 3000)
            f.seek(at)
            assert f.read(n) == whole[at : at + n], (at, n)
    listed = sorted(n.rsplit("/", 1)[1] for n in fs.ls(f"{base}/{directory}/", detail=False) if not n.endswith("/"))

    dav = Client({"webdav_hostname": base, "webdav_disable_check": True})
    names = sorted(n for n in dav.list(directory) if not n.endswith("/"))
    with tempfile.TemporaryDirectory() as tmp:
        dav.download_sync(f"{directory}/mapping.csv", f"{tmp}/m")
        with open(f"{tmp}/m", newline="") as f:
            seen["webdavclient3"] = view(csv.DictReader(f))
        refused = ""
        try:
            dav.upload_sync(f"{directory}/new", f"{tmp}/m")
        except Exception as e:  # likewise
            refused = str(e)
    size = int(dav.info(f"{directory}/mapping.csv")["size"])
    return {"seen": seen, "version": versions[0][0], "listed": listed, "names": names, "size": size, "refused": refused}


print(json.dumps({"frames": frames, "http": http}[sys.argv[1]](sys.argv[2], sys.argv[3])))
