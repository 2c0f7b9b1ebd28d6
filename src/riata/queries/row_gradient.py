"""The gradient of a loss of whole rows, each row's clipped to what the loss declares.

Proofs are in docs/privacy/sensitivity.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riata.bounds import Bounds
from riata.grid import X_STEPS
from riata.losses import RowLoss
from riata.problem import Problem
from riata.queries.base import ProblemQuery, Query
from riata.queries.block import Block, Reads
from riata.queries.gradient import ClippedGradient, Gradient
from riata.queries.utilities import VertexUtilities
from riata.row_norms import power
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class RowGradient(ProblemQuery):
    """The mean of the rows' gradients at theta.

    Parameters
    ----------
    clip : float, optional
        Gradients are shortened to this Euclidean length, if that is less than is declared.
    """

    theta: Vector
    clip: float | None = None

    reads: ClassVar[Reads] = Reads.ROWS

    @property
    def model(self) -> Vector:
        return self.theta

    @cached_property
    def limits(self) -> Bounds:
        """What each row's gradient is clipped to."""
        declared = self.problem.gradient_bounds
        if self.clip is None or self.clip >= declared.row_norm("l2", self.theta.size):
            return declared
        return Bounds(self.clip, norm="l2")

    def block_sum(self, block: Block) -> np.ndarray:
        loss, theta = self.loss, self.theta.dense()
        assert isinstance(loss, RowLoss)
        total = np.zeros(self.theta.size)
        for few, entries in block.some_columns(np.arange(self.theta.size)):
            rows = entries * (self.bounds.x / X_STEPS)
            total += self.steps(loss.gradients(theta, rows, block.y[few])).sum(axis=0)
        return total

    def steps(self, gradients: np.ndarray) -> np.ndarray:
        """Gradients inside their limits, in whole steps."""
        if self.limits.norm != "inf":  # along their direction, where that is a number
            with np.errstate(all="ignore"):
                shorter = self.limits.x / _lengths(gradients, self.limits.order)
                inside = np.where((shorter > 0) & (shorter < 1), shorter, 1.0)
                gradients = gradients * inside
        found: np.ndarray = self.limits.grid_x(gradients)
        return found

    @property
    def unit(self) -> Any:
        return self.limits.x / X_STEPS / self.n_rows

    def row_bound(self, norm: str) -> float:
        return self.limits.row_norm(norm, self.theta.size)


@dataclass(frozen=True, eq=False)
class RowUtilities(VertexUtilities):
    """How much each vertex of a polytope promises, for a loss of whole rows."""

    reads: ClassVar[Reads] = Reads.ROWS

    @cached_property
    def row_gradient(self) -> RowGradient:
        return RowGradient(self.problem, self.theta)

    @property
    def summed(self) -> Query:
        return self.row_gradient

    @property
    def by_column(self) -> bool:
        """No engine knows single entries of a gradient without the others."""
        return False

    def row_bound(self, norm: str) -> float:
        if norm != "linf":
            return super().row_bound(norm)  # which says why not
        return self.polytope.reach(self.row_gradient.limits)


def _lengths(rows: np.ndarray, order: float) -> np.ndarray:
    """The lr norm of each row."""
    if order == 2:
        return np.asarray(np.sqrt(np.square(rows).sum(axis=1, keepdims=True)))
    largest = np.abs(rows).max(axis=1, keepdims=True)
    total = power(np.abs(rows) / largest, order).sum(axis=1, keepdims=True)  # at least 1
    return np.asarray(largest / power(1 / total, 1 / order))


def risk_gradient(
    problem: Problem, theta: Vector, clip: float | None = None
) -> Gradient | RowGradient:
    """The gradient of the empirical risk, with rows' gradients no longer than `clip`."""
    if isinstance(problem.loss, RowLoss):
        return RowGradient(problem, theta, clip)
    return Gradient(problem, theta) if clip is None else ClippedGradient(problem, theta, clip)


def vertex_utilities(problem: Problem, theta: Vector) -> VertexUtilities:
    """How much each vertex of the problem's polytope promises."""
    kind = RowUtilities if isinstance(problem.loss, RowLoss) else VertexUtilities
    return kind(problem, theta)
