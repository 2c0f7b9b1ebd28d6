from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from riata.losses.base import SMALLEST_DISTANCE, Loss


@dataclass(frozen=True)
class Absolute(Loss):
    """The absolute residual |margin - y|, whose minimiser predicts the median.

    Its slope is -1 or 1 however far a target is away, and it has a corner: solvers that need a
    bounded curvature refuse it, and `Huber` is smooth and close to it.
    """

    name = "absolute"

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(margin - y)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sign(margin - y)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 1 / np.maximum(np.abs(margin - y), SMALLEST_DISTANCE)

    def slope_bound(self, margin: float, y: float) -> float:
        return 1.0

    def curvature_bound(self, y: float) -> float:
        return math.inf

    def offset_bound(self, y: float) -> float:
        return y
