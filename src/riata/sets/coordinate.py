"""What the l1 ball and the simplex share: vertices that are multiples of the unit vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from riata.bounds import Bounds
from riata.projections import Projection
from riata.sets.base import Ball, PolytopeSet, Width, rounding_of_simplex_projection
from riata.sets.lift.liftable import Liftable
from riata.sets.widths import expected_linf


class CoordinatePolytope(Ball, PolytopeSet, Liftable):
    """The convex hull of ``radius * e_j`` over all coordinates j, or of both signs of it."""

    roundings = 1
    by_column = True

    def utilities(self, gradient: np.ndarray) -> np.ndarray:
        return -self.radius * gradient

    def projection_error(self, largest: float) -> float:
        return rounding_of_simplex_projection(self.required_size(), self.radius, largest)

    def dual_norm(self, v: np.ndarray) -> float:
        return float(self.radius * np.abs(v).max())

    def radius_in(self, norm: str) -> float:
        return self.radius

    def size_in(self, order: float) -> float:
        return self.radius

    def reach(self, bounds: Bounds) -> float:
        return float(self.radius * bounds.largest)  # for every norm

    def weighted_reach(self, weights: np.ndarray) -> float:
        return float(self.radius * weights.max())

    def gaussian_width(self, draws: int = 400) -> Width:
        return Width(self.radius * expected_linf(self.required_size()), 0.0)

    def restricted(self, columns: np.ndarray) -> Self:
        return replace(self, n_features=len(columns))  # type: ignore[type-var]

    def image_radius(self, phi: Projection) -> float:
        return self.radius * float(phi.column_norms().max())
