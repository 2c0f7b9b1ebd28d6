"""Some of the rows, on the grid: what a sum over all rows is made of, here or elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from riata.engines.columns import SparseColumns
from riata.engines.local import BY_MARGINS
from riata.engines.margins import Margins
from riata.engines.rows import Rows
from riata.grid import BLOCK_ROWS
from riata.mechanisms.engine import Engine
from riata.queries import Gradient, GradientStep, Query, VertexUtilities

#: Queries that sparse rows answer column by column: by margins, or by one sum over all columns.
BY_COLUMNS = (*BY_MARGINS, Gradient, GradientStep, VertexUtilities)


class Shard(Engine):
    """Sums queries over rows that lie together, exactly, and each time from the beginning.

    What it answers depends on the rows and on the query alone, and not on what was asked before or
    on where the rows are. So a shard that was lost is as good as new when its rows are read again.

    Parameters
    ----------
    x : ndarray or scipy sparse of shape (n_rows, n_features)
        On the grid.
    y : ndarray of shape (n_rows,)
        Inside the bounds.
    start : int, default=0
        The number of the first row among all rows.
    """

    def __init__(self, x: Any, y: np.ndarray, start: int = 0) -> None:
        self._x, self._y, self._start = x, y, start
        pieces = [slice(i, i + BLOCK_ROWS) for i in range(0, max(len(y), 1), BLOCK_ROWS)]
        blocks = [(x, y)] if len(pieces) == 1 else [(x[few], y[few]) for few in pieces]
        self._blocks = [_Block(each, targets) for each, targets in blocks]

    @property
    def size(self) -> int:
        """How many cells it stores."""
        return int(self._x.size)

    def total(self, query: Query) -> np.ndarray:
        """The sum of the query's integers over these rows."""
        found = [
            block.total(query.at_row(self._start + i * BLOCK_ROWS))
            for i, block in enumerate(self._blocks)
        ]
        return sum(found[1:], found[0])

    def part(self, part: int, parts: int) -> Shard:
        """Every row whose number among all rows leaves the rest `part` when divided by `parts`."""
        return Shard(*of_part(self._x, self._y, self._start, part, parts))


def of_part(
    x: Any, y: np.ndarray, start: int, part: int, parts: int
) -> tuple[Any, np.ndarray, int]:
    """The rows of a part, of rows that begin at number `start`, and their first number in it."""
    first = (part - start) % parts
    return x[first::parts], y[first::parts], (start + first) // parts


class _Block:
    """So few rows that their sums are exact in float64."""

    def __init__(self, x: Any, y: np.ndarray) -> None:
        self._x, self._y = x, y
        self._columns: _EntryColumns | None = None

    def total(self, query: Query) -> np.ndarray:
        x = self._x
        if sparse.issparse(x) and type(query) in BY_COLUMNS:
            if self._columns is None:
                self._columns = _EntryColumns(x)
            x = self._columns
        return query.block_sum(x, self._y).astype(np.int64)


class _EntryColumns(Rows):
    """Sparse rows, column by column, and their margins at the last model."""

    def __init__(self, x: Any) -> None:
        self._entries = sparse.csc_array(x)
        columns = SparseColumns(self._entries)
        super().__init__(columns, Margins(x, columns), 0, x.shape[0])

    @property
    def T(self) -> Any:
        """For one sum over all columns."""
        return self._entries.T
