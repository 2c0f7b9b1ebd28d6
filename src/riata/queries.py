"""Unevaluated functions of the rows, each with a proven sensitivity.

A query is a sum over rows of bounded integers, times a public unit. It says how to sum a block of
rows, what one integer is worth, and how large one row's summand can be; an engine does the
summing, wherever the rows are. The bounds are proven in docs/privacy/sensitivity.md, and that the
sums are exact in docs/privacy/exact_sums.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.bounds import Bounds
from riata.grid import ROUNDED_UP, SLOPE_STEPS, X_STEPS, coefficient_steps, to_steps
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.losses import Loss
    from riata.sets import PolytopeSet


class Query(ABC):
    """A mean of bounded summands over the rows, each a whole number of units."""

    n_rows: int
    adjacency: str

    @abstractmethod
    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        """The sum of a block of rows on the grid: integers, exact in float64."""

    @property
    @abstractmethod
    def unit(self) -> Any:
        """What one step of the sum adds to the answer: a number, or one for each coordinate."""

    @abstractmethod
    def row_bound(self, norm: str) -> float:
        """The largest length, in "l1", "l2" or "linf", of one row's summand."""

    def finish(self, total: np.ndarray) -> np.ndarray:
        """The answer, from the sum over all rows or from a release of it."""
        return total * self.unit

    def sensitivity(self, norm: str) -> float:
        """The largest change of the answer, in `norm`, between neighbouring data sets."""
        changed = CHANGED_CONTRIBUTIONS[self.adjacency]
        return changed * self.row_bound(norm) / self.n_rows * ROUNDED_UP


@dataclass(frozen=True, eq=False)
class MeanSlope(Query):
    """The mean of the loss's slope at theta: the derivative of the risk in the intercept."""

    theta: Vector
    loss: Loss
    bounds: Bounds
    n_rows: int
    adjacency: str

    def margins(self, x: Any) -> np.ndarray:
        """<x, theta> + offset for rows on the grid, with theta on a grid of its own."""
        limits = self.bounds.of_columns(self.theta.support)
        steps, step = coefficient_steps(self.theta.values * limits)
        exact = replace(self.theta, values=steps, offset=0.0).margins(x)
        return exact * (step / X_STEPS) + self.theta.offset

    def slopes(self, x: Any, y: np.ndarray) -> np.ndarray:
        """The slope at each row, in steps of the largest slope / `SLOPE_STEPS`."""
        with np.errstate(all="ignore"):
            slopes = self.loss.slope(self.margins(x), y)
            return to_steps(slopes, self.slope_bound(), SLOPE_STEPS)

    def partial(self, x: Any, y: np.ndarray) -> np.ndarray:
        return np.array([self.slopes(x, y).sum()])

    @property
    def unit(self) -> Any:
        return self.slope_bound() / SLOPE_STEPS / self.n_rows

    def slope_bound(self) -> float:
        """The largest |slope| at this public theta, not the worst over the whole set."""
        return self._slope_bound

    @cached_property
    def _slope_bound(self) -> float:
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

    @property
    def unit(self) -> Any:
        return super().unit * (self.bounds.x / X_STEPS)

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

    @property
    def unit(self) -> Any:
        return self.gradient.unit

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

    def sensitivity(self, norm: str) -> float:
        """As for every query, and what `finish` may round: a utility is at most `row_bound`."""
        rounding = (self.polytope.roundings + 3) * 2.0**-52
        return super().sensitivity(norm) + rounding * self.row_bound(norm)
