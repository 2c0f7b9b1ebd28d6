"""Least squares over any convex set, and the smallest multiple of a set that reaches a point."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from riata.sets.base import ConstraintSet

#: The minimum is found to this part of the objective's scale.
_TOLERANCE = 1e-10
_MOST_STEPS = 20_000
#: Halvings of the interval that holds the smallest multiple.
_HALVINGS = 40


@dataclass(frozen=True)
class Multiple:
    """`factor` times a set."""

    constraint: ConstraintSet
    factor: float = 1.0

    def project(self, v: np.ndarray) -> np.ndarray:
        return self.factor * self.constraint.project(v / self.factor)

    def least(self, gradient: np.ndarray) -> float:
        """The smallest <s, gradient> over points s."""
        return self.factor * float(self.constraint.minimiser(gradient).dense() @ gradient)

    @property
    def reach(self) -> float:
        return self.factor * self.constraint.radius_in("l2")


def minimize_over(
    gradient: Callable[[np.ndarray], np.ndarray],
    curvature: float,
    over: Multiple,
    n_features: int,
    tolerance: float = _TOLERANCE,
) -> np.ndarray:
    """The minimum of a convex quadratic over a set, by accelerated projected gradients.

    Beck and Teboulle (2009), restarted where the momentum points uphill. It stops when the
    Frank-Wolfe gap, which bounds the excess of the objective, is small.
    """
    w = over.project(np.zeros(n_features))
    if curvature == 0:
        curvature = 1.0
    ahead, momentum = w, 1.0
    for _ in range(_MOST_STEPS):
        slope = gradient(ahead)
        moved = over.project(ahead - slope / curvature)
        if (ahead - moved) @ (moved - w) > 0:
            ahead, momentum = w, 1.0
            continue
        faster = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / faster * (moved - w)
        w, momentum = moved, faster
        slope = gradient(w)
        least = over.least(slope)
        scale = max(abs(least), curvature * over.reach**2)
        if float(slope @ w) - least <= tolerance * scale:
            break
    return w


def smallest_gauge(
    G: np.ndarray, u: np.ndarray, slack: float, constraint: ConstraintSet
) -> np.ndarray:
    """About the z with the smallest Minkowski norm such that ||G z - u||_1 <= slack: program (4).

    For each multiple of the set the z with the smallest ||G z - u||_2 is asked, and the interval
    that holds the smallest multiple is halved. What it returns satisfies the constraint, unless no
    multiple that a point of length ||u||_1 needs does.
    """
    curvature = float(np.linalg.norm(G, 2)) ** 2
    inner = constraint.radius_in("l2")

    def nearest(factor: float) -> np.ndarray:
        over = Multiple(constraint, factor)
        return minimize_over(lambda z: G.T @ (G @ z - u), curvature, over, G.shape[1], 1e-7)

    def reached(z: np.ndarray) -> bool:
        return float(np.abs(G @ z - u).sum()) <= slack

    high = max(float(np.abs(u).sum()), 1e-12) / inner
    best = nearest(high)
    for _ in range(20):
        if reached(best):
            break
        high *= 2.0
        best = nearest(high)
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        z = nearest(middle)
        if reached(z):
            high, best = middle, z
        else:
            low = middle
        if high - low <= 1e-4 * high:
            break
    return best


def largest_curvature(gradient: Callable[[np.ndarray], np.ndarray], b: np.ndarray) -> float:
    """The largest eigenvalue of the curvature, a little more, by power iteration."""
    v = np.cos(np.arange(1, len(b) + 1))  # any vector that is orthogonal to nothing in particular
    value = 0.0
    for _ in range(200):
        v = v / np.linalg.norm(v)
        image = gradient(v) + b
        previous, value = value, float(np.linalg.norm(image))
        if value == 0 or abs(value - previous) <= 1e-6 * value:
            break
        v = image
    return 1.02 * value
