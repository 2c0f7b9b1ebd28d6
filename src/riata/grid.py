"""The integers that sums over rows are made of.

Rows and slopes are put on fixed public grids, so that what a row adds to a sum is an integer of
known size. Integers up to 2^53 are exact in float64, so a sum of them depends neither on the order
of the rows nor on threads, BLAS or shards. Proofs are in docs/privacy/exact_sums.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

#: Changes whenever a release may be another one for the same rows, plan and noise.
ARITHMETIC = 5

#: An entry of a row is a whole number of steps, at most this many in size.
X_STEPS = 2**16

#: So is the slope of the loss at a row: at most `slope_steps(n_rows)` steps, never more than this.
MOST_SLOPE_STEPS = 2**20

#: The coefficients of a query, taken together, are about this many steps. Below a total that is
#: hardly a number any more, they count as 0.
THETA_STEPS, _SMALLEST_TOTAL = 2**35, 2.0**-960

#: So many rows can be summed in float64 without rounding.
BLOCK_ROWS = 2**53 // (X_STEPS * MOST_SLOPE_STEPS)

#: Sums over all rows stay below this, with room for one more bit in 64-bit integers.
MOST_TOTAL = 2**62

#: And so many rows in 64-bit integers: then slopes still have as many steps as entries.
MOST_ROWS = MOST_TOTAL // X_STEPS**2

#: The squared length of a row of so many columns is exact too.
MOST_COLUMNS = MOST_TOTAL // X_STEPS**2

#: More than what a handful of roundings can make of the number 1, and less than that.
ROUNDED_UP, ROUNDED_DOWN = 1 + 2.0**-40, 1 - 2.0**-40


def slope_steps(n_rows: int) -> int:
    """How many steps the largest slope has: as many as sums over so many rows have room for."""
    room = max(MOST_TOTAL // (X_STEPS * n_rows), X_STEPS)
    return int(min(MOST_SLOPE_STEPS, 1 << (room.bit_length() - 1)))


def to_steps(values: np.ndarray, limit: float | np.ndarray, most: int) -> np.ndarray:
    """`values` of size up to `limit` as integers up to `most`; NaN becomes `most`."""
    steps = values * (most / limit)
    np.rint(steps, out=steps)
    np.fmin(steps, most, out=steps)  # not clip: NaN must not get through
    np.fmax(steps, -most, out=steps)
    return steps


def coefficient_steps(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Integers whose sizes sum to about `THETA_STEPS`, and the step that they count."""
    step = float(coefficient_step(np.abs(values).sum()))
    return np.rint(values / step), step


def coefficient_step(total: Any) -> Any:
    """The step of coefficients whose sizes sum to `total`: a power of two, about one in 2^35."""
    ordinary = total > _SMALLEST_TOTAL
    return np.where(ordinary, np.ldexp(1.0, np.frexp(total)[1]) / THETA_STEPS, 1.0)


#: What is made of rows entry by entry is made of about so many at a time, to stay in the cache.
_ENTRIES_AT_ONCE = 2**17


def slices(size: int, step: int) -> list[slice]:
    """All of 0, ..., size - 1, so many at a time."""
    return [slice(i, min(i + step, size)) for i in range(0, size, step)]


def some_rows(x: Any, start: int, stop: int) -> Any:
    """Consecutive rows, a view of their entries. Sparse ones in CSR format."""
    if not sparse.issparse(x):
        return x[start:stop]
    indptr = x.indptr[start : stop + 1]
    few = slice(indptr[0], indptr[-1])
    shape = (len(indptr) - 1, x.shape[1])
    return _viewed(sparse.csr_array, shape, x.data[few], x.indices[few], indptr - indptr[0])


def transposed(x: Any) -> Any:
    """Rows as columns, a view of their entries. Sparse ones in CSR format."""
    if not sparse.issparse(x):
        return x.T
    return _viewed(sparse.csc_array, x.shape[::-1], x.data, x.indices, x.indptr)


def with_entries(x: Any, entries: np.ndarray) -> Any:
    """Sparse rows in CSR format with other entries at the same places."""
    return _viewed(sparse.csr_array, x.shape, entries, x.indices, x.indptr)


def _viewed(kind: Any, shape: Any, data: Any, indices: Any, indptr: Any) -> Any:
    """Not by the constructor, which copies what is less than half of an array."""
    found = kind(shape, dtype=data.dtype)
    found.data, found.indices, found.indptr = data, indices, indptr
    return found


def pieces(x: Any, entries: int = _ENTRIES_AT_ONCE) -> Iterator[tuple[slice, Any]]:
    """Rows, with about so many entries at a time, and which ones these are."""
    for few in slices(x.shape[0], max(1, entries * x.shape[0] // max(x.size, 1))):
        yield few, some_rows(x, few.start, few.stop)


def squared_lengths(x: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """The sum of weight * entry^2 over each row on the grid: exact integers, in any order.

    Parameters
    ----------
    x : ndarray or scipy sparse of shape (n_rows, n_features)
        Rows on the grid, with at most `MOST_COLUMNS`. Sparse ones in CSR format.
    weights : ndarray of int64 of shape (n_features,), optional
        At most 2^30 together; 1 if left out.
    """
    check_columns(x, MOST_COLUMNS)
    total = np.empty(x.shape[0], dtype=np.int64)
    for few, rows in pieces(x):
        total[few] = _squared_lengths(rows, weights)
    return total


def _squared_lengths(x: Any, weights: np.ndarray | None) -> np.ndarray:
    in_floats = weights is None and x.shape[1] <= _EXACT_COLUMNS
    if not sparse.issparse(x):
        if in_floats:
            return np.asarray(np.einsum("ij,ij->i", x, x))
        steps = x.astype(np.int64)
        terms = steps * steps if weights is None else steps * steps * weights
        return np.asarray(terms.sum(axis=1))
    if in_floats:
        return row_sums(np.square(x.data, dtype=np.float64), x.indptr)
    steps = x.data.astype(np.int64)
    terms = steps * steps if weights is None else steps * steps * weights[x.indices]
    return row_sums(terms, x.indptr)


def check_columns(x: Any, most: int) -> None:
    """Raise unless a sum over one row fits an integer: for callers that did not check before."""
    if x.shape[1] > most:
        raise ValueError(
            f"Rows of {x.shape[1]:,} columns: sums over a row are exact up to {most:,}."
        )


#: float64 adds so many squares of entries without rounding.
_EXACT_COLUMNS = 2**53 // X_STEPS**2


def row_sums(terms: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """The sum of the integers of each row, of rows that begin and end at `indptr`."""
    total, full = np.zeros(len(indptr) - 1, dtype=np.int64), np.diff(indptr) > 0
    if full.any():
        total[full] = np.add.reduceat(terms, indptr[:-1][full])
    return total


def canonical_rows(x: Any) -> sparse.csr_array:
    """A copy of sparse rows with one entry for each place, or two of them would escape clipping.

    Nothing is shared with `x`: places that the caller changed later would escape it as well.
    Entries that share a place are added row by row and in float64: sorted by columns, the order of
    a row's duplicates could depend on other rows.
    """
    with np.errstate(all="ignore"):  # of numbers too large for float64
        if x.format == "coo":  # which would be added as they are
            x = sparse.coo_array((x.data.astype(np.float64), x.coords), shape=x.shape)
        if x.format == "csr":
            parts = (x.data.astype(np.float64), x.indices.copy(), x.indptr.copy())
            rows = sparse.csr_array(parts, shape=x.shape)
            if rows.has_canonical_format:  # found out here: what x says of itself may be old
                return rows
        rows = sparse.csr_array(x, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    return rows
