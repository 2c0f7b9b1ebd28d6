"""Chebyshev expansions of the slopes of generalised linear losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import expit

#: Nodes of the quadrature, far more than any degree that is used.
_NODES = 1024

#: A coefficient below this part of the largest one is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class GeneralisedLinear:
    """A loss -y h1(m) + h2(m) of a margin m, by the slopes of h1 and h2 (Definition 3).

    Attributes
    ----------
    slope1, slope2 : callable
        The derivatives of h1 and h2.
    curvature : callable
        The largest second derivative of the loss over margins up to r and targets in [-1, 1].
    least_target : float
        Targets lie between this and 1.
    odd : bool
        Whether every even power beyond the constant has the coefficient 0.
    """

    slope1: Callable[[np.ndarray], np.ndarray]
    slope2: Callable[[np.ndarray], np.ndarray]
    curvature: Callable[[float], float]
    least_target: float = -1.0
    odd: bool = False

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
