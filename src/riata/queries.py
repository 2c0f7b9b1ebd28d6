"""Unevaluated functions of the rows, each with a proven sensitivity.

A query is a sum over rows of a bounded summand. It says how to sum a block of rows, what to do
with the total, and how large one row's summand can be; an engine does the summing, wherever the
rows are. The bounds are proven in docs/privacy/sensitivity.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.bounds import Bounds
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.losses import Loss
    from riata.sets import PolytopeSet


class Query(ABC):
    """A mean of bounded summands over the rows."""

    n_rows: int
    adjacency: str

    @abstractmethod
    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        """The sum of the summands of a block of rows that lie inside the bounds."""

    @abstractmethod
    def row_bound(self, norm: str) -> float:
        """The largest length, in "l1", "l2" or "linf", of one row's summand."""

    def finish(self, total: np.ndarray) -> np.ndarray:
        """The answer, from the sum over all rows. Linear in `total`."""
        return total / self.n_rows

    def sensitivity(self, norm: str) -> float:
        """The largest change of the answer, in `norm`, between neighbouring data sets."""
        return CHANGED_CONTRIBUTIONS[self.adjacency] * self.row_bound(norm) / self.n_rows


@dataclass(frozen=True, eq=False)
class MeanSlope(Query):
    """The mean of the loss's slope at theta: the derivative of the risk in the intercept."""

    theta: Vector
    loss: Loss
    bounds: Bounds
    n_rows: int
    adjacency: str

    def slopes(self, x: Any, y: np.ndarray) -> np.ndarray:
        return self.loss.slope(self.theta.margins(x), y)

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        return np.array([self.slopes(x, y).sum()])

    def slope_bound(self) -> float:
        """The largest |slope| at this public theta, not the worst over the whole set."""
        reach = self.bounds.reach(self.theta) + abs(self.theta.offset)
        assert self.bounds.y is not None
        return self.loss.slope_bound(reach, self.bounds.y)

    def row_bound(self, norm: str) -> float:
        return self.slope_bound()


@dataclass(frozen=True, eq=False)
class Gradient(MeanSlope):
    """The gradient of the empirical risk at theta: the mean of slope * x."""

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        return x.T @ self.slopes(x, y)

    def row_bound(self, norm: str) -> float:
        return self.slope_bound() * self.bounds.row_norm(norm, self.theta.size)


@dataclass(frozen=True, eq=False)
class VertexUtilities(Query):
    """How much each vertex s of a polytope promises: -<s, gradient>.

    For a set that is symmetric in this sense only half of the list is written down: `mirrored`
    says that the candidates are the utilities followed by their negatives.
    """

    gradient: Gradient
    polytope: PolytopeSet

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        return self.gradient.n_rows

    @property
    def adjacency(self) -> str:  # type: ignore[override]
        return self.gradient.adjacency

    @property
    def mirrored(self) -> bool:
        return self.polytope.mirrored

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        return self.gradient.partial(x, y)

    def finish(self, total: np.ndarray) -> np.ndarray:
        return self.polytope.utilities(self.gradient.finish(total))

    def row_bound(self, norm: str) -> float:
        if norm != "linf":
            raise ValueError(
                f"Selection needs the change of one utility, not the {norm} norm of all."
            )
        return self.gradient.slope_bound() * self.polytope.reach(self.gradient.bounds)
