"""Logistic and Poisson regression from second moments.

With the canonical link, the likelihood depends on the targets through E[y u] alone; all else in it
is about the rows. So coefficients follow from the estimated moments and from a distribution of the
rows: numbers are taken to be normal, and answers of yes and no, or choices, to be what they are,
with the frequencies that the reports show (`rows_as_reported`). Least squares predicts E[y u] for
such rows, and the coefficients are those for which the model predicts the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, log_expit, ndtri

from riata.local.learners.moments import Covariances, raise_eigenvalues
from riata.local.learners.ridge import Slopes, SpectralFilter
from riata.public import public_normals

if TYPE_CHECKING:
    from riata.local.task import Task

#: No more of the encoded target is taken to be explained by a line.
_MOST_EXPLAINED = 0.6
#: Columns for which rows are drawn; beyond, margins are taken to be normal.
MOST_DRAWN = 512
#: Rarer answers than this are counted as so rare, and no closer relation is believed.
_RAREST, _CLOSEST = 0.002, 0.95
_STEPS, _ENOUGH = 100, 1e-9
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True)
class Family:
    """A distribution of targets: its log-likelihood is y m less a convex function of the margin m.

    Attributes
    ----------
    mean, slope, convex, link : callable
        The mean of y at a margin, its derivative, the convex function whose derivative it is, and
        the margin of a mean.
    least, most : float
        Means beyond are taken for these.
    steepest : float
        Margins of a larger standard deviation are taken for margins of this one.
    variance : callable
        Of y, by its mean.
    """

    mean: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    convex: Callable[[np.ndarray], np.ndarray]
    link: Callable[[float], float]
    least: float
    most: float
    steepest: float
    variance: Callable[[float], float]


FAMILIES = {
    "logistic": Family(
        expit, lambda m: expit(m) * expit(-m), lambda m: -log_expit(-m),
        lambda p: math.log(p / (1.0 - p)), 0.0005, 0.9995, 8.0, lambda p: p * (1.0 - p),
    ),
    "poisson": Family(np.exp, np.exp, np.exp, math.log, 1e-6, math.inf, 1.5, lambda mean: mean),
}  # fmt: skip


@dataclass(frozen=True)
class Canonical:
    """Coefficients and offset of centred rows, and the derivatives of theta by the slopes."""

    theta: np.ndarray
    offset: float
    jacobian: np.ndarray


def canonical(
    family: Family,
    rows: np.ndarray,
    chances: np.ndarray,
    slopes: np.ndarray,
    center: float,
    ridge: float = 1e-6,
) -> Canonical:
    """The model in which least squares finds `slopes`, and targets have the mean `center`.

    Parameters
    ----------
    rows, chances : ndarray
        Centred rows and their probabilities.
    ridge : float
        Pulls margins to 0 that noisy slopes would make infinite.
    """
    center = min(max(center, family.least), family.most)
    second = (rows * chances[:, None]).T @ rows
    second += np.eye(len(second)) * (1e-12 * np.trace(second) + 1e-300)
    wanted, theta, offset = second @ slopes, np.zeros(len(slopes)), family.link(center)
    hessian = second
    for _ in range(_STEPS):
        margins = offset + rows @ theta
        means, weights = chances * family.mean(margins), chances * family.slope(margins)
        total, middle = weights.sum(), rows.T @ weights
        hessian = (rows * weights[:, None]).T @ rows - np.outer(middle, middle) / total
        hessian += ridge * second
        missed, missed_mean = wanted - rows.T @ means, center - means.sum()
        missed = missed - ridge * second @ theta
        step = np.linalg.solve(hessian, missed - middle * (missed_mean / total))
        lift = (missed_mean - middle @ step) / total
        size = math.sqrt(max(step @ second @ step, 0.0) + lift**2)
        short = min(1.0, 1.0 / size) if size > 0 else 1.0
        theta, offset = theta + short * step, offset + short * lift
        steep = math.sqrt(max(theta @ second @ theta, 0.0)) / family.steepest
        if steep >= 1.0:
            theta = theta / steep
            break
        if size <= _ENOUGH:
            break
    return Canonical(theta, float(offset), np.linalg.solve(hessian, second))


def normal_canonical(family: Family, variance: float, center: float) -> tuple[float, float]:
    """Scale and offset for least-squares margins that are normal with this variance."""
    rows = math.sqrt(max(variance, 0.0)) * _NODES[:, None]
    if not rows.any():
        return 0.0, family.link(min(max(center, family.least), family.most))
    found = canonical(family, rows, _WEIGHTS, np.ones(1), center)
    return float(found.theta[0]), found.offset


def canonical_model(
    task: Task, moments: Covariances, slopes: Slopes, normal: bool = False
) -> tuple[np.ndarray, np.ndarray, float]:
    """Coefficients, their mean squared errors and the offset, from those of least squares.

    `normal` says that all columns are, whatever the task says of them.
    """
    family, theta = FAMILIES[task.spec.family], slopes.theta
    unit, middle = target_scale(task)
    center = middle + unit * moments.center
    if not slopes.signal or slopes.filter is None:
        return theta, slopes.variances, normal_canonical(family, 0.0, center)[1]
    rows = None if normal else rows_as_reported(task, moments)
    if rows is None:
        explained = float(np.clip(theta @ moments.gram @ theta, 0.0, 1.0))
        explained = max(explained, float(theta @ moments.cross) / 2.0)

        def scale(variance: float) -> float:
            return unit * normal_canonical(family, unit**2 * variance, center)[0]

        offset = normal_canonical(family, unit**2 * explained, center)[1]
        variances = _normal_variances(moments, slopes.filter, theta, explained, scale)
        return scale(explained) * theta, variances, offset
    # Margins of the size 1 are as likely beforehand as the slopes are noisy: ridge is the part of
    # the target's variance that their errors make.
    squares = slopes.filter.squares(1.0, 1.0)
    errors = float(np.sum((rows @ slopes.filter.vectors) ** 2 @ squares)) / len(rows)
    ridge = unit**2 * errors / family.variance(min(max(center, family.least), family.most))
    chances = np.full(len(rows), 1.0 / len(rows))
    found = canonical(family, rows, chances, unit * theta, center, max(ridge, 1e-6))
    turned = unit * found.jacobian @ slopes.filter.vectors
    return found.theta, turned**2 @ squares, found.offset


def target_scale(task: Task) -> tuple[float, float]:
    """What the encoded target is multiplied by, and added to, to be a count or 0 and 1."""
    assert task.target is not None
    return (0.5, 0.5) if task.spec.logistic else (task.target.reach, task.target.center)


def _normal_variances(
    moments: Covariances,
    spectral: SpectralFilter,
    theta: np.ndarray,
    explained: float,
    scale_of: Callable[[float], float],
) -> np.ndarray:
    """Mean squares of the errors of the coefficients scale * theta of normal rows.

    To first order the error is (a G + 2 a' theta theta') db - (a G + a' theta theta') E theta with
    the noise db of b and E of A: G solves the equation, a is the scale and a' its derivative by
    the explained variance. The terms with a' are added to those that shrinking leaves, whose scale
    is the one of all that could be explained.
    """
    s, t = moments.cross_noise, moments.gram_noise
    possible = explained + spectral.unexplained
    scale = scale_of(explained)
    wanted = scale_of(max(explained, min(possible, _MOST_EXPLAINED)))
    step = 0.01 * explained
    slope = (scale_of(explained + step) - scale) / step
    length = float(theta @ theta)
    both = scale * slope * spectral.apply(theta) * theta
    once = slope**2 * length * theta**2
    extra = 4.0 * s**2 * (both + once) + t**2 * length * (4.0 * both + 2.0 * once)
    return spectral.variances(scale, wanted) + np.maximum(extra, 0.0)


def rows_as_reported(task: Task, moments: Covariances) -> np.ndarray | None:
    """Centred rows like those of the people, or None where they may as well be normal.

    Columns are functions of normal numbers whose correlations are those that the reports show, as
    far as they are not noise.
    """
    features = task.encoding.features
    kinds = np.repeat([f.kind for f in features], [f.columns for f in features])
    two = np.isin(kinds, ["yes-no", "choice"])
    if len(kinds) > MOST_DRAWN or not two.any():
        return None
    unit = math.sqrt(1.0 - task.intercept) / task.encoding.length
    zero, one = (unit * np.concatenate([f.answered(value) for f in features]) for value in (0, 1))
    shares = np.clip((moments.means - zero) / (one - zero), _RAREST, 1.0 - _RAREST)
    variances = np.maximum(np.diag(moments.gram), moments.gram_noise)
    variances = np.where(two, shares * (1.0 - shares) * (one - zero) ** 2, variances)
    # What a column shares with its normal number: all, or for two values the density at the cut.
    cuts = ndtri(1.0 - shares)
    density = np.exp(-0.5 * cuts**2) / math.sqrt(2.0 * math.pi)
    shared = np.where(two, density / np.sqrt(shares * (1.0 - shares)), 1.0)
    normals = _related_normals(moments, variances, shared)
    rows = np.where(two, np.where(normals > cuts, one, zero), normals * np.sqrt(variances))
    return np.asarray(rows - rows.mean(axis=0))


def _related_normals(moments: Covariances, variances: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Rows of normal numbers, the same in each call, related as the columns are."""
    scale = np.sqrt(np.outer(variances, variances))
    related, noise = moments.gram / scale, moments.gram_noise / scale
    related = related**3 / (related**2 + noise**2) / np.outer(shared, shared)
    related = np.clip((related + related.T) / 2.0, -_CLOSEST, _CLOSEST)
    np.fill_diagonal(related, 1.0)
    related = raise_eigenvalues(related, 1e-6)
    related /= np.sqrt(np.outer(np.diag(related), np.diag(related)))
    count = max(1 << 13, min(1 << 15, (1 << 22) // len(shared)))
    normals = public_normals((count, len(shared)), "riata law of rows")
    return normals @ np.linalg.cholesky(related).T
