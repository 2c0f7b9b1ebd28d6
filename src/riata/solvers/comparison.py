"""The comparison of a model with the best constant, which every fit with a constant ends with."""

from __future__ import annotations

import numpy as np

from riata.problem import Problem
from riata.queries import Improvement
from riata.solvers import defaults
from riata.solvers.solution import Fit
from riata.vectors import Vector


def comparison(
    problem: Problem, theta: Vector, constant: Vector, high: float, curvature: float | None = None
) -> Improvement:
    """How much better a model is than a constant; losses are clipped at that of a `high` slope."""
    if curvature is None:
        curvature = problem.loss.curvature_bound(problem.y_bound)
    straight = high if problem.loss.classifies else 0.0  # of losses that are straight further out
    most = defaults.CHECK_CUT * max(high**2 / (2 * curvature), straight)
    return Improvement(problem, theta, constant, most)


def read_comparison(released: np.ndarray, noise: float) -> tuple[Fit, bool]:
    """The fit that a released comparison shows, and whether the model is surely better."""
    loss, gain = released
    scale = max(loss, noise)
    fit = Fit(gain / scale, noise / scale, float(max(loss - gain, noise)))
    return fit, bool(gain > defaults.SURE * noise)
