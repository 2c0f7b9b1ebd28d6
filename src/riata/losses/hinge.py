from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from riata.losses.base import SMALLEST_DISTANCE, Loss


@dataclass(frozen=True)
class Hinge(Loss):
    """The support vector machine's hinge, max(0, 1 - y * margin), for labels y of -1 and 1.

    It has a corner: solvers that need a bounded curvature refuse it, and `SmoothedHinge` is smooth
    and close to it.
    """

    name = "hinge"
    classifies = True

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(1 - y * margin, 0.0)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(y * margin < 1, -y, 0.0)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return y * y / (2 * np.maximum(np.abs(1 - y * margin), SMALLEST_DISTANCE))

    def slope_bound(self, margin: float, y: float) -> float:
        return y

    def curvature_bound(self, y: float) -> float:
        return math.inf

    def offset_bound(self, y: float) -> float:
        return 2.0
