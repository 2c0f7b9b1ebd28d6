"""Scores at earlier slopes, and later slopes as combinations of theirs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Squares of slopes that are no smaller do not vanish.
SMALLEST = 1e-100

#: Two vectors are nearly parallel if of the square of one not more than this part is left.
_PARALLEL = 1e-9


class Look(NamedTuple):
    """What was seen of a column: its score, off by no more than so much."""

    group: int
    candidate: int
    value: float
    off: float


class Snapshot(NamedTuple):
    """All scores at some slopes. `rough` is by how much each may be off."""

    slopes: np.ndarray
    largest: float
    scores: np.ndarray
    rough: float


def dot(a: np.ndarray, b: np.ndarray) -> float:
    # Not by BLAS: for vectors of this size its threads cost more than they gain.
    return float(np.einsum("i,i->", a, b))


def least_squares(products: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Multiples of least squares for one or two vectors, up to rounding.

    Whatever they are, the rest follows from them. Nothing is made of slopes whose squares vanish,
    nor of the first of two that are nearly parallel.
    """
    found, last = np.zeros(len(right)), len(right) - 1
    own = products[last, last]
    if not own > SMALLEST**2:
        return found
    if last == 1:
        share = products[0, 1] / own
        square = products[0, 0] - share * products[0, 1]  # of the first, less its part along
        if square > _PARALLEL * products[0, 0] and square > SMALLEST**2:
            found[0] = (right[0] - share * right[1]) / square
            found[1] = -share * found[0]
    found[last] += right[last] / own
    return found
