"""Sparse vectors: the iterate of a solver and the vertices it moves to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


def length(v: np.ndarray) -> float:
    """||v||_2, summed in pairs: BLAS may lose a digit an entry, and others on other threads."""
    return float(np.sqrt(np.square(v).sum()))


@dataclass(frozen=True, eq=False)
class Vector:
    """A vector with few non-zeros, and an unpenalised offset (the intercept) beside it.

    Parameters
    ----------
    size : int
        The number of coordinates.
    support : ndarray of int
        The coordinates that may be non-zero, increasing.
    values : ndarray of float
        Their values.
    offset : float, default=0.0
        The intercept. It is not a coordinate: no set constrains it and no norm counts it.
    """

    size: int
    support: np.ndarray
    values: np.ndarray
    offset: float = 0.0

    @classmethod
    def zero(cls, size: int) -> Vector:
        return cls(size, np.empty(0, dtype=np.intp), np.empty(0))

    @classmethod
    def unit(cls, size: int, index: int, value: float) -> Vector:
        return cls(size, np.array([index], dtype=np.intp), np.array([value]))

    @classmethod
    def of(cls, dense: np.ndarray) -> Vector:
        support = np.flatnonzero(dense)
        return cls(len(dense), support, np.asarray(dense, dtype=np.float64)[support])

    def dense(self) -> np.ndarray:
        out = np.zeros(self.size)
        out[self.support] = self.values
        return out

    def with_offset(self, offset: float) -> Vector:
        return replace(self, offset=offset)

    def toward(self, other: Vector, mu: float) -> Vector:
        """(1 - mu) * self + mu * other, offset included."""
        if np.array_equal(self.support, other.support):
            support, values = self.support, (1 - mu) * self.values + mu * other.values
        else:
            support = np.union1d(self.support, other.support)
            values = np.zeros(len(support))
            values[np.searchsorted(support, self.support)] = (1 - mu) * self.values
            values[np.searchsorted(support, other.support)] += mu * other.values
        return Vector(self.size, support, values, (1 - mu) * self.offset + mu * other.offset)

    def dot(self, dense: np.ndarray) -> float:
        """<self, dense>, without the offset."""
        return float(self.values @ dense[self.support])

    def margins(self, x: Any) -> np.ndarray:
        """x @ self + offset, for dense or sparse rows."""
        few = 4 * len(self.support) < self.size
        if few and isinstance(x, np.ndarray):
            return x[:, self.support] @ self.values + self.offset
        return x @ self.dense() + self.offset
