"""Sparse rows, column by column: what the scores of single columns are computed from."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from riata.grid import BLOCK_ROWS, X_STEPS, pieces, slices

#: What goes with a look at a column takes about as long as to read so many entries.
_LOOK = 4_000

#: More than what rounding takes from a sum, relative to one and for each of its terms.
ROUNDED, EACH = 2.0**-30, 2.0**-51


class SparseColumns:
    """Sparse rows on the grid, column by column, with entries clipped at `most` steps."""

    def __init__(self, x: Any, most: int = X_STEPS) -> None:
        self._given, self._most = x, most
        self.shape = x.shape
        self._rounded_up = 1 + ROUNDED + x.shape[0] * EACH

    @cached_property
    def _x(self) -> Any:
        """The columns: made when the first is asked for, as a plain product needs none."""
        return sparse.csc_array(self._given)  # with its rows in order

    @cached_property
    def counts(self) -> np.ndarray:
        """How many entries each column has."""
        if self._given.format == "csc":
            return np.diff(self._given.indptr)
        total, columns = np.zeros(self.shape[1], dtype=np.int64), self._given.indices
        for few in slices(len(columns), max(BLOCK_ROWS, 4 * len(total))):
            total += np.bincount(columns[few], minlength=len(total))
        return total

    def clipped(self, most: int) -> SparseColumns:
        """The same columns with entries clipped at `most` steps."""
        return self if most == self._most else SparseColumns(self._x, most)

    def entries(self, column: int) -> tuple[Any, np.ndarray]:
        """Which rows have entries in a column, and the entries."""
        part = slice(self._x.indptr[column], self._x.indptr[column + 1])
        return self._x.indices[part], self._clip(self._x.data[part])

    def _clip(self, entries: np.ndarray) -> np.ndarray:
        return entries if self._most == X_STEPS else np.clip(entries, -self._most, self._most)

    def rows_of(self, columns: np.ndarray, most: int) -> Any:
        """All rows of some columns, row by row, clipped at `most` steps: a copy.

        In 32 bits, which hold all whole numbers of the grid.
        """
        given, total = sparse.csr_array(self._given), int(self.counts[columns].sum())
        places = np.full(self.shape[1], -1, dtype=np.int32)
        places[columns] = np.arange(len(columns), dtype=np.int32)
        indices, entries = np.empty(total, dtype=np.int32), np.empty(total, dtype=np.float32)
        ends = np.zeros(len(given.indptr), dtype=given.indptr.dtype)
        for few, rows in pieces(given):
            found = places[rows.indices]
            kept = found >= 0
            before = np.concatenate([[0], np.cumsum(kept)]) + ends[few.start]
            ends[few.start : few.stop + 1] = before[rows.indptr]
            part = slice(before[0], before[-1])
            indices[part] = found[kept]
            np.clip(rows.data[kept], -most, most, out=entries[part])
        return sparse.csr_array((entries, indices, ends), shape=(self.shape[0], len(columns)))

    def entries_between(self, column: int, start: int, stop: int) -> tuple[Any, np.ndarray]:
        """Which of some consecutive rows have entries in a column, and the entries."""
        rows, entries = self.entries(column)
        if start > 0 or stop < self.shape[0]:
            # In the type of the rows, which would be copied to another one.
            first, last = np.searchsorted(rows, np.array([start, stop], dtype=rows.dtype))
            rows, entries = rows[first:last] - start, entries[first:last]
        return rows, entries

    def work(self, column: int) -> int:
        """How many entries a column has."""
        return int(self.counts[column])

    def work_of(self, columns: np.ndarray) -> int:
        """How many entries could be read in the time that these columns take, one by one.

        Or fewer, if these are more than all entries: then nobody need count.
        """
        looks = _LOOK * len(columns)
        return looks if looks > self.size or not looks else int(self.counts[columns].sum()) + looks

    @property
    def size(self) -> int:
        """How many entries all columns have."""
        return int(self._given.nnz)

    def sum(self, column: int, slopes: np.ndarray) -> int:
        """The sum of entry * slope over the rows, exactly."""
        rows, entries = self.entries(column)
        found = slopes[rows]
        # Not by BLAS: its threads cost more than they gain. Exact in any order.
        return sum(
            int(np.einsum("i,i->", entries[i : i + BLOCK_ROWS], found[i : i + BLOCK_ROWS]))
            for i in range(0, len(entries), BLOCK_ROWS)
        )

    def sums(self, slopes: np.ndarray) -> np.ndarray:
        """The same for all columns, up to rounding."""
        x = self._x if self._most == X_STEPS else self._with(self._clip(self._x.data))
        return x.T @ slopes

    def rough_sums(self, slopes: np.ndarray) -> np.ndarray:
        """The same, off by no more than `roughness` for each step of a slope."""
        return self.sums(slopes)

    def rough_sum(self, column: int, slopes: np.ndarray) -> float | None:
        """One of them, if it can be had quicker than the exact sum."""
        return None

    #: Sparse columns know nothing quicker than their sums.
    roughness = 0.0

    @cached_property
    def lengths(self) -> np.ndarray:
        """The Euclidean length of each column, or a little more."""
        squares = np.square(self._clip(self._x.data))
        return np.sqrt(self._with(squares).T @ np.ones(self.shape[0])) * self._rounded_up

    @cached_property
    def sizes(self) -> np.ndarray:
        """The sum of the sizes of each column's entries, or a little more."""
        sizes = np.abs(self._clip(self._x.data))
        return self._with(sizes).T @ np.ones(self.shape[0]) * self._rounded_up

    def _with(self, entries: np.ndarray) -> Any:
        """Other entries at the same places."""
        return sparse.csc_array((entries, self._x.indices, self._x.indptr), shape=self.shape)
