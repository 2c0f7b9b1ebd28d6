"""Queries for rows that are public and targets that are not: adjacency "replace-label".

What is asked of rows alone never gets to see a target, so it is the same for all neighbours. What
reads targets sums rows that weigh less the longer they are, so that a target changes little. Proofs
are in docs/privacy/label_privacy.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from riata.grid import ROUNDED_DOWN, X_STEPS, to_steps
from riata.privacy.budget import REPLACE_LABEL
from riata.queries.base import Query
from riata.queries.block import Block, Reads
from riata.queries.gradient import MeanSlope
from riata.queries.moments import symmetric_matrix
from riata.queries.support import LimitedSlope
from riata.queries.whitening import WhitenedRows, Whitening, check_sizes


class RowQuery(Query):
    """A query that is handed rows without their targets, and so tells nothing about a target."""

    @final
    def block_sum(self, block: Block) -> np.ndarray:
        # Whoever asks for a target fails, on all data alike.
        return self.sum_of_rows(block.without_targets)

    @abstractmethod
    def sum_of_rows(self, block: Block) -> np.ndarray:
        """The sum of a block whose targets are missing: integers, exact in float64."""

    def sensitivity(self, norm: str) -> float:
        if self.adjacency == REPLACE_LABEL:
            return 0.0
        return super().sensitivity(norm)


@dataclass(frozen=True, eq=False)
class DesignRows(WhitenedRows):
    """Rows h = (u, constant) in new coordinates, each with a weight that its length decides.

    Parameters
    ----------
    whitening : Whitening
        From rows to u.
    reach : float
        Coordinates of u that are larger count as this.
    constant : float
        The entry that stands for the intercept, at most the reach, or 0 for none.
    length : float
        A row that is longer has the weight that makes it as long as this. Others have weight 1.
    """

    whitening: Whitening
    reach: float
    constant: float
    length: float

    def __post_init__(self) -> None:
        check_sizes(self.reach, self.constant, self.length)

    def of(self, block: Block) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Rows h in whole steps, a few at a time, which rows these are, and their weights.

        A weight times the length of its row is at most `length`.
        """
        constant_steps = math.floor(self.constant / self.step)
        allowed = self.length * ROUNDED_DOWN / self.step
        for few, u, squares in self.whitening.kept_rows(block, self.step, X_STEPS):
            with np.errstate(divide="ignore"):
                weights = np.minimum(1.0, allowed / np.sqrt(squares + float(constant_steps) ** 2))
            h = np.column_stack([u, np.full(len(u), float(constant_steps))]) if self.constant else u
            yield few, h, weights


@dataclass(frozen=True, eq=False)
class LabelSums(LimitedSlope):
    """The mean of weight * slope * h: all that a model needs to know about targets.

    Parameters
    ----------
    limit : float
        Where slopes are clipped.
    rows : DesignRows
    """

    rows: DesignRows

    reads: ClassVar[Reads] = Reads.ROWS

    def block_sum(self, block: Block) -> np.ndarray:
        slopes, total = self.slopes(block), np.zeros(self.rows.width)
        for few, h, weights in self.rows.of(block):
            total += np.trunc(slopes[few] * weights) @ h
        return total

    @property
    def unit(self) -> Any:
        return self.slope_unit * self.rows.step / self.n_rows

    def row_bound(self, norm: str) -> float:
        stretched = math.sqrt(self.rows.width) if norm == "l1" else 1.0
        return self.slope_bound() * self.rows.length * stretched


@dataclass(frozen=True, eq=False)
class DesignCurve(RowQuery, MeanSlope):
    """How the mean of weight * slope * h changes from the margin 0 to theta, and its derivative.

    For a loss whose slope is a function of the margin less the target: both are then the same for
    all targets.
    """

    rows: DesignRows

    reads: ClassVar[Reads] = Reads.ROWS

    @property
    def _target(self) -> float:
        """Any target: no answer depends on which."""
        return self.loss.class_targets()[0] if self.loss.classifies else 0.0

    @property
    def _change_bound(self) -> float:
        return 2 * self.slope_bound()

    @property
    def _curvature_bound(self) -> float:
        return float(self.loss.curvature_bound(self.y_bound))

    def sum_of_rows(self, block: Block) -> np.ndarray:
        margins, size = self.margins(block), self.rows.width
        targets = np.full(len(margins), self._target)
        with np.errstate(all="ignore"):
            change = self.loss.slope(margins, targets)
            change = change - self.loss.slope(np.zeros(len(margins)), targets)
            steps = to_steps(change, self._change_bound, self.slope_steps)
            curvature = self.loss.curvature(margins, targets)
            curved = np.clip(curvature / self._curvature_bound, 0.0, 1.0)
        vector, matrix = np.zeros(size), np.zeros((size, size))
        for few, h, weights in self.rows.of(block):
            vector += np.trunc(steps[few] * weights) @ h
            v = np.trunc(h * np.sqrt(weights * curved[few])[:, None])
            matrix += v.T @ v
        return np.concatenate([vector, matrix[np.triu_indices(size)]])

    @property
    def unit(self) -> Any:
        step, size = self.rows.step, self.rows.width
        vector = np.full(size, self._change_bound / self.slope_steps * step)
        matrix = np.full(size * (size + 1) // 2, self._curvature_bound * step**2)
        return np.concatenate([vector, matrix]) / self.n_rows

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The change in the first line, and the derivative below it."""
        answer, size = total * self.unit, self.rows.width
        return np.vstack([answer[:size], symmetric_matrix(answer[size:], size)])

    def row_bound(self, norm: str) -> float:
        square = self._curvature_bound * self.rows.length**2
        change, size = self._change_bound * self.rows.length, self.rows.width
        if norm == "l1":
            return change * math.sqrt(size) + square * (size + 1) / 2
        return change + square
