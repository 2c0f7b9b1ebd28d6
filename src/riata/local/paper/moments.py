"""Second moments of noisy reports: sums, debiasing, and what is drawn in their place for huge n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaincinv, ndtri

from riata.arguments import check_whole
from riata.errors import InvalidArgument
from riata.local.paper.private_vector import PrivateVector
from riata.mechanisms.additive import NormalDraws
from riata.mechanisms.exact import Uniforms
from riata.mechanisms.noise import Noise

#: Degrees of freedom from which a chi-square distribution is taken for a cubed normal one.
_MANY = 10**6


@dataclass(frozen=True, eq=False)
class Reports:
    """What devices send in Algorithms 3 and 4: of one person, or of many in rows.

    Attributes
    ----------
    z : ndarray of shape (width,) or (n, width)
        Private vectors of the features.
    v : float or ndarray of shape (n,)
        Private targets.
    """

    z: np.ndarray
    v: np.ndarray


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over people: all that Algorithms 3 and 4 need of the reports.

    Attributes
    ----------
    n : int
        The number of people.
    gram : ndarray of shape (width, width)
        Z' Z.
    cross : ndarray of shape (width,)
        Z' v.
    """

    n: int
    gram: np.ndarray
    cross: np.ndarray

    @classmethod
    def of(cls, reports: Reports) -> Moments:
        z, v = np.atleast_2d(reports.z), np.atleast_1d(reports.v)
        if z.ndim != 2 or v.shape != (len(z),):
            raise InvalidArgument(
                f"The reports have shapes {z.shape} and {v.shape}: each person sends one vector "
                "and one number. Pass as many of one as of the other."
            )
        return cls(len(z), z.T @ z, z.T @ v)

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.gram + other.gram, self.cross + other.cross)

    def debiased(self, variance: float) -> np.ndarray:
        """Z' Z - n sigma^2 I, with the variance that the reports really have: unbiased for X' X."""
        return self.gram - self.n * variance * np.eye(len(self.gram))


def simulated_moments(
    n: int,
    second: Any,
    cross: Any,
    target_second: float,
    vector: PrivateVector,
    target: PrivateVector,
    noise: Noise,
) -> Moments:
    """The sums over `n` people, drawn at once: Algorithm 3 for 10^9 people in milliseconds.

    Let B be the matrix of inner products of the columns of [X y], as the devices have clipped
    them. With normal noise, [Z v]' [Z v] depends on the rows through B alone, and its distribution
    is a non-central Wishart distribution: for a square standard normal matrix G, a Wishart matrix W
    with n less its width degrees of freedom, and D the diagonal of the standard deviations,

        (B^(1/2) + G D)' (B^(1/2) + G D) + D W D .

    This is drawn, with B equal to `n` times the given moments. So it is exact for rows whose own
    moments are the given ones. Rows that are themselves a sample add to each entry of the Gram a
    variance of at most n, where the noise adds n sigma^4.

    Parameters
    ----------
    n : int
        The number of people: more than there are columns, up to 10^12.
    second : ndarray of shape (width, width)
        The mean of x x' over people, after projecting and clipping.
    cross : ndarray of shape (width,)
        The mean of y x.
    target_second : float
        The mean of y^2.
    vector, target : PrivateVector
        How x and y are sent.
    noise : Noise
        A source of random words.

    Notes
    -----
    The distribution of rounding to the grid enters by its variance.
    """
    second, cross = check_moments(second, cross)
    n, width = check_whole("n_users", n, "it is the number of people"), len(cross) + 1
    if n <= width:
        raise InvalidArgument(
            f"n={n!r} must exceed the {width} columns of x and y together: with fewer people the "
            "reports themselves are as quick. Use the learner's fit."
        )
    joint = n * np.block([[second, cross[:, None]], [cross[None, :], np.array([[target_second]])]])
    values, vectors = np.linalg.eigh((joint + joint.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    sd = np.r_[np.full(width - 1, vector.variance), target.variance] ** 0.5
    moved = root + NormalDraws(width**2, noise).values.reshape(width, width) * sd
    factor = _bartlett(n - width, width, noise) * sd
    total = moved.T @ moved + factor.T @ factor
    return Moments(n, total[:-1, :-1], total[:-1, -1])


def check_moments(second: Any, cross: Any) -> tuple[np.ndarray, np.ndarray]:
    """The means of x x' and of y x, of matching sizes."""
    second, cross = np.asarray(second, np.float64), np.asarray(cross, np.float64)
    if cross.ndim != 1 or second.shape != (len(cross), len(cross)):
        raise InvalidArgument(
            f"second has shape {second.shape} and cross {cross.shape}: they are the means of "
            "x x' and y x. Pass a square matrix and a vector of the same size."
        )
    return second, cross


def _bartlett(freedom: int, width: int, noise: Noise) -> np.ndarray:
    """A triangular A such that A' A has the standard Wishart distribution (Bartlett 1933)."""
    upper = np.triu(NormalDraws(width**2, noise).values.reshape(width, width), 1)
    squares = _chi_squares(freedom - np.arange(width), Uniforms(width, noise).middle())
    return upper + np.diag(np.sqrt(squares))


def _chi_squares(degrees: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Quantiles of chi-square distributions, to 2e-6 standard deviations."""
    if degrees.min() < _MANY:
        return 2 * gammaincinv(degrees / 2, u)
    # Wilson and Hilferty (1931); SciPy's inverse is wrong in the tails of so many degrees.
    width = 2 / (9 * degrees)
    return degrees * (1 - width + ndtri(u) * np.sqrt(width)) ** 3
