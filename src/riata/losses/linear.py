from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.losses.base import Loss


@dataclass(frozen=True)
class Linear(Loss):
    """The straight loss -y * margin: its risk is -<theta, mean of y x>.

    Its minimiser over a set is the vertex, or the boundary point, that agrees most with the mean of
    y x, as in the lower bounds for private optimisation. Values may be negative, an intercept has
    no minimum (fit without one), and solvers that need a positive curvature refuse it.
    """

    name = "linear"
    twice_differentiable = True

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * margin

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * np.ones_like(margin)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.zeros(np.broadcast_shapes(np.shape(margin), np.shape(y)))

    def slope_bound(self, margin: float, y: float) -> float:
        return y

    def curvature_bound(self, y: float) -> float:
        return 0.0

    def offset_bound(self, y: float) -> float:
        return y
