"""The losses that the kernels know: slopes, their derivatives, and how large they can get."""

from __future__ import annotations

import math

from riata.engines.compiled.codes import HUBER, LOGISTIC, SQUARED
from riata.engines.compiled.jit import compiled, inlined


@inlined
def exp_below(z: float) -> float:
    """e^-|z|: the same operations as in `riata.losses.logistic_function`, so the same bits."""
    size = abs(z)
    r = -0.00390625 * (size if size < 40.0 else 40.0)
    r2 = r * r
    r4 = r2 * r2
    e = 1 / 24 + r * (1 / 120) + r2 * (1 / 720 + r * (1 / 5040))
    e += r4 * (1 / 40320 + r * (1 / 362880) + r2 * (1 / 3628800))
    e = 1.0 + r + r2 * (1 / 2 + r * (1 / 6)) + r4 * e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@inlined
def slope(loss: int, parameter: float, margin: float, y: float) -> float:
    if loss == SQUARED:
        return 2.0 * (margin - y)
    if loss == LOGISTIC:
        z = y * margin
        share = 1.0 / (1.0 + exp_below(z))
        return -y * (1.0 - share if z >= 0 else share)
    if loss == HUBER:
        return 2.0 * min(max(margin - y, -parameter), parameter)
    return -y * min(max((1.0 - y * margin) / parameter, 0.0), 1.0)


@inlined
def derivative(loss: int, margin: float, y: float) -> float:
    """Of the slope in the margin, for losses that have one everywhere."""
    if loss == SQUARED:
        return 2.0
    e = exp_below(y * margin)
    return y * y * e / ((1.0 + e) * (1.0 + e))


@compiled
def slope_bound(loss: int, parameter: float, margin: float, y: float) -> float:
    """The largest size of a slope, for margins and targets up to these sizes."""
    if loss == SQUARED:
        return 2.0 * (margin + y)
    if loss == LOGISTIC:
        return y * (1.0 / (1.0 + exp_below(y * margin)))
    if loss == HUBER:
        return 2.0 * min(margin + y, parameter)
    return y * min((1.0 + y * margin) / parameter, 1.0)


def steepest(loss: int, parameter: float, y: float) -> float:
    """The largest derivative of the slope."""
    if loss in (SQUARED, HUBER):
        return 2.0
    return y * y / 4 if loss == LOGISTIC else y * y / parameter


def slope_curvature(loss: int, y: float) -> float:
    """The largest second derivative of the slope; infinite for losses with corners."""
    if loss == SQUARED:
        return 0.0
    return y**3 * 0.0963 if loss == LOGISTIC else math.inf
