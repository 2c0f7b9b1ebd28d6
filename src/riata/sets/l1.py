from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.sets.coordinate import CoordinatePolytope
from riata.sets.lift.equations import Equations
from riata.sets.lift.linear import fewest
from riata.sets.simplex import project_simplex
from riata.vectors import Vector


@dataclass(frozen=True)
class L1Ball(CoordinatePolytope):
    """All theta with ||theta||_1 <= radius: the LASSO's set.

    Its 2p vertices are never written down: vertex j is ``radius * e_j`` and vertex p + j its
    negative.

    Parameters
    ----------
    radius : float, default=1.0
    n_features : int, optional
        The dimension, if it is already known.
    """

    radius: float = 1.0
    n_features: int | None = None

    symmetric: ClassVar[bool] = True
    supports_refit: ClassVar[bool] = True

    @property
    def n_vertices(self) -> int:
        return 2 * self.required_size()

    def vertex(self, index: int) -> Vector:
        size = self.required_size()
        sign = 1.0 if index < size else -1.0
        return Vector.unit(size, index % size, sign * self.radius)

    def project(self, v: np.ndarray) -> np.ndarray:
        size = np.abs(v)
        if size.sum() <= self.radius:
            return np.array(v, dtype=np.float64)
        return np.sign(v) * project_simplex(size, self.radius)

    def minkowski_norm(self, v: np.ndarray) -> float:
        return float(np.abs(v).sum() / self.radius)

    def smallest(self, equations: Equations) -> np.ndarray | None:
        return fewest(equations, signed=True)

    def promise(self, gradient: np.ndarray) -> np.ndarray:
        return np.abs(gradient)
