from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.losses.base import Loss


@dataclass(frozen=True)
class OneAgainstRest(Loss):
    """A classification loss for one class of several: class codes in, labels -1 and 1 inside.

    Parameters
    ----------
    loss : Loss
        A loss for labels of -1 and 1.
    positive : int
        The class code that counts as 1. Every other code counts as -1.
    """

    loss: Loss
    positive: int
    classifies = True

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.loss.name

    @property
    def twice_differentiable(self) -> bool:  # type: ignore[override]
        return self.loss.twice_differentiable

    def labels(self, codes: np.ndarray) -> np.ndarray:
        """1 for the class, -1 for every other code."""
        return np.where(codes == self.positive, 1.0, -1.0)

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.value(margin, self.labels(y))

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.slope(margin, self.labels(y))

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.curvature(margin, self.labels(y))

    def slope_bound(self, margin: float, y: float) -> float:
        return self.loss.slope_bound(margin, 1.0)

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        return self.loss.slope_range(margin, 1.0)

    def curvature_beyond(self, margin: np.ndarray, y: float) -> np.ndarray:
        return self.loss.curvature_beyond(margin, 1.0)

    def curvature_bound(self, y: float) -> float:
        return self.loss.curvature_bound(1.0)

    def offset_bound(self, y: float) -> float:
        return self.loss.offset_bound(1.0)
