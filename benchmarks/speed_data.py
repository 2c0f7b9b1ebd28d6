"""Sparse rows in the shapes of four public data sets, with columns that follow a power law.

The columns are written one after the other, so that the largest shape needs little more memory
than its own 2.5 GB.

    python benchmarks/speed_data.py        checks the generator on small shapes
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from scipy import sparse

RADIUS = 5.0
TRUE_COLUMNS = 30

#: No column has an entry in more than this part of the rows.
MOST_POPULAR = 0.3

#: The median of a tf-idf value, and how far its logarithm spreads.
TEXT_MEDIAN, TEXT_SPREAD = 0.13, 0.8


@dataclass(frozen=True)
class Shape:
    """How large a sparse matrix is, and how many steps it is fitted for."""

    name: str
    rows: int
    columns: int
    per_row: int
    binary: bool
    steps: int

    @property
    def nonzeros(self) -> int:
        return self.rows * self.per_row


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("rcv1", 20_000, 47_000, 74, binary=False, steps=4_000),
        Shape("news20", 20_000, 1_360_000, 455, binary=False, steps=4_000),
        Shape("url", 2_400_000, 3_200_000, 116, binary=True, steps=1_000),
        Shape("kdda", 8_400_000, 20_200_000, 36, binary=True, steps=1_000),
    )
}


def make_x(shape: Shape, check: bool = False) -> tuple[sparse.csc_array, np.ndarray]:
    """The matrix, and its columns from the most popular to the rarest."""
    rng = np.random.default_rng(0)
    counts = column_counts(shape, rng)
    by_rank = rng.permutation(shape.columns)
    starts = np.zeros(shape.columns + 1, dtype=np.int64)
    starts[1 + by_rank] = counts
    np.cumsum(starts, out=starts)
    del counts
    rows = np.empty(starts[-1], dtype=np.int32)
    fill_rows(starts, rows, shape.rows, 1)
    values = np.ones(len(rows), dtype=np.float32)
    if not shape.binary:
        fill_text_values(values, TEXT_MEDIAN, TEXT_SPREAD, 2)
    if check:
        check_columns(shape, starts, rows, values)
    if len(rows) < 2**31:  # SciPy wants both kinds of indices alike
        starts = starts.astype(np.int32)
    size = (shape.rows, shape.columns)
    return sparse.csc_array((values, rows, starts), shape=size, copy=False), by_rank


def make_y(x: sparse.csc_array, by_rank: np.ndarray, loss: str) -> np.ndarray:
    """Targets of a model on a few columns, from the most popular to rare ones."""
    rng = np.random.default_rng(3)
    n, p = x.shape
    ranks = np.unique(np.geomspace(1, p / 4, TRUE_COLUMNS).astype(np.int64)) - 1
    values = RADIUS / len(ranks) * np.where(np.arange(len(ranks)) % 2, -1.0, 1.0)
    signal = margins(x, by_rank[ranks], values)
    if loss == "squared":
        signal += rng.normal(0.0, 0.1, n)
        return np.clip(signal, -1.0, 1.0, out=signal)
    signal += rng.normal(0.0, 0.01, n)  # decides where there is no signal
    return np.sign(signal) * np.where(rng.random(n) < 0.05, -1.0, 1.0)


def column_counts(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """How many entries each column has, from the most popular to the rarest."""
    popularity = np.arange(10.0, 10.0 + shape.columns) ** -1.1
    most = MOST_POPULAR * shape.rows
    low, high = 0.0, float(shape.nonzeros) / popularity[-1]
    for _ in range(100):
        scale = (low + high) / 2
        too_many = np.clip(popularity * scale, 1.0, most).sum() > shape.nonzeros
        low, high = (low, scale) if too_many else (scale, high)
    expected = np.clip(popularity * high, 1.0, most)
    expected += rng.random(shape.columns)
    return np.minimum(expected, most).astype(np.int64)


@njit(cache=True)
def fill_rows(starts, rows, n, seed):
    """Sorted distinct row numbers for each column, from random gaps."""
    np.random.seed(seed)
    reached = np.empty(np.max(np.diff(starts)))
    for j in range(len(starts) - 1):
        first = starts[j]
        count = starts[j + 1] - first
        total = 0.0
        for k in range(count):
            total -= np.log(1.0 - np.random.random())
            reached[k] = total
        total -= np.log(1.0 - np.random.random())
        scale = (n - count + 1) / total
        for k in range(count):
            rows[first + k] = min(int(reached[k] * scale), n - count) + k


@njit(cache=True)
def fill_text_values(values, median, spread, seed):
    """Log-normal values, clipped at 1."""
    np.random.seed(seed)
    for k in range(len(values)):
        values[k] = min(median * np.exp(spread * np.random.standard_normal()), 1.0)


def margins(x: sparse.csc_array, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """x @ theta for a theta with few non-zeros, reading their columns alone."""
    out = np.zeros(x.shape[0])
    for j, value in zip(columns, values, strict=True):
        entries = slice(x.indptr[j], x.indptr[j + 1])
        out[x.indices[entries]] += value * x.data[entries].astype(np.float64)
    return out


def one_pass(x: sparse.csc_array, r: np.ndarray) -> np.ndarray:
    """X' r in one thread: the unit that fits are measured in."""
    return _one_pass(x.indptr, x.indices, x.data, r)


@njit(cache=True)
def _one_pass(starts, rows, values, r):
    """Two sums at a time and indices without sign: the fastest of the loops that were tried.

    Loops that the compiler makes into vector gathers (`fastmath`) take up to four times as long.
    """
    out = np.empty(len(starts) - 1)
    one, two = np.uint64(1), np.uint64(2)
    for j in range(len(out)):
        even = odd = 0.0
        k, end = np.uint64(starts[j]), np.uint64(starts[j + 1])
        while k + one < end:
            even += values[k] * r[np.uint32(rows[k])]
            odd += values[k + one] * r[np.uint32(rows[k + one])]
            k += two
        if k < end:
            even += values[k] * r[np.uint32(rows[k])]
        out[j] = even + odd
    return out


def check_columns(shape: Shape, starts: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """Rows sorted and distinct within their columns, sizes and values as promised."""
    within = np.ones(len(rows), dtype=bool)
    within[starts[:-1]] = False  # no column is empty
    assert np.all(np.diff(starts) >= 1)
    assert np.all(np.diff(rows, prepend=0)[within] > 0)
    assert rows.min() >= 0
    assert rows.max() < shape.rows
    assert np.diff(starts).max() <= MOST_POPULAR * shape.rows
    assert abs(len(rows) / shape.nonzeros - 1) < 0.02
    assert values.min() > 0
    assert values.max() == 1


def main() -> None:
    for shape in SHAPES.values():
        small = replace(shape, rows=shape.rows // 20, columns=shape.columns // 20)
        x, by_rank = make_x(small, check=True)
        assert x.indices.dtype == np.int32
        assert x.data.dtype == np.float32
        y = make_y(x, by_rank, "squared")
        r = np.random.default_rng(0).standard_normal(small.rows)
        assert np.allclose(one_pass(x, r), x.T @ r)
        assert np.allclose(margins(x, by_rank[:3], np.ones(3)), x[:, by_rank[:3]].sum(axis=1))
        print(
            f"{shape.name}: {x.nnz:,} non-zeros in {x.shape}, largest column "
            f"{np.diff(x.indptr).max():,}, standard deviation of y {y.std():.2f}"
        )


if __name__ == "__main__":
    main()
