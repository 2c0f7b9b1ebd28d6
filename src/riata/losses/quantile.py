from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.smoothed import Corner, CornerLoss
from riata.privacy.budget import check_number


@dataclass(frozen=True)
class Quantile(CornerLoss):
    """The pinball loss, whose minimiser predicts a quantile of y.

    ``quantile * (y - margin)`` where the margin is too small, and ``(1 - quantile) * (margin - y)``
    where it is too large. It has a corner: solvers that need a bounded curvature refuse it, and
    objective perturbation rounds it.

    Parameters
    ----------
    quantile : float, default=0.5
        Strictly between 0 and 1. Public. 0.5 is half of `Absolute`.
    """

    quantile: float = 0.5
    name = "quantile"

    def __post_init__(self) -> None:
        if not 0 < check_number("quantile", self.quantile) < 1:
            raise InvalidArgument(
                f"quantile={self.quantile!r} must lie strictly between 0 and 1: it is the part of "
                "the targets that lie below the prediction."
            )

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        short = y - margin
        return np.maximum(self.quantile * short, (self.quantile - 1) * short)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        beyond = np.where(margin > y, 1 - self.quantile, 0.0)
        return np.where(margin < y, -self.quantile, beyond)

    def corner(self, margin: np.ndarray, y: np.ndarray) -> Corner:
        return Corner(margin - y, 1.0, -self.quantile, 1.0)

    def slope_bound(self, margin: float, y: float) -> float:
        return max(self.quantile, 1 - self.quantile)

    def offset_bound(self, y: float) -> float:
        return y

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.9)
