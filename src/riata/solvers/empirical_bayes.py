"""What releases with known noise say: scales, coefficients, and how much of a model to keep.

Everything here is made of releases and of public numbers, and costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from riata.losses import Loss
from riata.solvers.defaults import VISIBLE

#: Which quantile of sizes is the scale of them.
QUANTILE = 0.9

#: Bins whose noise is below this part of the rows are read as they are. Otherwise a scale is where
#: so many neighbouring bins with so much in each fit best.
QUIET, WINDOW, FILLED = 0.02, 4, 0.15

#: Before anything is seen, coefficients are null with this probability; or they have a variance
#: that explains all, or half, a quarter and so on of what there is, in so many halvings.
NULL, HALVINGS = 0.5, 16

#: A column leaves the model while the fit would be worse by less than this times the squared error
#: of a coefficient; it would be 2 if leaving out a column at random should cost nothing.
WORTH = 3.0

#: How far from 1 a good model's best multiple may lie.
GOOD = 0.3


def high_quantile(counts: np.ndarray, noise: float, edges: np.ndarray, safe: float) -> float:
    """A high quantile of sizes in bins with noise, as a part of the largest size."""
    if noise < QUIET:
        q, shares = QUANTILE, np.where(counts > VISIBLE * noise, counts, 0.0)
    else:
        sums = np.convolve(counts, np.ones(WINDOW))[: len(counts)]
        fits = (FILLED * sums - WINDOW * FILLED**2 / 2) / noise**2
        q, shares = safe, np.exp(fits - fits.max())
    if not shares.sum():
        return 1.0
    below = np.cumsum(shares) / shares.sum()
    return float(edges[min(max(int(np.searchsorted(below, q - 1e-12)), 1), len(edges) - 1)])


def shrunken(values: np.ndarray, noise: np.ndarray, most: float) -> np.ndarray:
    """The mean of coefficients given noisy ones, by a prior over what they explain of `most`."""
    noise = np.maximum(noise, 1e-150)
    variances = most / len(values) * 2.0 ** -np.arange(HALVINGS)
    whole = variances[:, None] + np.square(noise)
    fits = -0.5 * (np.log(whole) + np.square(values) / whole).sum(axis=1)
    null = -0.5 * (2 * np.log(noise) + np.square(values / noise)).sum()
    fits += math.log((1 - NULL) / HALVINGS)
    null += math.log(NULL)
    top = max(float(fits.max()), float(null))
    odds = np.exp(fits - top)
    chances = odds / (odds.sum() + math.exp(null - top))
    return np.asarray(values * (chances @ (variances[:, None] / whole)))


def without_weak_columns(
    w: np.ndarray, matrix: np.ndarray, error: float
) -> tuple[np.ndarray, np.ndarray]:
    """The model nearest to w that has no weak columns, and which columns it has.

    The coefficient of a column is the inner product of w with its column of `matrix`. Errors of w
    are independent and all alike, so to leave out a column is to project w onto what is orthogonal
    to it. The weakest leaves first; then the others are looked at again.
    """
    left, kept = matrix.copy(), np.ones(matrix.shape[1], dtype=bool)
    for _ in range(len(kept)):
        squares = np.square(left).sum(axis=0)
        known = kept & (squares > 1e-20 * squares.max())
        costs = np.where(known, np.square(w @ left) / np.where(known, squares, 1.0), math.inf)
        weakest = int(costs.argmin())
        if not costs[weakest] < WORTH * error**2:
            break
        unit = left[:, weakest] / math.sqrt(squares[weakest])
        w = w - unit * float(unit @ w)
        left -= np.outer(unit, unit @ left)
        kept[weakest] = False
    return w, kept


def part_to_keep(part: float, noise: float) -> float:
    """How much of a model to keep, if its best multiple was found to be `part`.

    The mean, where the model is as likely null as it is good up to a factor near 1.
    """
    null = max(noise, 1e-9) ** 2
    good = null + GOOD**2
    odds = math.sqrt(null / good)
    odds *= math.exp(min((part**2 / null - (part - 1) ** 2 / good) / 2, 50.0))
    return odds / (1 + odds) * max((part * GOOD**2 + null) / good, 0.0)


def best_constant(loss: Loss, slope: float, bound: float) -> tuple[float, float]:
    """The best constant margin for two classes, and the curvature there.

    `slope` is the mean slope at 0.
    """
    targets = np.array(loss.class_targets())
    positive, negative = loss.slope(np.zeros(2), targets)
    part = float(np.clip((slope - negative) / (positive - negative), 1e-3, 1 - 1e-3))
    parts = np.array([part, 1 - part])
    low, high = -bound, bound
    for _ in range(60):
        middle = (low + high) / 2
        rises = float(parts @ loss.slope(np.full(2, middle), targets)) > 0
        low, high = (low, middle) if rises else (middle, high)
    return low, float(parts @ loss.curvature(np.full(2, low), targets))
