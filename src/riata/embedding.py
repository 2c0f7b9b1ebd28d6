"""What a Gaussian projection keeps: Theorems 3.1 and 3.8 of Kasiviswanathan and Jin (2016).

With explicit constants, for a matrix of independent normal entries with variance 1 / dimension
that is drawn after everything else is fixed. The proofs are in docs/algorithms/projected.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp

from riata.errors import InvalidArgument
from riata.privacy.budget import check_number, check_open_unit

#: No dimension above this is looked for.
_MOST_DIMENSIONS = 2**60


def embedding_failure(dimension: int, width: float, distortion: float) -> float:
    """A bound on the probability that a projection distorts some point of a set (Theorem 3.1).

    That is, of | ||Phi a||^2 - 1 | > distortion for some a of the set.

    Parameters
    ----------
    dimension : int
    width : float
        The Gaussian width E sup <g, a> of the set, all of whose points have length 1. The paper's
        theorem leaves the lengths out and is then false: a small copy of a ball has a small
        width, and some of its points are in the kernel.
    distortion : float
        Between 0 and 1.
    """
    m, gamma = _dimension(dimension), check_open_unit("distortion", distortion)
    width = finite_size("width", width)
    root = math.sqrt(m)
    above = root * (math.sqrt(1 + gamma) - 1) - width
    below = _mean_length(m) - root * math.sqrt(1 - gamma) - width
    if min(above, below) <= 0:
        return 1.0
    return min(1.0, math.exp(-(above**2) / 2) + math.exp(-(below**2) / 2))


def embedding_dimension(width: float, distortion: float, failure: float) -> int:
    """The least dimension whose `embedding_failure` is at most `failure` (Theorem 3.1).

    Parameters
    ----------
    width : float
    distortion, failure : float
        Between 0 and 1.
    """
    allowed = check_open_unit("failure", failure)
    high = 1
    while embedding_failure(high, width, distortion) > allowed:
        high *= 2
        if high > _MOST_DIMENSIONS:
            raise InvalidArgument(
                f"distortion={distortion!r} needs more than {_MOST_DIMENSIONS} dimensions. "
                "Allow a larger distortion."
            )
    low = high // 2  # fails, or is 0
    while high - low > 1:
        middle = (low + high) // 2
        if embedding_failure(middle, width, distortion) > allowed:
            low = middle
        else:
            high = middle
    return high


def margin_distortion(
    dimension: int, width: float, radius: float, n_rows: int, failure: float
) -> float:
    """How far a projection moves the margins of rows of length 1 (Corollary 3.2, Lemma 3.10).

    With probability 1 - failure, | <Phi x, Phi theta> - <x, theta> | is at most this for each of
    `n_rows` fixed rows x and *all* theta of a set at once, also if a projected row that is longer
    than 1 is shortened to 1.

    Parameters
    ----------
    dimension : int
    width : float
        E sup |<g, theta>| over the set, or 0 for one fixed theta.
    radius : float
        The largest length of a point of the set.
    n_rows : int
    failure : float
        Between 0 and 1.
    """
    width, radius = finite_size("width", width), finite_size("radius", radius)
    m = _dimension(dimension)
    s = math.sqrt(2 * math.log(3 * n_rows / check_open_unit("failure", failure)))
    root = math.sqrt(m)
    longest, shortest = 1 + s / root, max(0.0, (_mean_length(m) - s) / root)
    along = max(longest**2 - 1, 1 - shortest**2)
    return longest * (width + radius * s) / root + radius * along


def expected_margin_distortion(dimension: int, width: float, radius: float) -> float:
    """The mean of sup over theta of | <Phi x, Phi theta> - <x, theta> |, for a row of length 1.

    Parameters
    ----------
    dimension : int
    width, radius : float
        As in `margin_distortion`.
    """
    spread = finite_size("width", width) + math.sqrt(2) * finite_size("radius", radius)
    return spread / math.sqrt(_dimension(dimension))


def lift_error(
    dimension: int, width: float, radius: float, failure: float, missed: float = 0.0
) -> float:
    """How far two points of a convex set are apart whose projections agree (Theorem 3.8).

    With probability 1 - failure this holds for all pairs of points of the set, so also for the
    point that was projected and the one that any lift into the set finds.

    Parameters
    ----------
    dimension : int
    width : float
        E sup <g, theta> over the set.
    radius : float
        The largest length of a point of the set.
    failure : float
        Between 0 and 1.
    missed : float, default=0.0
        The largest distance of the two projections, if they agree only nearly.
    """
    width, radius = finite_size("width", width), finite_size("radius", radius)
    m = _dimension(dimension)
    room = _mean_length(m) - math.sqrt(2 * math.log(1 / check_open_unit("failure", failure)))
    if room <= 0:
        return 2 * radius
    return min(2 * radius, (2 * width + finite_size("missed", missed) * math.sqrt(m)) / room)


def psi2_norm(values: ArrayLike, probabilities: ArrayLike | None = None) -> float:
    """The subgaussian norm of a variable with finitely many values (Definition 4).

    The smallest t with E exp(a^2 / t^2) <= 2: sqrt(8 / 3) = 1.63 for a standard normal one.

    Parameters
    ----------
    values : array-like
    probabilities : array-like, optional
        Of the values; all alike if left out.
    """
    squares = np.square(np.atleast_1d(np.asarray(values, dtype=np.float64)))
    weights = np.ones(squares.shape) if probabilities is None else np.asarray(probabilities, float)
    if squares.ndim != 1 or weights.shape != squares.shape or not np.isfinite(squares).all():
        raise InvalidArgument("Pass finite values, and one probability for each.")
    if not (weights.min() >= 0 and 0 < weights.sum() < math.inf):
        raise InvalidArgument("Probabilities must not be negative, and not all of them 0.")
    squares, weights = squares[weights > 0], weights[weights > 0] / weights.sum()
    largest = float(squares.max())
    if largest == 0:
        return 0.0

    def excess(inverse: float) -> float:  # of the mean exponential at 1 / t^2, as a logarithm
        return float(logsumexp(squares * inverse, b=weights)) - math.log(2)

    # One value alone bounds the root: its own probability times the exponential is at most 2.
    high = math.log(2 / float(weights[squares.argmax()])) / largest
    return 1 / math.sqrt(float(brentq(excess, 0.0, high * (1 + 1e-9), xtol=1e-15 / largest)))


def _mean_length(m: int) -> float:
    """E ||g|| for m standard normals."""
    if m > 1e6:  # the logarithms would cancel
        return math.sqrt(m) * (1 - 1 / (4 * m))
    return math.sqrt(2) * math.exp(float(gammaln((m + 1) / 2) - gammaln(m / 2)))


def _dimension(dimension: int) -> int:
    if not check_number("dimension", dimension) >= 1:
        raise InvalidArgument(f"dimension={dimension!r} must be at least 1.")
    return int(dimension)


def finite_size(name: str, value: float) -> float:
    number = check_number(name, value)
    if not 0 <= number < math.inf:
        raise InvalidArgument(f"{name}={value!r} must be a finite number that is not negative.")
    return number


__all__ = [
    "embedding_dimension",
    "embedding_failure",
    "expected_margin_distortion",
    "lift_error",
    "margin_distortion",
    "psi2_norm",
]
