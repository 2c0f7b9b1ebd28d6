"""What a constraint set must say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import ROUNDED_UP
from riata.privacy.budget import check_scale
from riata.public import public_normals
from riata.row_norms import NORMS, conjugate
from riata.vectors import Vector


class Width(NamedTuple):
    """A Gaussian width and its standard error: 0 where it is a closed form or an integral."""

    value: float
    error: float


class ConstraintSet(ABC):
    """A compact set C in R^size, convex unless it says otherwise.

    A set is written down without a size, ``L1Ball(2.0)``, and gets one when a problem knows how
    many columns there are, `sized`. Where the set is named after a norm, `radius` is in it.
    """

    #: Whether the set contains the segment between any two of its points.
    convex: ClassVar[bool] = True

    #: Whether a model that was fitted column by column and then projected onto C is a good one.
    supports_refit: ClassVar[bool] = False

    @property
    def max_nonzeros(self) -> int | None:
        """How many non-zeros a point of C has at most, if the set is about that."""
        return None

    @property
    def is_euclidean_ball(self) -> bool:
        """Whether C is all theta with ||theta||_2 <= radius."""
        return False

    @classmethod
    @abstractmethod
    def examples(cls, size: int) -> tuple[Self, ...]:
        """Sets of this class in R^size, for the matrices of the tests; size is at least 3."""

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The dimension, or None while it is open."""

    @abstractmethod
    def sized(self, size: int) -> Self:
        """This set in R^size, or an error if it cannot live there."""

    @abstractmethod
    def start(self) -> Vector:
        """A point of C to start from."""

    @abstractmethod
    def minimiser(self, gradient: np.ndarray) -> Vector:
        """The linear minimisation oracle: a point s of C with the smallest <s, gradient>."""

    @abstractmethod
    def project(self, v: np.ndarray) -> np.ndarray:
        """The point of C nearest to v in l2."""

    @abstractmethod
    def minkowski_norm(self, v: np.ndarray) -> float:
        """The smallest r >= 0 with v in r C, infinite if there is none."""

    @abstractmethod
    def dual_norm(self, v: np.ndarray) -> float:
        """The largest |<v, w>| over w in C."""

    @abstractmethod
    def radius_in(self, norm: str) -> float:
        """The largest length of a point of C in "l1", "l2" or "linf"."""

    def size_in(self, order: float) -> float:
        """The largest l_order norm of a point of C, or a little more: ||C||_q of the papers.

        Between "l1", "l2" and "linf", which `radius_in` knows, norms are log-convex in 1 / order. A
        set that overrides this knows it exactly.
        """
        known = {1.0: "l1", 2.0: "l2", np.inf: "linf"}
        if order in known:
            return self.radius_in(known[order])
        low, high = (1.0, 2.0) if order < 2 else (2.0, np.inf)
        part = (1 / order - 1 / high) / (1 / low - 1 / high)
        return float(self.radius_in(known[low]) ** part * self.radius_in(known[high]) ** (1 - part))

    @abstractmethod
    def weighted_reach(self, weights: np.ndarray) -> float:
        """The largest sum of weights_j |w_j| over w in C, for non-negative weights."""

    def projection_error(self, largest: float) -> float | None:
        """A bound on the error of `certified_project`, in l2, or None if there is none.

        `largest` bounds the entries of the point that is projected. A set that overrides no more
        than this has proven it for `project`.
        """
        return None

    def certified_project(self, v: np.ndarray) -> tuple[np.ndarray, float]:
        """The point of C nearest to v, and a proven bound on its error: `inf` if there is none."""
        error = self.projection_error(float(np.abs(v).max(initial=0.0)))
        return self.project(v), np.inf if error is None else error

    def contains(self, v: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether v lies in C, up to a relative tolerance."""
        return self.minkowski_norm(v) <= 1 + tolerance

    def reach(self, bounds: Bounds) -> float:
        """The largest |<x, w>| over w in C and rows x inside the bounds."""
        reach = self.weighted_reach(bounds.per_column(self.required_size()))
        if bounds.norm not in NORMS:
            return min(reach, bounds.x * self.size_in(conjugate(bounds.order)) * ROUNDED_UP)
        if bounds.max_length is None:
            return reach
        return min(reach, bounds.max_length * self.radius_in("l2"))

    def gaussian_width(self, draws: int = 400) -> Width:
        """E sup over w in C of |<g, w>| for a standard normal g.

        Computed from `draws` public normal vectors, with its standard error, unless the set knows
        a closed form or a one-dimensional integral.
        """
        size = self.required_size()
        label = f"riata gaussian width {type(self).__name__} {size}"
        sups = [self.dual_norm(public_normals((size,), f"{label} {i}")) for i in range(draws)]
        return Width(float(np.mean(sups)), float(np.std(sups, ddof=1) / np.sqrt(draws)))

    def required_size(self) -> int:
        if self.size is None:
            raise InvalidArgument(
                f"{self!r} has no dimension yet, and this depends on it. "
                "Call .sized(n_features) first."
            )
        return self.size

    def __str__(self) -> str:
        return repr(self)


class PolytopeSet(ConstraintSet):
    """A convex hull of listed vertices, so that a vertex can be selected privately."""

    #: Whether the vertices are a list followed by its negatives.
    symmetric: ClassVar[bool] = False

    #: Whether each utility is a multiple of one entry of the gradient.
    by_column: ClassVar[bool] = False

    @property
    @abstractmethod
    def roundings(self) -> int:
        """How many float64 operations one utility takes, in sequence."""

    @property
    @abstractmethod
    def n_vertices(self) -> int:
        """How many candidates a selection has."""

    @abstractmethod
    def vertex(self, index: int) -> Vector:
        """The vertex with this number, 0 <= index < n_vertices."""

    @abstractmethod
    def utilities(self, gradient: np.ndarray) -> np.ndarray:
        """-<s, gradient> for each vertex s: the first half of them if `symmetric`."""

    def minimiser(self, gradient: np.ndarray) -> Vector:
        utility = self.utilities(gradient)
        if self.symmetric:
            best = int(np.argmax(np.abs(utility)))
            return self.vertex(best if utility[best] >= 0 else best + len(utility))
        return self.vertex(int(np.argmax(utility)))


class Ball(ConstraintSet):
    """A set with a radius that exists in every dimension.

    Subclasses are frozen dataclasses with these two fields. All but the simplex start at 0.
    """

    radius: float
    n_features: int | None

    def __post_init__(self) -> None:
        check_scale(
            "radius",
            self.radius,
            "it is the size of the constraint set, and the noise is scaled to it. Choose it from "
            "public knowledge.",
        )

    @property
    def size(self) -> int | None:
        return self.n_features

    def sized(self, size: int) -> Self:
        if self.n_features not in (None, size):
            raise InvalidArgument(
                f"{self!r} has dimension {self.n_features} and the data {size} columns. "
                "The set needs one coordinate for each column."
            )
        return replace(self, n_features=size)  # type: ignore[type-var]

    def start(self) -> Vector:
        return Vector.zero(self.required_size())

    @classmethod
    def examples(cls, size: int) -> tuple[Self, ...]:
        return (cls().sized(size),)


def rounding_of_simplex_projection(size: int, radius: float, largest: float) -> float:
    """What rounding may do to a projection onto a simplex or an l1 ball, in l2."""
    return float(2.0**-47 * np.sqrt(size) * (radius + largest))
