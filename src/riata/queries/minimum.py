"""The minimiser of a regularised risk: found inside a mechanism through sums of fine slopes.

Only the perturbed minimiser leaves the mechanism. How near the computed point is to the exact one
is proven from the errors stated here; docs/privacy/objective_perturbation.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from riata.errors import InvalidArgument
from riata.grid import ROUNDED_UP, X_STEPS, coefficient_steps
from riata.losses.enforced import enforced, proven
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.queries.base import ProblemQuery
from riata.queries.block import Block, Reads
from riata.queries.coefficients import Coefficients
from riata.queries.gradient import MeanSlope
from riata.queries.row_pairs import Changes, RowPairs, changes
from riata.sets import ConstraintSet
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.losses import Loss
    from riata.problem import Problem

#: A slope is split into three limbs of this many bits, so that each limb's sum is exact.
_LIMB = 16
_FINE_STEPS = 2.0 ** (3 * _LIMB)

#: A loss's slope is computed up to this part of the largest slope: the logistic one by a series.
SLOPE_ERROR = 2.0**-41

#: Sums of gradients, of a size whose squares are numbers.
_SMALLEST_SUM, _LARGEST_SUM = 1e-100, 1e100


@dataclass(frozen=True, eq=False)
class FineGradient(MeanSlope):
    """The sum over the rows of slope * (x, 1), with slopes of 48 bits: the last entry is for 1."""

    reads: ClassVar[Reads] = Reads.ROWS

    def margins(self, block: Block) -> np.ndarray:
        """As for every query, with theta on a grid so fine that float64 sees no difference."""
        values = self.theta.values * self.bounds.of_columns(self.theta.support)
        coarse, step = coefficient_steps(values)
        fine, small = coefficient_steps(values - coarse * step)
        support = self.theta.support
        upper = block.inner(Coefficients(support, coarse, step / X_STEPS))
        lower = block.inner(Coefficients(support, fine, small / X_STEPS))
        return upper + lower + self.theta.offset

    @property
    def margin_reach(self) -> float:
        """That of theta itself: what is clipped at a rounded one would count as an error."""
        return self.bounds.reach(self.theta) * ROUNDED_UP

    def block_sum(self, block: Block) -> np.ndarray:
        limbs = self._limbs(block)
        sums = (np.ascontiguousarray(limbs.T) @ block.rows).T  # three times as quick as rows.T @
        return np.concatenate([sums, limbs.sum(axis=0, keepdims=True)]).ravel()

    def _limbs(self, block: Block) -> np.ndarray:
        with np.errstate(all="ignore"):
            slopes = self.loss.slope(self.margins(block), block.y) * (
                _FINE_STEPS / self.slope_bound()
            )
            slopes = np.fmax(np.fmin(np.rint(slopes), _FINE_STEPS), -_FINE_STEPS)
        whole = slopes.astype(np.int64)
        mask = 2**_LIMB - 1
        limbs = (whole >> (2 * _LIMB), (whole >> _LIMB) & mask, whole & mask)
        return np.stack(limbs, axis=1).astype(np.float64)

    @property
    def unit(self) -> Any:
        return self.slope_bound() / _FINE_STEPS

    def row_bound(self, norm: str) -> float:
        raise ValueError("A fine gradient is for a minimiser inside a mechanism, not for release.")

    def from_total(self, total: np.ndarray) -> np.ndarray:
        limbs = total.reshape(-1, 3).astype(np.float64)
        sums = (
            limbs[:, 0] * 2.0 ** (2 * _LIMB) + limbs[:, 1] * 2.0**_LIMB + limbs[:, 2]
        ) * self.unit
        sums[:-1] *= self.bounds.x / X_STEPS
        return sums


@dataclass(frozen=True, eq=False)
class Minimum(ProblemQuery):
    """Where the regularised risk, plus a random linear term, is smallest over a set.

    The intercept is a coordinate like the others: its column is the constant 1.

    Parameters
    ----------
    problem : Problem
    smoothing : float, default=0.0
        Over which width the corner of the loss is rounded, if it has one. Public.
    """

    smoothing: float = 0.0

    @cached_property
    def smooth(self) -> Problem:
        """The problem with the loss whose risk is minimised: its bounds hold, whatever is given."""
        given = self.problem.loss
        loss = given if self.smoothing == 0 else given.smoothed(self.smoothing)
        if loss is None:
            raise ValueError(f"The {given.name} loss has no corner to be rounded.")
        if loss.curvature_bound(self.y_bound) < math.inf:
            loss = enforced(loss, self.margin_bound, self.y_bound)
        return self.problem if loss is given else replace(self.problem, loss=loss)

    @property
    def loss(self) -> Loss:
        return self.smooth.loss

    @property
    def set(self) -> ConstraintSet:
        return self.problem.set

    @property
    def fit_intercept(self) -> bool:
        return self.problem.fit_intercept

    @cached_property
    def _enforced(self) -> Problem:
        """The same for rows, which meet no slope that is only declared."""
        if not proven(self.loss):
            raise ValueError(f"The {self.loss.name} loss has no bounds that are enforced.")
        return self.smooth

    def gradient(self, theta: Vector) -> FineGradient:
        return FineGradient(self._enforced, theta)

    def block_sum(self, block: Block) -> np.ndarray:
        """The gradient at the start: a minimum itself is no sum."""
        return self.gradient(self.set.start()).block_sum(block)

    @property
    def unit(self) -> Any:
        return self.gradient(self.set.start()).unit

    @property
    def size(self) -> int:
        """How many numbers are released: the coefficients, and the intercept if there is one."""
        return self.set.required_size() + self.fit_intercept

    @cached_property
    def offset_bound(self) -> float:
        bound = float(self.problem.offset_bound)
        if not 0 <= bound < math.inf:
            raise InvalidArgument(
                f"The loss's offset bound is {bound!r}: it must be a finite number that is not "
                "negative, because the intercept is kept within it. Correct offset_bound of the "
                "loss."
            )
        return bound

    @cached_property
    def row_length(self) -> float:
        """The largest Euclidean length of a row, with the intercept's 1."""
        row = self.bounds.row_norm("l2", self.set.required_size())
        return math.hypot(row, 1.0 if self.fit_intercept else 0.0) * ROUNDED_UP

    @cached_property
    def margin_bound(self) -> float:
        return (self.set.reach(self.bounds) + self.offset_bound) * ROUNDED_UP

    @cached_property
    def slope_bound(self) -> float:
        """The largest |slope| anywhere in the set."""
        bound = self.loss.slope_bound(self.margin_bound, self.y_bound) * ROUNDED_UP
        whole = self.n_rows * self.row_length * bound
        if not _SMALLEST_SUM <= whole <= _LARGEST_SUM:
            raise InvalidArgument(
                f"Sums of gradients are up to {whole:.3g} in size: they must lie between "
                f"{_SMALLEST_SUM:g} and {_LARGEST_SUM:g}, so that no square of one vanishes or "
                "overflows. Use other units for rows, targets or weights."
            )
        return bound

    @cached_property
    def row_curvature(self) -> float:
        """The largest eigenvalue of one row's Hessian: curvature times squared length."""
        return self.loss.curvature_bound(self.y_bound) * self.row_length**2 * ROUNDED_UP

    def row_bound(self, norm: str) -> float:
        if norm != "l2":
            raise ValueError(f"Objective perturbation needs the Euclidean length, not {norm}.")
        return self.slope_bound * self.row_length

    def sensitivity(self, norm: str, directions: int = 2) -> float:
        """The largest change of the *sum* of gradients between neighbours, at any point.

        With ``directions=1``, twice the bound of one row, if two change: for noise that is
        accounted for as if all changes lay on few lines, and not only in a plane.
        """
        free = CHANGED_CONTRIBUTIONS[self.adjacency] * self.row_bound(norm) * ROUNDED_UP
        return free if directions == 1 else min(free, float(self._changes.moved.max()))

    @cached_property
    def _changes(self) -> Changes:
        return changes(
            RowPairs(
                self.loss, self.y_bound, self.row_length, self.set.reach(self.bounds) * ROUNDED_UP,
                self.offset_bound, self.set.radius_in("l2"), self.fit_intercept,
                self.bounds.nonnegative, self.adjacency,
            )
        )  # fmt: skip

    def stretch(self, regularisation: float, above: float = 0.0, directions: int = 2) -> float:
        """The largest change between neighbours of the logarithm of the Jacobian determinant.

        With `above`, what is left of it where the linear term loses at least so much: where the
        determinant changes most the gradient changes less than it might, and loses less.
        """
        whole = math.log1p(self.row_curvature / regularisation) * ROUNDED_UP
        if above == 0:
            return whole
        here, largest = self._changes, self.sensitivity("l2", directions)
        moved = here.moved
        if directions == 1:
            other = (CHANGED_CONTRIBUTIONS[self.adjacency] - 1) * self.slope_bound
            moved = (here.steepest + other) * self.row_length
        stretches = np.log1p(here.curvature * (self.row_length**2 / regularisation))
        left = stretches - above * np.maximum(1 - moved / largest, 0.0)
        return min(whole, max(0.0, float(left.max())) * ROUNDED_UP + above * 2.0**-44)

    @property
    def gradient_error(self) -> float:
        """How far the computed sum of gradients may be from the exact one, in l2."""
        curvature = self.loss.curvature_bound(self.y_bound)
        margin = (2.0**-48 + 2.0**-70 * self.set.required_size() ** 2) * self.margin_bound
        row = 2 * SLOPE_ERROR * self.slope_bound + curvature * margin
        return self.n_rows * self.row_length * row
