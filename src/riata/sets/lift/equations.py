"""The equations Phi theta = v, put into a form that rounding does not hurt."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from riata.vectors import length

#: The largest relative difference between what is found and what is proved to be best.
GAP = 1e-8

#: How much of a vector may be missed before it counts as out of reach.
MISS = 1e-9


class Linear(Protocol):
    """What is needed of Phi."""

    @property
    def n_features(self) -> int: ...

    def forward(self, theta: np.ndarray) -> np.ndarray: ...

    def back(self, v: np.ndarray) -> np.ndarray: ...

    def columns(self, indices: np.ndarray) -> np.ndarray: ...

    def rows(self, x: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix of any shape, in the words of a projection."""

    entries: np.ndarray

    @property
    def n_features(self) -> int:
        return int(self.entries.shape[1])

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return self.entries @ theta

    def back(self, v: np.ndarray) -> np.ndarray:
        return self.entries.T @ v

    def columns(self, indices: np.ndarray) -> np.ndarray:
        return self.entries[:, indices]

    def rows(self, x: np.ndarray) -> np.ndarray:
        return x @ self.entries.T


@dataclass(frozen=True, eq=False)
class Equations:
    """The equations Phi theta = v, mixed so that their rows are orthonormal and v has length 1.

    No solution changes but for the factor `scale`, and neither the units of Phi and v nor rows that
    repeat others matter any more.
    """

    phi: Linear
    mix: np.ndarray
    target: np.ndarray
    scale: float

    @classmethod
    def of(cls, phi: Linear, v: np.ndarray) -> Equations | None:
        """The mixed equations, or None if no theta solves them."""
        gram = weighted_gram(phi.columns, len(v), np.ones(phi.n_features))
        values, vectors = np.linalg.eigh(gram)
        kept = values > 1e-13 * max(values[-1], 0.0)
        vectors = vectors[:, kept]
        if length(v - vectors @ (vectors.T @ v)) > MISS * length(v):
            return None
        mix = vectors.T / np.sqrt(values[kept])[:, None]
        target = mix @ v
        return cls(phi, mix, target / length(target), length(target))

    @property
    def size(self) -> int:
        return self.phi.n_features

    def forward(self, theta: np.ndarray) -> np.ndarray:
        return self.mix @ self.phi.forward(theta)

    def back(self, y: np.ndarray) -> np.ndarray:
        return self.phi.back(self.mix.T @ y)

    def columns(self, indices: np.ndarray) -> np.ndarray:
        return self.mix @ self.phi.columns(indices)

    def solved(self, theta: np.ndarray) -> np.ndarray:
        """The solution nearest to theta."""
        for _ in range(2):
            theta = theta + self.back(self.target - self.forward(theta))
        return theta


def weighted_gram(
    columns: Callable[[np.ndarray], np.ndarray], rows: int, weights: np.ndarray
) -> np.ndarray:
    """The sum of weight_j a_j a_j' over all columns a_j, a block of columns at a time."""
    gram = np.zeros((rows, rows))
    step = max(1, 2**21 // rows)
    for first in range(0, len(weights), step):
        indices = np.arange(first, min(first + step, len(weights)))
        block = columns(indices)
        gram += (block * weights[indices]) @ block.T
    return gram


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of symmetric equations, without the directions that rounding has flattened."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-15 * values[-1]
    return vectors[:, kept] @ ((vectors[:, kept].T @ right) / values[kept])


def report(gap: float, allowed: float) -> None:
    if gap > allowed:
        warnings.warn(
            f"The lift is proved to be the smallest only up to a part of {gap:.1g}. It is usable, "
            "but the equations are close to contradicting each other.",
            RuntimeWarning,
            stacklevel=2,
        )
