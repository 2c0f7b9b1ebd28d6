"""Chebyshev expansions of the slopes of generalised linear losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

from riata.arguments import check_positive
from riata.errors import InvalidArgument

#: Nodes of the quadrature, far more than any degree that is used.
_NODES = 1024

#: The degree of the polynomials that h1 and h2 are taken for, and the largest that is searched.
_INTERPOLATED, MOST_DEGREE = 120, 60

#: A coefficient below this part of the largest one is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class GeneralisedLinear:
    """A loss -y h1(m) + h2(m) of a margin m, by the slopes of h1 and h2 (Definition 3).

    Attributes
    ----------
    slope1, slope2 : callable
        The derivatives of h1 and h2, of an array of margins.
    curvature : callable, optional
        The largest second derivative of the loss over margins up to r and targets in [-1, 1]. Found
        from the slopes where it is left out.
    least_target : float
        Targets lie between this and 1.
    odd : bool
        Whether every even power beyond the constant has the coefficient 0.
    """

    slope1: Callable[[np.ndarray], np.ndarray]
    slope2: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[float], float] | None = None
    least_target: float = -1.0
    odd: bool = False

    @classmethod
    def from_functions(
        cls,
        h1: Callable[[np.ndarray], np.ndarray],
        h2: Callable[[np.ndarray], np.ndarray],
        largest: float,
        **more: Any,
    ) -> GeneralisedLinear:
        """From h1 and h2 themselves, smooth up to the margin `largest`, which radii must not pass.

        Their derivatives are those of interpolating polynomials of degree 120.
        """

        def slope(h: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
            found = chebyshev.Chebyshev.interpolate(h, _INTERPOLATED, [-largest, largest])
            return found.deriv()

        return cls(slope(h1), slope(h2), **more)

    def smoothness(self, radius: float) -> float:
        """The largest second derivative of the loss over margins up to `radius`."""
        if self.curvature is not None:
            return self.curvature(radius)
        margins = np.linspace(-radius, radius, 2001)
        return float(
            sum(
                np.abs(np.gradient(np.asarray(slope(margins), float), margins)).max()
                for slope in (self.slope1, self.slope2)
            )
        )

    def degree(self, radius: float, alpha: float) -> int:
        """The smallest degree whose expansions are off by at most `alpha`: Lemma 8, exactly.

        The slope of the loss is then off by at most 2 alpha, for targets in [-1, 1].
        """
        grid = np.cos(np.linspace(0, np.pi, 2001))
        for degree in range(1, MOST_DEGREE + 1):
            off = max(_off(slope, radius, degree, grid) for slope in (self.slope1, self.slope2))
            if off <= alpha and not (self.odd and degree % 2 == 0):
                return degree
        raise InvalidArgument(
            f"No degree up to {MOST_DEGREE} follows the slopes of this loss to {alpha:g} at the "
            f"radius {radius:g}: they are not smooth enough. Pass a larger alpha."
        )

    def coefficients(self, radius: float, degree: int) -> tuple[np.ndarray, np.ndarray]:
        """c_1k and c_2k: of the powers of t in the expansions of h1'(r t) and h2'(r t)."""
        c1 = power_coefficients(lambda t: self.slope1(radius * t), degree)
        c2 = power_coefficients(lambda t: self.slope2(radius * t), degree)
        return c1, c2


def _ones(m: np.ndarray) -> np.ndarray:
    return np.ones_like(m)


LOSSES = {
    # log(1 + exp(-y m)) for y = -1 or 1: h1 = m / 2, and h2' = sigmoid(m) - 1/2 is odd
    "logistic": GeneralisedLinear(
        lambda m: np.full_like(m, 0.5), lambda m: expit(m) - 0.5, lambda r: 0.25, odd=True
    ),
    # (m - y)^2 / 2: of degree 1, so nothing is approximated
    "squared": GeneralisedLinear(_ones, lambda m: np.asarray(m, float), lambda r: 1.0),
    # exp(m) - y m for y in [0, 1]: a Poisson mean with the canonical link, at most exp(r)
    "poisson": GeneralisedLinear(_ones, np.exp, lambda r: float(np.exp(r)), least_target=0.0),
}


def _off(
    slope: Callable[[np.ndarray], np.ndarray], radius: float, degree: int, grid: np.ndarray
) -> float:
    """How far the expansion of slope(radius t) is off, on a grid."""
    a = chebyshev_coefficients(lambda t: slope(radius * t), degree)
    a[0] /= 2
    return float(np.abs(chebyshev.chebval(grid, a) - slope(radius * grid)).max())


def chebyshev_coefficients(f: Callable[[np.ndarray], np.ndarray], degree: int) -> np.ndarray:
    """a_0, ..., a_p: (2 / pi) times the integrals of f T_k / sqrt(1 - t^2) over [-1, 1]."""
    angles = (np.arange(_NODES) + 0.5) * np.pi / _NODES
    values = f(np.cos(angles))
    cosines = np.cos(np.arange(degree + 1)[:, None] * angles)
    return cosines @ values * (2 / _NODES)


def power_coefficients(f: Callable[[np.ndarray], np.ndarray], degree: int) -> np.ndarray:
    """The expansion a_0 / 2 + a_1 T_1 + ... + a_p T_p as coefficients of 1, t, ..., t^p."""
    a = chebyshev_coefficients(f, degree)
    a[0] /= 2
    a[np.abs(a) < _ROUNDING * np.abs(a).max()] = 0.0
    powers = chebyshev.cheb2poly(a)
    return np.pad(powers, (0, degree + 1 - len(powers)))


def degree_by_lemma_8(alpha: float, radius: float, c: float = 1.0) -> int:
    """Lemma 8 for the logistic loss: ceil(k + e mu2(k; r)), k = c ln(1 / alpha), mu2 = r k / e."""
    alpha = check_positive("alpha", alpha, "it is an error below 1", 1.0)
    radius = check_positive("radius", radius, "it bounds the coefficients")
    k = check_positive("c", c, "it is a constant of the lemma") * math.log(1 / alpha)
    return max(1, math.ceil(k + radius * k))


def log_people_by_theorem_6(alpha: float, epsilon: float, radius: float, c: float = 1.0) -> float:
    """The natural logarithm of the number of people in Theorems 5 and 6, with the constant 1.

    (8r/alpha)^(4r ln ln(8r/alpha)) (4r/epsilon)^(2cr ln(8r/alpha) + 2) / (alpha epsilon)^2.
    """
    alpha = check_positive("alpha", alpha, "it is the excess of the loss", 2.0)
    epsilon = check_positive("epsilon", epsilon, "it is the budget of a device")
    radius = check_positive("radius", radius, "it bounds the coefficients")
    if 8 * radius / alpha <= math.e:
        raise InvalidArgument(
            f"alpha={alpha:g} is not below 8 radius / e = {8 * radius / math.e:.4g}, where the "
            "theorem's iterated logarithm begins. Pass a smaller alpha."
        )
    ratio = math.log(8 * radius / alpha)
    first = 4 * radius * math.log(ratio) * ratio
    second = (2 * c * radius * ratio + 2) * math.log(4 * radius / epsilon)
    return first + second - 2 * math.log(alpha * epsilon)
