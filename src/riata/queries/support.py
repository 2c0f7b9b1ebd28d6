"""The risk on a few columns: its gradient and its curvature, from rows of bounded length.

Rows are restricted to a support, in units of their columns' bounds, shortened to a public length
and given a constant entry for the intercept. So the noise grows with the length of a support's
rows and not with that of whole rows. Proofs are in docs/privacy/refit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import ROUNDED_DOWN, X_STEPS, squared_lengths, to_steps
from riata.queries.block import Block
from riata.queries.gradient import LARGEST_SLOPE, SMALLEST_SLOPE, MeanSlope
from riata.queries.moments import symmetric_matrix


@dataclass(frozen=True, eq=False)
class LimitedSlope(MeanSlope):
    """The mean of slopes that are clipped at a public limit."""

    limit: float

    def slope_bound(self) -> float:
        return min(self._slope_bound, max(SMALLEST_SLOPE, self.limit))  # of NaN, the smallest

    @cached_property
    def largest_curvature(self) -> float:
        """What the loss says about its second derivative, if that is an ordinary number."""
        bound = float(self.loss.curvature_bound(self.y_bound))
        if not SMALLEST_SLOPE <= bound <= LARGEST_SLOPE:
            raise InvalidArgument(
                f"The loss's curvature bound is {bound!r}: it must be a positive number of "
                "ordinary size, because the noise is scaled to it. Correct curvature_bound of the "
                "loss."
            )
        return bound

    def weights(self, block: Block, rows: Any = slice(None)) -> np.ndarray:
        """How fast the clipped residual grows with the margin, at most, over the largest curvature.

        The curvature of the loss, less for a slope that is clipped: in [0, 1].
        """
        with np.errstate(all="ignore"):
            margins, y = self.margins(block)[rows], block.y[rows]
            size = np.abs(self.loss.slope(margins, y))
            curved = self.loss.curvature(margins, y) * np.fmin(1.0, self.slope_bound() / size)
            weights = curved / self.largest_curvature
            return np.fmax(np.fmin(weights, 1.0), 0.0)  # NaN becomes 1


@dataclass(frozen=True, eq=False)
class MeanCurvature(MeanSlope):
    """The mean of the loss's curvature at theta, each clipped into [0, limit]."""

    limit: float

    nonnegative_inner: ClassVar[bool] = True

    def block_sum(self, block: Block) -> np.ndarray:
        with np.errstate(all="ignore"):
            curvatures = self.loss.curvature(self.margins(block), block.y)
            steps = np.fmax(to_steps(curvatures, self.most, self.slope_steps), 0.0)
        return np.array([steps.sum()])

    @property
    def most(self) -> float:
        """The largest curvature that counts."""
        return min(max(SMALLEST_SLOPE, self.limit), LARGEST_SLOPE)  # of NaN, the smallest

    @property
    def unit(self) -> Any:
        return self.most / self.slope_steps / self.n_rows

    def row_bound(self, norm: str) -> float:
        return self.most


@dataclass(frozen=True, eq=False)
class Support:
    """Some columns, in units of their bounds: every entry is at most 1.

    Parameters
    ----------
    columns : ndarray of int
    bounds : Bounds
        Of all columns.
    """

    columns: np.ndarray
    bounds: Bounds

    @property
    def size(self) -> int:
        return len(self.columns)

    @property
    def longest(self) -> float:
        """The largest length of a row on these columns."""
        return self.bounds.unit_length(self.columns, self.size)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """The length of each row on these columns, in steps."""
        return np.sqrt(squared_lengths(rows))


@dataclass(frozen=True, eq=False)
class SupportGradient(LimitedSlope):
    """The mean of slope * u, with u the row on the support, shortened, and a constant beside it.

    Parameters
    ----------
    limit : float
        Where slopes are clipped.
    support : Support
    length : float
        Rows longer than this on the support are shortened to it.
    constant : float
        The entry that stands for the intercept, or 0 for none.
    """

    support: Support
    length: float
    constant: float

    def __post_init__(self) -> None:
        if not (0 < self.length < math.inf and 0 <= self.constant <= 1):
            raise InvalidArgument(
                f"length={self.length!r} must be positive and constant={self.constant!r} in "
                "[0, 1]: sums are exact for such rows alone."
            )

    def rows(self, entries: np.ndarray) -> np.ndarray:
        """The rows u, in steps: whole numbers, no longer than the length."""
        allowed = self.length * X_STEPS * ROUNDED_DOWN
        with np.errstate(all="ignore"):
            shrink = np.minimum(1.0, allowed / self.support.lengths(entries))
            u = np.trunc(entries * shrink[:, None])
        if not self.constant:
            return u
        return np.column_stack([u, np.full(len(u), math.floor(self.constant * X_STEPS))])

    @property
    def longest(self) -> float:
        return math.hypot(self.length, self.constant)

    @property
    def width(self) -> int:
        """The number of coefficients, the intercept's included."""
        return self.support.size + bool(self.constant)

    def block_sum(self, block: Block) -> np.ndarray:
        slopes = self.slopes(block)
        total = np.zeros(self.width)
        for few, entries in block.some_columns(self.support.columns):
            total += slopes[few] @ self.rows(entries)
        return total

    @property
    def unit(self) -> Any:
        return self.slope_unit / X_STEPS / self.n_rows

    def row_bound(self, norm: str) -> float:
        stretched = math.sqrt(self.width) if norm == "l1" else 1.0
        return self.slope_bound() * self.longest * stretched


@dataclass(frozen=True, eq=False)
class SupportCurvature(SupportGradient):
    """The mean of weight * u u': the upper triangle of a matrix, row by row.

    The weight is the loss's curvature at the row, less where its slope is clipped.
    """

    nonnegative_inner: ClassVar[bool] = True

    def block_sum(self, block: Block) -> np.ndarray:
        total = np.zeros((self.width, self.width))
        roots = np.sqrt(self.weights(block))
        for few, entries in block.some_columns(self.support.columns):
            v = np.trunc(self.rows(entries) * roots[few, None])
            total += v.T @ v
        return total[np.triu_indices(self.width)]

    @property
    def unit(self) -> Any:
        return self.largest_curvature / X_STEPS**2 / self.n_rows

    def from_total(self, total: np.ndarray) -> np.ndarray:
        return symmetric_matrix(total * self.unit, self.width)

    def row_bound(self, norm: str) -> float:
        square = self.largest_curvature * self.longest**2
        return square * (self.width + 1) / 2 if norm == "l1" else square
