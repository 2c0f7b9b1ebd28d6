"""Dense rows that stay where they are, and are put on the grid a few at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from riata.bounds import ENTRIES_AT_ONCE, Bounds
from riata.engines.columns import EACH, ROUNDED
from riata.engines.threads import in_threads
from riata.grid import BLOCK_ROWS, X_STEPS, slices

#: So many threads work on pieces of the rows.
THREADS = 2

#: From so many entries on threads are worth their start.
_WORTH_THREADS = 2**20

#: A column that lies scattered in memory costs as much as so many that are read on the way. And
#: what goes with a look at a column takes as long as to read so many entries.
_SCATTERED, _LOOK = 25, 100_000

#: Products with kept rows are made of so many entries at a time, widened to 64 bits.
_PRODUCT = 2**17

#: Entries that need no clipping are summed as they are, about so many at a time.
ENTRIES_AS_THEY_ARE = 2**18

#: Columns that were read are kept, up to this part of all and at least so many.
_PART_KEPT, _LEAST_KEPT = 0.02, 16

#: Coefficients on fewer than one in so many columns are multiplied column by column.
_FEW = 64

#: What is made of some rows: of the entries, which rows they are, and what a step is.
OfRows = Callable[[np.ndarray, slice, Any], np.ndarray]


class DenseRows:
    """The caller's array, as if all of it were on the grid: it is, if there are no `bounds`.

    Nothing is written to it. Copies are made when they are asked for: of all rows on the grid, and
    of the rows with clipped entries.
    """

    def __init__(self, x: np.ndarray, bounds: Bounds | None = None) -> None:
        self._x, self._bounds = x, bounds
        self.shape = x.shape
        self._by_columns = x.flags.f_contiguous and not x.flags.c_contiguous
        self._columns: dict[int, np.ndarray] = {}
        self.just_read: int | None = None
        self._inside: dict[int, bool] = {}
        self._as_given = np.zeros(x.shape[1], dtype=bool)  # columns that are known to be tame
        self._most_kept = max(_LEAST_KEPT, int(_PART_KEPT * x.shape[1]))
        self._clipped: tuple[int, np.ndarray] | None = None

    @cached_property
    def kept(self) -> np.ndarray:
        """All rows on the grid, in 32 bits where it is a copy: they hold these whole numbers."""
        if self._bounds is None:
            return self._x
        bounds, copy = self._bounds, np.empty(self.shape, np.float32)

        def fill(few: slice, buffer: np.ndarray) -> None:
            copy[few] = bounds.grid_rows(self._x[few], buffer[: few.stop - few.start])

        self._in_pieces(fill)
        return copy

    @property
    def is_kept(self) -> bool:
        """Whether all rows are there on the grid."""
        return self._bounds is None or "kept" in self.__dict__

    def clipped(self, most: int) -> np.ndarray:
        """All rows on the grid with entries clipped at `most` steps, until it is another one.

        In the narrowest type that holds them.
        """
        if most >= X_STEPS:
            return self.kept
        if self._clipped is None or self._clipped[0] != most:
            self._clipped = None  # not two at a time
            copy = np.empty(self.shape, np.int16 if most < 2**15 else np.float32)

            def fill(few: slice, rows: np.ndarray) -> None:
                copy[few] = np.clip(rows, -most, most)

            self.each(fill)
            self._clipped = most, copy
        return self._clipped[1]

    @property
    def scattered(self) -> bool:
        """Whether the entries of a column lie far from each other."""
        return not self._by_columns and self.shape[1] > 1

    def rows(self, few: slice, buffer: np.ndarray) -> np.ndarray:
        """Some rows on the grid, in the buffer if they are not there already."""
        if self._bounds is None:
            return self._x[few].astype(np.float64, copy=False)
        out = buffer[: few.stop - few.start]
        if self.is_kept:
            out[...] = self.kept[few]
            return out
        step = max(1, ENTRIES_AT_ONCE // max(self.shape[1], 1))
        for piece in slices(len(out), step):
            of_x = slice(few.start + piece.start, few.start + piece.stop)
            self._bounds.grid_rows(self._x[of_x], out[piece])
        return out

    def columns(self, few: slice, buffer: np.ndarray) -> np.ndarray:
        """The same for some columns."""
        if self._bounds is None:
            return self._x[:, few].astype(np.float64, copy=False)
        return self._grid(slice(None), few, buffer[:, : few.stop - few.start])

    def column(self, column: int) -> np.ndarray:
        """One column on the grid. Not to be written to."""
        if self._bounds is None and not self.scattered:
            return self._x[:, column].astype(np.float64, copy=False)
        found = self._columns.pop(column, None)
        self.just_read = column if found is None else None
        if found is None:
            x = self.kept if self.is_kept else self._x
            found = x[:, column].astype(np.float64)  # at once: the entries lie far apart
            if not self.is_kept:
                assert self._bounds is not None
                shrinks = None if self._shrinks is None else self._shrinks[:, 0]
                limit = self._bounds.of_columns(column)
                self._bounds.grid_entries(found, shrinks, limit, found)
            while len(self._columns) >= self._most_kept:
                del self._columns[next(iter(self._columns))]  # the one not asked for longest
        self._columns[column] = found
        return found

    def at_hand(self, column: int) -> bool:
        """Whether a column was read before, and kept."""
        return column in self._columns

    def as_given(self, column: int) -> np.ndarray | None:
        """One column off the grid, as the caller gave it, if nothing in it is to be clipped."""
        if not self._as_given[column] or column in self._columns:
            return None
        self.just_read = column
        return self._x[:, column]

    def steps_of(self, column: int) -> float:
        """How many steps of the grid make 1 in a column."""
        assert self._bounds is not None
        return X_STEPS / float(self._bounds.of_columns(column))

    def _grid(self, rows: slice, columns: slice, out: np.ndarray) -> np.ndarray:
        assert self._bounds is not None
        x, shrinks = self._x[rows, columns], self._shrinks
        limit = self._bounds.x if np.ndim(self._bounds.x) == 0 else self._bounds.x[columns]
        return self._bounds.grid_entries(x, None if shrinks is None else shrinks[rows], limit, out)

    @cached_property
    def _shrinks(self) -> np.ndarray | None:
        """What each row is multiplied by: the same for all of its entries."""
        if self._bounds is None or not self._bounds.shortens:
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
        if self._bounds is None:
            return self._x @ v

        def fill(few: slice, rows: np.ndarray) -> None:
            out[few] = rows @ v

        self.each(fill, _PRODUCT)
        return out

    def each(self, work: Callable[[slice, np.ndarray], Any], entries: int | None = None) -> Any:
        """`work` for a few rows at a time, with about so many entries, in threads; the sum."""
        return self._in_pieces(lambda few, buffer: work(few, self.rows(few, buffer)), entries)

    def sums(self, of_rows: OfRows, shape: tuple[int, ...] = ()) -> np.ndarray:
        """The sum over all rows of an array with one entry for each column, up to rounding.

        `of_rows` is called with some rows on the grid, which ones these are, and the number 1. It
        may return several such arrays, of a `shape`.
        """
        return self._sums(of_rows, (*shape, self.shape[1]))

    def rough_sums(self, of_rows: OfRows, degree: Any) -> np.ndarray:
        """The same with entries that are off the grid by up to half a step, which is quicker.

        Where nothing is to be clipped `of_rows` is called with the caller's entries as they are,
        and with what a step is. It must be homogeneous in the entries, of a `degree`, or with a
        column of degrees each of the arrays that it returns.
        """
        if not self.rough:
            return self.sums(of_rows, np.shape(degree)[:-1])
        assert self._bounds is not None
        limits = self._bounds.per_column(self.shape[1])
        units, powers = limits / X_STEPS, (X_STEPS / limits) ** degree

        def as_given(few: slice) -> np.ndarray | None:
            rows, columns = (slice(None), few) if self._by_columns else (few, slice(None))
            piece = self._x[rows, columns]
            if not self._is_inside(piece, limits[columns], few.start):
                return None
            if self._by_columns:
                self._as_given[few] = True
            return of_rows(piece, rows, units[columns]) * powers[..., columns]

        total = self._sums(of_rows, powers.shape, as_given)
        if not self._by_columns:
            self._as_given[:] = all(self._inside.values())
        return total

    def _sums(
        self,
        of_rows: OfRows,
        shape: tuple[int, ...],
        as_given: Callable[[slice], np.ndarray | None] | None = None,
    ) -> np.ndarray:
        """The sum of what `as_given` finds of a piece, if it does, and else of `of_rows`."""
        out = np.empty(shape if self._by_columns else 0)

        def some(few: slice, buffer: np.ndarray) -> np.ndarray | None:
            found = None if as_given is None else as_given(few)
            if not self._by_columns:
                return of_rows(self.rows(few, buffer), few, 1.0) if found is None else found
            if found is None:
                found = of_rows(self.columns(few, buffer), slice(None), 1.0)
            out[..., few] = found
            return None

        entries = None if as_given is None else ENTRIES_AS_THEY_ARE
        total: np.ndarray = self._in_pieces(some, entries, columns=self._by_columns)
        return out if self._by_columns else total

    @property
    def rough(self) -> bool:
        """Whether rough sums are quicker."""
        return (
            self._bounds is not None
            and not self._bounds.shortens
            and self._x.dtype == np.float64
            and (self._x.flags.c_contiguous or self._x.flags.f_contiguous)
        )

    def _is_inside(self, piece: np.ndarray, limits: np.ndarray, start: int) -> bool:
        """Whether no entry of a piece is to be clipped: found out once."""
        found = self._inside.get(start)
        if found is None:
            assert self._bounds is not None
            axis = None if np.ndim(self._bounds.x) == 0 else 0
            least, largest = piece.min(axis=axis), piece.max(axis=axis)
            limit = self._bounds.x if axis is None else limits
            low = 0.0 if self._bounds.nonnegative else -limit
            found = bool(np.all(least >= low) and np.all(largest <= limit))  # not if NaN
            self._inside[start] = found
        return found

    def _in_pieces(
        self,
        work: Callable[[slice, np.ndarray], Any],
        entries: int | None = None,
        columns: bool = False,
    ) -> Any:
        """`work` for a few rows or columns at a time, with a buffer for them; the sum."""
        n, p = self.shape
        most, width = (p, n) if columns else (n, p)
        size = min(max(1, (entries or ENTRIES_AT_ONCE) // max(width, 1)), max(most, 1))
        if not columns:
            size = min(size, BLOCK_ROWS)

        def buffer() -> np.ndarray:
            return np.empty((size, n)).T if columns else np.empty((size, p))

        threads = THREADS if n * p >= _WORTH_THREADS else 1
        return in_threads(buffer, work, slices(most, size), threads)


class DenseColumns:
    """Dense rows, column by column, with entries clipped at `most` steps: like `SparseColumns`."""

    def __init__(self, rows: DenseRows, most: int = X_STEPS) -> None:
        self._rows, self._most, self.shape = rows, most, rows.shape
        self._rounded_up = 1 + ROUNDED + rows.shape[0] * EACH

    def clipped(self, most: int) -> DenseColumns:
        return self if most == self._most else DenseColumns(self._rows, most)

    def entries(self, column: int) -> tuple[Any, np.ndarray]:
        return slice(None), self._clipped(self._rows.column(column))

    def entries_between(self, column: int, start: int, stop: int) -> tuple[Any, np.ndarray]:
        return slice(None), self.entries(column)[1][start:stop]

    def work(self, column: int) -> int:
        """How many entries could be read in the time that the last look at a column took."""
        read = self._rows.just_read == column
        return _LOOK + self.shape[0] * (_SCATTERED if read and self._rows.scattered else 2)

    def work_of(self, columns: np.ndarray) -> int:
        """The same for several columns, before they are looked at."""
        new = sum(not self._rows.at_hand(int(column)) for column in columns)
        entries = 2 * len(columns) + (_SCATTERED - 2) * new * self._rows.scattered
        return _LOOK * len(columns) + self.shape[0] * entries

    @property
    def size(self) -> int:
        """The same for a look at all columns."""
        return 2 * _LOOK + self.shape[0] * self.shape[1]

    def sum(self, column: int, slopes: np.ndarray) -> int:
        _, entries = self.entries(column)
        # Not by BLAS: its threads cost more than they gain. Exact in any order.
        return sum(
            int(np.einsum("i,i->", entries[few], slopes[few]))
            for few in slices(len(entries), BLOCK_ROWS)
        )

    def sums(self, slopes: np.ndarray) -> np.ndarray:
        return self._rows.sums(lambda rows, few, unit: slopes[few] @ self._clipped(rows, unit))

    def rough_sums(self, slopes: np.ndarray) -> np.ndarray:
        if "lengths" in self.__dict__:
            return self._rows.rough_sums(
                lambda rows, few, unit: slopes[few] @ self._clipped(rows, unit), degree=1
            )

        # The first time, lengths are found on the way.
        def both(rows: np.ndarray, few: slice, unit: Any) -> np.ndarray:
            rows = self._clipped(rows, unit)
            return np.stack([slopes[few] @ rows, np.einsum("ij,ij->j", rows, rows)])

        sums, squares = self._rows.rough_sums(both, degree=np.array([[1.0], [2.0]]))
        self.lengths = self._lengths_of(squares)
        return sums

    def rough_sum(self, column: int, slopes: np.ndarray) -> float | None:
        given = self._rows.as_given(column) if self._most == X_STEPS else None
        if given is None:
            return None
        return float(given @ slopes) * self._rows.steps_of(column)

    @property
    def roughness(self) -> float:
        """Half a step, and more than what rounding takes from sums of numbers off the grid."""
        return 0.5 + 2.0**-20 + self.shape[0] * 2.0**-34 if self._rows.rough else 0.0

    @cached_property
    def lengths(self) -> np.ndarray:
        def squares(rows: np.ndarray, few: slice, unit: Any) -> np.ndarray:
            rows = self._clipped(rows, unit)
            return np.einsum("ij,ij->j", rows, rows)

        return self._lengths_of(self._rows.rough_sums(squares, degree=2))

    def _lengths_of(self, squares: np.ndarray) -> np.ndarray:
        return (np.sqrt(squares) + self.roughness * self.shape[0] ** 0.5) * self._rounded_up

    @cached_property
    def sizes(self) -> np.ndarray:
        """No less than the sum of the sizes of each column's entries: by its length."""
        return self.lengths * (self.shape[0] ** 0.5 * self._rounded_up)

    def _clipped(self, rows: np.ndarray, unit: Any = 1.0) -> np.ndarray:
        if self._most == X_STEPS:
            return rows
        return np.clip(rows, -self._most * unit, self._most * unit)
