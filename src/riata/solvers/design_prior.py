"""What a release about labels says about coefficients, with the prior that fits it best.

Everything here is made of public rows and of releases, and costs nothing. A release is H w + error,
with H known. The prior of the coefficients of columns is normal, and its size is the one under
which the release is most likely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

#: Prior standard deviations of coefficients, in units of the columns' bounds, fall with one of
#: these powers of the columns' own standard deviations.
POWERS = (0.0, 0.5, 1.0)

#: The variance of margins under a prior, in units of what targets vary by as margins: the variance
#: of slopes at first over the square of the curvature. For classes the largest is a standard
#: deviation of 4, in log odds.
SIZES = 4.0 ** np.arange(-4, 2)

#: The variance of the intercept, in the same unit.
OF_INTERCEPT = 4.0

#: That of a coefficient of an unpenalized column, in units of the column's standard deviation: with
#: none at all there is no estimate where two columns are the same.
WIDE = 1e6

#: The whitening is the one, of these floors under eigenvalues (as parts of the largest one), with
#: the smallest expected error. The largest leaves rows nearly as they are.
FLOORS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3)

#: Standard deviations count as at least this part of the largest.
_LEAST_SPREAD = 1e-3

_TINY = 1e-300


@dataclass(frozen=True)
class Coordinates:
    """Coordinates w of models: the coefficients of columns are ``matrix.T @ w``.

    Attributes
    ----------
    matrix : ndarray
        From rows to their coordinates.
    back : ndarray
        From coefficients of columns to w: the inverse of the transpose.
    spreads : ndarray
        The standard deviation of each column.
    length : float
        The root of the mean squared length of rows.
    """

    matrix: np.ndarray
    back: np.ndarray
    spreads: np.ndarray
    length: float


def coordinates(covariance: np.ndarray, noise: float, slopes: float, n_rows: int) -> Coordinates:
    """The coordinates in which noise on label sums costs least, if nothing is known of a model.

    Columns are divided by the root of their standard deviation, half way between their bounds,
    which may be far too wide, and their standard deviations, with which rare columns make long
    rows.

    Parameters
    ----------
    covariance : ndarray of shape (n_columns, n_columns)
        Of the rows.
    noise : float
        The standard deviation of the noise for rows of length 1.
    slopes : float
        The variance of slopes, a quarter of which is taken to be explained by rows.
    n_rows : int
    """
    spreads = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
    spreads = np.maximum(spreads, _LEAST_SPREAD * float(spreads.max(initial=0.0)) or 1.0)
    units = 1 / np.sqrt(spreads)
    values, vectors = np.linalg.eigh(covariance * units[:, None] * units)
    values = np.maximum(values, 0.0)
    top = float(values.max(initial=0.0)) or 1.0
    size = float(values.sum()) or 1.0
    best = (math.inf, top)
    for part in FLOORS:
        lifted = values + part * top
        length = math.sqrt(float((values / lifted).sum())) or 1.0
        errors = (noise * length) ** 2 * lifted + slopes / n_rows * values
        signal = values**2 * (slopes / 4 / size)
        risk = float((values * errors / np.maximum(signal + errors, _TINY)).sum())
        best = min(best, (risk, part * top))
    roots = np.sqrt(values + best[1])
    length = math.sqrt(float((values / roots**2).sum())) or 1.0
    matrix, back = vectors.T / roots[:, None] * units, (vectors * roots).T / units
    return Coordinates(matrix, back, spreads, length)


@dataclass(frozen=True)
class Estimate:
    """What is known of the coefficients w after a release.

    Attributes
    ----------
    mean, covariance : ndarray
    pull : ndarray
        From an error of the release to the gradient of the likelihood in w.
    precision : ndarray
        Of the prior.
    """

    mean: np.ndarray
    covariance: np.ndarray
    pull: np.ndarray
    precision: np.ndarray


def estimate(
    released: np.ndarray, response: np.ndarray, error: np.ndarray, space: Coordinates,
    curvature: float, unit: float, unpenalized: tuple[int, ...] = (),
) -> Estimate:  # fmt: skip
    """The best guess about w, given `released` = `response` @ w + error.

    Parameters
    ----------
    released : ndarray of shape (size,)
    response : ndarray of shape (size, size)
        The curvature times the second moment of rows; the last row may be that of an intercept.
    error : ndarray of shape (size, size)
        The covariance of the error.
    space : Coordinates
    curvature : float
        The mean curvature of the loss.
    unit : float
        What targets vary by, as margins.
    unpenalized : tuple of int
        Columns whose coefficients have a prior so wide that it pulls nothing. While the size of the
        others' is looked for they have one as wide as the intercept's.
    """
    size, many = len(released), len(space.matrix)
    best, chosen = -math.inf, (0.0, 0.0)
    penalized = np.ones(len(space.spreads), dtype=bool)
    penalized[list(unpenalized)] = False
    back, spreads = space.back[:, penalized], space.spreads[penalized]
    alone = response[:, :many] @ (space.back[:, ~penalized] / space.spreads[~penalized])
    free = OF_INTERCEPT * unit * (response[:, many:] @ response[many:] + alone @ alone.T)
    for power in POWERS:
        shape = np.zeros((size, size))
        shape[:many, :many] = (back * spreads ** (-2 * power)) @ back.T
        explained = float((shape * response).sum()) / curvature or 1.0
        between = response @ shape @ response
        scores = np.array(
            [_evidence(released, s * unit / explained * between + free + error) for s in SIZES]
        )
        odds = np.exp(scores - scores.max())
        if scores.max() + math.log(odds.sum()) > best:
            best = float(scores.max()) + math.log(odds.sum())
            likely = math.exp(float(odds @ np.log(SIZES)) / float(odds.sum()))
            chosen = power, likely * unit / explained
    power, scale = chosen
    precision = np.zeros((size, size))
    inside = space.matrix * np.where(penalized, space.spreads ** (2 * power), 0.0)
    inside = inside @ space.matrix.T
    precision[:many, :many] = inside / max(scale, _TINY)
    if len(unpenalized):
        free_columns = space.matrix * np.where(penalized, 0.0, space.spreads**2)
        precision[:many, :many] += free_columns @ space.matrix.T / max(WIDE * unit, _TINY)
    precision[many:, many:] = np.eye(size - many) / (OF_INTERCEPT * unit)
    pull = np.linalg.solve(error, response).T
    covariance = np.linalg.inv(pull @ response + precision)
    return Estimate(covariance @ (pull @ released), covariance, pull, precision)


def _evidence(released: np.ndarray, covariance: np.ndarray) -> float:
    """How likely a release is under a normal distribution, as a logarithm, up to a constant."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, _TINY)
    return float(-0.5 * np.sum((vectors.T @ released) ** 2 / values + np.log(values)))
