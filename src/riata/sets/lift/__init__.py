"""From a projected vector back to a sparse one: the smallest theta with Phi theta = v.

Everything here works on public vectors. Nothing reads a row and nothing is charged.
"""

from __future__ import annotations

import numpy as np

from riata.errors import Incompatible, InvalidArgument
from riata.projections import Projection
from riata.sets.base import ConstraintSet
from riata.sets.group_l1 import GroupL1Ball
from riata.sets.l1 import L1Ball
from riata.sets.lift.equations import Equations, Linear, checked, mixtures
from riata.sets.lift.groups import fewest_groups
from riata.sets.lift.linear import fewest
from riata.sets.lift.nearest import into_set
from riata.sets.lift.smooth import flat, smooth
from riata.sets.lp import L2Ball, LpBall
from riata.sets.polytope import Polytope
from riata.sets.simplex import Simplex


def lift(constraint: ConstraintSet, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The theta with Phi theta = v and the smallest norm, the norm whose unit ball is the set.

    An error if there is no such theta, as for a simplex whose cone does not reach v.
    """
    constraint, v = checked(constraint, projection, v)
    theta = _smallest(constraint, projection, v)
    if theta is None:
        raise InvalidArgument(
            f"v is out of reach: no multiple of a point of {constraint} is projected to it. "
            "Use `lifted`, which takes the nearest point of the set in its place."
        )
    return theta


def lifted(constraint: ConstraintSet, projection: Projection, v: np.ndarray) -> np.ndarray:
    """The lift of v if it lies in the set, and else the point of the set that comes nearest to v.

    The lift is at most as large as the smallest point of the set that is projected to v. A set
    that misses the origin, such as a simplex, may not hold it for being too small.
    """
    constraint, v = checked(constraint, projection, v)
    theta = _smallest(constraint, projection, v)
    if theta is not None and constraint.contains(theta):
        return theta
    return into_set(constraint, projection, v)


def _smallest(
    constraint: ConstraintSet, projection: Projection, v: np.ndarray
) -> np.ndarray | None:
    """The lift, or None if v is out of reach."""
    if isinstance(constraint, Polytope):
        mixture = _smallest_of(Simplex(1.0), mixtures(constraint, projection), v)
        return None if mixture is None else constraint.vertices.T @ mixture
    return _smallest_of(constraint, projection, v)


def _smallest_of(constraint: ConstraintSet, phi: Linear, v: np.ndarray) -> np.ndarray | None:
    if not np.any(v):
        return np.zeros(phi.n_features)
    equations = Equations.of(phi, v)
    if equations is None:
        return None
    p = constraint.p if isinstance(constraint, LpBall | L2Ball) else None
    if isinstance(constraint, L1Ball) or p == 1:
        theta = fewest(equations, signed=True)
    elif isinstance(constraint, Simplex):
        theta = fewest(equations, signed=False)
    elif isinstance(constraint, GroupL1Ball):
        theta = fewest_groups(equations, constraint.codes())
    elif p is None:
        raise Incompatible(
            f"a projection of {phi.n_features} columns",
            f"{constraint}",
            because="no way back from a projection into this set is known",
            instead="Use L1Ball, GroupL1Ball, Simplex, L2Ball, LpBall or Polytope",
        )
    elif p == 2:
        theta = equations.back(equations.target)
    elif np.isinf(p):
        theta = flat(equations)
    else:
        theta = smooth(equations, p)
    return None if theta is None else equations.scale * theta


__all__ = ["into_set", "lift", "lifted"]
