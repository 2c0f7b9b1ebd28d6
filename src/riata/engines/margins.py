"""The inner products of all rows with a model, brought up to date when it moves on few columns.

And rows for queries that read these, and columns that they name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.engines.columns import SparseColumns
from riata.engines.dense import DenseColumns
from riata.grid import X_STEPS
from riata.queries import Block
from riata.queries.coefficients import Coefficients

#: A move along more columns than this costs as much as to begin again.
_MOST_COLUMNS = 64

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
        self._sums = np.empty(0)
        self._inner = np.empty(0)
        self.followed = False

    def of(self, query: Any) -> np.ndarray:
        """The margins at the query's theta, with its offset. Not to be written to.

        `followed` then says whether they came from those before by a move, or none.
        """
        inner, offset = self.inner(query.coefficients), query.theta.offset
        return inner + offset if offset else inner

    def inner(self, model: Coefficients) -> np.ndarray:
        """The same without the offset."""
        if self._at is model:  # another block of the same query
            self.followed = True
            return self._inner
        before, self._at = self._at, None  # until all rows are brought up to date
        columns, moves = (model.support, model.steps) if before is None else _moves(before, model)
        self.followed = before is not None and len(columns) <= _MOST_COLUMNS
        if self.followed and self._few(columns):
            self._add(self._sums, columns, moves)
        else:
            self._sums = self._begin(model)
        if before is None or len(columns) or model.unit != before.unit:
            self._inner = model.in_units(self._sums)
        self._at = model
        return self._inner

    def _begin(self, model: Coefficients) -> np.ndarray:
        if not self._few(model.support):
            return np.array(model.steps_of(self._x))
        sums = np.zeros(self._x.shape[0])
        self._add(sums, model.support, model.steps)
        return sums

    def _few(self, columns: np.ndarray) -> bool:
        """Whether columns one by one take less time than all rows."""
        return self._columns.work_of(columns) <= _FEW_ENTRIES * self._columns.size

    def _add(self, sums: np.ndarray, columns: np.ndarray, steps: np.ndarray) -> None:
        for column, value in zip(columns, steps, strict=True):
            rows, entries = self._columns.entries(int(column))
            sums[rows] += entries * value


def _moves(before: Coefficients, after: Coefficients) -> tuple[np.ndarray, np.ndarray]:
    """The columns on which two models differ, and by how many steps."""
    same = before.support is after.support or np.array_equal(before.support, after.support)
    if same:
        columns, moves = after.support, after.steps - before.steps
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

    def inner(self, model: Coefficients) -> np.ndarray:
        return self._margins.inner(model)[self.start : self.start + self.shape[0]]


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
        return self._margins.inner(model)[self._first : self._last]

    def columns(self, columns: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        start, stop, _ = rows.indices(self.shape[0])
        found = np.zeros((stop - start, len(columns)))
        for i, column in enumerate(columns):
            found[:, i] = self._columns.dense(int(column), self._first + start, self._first + stop)
        return found

    def sums(
        self, weights: np.ndarray, most: int = X_STEPS, columns: np.ndarray | None = None
    ) -> np.ndarray:
        assert self.shape == self._columns.shape  # it has all rows of the columns
        clipped = self._columns.clipped(most)
        if columns is None:
            return clipped.sums(weights)
        return np.array([clipped.sum(int(column), weights) for column in columns], dtype=float)
