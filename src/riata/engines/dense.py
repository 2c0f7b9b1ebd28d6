"""Dense rows that stay where they are, and are put on the grid a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from riata.bounds import ENTRIES_AT_ONCE, Bounds
from riata.grid import BLOCK_ROWS, X_STEPS

#: So many threads work on pieces of the rows.
THREADS = 2

#: From so many entries on threads are worth their start.
_WORTH_THREADS = 2**20

#: A column that lies scattered in memory costs as much as so many that are read on the way.
_SCATTERED = 25

#: Columns that were read are kept, up to this part of all and at least so many.
_PART_KEPT, _LEAST_KEPT = 0.02, 16

#: Coefficients on fewer than one in so many columns are multiplied column by column.
_FEW = 64

#: More than what rounding takes from a sum, relative to one and for each of its terms.
_ROUNDED, _EACH = 2.0**-30, 2.0**-51


def slices(size: int, step: int) -> list[slice]:
    """All of 0, ..., size - 1, so many at a time."""
    return [slice(i, min(i + step, size)) for i in range(0, size, step)]


class DenseRows:
    """The caller's array, as if all of it were on the grid. Nothing is written to it.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_features)
    bounds : Bounds or None
        What the rows are clipped to, or None if they are on the grid already.
    """

    def __init__(self, x: np.ndarray, bounds: Bounds | None = None) -> None:
        self._x, self._bounds = x, bounds
        self.shape = x.shape
        self._by_columns = x.flags.f_contiguous and not x.flags.c_contiguous
        self._columns: dict[int, np.ndarray] = {}
        self.just_read: int | None = None
        self._most_kept = max(_LEAST_KEPT, int(_PART_KEPT * x.shape[1]))

    @property
    def scattered(self) -> bool:
        """Whether the entries of a column lie far from each other."""
        return not self._by_columns and self.shape[1] > 1

    def part(self, rows: slice) -> DenseRows:
        """Some of the rows."""
        return DenseRows(self._x[rows], self._bounds)

    def whole(self) -> np.ndarray:
        """All rows on the grid, as a copy."""
        return self._x if self._bounds is None else self._bounds.grid_x(self._x)

    def rows(self, few: slice, buffer: np.ndarray) -> np.ndarray:
        """Some rows on the grid, in the buffer if they are not there already."""
        if self._bounds is None:
            return self._x[few]
        out = buffer[: few.stop - few.start]
        step = max(1, ENTRIES_AT_ONCE // max(self.shape[1], 1))
        for piece in slices(len(out), step):
            of_x = slice(few.start + piece.start, few.start + piece.stop)
            self._grid(of_x, slice(None), out[piece])
        return out

    def columns(self, few: slice, buffer: np.ndarray) -> np.ndarray:
        """The same for some columns."""
        if self._bounds is None:
            return self._x[:, few]
        return self._grid(slice(None), few, buffer[:, : few.stop - few.start])

    def column(self, column: int) -> np.ndarray:
        """One column on the grid. Not to be written to."""
        if self._bounds is None and not self.scattered:
            return self._x[:, column]
        found = self._columns.pop(column, None)
        self.just_read = column if found is None else None
        if found is None:
            found = np.empty(self.shape[0])
            if self._bounds is None:
                found[:] = self._x[:, column]
            else:
                one = slice(column, column + 1)
                self._grid(slice(None), one, found[:, None])
            while len(self._columns) >= self._most_kept:
                del self._columns[next(iter(self._columns))]  # the one not asked for longest
        self._columns[column] = found
        return found

    def knows(self, column: int) -> bool:
        """Whether a column was read before and is kept."""
        return column in self._columns

    def _grid(self, rows: slice, columns: slice, out: np.ndarray) -> np.ndarray:
        assert self._bounds is not None
        x, shrinks = self._x[rows, columns], self._shrinks
        limit = self._bounds.x if np.ndim(self._bounds.x) == 0 else self._bounds.x[columns]
        return self._bounds.grid_entries(x, None if shrinks is None else shrinks[rows], limit, out)

    @cached_property
    def _shrinks(self) -> np.ndarray | None:
        """What each row is multiplied by: the same for all of its entries."""
        if self._bounds is None or self._bounds.norm != "l2":
            return None
        found = np.empty((self.shape[0], 1))
        for few in slices(self.shape[0], max(1, ENTRIES_AT_ONCE // max(self.shape[1], 1))):
            found[few] = self._bounds.shrinks(self._x[few])
        return found

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        """The product with a vector of whole numbers, exact if its terms allow it."""
        out = np.zeros(self.shape[0])
        support = np.flatnonzero(v)
        if _FEW * len(support) < len(v):
            for column in support:
                out += self.column(int(column)) * v[column]
            return out

        def fill(few: slice, rows: np.ndarray) -> None:
            out[few] = rows @ v

        self.each(fill)
        return out

    def each(self, work: Callable[[slice, np.ndarray], Any], entries: int = ENTRIES_AT_ONCE) -> Any:
        """`work` for a few rows at a time, with about so many entries, in threads; the sum."""
        size = min(max(1, entries // max(self.shape[1], 1)), BLOCK_ROWS)
        return _in_threads(
            lambda: np.empty((min(size, self.shape[0]), self.shape[1])),
            lambda few, buffer: work(few, self.rows(few, buffer)),
            slices(self.shape[0], size),
            self._threads,
        )

    def each_column(self, work: Callable[[slice, np.ndarray], Any]) -> None:
        """`work` for a few columns at a time, in threads."""
        size = max(1, ENTRIES_AT_ONCE // max(self.shape[0], 1))
        _in_threads(
            lambda: np.empty((self.shape[0], min(size, self.shape[1])), order="F"),
            lambda few, buffer: work(few, self.columns(few, buffer)),
            slices(self.shape[1], size),
            self._threads,
        )

    def sums(self, of_rows: Callable[[slice, np.ndarray], np.ndarray]) -> np.ndarray:
        """The sum over all rows of an array with one entry for each column, up to rounding."""
        if not self._by_columns:
            return self.each(of_rows)
        out = np.empty(self.shape[1])

        def fill(few: slice, columns: np.ndarray) -> None:
            out[few] = of_rows(slice(None), columns)

        self.each_column(fill)
        return out

    @property
    def _threads(self) -> int:
        return THREADS if self.shape[0] * self.shape[1] >= _WORTH_THREADS else 1


def _in_threads(
    make: Callable[[], np.ndarray],
    work: Callable[[slice, np.ndarray], Any],
    pieces: list[slice],
    threads: int,
) -> Any:
    """`work` on every piece, and the sum of what it finds; each thread makes one buffer."""

    def some(mine: list[slice]) -> Any:
        buffer, total = make(), None
        for piece in mine:
            found = work(piece, buffer)
            if total is None:
                total = found
            elif found is not None:
                total += found
        return total

    threads = min(threads, len(pieces))
    if threads <= 1:
        return some(pieces)
    ends = [len(pieces) * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        parts = [pool.submit(some, pieces[a:b]) for a, b in pairwise(ends)]
        found = [part.result() for part in parts]
    return None if found[0] is None else sum(found[1:], found[0])


class DenseColumns:
    """Dense rows, column by column, with entries cut at `most` steps.

    Parameters
    ----------
    rows : DenseRows
    most : int, default=X_STEPS
    """

    def __init__(self, rows: DenseRows, most: int = X_STEPS) -> None:
        self._rows, self._most, self.shape = rows, most, rows.shape
        self._rounded_up = 1 + _ROUNDED + rows.shape[0] * _EACH

    def entries(self, column: int) -> tuple[Any, np.ndarray]:
        """Which rows have entries in a column, and the entries."""
        return slice(None), self._cut(self._rows.column(column))

    def work(self, column: int) -> int:
        """How many entries could be read in the time that the last look at a column took."""
        if self._rows.scattered and self._rows.just_read == column:
            return _SCATTERED * self.shape[0]
        return self.shape[0]

    @property
    def size(self) -> int:
        """How many entries all columns have."""
        return self.shape[0] * self.shape[1]

    def sum(self, column: int, slopes: np.ndarray) -> int:
        """The sum of entry * slope over the rows, exactly."""
        _, entries = self.entries(column)
        # Not by BLAS: its threads cost more than they gain. Exact in any order.
        return sum(
            int(np.einsum("i,i->", entries[few], slopes[few]))
            for few in slices(len(entries), BLOCK_ROWS)
        )

    def sums(self, slopes: np.ndarray) -> np.ndarray:
        """The same for all columns, up to rounding."""
        return self._rows.sums(lambda few, rows: slopes[few] @ self._cut(rows))

    @cached_property
    def lengths(self) -> np.ndarray:
        """The Euclidean length of each column, or a little more."""

        def squares(few: slice, rows: np.ndarray) -> np.ndarray:
            rows = self._cut(rows)
            return np.einsum("ij,ij->j", rows, rows)

        return np.sqrt(self._rows.sums(squares)) * self._rounded_up

    @cached_property
    def sizes(self) -> np.ndarray:
        """No less than the sum of the sizes of each column's entries: by its length."""
        return self.lengths * (self.shape[0] ** 0.5 * self._rounded_up)

    def _cut(self, rows: np.ndarray) -> np.ndarray:
        if self._most == X_STEPS:
            return rows
        return np.clip(rows, -float(self._most), float(self._most))
