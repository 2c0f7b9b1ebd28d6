"""What a whitened fit knows about its errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from riata.solvers.empirical_bayes import averaged_noise, covariances, shortened_slopes, without
from riata.solvers.whitened_defaults import LARGEST, MOST_MARGINS
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.solvers.whitened_run import Run


def gradient_errors(
    run: Run, noises: np.ndarray, rate: float, averaged: int, cut: float
) -> tuple[float, float]:
    """The errors of w: of the noise, and of sampling rows."""
    bend, square, loss = 1.0, 1.0, run.problem.loss
    if loss.classifies and loss.innermost.link == "logit":
        spread = math.sqrt(min(float(run.ratios @ np.square(run.w)), MOST_MARGINS))
        bend, square = shortened_slopes(loss, run.offset, spread, cut * run.scale)
    noise = averaged_noise(noises / run.curvature, rate, rate * bend, averaged)
    sampled = run.scale / run.curvature / math.sqrt(run.problem.n_rows)
    return noise, sampled * math.sqrt(square) / bend


def covariance_of(run: Run, theta: Vector, support: np.ndarray) -> np.ndarray:
    """Of coefficients and intercept: of w, of the mean row, and of how much is kept.

    To leave out columns projects w, and with it its errors, onto what is orthogonal to them.
    """
    matrix, error = run.whitening.matrix, min(run.error, LARGEST)
    maps = np.column_stack([matrix[:, support] / run.units[support], -run.whitening.centre])
    left = without(matrix, ~run.columns) if not run.columns.all() else np.eye(len(matrix))
    sampled = run.scale / run.curvature / math.sqrt(run.problem.n_rows)
    of_mean, of_part = np.zeros((2, len(support) + 1))
    of_mean[-1] = math.hypot(run.shift_error, sampled)
    of_part[:-1] = run.kept_error * theta.dense()[support]
    of_part[-1] = run.kept_error * (theta.offset - run.constant.offset)
    root = np.vstack([error * (left @ maps), of_mean, of_part])
    if not run.problem.fit_intercept:
        root[:, -1] = 0.0
    return covariances(root, np.append(run.flat, [False, False]))
