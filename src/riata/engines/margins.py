"""The inner products of all rows with a model, brought up to date when it moves on few columns.

And rows for queries that read these, and columns that they name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from riata.engines.columns import SparseColumns
from riata.engines.dense import DenseColumns, DenseRows
from riata.grid import X_STEPS, pieces, some_rows
from riata.queries import Block
from riata.queries.coefficients import Coefficients

#: All rows.
_ALL = slice(None)

#: A move along more columns than this costs as much as to begin again.
_MOST_COLUMNS = 64

#: With at most one column in so many, columns are put on the grid one by one.
_FEW = 8

#: A model on so few of the entries is multiplied column by column.
_FEW_ENTRIES = 0.5


class Margins:
    """<x, theta> for every row: a function of the coefficients, whatever was asked before.

    The sums are of integers and exact, so to follow a move leads to the same bits as to begin
    again. `x` has the rows on the grid, and `columns` the same rows.
    """

    def __init__(self, x: Any, columns: SparseColumns) -> None:
        self._x, self._columns = x, columns
        self._at: Coefficients | None = None
        self._asked: tuple[Any, Any, Any] = None, None, None
        self._sums = self._inner = self._slopes = np.empty(0)
        # Which rows are known: sparse ones are multiplied when they are asked for, so that what is
        # done with their margins finds the rows in the cache.
        self._known = self._sloped = np.empty(0, dtype=bool)
        self.followed = False

    def of(self, query: Any) -> np.ndarray:
        """The margins at the query's theta, with its offset. Not to be written to.

        `followed` then says whether they came from those before by a move, or none.
        """
        inner, offset = self.inner(query.coefficients), query.theta.offset
        return inner + offset if offset else inner

    def inner(self, model: Coefficients, few: slice = _ALL, x: Any = None) -> np.ndarray:
        """The same without the offset, of some rows. `x` may have these."""
        if self._at is model:  # another block of the same query
            self.followed = True
        else:
            self._go_to(model)
        if not self._known[few].all():
            start, stop, _ = few.indices(len(self._known))
            self._sums[few] = model.steps_of(some_rows(self._x, start, stop) if x is None else x)
            self._inner[few] = model.in_units(self._sums[few])
            self._known[few] = True
        return self._inner if few == _ALL else self._inner[few]

    def slopes(self, query: Any, y: np.ndarray, few: slice, x: Any = None) -> np.ndarray:
        """The slopes of the query's loss at some rows, kept for other queries at this theta."""
        asked = query.loss, query.theta, query.coefficients
        if any(one is not other for one, other in zip(asked, self._asked, strict=True)):
            self._asked = asked
            self._slopes = np.empty(self._x.shape[0])
            self._sloped = np.zeros(self._x.shape[0], dtype=bool)
        if not self._sloped[few].all():
            margins = self.inner(query.coefficients, few, x) + query.theta.offset
            self._slopes[few] = query.loss.slope(margins, y)
            self._sloped[few] = True
        return self._slopes[few]

    def _go_to(self, model: Coefficients) -> None:
        before = self._at
        found = None if before is None else _moves(before, model)
        self.followed = found is not None and len(found[0]) <= _MOST_COLUMNS
        if before is not None and found is not None and self.followed and self._few(found[0]):
            columns, moves = found
            if len(columns):
                self.inner(before)  # of all rows
            self._at = None  # until all rows are brought up to date
            self._add(self._sums, columns, moves)
            if len(columns) or model.unit != before.unit:
                self._inner = model.in_units(self._sums)
        else:
            self._at = None
            self._begin(model)
        self._at = model

    def _begin(self, model: Coefficients) -> None:
        n = self._x.shape[0]
        self._known = np.ones(n, dtype=bool)
        if self._few(model.support):
            self._sums = np.zeros(n)
            self._add(self._sums, model.support, model.steps)
        elif sparse.issparse(self._x) and self._x.format == "csr":
            self._sums, self._inner = np.empty(n), np.empty(n)
            self._known[:] = False
            return
        else:
            self._sums = np.array(model.steps_of(self._x))
        self._inner = model.in_units(self._sums)

    def _few(self, columns: np.ndarray) -> bool:
        """Whether columns one by one take less time than all rows."""
        return self._columns.work_of(columns) <= _FEW_ENTRIES * self._columns.size

    def _add(self, sums: np.ndarray, columns: np.ndarray, steps: np.ndarray) -> None:
        for column, value in zip(columns, steps, strict=True):
            rows, entries = self._columns.entries(int(column))
            sums[rows] += entries * value


