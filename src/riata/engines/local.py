"""The engine of this process: the rows in memory, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.grid import BLOCK_ROWS
from riata.queries import Query


class LocalEngine:
    """Holds the rows, clipped and on the grid, and sums a query over them without rounding.

    Parameters
    ----------
    x : ndarray or scipy sparse of shape (n_rows, n_features)
        Sparse rows stay sparse.
    y : ndarray of shape (n_rows,)
    bounds : Bounds
        What the rows are clipped to.
    block_rows : int, optional
        How many rows are summed at a time. The result does not depend on it.
    """

    def __init__(self, x: Any, y: np.ndarray, bounds: Bounds, block_rows: int = BLOCK_ROWS) -> None:
        x, y = bounds.grid_x(x), bounds.clip_y(y)
        self._blocks = [
            (x[start : start + block_rows], y[start : start + block_rows])
            for start in range(0, x.shape[0], block_rows)
        ]

    def total(self, query: Query) -> np.ndarray:
        """The exact sum of the query's integers over all rows."""
        return sum(query.partial(x, y).astype(np.int64) for x, y in self._blocks)  # type: ignore[return-value]

    def part(self, part: int, parts: int) -> LocalEngine:
        """An engine for every row whose number leaves the rest `part` when divided by `parts`."""
        chosen, before = object.__new__(LocalEngine), 0
        chosen._blocks = []
        for x, y in self._blocks:
            first = (part - before) % parts
            chosen._blocks.append((x[first::parts], y[first::parts]))
            before += len(y)
        return chosen

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("An engine holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        return "<LocalEngine>"
