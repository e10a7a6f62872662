"""Makes a database with branches of branches, tags on them, and clones of clones: make_refs.py DIRECTORY

It prints, as JSON, the rows of each line of versions, as Lance itself counts them.
"""

import json
import sys
from datetime import timedelta

import lance
import pyarrow as pa


def rows(first, end):
    ids = pa.array(range(first, end), pa.int64())
    return pa.table({"id": ids, "plain": ids})


top = sys.argv[1]
path = top + "/t.lance"
main = lance.write_dataset(rows(0, 40), path, max_rows_per_file=10)
main.create_scalar_index("id", "BTREE")
one = lance.write_dataset(rows(40, 60), main.create_branch("dev/one"), mode="append")
two = lance.write_dataset(rows(60, 70), one.create_branch("dev/one/two"), mode="append")
two.delete("plain = 5")  # not by the index, which 12.0.0 does not find here
main.tags.create("on-main", 1)
main.tags.create("on-branch", ("dev/one", one.version))
main.tags.create("on-second", ("dev/one/two", two.version))
lance.dataset(path).shallow_clone(top + "/c1.lance", reference=2)
lance.dataset(top + "/c1.lance").shallow_clone(top + "/c2.lance", reference=2)

# A clone of a table that is in none of the places where a manifest may lead by itself.
lance.write_dataset(rows(0, 5), top + "-far/s.lance").create_scalar_index("id", "BTREE")
lance.dataset(top + "-far/s.lance").shallow_clone(top + "/c_far.lance", reference=2)
lance.write_dataset(rows(5, 8), top + "/c_far.lance", mode="append")

# A version that is cleaned up, with a tag that was made for it by hand.
gone = lance.write_dataset(rows(0, 5), top + "/cleaned.lance")
gone.delete("id = 1")
gone.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)

print(json.dumps({
    "versions": {"": main.latest_version, "dev/one": one.latest_version, "dev/one/two": two.latest_version},
    "rows": {"": main.count_rows(), "dev/one": one.count_rows(), "dev/one/two": two.count_rows()},
}))
