from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import linprog, nnls

from riata.errors import InvalidArgument
from riata.privacy.budget import check_scale
from riata.projections import Projection
from riata.public import public_normals
from riata.row_norms import norm_order
from riata.sets.base import PolytopeSet
from riata.sets.hull import nearest_in_hull
from riata.sets.lift.equations import Linear, Matrix
from riata.sets.lift.liftable import Liftable
from riata.sets.simplex import Simplex
from riata.vectors import Vector

#: So many coordinates at most: Theorem 6 of docs/privacy/exact_sums.md counts their roundings.
MOST_SIZE = 2**24 - 1


@dataclass(frozen=True, eq=False)
class Polytope(PolytopeSet, Liftable):
    """The convex hull of a list of points.

    Parameters
    ----------
    vertices : array-like of shape (n_vertices, n_features)
        Public points. Points inside the hull of the others are allowed, but each one makes a
        private selection a little harder.
    """

    vertices: Any

    def __post_init__(self) -> None:
        try:
            vertices = np.array(self.vertices, dtype=np.float64, order="C")
        except (TypeError, ValueError):
            raise InvalidArgument(
                "vertices must be an array of numbers, one row a vertex."
            ) from None
        if vertices.ndim != 2 or 0 in vertices.shape or not np.all(np.isfinite(vertices)):
            raise InvalidArgument(
                f"vertices has shape {vertices.shape}: it must be a non-empty array of finite "
                "numbers with one row for each vertex and one column for each feature."
            )
        if vertices.shape[1] > MOST_SIZE:
            raise InvalidArgument(
                f"The vertices have {vertices.shape[1]:,} coordinates, and {MOST_SIZE:,} is the "
                "most: the rounding of longer inner products is not covered by the noise. Use an "
                "L1Ball or a Simplex, or project the columns to fewer."
            )
        check_scale(
            "the largest |vertex|",
            np.abs(vertices).max(),
            "it is the size of the constraint set, and the noise is scaled to it.",
        )
        object.__setattr__(self, "vertices", vertices)

    @property
    def size(self) -> int:
        return int(self.vertices.shape[1])

    def sized(self, size: int) -> Self:
        if self.size != size:
            raise InvalidArgument(
                f"The vertices have {self.size} coordinates and the data {size} columns. "
                "Give each vertex one coordinate for each column."
            )
        return self

    def start(self) -> Vector:
        return Vector.of(self.vertices.mean(axis=0))

    @property
    def n_vertices(self) -> int:
        return int(self.vertices.shape[0])

    def vertex(self, index: int) -> Vector:
        return Vector.of(self.vertices[index])

    @property
    def roundings(self) -> int:
        return self.size + 1

    def utilities(self, gradient: np.ndarray) -> np.ndarray:
        return -np.einsum("vj,j->v", self.vertices, gradient)  # in one order, whatever the threads

    def project(self, v: np.ndarray) -> np.ndarray:
        if np.abs(self.vertices - v).max() == 0:
            return np.array(v, dtype=np.float64)
        weights = self._weights(v)
        return self.vertices.T @ (weights / weights.sum())

    def _weights(self, v: np.ndarray) -> np.ndarray:
        # The point of the hull nearest to v is the smallest point of the hull of (vertices - v).
        # Non-negative least squares finds it: min ||W u||^2 + (sum u - 1)^2 has, along each ray,
        # a minimum that grows with ||W u / sum u||.
        shifted = (self.vertices - v).T / max(np.abs(self.vertices - v).max(), 1e-300)
        system = np.vstack([shifted, np.ones(self.n_vertices)])
        return nnls(system, np.append(np.zeros(self.size), 1.0), maxiter=50 * self.n_vertices)[0]

    def certified_project(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        return nearest_in_hull(self.vertices, v, self._weights(v))

    def projection_error(self, largest: float) -> float:
        return float(2.0**-46 * np.sqrt(self.size) * (self.radius_in("linf") + largest))

    def contains(self, v: np.ndarray, tolerance: float = 1e-9) -> bool:
        return bool(
            np.abs(self.project(v) - v).max() <= tolerance * max(1.0, self.radius_in("linf"))
        )

    def minkowski_norm(self, v: np.ndarray) -> float:
        found = linprog(np.ones(self.n_vertices), A_eq=self.vertices.T, b_eq=v, method="highs")
        return float(found.fun) if found.status == 0 else np.inf

    def dual_norm(self, v: np.ndarray) -> float:
        return float(np.abs(self.vertices @ v).max())

    def radius_in(self, norm: str) -> float:
        return float(np.linalg.norm(self.vertices, norm_order(norm), axis=1).max())

    def size_in(self, order: float) -> float:
        return float(np.linalg.norm(self.vertices, order, axis=1).max())

    def weighted_reach(self, weights: np.ndarray) -> float:
        # summed in pairs: a product of BLAS may lose a digit a column
        return float((np.abs(self.vertices) * weights).sum(axis=1).max())

    # A polytope is the image of a simplex: that of the weights of its vertices.

    def _vertices_of(self, phi: Linear) -> Matrix:
        """The projected vertices, one a column."""
        return Matrix(np.ascontiguousarray(phi.rows(self.vertices).T))

    def lift(self, phi: Linear, v: np.ndarray) -> np.ndarray | None:
        weights = Simplex(1.0).lift(self._vertices_of(phi), v)
        return None if weights is None else self.vertices.T @ weights

    def nearest(self, phi: Linear, v: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
        weights = Simplex(1.0, self.n_vertices).nearest(self._vertices_of(phi), v, tolerance)
        return self.vertices.T @ weights

    def image_radius(self, phi: Projection) -> float:
        images = np.array([phi.forward(vertex) for vertex in self.vertices])
        return float(np.sqrt(np.square(images).sum(axis=1)).max())

    @classmethod
    def examples(cls, size: int) -> tuple[Self, ...]:
        around = public_normals((2 * size, size), "riata example of a polytope")
        return cls(around), cls(1 + np.abs(around[: size + 2]))

    def __repr__(self) -> str:
        return f"Polytope(<{self.n_vertices} vertices in {self.size} dimensions>)"
