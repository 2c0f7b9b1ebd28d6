"""A loss of somebody else, tabulated: convex, and as steep and as curved as it declares at most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.base import Loss

#: Into how many parts targets are cut, and into how many at most margins of one sign.
_TARGETS, _MARGINS = 128, 2048

#: Slopes of an ordinary size.
_SMALLEST, _LARGEST = 1e-150, 1e150


@dataclass(frozen=True, eq=False)
class Tabulated(Loss):
    """Slopes that are interpolated between public knots, whatever the loss does between them.

    For each target the slope is monotone, straight between knots and constant beyond the last ones.
    All bounds are read off the table, so none of them rests on what a loss declares. The code of
    the loss sees knots alone, never a row. The proof is in docs/privacy/objective_perturbation.md.

    Parameters
    ----------
    loss : Loss
    y : float
        The largest |target|.
    step : float
        The distance of the knots of margins: a power of two, so that no place between two knots is
        rounded.
    table : ndarray of shape (n_targets, n_margins)
        The slopes at targets from -y to y and at margins around 0. No row falls.
    error : float, default=0.0
        How far its values are from those of the loss, if the loss is as it declares.
    """

    loss: Loss
    y: float
    step: float
    table: np.ndarray
    error: float = 0.0

    assumes = "the loss is convex and its declared constants are true"

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def link(self) -> str:
        return self.loss.link

    @property
    def classifies(self) -> bool:
        return self.loss.classifies

    def class_targets(self) -> tuple[float, float]:
        return self.loss.class_targets()

    def offset_bound(self, y: float) -> float:
        return self.loss.offset_bound(y)

    @property
    def smoothing_error(self) -> float:
        return self.loss.smoothing_error + self.error

    @property
    def _last(self) -> int:
        return self.table.shape[1] // 2

    @cached_property
    def steepest(self) -> float:
        """The largest |slope|."""
        return float(np.abs(self.table).max())

    @cached_property
    def _curvatures(self) -> np.ndarray:
        """The largest rise over a step, at least so many steps away from 0."""
        rises = np.diff(self.table, axis=1).max(axis=0) / self.step
        either = np.maximum(rises[self._last :], rises[: self._last][::-1])
        return np.maximum.accumulate(either[::-1])[::-1]

    def _cell(self, margin: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The slopes at the knots before and after each margin, and how far it is between them."""
        with np.errstate(all="ignore"):
            place = np.fmax(np.fmin(np.divide(margin, self.step), self._last), -self._last)
            cell = np.minimum(np.floor(place), self._last - 1)
            parts = len(self.table) - 1
            height = np.fmax(np.fmin((np.divide(y, self.y) + 1) * (parts / 2), parts), 0.0)
            below = np.minimum(np.floor(height), parts - 1)
        row, column = below.astype(np.intp), cell.astype(np.intp) + self._last
        above = height - below
        before, after = (
            (1 - above) * self.table[row, at] + above * self.table[row + 1, at]
            for at in (column, column + 1)
        )
        return before, after, place - cell

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.value(margin, y)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        before, after, share = self._cell(margin, y)
        return before + share * (after - before)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        before, after, _ = self._cell(margin, y)
        return (after - before) / self.step

    def slope_bound(self, margin: float, y: float) -> float:
        return self.steepest

    def curvature_bound(self, y: float) -> float:
        return float(self._curvatures[0])

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        knots = np.arange(-self._last, self._last + 1) * self.step
        lowest, highest = self.table.min(axis=0), self.table.max(axis=0)
        return np.interp(margin, knots, lowest), np.interp(margin, knots, highest)

    def curvature_beyond(self, margin: np.ndarray, y: float) -> np.ndarray:
        steps = np.minimum(np.abs(margin) / self.step, self._last - 1)
        return self._curvatures[steps.astype(np.intp)]

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """None: it is made from other losses."""
        return ()


def tabulated(loss: Loss, margin: float, y: float) -> Tabulated:
    """The table of a loss, for margins and targets up to these sizes. Reads no data.

    Slopes are clipped at the declared bound. A slope that falls is levelled. From margin 0 on, one
    that rises by more than the declared curvature allows is held back.
    """
    steepest, curvature = float(loss.slope_bound(margin, y)), float(loss.curvature_bound(y))
    if not _SMALLEST <= steepest <= _LARGEST:
        raise InvalidArgument(_not_ordinary(loss, "slope_bound", steepest, "positive"))
    if not 0 <= curvature <= _LARGEST:
        raise InvalidArgument(_not_ordinary(loss, "curvature_bound", curvature, "not negative"))
    step = math.ldexp(1.0, math.frexp(max(margin, _SMALLEST) / _MARGINS)[1])
    last = max(1, math.ceil(margin / step))
    knots = np.clip(np.arange(-last, last + 1) * step, -margin, margin)
    slopes = np.array([_slopes(loss, knots, t) for t in np.linspace(-y, y, _TARGETS + 1)])
    table = np.maximum.accumulate(np.clip(slopes, -steepest, steepest), axis=1)
    for k in range(last + 1, 2 * last + 1):
        table[:, k] = np.minimum(table[:, k], table[:, k - 1] + curvature * step)
        opposite = 2 * last - k
        table[:, opposite] = np.maximum(
            table[:, opposite], table[:, opposite + 1] - curvature * step
        )
    table.flags.writeable = False
    # A slope that rises by r over a step, first as quickly as it may and then not at all, is above
    # the straight one by an area of r (step - r / curvature) / 2, and no slope by more.
    rises = np.diff(table, axis=1)
    areas = rises * (step - rises / max(curvature, _SMALLEST)) / 2
    error = float(np.maximum(areas, 0.0).sum(axis=1).max())
    found = Tabulated(loss, y, step, table, error)
    if found.steepest < _SMALLEST:
        raise InvalidArgument(
            f"The slope of the {loss.name} loss is 0 at every margin up to {margin:.3g} in size: "
            "there is nothing to minimise. Correct slope of the loss."
        )
    return found


def _slopes(loss: Loss, knots: np.ndarray, y: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        found = np.asarray(loss.slope(knots.copy(), np.full(len(knots), y)), dtype=np.float64)
    if found.shape != knots.shape or not np.isfinite(found).all():
        raise InvalidArgument(
            f"The slope of the {loss.name} loss must be one finite number for each row. At target "
            f"{y:.3g} and margins up to {knots[-1]:.3g} in size it is not. Correct slope of the "
            "loss."
        )
    return found


def _not_ordinary(loss: Loss, name: str, value: float, sign: str) -> str:
    return (
        f"{name} of the {loss.name} loss is {value!r}: it must be {sign} and of ordinary size, "
        f"because noise is scaled to it. Correct {name} of the loss."
    )
