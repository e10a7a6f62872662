"""Writes small Lance files of every type, null pattern, list shape and compression, in every file version.

    make_lance_files.py DIR

Files are DIR/<version>/<name>.lance with one column "v" each. What a version does not write is left out. The files are
kept in internal/lancefile/testdata/forms.tar.zst, and what official Lance reads from them in testdata/oracle/forms.tsv
(dump_lance_file.py DIR).
"""

import os
import random
import sys

import numpy as np
import pyarrow as pa
from lance.file import LanceFileWriter

VERSIONS = ["2.0", "2.1", "2.2", "2.3"]
rng = np.random.default_rng(7)
random.seed(7)


def nulls(kind, n):
    """Which of n values are null."""
    if kind == "none":
        return np.zeros(n, bool)
    if kind == "all":
        return np.ones(n, bool)
    if kind == "few":
        m = np.zeros(n, bool)
        m[:: max(n // 7, 1)] = True
        return m
    if kind == "most":
        m = np.ones(n, bool)
        m[3 :: max(n // 9, 1)] = False
        return m
    return rng.random(n) < 0.3


def ints(t, n, how):
    bits = t.bit_width
    if how == "const":
        v = np.full(n, 7)
    elif how == "runs":
        v = np.repeat(rng.integers(0, 100, n // 20 + 1), 20)[:n]
    elif how == "small":
        v = rng.integers(0, 13, n)
    elif how == "sorted":
        v = np.sort(rng.integers(0, 1 << min(bits - 2, 40), n))
    elif how == "wide":
        v = rng.integers(0, (1 << (bits - 1)) - 1, n)
    else:  # many distinct values, dictionary-like: a few wide ones
        v = rng.choice(rng.integers(0, (1 << (bits - 1)) - 1, 9), n)
    return v.astype(f"{'u' if pa.types.is_unsigned_integer(t) else ''}int{bits}")


def strings(n, how):
    if how == "const":
        return [b"the same"] * n
    if how == "words":  # few distinct ones
        return [random.choice([b"alpha", b"beta", b"gamma", b"", b"a longer one that repeats"]) for _ in range(n)]
    if how == "text":  # long enough for a symbol table
        w = [b"http://example.com/", b"index", b"/lance/", b"fragment", b"?row=", b"%d"]
        return [b"".join(random.choice(w) for _ in range(5)) + b"%d" % i for i in range(n)]
    if how == "long":
        return [bytes(rng.integers(97, 101, int(rng.integers(300, 700)), dtype=np.uint8)) for _ in range(n)]
    if how == "huge":
        return [b"%d" % i * (20000 + 100 * i) for i in range(n)]
    if how == "fixed":
        return [b"%06d" % (i % 37) for i in range(n)]
    return [bytes(rng.integers(97, 123, int(rng.integers(0, 12)), dtype=np.uint8)) for _ in range(n)]


def leaf(t, n, how="small", mask="none"):
    m = nulls(mask, n)
    if pa.types.is_integer(t):
        return pa.array(ints(t, n, how), type=t, mask=m)
    if pa.types.is_boolean(t):
        v = np.ones(n, bool) if how == "const" else rng.random(n) < 0.5
        return pa.array(v, mask=m)
    if pa.types.is_floating(t):
        v = ints(pa.int32(), n, how if how in ("const", "runs") else "small").astype(f"float{t.bit_width}") * 0.37
        return pa.array(v.astype(f"float{t.bit_width}"), type=t, mask=m)
    if pa.types.is_fixed_size_binary(t) and not pa.types.is_decimal(t):
        w = t.byte_width
        return pa.array([None if x else (b"%d" % i * w)[:w] for i, x in enumerate(m)], type=t)
    if pa.types.is_decimal(t):
        import decimal

        return pa.array([None if x else decimal.Decimal(int(v)) / 100 for x, v in zip(m, ints(pa.int32(), n, "sorted" if how == "small" else how))], type=t)
    if pa.types.is_temporal(t):
        if t in (pa.time32("s"), pa.time32("ms")) or t == pa.date32():
            return pa.array(ints(pa.int32(), n, "small"), mask=m).cast(t)
        if t == pa.date64():
            return pa.array(ints(pa.int64(), n, "small") * 86400000, mask=m).cast(t)
        return pa.array(ints(pa.int64(), n, "sorted"), mask=m).cast(t)
    v = strings(n, how)
    return pa.array([None if x else y for x, y in zip(m, v)], type=pa.binary()).cast(t)


def lengths(n, shape):
    if shape == "one":
        return np.ones(n, int)
    if shape == "empty":
        return np.zeros(n, int)
    if shape == "long":
        return np.where(np.arange(n) % 50 == 7, 400, 0)
    return rng.integers(0, 5, n)


def lists(items, n, shape, mask, large=False):
    """Lists of some lengths over items(count); null lists are of length 0."""
    size, m = lengths(n, shape), nulls(mask, n)
    size = np.where(m, 0, size)
    ends = np.concatenate([[0], np.cumsum(size)])
    child = items(int(ends[-1]))
    bits = pa.array(ends, pa.int64() if large else pa.int32())
    cls = pa.LargeListArray if large else pa.ListArray
    return cls.from_arrays(bits, child, mask=pa.array(m) if m.any() else None)


def fixed_lists(t, d, n, mask="none", items="none", how="small"):
    return pa.FixedSizeListArray.from_arrays(leaf(t, n * d, how, items), d, mask=pa.array(nulls(mask, n)) if mask != "none" else None)


def structs(members, mask, n):
    return pa.StructArray.from_arrays(list(members.values()), list(members), mask=pa.array(nulls(mask, n)) if mask != "none" else None)


def columns():
    n = 1100
    i32, i64, u16, u8 = pa.int32(), pa.int64(), pa.uint16(), pa.uint8()
    for t in [pa.int8(), u8, pa.int16(), u16, i32, pa.uint32(), i64, pa.uint64()]:
        for how in ["small", "runs", "wide"]:
            yield f"{t}_{how}", leaf(t, n if how != "wide" else 300, how), {}
        yield f"{t}_some", leaf(t, n, "small", "some"), {}
    for t in [u8, u16, i32, i64]:
        for how in ["sorted", "few", "const"]:
            yield f"{t}_{how}", leaf(t, n, how), {}
        for mask in ["few", "most", "all"]:
            yield f"{t}_{mask}_null", leaf(t, n, "wide" if mask == "most" else "runs", mask), {}
        yield f"{t}_const_some", leaf(t, n, "const", "some"), {}
    for t in [pa.bool_(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(20, 3), pa.decimal256(50, 2), pa.date32(), pa.date64(),
              pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("us"), pa.timestamp("s", tz="UTC"),
              pa.timestamp("ns"), pa.duration("ms"), pa.binary(5), pa.binary(16)]:
        name = str(t).replace("[", "_").replace("]", "").replace("(", "_").replace(")", "").replace(", ", "_").replace("=", "_")
        yield f"{name}", leaf(t, n // 2), {}
        yield f"{name}_some", leaf(t, n // 2, "runs", "some"), {}
        yield f"{name}_all", leaf(t, 40, "small", "all"), {}
        yield f"{name}_const", leaf(t, 40, "const"), {}
    for t in [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]:
        for how in ["short", "words", "const", "fixed", "text"]:
            yield f"{t}_{how}", leaf(t, n if t == pa.string() else 300, how), {}
        for how in ["short", "words", "const"]:
            yield f"{t}_{how}_some", leaf(t, n, how, "some"), {}
        yield f"{t}_most", leaf(t, n, "short", "most"), {}
        yield f"{t}_all", leaf(t, n, "short", "all"), {}
        yield f"{t}_long", leaf(t, 30, "long"), {}
        yield f"{t}_long_some", leaf(t, 40, "long", "some"), {}
        yield f"{t}_huge", leaf(t, 9, "huge", "some"), {}
        yield f"{t}_one", leaf(t, 1, "long"), {}
    for t in [pa.float32(), u8, u16, pa.float16(), pa.float64(), pa.bool_(), i64]:
        yield f"fsl_{t}", fixed_lists(t, 8, n // 8), {}
        yield f"fsl_{t}_null", fixed_lists(t, 5, n // 8, "some"), {}
        yield f"fsl_{t}_null_items", fixed_lists(t, 3, n // 4, "some", "some"), {}
    yield "fsl_float_wide", fixed_lists(pa.float32(), 300, 20), {}
    yield "fsl_float_wide_null", fixed_lists(pa.float32(), 300, 20, "some"), {}
    yield "fsl_float_wide_items", fixed_lists(pa.float32(), 300, 20, "some", "some"), {}
    yield "fsl_float_const", fixed_lists(pa.float32(), 4, 30, how="const"), {}
    yield "fsl_float_all", fixed_lists(pa.float32(), 4, 30, "all"), {}
    for shape in ["some", "one", "empty", "long"]:
        for mask in ["none", "some", "most", "all"]:
            yield f"list_int32_{shape}_{mask}", lists(lambda k: leaf(i32, k), n, shape, mask), {}
            yield f"list_string_{shape}_{mask}", lists(lambda k: leaf(pa.string(), k, "short"), n // 2, shape, mask), {}
        yield f"list_int32_{shape}_items", lists(lambda k: leaf(i32, k, "small", "some"), n, shape, "some"), {}
        yield f"list_string_{shape}_items", lists(lambda k: leaf(pa.string(), k, "words", "some"), n // 2, shape, "some"), {}
        yield f"list_binary_{shape}_long", lists(lambda k: leaf(pa.large_binary(), k, "long"), 60, "one" if shape == "long" else shape, "few"), {}
        yield f"large_list_float_{shape}", lists(lambda k: leaf(pa.float32(), k), n, shape, "some", True), {}
    yield "list_all_items_null", lists(lambda k: leaf(i32, k, "small", "all"), n, "some", "none"), {}
    yield "list_const_items", lists(lambda k: leaf(i32, k, "const"), n, "some", "some"), {}
    yield "list_const_items_some", lists(lambda k: leaf(i32, k, "const", "some"), n, "some", "some"), {}
    yield "list_fsl", lists(lambda k: fixed_lists(pa.float32(), 4, k, "some"), 200, "some", "some"), {}
    yield "list_fsl_wide", lists(lambda k: fixed_lists(pa.float32(), 100, k, "some"), 20, "some", "some"), {}
    yield "list_bool", lists(lambda k: leaf(pa.bool_(), k, "small", "some"), 300, "some", "some"), {}
    yield "list_list", lists(lambda k: lists(lambda j: leaf(i32, j, "small", "some"), k, "some", "some"), 300, "some", "some"), {}
    yield "list_list_valid", lists(lambda k: lists(lambda j: leaf(i32, j, "small"), k, "one", "none"), 300, "one", "none"), {}
    yield "list_list_string", lists(lambda k: lists(lambda j: leaf(pa.string(), j, "long", "some"), k, "some", "some"), 20, "some", "some"), {}
    for mask in ["none", "some", "all"]:
        yield f"struct_{mask}", structs({"a": leaf(i32, 400), "b": leaf(pa.string(), 400, "short", "some"), "c": leaf(pa.float64(), 400, "runs")}, mask, 400), {}
        yield f"struct_struct_{mask}", structs({"x": structs({"a": leaf(u16, 200, "wide", "some")}, "some", 200), "y": leaf(u8, 200)}, mask, 200), {}
        yield f"struct_list_{mask}", structs({"l": lists(lambda k: leaf(i32, k, "small", "some"), 200, "some", "some"), "y": leaf(u8, 200)}, mask, 200), {}
        yield f"list_struct_{mask}", lists(lambda k: structs({"a": leaf(i32, k, "small", "some"), "b": leaf(pa.string(), k, "short")}, "some" if mask != "none" else "none", k), 200, "some", mask), {}
        yield f"list_struct_list_{mask}", lists(lambda k: structs({"l": lists(lambda j: leaf(u16, j, "small", "some"), k, "some", mask), "b": leaf(pa.bool_(), k)}, "some" if mask != "none" else "none", k), 100, "some", mask), {}
    yield "bbox", structs({k: leaf(pa.float64(), 300, "wide") for k in ["xmin", "ymin", "xmax", "ymax"]}, "none", 300), {}
    for c in ["zstd", "lz4", "none", "fsst"]:
        meta = {"lance-encoding:compression": c}
        yield f"meta_{c}_int", leaf(i64, n, "sorted"), meta
        yield f"meta_{c}_int_some", leaf(i32, n, "wide" if c == "none" else "runs", "some"), meta
        yield f"meta_{c}_float", leaf(pa.float32(), n, "small", "some"), meta
        yield f"meta_{c}_string", leaf(pa.string(), n, "text"), meta
        yield f"meta_{c}_string_some", leaf(pa.string(), n, "text", "some"), meta
        yield f"meta_{c}_binary_huge", leaf(pa.binary(), 6, "huge", "few"), meta
        yield f"meta_{c}_long", leaf(pa.string(), 90, "long", "some"), meta
        yield f"meta_{c}_words", leaf(pa.string(), n, "words"), meta
        yield f"meta_{c}_list", lists(lambda k: leaf(pa.string(), k, "text"), 200, "some", "some"), meta
        yield f"meta_{c}_fsl", fixed_lists(pa.float32(), 8, 200, "some"), meta
        yield f"meta_{c}_fsl_items", fixed_lists(pa.float32(), 8, 200, "some", "some"), meta
        yield f"meta_{c}_bool", leaf(pa.bool_(), 900), meta
        yield f"meta_{c}_decimal", leaf(pa.decimal128(20, 2), 400), meta
    for s in ["miniblock", "fullzip"]:
        meta = {"lance-encoding:structural-encoding": s}
        yield f"meta_{s}_int", leaf(i32, 500, "wide", "some"), meta
        yield f"meta_{s}_long", leaf(i64, 500, "wide"), meta
        yield f"meta_{s}_string", leaf(pa.string(), 500, "short", "some"), meta
        yield f"meta_{s}_text", leaf(pa.string(), 1200, "text", "some"), meta
        yield f"meta_{s}_list", lists(lambda k: leaf(i32, k, "small", "some"), 300, "some", "some"), meta
        yield f"meta_{s}_list_fsl", lists(lambda k: fixed_lists(pa.float32(), 4, k, "some"), 100, "some", "some"), meta
        yield f"meta_{s}_list_string", lists(lambda k: leaf(pa.string(), k, "short", "some"), 300, "some", "some"), meta
        yield f"meta_{s}_fsl", fixed_lists(pa.float32(), 8, 100, "some"), meta
        yield f"meta_{s}_fsl_items", fixed_lists(pa.float32(), 8, 100, "some", "some"), meta
        yield f"meta_{s}_bool", leaf(pa.bool_(), 300, "small", "some"), meta
    yield "meta_bss_float", leaf(pa.float32(), 3000), {"lance-encoding:bss": "on", "lance-encoding:compression": "lz4"}
    yield "meta_bss_double", leaf(pa.float64(), 1000, "small", "some"), {"lance-encoding:bss": "on", "lance-encoding:compression": "zstd"}
    yield "meta_dict", leaf(pa.string(), n, "words", "some"), {"lance-encoding:dict-divisor": "1", "lance-encoding:dict-size-ratio": "1.0"}
    packed = {"packed": "true"}
    yield "packed", structs({"a": leaf(i32, 100), "b": leaf(pa.float64(), 100)}, "none", 100), packed
    yield "dictionary", leaf(pa.string(), 200, "words", "some").dictionary_encode(), {}
    yield "null", pa.nulls(50), {}
    yield "map", pa.array([None if i % 5 == 0 else [(f"k{j}", j) for j in range(i % 4)] for i in range(60)], pa.map_(pa.string(), i32)), {}
    yield "no_rows", leaf(i32, 0), {}
    yield "no_rows_list", lists(lambda k: leaf(i32, k), 0, "some", "none"), {}
    yield "paged_int", leaf(i64, 3000, "sorted", "some"), {"paged": "1"}
    yield "paged_string", leaf(pa.string(), 3000, "short", "some"), {"paged": "1"}
    yield "paged_list", lists(lambda k: leaf(i32, k, "small", "some"), 3000, "some", "some"), {"paged": "1"}
    yield "paged_list_string", lists(lambda k: leaf(pa.string(), k, "short", "some"), 1500, "some", "some"), {"paged": "1"}
    yield "paged_mixed", pa.concat_arrays([leaf(i32, 1000, "wide"), leaf(i32, 1000, "const", "all"), leaf(i32, 1000, "const"), leaf(i32, 1000, "runs", "some")]), {"paged": "1"}


    # Mostly null and wide, or lists that are mostly null or empty: what 2.3 describes by positions.
    for t in [pa.string(), pa.large_binary()]:
        yield f"sparse_{t}_long", wide(700, 70, lambda i: b"%d" % i * (100 if i % 3 else 2000)).cast(t), {}
        yield f"sparse_{t}_words", wide(1500, 50, lambda i: b"word%d" % (i % 4) * 100).cast(t), {}
    yield "sparse_fsl_wide", fixed_lists(pa.float32(), 200, 300, "most", how="runs"), {}
    yield "sparse_fsl_wide_items", fixed_lists(pa.float32(), 200, 100, "most", "some"), {}
    yield "sparse_fixed_binary", wide(1500, 40, lambda i: b"%04d" % i * 100).cast(pa.binary(400)), {}
    yield "sparse_list_long", lists(lambda k: leaf(pa.string(), k, "long"), 1500, "long", "most"), {}
    yield "sparse_list_longs", pa.array([[("%d" % i) * 400] * 3 if i % 100 == 7 else None for i in range(1500)]), {}
    yield "sparse_list_int", pa.array([[i, i + 1, 2] if i % 100 == 7 else None for i in range(1500)]), {}
    yield "sparse_list_int_empty", pa.array([[i, None, 2] if i % 100 == 7 else [] for i in range(1500)]), {}
    yield "sparse_list_fsl", pa.array([[[float(i)] * 200] * 3 if i % 100 == 7 else None for i in range(1500)], pa.list_(pa.list_(pa.float32(), 200))), {}
    yield "sparse_struct", structs({"a": leaf(pa.string(), 60, "long", "most"), "b": leaf(i32, 60)}, "some", 60), {}
    yield "sparse_zstd", wide(1500, 50, lambda i: b"%d" % i * 3000), {"lance-encoding:compression": "zstd"}
    yield "sparse_big", wide(1500, 150, lambda i: b"%d" % i * 20000), {}


def wide(n, step, value):
    return pa.array([value(i) if i % step == 3 else None for i in range(n)], pa.binary())


def write(path, a, meta, version):
    paged = meta.pop("paged", None)
    nullable = a.null_count > 0 or len(a) == 0 or pa.types.is_null(a.type)
    schema = pa.schema([pa.field("v", a.type, nullable=nullable, metadata=meta or None)])
    args = {"data_cache_bytes": 1} if paged else {}
    with LanceFileWriter(path, schema, version=version, **args) as w:
        step = 1000 if paged else max(len(a), 1)
        for i in range(0, max(len(a), 1), step):
            w.write_batch(pa.record_batch([a.slice(i, step)], schema=schema))


def main():
    for name, a, meta in columns():
        for version in VERSIONS:
            path = os.path.join(os.path.abspath(sys.argv[1]), version, name.replace(" ", "") + ".lance")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            try:
                write(path, a, dict(meta), version)
            except BaseException as e:  # the writer panics on some
                print(f"{version} {name}: {str(e)[:150]}", file=sys.stderr)
                if os.path.exists(path):
                    os.remove(path)


if __name__ == "__main__":
    main()
