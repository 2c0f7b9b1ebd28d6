"""The gradient of the empirical risk, whole, in parts, or clipped row by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riata.errors import InvalidArgument
from riata.grid import ROUNDED_DOWN, X_STEPS, slope_steps, to_steps
from riata.queries.base import ProblemQuery
from riata.queries.block import Block, Reads
from riata.queries.coefficients import Coefficients
from riata.vectors import Vector

#: Slope bounds lie in this range: at 0 there would be no noise.
SMALLEST_SLOPE, LARGEST_SLOPE = 1e-150, 1e150


@dataclass(frozen=True, eq=False)
class MeanSlope(ProblemQuery):
    """The mean of the loss's slope at theta: the derivative of the risk in the intercept."""

    theta: Vector

    reads: ClassVar[Reads] = Reads.COLUMNS

    @property
    def model(self) -> Vector:
        return self.theta

    @cached_property
    def coefficients(self) -> Coefficients:
        """theta on the grid."""
        return Coefficients.of(self.theta, self.bounds)

    def margins(self, block: Block) -> np.ndarray:
        """<x, theta> + offset for each row."""
        return block.inner(self.coefficients) + self.theta.offset

    def slopes(self, block: Block, rows: Any = slice(None)) -> np.ndarray:
        """The slope at each row, or at some, in steps of the largest slope / `slope_steps`."""
        with np.errstate(all="ignore"):
            return to_steps(block.slopes(self)[rows], self.slope_bound(), self.slope_steps)

    def slopes_at(self, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The same at known margins."""
        with np.errstate(all="ignore"):
            return to_steps(self.loss.slope(margins, y), self.slope_bound(), self.slope_steps)

    def block_sum(self, block: Block) -> np.ndarray:
        return np.array([self.slopes(block).sum()])

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

    @property
    def margin_reach(self) -> float:
        """The largest size of an inner product of a row with theta as it is rounded."""
        if not self.bounds.shortens:
            return self.coefficients.reach
        return min(self.coefficients.reach, self.coefficients.longest)

    @cached_property
    def _slope_bound(self) -> float:
        # Once: the unit and the sensitivity must be made from the same number.
        reach = self.margin_reach + abs(self.theta.offset)
        bound = float(self.loss.slope_bound(reach, self.y_bound))
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

    reads: ClassVar[Reads] = Reads.SUMS

    def block_sum(self, block: Block) -> np.ndarray:
        return block.in_pieces(lambda few: few.sums(self.slopes(few)))

    @property
    def unit(self) -> Any:
        return super().unit * (self.bounds.x / X_STEPS)

    def row_bound(self, norm: str) -> float:
        return self.slope_bound() * self.bounds.row_norm(norm, self.theta.size)


@dataclass(frozen=True, eq=False)
class GradientEntries(Gradient):
    """Some coordinates of the gradient."""

    columns: np.ndarray

    def block_sum(self, block: Block) -> np.ndarray:
        return block.sums(self.slopes(block), columns=self.columns)

    @property
    def unit(self) -> Any:
        unit = super().unit
        return unit if np.ndim(unit) == 0 else unit[self.columns]

    def row_bound(self, norm: str) -> float:
        return self.slope_bound() * self.bounds.row_norm(norm, self.theta.size, self.columns)


@dataclass(frozen=True, eq=False)
class ClippedGradient(Gradient):
    """The mean of slope * x, with each row's summand shortened to a length of at most `clip`."""

    clip: float

    reads: ClassVar[Reads] = Reads.ROWS

    def block_sum(self, block: Block) -> np.ndarray:
        return block.in_pieces(lambda few: few.sums(self.shortened(few)))

    def shortened(self, block: Block) -> np.ndarray:
        """The slopes in steps, no larger than the row's length allows."""
        steps = self.slopes(block)
        with np.errstate(all="ignore"):
            room = ROUNDED_DOWN - 2.0**-52 * self.theta.size  # for the rounding of a row's length
            lengths = block.row_lengths(self.bounds)
            allowed = self.clip * room / (lengths * self.slope_unit)
            limit = np.floor(np.fmin(allowed, self.slope_steps))
        return np.clip(steps, -limit, limit)

    def row_bound(self, norm: str) -> float:
        stretched = np.sqrt(self.theta.size) if norm == "l1" else 1.0
        return min(super().row_bound(norm), float(self.clip * stretched))