def _moves(before: Coefficients, after: Coefficients) -> tuple[np.ndarray, np.ndarray] | None:
    """The columns on which two models differ, and by how many steps; None for very many."""
    same = before.support is after.support or np.array_equal(before.support, after.support)
    if same:
        columns, moves = after.support, after.steps - before.steps
    elif abs(len(before.support) - len(after.support)) > _MOST_COLUMNS:
        return None
    else:
        place = np.searchsorted(before.support, after.support)
        kept = np.append(before.support, -1)[place] == after.support
        left = np.ones(len(before.support), dtype=bool)
        left[place[kept]] = False
        moves = after.steps.copy()
        moves[kept] -= before.steps[place[kept]]
        columns = np.concatenate([after.support, before.support[left]])
        moves = np.concatenate([moves, -before.steps[left]])
    changed = moves != 0
    return columns[changed], moves[changed]


class RowBlock(Block):
    """Some consecutive rows, whose inner products are those of all rows: several queries ask."""

    def __init__(self, block: Block, margins: Margins) -> None:
        super().__init__(block.rows, block.y, block.start)
        self._margins = margins

    @property
    def _place(self) -> slice:
        return slice(self.start, self.start + self.shape[0])

    def inner(self, model: Coefficients) -> np.ndarray:
        return self._margins.inner(model, self._place, self.rows)

    def slopes(self, query: Any) -> np.ndarray:
        if self.y is None:  # hidden targets: what was kept was made of them
            return super().slopes(query)
        return self._margins.slopes(query, self.y, self._place, self.rows)

    def piece(self, few: slice) -> Block:
        return RowBlock(super().piece(few), self._margins)


class DenseBlock(Block):
    """The same of dense rows, which are put on the grid as a whole only for queries that do so."""

    def __init__(self, rows: DenseRows, margins: Margins, y: np.ndarray, few: slice) -> None:
        super().__init__(None, y[few], few.start)
        self._all, self._margins, self._few = rows, margins, few
        self._size = few.stop - few.start  # targets may be hidden

    @property
    def rows(self) -> np.ndarray:
        return self.some_rows(slice(0, self._size))

    def some_rows(self, few: slice) -> np.ndarray:
        kept = self._all.kept[self._few][few]
        return kept.astype(np.float64, copy=False)

    @property
    def shape(self) -> tuple[int, int]:
        return self._size, self._all.shape[1]

    def inner(self, model: Coefficients) -> np.ndarray:
        return self._margins.inner(model)[self._few]

    def columns(self, columns: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        if self._all.is_kept or _FEW * len(columns) >= self.shape[1]:
            return self._of_rows(columns, self.some_rows(rows))
        found = np.empty((len(range(*rows.indices(self._size))), len(columns)))
        for i, column in enumerate(columns):
            found[:, i] = self._all.column(int(column))[self._few][rows]
        return found

    def sums(
        self, weights: np.ndarray, most: int = X_STEPS, columns: np.ndarray | None = None
    ) -> np.ndarray:
        if columns is not None:
            return super().sums(weights, most, columns)
        kept, total = self._all.clipped(most)[self._few], np.zeros(self.shape[1])
        for few, rows in pieces(kept):
            total += weights[few] @ rows.astype(np.float64, copy=False)
        return total


class ColumnBlock(Block):
    """Some consecutive rows, column by column, whose inner products follow a model's moves.

    `y` has the targets of these rows. They begin at `first` among the rows of `columns`, whose
    inner products `margins` has, and at `start` among all rows.
    """

    def __init__(
        self,
        columns: SparseColumns | DenseColumns,
        margins: Margins,
        y: np.ndarray,
        first: int = 0,
        start: int = 0,
    ) -> None:
        super().__init__(None, y, start)
        self._columns, self._margins = columns, margins
        self._first, self._last = first, first + len(y)

    @property
    def shape(self) -> tuple[int, int]:
        return self._last - self._first, self._columns.shape[1]

    def inner(self, model: Coefficients) -> np.ndarray:
        return self._margins.inner(model, slice(self._first, self._last))

    def slopes(self, query: Any) -> np.ndarray:
        if self.y is None:  # hidden targets: what was kept was made of them
            return super().slopes(query)
        return self._margins.slopes(query, self.y, slice(self._first, self._last))

    def columns(self, columns: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        found = np.zeros((stop - start, len(columns)))
        for i, column in enumerate(columns):
            few, entries = self._columns.entries_between(
                int(column), self._first + start, self._first + stop
            )
            found[few, i] = entries
        return found

    def entries(self, column: int) -> tuple[Any, np.ndarray]:
        return self._columns.entries_between(column, self._first, self._last)

    def sums(
        self, weights: np.ndarray, most: int = X_STEPS, columns: np.ndarray | None = None
    ) -> np.ndarray:
        assert self.shape == self._columns.shape  # it has all rows of the columns
        clipped = self._columns.clipped(most)
        if columns is None:
            return clipped.sums(weights)
        return np.array([clipped.sum(int(column), weights) for column in columns], dtype=float)
