"""What solvers ask of a problem and a budget, each with a reason and a way out.

A solver lists them in `requirements`; `Solver.check` goes through the list before anything is
planned. Each is called with what the solver is called in messages, the problem and the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from riata.errors import Incompatible
from riata.privacy.budget import Budget
from riata.sets import PolytopeSet

if TYPE_CHECKING:
    from riata.problem import Problem

Requirement = Callable[[str, "Problem", Budget], None]


def require_finite_epsilon(solver: str, problem: Problem, budget: Budget) -> None:
    """A private solver does not run without noise: the references do, and say so."""
    if budget.epsilon == math.inf:
        raise Incompatible(
            solver, "epsilon=inf", because="it would add no noise at all",
            instead='Use solver="auto", which takes a reference that says that it is not private',
        )  # fmt: skip


def require_infinite_epsilon(instead: str) -> Requirement:
    """A reference without noise covers no finite epsilon."""

    def require(solver: str, problem: Problem, budget: Budget) -> None:
        if budget.epsilon != math.inf:
            raise Incompatible(
                solver, f"epsilon={budget.epsilon:g}",
                because="it releases exact answers, which no finite epsilon covers",
                instead=instead,
            )  # fmt: skip

    return require


def require_delta(instead: str) -> Requirement:
    """Gaussian noise needs a positive delta."""

    def require(solver: str, problem: Problem, budget: Budget) -> None:
        if budget.delta == 0:
            raise Incompatible(
                solver, "delta=0", because="Gaussian noise has no pure guarantee",
                instead=f"Pass a positive delta, or use {instead}",
            )  # fmt: skip

    return require


def require_convex(solver: str, problem: Problem, budget: Budget) -> None:
    """A mixture of points stays inside a convex set only."""
    if not problem.set.convex:
        raise Incompatible(
            solver, str(problem.set),
            because="it mixes points of the set, and mixtures leave a set that is not convex",
            instead='Use solver="hard-thresholding" or "peeling"',
        )  # fmt: skip


def require_exact_projection(solver: str, problem: Problem, budget: Budget) -> None:
    """What rounding does to a projection must be known where noise has to hide it."""
    if not problem.set.convex or problem.set.projection_error(1.0) is None:
        raise Incompatible(
            solver, str(problem.set),
            because="the guarantee needs a projection whose rounding error is proven",
            instead="Use L1Ball, Simplex, GroupL1Ball or L2Ball",
        )  # fmt: skip


def require_vertices(solver: str, problem: Problem, budget: Budget) -> None:
    """A vertex can be selected from a list only."""
    if not isinstance(problem.set, PolytopeSet):
        raise Incompatible(
            solver, str(problem.set),
            because="it selects one of the vertices, and this set has no list of them",
            instead='Use solver="gaussian-frank-wolfe"',
        )  # fmt: skip


def require_max_nonzeros(solver: str, problem: Problem, budget: Budget) -> None:
    """Hard thresholding must know how many coefficients to keep."""
    if problem.set.max_nonzeros is None:
        raise Incompatible(
            solver, str(problem.set),
            because="it keeps the largest coefficients, and this set does not say how many",
            instead="Use SparseBall(sparsity, radius)",
        )  # fmt: skip


def require_refit(solver: str, problem: Problem, budget: Budget) -> None:
    """A model that is projected at the end needs a set that a projection does not spoil."""
    if not problem.set.supports_refit:
        raise Incompatible(
            solver, str(problem.set),
            because="it fits columns one by one and then projects, which suits balls of the "
            "l1 and the l2 norm",
            instead='Use solver="frank-wolfe" or "gaussian-frank-wolfe"',
        )  # fmt: skip


def require_curvature(solver: str, problem: Problem, budget: Budget) -> None:
    """A step of slope / curvature needs a curvature that is neither 0 nor infinite."""
    bound = problem.loss.curvature_bound(problem.y_bound)
    if not 0 < bound < math.inf:
        straight = "is straight, so that no step is too long"
        sharp = "has a slope whose growth nothing bounds, so that any step may be too long"
        raise Incompatible(
            solver, f"the {problem.loss.name} loss",
            because=f"its steps are scaled to the curvature, and this loss "
            f"{sharp if bound > 0 else straight}",
            instead='Use solver="noisy-gradient" or "gaussian-frank-wolfe", or "frank-wolfe" on a '
            "polytope",
        )  # fmt: skip


def require_smooth(solver: str, problem: Problem, budget: Budget) -> None:
    """A proof that differentiates the slope needs a derivative of it."""
    if not problem.loss.twice_differentiable:
        raise Incompatible(
            solver, f"the {problem.loss.name} loss",
            because="its slope has corners, and the proof differentiates it",
            instead='Use Squared() or Logistic(), or solver="noisy-gradient"',
        )  # fmt: skip


def require_classes(solver: str, problem: Problem, budget: Budget) -> None:
    """Sums of classes need classes."""
    if not problem.loss.classifies:
        raise Incompatible(
            solver, f"the {problem.loss.name} loss",
            because="it adds up the rows of two classes, and this loss has none",
            instead='Use solver="auto", or a loss that classifies: Logistic() or SmoothedHinge()',
        )  # fmt: skip


def require_least_squares(solver: str, problem: Problem, budget: Budget) -> None:
    """Second moments are sufficient statistics of one loss only."""
    if not problem.loss.least_squares:
        raise Incompatible(
            solver, f"the {problem.loss.name} loss",
            because="only a Gaussian law can be drawn exactly, and it belongs to squares",
            instead='Use Squared(), or solver="objective-perturbation"',
        )  # fmt: skip


def require_columns_at_most(most: int, because: str, instead: str) -> Requirement:
    """Some algorithms are for few columns."""

    def require(solver: str, problem: Problem, budget: Budget) -> None:
        if problem.n_features > most:
            raise Incompatible(
                solver, f"{problem.n_features:,} columns", because=because, instead=instead
            )

    return require
