"""Sparse regression from noisy moments: a filtered matrix and a penalty at the noise's level."""

from __future__ import annotations

import math

import numpy as np

from riata.local.learners.moments import Covariances, raise_eigenvalues
from riata.local.learners.ridge import EVIDENCE, Slopes, ridge

_STEPS, _ROUNDS = 500, 4


def lasso(moments: Covariances, units: np.ndarray, radius: float = math.inf) -> Slopes:
    """Coefficients of a few columns, with |units * theta|_1 <= radius.

    The columns are those of the minimiser of theta'A theta / 2 - b'theta + penalty |theta|_1. The
    penalty is the noise of a coordinate of b - A theta times sqrt(2 log d), found in a few rounds
    because that noise grows with theta. What survives is fitted again as `ridge` does, and has to
    show the more evidence the more columns there were to choose from.
    """
    size = len(moments.cross)
    floor = moments.gram_noise * math.sqrt(size)  # no eigenvalue below the size of its noise
    matrix = raise_eigenvalues(moments.gram, floor)
    curvature = float(np.linalg.eigvalsh(matrix)[-1])
    theta, noise = np.zeros(size), moments.cross_noise
    for _ in range(_ROUNDS):
        penalty = noise * math.sqrt(2 * math.log(size + 1))
        theta = _minimise(matrix, curvature, moments.cross, penalty, units, radius)
        noise = math.hypot(moments.cross_noise, moments.gram_noise * float(np.linalg.norm(theta)))
    support = np.flatnonzero(theta)
    few = ridge(moments.at(support), EVIDENCE + 2.0 * math.log(size))
    theta, variances = np.zeros(size), np.zeros(size)
    theta[support], variances[support] = few.theta, few.variances
    return Slopes(project_l1(theta, units, radius), variances, few.evidence)


def project_l1(theta: np.ndarray, units: np.ndarray, radius: float) -> np.ndarray:
    """The nearest theta with |units * theta|_1 <= radius."""
    if np.abs(units * theta).sum() <= radius:
        return theta
    size = np.abs(theta)
    ratios = size / units  # where |theta_j| - level * units_j vanishes
    order = np.argsort(-ratios, kind="stable")
    over = np.cumsum((units * size)[order]) - radius
    levels = over / np.cumsum(units[order] ** 2)
    level = levels[np.flatnonzero(ratios[order] > levels)[-1]]
    return np.sign(theta) * np.maximum(size - level * units, 0.0)


def _minimise(
    matrix: np.ndarray,
    curvature: float,
    cross: np.ndarray,
    penalty: float,
    units: np.ndarray,
    radius: float,
) -> np.ndarray:
    """Accelerated proximal gradient steps, where no eigenvalue is above `curvature`."""
    theta = ahead = np.zeros(len(cross))
    momentum = 1.0
    for _ in range(_STEPS):
        moved = ahead - (matrix @ ahead - cross) / curvature
        new = np.sign(moved) * np.maximum(np.abs(moved) - penalty / curvature, 0.0)
        new = project_l1(new, units, radius)
        following = (1.0 + math.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = new + (momentum - 1.0) / following * (new - theta)
        if np.abs(new - theta).max() <= 1e-12:
            return new
        theta, momentum = new, following
    return theta
