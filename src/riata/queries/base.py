"""Unevaluated functions of the rows, each with a proven sensitivity.

A query is a sum over rows of bounded integers, times a public unit. It says how to sum a block of
rows, what one integer is worth, and how large one row's summand can be; an engine does the
summing, wherever the rows are. The bounds are proven in docs/privacy/sensitivity.md, and that the
sums are exact in docs/privacy/exact_sums.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from riata.bounds import Bounds
from riata.grid import ROUNDED_UP
from riata.losses import Loss
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.problem import Problem
from riata.queries.block import Block, Reads
from riata.vectors import Vector


class Query(ABC):
    """A mean of bounded summands over the rows, each a whole number of units."""

    if TYPE_CHECKING:  # fields of some queries, and facts about the problem of others

        @property
        def n_rows(self) -> int: ...

        @property
        def adjacency(self) -> str: ...

    #: What `block_sum` reads of a block. With less than whole rows an engine may be quicker.
    reads: ClassVar[Reads] = Reads.ROWS

    #: Whether a fit asks only once: then a copy of the rows is not worth its memory.
    asked_once: ClassVar[bool] = False

    #: Whether the summands of any two rows have an inner product of at least 0. Replacing one by
    #: the other is then a change of at most sqrt(2) lengths, and not of 2.
    nonnegative_inner: ClassVar[bool] = False

    @property
    def symmetric(self) -> bool:
        """Whether the answer is a list of candidates that stands for itself and its negatives."""
        return False

    @property
    def model(self) -> Vector | None:
        """The model that the query is asked at, if it is asked at one."""
        return None

    @property
    def summed(self) -> Query:
        """The query whose sum this one is a function of: itself, unless it is one of another."""
        return self

    @abstractmethod
    def block_sum(self, block: Block) -> np.ndarray:
        """The sum of a block of rows: integers, exact in float64."""

    @property
    @abstractmethod
    def unit(self) -> Any:
        """What one step of the sum adds to the answer: a number, or one for each coordinate."""

    @abstractmethod
    def row_bound(self, norm: str) -> float:
        """The largest length, in "l1", "l2" or "linf", of one row's summand."""

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The answer, from the sum over all rows or from a release of it."""
        return total * self.unit

    def sensitivity(self, norm: str) -> float:
        """The largest change of the answer, in `norm`, between neighbouring data sets."""
        changed: float = CHANGED_CONTRIBUTIONS[self.adjacency]
        if self.nonnegative_inner and norm == "l2":
            changed = math.sqrt(changed)
        return changed * self.row_bound(norm) / self.n_rows * ROUNDED_UP


class Counts(Query):
    """The part of the rows in each bin. A row adds at most 1 to all bins together."""

    nonnegative_inner: ClassVar[bool] = True

    @property
    def unit(self) -> Any:
        return 1 / self.n_rows

    def row_bound(self, norm: str) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class OfProblem:
    """What is made from a problem, and knows its public facts."""

    problem: Problem

    @property
    def loss(self) -> Loss:
        return self.problem.loss

    @property
    def bounds(self) -> Bounds:
        return self.problem.bounds

    @property
    def y_bound(self) -> float:
        return self.problem.y_bound

    @property
    def n_rows(self) -> int:
        return self.problem.n_rows

    @property
    def adjacency(self) -> str:
        return self.problem.adjacency


class ProblemQuery(OfProblem, Query):
    """A query about a problem."""


@dataclass(frozen=True, eq=False)
class WrappedQuery(Query):
    """Another query about rows that are chosen or changed first, each by itself."""

    query: Query

    @property
    def n_rows(self) -> int:
        return self.query.n_rows

    @property
    def adjacency(self) -> str:
        return self.query.adjacency

    @property
    def unit(self) -> Any:
        return self.query.unit

    def row_bound(self, norm: str) -> float:
        return self.query.row_bound(norm)

    def from_total(self, total: np.ndarray) -> np.ndarray:
        return self.query.from_total(total)
