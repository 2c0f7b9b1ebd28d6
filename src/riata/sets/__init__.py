"""Constraint sets: oracles, projections, norms and widths."""

from riata.registry import Registry
from riata.sets.base import ConstraintSet, PolytopeSet, Width
from riata.sets.group_l1 import GroupL1Ball
from riata.sets.l1 import L1Ball
from riata.sets.lp import L2Ball, LpBall
from riata.sets.polytope import Polytope
from riata.sets.simplex import Simplex
from riata.sets.sparse import SparseBall

__all__ = [
    "ConstraintSet",
    "GroupL1Ball",
    "L1Ball",
    "L2Ball",
    "LpBall",
    "Polytope",
    "PolytopeSet",
    "Simplex",
    "SparseBall",
    "Width",
]

#: All of them, for whoever needs a list.
REGISTRY: Registry[ConstraintSet] = Registry(ConstraintSet, __name__)
