from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from riata.grid import ROUNDED_UP
from riata.losses.exponential import exponential, logarithm
from riata.losses.log_link import SMALLEST_TARGET, LogLinkLoss, checked_mean


@dataclass(frozen=True)
class Gamma(LogLinkLoss):
    """Half the Gamma deviance of positive amounts: y e^-margin + margin, and a constant.

    Parameters
    ----------
    least_mean : float, default=0.0
        Up to this mean the loss is straight. Public. Without it the curvature has no bound, and
        solvers that need one refuse the loss.
    """

    least_mean: float = 0.0
    name = "Gamma"
    power: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        checked_mean("least_mean", self.least_mean, 0.0)

    @cached_property
    def low(self) -> float:
        return checked_mean("least_mean", self.least_mean, 0.0)

    @property
    def twice_differentiable(self) -> bool:
        return self.least_mean == 0

    def rise(self, margin: np.ndarray) -> np.ndarray:
        return np.ones(np.shape(margin))

    def fall(self, margin: np.ndarray) -> np.ndarray:
        return exponential(-margin)

    def curvatures(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(np.shape(up)), exponential(-down)

    def integrals(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return up, exponential(-down)

    def least(self, y: np.ndarray) -> np.ndarray:
        return logarithm(np.maximum(y, SMALLEST_TARGET)) + 1.0

    def curvature_bound(self, y: float) -> float:
        straight = self.least_mean > 0
        return y * float(exponential(np.array(-self.low))) * ROUNDED_UP if straight else math.inf

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(0.2)
