from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.grid import ROUNDED_UP
from riata.losses.exponential import exponential, logarithm
from riata.losses.log_link import SMALLEST_TARGET, LogLinkLoss, checked_mean
from riata.privacy.budget import check_number


@dataclass(frozen=True)
class Tweedie(LogLinkLoss):
    """Half the Tweedie deviance, for amounts of which many are 0: totals of claims, rainfall.

    Parameters
    ----------
    power : float, default=1.5
        Strictly between 1 (`Poisson`) and 2 (`Gamma`). Public.
    least_mean, largest_mean : float, default=0.0, inf
        Up to the one mean, and from the other on, the loss is straight. Public. Without both the
        curvature has no bound, and solvers that need one refuse the loss.
    """

    power: float = 1.5  # type: ignore[misc]
    least_mean: float = 0.0
    largest_mean: float = math.inf
    name = "Tweedie"

    def __post_init__(self) -> None:
        if not 1 < check_number("power", self.power) < 2:
            raise InvalidArgument(
                f"power={self.power!r} must lie strictly between 1 and 2. Use Poisson() for 1 and "
                "Gamma() for 2; with a larger one the loss is not convex."
            )
        low = checked_mean("least_mean", self.least_mean, 0.0)
        if low >= checked_mean("largest_mean", self.largest_mean, math.inf):
            raise InvalidArgument(
                f"least_mean={self.least_mean!r} must be less than "
                f"largest_mean={self.largest_mean!r}."
            )

    @cached_property
    def low(self) -> float:
        return checked_mean("least_mean", self.least_mean, 0.0)

    @cached_property
    def high(self) -> float:
        return checked_mean("largest_mean", self.largest_mean, math.inf)

    @property
    def twice_differentiable(self) -> bool:
        return self.least_mean == 0 and self.largest_mean == math.inf

    def rise(self, margin: np.ndarray) -> np.ndarray:
        return exponential((2 - self.power) * margin)

    def fall(self, margin: np.ndarray) -> np.ndarray:
        return exponential((1 - self.power) * margin)

    def curvatures(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (2 - self.power) * self.rise(up), (self.power - 1) * self.fall(down)

    def integrals(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.rise(up) / (2 - self.power), self.fall(down) / (self.power - 1)

    def least(self, y: np.ndarray) -> np.ndarray:
        mean = self.rise(logarithm(np.maximum(y, SMALLEST_TARGET)))
        return np.where(y > 0, mean, 0.0) / ((2 - self.power) * (self.power - 1))

    def curvature_bound(self, y: float) -> float:
        if self.least_mean == 0 or self.largest_mean == math.inf:
            return math.inf
        ends = self.curvature(np.array([self.low, self.high]), np.array([y, y]))
        return float(ends.max()) * ROUNDED_UP

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(1.7, 0.3, 3.0)
