"""A Frank-Wolfe path: one selection after the other, each at the model that the last one led to."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from riata.grid import ROUNDED_UP, THETA_STEPS, X_STEPS, slope_steps
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.queries.base import OfProblem
from riata.queries.coefficients import MOST_WEIGHT
from riata.queries.utilities import VertexUtilities
from riata.sets.coordinate import CoordinatePolytope
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class FrankWolfePath(OfProblem):
    """The utilities of a polytope's vertices at theta_1, theta_2, ..., where

        theta_{t+1} = (1 - 2 / (t + 2)) theta_t + 2 / (t + 2) s_t ,

    and s_t is the vertex that was selected at theta_t. In closed form theta_t is a multiple of

        w_t = w_1 + 2 s_1 + 3 s_2 + ... + t s_{t-1} ,

    so that a step changes one coordinate of w.

    Parameters
    ----------
    problem : Problem
        Over a polytope whose vertices have one coordinate.
    steps : int
    """

    steps: int

    @property
    def polytope(self) -> CoordinatePolytope:
        assert isinstance(self.problem.set, CoordinatePolytope)
        return self.problem.set

    @cached_property
    def scales(self) -> np.ndarray:
        """theta_t / w_t in units of the radius, for t = 1, 2, ..., steps + 1."""
        t = np.arange(1, self.steps + 2, dtype=np.float64)
        return 2 / (t * (t + 1))

    @cached_property
    def margin_units(self) -> np.ndarray:
        """What a step of an entry times 1 of w adds to a margin at theta_1, theta_2, ..."""
        return self.scales * self.polytope.radius * self.bounds.largest / X_STEPS

    @cached_property
    def gains(self) -> np.ndarray:
        """The factor of s_t in w, for t = 1, 2, ..., steps."""
        return np.arange(2, self.steps + 2, dtype=np.float64)

    @property
    def exact(self) -> bool:
        """Whether inner products with w are exact, rounded as `Coefficients` rounds it."""
        total = (self.steps + 1) * (self.steps + 2) // 2
        return total <= (THETA_STEPS if np.ndim(self.bounds.x) == 0 else MOST_WEIGHT)

    def theta(self, selected: np.ndarray) -> Vector:
        """Where selections lead: numbers of vertices, in order."""
        start, size = self.polytope.start(), self.polytope.required_size()
        selected = np.asarray(selected, dtype=np.int64)
        columns = np.concatenate([start.support, selected % size])
        amounts = np.where(selected < size, 1.0, -1.0) * self.gains[: len(selected)]
        amounts = np.concatenate([start.weights, amounts])
        support, place = np.unique(columns, return_inverse=True)
        w = np.bincount(place, weights=amounts, minlength=len(support))
        t = len(selected) + 1
        ratio = Fraction(2, t * (t + 1))
        return Vector(size, support, w, ratio=ratio, weight_unit=self.polytope.radius)

    def utilities(self, theta: Vector) -> VertexUtilities:
        """What is selected from at a model."""
        return VertexUtilities(self.problem, theta)

    @property
    def slope_steps(self) -> int:
        """How many steps the largest slope has."""
        return slope_steps(self.n_rows)

    def strength(self, epsilon: float) -> float:
        """The logarithm of a weight for a utility of its largest size, up to a few roundings.

        `epsilon` over twice the sensitivity of a mean over the rows, times a summand.
        """
        rounding = self.n_rows * self.utilities(self.polytope.start()).rounding
        sensitivity = CHANGED_CONTRIBUTIONS[self.adjacency] * ROUNDED_UP + rounding
        return epsilon / (2 * sensitivity)
