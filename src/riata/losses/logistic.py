from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from riata.losses.base import Loss

#: An intercept of 6 is a class of one in four hundred; rarer ones are beyond a private fit's reach.
_LARGEST_LOG_ODDS = 6.0


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y margin)) for labels y of -1 and 1."""

    name = "logistic"
    classifies = True
    twice_differentiable = True

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.logaddexp(0.0, -y * margin)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * expit(-y * margin)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        odds = expit(y * margin)
        return y * y * odds * (1 - odds)

    def slope_bound(self, margin: float, y: float) -> float:
        return y * float(expit(y * margin))

    def curvature_bound(self, y: float) -> float:
        return y * y / 4

    def offset_bound(self, y: float) -> float:
        return _LARGEST_LOG_ODDS
