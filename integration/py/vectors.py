"""Vector columns for make_table.py, one for each kind of vector index, and their nearest-neighbour queries.

The answers are exact neighbours; a query is taken only where the k-th and the next neighbour are clearly apart, so that
rounding cannot swap them. Quantised indices refine with a factor that makes them exact on tables of this size.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

DIM = 16
K = 10


@dataclass
class VectorKind:
    name: str
    index: str
    salt: int
    metric: str = "l2"
    dtype: str = "f4"
    args: dict = field(default_factory=dict)

    def arrow(self):
        item = {"f4": pa.float32(), "f2": pa.float16(), "u1": pa.uint8()}[self.dtype]
        return pa.list_(item, DIM)

    def value(self, i):
        rng = np.random.default_rng([i, self.salt])
        if self.dtype == "u1":
            return rng.integers(0, 256, DIM, dtype="u1")
        return rng.standard_normal(DIM).astype(self.dtype)

    def build(self, ds, column, name):
        ds.create_index(column, self.index, name=name, metric=self.metric, num_partitions=4, **self.args)

    def distances(self, rows, q):
        if self.metric == "hamming":
            return np.unpackbits(rows ^ q, axis=1).sum(axis=1).astype("f8")
        rows, q = rows.astype("f8"), q.astype("f8")
        if self.metric == "cosine":
            return 1 - rows @ q / np.linalg.norm(rows, axis=1) / np.linalg.norm(q)
        if self.metric == "dot":
            return 1 - rows @ q
        return ((rows - q) ** 2).sum(axis=1)

    def checks(self, ids, values):
        """Yields complete checks, given the ids of a full scan and the matrix of its values."""
        rows, ids = values, np.asarray(ids)
        made = 0
        for n in range(500):
            q = self.value(10_000_000 + n) if n % 2 else rows[(n * 37) % len(rows)]
            where = ids % 3 == 1 if n % 5 == 4 else np.ones(len(ids), bool)
            d = self.distances(rows[where], q)
            order = np.argsort(d, kind="stable")
            k = K
            while k < 25 and d[order[k]] - d[order[k - 1]] < 1e-3:
                k += 1
            if d[order[k]] - d[order[k - 1]] < 1e-3:
                continue
            check = {"nearest": q.tolist(), "k": k, "metric": self.metric, "ids": ids[where][order[:k]].tolist(), "refine": 60, "nprobes": 64}
            if self.dtype == "f2":
                check["dtype"] = "f2"
            if n % 5 == 4:
                check["where"] = "id % 3 = 1"
            yield check
            made += 1
            if made == 8:
                return
        raise RuntimeError("%s: not enough clear neighbours" % self.name)


KINDS = [
    VectorKind("v_flat", "IVF_FLAT", 1),
    VectorKind("v_cos", "IVF_FLAT", 2, metric="cosine"),
    VectorKind("v_half", "IVF_FLAT", 3, dtype="f2"),
    VectorKind("v_pq", "IVF_PQ", 4, args={"num_sub_vectors": 8}),
    VectorKind("v_pq4", "IVF_PQ", 5, args={"num_sub_vectors": 8, "num_bits": 4}),
    VectorKind("v_sq", "IVF_SQ", 6),
    VectorKind("v_rq", "IVF_RQ", 7),
    VectorKind("v_hflat", "IVF_HNSW_FLAT", 8),
    VectorKind("v_hpq", "IVF_HNSW_PQ", 9, args={"num_sub_vectors": 8}),
    VectorKind("v_hsq", "IVF_HNSW_SQ", 10),
    VectorKind("v_ham", "IVF_FLAT", 11, metric="hamming", dtype="u1"),
]
