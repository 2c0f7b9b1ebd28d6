"""Sparse vectors: the iterate of a solver and the vertices it moves to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


def length(v: np.ndarray) -> float:
    """||v||_2, summed in pairs: BLAS may lose a digit an entry, and others on other threads."""
    return float(np.sqrt(np.square(v).sum()))


class Move(NamedTuple):
    """How a vector came from another one: kept * that + added."""

    origin: object
    kept: float
    added: Vector


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
    body : object
        Stands for the coordinates: the same for vectors that differ in the offset alone.
    move : Move, optional
        The last move, so that what was computed for the origin can be brought up to date.
    """

    size: int
    support: np.ndarray
    values: np.ndarray
    offset: float = 0.0
    body: object = field(default_factory=object, repr=False)
    move: Move | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        # How it came about stays here: elsewhere nothing is known of the vector that it came from.
        return Vector, (self.size, self.support, self.values, self.offset)

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

    def equals(self, other: Vector) -> bool:
        """Whether all coordinates are the same; the offsets may differ."""
        return (
            self.size == other.size
            and np.array_equal(self.support, other.support)
            and np.array_equal(self.values, other.values)
        )

    def dense(self) -> np.ndarray:
        out = np.zeros(self.size)
        out[self.support] = self.values
        return out

    def with_offset(self, offset: float) -> Vector:
        return Vector(self.size, self.support, self.values, offset, self.body, self.move)

    def toward(self, other: Vector, mu: float) -> Vector:
        """(1 - mu) * self + mu * other, offset included."""
        added = Vector(other.size, other.support, mu * other.values)
        return self._moved(1 - mu, added, (1 - mu) * self.offset + mu * other.offset)

    def plus(self, other: Vector) -> Vector:
        """self + other; the offset stays."""
        return self._moved(1.0, other, self.offset)

    def _moved(self, kept: float, added: Vector, offset: float) -> Vector:
        support, values = self.support, kept * self.values
        if len(added.support) == 1:
            at = int(support.searchsorted(added.support[0]))
            if at < len(support) and support[at] == added.support[0]:
                values[at] += added.values[0]
            else:
                support = np.concatenate([support[:at], added.support, support[at:]])
                values = np.concatenate([values[:at], added.values, values[at:]])
        elif np.array_equal(support, added.support):
            values += added.values
        else:
            support = np.union1d(self.support, added.support)
            values = np.zeros(len(support))
            values[np.searchsorted(support, self.support)] = kept * self.values
            values[np.searchsorted(support, added.support)] += added.values
        return Vector(self.size, support, values, offset, move=Move(self.body, kept, added))

    def dot(self, dense: np.ndarray) -> float:
        """<self, dense>, without the offset."""
        return float(self.values @ dense[self.support])

    def margins(self, x: Any) -> np.ndarray:
        """x @ self + offset, for dense or sparse rows."""
        few = 4 * len(self.support) < self.size
        if few and isinstance(x, np.ndarray):
            return x[:, self.support] @ self.values + self.offset
        return x @ self.dense() + self.offset
