"""Some of the rows, on the grid: what a sum over all rows is made of, here or elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy import sparse

from riata.engines.columns import SparseColumns
from riata.engines.margins import ColumnBlock, Margins
from riata.grid import BLOCK_ROWS, slices, some_rows
from riata.mechanisms.engine import Engine
from riata.queries import Block, Query, Reads


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
        self._blocks = blocks_of(x, y, BLOCK_ROWS, start)

    @property
    def size(self) -> int:
        """How many cells it stores."""
        return int(self._x.size)

    def total(self, query: Query) -> np.ndarray:
        """The sum of the query's integers over these rows."""
        by_columns = sparse.issparse(self._x) and query.reads is not Reads.ROWS
        blocks = self._by_columns if by_columns else self._blocks
        return sum_over(query, blocks)

    @cached_property
    def _by_columns(self) -> list[ColumnBlock]:
        """The rows column by column, and their inner products with the last model."""
        columns = [SparseColumns(block.rows) for block in self._blocks]
        return [
            ColumnBlock(each, Margins(block.rows, each), block.y, start=block.start)
            for block, each in zip(self._blocks, columns, strict=True)
        ]

    def part(self, part: int, parts: int) -> Shard:
        """Every row whose number among all rows leaves the rest `part` when divided by `parts`."""
        return Shard(*of_part(self._x, self._y, self._start, part, parts))


def blocks_of(x: Any, y: np.ndarray, rows: int, start: int = 0) -> list[Block]:
    """Blocks of so many rows at most, without a copy of their entries."""
    if len(y) <= rows:
        return [Block(x, y, start)]
    return [
        Block(some_rows(x, few.start, few.stop), y[few], start + few.start)
        for few in slices(len(y), rows)
    ]


def sum_over(query: Query, blocks: Iterable[Block]) -> np.ndarray:
    """The exact sum of the query's integers over all rows of some blocks, one after the other."""
    return reduce(np.add, (query.block_sum(block).astype(np.int64) for block in blocks))


def of_part(
    x: Any, y: np.ndarray, start: int, part: int, parts: int
) -> tuple[Any, np.ndarray, int]:
    """The rows of a part, of rows that begin at number `start`, and their first number in it."""
    first = (part - start) % parts
    return x[first::parts], y[first::parts], (start + first) // parts
