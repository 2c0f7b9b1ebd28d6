"""The nearest point of a convex hull, in whole numbers: as near as anybody asks, and certified.

Wolfe's method (1976): it moves from one face of the hull to another, and solves for the nearest
point of the plane through each. Float64 says where to begin; what is returned does not depend on
how well it did. The proof is in docs/privacy/objective_perturbation.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Coordinates are multiples of the largest one times 2^-80, and weights of 2^-320.
COORDINATE_BITS = 80
_WEIGHT_BITS = 320

#: Pivots are divided to so many bits more.
_PIVOT_BITS = 320

#: A certificate that is this part of the largest coordinate is good enough.
_ENOUGH_BITS = 64

Whole = Any  # arrays of Python's integers


def nearest_in_hull(
    vertices: np.ndarray, v: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """The nearest point to v, and how far from it the nearest one may be, in l2.

    `weights` is where to begin: non-negative, one for each vertex, and not all 0.
    """
    unit = math.frexp(float(np.abs(vertices).max()))[1] - COORDINATE_BITS
    place = _whole(v, unit)
    around = _whole(vertices, unit) - place
    share = _normalised(_whole(weights / weights.sum(), -_WEIGHT_BITS))
    enough = 1 << (COORDINATE_BITS - _ENOUGH_BITS + _WEIGHT_BITS)
    for _ in range(8 * sum(vertices.shape)):
        share = _to_the_inside(around, share)
        rest = share @ around  # what is left to v, in units of 2^(unit - weight bits)
        ahead = around @ rest
        gap = int(rest @ rest) - (int(ahead.min()) << _WEIGHT_BITS)
        if gap <= enough**2:
            break
        share[int(ahead.argmin())] = max(share[int(ahead.argmin())], 1)
    whole = [(int(a) << _WEIGHT_BITS) + int(b) for a, b in zip(place, rest, strict=True)]
    point = np.array([math.ldexp(1.0, unit) * (each / (1 << _WEIGHT_BITS)) for each in whole])
    error = math.ldexp((math.isqrt(max(gap, 0)) + 1) / (1 << _WEIGHT_BITS), unit)
    largest = float(np.abs(v).max() + np.abs(vertices).max())
    return point, error + 2.0**-51 * math.sqrt(len(v)) * largest


def _to_the_inside(around: Whole, share: Whole) -> Whole:
    """Weights whose vertices span a face with the nearest point of its plane inside it."""
    while True:
        members = np.flatnonzero(share)
        best = _of_plane(around[members])
        if best is None:  # the vertices depend on each other: begin again at the nearest of them
            alone = np.zeros_like(share)
            alone[int((around * around).sum(axis=1).argmin())] = 1 << _WEIGHT_BITS
            return alone
        if (best >= 0).all():
            share = np.zeros_like(share)
            share[members] = best
            return _normalised(share)
        now = share[members]
        falling = np.flatnonzero(best < 0)
        parts = [(int(now[i]) << _WEIGHT_BITS) // int(now[i] - best[i]) for i in falling]
        part = min(parts)
        moved = now + ((part * (best - now)) >> _WEIGHT_BITS)
        moved[falling[parts.index(part)]] = 0
        share = np.zeros_like(share)
        share[members] = np.maximum(moved, 0)
        share = _normalised(share)


def _of_plane(points: Whole) -> Whole | None:
    """The weights, of sum 1, of the point nearest to 0 in the plane through the points."""
    n = len(points)
    square = points @ points.T
    scale = max(int(square.diagonal().max()), 1)
    matrix = (square + scale) << _PIVOT_BITS  # positive definite unless the points are dependent
    right = np.array([scale << _PIVOT_BITS] * n, dtype=object)
    for i in range(n):
        if matrix[i, i] <= scale:  # 2^-320 of what it was
            return None
        factor = (matrix[i + 1 :, i] << _PIVOT_BITS) // matrix[i, i]
        matrix[i + 1 :, i:] -= (factor[:, None] * matrix[i, i:]) >> _PIVOT_BITS
        right[i + 1 :] -= (factor * right[i]) >> _PIVOT_BITS
    found = np.zeros(n, dtype=object)
    for i in reversed(range(n)):
        rest = (right[i] << _PIVOT_BITS) - int(matrix[i, i + 1 :] @ found[i + 1 :])
        found[i] = rest // matrix[i, i]
    total = int(found.sum())
    return None if total <= 0 else (found << _WEIGHT_BITS) // total


def _normalised(share: Whole) -> Whole:
    """The same with a sum of exactly 1, what is missing added to the largest."""
    largest = int(share.argmax())
    share[largest] += (1 << _WEIGHT_BITS) - int(share.sum())
    return share


def _whole(values: np.ndarray, unit: int) -> Whole:
    """Multiples of 2^unit."""
    flat = [_nearest(float(x), unit) for x in np.ravel(values)]
    return np.array(flat, dtype=object).reshape(np.shape(values))


def _nearest(value: float, unit: int) -> int:
    mantissa, exponent = math.frexp(value)
    whole, shift = int(math.ldexp(mantissa, 53)), exponent - 53 - unit
    return whole << shift if shift >= 0 else (whole + (1 << (-shift - 1))) >> -shift
