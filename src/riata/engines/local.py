"""The engine of this process: the rows in memory, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.queries import Query


class LocalEngine:
    """Holds the clipped rows and sums a query over them.

    Parameters
    ----------
    x : ndarray or scipy sparse of shape (n_rows, n_features)
        Sparse rows stay sparse.
    y : ndarray of shape (n_rows,)
    bounds : Bounds
        What the rows are clipped to.
    """

    def __init__(self, x: Any, y: np.ndarray, bounds: Bounds) -> None:
        self._x = bounds.clip_x(x)
        self._y = bounds.clip_y(y)

    def evaluate(self, query: Query) -> np.ndarray:
        return query.finish(query.partial(self._x, self._y))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("An engine holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        return "<LocalEngine>"
