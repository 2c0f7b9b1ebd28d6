from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from riata.arguments import is_whole
from riata.errors import InvalidArgument
from riata.row_norms import embedding_norm, norm_order
from riata.sets.base import Ball, Width, rounding_of_simplex_projection
from riata.sets.lift.equations import Equations
from riata.sets.lift.groups import fewest_groups
from riata.sets.lift.liftable import Liftable
from riata.sets.simplex import project_simplex
from riata.sets.widths import expected_largest_group
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class GroupL1Ball(Ball, Liftable):
    """All theta whose groups' Euclidean lengths sum to at most `radius`: the group LASSO's set.

    Parameters
    ----------
    groups : int or array-like of shape (n_features,)
        A block length k for the groups {0..k-1}, {k..2k-1} and so on, or the label of each
        coordinate's group.
    radius : float, default=1.0
    n_features : int, optional
        The dimension, if `groups` is a block length and it is already known.
    """

    groups: Any
    radius: float = 1.0
    n_features: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.groups) == 0:
            if not is_whole(self.groups) or self.groups < 1:
                raise InvalidArgument(
                    f"groups={self.groups!r} must be a whole block length of at least 1, or one "
                    "label for each column."
                )
            return
        labels = np.asarray(self.groups)
        if labels.ndim != 1 or self.n_features not in (None, len(labels)):
            raise InvalidArgument(
                f"groups has shape {labels.shape}: it must hold one label for each of the columns."
            )
        object.__setattr__(self, "n_features", len(labels))

    def codes(self) -> np.ndarray:
        """The number of each coordinate's group, from 0."""
        size = self.required_size()
        if np.ndim(self.groups) == 0:
            return np.arange(size) // int(self.groups)
        return np.unique(np.asarray(self.groups), return_inverse=True)[1]

    def lengths(self, v: np.ndarray) -> np.ndarray:
        """The Euclidean length of each group of v."""
        return np.sqrt(np.bincount(self.codes(), weights=np.square(v)))

    def minimiser(self, gradient: np.ndarray) -> Vector:
        lengths = self.lengths(gradient)
        best = int(np.argmax(lengths))
        if lengths[best] == 0:
            return self.start()
        members = np.flatnonzero(self.codes() == best)
        return Vector(
            self.required_size(), members, -self.radius * gradient[members] / lengths[best]
        )

    def project(self, v: np.ndarray) -> np.ndarray:
        lengths = self.lengths(v)
        if lengths.sum() <= self.radius:
            return np.array(v, dtype=np.float64)
        shrink = project_simplex(lengths, self.radius) / np.where(lengths > 0, lengths, 1.0)
        return v * shrink[self.codes()]

    def projection_error(self, largest: float) -> float:
        size, group = self.required_size(), int(np.bincount(self.codes()).max())
        longest = largest * np.sqrt(group)
        of_lengths = (group + 4) * 2.0**-52 * (np.sqrt(size) * largest + self.radius)
        return float(2 * rounding_of_simplex_projection(size, self.radius, longest) + of_lengths)

    def minkowski_norm(self, v: np.ndarray) -> float:
        return float(self.lengths(v).sum() / self.radius)

    def dual_norm(self, v: np.ndarray) -> float:
        return float(self.radius * self.lengths(v).max())

    def radius_in(self, norm: str) -> float:
        return self.size_in(norm_order(norm))

    def size_in(self, order: float) -> float:
        return self.radius * embedding_norm(int(np.bincount(self.codes()).max()), 2.0, order)

    def weighted_reach(self, weights: np.ndarray) -> float:
        return self.dual_norm(weights)

    def gaussian_width(self, draws: int = 400) -> Width:
        return Width(self.radius * expected_largest_group(np.bincount(self.codes())), 0.0)

    def smallest(self, equations: Equations) -> np.ndarray:
        return fewest_groups(equations, self.codes())

    def promise(self, gradient: np.ndarray) -> np.ndarray:
        return self.lengths(gradient)[self.codes()]

    def restricted(self, columns: np.ndarray) -> Self:
        return type(self)(self.codes()[columns], self.radius)

    @classmethod
    def examples(cls, size: int) -> tuple[Self, ...]:
        return cls(2, 1.5).sized(size), cls([j % 3 for j in range(size)], 0.8)

    def __repr__(self) -> str:
        block = np.ndim(self.groups) == 0
        groups = self.groups if block else f"<{len(np.unique(self.groups))} groups>"
        return f"GroupL1Ball(groups={groups}, radius={self.radius!r}, n_features={self.n_features})"
