"""From a projected vector back to a sparse one: the smallest theta with Phi theta = v.

Everything here works on public vectors. Nothing reads a row and nothing is charged.
"""

from __future__ import annotations

import numpy as np

from riata.errors import InvalidArgument
from riata.privacy.budget import check_number
from riata.projections import Projection
from riata.sets.lift.first_order import TOLERANCE, first_order_lift
from riata.sets.lift.liftable import Liftable

#: With more dimensions than this, `lift_or_nearest` uses products with Phi alone.
EXACT_DIMENSIONS = 256


def lift(constraint: Liftable, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The theta with Phi theta = v and the smallest norm, the norm whose unit ball is the set.

    An error if there is no such theta, as for a simplex whose cone does not reach v.
    """
    constraint, v = _checked(constraint, projection, v)
    theta = constraint.lift(projection, v)
    if theta is None:
        raise InvalidArgument(
            f"v is out of reach: no multiple of a point of {constraint} is projected to it. "
            "Use `lift_or_nearest`, which takes the nearest point of the set in its place."
        )
    return theta


def lift_or_nearest(constraint: Liftable, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The lift of v if it lies in the set, and else the point of the set that comes nearest to v.

    The lift is at most as large as the smallest point of the set that is projected to v. A set
    that misses the origin, such as a simplex, may not hold it for being too small. For more than
    `EXACT_DIMENSIONS` dimensions this is `first_order_lift`.
    """
    constraint, v = _checked(constraint, projection, v)
    if projection.dimension > EXACT_DIMENSIONS:
        return first_order_lift(constraint, projection, v)
    theta = constraint.lift(projection, v)
    if theta is not None and constraint.contains(theta):
        return theta
    return constraint.nearest(projection, v)


def lift_within(
    constraint: Liftable, projection: Projection, v: np.ndarray, tolerance: float = TOLERANCE
) -> np.ndarray:
    """`lift_or_nearest` up to a tolerance, by products with Phi alone, for any dimension.

    Parameters
    ----------
    constraint : Liftable
    projection : Projection
    v : ndarray of shape (dimension,)
    tolerance : float, default=0.01
        How far the image may be from v, or from the point of Phi C that is nearest to v, in units
        of the length of v.
    """
    constraint, v = _checked(constraint, projection, v)
    if not 0 < check_number("tolerance", tolerance) < 1:
        raise InvalidArgument(
            f"tolerance={tolerance!r} must lie between 0 and 1: it is the part of v that the lift "
            "may miss. Use a number such as 0.01."
        )
    return first_order_lift(constraint, projection, v, float(tolerance))


def into_set(constraint: Liftable, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The point theta of the set that brings Phi theta nearest to v."""
    constraint, v = _checked(constraint, projection, v)
    return constraint.nearest(projection, v)


def _checked(
    constraint: Liftable, projection: Projection, v: np.ndarray
) -> tuple[Liftable, np.ndarray]:
    v = np.asarray(v, dtype=np.float64)
    if v.shape != (projection.dimension,) or not np.all(np.isfinite(v)):
        raise InvalidArgument(
            f"v has shape {v.shape}: it must hold {projection.dimension} finite numbers, one for "
            "each dimension of the projection."
        )
    return constraint.sized(projection.n_features), v


__all__ = ["Liftable", "into_set", "lift", "lift_or_nearest", "lift_within"]
