"""Columns for make_table.py: one for each kind of index, with values computed from a row's number, and with queries.

A Kind has a name (also of its column and, with "_idx", of its index), the type of index, the Arrow field, value(i) for
row i, create(ds, column, name) or args for building the index, and checks(ids, column): the checks for check_remapped.py
with their answers, from the column of a full scan. Most give their questions only, each with the predicate on a value
that tells whether a row belongs to the answer. GROUPS puts kinds into tables: a table of a group has all its columns.
"""

import datetime
import decimal
import json
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from lance.indices import IndexConfig
from lance.query import DocumentGranularity

import vectors
from answers import digest

WORDS = ["amber", "basil", "cedar", "delta", "ember", "fjord", "gravel", "hazel", "indigo", "jasper", "kelp", "lotus"]


@dataclass
class Kind:
    name: str
    index: str  # as check_remapped.py knows it
    field: pa.Field
    value: object
    queries: object = None
    create: object = None
    args: dict = field(default_factory=dict)
    exact: object = None  # instead of queries: checks with their answers, from ids and an array of values

    def build(self, ds):
        name = self.name + "_idx"
        if self.create:
            self.create(ds, self.name, name)
        elif self.index in ("ZONEMAP", "BLOOMFILTER", "RTREE"):
            # Their parameters are read from a config only: keyword arguments are ignored without a word.
            ds.create_scalar_index(self.name, IndexConfig(index_type=self.index.lower(), parameters=self.args), name=name)
        else:
            ds.create_scalar_index(self.name, self.index, name=name, **self.args)

    def checks(self, ids, column):
        if self.exact:
            return list(self.exact(ids, column.values.to_numpy(zero_copy_only=False).reshape(len(ids), -1)))
        values, checks = column.to_pylist(), []
        for check, predicate in self.queries(values):
            got = [i for i, v in zip(ids, values) if predicate(v)]
            checks.append({**check, "count": len(got), "sha256": digest(got)})
        return checks


