"""The integers that sums over rows are made of.

Rows and slopes are put on fixed public grids, so that what a row adds to a sum is an integer of
known size. Integers up to 2^53 are exact in float64, so a sum of them depends neither on the order
of the rows nor on threads, BLAS or shards. Proofs are in docs/privacy/exact_sums.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: An entry of a row is a whole number of steps, at most this many in size.
X_STEPS = 2**16

#: So is the slope of the loss at a row.
SLOPE_STEPS = 2**16

#: The coefficients of a query, taken together, are about this many steps.
THETA_STEPS = 2**35

#: So many rows can be summed in float64 without rounding.
BLOCK_ROWS = 2**53 // (X_STEPS * SLOPE_STEPS)

#: And so many in 64-bit integers.
MOST_ROWS = 2**63 // (X_STEPS * SLOPE_STEPS) // 2

#: More than what a handful of roundings can make of the number 1.
ROUNDED_UP = 1 + 2.0**-40


def to_steps(values: np.ndarray, limit: float | np.ndarray, most: int) -> np.ndarray:
    """`values` of size up to `limit` as integers up to `most`; NaN becomes `most`."""
    steps = values * (most / limit)
    np.rint(steps, out=steps)
    np.fmin(steps, most, out=steps)  # not clip: NaN must not get through
    np.fmax(steps, -most, out=steps)
    return steps


def coefficient_steps(values: np.ndarray) -> tuple[np.ndarray, float]:
    """Integers whose sizes sum to about `THETA_STEPS`, and the step that they count."""
    step = float(coefficient_step(np.abs(values).sum()))
    return np.rint(values / step), step


def coefficient_step(total: Any) -> Any:
    """The step of coefficients whose sizes sum to `total`: a power of two, about one in 2^35."""
    return np.where(total > 0, np.ldexp(1.0, np.frexp(total)[1]) / THETA_STEPS, 1.0)
