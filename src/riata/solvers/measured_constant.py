"""The best constant and the mean curvature there, for losses whose curvature is measured."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from riata.problem import Problem
from riata.queries import LimitedSlope, MeanCurvature, Query
from riata.vectors import Vector

#: Slopes, and curvatures of losses with a log link, beyond this multiple of the slopes' scale count
#: as this. The intercept moves at most so far up or down at a time.
MOST_OF_CONSTANT, MOST_SHIFT = 4.0, 12.0


def measured_constant(
    problem: Problem,
    constant: Vector,
    scale: float,
    release: Callable[[Query], tuple[float, float]],
) -> tuple[Vector, float]:
    """A better constant than the present one, and the mean curvature at the present one.

    Parameters
    ----------
    problem : Problem
    constant : Vector
    scale : float
        Of the slopes.
    release : callable
        From a query to its release and the standard deviation of the noise.
    """
    loss, limit = problem.loss, MOST_OF_CONSTANT * scale
    slope, _ = release(LimitedSlope(problem, constant, limit))
    most = limit if loss.link == "log" else math.inf
    most = min(most, loss.curvature_bound(problem.y_bound))
    bend, noise = release(MeanCurvature(problem, constant, most))
    curvature = max(bend, 2 * noise)
    if not problem.fit_intercept:
        return constant, curvature
    shift = np.clip(loss.best_shift(slope, curvature), -MOST_SHIFT, MOST_SHIFT)
    bound = problem.offset_bound
    return constant.with_offset(float(np.clip(constant.offset + shift, -bound, bound))), curvature
