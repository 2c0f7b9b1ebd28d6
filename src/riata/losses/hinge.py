from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.losses.smoothed import Corner, CornerLoss


@dataclass(frozen=True)
class Hinge(CornerLoss):
    """The support vector machine's hinge, max(0, 1 - y * margin), for labels y of -1 and 1.

    It has a corner: solvers that need a bounded curvature refuse it, and `SmoothedHinge` is smooth
    and close to it. Objective perturbation rounds the corner itself.
    """

    name = "hinge"
    classifies = True

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.maximum(1 - y * margin, 0.0)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(y * margin < 1, -y, 0.0)

    def corner(self, margin: np.ndarray, y: np.ndarray) -> Corner:
        return Corner(y * margin - 1, y, -1.0, 1.0)

    def slope_bound(self, margin: float, y: float) -> float:
        return y

    def offset_bound(self, y: float) -> float:
        return 2.0
