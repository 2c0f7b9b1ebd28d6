"""How far a changed row moves the gradient of an objective, by the margin of the row.

The slopes of two rows at one point of the set are not free of each other: rows that point the same
way or against each other have margins that agree, and long changes need both. The bounds are taken
over cells of margins, in which slopes are monotone, so they hold between the points of the grid.
Proofs are in docs/privacy/objective_perturbation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from riata.grid import ROUNDED_UP
from riata.privacy.budget import ADD_REMOVE

if TYPE_CHECKING:
    from riata.losses import Loss

#: Margins of one sign are cut into so many cells of equal length, and into so many whose ends have
#: equal ratios, from this part of the largest margin on.
_EVEN, _GEOMETRIC, _SMALLEST = 160, 120, 1e-4


@dataclass(frozen=True)
class RowPairs:
    """Two rows that may take each other's place, and the points at which they are looked at."""

    loss: Loss
    y: float  # the largest target
    row_length: float  # the largest length of a row, with the intercept's 1
    reach: float  # the largest |<x, w>| over the set
    offset: float  # the largest intercept
    radius: float  # the largest Euclidean length of a point of the set
    fit_intercept: bool
    nonnegative: bool  # whether no entry is below 0
    adjacency: str


@dataclass(frozen=True)
class Changes:
    """Bounds for the row of one data set, one for each cell of margins that it may have.

    The largest |slope| of the row, change of the gradient when it is taken away or another put in
    its place, and second derivative of its loss.
    """

    steepest: np.ndarray
    moved: np.ndarray
    curvature: np.ndarray


@lru_cache(maxsize=2**6)
def changes(pairs: RowPairs) -> Changes:
    """The bounds for all cells of margins."""
    edges = _edges(pairs.reach + pairs.offset)
    cells = (*pairs.loss.slope_range(edges, pairs.y), pairs.loss.curvature_beyond(edges, pairs.y))
    if all(np.all(each == each[0]) for each in cells):
        edges = edges[[0, -1]]  # one cell says as much: two rows may have the same margin
    nearest = np.where(edges[:-1] < 0, -edges[1:], edges[:-1])
    curvature = pairs.loss.curvature_beyond(np.maximum(nearest, 0.0), pairs.y) * ROUNDED_UP
    ranges = pairs.loss.slope_range(edges, pairs.y)
    unit = float(np.max(np.abs(ranges)))  # so that no square of a slope is out of range
    branches = [_Branch.of(slopes / unit) for slopes in ranges]
    steepest = np.maximum(branches[0].most, branches[1].most)
    moved = steepest
    if pairs.adjacency != ADD_REMOVE:
        moved = np.max([_moved(pairs, edges, a, b) for a in branches for b in branches], axis=0)
    steepest, moved = steepest * (unit * ROUNDED_UP), moved * (unit * ROUNDED_UP)
    return Changes(steepest, moved * pairs.row_length, curvature)


def _edges(largest: float) -> np.ndarray:
    positive = np.union1d(
        np.linspace(0.0, largest, _EVEN + 1),
        np.geomspace(_SMALLEST * largest, largest, _GEOMETRIC)[:-1],
    )
    return np.concatenate([-positive[:0:-1], positive])


@dataclass(frozen=True)
class _Branch:
    """The smallest or the largest slopes: their sizes in each cell, and their sign, 0 if both."""

    most: np.ndarray
    least: np.ndarray
    sign: np.ndarray

    @staticmethod
    def of(slopes: np.ndarray) -> _Branch:
        low, high = slopes[:-1], slopes[1:]
        sizes = np.abs(low), np.abs(high)
        sign = np.where(low >= 0, 1, np.where(high <= 0, -1, 0))
        least = np.where(sign == 0, 0.0, np.minimum(*sizes))
        return _Branch(np.maximum(*sizes), least, sign)


def _moved(pairs: RowPairs, edges: np.ndarray, ours: _Branch, theirs: _Branch) -> np.ndarray:
    """The largest |s x - s' x'| for each cell of the margin of x, over all cells of that of x'.

    In units of the longest row.
    """
    low, high = edges[:-1], edges[1:]
    # How far apart, and how far from opposite, the margins in two cells are at least.
    apart = np.maximum(np.maximum(low[:, None] - high, low - high[:, None]), 0.0)
    against = np.maximum(np.maximum(low[:, None] + low, -high[:, None] - high), 0.0)
    against = np.maximum(against - 2 * pairs.offset, 0.0)

    reach = pairs.radius * pairs.row_length
    constant = 4.0 * pairs.fit_intercept / pairs.row_length**2  # the square of 1 + 1
    product = ours.least[:, None] * theirs.least
    sums = (ours.most[:, None] + theirs.most) ** 2
    like = sums - product * ((against / reach) ** 2 + constant)
    unlike = sums - product * (apart / reach) ** 2
    if pairs.nonnegative:
        squares = ours.most[:, None] ** 2 + theirs.most**2
        like = np.minimum(like, squares - product * constant / 2)
    square = np.where(ours.sign[:, None] * theirs.sign > 0, like, unlike)
    square = np.where(apart <= 2 * pairs.reach, square + 2.0**-44 * sums, 0.0)  # and roundings
    return np.sqrt(square.max(axis=1))
