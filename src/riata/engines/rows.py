"""Rows for queries that ask for margins and for a few columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.engines.columns import SparseColumns
from riata.engines.margins import Margins
from riata.queries.coefficients import Coefficients


class Rows:
    """Some consecutive rows: their margins are known, and single columns are quick to read.

    Parameters
    ----------
    columns : SparseColumns
    margins : Margins
        Of the same rows.
    start, stop : int
    """

    ndim = 2

    def __init__(self, columns: SparseColumns, margins: Margins, start: int, stop: int) -> None:
        self._columns, self._margins = columns, margins
        self._start, self._stop = start, stop
        self.shape = (stop - start, columns.shape[1])

    def inner_of(self, model: Coefficients) -> np.ndarray:
        """<x, theta> for each row."""
        return self._margins.inner_of(model)[self._start : self._stop]

    def __getitem__(self, key: Any) -> Any:
        """``rows[a:b]``, fewer rows, or ``rows[:, columns]``, a dense array."""
        if isinstance(key, slice):
            start, stop, _ = key.indices(self.shape[0])
            return Rows(self._columns, self._margins, self._start + start, self._start + stop)
        assert key[0] == slice(None)
        found = np.zeros((self.shape[0], len(key[1])))
        for i, column in enumerate(key[1]):
            found[:, i] = self._columns.dense(int(column), self._start, self._stop)
        return found
