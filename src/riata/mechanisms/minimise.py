"""The minimiser of a smooth, strongly convex function over a convex set, to a certified error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from riata.vectors import length

Map = Callable[[np.ndarray], np.ndarray]

#: How many steps each quick method may take before the sure one begins, ...
QUICK_STEPS = 2000

#: ... the first one without coming nearer; and how many steps the second one remembers, and how
#: many it takes without coming nearer before it forgets them.
_STALLED = 150
_REMEMBERED = 30
_PATIENCE = 5

#: The sure method halves its error at least every 1.4 / sqrt(modulus / smoothness) steps, and is
#: given the time for this many halvings: from the largest float64 to the smallest.
_SURE_HALVINGS = 3000
_BETWEEN_CHECKS = 50


@dataclass(frozen=True)
class Objective:
    """What is minimised: the gradient, the projection onto the set, and how curved it is."""

    gradient: Map
    project: Map
    modulus: float  # bounds on the curvature from below and above, in every direction
    smoothness: float
    #: The projection once more, where it takes longer to be sure of it: None if it cannot be.
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
    """A point whose residual is at most `tolerance`: by quick methods, else by a sure one."""
    theta, found = start, False
    for quick in (_spectral, _mixed):
        if not found:
            theta, found = quick(objective, theta, tolerance)
    return theta if found else _accelerated(objective, theta, tolerance)


def _spectral(objective: Objective, theta: np.ndarray, tolerance: float) -> tuple[np.ndarray, bool]:
    """Projected gradient with the step of Barzilai and Borwein (1988): quick, and nearly always."""
    gradient, rate = objective.gradient(theta), 1 / objective.smoothness
    aim, nearest, since, best = tolerance, math.inf, 0, theta
    for _ in range(QUICK_STEPS):
        step = objective.project(theta - rate * gradient) - theta
        before = gradient
        theta = theta + step
        gradient = objective.gradient(theta)
        change = gradient - before
        off = length(change - step / rate)
        nearest, since, best = (off, 0, theta) if off < nearest else (nearest, since + 1, best)
        if since > _STALLED:  # it may turn in circles where slopes have corners
            break
        if off <= aim:
            s, rest = objective.residual(theta, gradient)
            if rest <= tolerance:
                return s, True
            aim /= 4
        curved = float(step @ change)
        if curved <= 0:
            break
        rate = float(np.clip(step @ step / curved, 1 / objective.smoothness, 1 / objective.modulus))
    return best, False


def _mixed(objective: Objective, theta: np.ndarray, tolerance: float) -> tuple[np.ndarray, bool]:
    """Projected gradient, its last steps mixed so that they nearly cancel (Anderson 1965).

    Where the objective is quadratic, as between the corners of slopes, it is as quick as conjugate
    gradients.
    """
    smooth, aim, nearest, since = objective.smoothness / 256, tolerance, math.inf, 0
    points: list[np.ndarray] = []
    steps: list[np.ndarray] = []
    gradient = objective.gradient(theta)
    best = theta, gradient
    for _ in range(QUICK_STEPS):
        while True:  # the curvature that there is, if it is less than the largest
            moved = objective.project(theta - gradient / smooth)
            step, ahead = moved - theta, objective.gradient(moved)
            if (ahead - gradient) @ step <= smooth * (step @ step) or (
                smooth >= objective.smoothness
            ):
                break
            smooth, points, steps = 2 * smooth, [], []
        off = length(ahead - gradient - smooth * step)
        if off <= aim:
            s, rest = objective.residual(moved, ahead)
            if rest <= tolerance:
                return s, True
            aim /= 4
        nearest, since = (off, 0) if off < nearest else (nearest, since + 1)
        if since == 0:
            best = moved, ahead
        elif since >= _PATIENCE or off > 100 * nearest:
            (theta, gradient), points, steps, since = best, [], [], 0
            continue
        points, steps = [*points, theta][-_REMEMBERED:], [*steps, step][-_REMEMBERED:]
        theta, gradient = moved, ahead
        if len(steps) > 1:
            changes, ways = np.diff(steps, axis=0).T, np.diff(points, axis=0).T
            shares = np.linalg.lstsq(changes, step, rcond=1e-10)[0]
            theta = objective.project(moved - (ways + changes) @ shares)
            gradient = objective.gradient(theta)
    return best[0], False


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
