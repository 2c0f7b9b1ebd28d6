from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riata.losses.base import SCALE_OF_LOSS, Loss
from riata.privacy.budget import check_scale


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """The support vector machine's hinge with a quadratic corner, for labels y of -1 and 1.

    Zero from ``y * margin = 1`` on, quadratic over an interval of length `smoothing` below it, and
    straight with slope -1 further down.

    Parameters
    ----------
    smoothing : float, default=1.0
        The length of the quadratic piece. Public.
    """

    smoothing: float = 1.0
    name = "smoothed hinge"
    classifies = True

    def __post_init__(self) -> None:
        check_scale("smoothing", self.smoothing, SCALE_OF_LOSS)

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        short = np.maximum(1 - y * margin, 0.0)
        core = np.minimum(short, self.smoothing)
        return core * (short - core / 2) / self.smoothing

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * np.clip((1 - y * margin) / self.smoothing, 0.0, 1.0)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        short = 1 - y * margin
        return np.where(short >= 0, y * y / np.maximum(short, self.smoothing), 0.0)

    def slope_bound(self, margin: float, y: float) -> float:
        return y * min((1 + y * margin) / self.smoothing, 1.0)

    def curvature_bound(self, y: float) -> float:
        return y * y / self.smoothing

    def offset_bound(self, y: float) -> float:
        return 2.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.5)
