"""The margins of all rows, brought up to date when a model moves along a few columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.engines.columns import Columns
from riata.grid import X_STEPS

#: A move along more columns than this costs as much as to begin again.
_MOST_COLUMNS = 64


class Margins:
    """<x, theta> for every row.

    What a row's margin is depends on the row and on the public way of theta alone: each is computed
    by itself, in an order that theta's moves decide.

    Parameters
    ----------
    x : ndarray or scipy sparse of shape (n_rows, n_features)
        Rows on the grid.
    columns : Columns
        The same rows.
    """

    def __init__(self, x: Any, columns: Columns) -> None:
        self._x, self._columns = x, columns
        self._body: object = None
        self._values = np.empty(0)
        self.followed = False

    def of(self, query: Any) -> np.ndarray:
        """The margins at the query's theta, with its offset. Not to be written to.

        `followed` then says whether they came from those before by a move, or none.
        """
        inner, offset = self.inner_of(query), query.theta.offset
        return inner + offset if offset else inner

    def inner_of(self, query: Any) -> np.ndarray:
        """The same without the offset."""
        theta, self.followed = query.theta, True
        if theta.body is not self._body:
            move = theta.move
            self.followed = (
                move is not None
                and move.origin is self._body
                and len(move.added.support) <= _MOST_COLUMNS
            )
            self._body = None  # until all rows are brought up to date
            if self.followed:
                self._follow(move, query.bounds)
            else:
                self._values = query.inner(self._x).copy()
            self._body = theta.body
        return self._values

    def _follow(self, move: Any, bounds: Any) -> None:
        if move.kept != 1.0:
            self._values *= move.kept
        for column, value in zip(move.added.support, move.added.values, strict=True):
            rows, entries = self._columns.entries(int(column))
            self._values[rows] += entries * (value * bounds.of_columns(int(column)) / X_STEPS)
