from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.base import Loss
from riata.losses.exponential import logarithm, public_logarithm
from riata.losses.log_link import LogLinkLoss
from riata.losses.poisson import Poisson
from riata.losses.squared import Squared
from riata.privacy.budget import check_scale

#: Bits of a code: of the target, above it of the weight, above it of the exposure.
_TARGET, _WEIGHT, _EXPOSURE = 22, 16, 13

#: Codes are whole numbers below this, exact in float64.
CODES = 2.0 ** (_TARGET + _WEIGHT + _EXPOSURE)

#: Exposures are at least about e^-8 of the largest: as many steps of their logarithm as there are
#: codes. What a step of the logarithm of an exposure is.
_LOG_STEP = 2.0**-10
_LOG_RANGE = (2**_EXPOSURE - 1) * _LOG_STEP

#: What the curvature of a constant comes to is at least this part of what was measured.
SMALLEST_USUAL = 0.05

_PUBLIC = (
    "noise is scaled to it. Pass the largest one that a row could have, from public knowledge."
)


@dataclass(frozen=True)
class WeightedRows(Loss):
    """A loss whose rows have weights and exposures of their own, within public bounds.

    The loss of a row is ``weight * loss(margin + log(exposure), y)``. A target is a code, a whole
    number that holds the target, the weight and the exposure of its row on public grids. Weights
    below 0 count as 0, and so do missing ones; exposures below a 2980th of the largest count as
    that, and so do missing ones.

    Parameters
    ----------
    loss : Loss
        A loss for numbers.
    y : float
        The largest |target|. Public.
    weight : float, default=1.0
        The largest weight. Public.
    exposure : float, optional
        The largest exposure, if rows have one. Public.
    """

    loss: Loss
    y: float
    weight: float = 1.0
    exposure: float | None = None

    measured_curvature = True

    def __post_init__(self) -> None:
        for name in ("y", "weight", "exposure"):
            if getattr(self, name) is not None:
                check_scale(name, getattr(self, name), _PUBLIC)
        loss = self.loss
        if loss.classifies or loss.n_margins > 1 or loss.gradient_bounds is not None:
            raise InvalidArgument(f"Weights of rows are for losses of numbers, not {loss.name}.")
        if self.exposure is not None and loss.link != "log":
            raise InvalidArgument(
                f"An exposure multiplies a mean that is the exponential of the margin, and that of "
                f"the {loss.name} loss is not. Use Poisson() or another loss with a log link."
            )

    @property
    def inner(self) -> Loss:
        return self.loss

    @property
    def name(self) -> str:
        kind = "weighted" if self.exposure is None else "exposed"
        return f"{self.loss.name} of {kind} rows"

    @property
    def link(self) -> str:
        return self.loss.link

    @property
    def twice_differentiable(self) -> bool:
        return self.loss.twice_differentiable

    @property
    def smoothing_error(self) -> float:
        return self.weight * self.loss.smoothing_error

    # Codes.

    @cached_property
    def _steps(self) -> tuple[float, float]:
        """What a step of a target and of a weight is: powers of two, so that counts are exact."""
        y, weight = self.y / (2 ** (_TARGET - 1) - 1), self.weight / (2**_WEIGHT - 1)
        return 2.0 ** math.frexp(y)[1], 2.0 ** math.frexp(weight)[1]

    @cached_property
    def _offsets(self) -> tuple[float, float]:
        """The smallest and the largest logarithm of an exposure."""
        if self.exposure is None:
            return 0.0, 0.0
        high = public_logarithm(self.exposure)
        return high - _LOG_RANGE, high

    @property
    def farthest(self) -> float:
        """How far an exposure moves a margin at most."""
        return max(map(abs, self._offsets))

    def encode(
        self, y: np.ndarray, weight: np.ndarray | None = None, exposure: np.ndarray | None = None
    ) -> np.ndarray:
        """The code of each row. Never an error, whatever the values are."""
        of_y, of_weight = self._steps
        low, high = self._offsets
        ones = np.ones(len(y))
        with np.errstate(all="ignore"):
            target = _inside(y, -self.y, self.y, 0.0)
            weights = _inside(ones if weight is None else weight, 0.0, self.weight, 0.0)
            exposed = _inside(ones if exposure is None else exposure, 1e-300, 1e300, 1e-300)
            offsets = np.clip(logarithm(exposed), low, high)
            codes = np.rint((high - offsets) / _LOG_STEP) * 2.0**_WEIGHT
            codes = (codes + np.rint(weights / of_weight)) * 2.0**_TARGET
            return codes + np.rint(target / of_y) + 2.0 ** (_TARGET - 1)

    def _decode(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The target, weight and offset of each row, inside their bounds whatever the codes are."""
        of_y, of_weight = self._steps
        low, high = self._offsets
        codes = np.fmax(np.fmin(np.rint(codes), CODES - 1), 0.0)
        rest, target = np.divmod(codes, 2.0**_TARGET)
        exposure, weight = np.divmod(rest, 2.0**_WEIGHT)
        y = np.clip((target - 2.0 ** (_TARGET - 1)) * of_y, -self.y, self.y)
        offset = np.maximum(high - exposure * _LOG_STEP, low)
        return y, np.minimum(weight * of_weight, self.weight), offset

    # The loss.

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        target, weight, offset = self._decode(y)
        return weight * self.loss.value(margin + offset, target)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        target, weight, offset = self._decode(y)
        return weight * self.loss.slope(margin + offset, target)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        target, weight, offset = self._decode(y)
        return weight * self.loss.curvature(margin + offset, target)

    def slope_bound(self, margin: float, y: float) -> float:
        lowest, highest = self.slope_range(np.array([-margin, margin]), y)
        return float(max(-lowest[0], highest[1]))

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = self._offsets
        lowest, _ = self.loss.slope_range(margin + low, self.y)
        _, highest = self.loss.slope_range(margin + high, self.y)
        return self.weight * np.minimum(lowest, 0.0), self.weight * np.maximum(highest, 0.0)

    def curvature_bound(self, y: float) -> float:
        return self.weight * self.loss.curvature_bound(self.y)

    def offset_bound(self, y: float) -> float:
        return self.loss.offset_bound(self.y) + self.farthest

    def usual_offset(self, y: float) -> float:
        return self.loss.usual_offset(self.y) - self._offsets[1]

    def smoothed(self, width: float) -> Loss | None:
        inner = self.loss.smoothed(width)
        return None if inner is None else replace(self, loss=inner)

    def usual_curvature(self, slope: float, curvature: float) -> float:
        """Of a log link: means that are too large by a part move slope and curvature by it."""
        if isinstance(self.loss, LogLinkLoss):
            usual = curvature + (self.loss.power - 1) * slope
            return max(usual, SMALLEST_USUAL * curvature)
        return curvature

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(Squared(), 1.0, 3.0), cls(Poisson(3.0), 1.0, 1.0, 2.0)


def _inside(values: np.ndarray, low: float, high: float, missing: float) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    return np.clip(np.where(np.isnan(values), missing, values), low, high)
