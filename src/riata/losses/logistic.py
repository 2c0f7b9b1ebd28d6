from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from riata.losses.base import Loss
from riata.losses.logistic_function import logistic, softplus

#: An intercept of 6 is a class of one in four hundred; rarer ones are beyond a private fit's reach.
LARGEST_LOG_ODDS = 6.0

#: u expit(-u) is largest at u = 1.2785, and u^2 expit'(u) at u = 2.3994: smaller targets than the
#: largest one are the worst beyond. The values are rounded up.
_MOST_STEEP, _LARGEST_STEEP = 1.2784645427610738, 0.2784645427610738
_MOST_BENT, _LARGEST_BENT = 2.3993572805154676, 0.4392288398906452


def _steepest(margin: np.ndarray, y: float) -> np.ndarray:
    """The largest t expit(t margin) over 0 <= t <= y."""
    far = _LARGEST_STEEP / np.maximum(-margin, _MOST_STEEP / y)
    return np.where(y * margin >= -_MOST_STEEP, y * expit(y * margin), far)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y margin)) for labels y of -1 and 1."""

    name = "logistic"
    link = "logit"
    classifies = True
    twice_differentiable = True
    canonical_link = True

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return softplus(-y * margin)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -y * logistic(-y * margin)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        odds = logistic(y * margin)
        return y * y * odds * (1 - odds)

    def slope_bound(self, margin: float, y: float) -> float:
        return y * float(logistic(np.array(y * margin)))

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        return -_steepest(-margin, y), _steepest(margin, y)

    def curvature_beyond(self, margin: np.ndarray, y: float) -> np.ndarray:
        size = np.abs(margin)
        odds = expit(y * size)
        far = _LARGEST_BENT / np.maximum(size, _MOST_BENT / y) ** 2
        return np.where(y * size <= _MOST_BENT, y * y * odds * (1 - odds), far)

    def curvature_bound(self, y: float) -> float:
        return y * y / 4

    def offset_bound(self, y: float) -> float:
        return LARGEST_LOG_ODDS
