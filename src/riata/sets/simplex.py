from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.sets.coordinate import CoordinatePolytope
from riata.sets.lift.equations import Equations
from riata.sets.lift.linear import fewest
from riata.vectors import Vector


@dataclass(frozen=True)
class Simplex(CoordinatePolytope):
    """All theta >= 0 whose coordinates sum to `radius`: mixtures, portfolios, topic weights.

    Parameters
    ----------
    radius : float, default=1.0
    n_features : int, optional
        The dimension, if it is already known.
    """

    radius: float = 1.0
    n_features: int | None = None

    def start(self) -> Vector:
        return self.vertex(0)

    @property
    def n_vertices(self) -> int:
        return self.required_size()

    def vertex(self, index: int) -> Vector:
        return Vector.unit(self.required_size(), index, self.radius)

    def project(self, v: np.ndarray) -> np.ndarray:
        return project_simplex(np.asarray(v, dtype=np.float64), self.radius)

    def minkowski_norm(self, v: np.ndarray) -> float:
        return float(v.sum() / self.radius) if np.all(v >= 0) else np.inf

    def contains(self, v: np.ndarray, tolerance: float = 1e-9) -> bool:
        slack = tolerance * self.radius
        return bool(np.all(v >= -slack) and abs(v.sum() - self.radius) <= slack * max(1, len(v)))

    def smallest(self, equations: Equations) -> np.ndarray | None:
        return fewest(equations, signed=False)

    def promise(self, gradient: np.ndarray) -> np.ndarray:
        return -gradient


#: Newton's method for the level ends after a few rounds; rounding could make it turn in a circle.
_MOST_ROUNDS = 50


def project_simplex(v: np.ndarray, radius: float) -> np.ndarray:
    """The nearest non-negative vector whose sum is `radius` (Held, Wolfe and Crowder 1974)."""
    v = v - v.max()  # changes nothing but the rounding of points far away
    descending = np.sort(v)[::-1]
    excess = np.cumsum(descending) - radius
    counts = np.arange(1, len(v) + 1)
    last = int(np.flatnonzero(descending * counts > excess)[-1])
    active, level = last + 1, 0.0
    for _ in range(_MOST_ROUNDS):  # again, with sums in pairs: their rounding hardly grows
        level = (descending[:active].sum() - radius) / active
        above = int(np.searchsorted(-descending, -level))
        if above == active:
            break
        active = max(above, 1)
    return np.maximum(v - level, 0.0)
