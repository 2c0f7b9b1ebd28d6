"""Losses of counts and amounts, whose mean is the exponential of the margin."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.base import Loss
from riata.losses.exponential import LARGEST_EXPONENT, logarithm, public_logarithm
from riata.privacy.budget import check_number

#: The smallest mean that an intercept has to reach, as a part of the largest target: e^-10.
SMALLEST_LOG_PART = 10.0

#: The mean of the targets is usually about this part of the largest one: e^-3.
USUAL_LOG_PART = 3.0

#: Targets count as at least this where their logarithm is taken: it moves values, not slopes.
SMALLEST_TARGET = 1e-30


class LogLinkLoss(Loss):
    """Half the deviance of y from the mean e^margin, with straight tails.

    Its slope is ``rise(margin) - y * fall(margin)``, where `rise` grows with the margin and `fall`
    does not, and their quotient is e^margin. `rise` is constant from `high` upwards and `fall` from
    `low` downwards, so that the curvature is bounded. Targets below 0, and missing ones, count
    as 0.
    """

    link = "log"
    measured_curvature = True

    #: The variance of y grows with this power of its mean, where the mean is small.
    power: ClassVar[float] = 1.0

    @property
    def low(self) -> float:
        """From this margin downwards `fall` is constant."""
        return -LARGEST_EXPONENT

    @property
    def high(self) -> float:
        """From this margin upwards `rise` is constant."""
        return LARGEST_EXPONENT

    @abstractmethod
    def rise(self, margin: np.ndarray) -> np.ndarray:
        """The slope where y is 0."""

    @abstractmethod
    def fall(self, margin: np.ndarray) -> np.ndarray:
        """How fast the slope falls with y."""

    @abstractmethod
    def curvatures(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The derivative of `rise` at `up`, and that of `fall` at `down` with the other sign."""

    @abstractmethod
    def integrals(self, up: np.ndarray, down: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Functions whose derivatives are `rise` at `up` and `-fall` at `down`."""

    @abstractmethod
    def least(self, y: np.ndarray) -> np.ndarray:
        """What the integrals come to where the mean is y."""

    def _places(self, margin: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.minimum(margin, self.high), np.maximum(margin, self.low)

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        y, (up, down) = counts(y), self._places(margin)
        of_rise, of_fall = self.integrals(up, down)
        of_rise = of_rise + self.rise(up) * (margin - up)
        of_fall = of_fall - self.fall(down) * (margin - down)
        return of_rise + y * of_fall - self.least(y)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        up, down = self._places(margin)
        return self.rise(up) - counts(y) * self.fall(down)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        of_rise, of_fall = self.curvatures(*self._places(margin))
        of_fall = counts(y) * of_fall
        curvature = of_rise * (margin <= self.high) + of_fall * (margin >= self.low)
        return np.where(curvature > 0, curvature, of_rise + of_fall)

    def slope_bound(self, margin: float, y: float) -> float:
        steepest = self.slope(np.array([margin, -margin]), np.array([0.0, y]))
        return float(np.abs(steepest).max())

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        up, down = self._places(margin)
        rise = self.rise(up)
        return rise - y * self.fall(down), rise

    def offset_bound(self, y: float) -> float:
        return SMALLEST_LOG_PART + abs(math.log(y))

    def usual_offset(self, y: float) -> float:
        return math.log(y) - USUAL_LOG_PART

    def likely_mean(self, offset: float, slope: float) -> tuple[float, float]:
        """The mean of y, from the mean slope at a constant, and how fast it falls with the slope.

        Exact where the loss is straight, too.
        """
        up, down = self._places(np.array([offset]))
        rise, fall = float(self.rise(up)[0]), float(self.fall(down)[0])
        return (rise - slope) / fall, 1 / fall

    def known_curvature(self, offset: float) -> float | None:
        """The slope where y is 0: the curvature is as large where the mean of y is e^offset."""
        return float(self.rise(np.array([min(offset, self.high)]))[0])

    def deviance(self, y: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """The unit deviance of each y from a positive mean."""
        margin, y = np.clip(np.log(mean), -LARGEST_EXPONENT, LARGEST_EXPONENT), counts(y)
        of_rise, of_fall = self.integrals(margin, margin)
        return 2 * (of_rise + y * of_fall - self.least(y))


def counts(y: np.ndarray) -> np.ndarray:
    """Targets below 0, and missing ones, as 0."""
    return np.fmax(y, 0.0)


def times_log(y: np.ndarray) -> np.ndarray:
    """y log(y), which is 0 at 0."""
    return y * logarithm(np.maximum(y, SMALLEST_TARGET))


def checked_mean(name: str, mean: float, unlimited: float) -> float:
    """The logarithm of a bound on means that was given: positive, or `unlimited`."""
    if check_number(name, mean) == unlimited:
        return -LARGEST_EXPONENT if unlimited == 0 else LARGEST_EXPONENT
    if not 1e-15 <= mean <= 1e15:
        raise InvalidArgument(
            f"{name}={mean!r} must lie between 1e-15 and 1e15, or be {unlimited:g} for none: the "
            "loss is straight beyond this mean. Pass a public number on the scale of the targets."
        )
    return public_logarithm(mean)
