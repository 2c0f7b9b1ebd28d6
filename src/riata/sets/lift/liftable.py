"""What a set must say about itself to be found again behind a projection."""

from __future__ import annotations

from typing import Self

import numpy as np

from riata.projections import Projection
from riata.sets.base import ConstraintSet
from riata.sets.lift.equations import Equations, Linear
from riata.sets.lift.nearest import nearest


class Liftable(ConstraintSet):
    """A convex set with a way back from a projection: `solver="projected"` asks for it."""

    def smallest(self, equations: Equations) -> np.ndarray | None:
        """The solution of the equations with the smallest Minkowski norm, None if there is none.

        A set says this, or writes a `lift` of its own.
        """
        raise NotImplementedError

    def lift(self, phi: Linear, v: np.ndarray) -> np.ndarray | None:
        """The smallest theta with Phi theta = v, None if no multiple of a point of C has it."""
        if not np.any(v):
            return np.zeros(phi.n_features)
        equations = Equations.of(phi, v)
        theta = None if equations is None else self.smallest(equations)
        return None if equations is None or theta is None else equations.scale * theta

    def nearest(self, phi: Linear, v: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        """The point theta of C that brings Phi theta nearest to v, up to tolerance * ||v||."""
        return nearest(self, phi, v, tolerance)

    def promise(self, gradient: np.ndarray) -> np.ndarray | None:
        """How much each coordinate could lower a function, if `restricted` makes sense for C."""
        return None

    def restricted(self, columns: np.ndarray) -> Self:
        """The points of C in which all other coordinates are 0, written without these."""
        raise NotImplementedError

    def image_radius(self, phi: Projection) -> float:
        """The radius of a ball that contains the image of C."""
        return self.radius_in("l2") * phi.stretch()
