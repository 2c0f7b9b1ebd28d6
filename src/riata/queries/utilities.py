"""What a selection chooses between: a list of utilities, each a bounded mean over the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riata.grid import X_STEPS
from riata.queries.base import ProblemQuery, Query
from riata.queries.block import Block, Reads
from riata.queries.gradient import Gradient, GradientEntries
from riata.sets import PolytopeSet
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class OfGradient(ProblemQuery):
    """A public function of the gradient at theta, known when the gradient's sum is."""

    theta: Vector

    reads: ClassVar[Reads] = Reads.SUMS

    @cached_property
    def gradient(self) -> Gradient:
        return Gradient(self.problem, self.theta)

    @property
    def model(self) -> Vector:
        return self.theta

    @property
    def summed(self) -> Query:
        return self.gradient

    @property
    def unit(self) -> Any:
        return self.summed.unit

    def block_sum(self, block: Block) -> np.ndarray:
        return self.summed.block_sum(block)


@dataclass(frozen=True, eq=False)
class VertexUtilities(OfGradient):
    """How much each vertex s of a polytope promises: -<s, gradient>.

    Of a symmetric set only half of the list is written down: `symmetric` says that the candidates
    are the utilities followed by their negatives.
    """

    @property
    def polytope(self) -> PolytopeSet:
        assert isinstance(self.problem.set, PolytopeSet)
        return self.problem.set

    @property
    def symmetric(self) -> bool:
        return self.polytope.symmetric

    def from_total(self, total: np.ndarray) -> np.ndarray:
        return self.polytope.utilities(self.summed.from_total(total))

    # What an engine needs to know single utilities without the others.

    @property
    def by_column(self) -> bool:
        """Whether each utility is a multiple of one column's sum."""
        return self.polytope.by_column

    @property
    def source(self) -> Gradient:
        """What says how slopes are made of margins."""
        return self.gradient

    @property
    def most(self) -> int:
        """The largest entry that counts, in steps."""
        return X_STEPS

    @property
    def column_weights(self) -> Any:
        """The utility of each column for a sum of 1 over entry * slope."""
        unit = self.bounds.x / X_STEPS / self.n_rows
        return self.polytope.utilities(np.asarray(unit))

    def same_units(self, other: object) -> bool:
        """Whether `column_weights` and the signs of another query are the same."""
        return (
            isinstance(other, VertexUtilities)
            and self.bounds.x is other.bounds.x
            and self.n_rows == other.n_rows
            and self.polytope == other.polytope
        )

    def utility(self, column: int, total: int) -> float:
        """What `from_total` makes of a column's sum."""
        bound = self.bounds.of_columns(column)
        gradient = float(total) * (self.gradient.slope_unit / self.n_rows * (bound / X_STEPS))
        return float(self.polytope.utilities(gradient))

    def row_bound(self, norm: str) -> float:
        if norm != "linf":
            raise ValueError(
                f"Selection needs the change of one utility, not the {norm} norm of all."
            )
        return self.gradient.slope_bound() * self.polytope.reach(self.bounds)

    def sensitivity(self, norm: str) -> float:
        """As for every query, and what `from_total` may round: a utility is at most `row_bound`."""
        return super().sensitivity(norm) + self.rounding * self.row_bound(norm)

    @property
    def rounding(self) -> float:
        """What `from_total` may round, relative to `row_bound`."""
        return (self.polytope.roundings + 3) * 2.0**-52


@dataclass(frozen=True, eq=False)
class GradientStep(OfGradient):
    """Where a step along the gradient leads: theta - rate * gradient.

    A selection ranks the entries by their size, so the list is `symmetric`.
    """

    rate: float

    @property
    def symmetric(self) -> bool:
        return True

    def from_total(self, total: np.ndarray) -> np.ndarray:
        return self.theta.dense() - self.rate * self.gradient.from_total(total)

    def row_bound(self, norm: str) -> float:
        return self.rate * self.gradient.row_bound(norm)

    def sensitivity(self, norm: str) -> float:
        """As for every query, and what `from_total` may round, entry by entry."""
        largest = np.abs(self.theta.values).max(initial=0.0) + self.row_bound("linf")
        entries = self.theta.size if norm == "l1" else 1
        return super().sensitivity(norm) + 2.0**-49 * entries * largest

    def entries(self, columns: np.ndarray) -> GradientEntries:
        """These columns of the gradient, for a release of their values."""
        return GradientEntries(self.problem, self.theta, columns)

    def entries_of(self, released: Vector) -> np.ndarray:
        """The released entries that `moved` made a vector of."""
        at = self.gradient.theta.dense()[released.support]
        return (at - released.values) / self.rate

    def moved(self, columns: np.ndarray, entries: np.ndarray) -> Vector:
        """Where the step leads on these columns, from the released entries; 0 on the others."""
        order = np.argsort(columns)
        values = self.theta.dense()[columns] - self.rate * entries
        return Vector(self.theta.size, columns[order], values[order])
