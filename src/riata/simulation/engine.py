"""An engine over made-up rows."""

from __future__ import annotations

import numpy as np

from riata.grid import X_STEPS
from riata.mechanisms.engine import Engine
from riata.queries import Block, EntrySizes, Query, Reads
from riata.simulation.columns import SimulatedColumns

#: The sizes of entries are taken from so many rows and columns.
_ROWS, _COLUMNS = 2_000, 100


class SimulatedEngine(Engine):
    """Sums queries over made-up rows, drawing only the columns that a query needs.

    For a query that reads whole rows it draws them all.

    Parameters
    ----------
    x : SimulatedColumns
    y : ndarray of shape (n_rows,)
    """

    def __init__(self, x: SimulatedColumns, y: np.ndarray) -> None:
        self._x, self._y = x, y

    def total(self, query: Query) -> np.ndarray:
        """The sum of the query's integers over all rows."""
        if isinstance(query, EntrySizes):
            few = self._x.sample(_ROWS, _COLUMNS)
            sampled = query.block_sum(Block(few, self._y[: len(few)]))
            return np.rint(sampled * (len(self._y) / len(few))).astype(np.int64)
        if query.reads is Reads.ROWS:
            return query.block_sum(Block(np.asarray(self._x), self._y)).astype(np.int64)
        return query.block_sum(SimulatedBlock(self._x, self._y)).astype(np.int64)


class SimulatedBlock(Block):
    """Rows that are made up column by column, when a column is asked for."""

    def columns(self, columns: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        found: np.ndarray = self.rows[rows, columns]
        return found

    def sums(
        self, weights: np.ndarray, most: int = X_STEPS, columns: np.ndarray | None = None
    ) -> np.ndarray:
        if columns is None:
            found: np.ndarray = self.rows.sums(weights, most)
            return found
        return self.columns(columns).T @ weights
