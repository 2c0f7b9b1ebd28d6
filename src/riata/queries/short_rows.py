"""Queries about rows that are shortened to a public length first.

A bound on rows may be far too wide, and the noise of sums of whole rows grows with it. The length
that most rows have is a release; longer rows are shortened to it, and all else is a query about
rows inside these tighter bounds. Proofs are in docs/privacy/scales.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.grid import X_STEPS, pieces
from riata.queries.base import ProblemQuery, WrappedQuery
from riata.queries.block import Block, Reads


@dataclass(frozen=True, eq=False)
class OfShortRows(WrappedQuery):
    """A query about the rows that these become inside its own, tighter bounds.

    Parameters
    ----------
    query : ProblemQuery
        Of a problem with the tighter bounds.
    given : Bounds
        Those of the rows as they lie on the grid.
    """

    query: ProblemQuery
    given: Bounds

    reads: ClassVar[Reads] = Reads.ROWS

    def block_sum(self, block: Block) -> np.ndarray:
        bounds = self.query.bounds
        key = (self.given, bounds.max_length, bounds.largest)

        def shorten(x: Any) -> Block:
            return Block(self._shortened(x), block.y, block.start)

        return self.query.block_sum(block.once("short rows", key, shorten))

    def _shortened(self, x: Any) -> Any:
        """Rows inside the tighter bounds, on their grid."""
        bounds, step = self.query.bounds, self.given.x / X_STEPS
        if sparse.issparse(x):
            each = step if np.ndim(step) == 0 else step[x.indices]
            return bounds.grid_x(sparse.csr_array((x.data * each, x.indices, x.indptr), x.shape))
        rows = np.empty(x.shape)
        for few, some in pieces(x):
            rows[few] = bounds.grid_x(some * step)
        return rows

    def sensitivity(self, norm: str) -> float:
        return self.query.sensitivity(norm)