def mix(i, salt):
    """A number that looks random but depends on its arguments alone."""
    x = (i * 0x9E3779B97F4A7C15 + salt * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return x ^ (x >> 31)


def nullable(value, salt, one_in=6):
    return lambda i: None if mix(i, salt) % one_in == 0 else value(i)


def comparisons(name, literal, ordered=True):
    """Queries on a column whose values compare: equal, ranges, lists, null tests, negations."""

    def make(rows):
        values = sorted({v for v in rows if v is not None})
        a, b, c = values[len(values) // 7], values[len(values) // 2], values[-1 - len(values) // 5]
        la, lb, lc = literal(a), literal(b), literal(c)
        yield {"filter": f"{name} = {la}"}, lambda v: v == a
        yield {"filter": f"{name} = {lc}"}, lambda v: v == c
        yield {"filter": f"{name} IN ({la}, {lb}, {lc})"}, lambda v: v in (a, b, c)
        yield {"filter": f"{name} IS NULL"}, lambda v: v is None
        yield {"filter": f"{name} IS NOT NULL"}, lambda v: v is not None
        yield {"filter": f"{name} != {lb}"}, lambda v: v is not None and v != b
        yield {"filter": f"NOT ({name} IN ({la}, {lb}))"}, lambda v: v is not None and v not in (a, b)
        if ordered:
            yield {"filter": f"{name} < {la}"}, lambda v: v is not None and v < a
            yield {"filter": f"{name} >= {lc}"}, lambda v: v is not None and v >= c
            yield {"filter": f"{name} > {la} AND {name} <= {lc}"}, lambda v: v is not None and a < v <= c
            yield {"filter": f"{name} < {la} OR {name} > {lc}"}, lambda v: v is not None and (v < a or v > c)
            yield {"filter": f"NOT ({name} < {lb})"}, lambda v: v is not None and v >= b

    return make


def quoted(v):
    return "'%s'" % v


def scalar(name, index, arrow, value, literal, ordered=True, **more):
    return Kind(name, index, pa.field(name, arrow), value, comparisons(name, literal, ordered), **more)


DAY = datetime.date(2020, 1, 1)
NOON = datetime.datetime(2020, 1, 1, 12)


def btrees(version):
    def ts(i):
        return NOON + datetime.timedelta(microseconds=mix(i, 7) % 10**12)

    return [
        scalar("i64", "BTREE", pa.int64(), lambda i: i * 3 - 500, str),
        scalar("i32n", "BTREE", pa.int32(), nullable(lambda i: mix(i, 1) % 90 - 40, 2, 4), str),
        scalar("u64", "BTREE", pa.uint64(), lambda i: mix(i, 3) % 10**15, str),
        scalar("f64", "BTREE", pa.float64(), nullable(lambda i: (mix(i, 4) % 4000 - 2000) / 8, 5), repr),
        scalar("str", "BTREE", pa.string(), nullable(lambda i: "%s %04d" % (WORDS[i % 12], mix(i, 6) % 9999), 8), quoted),
        scalar("bin", "BTREE", pa.binary(), lambda i: mix(i, 9).to_bytes(8, "big")[: 2 + i % 6], lambda v: "X'%s'" % v.hex()),
        scalar("dec", "BTREE", pa.decimal128(20, 3), nullable(lambda i: decimal.Decimal(mix(i, 10) % 10**7).scaleb(-3), 11),
               lambda v: "CAST('%s' AS DECIMAL(20, 3))" % v),
        scalar("ts", "BTREE", pa.timestamp("us"), nullable(ts, 12), lambda v: "timestamp '%s'" % v.isoformat(" ")),
        scalar("day", "BTREE", pa.date32(), lambda i: DAY + datetime.timedelta(days=mix(i, 13) % 700), lambda v: "date '%s'" % v),
        scalar("allnull", "BTREE", pa.int64(), lambda i: i if i % 97 == 5 else None, str),
    ]


def zones(version):
    args = {"args": {"rows_per_zone": 64}}
    bloom = {"args": {"number_of_items": 64, "probability": 0.001}, "ordered": False}
    return [
        scalar("zm_i64", "ZONEMAP", pa.int64(), lambda i: i * 2, str, **args),
        scalar("zm_null", "ZONEMAP", pa.int32(), nullable(lambda i: i // 3, 20), str, **args),
        scalar("zm_f64", "ZONEMAP", pa.float64(), lambda i: i / 16 + mix(i, 21) % 30, repr, **args),
        scalar("zm_str", "ZONEMAP", pa.string(), nullable(lambda i: "s%05d" % (i // 2), 22), quoted, **args),
        scalar("bf_i64", "BLOOMFILTER", pa.int64(), lambda i: i * 5, str, **bloom),
        scalar("bf_str", "BLOOMFILTER", pa.string(), nullable(lambda i: "k%d" % (mix(i, 23) % 5000), 24), quoted, **bloom),
    ]


def label_queries(name):
    def make(rows):
        for one in ("t0", "t5", "u1", "nowhere"):
            yield {"filter": f"array_has({name}, '{one}')"}, lambda v, one=one: v is not None and one in v
        yield {"filter": f"array_has_any({name}, ['t1', 'u0'])"}, lambda v: v is not None and bool({"t1", "u0"} & set(v))
        yield {"filter": f"array_has_all({name}, ['t2', 'u2'])"}, lambda v: v is not None and {"t2", "u2"} <= set(v)
        yield {"filter": f"NOT array_has({name}, 't3')"}, lambda v: v is not None and "t3" not in v
        yield {"filter": f"{name} IS NULL"}, lambda v: v is None
        yield {"filter": f"{name} IS NOT NULL"}, lambda v: v is not None

    return make


def labels(i):
    if mix(i, 30) % 7 == 0:
        return None
    return [] if mix(i, 31) % 11 == 0 else ["t%d" % (mix(i, 32) % 6), "u%d" % (mix(i, 33) % 3)]


POINT = pa.struct([("x", pa.float64()), ("y", pa.float64())])
GEO = {b"ARROW:extension:name": b"geoarrow.point", b"ARROW:extension:metadata": b"{}"}


def point(i):
    return None if mix(i, 40) % 8 == 0 else {"x": float(mix(i, 41) % 1000) / 10, "y": float(mix(i, 42) % 1000) / 10}


def boxes(rows):
    for k in range(8):
        x, y, w = 10 * k, 77 - 9 * k, 6 + 3 * k
        ring = f"{x} {y}, {x + w} {y}, {x + w} {y + w}, {x} {y + w}, {x} {y}"
        yield ({"filter": f"st_intersects(pt, st_geomfromtext('POLYGON(({ring}))'))"},
               lambda v, x=x, y=y, w=w: v is not None and x <= v["x"] <= x + w and y <= v["y"] <= y + w)


def json_queries(rows):
    for k in range(6):
        yield {"filter": f"json_get_int(js, 'a') = {k}"}, lambda v, k=k: json.loads(v)["a"] == k
    yield {"filter": "json_get_int(js, 'a') > 3"}, lambda v: json.loads(v)["a"] > 3
    yield {"filter": "json_get_int(js, 'a') < 2"}, lambda v: json.loads(v)["a"] < 2


def sets(version):
    place = point if version != "2.0" else lambda i: point(i) or point(i + 1) or {"x": 1.0, "y": 2.0}  # 2.0 has no null structs
    tree = IndexConfig(index_type="json", parameters={"target_index_type": "btree", "path": "a"})
    return [
        scalar("bm_str", "BITMAP", pa.string(), nullable(lambda i: "c%d" % (mix(i, 50) % 9), 51), quoted),
        scalar("bm_int", "BITMAP", pa.int32(), nullable(lambda i: i // 200, 52), str),
        scalar("bm_many", "BITMAP", pa.int64(), lambda i: i // 3, str),
        Kind("bm_bool", "BITMAP", pa.field("bm_bool", pa.bool_()), nullable(lambda i: mix(i, 53) % 3 == 0, 54),
             lambda rows: iter([({"filter": "bm_bool = true"}, lambda v: v is True), ({"filter": "bm_bool = false"}, lambda v: v is False),
                                ({"filter": "bm_bool IS NULL"}, lambda v: v is None), ({"filter": "NOT bm_bool"}, lambda v: v is False)])),
        Kind("tags", "LABEL_LIST", pa.field("tags", pa.list_(pa.string())), labels, label_queries("tags")),
        Kind("pt", "RTREE", pa.field("pt", POINT, metadata=GEO), place, boxes, args={"page_size": 32}),
        Kind("js", "JSON", pa.field("js", pa.json_(pa.string())), lambda i: json.dumps({"a": mix(i, 55) % 7, "b": "x%d" % i}), json_queries,
             create=lambda ds, column, name: ds.create_scalar_index(column, tree, name=name)),
        Kind("ng", "NGRAM", pa.field("ng", pa.string()), nullable(sentence(60), 61), contains("ng")),
    ]


def sentence(salt):
    return lambda i: "%s %s n%d" % (WORDS[mix(i, salt) % 12], WORDS[mix(i, salt + 1) % 12], i)


def contains(name, negated=False):
    def make(rows):
        for s in ("amber", "cedar", "asil ", "n70", "n1", "lotus k", "qqzz"):
            yield {"filter": f"contains({name}, '{s}')"}, lambda v, s=s: v is not None and s in v
        if negated:
            yield {"filter": f"NOT contains({name}, 'delta')"}, lambda v: v is not None and "delta" not in v

    return make


def words_of(v):
    return [] if v is None else (" ".join(v) if isinstance(v, list) else v).split()


def matches(name, phrases=False, **more):
    def make(rows):
        for w in ("amber", "fjord", "kelp", "n77", "absent"):
            yield {"fts": w, **more}, lambda v, w=w: w in words_of(v)
        yield {"fts": "hazel lotus", **more}, lambda v: bool({"hazel", "lotus"} & set(words_of(v)))
        for p in ("amber basil", "kelp delta", "lotus amber") if phrases else ():
            a, b = p.split()
            yield {"fts": p, "phrase": True}, lambda v, a=a, b=b: (a, b) in list(zip(words_of(v), words_of(v)[1:]))

    return make


def text(name, salt, phrases=False, **args):
    return Kind(name, "INVERTED", pa.field(name, pa.string()), nullable(sentence(salt), salt + 2, 9), matches(name, phrases),
                args={"stem": False, "remove_stop_words": False, **args})


def twins(i):
    return " ".join(WORDS[mix(i // 4, 80 + k) % 12] for k in range(14)) + " t%d" % (i // 4)


def near(rows):
    for v in (rows[3], rows[len(rows) // 2], rows[-2]):
        yield {"minhash": v}, lambda w, v=v: w == v


def texts(version):
    return [
        text("ft", 70),
        text("ft_pos", 72, phrases=True, with_position=True),
        text("ft_256", 74, block_size=256),
        text("ft_v1", 76, format_version=1),
        Kind("ft_list", "INVERTED", pa.field("ft_list", pa.list_(pa.string())), lambda i: None if i % 13 == 0 else [sentence(78)(i), WORDS[i % 12]],
             matches("ft_list", distinct=True), args={"stem": False, "remove_stop_words": False, "document_granularity": DocumentGranularity.LIST_ELEMENT}),
        Kind("fm", "FM", pa.field("fm", pa.string()), nullable(sentence(84), 86), contains("fm"),
             create=lambda ds, column, name: ds.create_scalar_index(column, IndexConfig(index_type="fm", parameters={}), name=name)),
        Kind("mh", "MINHASHLSH", pa.field("mh", pa.string()), twins, near),
    ]


def vector_kinds(version):
    return [Kind(v.name, v.index, pa.field(v.name, v.arrow()), v.value, create=v.build, exact=v.checks) for v in vectors.KINDS]


GROUPS = {"btree": btrees, "sets": sets, "zones": zones, "text": texts, "vector": vector_kinds}


def arrow_array(kind, values):
    if kind.name == "js":
        return pa.ExtensionArray.from_storage(kind.field.type, pa.array(values, pa.string()))
    if isinstance(values[0], np.ndarray):
        flat = np.concatenate(values)
        return pa.FixedSizeListArray.from_arrays(pa.array(flat, kind.field.type.value_type), kind.field.type.list_size)
    return pa.array(values, kind.field.type)
