"""Losses with one corner, and what they are when the corner is rounded."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from riata.losses.base import SCALE_OF_LOSS, SMALLEST_DISTANCE, Loss
from riata.privacy.budget import check_scale


class Corner(NamedTuple):
    """Where a margin is, seen from the corner of its loss.

    Attributes
    ----------
    beyond : ndarray
        How far it is beyond the corner; negative before it.
    rate : ndarray or float
        The derivative of `beyond` in the margin. It grows with the size of the target, or not.
    below, rise : float
        The derivative of the loss in `beyond` before the corner, and by how much it is more after.
    """

    beyond: np.ndarray
    rate: np.ndarray | float
    below: float
    rise: float


class CornerLoss(Loss):
    """A loss that is straight before its only corner, and straight after it."""

    @abstractmethod
    def corner(self, margin: np.ndarray, y: np.ndarray) -> Corner:
        """Where the margins are, seen from the corner."""

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        beyond, rate, _, rise = self.corner(margin, y)
        return rise / 2 * rate * rate / np.maximum(np.abs(beyond), SMALLEST_DISTANCE)

    def curvature_bound(self, y: float) -> float:
        return math.inf

    def smoothed(self, width: float) -> Smoothed:
        return Smoothed(self, width)


@dataclass(frozen=True)
class Smoothed(Loss):
    """A loss with a corner, averaged over an interval of margins: a parabola in its place.

    It lies above the loss, by at most `smoothing` / 8 of how much the slope rises at the corner,
    and agrees with it from half of `smoothing` on either side.

    Parameters
    ----------
    loss : CornerLoss
        `Hinge`, `Absolute`, `Quantile` or another one.
    smoothing : float, default=1.0
        The length of the interval. Public.
    """

    loss: CornerLoss
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        check_scale("smoothing", self.smoothing, SCALE_OF_LOSS)

    @property
    def name(self) -> str:
        return f"smoothed {self.loss.name}"

    @property
    def classifies(self) -> bool:
        return self.loss.classifies

    @property
    def measured_curvature(self) -> bool:  # type: ignore[override]
        return not self.classifies

    @property
    def smoothing_error(self) -> float:
        return self.loss.corner(np.zeros(1), np.ones(1)).rise * self.smoothing / 8

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        beyond, _, _, rise = self.loss.corner(margin, y)
        near = np.maximum(0.5 - np.abs(beyond) / self.smoothing, 0.0)
        return self.loss.value(margin, y) + rise * self.smoothing / 2 * near**2

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        beyond, rate, below, rise = self.loss.corner(margin, y)
        return rate * (below + rise * np.clip(beyond / self.smoothing + 0.5, 0.0, 1.0))

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        beyond, rate, _, rise = self.loss.corner(margin, y)
        return rise * rate * rate / np.maximum(2 * np.abs(beyond), self.smoothing)

    def slope_bound(self, margin: float, y: float) -> float:
        return self.loss.slope_bound(margin, y)

    def curvature_bound(self, y: float) -> float:
        _, rate, _, rise = self.loss.corner(np.zeros(1), np.array([y]))
        return float(np.max(rise * rate * rate / self.smoothing))

    def offset_bound(self, y: float) -> float:
        return self.loss.offset_bound(y)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        from riata.losses.absolute import Absolute
        from riata.losses.hinge import Hinge
        from riata.losses.quantile import Quantile

        return cls(Hinge(), 0.5), cls(Absolute(), 0.3), cls(Quantile(0.9), 0.2)
