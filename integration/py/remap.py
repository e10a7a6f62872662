"""Print what the official reader makes of row addresses.

usage: remap.py DATASET < addresses
Prints a line per address, in order: the address that Dataset.remap_row_addrs gives, or nothing where it gives null.
"no index" alone is printed where the reader finds no reuse index.
"""
import sys

import lance
import pyarrow as pa

addrs = pa.array([int(line) for line in sys.stdin], pa.uint64())
got = lance.dataset(sys.argv[1]).remap_row_addrs(addrs)
if got is None:
    print("no index")
else:
    sys.stdout.write("".join("%s\n" % ("" if a is None else a) for a in got.to_pylist()))
