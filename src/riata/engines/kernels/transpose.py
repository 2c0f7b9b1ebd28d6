"""From rows to columns, on the grid, by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from riata.engines.kernels.compiled import compiled
from riata.engines.kernels.snapshot import of, on_grid


@compiled
def count(indptr, indices, begin, end, counts):
    """How many entries each column has in some rows."""
    for e in range(indptr[begin], indptr[end]):
        counts[indices[e]] += 1


@compiled
def scatter(indptr, indices, data, units, lowest, begin, end, places, rows, entries):
    """Put the entries of some rows at their places."""
    for i in range(begin, end):
        for e in range(indptr[i], indptr[i + 1]):
            k = indices[e]
            place = places[k]
            places[k] = place + 1
            rows[place] = i
            entries[place] = on_grid(data[e], of(units, k), lowest)


def columns_of_rows(x: Any, units: np.ndarray, lowest: float, threads: int) -> tuple[Any, ...]:
    """`indptr`, `indices` and entries on the grid of the columns of a CSR array."""
    n, p = x.shape
    ends = [int(np.searchsorted(x.indptr, x.nnz * i / threads)) for i in range(threads + 1)]
    ends[0], ends[-1] = 0, n
    counts = [np.zeros(p, np.int64) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(
            pool.map(
                lambda i: count(x.indptr, x.indices, ends[i], ends[i + 1], counts[i]),
                range(threads),
            )
        )
        indptr = np.zeros(p + 1, np.int64)
        np.cumsum(sum(counts), out=indptr[1:])
        before = indptr[:-1].copy()
        for each in counts:  # from here on, where the next entry of a column goes
            before += each
            np.subtract(before, each, out=each)
        rows, entries = np.empty(x.nnz, np.int32), np.empty(x.nnz, np.float32)
        list(
            pool.map(
                lambda i: scatter(
                    x.indptr,
                    x.indices,
                    x.data,
                    units,
                    lowest,
                    ends[i],
                    ends[i + 1],
                    counts[i],
                    rows,
                    entries,
                ),
                range(threads),
            )
        )
    return indptr, rows, entries


@compiled
def _grid_columns(indptr, data, units, lowest, entries):
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            entries[e] = on_grid(data[e], of(units, k), lowest)


def on_grid_of_columns(indptr: Any, data: Any, units: np.ndarray, lowest: float) -> np.ndarray:
    """The entries of columns on the grid, which float32 holds without rounding."""
    entries = np.empty(len(data), np.float32)
    _grid_columns(indptr, data, units, lowest, entries)
    return entries
