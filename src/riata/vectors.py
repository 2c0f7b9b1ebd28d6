"""Sparse vectors: the iterate of a solver and the vertices it moves to."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

_ONE = Fraction(1)
_SMALLEST, _LARGEST = 1e-140, 1e140
_SMALLEST_RATIO = Fraction(1, 2**80)


def length(v: np.ndarray) -> float:
    """||v||_2, summed in pairs: BLAS may lose a digit an entry, and others on other threads.

    Of entries whose squares would vanish or overflow too.
    """
    largest = float(np.abs(v).max(initial=0.0))
    if _SMALLEST <= largest <= _LARGEST or not 0 < largest < math.inf:
        return float(np.sqrt(np.square(v).sum()))
    return largest * float(np.sqrt(np.square(v / largest).sum()))


@dataclass(frozen=True, eq=False)
class Vector:
    """A vector with few non-zeros, and an unpenalised offset (the intercept) beside it.

    Its values are ``weights * scale``. A convex combination changes the scale of all coordinates
    and the weights of few, so what is known of the weights, such as inner products with them, can
    be brought up to date quickly and without rounding.

    Parameters
    ----------
    size : int
        The number of coordinates.
    support : ndarray of int
        The coordinates that may be non-zero, increasing.
    weights : ndarray of float
        Their values in units of the scale.
    offset : float, default=0.0
        The intercept. It is not a coordinate: no set constrains it and no norm counts it.
    ratio : Fraction, default=1
        The exact factor of the scale.
    weight_unit : float, optional
        The other factor, for weights that are whole numbers; 1 if left out.
    """

    size: int
    support: np.ndarray
    weights: np.ndarray
    offset: float = 0.0
    ratio: Fraction = _ONE
    weight_unit: float | None = None

    @classmethod
    def zero(cls, size: int) -> Vector:
        return cls(size, np.empty(0, dtype=np.intp), np.empty(0))

    @classmethod
    def unit(cls, size: int, index: int, value: float) -> Vector:
        """`value` at one coordinate."""
        weights = np.array([-1.0 if value < 0 else 1.0])
        return cls(size, np.array([index], dtype=np.intp), weights, weight_unit=abs(value))

    @classmethod
    def of(cls, dense: np.ndarray) -> Vector:
        if np.count_nonzero(dense) == len(dense):
            return cls(len(dense), _everywhere(len(dense)), np.array(dense, dtype=np.float64))
        support = np.flatnonzero(dense)
        return cls(len(dense), support, np.asarray(dense, dtype=np.float64)[support])

    @property
    def scale(self) -> float:
        return float(self.ratio) * (1.0 if self.weight_unit is None else self.weight_unit)

    @cached_property
    def values(self) -> np.ndarray:
        """The values of the coordinates in the support."""
        return self.weights if self.scale == 1.0 else self.weights * self.scale

    def dense(self) -> np.ndarray:
        out = np.zeros(self.size)
        out[self.support] = self.values
        return out

    def with_offset(self, offset: float) -> Vector:
        return replace(self, offset=offset)

    def toward(self, other: Vector, mu: Fraction | float) -> Vector:
        """(1 - mu) * self + mu * other, offset included, for mu in [0, 1]."""
        mu = Fraction(mu)
        if mu == 1:
            return other
        ratio = self.ratio * (1 - mu)
        if ratio < _SMALLEST_RATIO:  # weights would grow without an end
            plain = replace(self, weights=self.values, ratio=_ONE, weight_unit=None)
            return plain.toward(other, mu)
        offset = float(1 - mu) * self.offset + float(mu) * other.offset
        same = self.weight_unit == other.weight_unit or not len(self.support)
        mine, unit = (self.weights, other.weight_unit) if same else (self._in_ones(), None)
        theirs = other.weights if same else other._in_ones()
        gain = float(mu * other.ratio / ratio)
        support, weights = _sum(self.support, mine, other.support, gain * theirs)
        return Vector(self.size, support, weights, offset, ratio, unit)

    def plus(self, other: Vector) -> Vector:
        """self + other; the offset stays."""
        support, weights = _sum(self.support, self.values, other.support, other.values)
        return Vector(self.size, support, weights, self.offset)

    def _in_ones(self) -> np.ndarray:
        """The weights in units of 1."""
        return self.weights if self.weight_unit is None else self.weights * self.weight_unit

    def margins(self, x: Any) -> np.ndarray:
        """x @ self + offset, for dense or sparse rows."""
        return product(x, self.support, self.values) + self.offset

    def dot(self, dense: np.ndarray) -> float:
        """<self, dense>, without the offset."""
        return float(self.values @ dense[self.support])


@lru_cache(maxsize=1)
def _everywhere(size: int) -> np.ndarray:
    """All coordinates: one array for all classes of a model."""
    found = np.arange(size)
    found.flags.writeable = False
    return found


def product(x: Any, support: np.ndarray, values: np.ndarray) -> np.ndarray:
    """x @ v, for dense or sparse rows and a vector v with a support."""
    if isinstance(x, np.ndarray) and 4 * len(support) < x.shape[1]:
        return np.asarray(x[:, support] @ values)
    if len(support) == x.shape[1]:
        return np.asarray(x @ values)
    dense = np.zeros(x.shape[1])
    dense[support] = values
    return np.asarray(x @ dense)


def _sum(
    support: np.ndarray, values: np.ndarray, also: np.ndarray, added: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The support and the values of the sum of two vectors."""
    if len(also) == 1:
        at = int(support.searchsorted(also[0]))
        if at < len(support) and support[at] == also[0]:
            values = values.copy()
            values[at] += added[0]
            return support, values
        return np.insert(support, at, also[0]), np.insert(values, at, added[0])
    if np.array_equal(support, also):
        return support, values + added
    union = np.union1d(support, also)
    total = np.zeros(len(union))
    total[np.searchsorted(union, support)] = values
    total[np.searchsorted(union, also)] += added
    return union, total
