"""The table that nuisance parameters follow from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from riata.losses import NuisanceLoss
from riata.queries.block import Block, Reads
from riata.queries.gradient import MeanSlope

#: A row that is as long as it may be is so in float64 too: far less than `ROUNDED_UP` adds.
_ROUNDING = 1 + 2.0**-45


@dataclass(frozen=True, eq=False)
class NuisanceSums(MeanSlope):
    """The mean of the parts of the loss at theta, a line for each cell.

    A row adds numbers between 0 and 1 to the line of its cell, and nothing to the other lines. The
    proof is in docs/privacy/nuisance.md.

    Parameters
    ----------
    reach : float
        As for `NuisanceLoss.parts`.
    """

    reach: float

    reads: ClassVar[Reads] = Reads.COLUMNS

    nonnegative_inner: ClassVar[bool] = True

    @property
    def table_loss(self) -> NuisanceLoss:
        assert isinstance(self.loss, NuisanceLoss)
        return self.loss

    def block_sum(self, block: Block) -> np.ndarray:
        loss, most = self.table_loss, self.slope_steps
        with np.errstate(all="ignore"):  # a warning would tell of a row
            margins = self.margins(block)
            parts = np.floor(loss.parts(margins, block.y, self.reach)[:, : loss.n_parts] * most)
            parts = np.fmax(np.fmin(parts, most), 0.0)  # NaN becomes `most`
            cells = loss.cells(block.y)
        short = np.square(parts).sum(axis=1) <= (loss.longest_parts * most) ** 2 * _ROUNDING
        known = short & np.isin(cells, np.arange(loss.n_cells))
        places = np.where(known, cells, loss.n_cells).astype(np.intp)
        lines = (np.bincount(places, each, loss.n_cells + 1)[:-1] for each in parts.T)
        return np.column_stack([*lines]).ravel()

    @property
    def unit(self) -> Any:
        return 1 / self.slope_steps / self.n_rows

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """One line for each cell."""
        return super().from_total(total).reshape(self.table_loss.n_cells, -1)

    def row_bound(self, norm: str) -> float:
        longest = self.table_loss.longest_parts
        return {"l1": longest * math.sqrt(self.table_loss.n_parts), "l2": longest, "linf": 1.0}[
            norm
        ]
