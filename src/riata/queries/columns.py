"""Columns that are centred and scaled: their moments, and the gradient in the scaled space.

Rows are in units of their columns' bounds. The centre and the scales are public: they were
released before, and lie on integer grids, so that the length of a centred and scaled row is the
root of an exact integer. Proofs are in docs/privacy/scaled_gradient.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from riata.grid import ROUNDED_DOWN, X_STEPS, pieces, transposed, with_entries
from riata.queries.base import ProblemQuery
from riata.queries.block import Block, Reads
from riata.queries.support import LimitedSlope

#: The squared scales of all columns are about this many steps together.
WEIGHT_STEPS = 2**27

#: Sparse entries are added up about so many at a time, to stay in the cache.
_ENTRIES_AT_ONCE = 2**17

#: So many columns can be scaled: each adds up to 3/2 steps to the sum of the weights.
MOST_COLUMNS = 2**26


@dataclass(frozen=True, eq=False)
class ColumnSums(ProblemQuery):
    """The mean of every column, in units of its bound."""

    def entries(self, steps: np.ndarray) -> np.ndarray:
        """What is summed of each entry: a whole number, no larger than `X_STEPS`."""
        return steps

    def block_sum(self, block: Block) -> np.ndarray:
        total = np.zeros(self.problem.n_features)
        if sparse.issparse(block.rows):
            for few, rows in pieces(block.rows, max(_ENTRIES_AT_ONCE, 4 * len(total))):
                entries = with_entries(rows, self.entries(rows.data))
                total += transposed(entries) @ np.ones(few.stop - few.start)
        else:
            for _, rows in pieces(block.rows):
                total += self.entries(rows).sum(axis=0)
        return total

    @property
    def unit(self) -> Any:
        return 1 / X_STEPS / self.n_rows

    @property
    def longest(self) -> float:
        """The largest length of a row."""
        return self.bounds.unit_length(slice(None), self.problem.n_features)

    def row_bound(self, norm: str) -> float:
        most = math.sqrt(self.problem.n_features)
        return {"l1": self.longest * most, "l2": self.longest, "linf": 1.0}[norm]


@dataclass(frozen=True, eq=False)
class ColumnSquares(ColumnSums):
    """The mean square of every column, of entries that are clipped, rounded down.

    Parameters
    ----------
    entry_limit : float
        Where entries are clipped, in units of their columns' bounds. A row's squares are then no
        longer than this times the row.
    """

    entry_limit: float

    nonnegative_inner: ClassVar[bool] = True

    @property
    def _limit(self) -> int:
        return int(min(max(math.ceil(self.entry_limit * X_STEPS), 1), X_STEPS))

    def entries(self, steps: np.ndarray) -> np.ndarray:
        return np.floor(np.square(np.minimum(np.abs(steps), self._limit)) / self._limit)

    @property
    def unit(self) -> Any:
        return super().unit * (self._limit / X_STEPS)

    def row_bound(self, norm: str) -> float:
        return super().row_bound(norm) * (self._limit / X_STEPS)


@dataclass(frozen=True, eq=False)
class Scaling:
    """A public centre and a public scale for some columns, both on integer grids.

    A row x, in units of the bounds, becomes ``scales * (x[columns] - centre)``.

    Parameters
    ----------
    size : int
        The number of all columns.
    columns : ndarray of int
        Increasing.
    centre_steps : ndarray of int64
        In steps of a column's bound / `X_STEPS`, smaller than `X_STEPS` in size.
    weights : ndarray of int64
        The squared scales in steps, at least 1, at most 2^28 together.
    step : float
        The scale that a weight of 1 stands for.
    """

    size: int
    columns: np.ndarray
    centre_steps: np.ndarray
    weights: np.ndarray
    step: float

    def __post_init__(self) -> None:
        centre, weights = self.centre_steps, self.weights
        whole = centre.dtype == weights.dtype == np.int64
        if not (whole and len(self.columns) == len(centre) == len(weights) <= MOST_COLUMNS):
            raise ValueError("A scaling has one 64-bit integer of each kind for each column.")
        inside = bool(((centre > -X_STEPS) & (centre < X_STEPS)).all())
        if not inside or weights.min(initial=1) < 1:
            raise ValueError("A centre lies inside the bounds, and a weight is at least 1.")
        most = weights.max(initial=0)  # first: a sum of larger ones could wrap around
        if max(most, weights.sum()) > 2 * WEIGHT_STEPS or not 0 < self.step < math.inf:
            raise ValueError("The weights are too large, or their step is not positive.")

    @classmethod
    def of(
        cls, size: int, columns: np.ndarray, centre: np.ndarray, variances: np.ndarray
    ) -> Scaling:
        """The scaling by the roots of positive variances, as near as the grids allow."""
        inverse = variances.min() / variances  # largest 1: no overflow
        weights = np.maximum(np.rint(inverse * (WEIGHT_STEPS / inverse.sum())), 1.0)
        step = math.sqrt(inverse.sum() / WEIGHT_STEPS / variances.min())
        steps = np.clip(np.rint(centre * X_STEPS), 1 - X_STEPS, X_STEPS - 1)
        return cls(size, columns, steps.astype(np.int64), weights.astype(np.int64), step)

    @property
    def centre(self) -> np.ndarray:
        """The centre, in units of the bounds."""
        return self.centre_steps / X_STEPS

    @cached_property
    def scales(self) -> np.ndarray:
        return np.sqrt(self.weights) * self.step

    @cached_property
    def _everywhere(self) -> tuple[np.ndarray, np.ndarray]:
        """The weights, and twice the centre, of all columns: 0 where one is left out."""
        weights, twice = np.zeros((2, self.size), dtype=np.int64)
        weights[self.columns], twice[self.columns] = self.weights, 2 * self.centre_steps
        return weights, twice

    def lengths(self, block: Block) -> np.ndarray:
        """The length of each centred and scaled row in steps, a root of an exact integer."""
        return np.asarray(block.once("scaled", (self,), lambda x: np.sqrt(self.squared_lengths(x))))

    def shortening(self, block: Block, length: float) -> np.ndarray:
        """What each centred and scaled row is multiplied by to be no longer than `length`."""
        allowed = length * X_STEPS / self.step * ROUNDED_DOWN

        def shortening(_: Any) -> np.ndarray:
            with np.errstate(divide="ignore"):
                return np.minimum(1.0, allowed / self.lengths(block))

        return np.asarray(block.once("shortening", (self, length), shortening))

    def squared_lengths(self, x: Any) -> np.ndarray:
        """The squared length of each centred and scaled row on the grid: exact integers."""
        weights, twice = self._everywhere
        total = np.empty(x.shape[0], dtype=np.int64)
        for few, rows in pieces(x):
            if sparse.issparse(rows):
                steps = rows.data.astype(np.int64)  # all sums below stay under 2^62
                total[few] = with_entries(rows, steps * steps) @ weights
                total[few] -= with_entries(rows, steps) @ (twice * weights)
            else:
                steps = rows.astype(np.int64)
                total[few] = ((steps - twice) * steps * weights).sum(axis=1)
        return total + np.dot(self.weights, np.square(self.centre_steps))


@dataclass(frozen=True, eq=False)
class CentredGradient(LimitedSlope):
    """The mean of slope * z, with z the centred and scaled row, shortened to a public length.

    Shortening a row is done to its slope, which is rounded towards 0: what is summed stays a whole
    number times a row on the grid.

    Parameters
    ----------
    limit : float
        Where slopes are clipped.
    scaling : Scaling
    length : float
        Rows that are longer in the scaled space are shortened to this.
    """

    scaling: Scaling
    length: float

    reads: ClassVar[Reads] = Reads.ROWS

    def shortened(self, block: Block) -> np.ndarray:
        """The slopes in steps, less for rows that are too long."""
        return np.trunc(self.slopes(block) * self.scaling.shortening(block, self.length))

    def block_sum(self, block: Block) -> np.ndarray:
        scaling = self.scaling

        def centred(few: Block) -> np.ndarray:
            slopes = self.shortened(few)
            whole = few.sums(slopes)[scaling.columns].astype(np.int64)
            return whole - scaling.centre_steps * int(slopes.sum())

        return block.in_pieces(centred)

    @property
    def unit(self) -> Any:
        return self.scaling.scales * (self.slope_unit / X_STEPS / self.n_rows)

    def row_bound(self, norm: str) -> float:
        stretched = math.sqrt(len(self.scaling.columns)) if norm == "l1" else 1.0
        return self.slope_bound() * self.length * stretched
