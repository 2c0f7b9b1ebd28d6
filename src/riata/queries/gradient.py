"""The gradient of the empirical risk, whole, in parts, or clipped row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import SLOPE_STEPS, X_STEPS, coefficient_steps, to_steps
from riata.queries.base import Query
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.losses import Loss


#: Slope bounds lie in this range: at 0 there would be no noise.
SMALLEST_SLOPE, LARGEST_SLOPE = 1e-150, 1e150


def exact_inner(theta: Vector, bounds: Bounds, x: Any) -> np.ndarray:
    """<x, theta> for rows on the grid, with theta on a grid of its own."""
    if not len(theta.support):
        return np.zeros(x.shape[0])
    with np.errstate(all="ignore"):  # a warning would tell of a row
        limits = bounds.of_columns(theta.support)
        steps, step = coefficient_steps(theta.values * limits)
        exact = replace(theta, values=steps, offset=0.0).margins(x)
        return exact * (step / X_STEPS)


@dataclass(frozen=True, eq=False)
class MeanSlope(Query):
    """The mean of the loss's slope at theta: the derivative of the risk in the intercept."""

    theta: Vector
    loss: Loss
    bounds: Bounds
    n_rows: int
    adjacency: str

    def margins(self, x: Any) -> np.ndarray:
        """<x, theta> + offset for rows on the grid."""
        return self.inner(x) + self.theta.offset

    def inner(self, x: Any) -> np.ndarray:
        """<x, theta> for rows on the grid, with theta on a grid of its own. Not to be written to.

        Rows that know it are asked: an engine may follow theta's moves (docs/privacy/rejection.md).
        """
        if hasattr(x, "inner_of"):
            known: np.ndarray = x.inner_of(self)
            return known
        if not sparse.issparse(x):
            return self.exact_inner(x)
        body, limits, found = getattr(x, "last_inner", (None, None, None))
        if found is None or body is not self.theta.body or limits is not self.bounds.x:
            found = self.exact_inner(x)
            x.last_inner = (self.theta.body, self.bounds.x, found)  # the next query may ask again
        return found

    def exact_inner(self, x: Any) -> np.ndarray:
        """The same from the rows themselves: a function of theta, however it came about."""
        return exact_inner(self.theta, self.bounds, x)

    def slopes(self, x: Any, y: np.ndarray) -> np.ndarray:
        """The slope at each row, in steps of the largest slope / `SLOPE_STEPS`."""
        return self.slopes_at(self.margins(x), y)

    def slopes_at(self, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The same at known margins."""
        with np.errstate(all="ignore"):
            return to_steps(self.loss.slope(margins, y), self.slope_bound(), SLOPE_STEPS)

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        return np.array([self.slopes(x, y).sum()])

    @property
    def slope_unit(self) -> float:
        """What a step of a slope is."""
        return self.slope_bound() / SLOPE_STEPS

    @property
    def unit(self) -> Any:
        return self.slope_unit / self.n_rows

    def slope_bound(self) -> float:
        """The largest |slope| at this public theta, not the worst over the whole set."""
        return self._slope_bound

    @cached_property
    def _slope_bound(self) -> float:
        # Once: the unit and the sensitivity must be made from the same number.
        reach = self.bounds.reach(self.theta) + abs(self.theta.offset)
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

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
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

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
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

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        steps = self.slopes(x, y)
        with np.errstate(all="ignore"):
            room = 1 - 2.0**-40 - 2.0**-52 * self.theta.size  # for the rounding of a row's length
            allowed = self.clip * room / (self._row_lengths(x) * self.slope_unit)
            limit = np.floor(np.fmin(allowed, SLOPE_STEPS))
        return x.T @ np.clip(steps, -limit, limit)

    def _row_lengths(self, x: Any) -> np.ndarray:
        """The Euclidean length of each row on the grid."""
        if not sparse.issparse(x):
            if np.ndim(self.bounds.x) == 0:
                return np.sqrt(np.einsum("ij,ij->i", x, x)) * (self.bounds.x / X_STEPS)
            return np.sqrt(np.square(x) @ np.square(self.bounds.x / X_STEPS))
        limits, found = getattr(x, "row_lengths", (None, None))
        if found is None or limits is not self.bounds.x:
            found = self._sparse_row_lengths(x)
            x.row_lengths = (self.bounds.x, found)  # beside the rows: all steps ask for them
        return found

    def _sparse_row_lengths(self, x: Any) -> np.ndarray:
        one = np.ndim(self.bounds.x) == 0
        entries = np.square(x.data if one else x.data * (self.bounds.x / X_STEPS)[x.indices])
        squares, full = np.zeros(x.shape[0]), np.diff(x.indptr) > 0
        if full.any():  # each row by itself: another must not move the order of its sum
            squares[full] = np.add.reduceat(entries, x.indptr[:-1][full])
        return np.sqrt(squares) * (self.bounds.x / X_STEPS if one else 1.0)

    def row_bound(self, norm: str) -> float:
        stretched = np.sqrt(self.theta.size) if norm == "l1" else 1.0
        return min(super().row_bound(norm), float(self.clip * stretched))
