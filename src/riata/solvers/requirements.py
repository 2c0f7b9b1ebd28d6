"""What solvers ask of a problem and a budget, each with a reason and a way out.

A solver lists them in `requirements`; `Solver.check` goes through the list before anything is
planned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from riata.errors import Incompatible
from riata.losses import NuisanceLoss
from riata.privacy.budget import REPLACE_LABEL, Budget
from riata.problem import Problem
from riata.queries.columns import MOST_COLUMNS
from riata.sets import PolytopeSet

Fact = Callable[[Problem, Budget], str]


def _set(problem: Problem, budget: Budget) -> str:
    return str(problem.set)


def _loss(problem: Problem, budget: Budget) -> str:
    return f"the {problem.loss.name} loss"


def _columns(problem: Problem, budget: Budget) -> str:
    return f"{problem.n_features:,} columns"


def _epsilon(problem: Problem, budget: Budget) -> str:
    return f"epsilon={budget.epsilon:g}"


def _delta(problem: Problem, budget: Budget) -> str:
    return f"delta={budget.delta:g}"


def another(problem: Problem) -> str:
    """What can be used for a problem like this one, whatever the loss, the set and the budget."""
    if isinstance(problem.loss, NuisanceLoss):
        return "L1Ball or L2Ball with a positive delta"
    if problem.unpenalized:
        return 'solver="greedy" over L1Ball or L2Ball'
    if problem.set.convex:
        return 'solver="noisy-gradient"'
    if 0 < problem.loss.curvature_bound(problem.y_bound) < math.inf:
        return 'solver="peeling"'
    return "a convex set, such as L1Ball"


@dataclass(frozen=True)
class Requirement:
    """Something that a solver cannot do without.

    Attributes
    ----------
    holds : callable
        Whether a problem and a budget meet it.
    fact : callable
        What the solver cannot be used with, in words.
    because, instead : str
        "{another}" stands for what can be used in its place.
    """

    holds: Callable[[Problem, Budget], bool]
    fact: Fact
    because: str
    instead: str

    def check(self, solver: str, problem: Problem, budget: Budget) -> None:
        """Raise unless it is met; `solver` is what the solver is called in messages."""
        if not self.holds(problem, budget):
            fact = self.fact(problem, budget)
            instead = self.instead.format(another=another(problem))
            raise Incompatible(solver, fact, because=self.because, instead=instead)


public_rows = Requirement(
    lambda p, b: p.adjacency == REPLACE_LABEL, lambda p, b: f'adjacency="{p.adjacency}"',
    "it takes rows for public and protects targets alone",
    'Use {another}, or adjacency="replace-label" if everything but the targets is public',
)  # fmt: skip

canonical_loss = Requirement(
    lambda p, b: p.loss.canonical_link, _loss,
    "one sum of rows and targets says all about a model only for the squared and the logistic "
    "loss without class weights",
    "Use {another}",
)  # fmt: skip

finite_epsilon = Requirement(
    lambda p, b: b.epsilon < math.inf, _epsilon, "it would add no noise at all",
    'Use solver="auto", which takes a reference that says that it is not private',
)  # fmt: skip

convex_set = Requirement(
    lambda p, b: p.set.convex, _set,
    "it mixes points of the set, and mixtures leave a set that is not convex",
    "Use {another}",
)  # fmt: skip

vertices = Requirement(
    lambda p, b: isinstance(p.set, PolytopeSet), _set,
    "it selects one of the vertices, and this set has no list of them",
    "Use {another}",
)  # fmt: skip

exact_projection = Requirement(
    lambda p, b: p.set.convex and p.set.projection_error(1.0) is not None, _set,
    "the guarantee needs a projection whose rounding error is proven",
    "Use {another}",
)  # fmt: skip

margin_loss = Requirement(
    lambda p, b: p.loss.gradient_bounds is None, _loss,
    "it works with margins of rows, and this loss is a function of whole rows",
    'Use solver="noisy-gradient" or "gaussian-frank-wolfe", or "frank-wolfe" on a polytope',
)  # fmt: skip

enforced_curvature = Requirement(
    lambda p, b: p.loss.gradient_bounds is None, _loss,
    "the guarantee needs a convex loss whose Hessian has rank one and a proven bound, and of a "
    "function of whole rows nothing but the length of its gradients can be enforced",
    'Use solver="noisy-gradient" or "gaussian-frank-wolfe" with a positive delta, or "frank-wolfe" '
    "on a polytope",
)  # fmt: skip

max_nonzeros = Requirement(
    lambda p, b: p.set.max_nonzeros is not None, _set,
    "it keeps the largest coefficients, and this set does not say how many",
    "Use {another}, or SparseBall(sparsity, radius) and a loss with a curvature",
)  # fmt: skip

refittable_set = Requirement(
    lambda p, b: p.set.supports_refit, _set,
    "it fits columns one by one and then projects, which suits balls of the l1 and the l2 norm",
    "Use {another}",
)  # fmt: skip

bounded_curvature = Requirement(
    lambda p, b: 0 < p.loss.curvature_bound(p.y_bound) < math.inf, _loss,
    "its steps are scaled to the largest curvature of the loss, which is 0 or infinite here",
    "Use {another}",
)  # fmt: skip

smoothable_loss = Requirement(
    lambda p, b: (
        p.loss.curvature_bound(p.y_bound) < math.inf or p.loss.smoothed(1.0) is not None
    ),
    _loss,
    "the determinant is paid for by its curvature, which is infinite, and it has no `smoothed`",
    "Use {another}, or a loss of bounded curvature, such as Poisson(largest_mean=...)",
)  # fmt: skip

least_squares = Requirement(
    lambda p, b: p.loss.least_squares, _loss,
    "only a Gaussian distribution can be drawn exactly, and it belongs to squares",
    "Use Squared(), or {another}",
)  # fmt: skip

classes = Requirement(
    lambda p, b: p.loss.classifies, _loss,
    "it adds up the rows of two classes, and this loss has none",
    "Use {another}, or a loss that classifies: Logistic() or SmoothedHinge()",
)  # fmt: skip

one_margin = Requirement(
    lambda p, b: p.loss.n_margins == 1, _loss,
    "it fits one model at a time, and this loss is of all classes together",
    'Use solver="softmax-gradient" or "joint-class-sums"',
)  # fmt: skip

no_nuisance = Requirement(
    lambda p, b: not isinstance(p.loss, NuisanceLoss), _loss,
    "its parameters beside the model would stay where they begin",
    'Use solver="profile-gradient", with a finite epsilon and a positive delta',
)  # fmt: skip

all_penalized = Requirement(
    lambda p, b: not p.unpenalized,
    lambda p, b: f"unpenalized columns ({len(p.unpenalized)} of them)",
    "it shrinks or selects all columns alike, so that these would not stay in the model as they "
    "are",
    "Use {another}, or leave unpenalized out",
)  # fmt: skip

beside_ball = Requirement(
    lambda p, b: not p.unpenalized or (
        p.set.supports_refit and p.loss.gradient_bounds is None
        and 0 < p.loss.curvature_bound(p.y_bound) < math.inf
    ),
    lambda p, b: f"unpenalized columns, {_loss(p, b)} and {_set(p, b)}",
    "it fits these columns beside a ball of the others, with steps scaled to the largest curvature "
    "of the loss",
    "Leave unpenalized out, or use L1Ball or L2Ball and a loss of bounded curvature",
)  # fmt: skip

nuisance_parameters = Requirement(
    lambda p, b: isinstance(p.loss, NuisanceLoss), _loss,
    "it fits parameters beside the model, and this loss has none",
    'Use solver="whitened-gradient"',
)  # fmt: skip

several_classes = Requirement(
    lambda p, b: p.loss.n_margins > 1, _loss,
    "it fits the models of three classes or more together, and this loss has one margin",
    "Use {another}, or PrivateLogisticRegression with three classes or more",
)  # fmt: skip


def infinite_epsilon(instead: str) -> Requirement:
    """A reference without noise covers no finite epsilon."""
    because = "it releases exact answers, which no finite epsilon covers"
    return Requirement(lambda p, b: b.epsilon == math.inf, _epsilon, because, instead)


def positive_delta(instead: str = "{another}") -> Requirement:
    """Gaussian noise needs a positive delta."""
    instead = f"Pass a positive delta, or use {instead}"
    because = "Gaussian noise has no pure guarantee"
    return Requirement(lambda p, b: b.delta > 0, _delta, because, instead)


def columns_at_most(most: int, because: str, instead: str) -> Requirement:
    """Some algorithms are for few columns."""
    return Requirement(lambda p, b: p.n_features <= most, _columns, because, instead)


scalable_columns = columns_at_most(
    MOST_COLUMNS, f"it scales at most {MOST_COLUMNS:,} of them exactly", "Use {another}"
)
