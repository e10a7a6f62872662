"""Print what the official reader makes of row addresses.

usage: remap.py < questions
A question is a line "dataset PATH", then a line per address. The answer is the same "dataset" line, then a line per
address, in order: the address that Dataset.remap_row_addrs gives, or nothing where it gives null; or "no index" alone
where the reader finds no reuse index.
"""
import sys

import lance
import pyarrow as pa


def answer(path, addrs):
    print("dataset", path)
    got = lance.dataset(path).remap_row_addrs(pa.array(addrs, pa.uint64()))
    if got is None:
        print("no index")
    else:
        sys.stdout.write("".join("%s\n" % ("" if a is None else a) for a in got.to_pylist()))


path, addrs = None, []
for line in sys.stdin:
    if line.startswith("dataset "):
        if path:
            answer(path, addrs)
        path, addrs = line[len("dataset "):-1], []
    else:
        addrs.append(int(line))
answer(path, addrs)
