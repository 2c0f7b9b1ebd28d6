"""The minimiser of a smooth, strongly convex function over a convex set, to a certified error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from riata.vectors import length

Map = Callable[[np.ndarray], np.ndarray]

#: How many steps the quick method may take before the sure one begins.
QUICK_STEPS = 2000

#: The sure method halves its error at least every 1.4 / sqrt(modulus / smoothness) steps, and is
#: given the time for this many halvings: from the largest float64 to the smallest.
_SURE_HALVINGS = 3000
_BETWEEN_CHECKS = 50


@dataclass(frozen=True)
class Objective:
    """What is minimised: the gradient, the projection onto the set, and how curved it is.

    Attributes
    ----------
    gradient, project : callable
    modulus, smoothness : float
        Bounds on the curvature from below and above, in every direction.
    certified : callable, optional
        The projection once more, where it takes longer to be sure of it: None if it cannot be.
    """

    gradient: Map
    project: Map
    modulus: float
    smoothness: float
    certified: Callable[[np.ndarray], np.ndarray | None] | None = None

    def residual(self, theta: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, float]:
        """A point near theta, and the length of its smallest known subgradient.

        With s = project(theta - gradient(theta) / L), the vector L (theta - s) + gradient(s) -
        gradient(theta) is a gradient at s plus a normal of the set at s. The exact minimiser is no
        further from s than its length over the modulus.
        """
        s = (self.certified or self.project)(theta - gradient / self.smoothness)
        if s is None:
            return theta, math.inf
        rest = self.smoothness * (theta - s) + self.gradient(s) - gradient
        return s, length(rest)


def minimise(objective: Objective, start: np.ndarray, tolerance: float) -> np.ndarray:
    """A point whose residual is at most `tolerance`: by a quick method, else by a sure one."""
    theta, found = _spectral(objective, start, tolerance)
    return theta if found else _accelerated(objective, theta, tolerance)


def _spectral(objective: Objective, theta: np.ndarray, tolerance: float) -> tuple[np.ndarray, bool]:
    """Projected gradient with the step of Barzilai and Borwein (1988): quick, and nearly always."""
    gradient, rate = objective.gradient(theta), 1 / objective.smoothness
    aim = tolerance
    for _ in range(QUICK_STEPS):
        step = objective.project(theta - rate * gradient) - theta
        before = gradient
        theta = theta + step
        gradient = objective.gradient(theta)
        change = gradient - before
        if length(change - step / rate) <= aim:
            s, rest = objective.residual(theta, gradient)
            if rest <= tolerance:
                return s, True
            aim /= 4
        curved = float(step @ change)
        if curved <= 0:
            break
        rate = float(np.clip(step @ step / curved, 1 / objective.smoothness, 1 / objective.modulus))
    return theta, False


def _accelerated(objective: Objective, theta: np.ndarray, tolerance: float) -> np.ndarray:
    """Nesterov's method (2004, 2.2.63) with public constants: reaches every tolerance in time."""
    root = math.sqrt(objective.modulus / objective.smoothness)
    momentum = (1 - root) / (1 + root)
    ahead = theta
    for _ in range(math.ceil(_SURE_HALVINGS / (root * _BETWEEN_CHECKS))):
        for _ in range(_BETWEEN_CHECKS):
            moved = objective.project(ahead - objective.gradient(ahead) / objective.smoothness)
            ahead, theta = moved + momentum * (moved - theta), moved
        s, rest = objective.residual(theta, objective.gradient(theta))
        if rest <= tolerance:
            return s
    return objective.project(np.zeros_like(theta))  # cannot be: but what is public tells nothing
