"""An engine over made-up rows."""

from __future__ import annotations

import numpy as np

from riata.queries import Correlations, EntrySizes, Query
from riata.simulation.columns import Columns

#: The sizes of entries are taken from so many rows and columns.
_ROWS, _COLUMNS = 2_000, 100


class SimulatedEngine:
    """Sums queries over made-up rows, drawing only the columns that a query needs.

    Parameters
    ----------
    x : Columns
    y : ndarray of shape (n_rows,)
    """

    def __init__(self, x: Columns, y: np.ndarray) -> None:
        self._x, self._y = x, y

    def total(self, query: Query) -> np.ndarray:
        """The sum of the query's integers over all rows."""
        if type(query) is Correlations:
            found = self._x.sums(query.slopes(self._x, self._y), query._most)
        elif isinstance(query, EntrySizes):
            few = self._x.sample(_ROWS, _COLUMNS)
            found = np.rint(query.partial(few, self._y) * (len(self._y) / len(few)))
        else:
            found = query.partial(self._x, self._y)
        return found.astype(np.int64)

    def part(self, part: int, parts: int) -> SimulatedEngine:
        """An engine for some of the rows: all columns are drawn for it."""
        raise NotImplementedError("Plans with parts are simulated on whole rows.")

    def __repr__(self) -> str:
        return "<SimulatedEngine>"
