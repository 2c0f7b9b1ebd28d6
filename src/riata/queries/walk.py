"""A Frank-Wolfe walk: one selection after the other, each at the model that the last one led to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from riata.bounds import Bounds
from riata.grid import SLOPE_STEPS, X_STEPS
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.queries.gradient import Gradient
from riata.queries.utilities import VertexUtilities
from riata.vectors import Vector

if TYPE_CHECKING:
    from riata.losses import Loss
    from riata.sets.coordinate import CoordinatePolytope


#: Sums over the rows are whole numbers of so many bits, of which slopes have no more than these.
_TOTAL_BITS, _MOST_SLOPE_BITS = 63, 24


@dataclass(frozen=True, eq=False)
class Walk:
    """The utilities of a polytope's vertices at theta_1, theta_2, ..., where

        theta_{t+1} = (1 - 2 / (t + 2)) theta_t + 2 / (t + 2) s_t ,

    and s_t is the vertex that was selected at theta_t. In closed form theta_t is a multiple of

        w_t = w_1 + 2 s_1 + 3 s_2 + ... + t s_{t-1} ,

    so that a step changes one coordinate of w.

    Parameters
    ----------
    loss, polytope, bounds, n_rows, adjacency
        As for the queries of single steps.
    steps : int
    """

    loss: Loss
    polytope: CoordinatePolytope
    bounds: Bounds
    n_rows: int
    adjacency: str
    steps: int

    @cached_property
    def scales(self) -> np.ndarray:
        """theta_t / w_t, for t = 1, 2, ..., steps + 1."""
        t = np.arange(1, self.steps + 2, dtype=np.float64)
        return 2 / (t * (t + 1))

    @cached_property
    def gains(self) -> np.ndarray:
        """The factor of s_t in w, for t = 1, 2, ..., steps."""
        return np.arange(2, self.steps + 2, dtype=np.float64)

    def theta(self, picked: np.ndarray) -> Vector:
        """Where selections lead: numbers of vertices, in order."""
        start, size = self.polytope.start(), self.polytope.known_size()
        picked = np.asarray(picked, dtype=np.int64)
        columns = np.concatenate([start.support, picked % size])
        amounts = self.polytope.radius * np.where(picked < size, 1.0, -1.0)
        amounts = np.concatenate([start.values, amounts * self.gains[: len(picked)]])
        support, place = np.unique(columns, return_inverse=True)
        w = np.bincount(place, weights=amounts, minlength=len(support))
        return Vector(size, support, w * self.scales[len(picked)])

    def utilities(self, theta: Vector) -> VertexUtilities:
        """What is selected from at a model."""
        gradient = Gradient(theta, self.loss, self.bounds, self.n_rows, self.adjacency)
        return VertexUtilities(gradient, self.polytope)

    @cached_property
    def slope_steps(self) -> int:
        """How many steps the largest slope has: as many as sums over the rows have room for."""
        bits = _TOTAL_BITS - X_STEPS.bit_length() - self.n_rows.bit_length()
        return max(SLOPE_STEPS, 2 ** min(bits, _MOST_SLOPE_BITS))

    @property
    def changed(self) -> int:
        """How many summands may differ between neighbours."""
        return CHANGED_CONTRIBUTIONS[self.adjacency]
