"""An engine over made-up rows."""

from __future__ import annotations

import numpy as np

from riata.mechanisms.engine import Engine
from riata.queries import (
    ClassCounts,
    Coordinate,
    Correlations,
    EntrySizes,
    Gradient,
    GradientEntries,
    GradientStep,
    Improvement,
    LengthSizes,
    LimitedSlope,
    MarginCounts,
    MarginSlopes,
    MeanSlope,
    Query,
    SlopeSizes,
    SupportCurvature,
    SupportGradient,
    VertexUtilities,
)
from riata.simulation.columns import SimulatedColumns

#: Queries that name the columns that they read, or read all of them by one product.
BY_COLUMNS = (
    ClassCounts,
    Coordinate,
    Gradient,
    GradientEntries,
    GradientStep,
    Improvement,
    LengthSizes,
    LimitedSlope,
    MarginCounts,
    MarginSlopes,
    MeanSlope,
    SlopeSizes,
    SupportCurvature,
    SupportGradient,
    VertexUtilities,
)

#: The sizes of entries are taken from so many rows and columns.
_ROWS, _COLUMNS = 2_000, 100


class SimulatedEngine(Engine):
    """Sums queries over made-up rows, drawing only the columns that a query needs.

    For a query of a kind that it does not know it draws them all.

    Parameters
    ----------
    x : SimulatedColumns
    y : ndarray of shape (n_rows,)
    """

    def __init__(self, x: SimulatedColumns, y: np.ndarray) -> None:
        self._x, self._y = x, y

    def total(self, query: Query) -> np.ndarray:
        """The sum of the query's integers over all rows."""
        if type(query) is Correlations:
            found = self._x.sums(query.slopes(self._x, self._y), query.most)
        elif isinstance(query, EntrySizes):
            few = self._x.sample(_ROWS, _COLUMNS)
            found = np.rint(query.block_sum(few, self._y) * (len(self._y) / len(few)))
        else:
            x = self._x if type(query) in BY_COLUMNS else np.asarray(self._x)
            found = query.block_sum(x, self._y)
        return found.astype(np.int64)
