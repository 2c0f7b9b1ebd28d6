"""What classifiers ask beside their fits: how many rows a class has, and how margins relate to it.

Proofs are in docs/privacy/calibration.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from riata.grid import X_STEPS, to_steps
from riata.queries.base import Counts, ProblemQuery
from riata.queries.block import Block, Reads
from riata.queries.gradient import MeanSlope
from riata.queries.sizes import N_BINS, bins_of, upper_edges


@dataclass(frozen=True, eq=False)
class ClassCounts(ProblemQuery, Counts):
    """The part of the rows in each class. A row in none of them counts nowhere."""

    n_classes: int

    reads: ClassVar[Reads] = Reads.COLUMNS

    def block_sum(self, block: Block) -> np.ndarray:
        return np.array(
            [np.count_nonzero(block.y == k) for k in range(self.n_classes)], dtype=float
        )


@dataclass(frozen=True, eq=False)
class MarginCounts(MeanSlope):
    """The weight of the rows in each cell: a label, a sign of the margin, and a bin of its size.

    The label and the weight of a row are those of its slope at margin 0, which for the logistic
    loss is minus the label times half the weight. The bins are those of `Sizes`.
    """

    nonnegative_inner: ClassVar[bool] = True

    @property
    def top(self) -> float:
        """The largest possible margin."""
        return self.bounds.reach(self.theta) + abs(self.theta.offset) or 1.0

    def slope_bound(self) -> float:
        return self.loss.slope_bound(0.0, self.y_bound)

    def block_sum(self, block: Block) -> np.ndarray:
        with np.errstate(all="ignore"):
            margins = to_steps(self.margins(block), self.top, X_STEPS)
            slopes = self.loss.slope(np.zeros(len(margins)), block.y)
            weights = to_steps(slopes, self.slope_bound(), self.slope_steps)
        cells = (2 * (weights < 0) + (margins > 0)) * N_BINS + bins_of(margins)
        return np.bincount(cells.astype(np.intp), np.abs(weights), minlength=4 * N_BINS)

    @property
    def unit(self) -> Any:
        return 2 * self.slope_unit / self.n_rows

    def row_bound(self, norm: str) -> float:
        return 2 * self.slope_bound()

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The part of either label, the second is the positive one, at each of `sizes`."""
        cells = (total * self.unit).reshape(2, 2, N_BINS)
        return np.concatenate([cells[:, 0, ::-1], cells[:, 1]], axis=1)

    def sizes(self) -> np.ndarray:
        """A margin in the middle of each bin, in the order of `from_total`."""
        edges = upper_edges()
        middles = edges / math.sqrt(2)
        middles[-1] = 1.0  # the last bin is for the largest margin alone
        return self.top * np.concatenate([-middles[::-1], middles])


@dataclass(frozen=True, eq=False)
class MarginSlopes(MeanSlope):
    """The mean of slope * (v, 1), with v the margin over `limit`, clipped to [-1, 1].

    The slope is taken where a line leads: at ``line[0] * v + line[1]``.

    Parameters
    ----------
    limit : float
        Where margins are clipped: public, positive.
    line : tuple of (float, float)
    """

    limit: float
    line: tuple[float, float]

    def slope_bound(self) -> float:
        reach = abs(self.line[0]) + abs(self.line[1])
        return self.loss.slope_bound(reach, self.y_bound)

    def block_sum(self, block: Block) -> np.ndarray:
        with np.errstate(all="ignore"):
            v = to_steps(self.margins(block), self.limit, X_STEPS)
            slopes = self.loss.slope(v * (self.line[0] / X_STEPS) + self.line[1], block.y)
            steps = to_steps(slopes, self.slope_bound(), self.slope_steps)
        return np.array([steps @ v, steps.sum() * X_STEPS])

    @property
    def unit(self) -> Any:
        return self.slope_unit / X_STEPS / self.n_rows

    def row_bound(self, norm: str) -> float:
        return self.slope_bound() * {"l1": 2.0, "l2": math.sqrt(2), "linf": 1.0}[norm]
