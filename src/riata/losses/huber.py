from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riata.losses.base import SCALE_OF_LOSS, Loss
from riata.privacy.budget import check_scale


@dataclass(frozen=True)
class Huber(Loss):
    """The squared loss with straight tails: r^2 up to `threshold`, then 2 t |r| - t^2.

    Its slope never exceeds ``2 * threshold``, so it needs less noise than the squared loss when
    targets reach much further than residuals usually do.

    Parameters
    ----------
    threshold : float, default=1.0
        The residual at which the tails begin. Public.
    """

    threshold: float = 1.0
    name = "huber"

    def __post_init__(self) -> None:
        check_scale("threshold", self.threshold, SCALE_OF_LOSS)

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        size = np.abs(margin - y)
        core = np.minimum(size, self.threshold)
        return core * (2 * size - core)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 2 * np.clip(margin - y, -self.threshold, self.threshold)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 2 * self.threshold / np.maximum(np.abs(margin - y), self.threshold)

    def slope_bound(self, margin: float, y: float) -> float:
        return 2 * min(margin + y, self.threshold)

    def curvature_bound(self, y: float) -> float:
        return 2.0

    def offset_bound(self, y: float) -> float:
        return y

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.3)
