"""The mean of the rows themselves, as any bounded sum over rows is. See docs/privacy/peeling.md."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from riata.bounds import Bounds
from riata.grid import X_STEPS
from riata.queries.base import Query
from riata.queries.block import Block, Reads
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class MeanVector(Query):
    """The mean of the rows, each clipped into the bounds.

    A selection ranks the entries by their size, so the list is `symmetric`.
    """

    bounds: Bounds
    size: int
    n_rows: int
    adjacency: str

    reads: ClassVar[Reads] = Reads.SUMS

    @property
    def symmetric(self) -> bool:
        return True

    def block_sum(self, block: Block) -> np.ndarray:
        return block.sums(np.ones(len(block.y)))

    @property
    def unit(self) -> Any:
        return self.bounds.x / X_STEPS / self.n_rows

    def row_bound(self, norm: str) -> float:
        return self.bounds.row_norm(norm, self.size)

    def sensitivity(self, norm: str) -> float:
        """As for every query, and what `from_total` may round, entry by entry."""
        entries = self.size if norm == "l1" else 1
        return super().sensitivity(norm) + 2.0**-50 * entries * self.row_bound("linf")

    def entries(self, columns: np.ndarray) -> MeanEntries:
        """These entries, for a release of their values."""
        return MeanEntries(self.bounds, self.size, self.n_rows, self.adjacency, columns)

    def moved(self, columns: np.ndarray, entries: np.ndarray) -> Vector:
        """The vector of the released entries; 0 on the others."""
        order = np.argsort(columns)
        return Vector(self.size, columns[order], entries[order])

    def entries_of(self, released: Vector) -> np.ndarray:
        """The released entries that `moved` made a vector of."""
        return released.values


@dataclass(frozen=True, eq=False)
class MeanEntries(MeanVector):
    """Some entries of the mean of the rows."""

    columns: np.ndarray

    def block_sum(self, block: Block) -> np.ndarray:
        return block.sums(np.ones(len(block.y)), columns=self.columns)

    @property
    def unit(self) -> Any:
        unit = super().unit
        return unit if np.ndim(unit) == 0 else unit[self.columns]

    def row_bound(self, norm: str) -> float:
        bounds = replace(self.bounds, x=self.bounds.of_columns(self.columns))
        return bounds.row_norm(norm, len(self.columns))
