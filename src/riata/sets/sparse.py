from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from riata.arguments import is_whole
from riata.errors import InvalidArgument
from riata.row_norms import embedding_norm, norm_order
from riata.sets.base import Ball
from riata.vectors import Vector, length


@dataclass(frozen=True)
class SparseBall(Ball):
    """All theta with at most `sparsity` non-zeros and ||theta||_2 <= radius. Not convex.

    Parameters
    ----------
    sparsity : int
        The largest number of non-zeros.
    radius : float, default=1.0
        The largest Euclidean length.
    n_features : int, optional
        The dimension, if it is already known.
    """

    sparsity: int
    radius: float = 1.0
    n_features: int | None = None

    convex: ClassVar[bool] = False
    supports_refit: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_whole(self.sparsity) or self.sparsity < 1:
            raise InvalidArgument(
                f"sparsity={self.sparsity!r} must be a whole number of at least 1: it is how many "
                "columns the model may use."
            )
        if self.n_features is not None and self.sparsity > self.n_features:
            raise InvalidArgument(
                f"Cannot use sparsity={self.sparsity} with {self.n_features} columns. This is "
                "because a model cannot use more columns than there are. "
                f"Use a sparsity between 1 and {self.n_features} instead."
            )

    @property
    def max_nonzeros(self) -> int:
        return self.sparsity

    @classmethod
    def examples(cls, size: int) -> tuple[Self, ...]:
        return (cls(2, 1.5, size),)

    def top(self, v: np.ndarray) -> np.ndarray:
        """The places of the `sparsity` largest entries in size, in increasing order."""
        k = min(self.sparsity, len(v))
        return np.sort(np.argpartition(-np.abs(v), k - 1)[:k])

    def minimiser(self, gradient: np.ndarray) -> Vector:
        top = self.top(gradient)
        size = length(gradient[top])
        if size == 0:
            return self.start()
        return Vector(self.required_size(), top, -self.radius * gradient[top] / size)

    def project(self, v: np.ndarray) -> np.ndarray:
        top = self.top(v)
        out = np.zeros(len(v))
        out[top] = v[top] * min(1.0, self.radius / max(length(v[top]), 1e-300))
        return out

    def minkowski_norm(self, v: np.ndarray) -> float:
        few = np.count_nonzero(v) <= self.sparsity
        return length(v) / self.radius if few else np.inf

    def dual_norm(self, v: np.ndarray) -> float:
        return self.radius * length(np.asarray(v)[self.top(v)])

    def radius_in(self, norm: str) -> float:
        return self.size_in(norm_order(norm))

    def size_in(self, order: float) -> float:
        return self.radius * embedding_norm(self.sparsity, 2.0, order)

    def weighted_reach(self, weights: np.ndarray) -> float:
        return self.dual_norm(weights)
