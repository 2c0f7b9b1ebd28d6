from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from riata.grid import ROUNDED_UP
from riata.losses.exponential import exponential
from riata.losses.log_link import LogLinkLoss, checked_mean, times_log


@dataclass(frozen=True)
class Poisson(LogLinkLoss):
    """Half the Poisson deviance of counts: e^margin - y margin, and what makes it 0 at the mean y.

    Parameters
    ----------
    largest_mean : float, default=inf
        From this mean on the loss is straight. Public. Without it the curvature has no bound, and
        solvers that need one refuse the loss.
    """

    largest_mean: float = math.inf
    name = "Poisson"

    def __post_init__(self) -> None:
        checked_mean("largest_mean", self.largest_mean, math.inf)

    @cached_property
    def high(self) -> float:
        return checked_mean("largest_mean", self.largest_mean, math.inf)

    @property
    def twice_differentiable(self) -> bool:
        return self.largest_mean == math.inf

    def rise(self, margin: np.ndarray) -> np.ndarray:
        return exponential(margin)

    def fall(self, margin: np.ndarray) -> np.ndarray:
        return np.ones(np.shape(margin))

    def curvatures(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return exponential(up), np.zeros(np.shape(down))

    def integrals(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return exponential(up), -down

    def least(self, y: np.ndarray) -> np.ndarray:
        return y - times_log(y)

    def curvature_bound(self, y: float) -> float:
        straight = self.largest_mean < math.inf
        return float(exponential(np.array(self.high))) * ROUNDED_UP if straight else math.inf

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(3.0)
