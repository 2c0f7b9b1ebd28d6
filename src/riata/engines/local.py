"""The engine of this process: the rows in memory, dense or sparse."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.engines.columns import Columns
from riata.engines.margins import Margins
from riata.engines.rows import Rows
from riata.engines.scores import DriftingScores, ordinary
from riata.grid import BLOCK_ROWS
from riata.queries import (
    Coordinate,
    Improvement,
    LengthSizes,
    LimitedSlope,
    MeanSlope,
    Query,
    SlopeSizes,
    SupportCurvature,
    SupportGradient,
)

#: Rows with fewer entries than this are summed so quickly that bounds on scores gain nothing. How
#: many sparse rows have is not public: they count as if so many of a hundred places were filled.
FEW_ENTRIES, PERCENT_FILLED = 2**18, 6

#: Queries that ask rows for their margins, and for the columns that they name.
BY_MARGINS = (
    Coordinate,
    Improvement,
    LimitedSlope,
    MeanSlope,
    SlopeSizes,
    SupportCurvature,
    SupportGradient,
)


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
        self._hold(x, y, block_rows)

    def _hold(self, x: Any, y: np.ndarray, block_rows: int = BLOCK_ROWS) -> None:
        self._x, self._y, self._block_rows = x, y, block_rows
        self._blocks = [
            (x[start : start + block_rows], y[start : start + block_rows])
            for start in range(0, x.shape[0], block_rows)
        ]
        self._scores: dict[int, DriftingScores] = {}

    def total(self, query: Query) -> np.ndarray:
        """The exact sum of the query's integers over all rows."""
        blocks = self._known_rows() if self._knows(query) else self._blocks
        return sum(query.partial(x, y).astype(np.int64) for x, y in blocks)  # type: ignore[return-value]

    def scores(self, query: Any, factor: float) -> DriftingScores | None:
        """The utilities of a query, known up to bounds, if that is quicker than to sum them all.

        `factor` times a utility is the logarithm of a candidate's weight.
        """
        if not (query.by_column and self._many(query.source) and ordinary(query, factor)):
            return None
        known = self._margins.of(query.source)
        if query.most not in self._scores:
            self._scores = {query.most: DriftingScores(self._columns.cut(query.most))}
        scores = self._scores[query.most]
        if not self._margins.followed:
            scores.forget()
        scores.at(query, query.source.slopes_at(known, self._y), factor)
        return scores

    def part(self, part: int, parts: int) -> LocalEngine:
        """An engine for every row whose number leaves the rest `part` when divided by `parts`."""
        chosen = object.__new__(LocalEngine)
        chosen._hold(self._x[part::parts], self._y[part::parts])
        return chosen

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self._x)

    @cached_property
    def _margins(self) -> Margins:
        return Margins(self._x, self._columns)

    def _knows(self, query: Query) -> bool:
        """Whether the query is about margins that are followed, or about a few sparse columns."""
        if isinstance(query, LengthSizes):
            return sparse.issparse(self._x)
        source = query.slope if isinstance(query, SlopeSizes) else query
        return type(query) in BY_MARGINS and self._many(source)

    def _known_rows(self) -> list[tuple[Any, np.ndarray]]:
        rows = Rows(self._columns, self._margins, 0, len(self._y))
        starts = range(0, len(self._y), self._block_rows)
        return [(rows[i : i + self._block_rows], self._y[i : i + self._block_rows]) for i in starts]

    def _many(self, query: Any) -> bool:
        """Whether margins are followed: by public numbers, as they round as the moves go."""
        places = query.n_rows * query.theta.size
        filled = places * PERCENT_FILLED // 100 if sparse.issparse(self._x) else places
        return filled >= FEW_ENTRIES

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("An engine holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        return "<LocalEngine>"
