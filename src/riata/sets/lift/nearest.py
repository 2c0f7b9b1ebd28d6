"""The point of a set whose image comes nearest to a vector: accelerated projected gradient."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from riata.public import public_normals
from riata.sets.base import ConstraintSet
from riata.sets.lift.equations import GAP, Linear, Matrix
from riata.vectors import length

if TYPE_CHECKING:
    from riata.sets.lift.liftable import Liftable


def nearest(
    constraint: Liftable,
    phi: Linear,
    v: np.ndarray,
    tolerance: float = 0.0,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Descent over few columns for as long as no other column can help, where the set allows it.

    With a tolerance the image is proved to lie within tolerance * ||v|| of the nearest one.
    """
    theta = constraint.start().dense() if start is None else start.copy()
    scale = np.square(v).sum() + np.square(phi.forward(theta)).sum()
    # Half of a squared distance is strongly convex: a gap bounds half of the distance squared.
    slack = 0.5 * tolerance**2 * np.square(v).sum()
    if constraint.promise(theta) is None:
        return _descent(constraint, phi, v, theta, scale, slack)
    inside, descended = theta != 0, False
    while True:
        image = phi.forward(theta)
        gradient = phi.back(image - v)
        furthest = constraint.minimiser(gradient)
        gap = gradient @ theta - furthest.dot(gradient)
        complete = descended and np.all(inside[furthest.support])
        if complete or _near_enough(gap, image - v, scale, slack):
            return theta
        worth = constraint.promise(gradient)
        assert worth is not None
        worth[inside] = -np.inf
        some = min(len(worth), 2 * len(v))
        inside |= worth >= np.partition(worth, len(worth) - some)[len(worth) - some]
        columns = np.flatnonzero(inside)
        part = constraint.restricted(columns)
        few = Matrix(phi.columns(columns))
        theta[columns], descended = _descent(part, few, v, theta[columns], scale, slack), True


def _descent(
    constraint: ConstraintSet,
    phi: Linear,
    v: np.ndarray,
    theta: np.ndarray,
    scale: float,
    slack: float,
) -> np.ndarray:
    """Accelerated projected gradient descent, which starts anew where it goes uphill.

    It stops when the linear minimiser proves that the squared distance is within a part of 1e-8
    of the smallest, or is so near to it that rounding hides the difference.
    """
    stretch = _largest_stretch(phi, len(v))
    image = phi.forward(theta)
    gradient = phi.back(image - v)
    ahead, ahead_image, ahead_gradient, momentum = theta, image, gradient, 1.0
    for _ in range(50_000):
        furthest = constraint.minimiser(gradient)
        gap = gradient @ theta - furthest.dot(gradient)
        if _near_enough(gap, image - v, scale, slack):
            return theta
        while True:
            new = constraint.project(ahead - ahead_gradient / stretch)
            new_image = phi.forward(new)
            moved = np.square(new - ahead).sum()
            stretched = np.square(new_image - ahead_image).sum()
            if stretched <= stretch * moved + 1e-15 * np.square(new_image).sum():
                break
            stretch *= 1.3
        new_gradient = phi.back(new_image - v)
        uphill = (ahead - new) @ (new - theta) > 0
        later = 1.0 if uphill else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = 0.0 if uphill else (momentum - 1) / later
        ahead = new + push * (new - theta)
        ahead_image = new_image + push * (new_image - image)
        ahead_gradient = new_gradient + push * (new_gradient - gradient)
        theta, image, gradient, momentum = new, new_image, new_gradient, later
    warnings.warn(
        "The point of the set is not yet proved to be the nearest to v. It lies in the set and is "
        "usable.",
        RuntimeWarning,
        stacklevel=2,
    )
    return theta


def _near_enough(gap: float, missed: np.ndarray, scale: float, slack: float) -> bool:
    distance = np.square(missed).sum()
    enough = max(0.5 * GAP * distance + 1e-15 * scale, slack)
    return bool(gap <= enough or distance <= 1e-18 * scale)


def _largest_stretch(phi: Linear, rows: int) -> float:
    """The largest eigenvalue of Phi Phi', nearly, by power iteration; descent corrects it."""
    v, value = public_normals((rows,), "riata power iteration"), 0.0
    for _ in range(50):
        v = phi.forward(phi.back(v / length(v)))
        value, before = length(v), value
        if value <= before * 1.02:
            break
    return 1.05 * value
