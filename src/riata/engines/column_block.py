"""Rows for queries that read inner products, and columns that they name."""

from __future__ import annotations

import numpy as np

from riata.engines.columns import SparseColumns
from riata.engines.dense import DenseColumns
from riata.engines.margins import Margins
from riata.grid import X_STEPS
from riata.queries import Block
from riata.queries.coefficients import Coefficients


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
        return len(self.y), self._columns.shape[1]

    def inner(self, model: Coefficients) -> np.ndarray:
        return self._margins.inner(model)[self._first : self._last]

    def columns(self, columns: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        start, stop, _ = rows.indices(len(self.y))
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
