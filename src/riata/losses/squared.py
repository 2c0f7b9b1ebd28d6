from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.losses.base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    """(margin - y)^2, without a factor 1/2: the LASSO's loss as Talwar et al. (2015) write it."""

    name = "squared"
    twice_differentiable = True
    least_squares = True
    canonical_link = True

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (margin - y) ** 2

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 2 * (margin - y)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.full(np.shape(margin), 2.0)

    def slope_bound(self, margin: float, y: float) -> float:
        return 2 * (margin + y)

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        return 2 * (margin - y), 2 * (margin + y)

    def curvature_bound(self, y: float) -> float:
        return 2.0

    def offset_bound(self, y: float) -> float:
        return y
