"""Which column would lower the risk: correlations of clipped slopes with clipped entries.

Entries count in units of their columns' bounds. A slope or an entry beyond its limit counts as the
limit, so that one row moves a correlation by little; a rank needs no more. Proofs are in
docs/privacy/refit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from riata.grid import X_STEPS, to_steps
from riata.queries.block import Block, Reads
from riata.queries.support import LimitedSlope


@dataclass(frozen=True, eq=False)
class Correlations(LimitedSlope):
    """The mean of slope * entry for each column.

    A selection ranks them by their size, so the list is `symmetric`.

    Parameters
    ----------
    limit : float
        Where slopes are clipped.
    entry_limit : float
        Where entries are clipped, in units of their columns' bounds: in (0, 1].
    """

    entry_limit: float

    reads: ClassVar[Reads] = Reads.SUMS

    @property
    def symmetric(self) -> bool:
        return True

    #: Each correlation is a multiple of one column's sum.
    by_column: ClassVar[bool] = True

    @property
    def source(self) -> Correlations:
        """What says how slopes are made of margins."""
        return self

    @property
    def most(self) -> int:
        """The largest entry that counts, in steps."""
        return max(1, math.floor(min(self.entry_limit, 1.0) * X_STEPS))

    def block_sum(self, block: Block) -> np.ndarray:
        return block.sums(self.slopes(block), self.most)

    @property
    def unit(self) -> Any:
        return self.slope_unit / X_STEPS / self.n_rows

    @property
    def column_weights(self) -> float:
        """The correlation for a sum of 1 over entry * slope."""
        return 1 / X_STEPS / self.n_rows

    def same_units(self, other: object) -> bool:
        """Whether `column_weights` and the signs of another query are the same."""
        return isinstance(other, Correlations) and self.n_rows == other.n_rows

    def utility(self, column: int, total: int) -> float:
        """What `from_total` makes of a column's sum."""
        return float(total) * self.unit

    def row_bound(self, norm: str) -> float:
        if norm != "linf":
            raise ValueError(
                f"Selection needs the change of one correlation, not the {norm} norm of all."
            )
        return self.slope_bound() * self.most / X_STEPS

    def sensitivity(self, norm: str) -> float:
        """As for every query, and what `from_total` may round of at most `row_bound`."""
        return super().sensitivity(norm) + 3 * 2.0**-52 * self.row_bound(norm)


@dataclass(frozen=True, eq=False)
class Coordinate(Correlations):
    """One column's correlation, and how fast it falls with the column's coefficient.

    The second is the mean of weight * entry * clipped entry, which is positive.
    """

    column: int

    reads: ClassVar[Reads] = Reads.COLUMNS

    by_column: ClassVar[bool] = False

    #: How much the second number counts beside the first, of the noise that both share.
    BESIDE: ClassVar[float] = 0.5

    def block_sum(self, block: Block) -> np.ndarray:
        rows, entries = block.entries(self.column)  # the others add nothing
        clipped = np.clip(entries, -self.most, self.most)
        square = np.abs(entries * clipped) / (X_STEPS * self.most)
        with np.errstate(all="ignore"):  # a warning would tell of a row
            falls = to_steps(self.weights(block, rows) * square, 1.0, self.slope_steps)
        return np.array([self.slopes(block, rows) @ clipped, falls.sum()])

    @property
    def unit(self) -> Any:
        first = super().unit
        return np.array([first, first * self.most * self.BESIDE])

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The correlation, and by how much a unit of the coefficient lowers it."""
        value, falls = total * self.unit
        return np.array([value, falls * self.fall_unit])

    @property
    def fall_unit(self) -> float:
        """What the second number is multiplied by after the noise, which both share, is added."""
        return self.largest_curvature / (self.slope_bound() * self.BESIDE)

    def row_bound(self, norm: str) -> float:
        first = self.slope_bound() * self.most / X_STEPS
        if norm == "linf":
            return first
        return first * (1 + self.BESIDE if norm == "l1" else math.hypot(1.0, self.BESIDE))
