"""Recorded answers: what check_remapped.py calls a check, and whether ids are its answer. Needs no library of Lance."""

import hashlib


def digest(ids):
    return hashlib.sha256(",".join(str(i) for i in sorted(ids)).encode()).hexdigest()


def title(check):
    if "filter" in check:
        return check["filter"][:100]
    for key in ("fts", "minhash"):
        if key in check:
            return "%s %s" % (key, check[key])
    return "nearest %d of %s" % (check["k"], [round(x, 3) for x in check["nearest"][:3]])


def right(check, got):
    got = sorted(set(got)) if check.get("distinct") else got
    if "count" in check:
        return len(got) == check["count"] and digest(got) == check["sha256"]
    return sorted(got) == sorted(check["ids"])
