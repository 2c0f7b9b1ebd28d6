"""The gradient of the empirical risk, whole, in parts, or clipped row by row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import X_STEPS, slope_steps, squared_lengths, to_steps
from riata.queries.base import Query
from riata.queries.coefficients import Coefficients
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.losses import Loss


#: The squared bounds of all columns are about this many steps together, for the lengths of rows.
_WEIGHT_STEPS = 2.0**27

#: Slope bounds lie in this range: at 0 there would be no noise.
SMALLEST_SLOPE, LARGEST_SLOPE = 1e-150, 1e150


@dataclass(frozen=True, eq=False)
class MeanSlope(Query):
    """The mean of the loss's slope at theta: the derivative of the risk in the intercept."""

    theta: Vector
    loss: Loss
    bounds: Bounds
    n_rows: int
    adjacency: str

    @property
    def model(self) -> Vector | None:
        return self.theta

    @cached_property
    def coefficients(self) -> Coefficients:
        """theta on the grid."""
        return Coefficients.of(self.theta, self.bounds)

    def margins(self, x: Any) -> np.ndarray:
        """<x, theta> + offset for rows on the grid."""
        return self.inner(x) + self.theta.offset

    def inner(self, x: Any) -> np.ndarray:
        """<x, theta> for rows on the grid. Not to be written to.

        Rows that know it are asked: an engine may follow theta's moves.
        """
        if hasattr(x, "inner_of"):
            known: np.ndarray = x.inner_of(self.coefficients)
            return known
        return self.coefficients.inner(x)

    def slopes(self, x: Any, y: np.ndarray) -> np.ndarray:
        """The slope at each row, in steps of the largest slope / `slope_steps`."""
        return self.slopes_at(self.margins(x), y)

    def slopes_at(self, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The same at known margins."""
        with np.errstate(all="ignore"):
            return to_steps(self.loss.slope(margins, y), self.slope_bound(), self.slope_steps)

    def block_sum(self, x: Any, y: np.ndarray) -> np.ndarray:
        return np.array([self.slopes(x, y).sum()])

    @property
    def slope_steps(self) -> int:
        """How many steps the largest slope has."""
        return slope_steps(self.n_rows)

    @property
    def slope_unit(self) -> float:
        """What a step of a slope is."""
        return self.slope_bound() / self.slope_steps

    @property
    def unit(self) -> Any:
        return self.slope_unit / self.n_rows

    def slope_bound(self) -> float:
        """The largest |slope| at this public theta, not the worst over the whole set."""
        return self._slope_bound

    @cached_property
    def _slope_bound(self) -> float:
        # Once: the unit and the sensitivity must be made from the same number.
        reach = self.bounds.reach(self.theta)
        if self.bounds.norm == "inf":
            reach = self.coefficients.reach
        reach += abs(self.theta.offset)
        assert self.bounds.y is not None
        bound = float(self.loss.slope_bound(reach, self.bounds.y))
        if not SMALLEST_SLOPE <= bound <= LARGEST_SLOPE:
            raise InvalidArgument(
                f"The loss's slope bound is {bound!r}: it must be a positive number of ordinary "
                "size, because the noise is scaled to it. Correct slope_bound of the loss."
            )
        return bound

    def row_bound(self, norm: str) -> float:
        return self.slope_bound()


@dataclass(frozen=True, eq=False)
class Gradient(MeanSlope):
    """The gradient of the empirical risk at theta: the mean of slope * x."""

    def block_sum(self, x: Any, y: np.ndarray) -> np.ndarray:
        return x.T @ self.slopes(x, y)

    @property
    def unit(self) -> Any:
        return super().unit * (self.bounds.x / X_STEPS)

    def row_bound(self, norm: str) -> float:
        return self.slope_bound() * self.bounds.row_norm(norm, self.theta.size)


@dataclass(frozen=True, eq=False)
class GradientEntries(Gradient):
    """Some coordinates of the gradient."""

    columns: np.ndarray

    def block_sum(self, x: Any, y: np.ndarray) -> np.ndarray:
        return x[:, self.columns].T @ self.slopes(x, y)

    @property
    def unit(self) -> Any:
        unit = super().unit
        return unit if np.ndim(unit) == 0 else unit[self.columns]

    def row_bound(self, norm: str) -> float:
        bounds = replace(self.bounds, x=self.bounds.of_columns(self.columns))
        return self.slope_bound() * bounds.row_norm(norm, len(self.columns))


@dataclass(frozen=True, eq=False)
class ClippedGradient(Gradient):
    """The mean of slope * x, with each row's summand shortened to a length of at most `clip`."""

    clip: float

    def block_sum(self, x: Any, y: np.ndarray) -> np.ndarray:
        steps = self.slopes(x, y)
        with np.errstate(all="ignore"):
            room = 1 - 2.0**-40 - 2.0**-52 * self.theta.size  # for the rounding of a row's length
            allowed = self.clip * room / (self._row_lengths(x) * self.slope_unit)
            limit = np.floor(np.fmin(allowed, self.slope_steps))
        return x.T @ np.clip(steps, -limit, limit)

    def _row_lengths(self, x: Any) -> np.ndarray:
        """The Euclidean length of each row on the grid, or a little more."""
        if not sparse.issparse(x):
            return self._lengths(x)
        limits, found = getattr(x, "row_lengths", (None, None))
        if found is None or limits is not self.bounds.x:
            found = self._lengths(x)
            x.row_lengths = (self.bounds.x, found)  # beside the rows: all steps ask for them
        return found

    def _lengths(self, x: Any) -> np.ndarray:
        if np.ndim(self.bounds.x) == 0:
            return np.sqrt(squared_lengths(x)) * (self.bounds.x / X_STEPS)
        weights, unit = self._weights
        return np.sqrt(squared_lengths(x, weights)) * (unit / X_STEPS)

    @cached_property
    def _weights(self) -> tuple[np.ndarray, float]:
        """The squared bounds of the columns in whole steps, rounded up, and the root of a step."""
        squares = np.square(self.bounds.x / self.bounds.largest)
        step = squares.sum() / _WEIGHT_STEPS
        return np.ceil(squares / step).astype(np.int64), math.sqrt(step) * self.bounds.largest

    def row_bound(self, norm: str) -> float:
        stretched = np.sqrt(self.theta.size) if norm == "l1" else 1.0
        return min(super().row_bound(norm), float(self.clip * stretched))
