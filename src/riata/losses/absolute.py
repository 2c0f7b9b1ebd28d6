from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.losses.smoothed import Corner, CornerLoss


@dataclass(frozen=True)
class Absolute(CornerLoss):
    """The absolute residual |margin - y|, whose minimiser predicts the median.

    Its slope is -1 or 1 however far a target is away, and it has a corner: solvers that need a
    bounded curvature refuse it, and `Huber` is smooth and close to it. Objective perturbation
    rounds the corner itself.
    """

    name = "absolute"

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.abs(margin - y)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.sign(margin - y)

    def corner(self, margin: np.ndarray, y: np.ndarray) -> Corner:
        return Corner(margin - y, 1.0, -1.0, 2.0)

    def slope_bound(self, margin: float, y: float) -> float:
        return 1.0

    def offset_bound(self, y: float) -> float:
        return y
