"""A lift by products with Phi and Phi' alone: for thousands of dimensions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from riata.sets.base import Ball
from riata.sets.lift.equations import Linear
from riata.sets.lift.liftable import Liftable
from riata.sets.lift.nearest import nearest
from riata.vectors import length

#: The part of v that a lift may miss. A projection to m dimensions moves margins by a part of
#: 1 / sqrt(m) and more, which is above this for all m below 10,000.
TOLERANCE = 1e-2

#: How much larger than the smallest solution a lift may be that has no zeros. At the smallest size
#: nearly all of its entries are at their limits, and a descent hardly moves.
ROOM = 1.05

#: Rounds of Newton's method for the size. Each one at least halves what is missed or nearly ends.
_MOST_ROUNDS = 60


def first_order_lift(
    constraint: Liftable, phi: Linear, v: np.ndarray, tolerance: float = TOLERANCE
) -> np.ndarray:
    """A theta of C that nearly solves Phi theta = v, at most `ROOM` times as large as need be.

    If C holds a solution, ||Phi theta - v|| <= tolerance * ||v||. If not, Phi theta is within
    tolerance * ||v|| of the point of Phi C nearest to v.

    Newton's method looks for the size t at which the points of t C come within half of the
    tolerance (van den Berg and Friedlander 2009). For every y, no theta smaller than
    (<v, y> - s ||y||) / ||Phi'y||_C* comes within s of v, as <v, y> <= s ||y|| + <theta, Phi'y>.
    So each t is a lower bound on the size of a solution. A set without the origin has no smaller
    copies: its nearest point is taken.
    """
    far = length(v)
    if far == 0 and not np.any(constraint.start().values):
        return np.zeros(phi.n_features)
    if not isinstance(constraint, Ball) or np.any(constraint.start().values):
        return constraint.nearest(phi, v, tolerance)
    theta, missed, size = np.zeros(phi.n_features), v, 0.0
    room = ROOM if constraint.promise(theta) is None else 1.0
    for _ in range(_MOST_ROUNDS):
        worth = constraint.dual_norm(phi.back(missed))
        if worth <= 1e-12 * far * length(missed):  # nothing that Phi reaches brings it nearer
            return theta
        size = max(size, (v @ missed - 0.5 * tolerance * far * length(missed)) / worth)
        if room * size >= 1:
            return nearest(constraint, phi, v, tolerance, theta)
        radius = room * size * constraint.radius
        part = replace(constraint, radius=radius)  # type: ignore[type-var]
        theta = nearest(part, phi, v, 0.5 * tolerance, theta)
        missed = v - phi.forward(theta)
        if length(missed) <= tolerance * far:
            return theta
    return theta
