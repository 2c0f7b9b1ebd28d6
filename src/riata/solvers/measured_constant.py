"""The best constant and the mean curvature there, for losses whose curvature is measured."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from riata.problem import Problem
from riata.queries import LimitedSlope, MeanCurvature, Query
from riata.solvers.constant_share import posterior
from riata.vectors import Vector

#: Slopes, and curvatures of losses with a log link, beyond this multiple of the slopes' scale count
#: as this. The intercept moves at most so far up or down at a time.
MOST_OF_CONSTANT, MOST_SHIFT = 4.0, 12.0

#: Before anything is seen, the constant lies about so far from 0, in units of the largest target;
#: but the logarithm of a mean or of odds so far. A step goes wrong by about this part of it.
FAR, FAR_FOR_LOGARITHMS, CURVED = 0.5, 2.0, 0.25


def error_at_first(problem: Problem) -> float:
    """How far the best constant may be from 0, before it is measured."""
    of_logarithms = problem.loss.classifies or problem.loss.link == "log"
    return FAR_FOR_LOGARITHMS if of_logarithms else FAR * problem.y_bound


def measured_constant(
    problem: Problem,
    constant: Vector,
    scale: float,
    error: float,
    release: Callable[[Query], tuple[float, float]],
) -> tuple[Vector, float, float]:
    """A better constant than the present one, the mean curvature there, and its standard error.

    Parameters
    ----------
    problem : Problem
    constant : Vector
    scale : float
        Of the slopes.
    error : float
        How far the present constant may be from the best one.
    release : callable
        From a query to its release and the standard deviation of the noise.
    """
    loss, limit = problem.loss, MOST_OF_CONSTANT * scale
    slope, noise_of_slope = release(LimitedSlope(problem, constant, limit))
    most = limit if loss.link == "log" else math.inf
    most = min(most, loss.curvature_bound(problem.y_bound))
    bend, noise = release(MeanCurvature(problem, constant, most))
    curvature = max(bend, 2 * noise)
    if not problem.fit_intercept:
        return constant, curvature, error
    shift = np.clip(loss.best_shift(slope, curvature), -MOST_SHIFT, MOST_SHIFT)
    shift, error = posterior(float(shift), noise_of_slope / curvature, error)
    error = math.hypot(error, CURVED * shift)
    offset = float(np.clip(constant.offset + shift, -problem.offset_bound, problem.offset_bound))
    return constant.with_offset(offset), curvature, error
