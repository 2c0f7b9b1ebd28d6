"""How much better one model fits than another: the mean of clipped differences of losses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riata.grid import to_steps
from riata.queries.block import Block
from riata.queries.gradient import LARGEST_SLOPE, SMALLEST_SLOPE, MeanSlope
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class Improvement(MeanSlope):
    """The mean loss of a reference model, and how much lower the mean loss of theta is.

    Parameters
    ----------
    reference : Vector
    most : float
        Losses, and differences of losses, beyond this count as this. Proofs are in
        docs/privacy/refit.md.
    """

    reference: Vector
    most: float

    def block_sum(self, block: Block) -> np.ndarray:
        with np.errstate(all="ignore"):
            ours = self.loss.value(self.margins(block), block.y)
            other = self.loss.value(replace(self, theta=self.reference).margins(block), block.y)
            steps = [to_steps(each, self._most, self.slope_steps) for each in (other, other - ours)]
        return np.array([each.sum() for each in steps])

    @property
    def _most(self) -> float:
        return min(max(SMALLEST_SLOPE, self.most), LARGEST_SLOPE)  # of NaN, the smallest

    @property
    def unit(self) -> Any:
        return self._most / self.slope_steps / self.n_rows

    def row_bound(self, norm: str) -> float:
        return self._most * {"l1": 2.0, "l2": math.sqrt(2), "linf": 1.0}[norm]
