"""Gradients in coordinates that private second moments have made uncorrelated.

A few rounds release the joint second moment of the rows and of the slopes of the loss; each round
whitens the rows for the next one and takes a Newton step. Clipped gradients in the whitened space
then find the model, and two releases along the model say how much of it to keep. The proofs are in
docs/privacy/whitened_gradient.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from riata.curator import Curator
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries.whitening import MOST_COORDINATES
from riata.solvers.calibrated import gaussian_mechanisms, laplace_mechanisms
from riata.solvers.plan import Plan, Solver, check_steps
from riata.solvers.requirements import (
    Requirement,
    bounded_curvature,
    columns_at_most,
    positive_delta,
    refittable_set,
)
from riata.solvers.solution import Callback, Solution
from riata.solvers.step_count import zero_risk
from riata.solvers.whitened_run import Run
from riata.solvers.whitened_shares import STEPS, shares, whole_strength


def assumes(problem: Problem) -> str:
    """What the bound on the risk of a plan takes for granted."""
    if problem.unpenalized:
        return (
            "unpenalized columns alone are no worse than the best constant, and no more of the "
            "others is kept than is better"
        )
    return "no more of the model is kept than is better than the best constant"


@dataclass(frozen=True)
class WhitenedGradient(Solver):
    """Clipped gradients of rows that were whitened by released second moments.

    Right for up to a few hundred columns that are correlated, with bounds of either norm that may
    be far too wide.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        The number of gradients.

    Notes
    -----
    *Privacy.* The rows are read for two scales, for a few joint second moments of rows and slopes,
    for the gradients, for the second moments of what they add up (least squares alone), for two
    gradients or joint second moments along the model, and for an estimate of the fit. All releases
    are Gaussian and planned before, so that their composition is exact.
    """

    name = "whitened-gradient"
    radius_policy: ClassVar[str] = "open"
    keeps_unpenalized: ClassVar[bool] = True
    errors_unknown: ClassVar[str] = (
        "Where rows hardly vary, as in rare categories and between the knots of curves, noise "
        "hides how far coefficients are off."
    )
    requirements: ClassVar[tuple[Requirement, ...]] = (
        positive_delta(),
        refittable_set,
        bounded_curvature,
        columns_at_most(
            MOST_COORDINATES, f"it whitens at most {MOST_COORDINATES:,} of them exactly",
            'Use solver="scaled-gradient" or "greedy"',
        ),
    )  # fmt: skip

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps) or self.usual_steps(budget)
        parts = self.parts(
            problem, steps, whole_strength(problem, budget, fits), pure=budget.delta == 0
        )
        times = {role: count for role, (count, _) in parts.items()}
        shares_of = {role: share for role, (_, share) in parts.items()}
        planned = gaussian_mechanisms if budget.delta > 0 else laplace_mechanisms
        mechanisms = planned(times, shares_of, budget, fits)
        return Plan(
            self.name, problem, budget, steps, mechanisms, fits, zero_risk(problem),
            assumes=assumes(problem),
            times=times,
        )  # fmt: skip

    def usual_steps(self, budget: Budget) -> int:
        """How many gradients "auto" takes."""
        return STEPS

    def parts(
        self, problem: Problem, steps: int, strength: float, *, pure: bool
    ) -> dict[str, tuple[int, float]]:
        """How often each kind of release is made, and what it gets of the budget."""
        return shares(problem, steps, strength)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        return self.fit(Run(plan, problem, curator), callback)

    def fit(self, run: Run, callback: Callback | None) -> Solution:
        """Every release of a run, in order."""
        run.begin()
        for role in run.plan.mechanisms:
            if role.startswith("moments"):
                run.whiten(role)
        run.descend(callback)
        run.shrink()
        return run.solution()
