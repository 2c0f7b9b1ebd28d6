"""Some rows on the grid, as queries see them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.grid import X_STEPS, slices, some_rows, transposed, with_entries
from riata.queries.coefficients import Coefficients

#: Dense copies of some rows or columns have about this many entries at a time.
_ENTRIES_AT_ONCE = 2**20

#: A copy of rows with clipped entries has about this many of them at a time, to stay in the cache.
_CLIPPED_AT_ONCE = 2**17

#: Sparse rows are read twice for a gradient, about so many entries at a time, to stay in the
#: cache; and so many times the columns, as sums over a piece are numbers for all columns.
_ENTRIES_OF_A_PIECE, _PIECE_OF_COLUMNS = 2**20, 8


class Reads(Enum):
    """What a query reads of a block, beside the targets. An engine may have it at hand."""

    COLUMNS = "inner products with models, and the columns that it names"
    SUMS = "the same, and sums over the rows for all columns"
    ROWS = "whole rows"


class Block:
    """Some consecutive rows.

    Parameters
    ----------
    rows : ndarray or scipy sparse of shape (n_rows, n_features)
        On the grid. Sparse ones in CSR format.
    y : ndarray of shape (n_rows,)
    start : int, default=0
        The number of the first row among all rows.
    """

    def __init__(self, rows: Any, y: np.ndarray, start: int = 0) -> None:
        self._rows, self.y, self.start = rows, y, start
        self._once: dict[str, tuple[tuple[Any, ...], Any]] = {}
        self._pieces: list[Block] = []

    @cached_property
    def without_targets(self) -> Block:
        """The same rows, with nothing in memory that targets may have gone into."""
        alone = copy.copy(self)
        alone.y = None  # type: ignore[assignment]
        alone._once, alone._pieces = {}, []
        return alone

    @property
    def rows(self) -> Any:
        """All of them, on the grid."""
        return self._rows

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self._rows)

    def some_rows(self, few: slice) -> Any:
        """Consecutive rows: a few of them are there sooner than all."""
        return some_rows(self.rows, few.start, few.stop)

    @property
    def shape(self) -> tuple[int, int]:
        shape: tuple[int, int] = self.rows.shape
        return shape

    def inner(self, model: Coefficients) -> np.ndarray:
        """<x, theta> for each row. Not to be written to."""
        return model.inner(self.rows)

    def slopes(self, query: Any) -> np.ndarray:
        """The slope of a query's loss at the margin of each row. Not to be written to."""
        return np.asarray(query.loss.slope(query.margins(self), self.y))

    def in_pieces(self, sums: Callable[[Block], np.ndarray]) -> np.ndarray:
        """What a function adds up over rows, from sparse rows that stay in the cache meanwhile."""
        if not self._pieces:
            self._pieces = [self]
            if self.is_sparse:
                entries = max(_ENTRIES_OF_A_PIECE, _PIECE_OF_COLUMNS * self.shape[1])
                rows = max(1, entries * self.shape[0] // max(self.rows.size, 1))
                cut = slices(self.shape[0], rows)
                self._pieces = [self.piece(few) for few in cut] if len(cut) > 1 else [self]
        return reduce(np.add, map(sums, self._pieces))

    def piece(self, few: slice) -> Block:
        """Some consecutive rows of these."""
        rows = some_rows(self.rows, few.start, few.stop)
        return Block(rows, self.y[few], self.start + few.start)

    def columns(self, columns: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """Some columns of some rows, dense."""
        return self._of_rows(columns, self.rows[rows])

    def entries(self, column: int) -> tuple[Any, np.ndarray]:
        """Some rows, among them all with an entry in a column that is not 0, and their entries."""
        return slice(None), self.columns(np.array([column])).ravel()

    def _of_rows(self, columns: np.ndarray, found: Any) -> np.ndarray:
        if not np.array_equal(columns, np.arange(self.shape[1])):
            found = found[:, columns]
        return found.toarray() if sparse.issparse(found) else np.asarray(found)

    def some_columns(self, columns: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """The same for all rows, a few at a time, and which rows these are."""
        step = max(1, _ENTRIES_AT_ONCE // max(len(columns), 1))
        for start in range(0, self.shape[0], step):
            few = slice(start, start + step)
            yield few, self.columns(columns, few)

    def sums(
        self, weights: np.ndarray, most: int = X_STEPS, columns: np.ndarray | None = None
    ) -> np.ndarray:
        """The sum of entry * weight over the rows, for all columns or some.

        Entries are clipped at `most` steps.
        """
        if most >= X_STEPS and columns is None:
            return np.asarray(transposed(self.rows) @ weights)
        x = self.rows if columns is None else self.rows[:, columns]
        if most >= X_STEPS:
            return np.asarray(transposed(x) @ weights)
        if sparse.issparse(x):
            clipped = with_entries(x, np.clip(x.data, -most, most))
            return np.asarray(transposed(clipped) @ weights)
        n, p = x.shape
        step, total = max(1, _CLIPPED_AT_ONCE // p), np.zeros(p)
        buffer = np.empty((step, p))
        for start in range(0, n, step):
            few = x[start : start + step]
            clipped = np.clip(few, -most, most, out=buffer[: len(few)])
            total += weights[start : start + step] @ clipped
        return total

    def row_lengths(self, bounds: Bounds) -> np.ndarray:
        """The Euclidean length of each row, or a little more. Computed once: all steps ask."""

        def lengths(x: Any) -> np.ndarray:
            return np.sqrt(bounds.squared_lengths(x)) * (bounds.largest / X_STEPS)

        return np.asarray(self.once("lengths", (bounds,), lengths))

    def once(self, name: str, key: tuple[Any, ...], make: Callable[[Any], Any]) -> Any:
        """What `make` does with the rows, until the key changes: many steps ask for the same.

        The key has numbers, and public objects that are equal to themselves alone.
        """
        if self._once.get(name, ((), None))[0] != key:
            self._once.pop(name, None)  # not two at a time
            self._once[name] = key, make(self.rows)
        return self._once[name][1]

    def some(self, rows: np.ndarray) -> Block:
        """The rows at some places, as if they were all rows."""
        return Block(self.rows[rows], self.y[rows])
