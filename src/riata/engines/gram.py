"""All inner products of dense columns: the squared loss's scores without a look at the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.engines.dense import DenseRows

#: So many entries at a time: enough for BLAS to be quick.
_ENTRIES = 2**21


class Gram:
    """The inner products of all columns with each other, with the targets and with 1."""

    def __init__(self, rows: DenseRows, y: np.ndarray) -> None:
        def products(few: slice, x: np.ndarray) -> np.ndarray:
            others = np.column_stack([y[few], np.ones(len(x))])
            return np.hstack([x.T @ x, x.T @ others])

        found = rows.each(products, _ENTRIES)
        self._products, self._with_y, self._with_one = found[:, :-2], found[:, -2], found[:, -1]

    def sums(self, source: Any) -> np.ndarray:
        """The sum of entry * slope for each column, in steps of entries, at a gradient's theta."""
        model, offset = source.coefficients, source.theta.offset
        margins = self._products[:, model.support] @ (model.steps * model.unit)
        margins += offset * self._with_one
        return 2.0 * (margins - self._with_y)
