"""The rows of each class added up, and their margins counted: what naive Bayes is made of.

Negative entries count as 0, and a row adds to its own class only. So what any two rows add has an
inner product of at least 0, and replacing one by the other costs less than twice the longest row.
Proofs are in docs/privacy/class_sums.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from riata.grid import X_STEPS, transposed, with_entries
from riata.losses import Loss
from riata.queries.base import Counts, ProblemQuery
from riata.queries.block import Block
from riata.queries.gradient import MeanSlope

#: Margins are counted in so many bins for each class.
N_SCORE_BINS = 24


def is_positive(loss: Loss, y: np.ndarray) -> np.ndarray:
    """Whether the loss falls with the margin at 0: whether a row is of the positive class."""
    with np.errstate(all="ignore"):
        return loss.slope(np.zeros(len(y)), y) < 0  # False for NaN


def in_classes(loss: Loss, y: np.ndarray) -> np.ndarray:
    """One line for each class with 1 for its rows and 0 for the others; never two 1s for a row.

    The positive class and the other for a loss of one margin, and otherwise the codes.
    """
    if loss.n_margins > 1:
        return (y == np.arange(loss.n_margins)[:, None]).astype(np.float64)
    positive = is_positive(loss, y).astype(np.float64)
    return np.stack([positive, 1 - positive])


@dataclass(frozen=True, eq=False)
class SumsByClass(ProblemQuery):
    """The mean of (x+, c) in the place of a row's class, and of 0 in those of the other classes.

    Its sensitivity does not depend on the number of classes.

    Parameters
    ----------
    problem : Problem
        Whose loss says which class a row is of.
    part : float
        The constant c, as a part of the longest row: it counts the rows of each class.
    """

    part: float

    nonnegative_inner: ClassVar[bool] = True

    @cached_property
    def constant(self) -> float:
        return self.part * self.bounds.row_norm("l2", self.problem.n_features)

    def block_sum(self, block: Block) -> np.ndarray:
        rows = _without_negatives(block.rows)
        mine = in_classes(self.loss, block.y)
        sums = np.asarray(transposed(rows) @ mine.T)  # all classes in one pass
        return np.column_stack([sums.T, mine.sum(axis=1)]).ravel()

    @property
    def n_classes(self) -> int:
        return max(self.loss.n_margins, 2)

    @cached_property
    def unit(self) -> Any:
        columns = self.bounds.per_column(self.problem.n_features) / X_STEPS
        return np.tile(np.append(columns, self.constant), self.n_classes) / self.n_rows

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """One line for each class, in the order of `in_classes`; the constant's sum is last."""
        return super().from_total(total).reshape(self.n_classes, -1)

    def row_bound(self, norm: str) -> float:
        row = self.bounds.row_norm(norm, self.problem.n_features)
        if norm == "l2":
            return math.hypot(row, self.constant)
        return row + self.constant if norm == "l1" else max(row, self.constant)


def _without_negatives(x: Any) -> Any:
    if not sparse.issparse(x):
        return np.maximum(x, 0.0)
    return with_entries(x, np.maximum(x.data, 0.0))


@dataclass(frozen=True, eq=False)
class ScoreCounts(Counts, MeanSlope):
    """The part of the rows in each bin of the margin under theta, for each class.

    Parameters
    ----------
    centre, spread : float
        Bins are narrow, about `spread`, near the centre and wider further out.
    """

    centre: float
    spread: float

    @staticmethod
    def middles() -> np.ndarray:
        """The middle of each bin, in spreads from the centre."""
        squashed = (2 * np.arange(N_SCORE_BINS) + 1) / N_SCORE_BINS - 1
        return squashed / (1 - np.abs(squashed))

    def block_sum(self, block: Block) -> np.ndarray:
        with np.errstate(all="ignore"):
            away = (self.margins(block) - self.centre) / self.spread
            place = np.floor((away / (1 + np.abs(away)) + 1) / 2 * N_SCORE_BINS)
        found = np.fmax(np.fmin(place, N_SCORE_BINS - 1), 0)  # not clip: NaN must not get through
        found += np.where(is_positive(self.loss, block.y), 0, N_SCORE_BINS)
        counts = np.bincount(found.astype(np.intp), minlength=2 * N_SCORE_BINS)
        return counts.astype(np.float64)

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """One line for the positive class and one for the other."""
        return super().from_total(total).reshape(2, -1)
