"""Upper beside lower: how near to optimal the best plan for given public facts is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from riata.errors import InvalidArgument
from riata.lower_bounds import LowerBound, lower_bound
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.solvers.gaussian_frank_wolfe import GaussianFrankWolfe
from riata.solvers.noisy_gradient import NoisyGradient
from riata.solvers.objective_perturbation import PerturbedObjective
from riata.solvers.plan import Plan
from riata.solvers.posterior_sampling import PosteriorSampling
from riata.solvers.private_frank_wolfe import PrivateFrankWolfe
from riata.solvers.step_count import MOST_STEPS, STEPS_BELOW_BOUND, start_risk
from riata.wording import number_of


@dataclass(frozen=True)
class RiskRange:
    """Between what the excess risk on the worst data lies, for the best private algorithm.

    Attributes
    ----------
    lower : float
        No private algorithm has a smaller expected excess risk on all data inside the bounds.
    hidden : str
        What the data hides that proves it, "" if nothing is known.
    upper : float
        The expected excess risk that `plan`, or the start of every solver, which reads nothing, has
        at most on all data inside the bounds.
    plan : Plan
    """

    lower: float
    hidden: str
    upper: float
    plan: Plan

    @property
    def factor(self) -> float:
        """Upper over lower: at most so many times better is possible."""
        return self.upper / self.lower if self.lower > 0 else float("inf")

    def __str__(self) -> str:
        who = f"{self.plan.solver}, {number_of(self.plan.steps, 'step')}"
        if self.upper < self.plan.excess_risk:
            who = "the start of every solver, which reads nothing"
        if self.lower == 0:
            return f"at most {self.upper:.3g} by {who}; no lower bound is known"
        return (
            f"at most {self.upper:.3g} by {who}; at least {self.lower:.3g} for every private "
            f"model, which data that hides {self.hidden} shows: a factor of {self.factor:,.3g}"
        )

    __repr__ = __str__


def risk_range(problem: Problem, budget: Budget) -> RiskRange:
    """The smallest proven upper bound of a plan, and the largest lower bound, for these facts."""
    plans = list(_plans(problem, budget))
    if not plans:
        raise InvalidArgument(
            f"No solver promises a risk for the {problem.loss.name} loss over {problem.set} with "
            f"{budget}. Use a convex set, or a loss with a bounded curvature."
        )
    best = min(plans, key=lambda plan: plan.excess_risk)
    below = lower_bound(problem, budget) or LowerBound(0.0, "")
    upper = min(best.excess_risk, start_risk(problem))
    return RiskRange(below.value, below.hidden, upper, best)


def _plans(problem: Problem, budget: Budget) -> Iterator[Plan]:
    """Plans with a bound for all data: each solver as it is, and with the steps of its bound."""
    for solver in (PrivateFrankWolfe, GaussianFrankWolfe):
        try:
            plan = solver().plan(problem, budget)
        except InvalidArgument:
            continue
        yield plan
        more = min(int(plan.steps * STEPS_BELOW_BOUND), MOST_STEPS)
        yield solver(more).plan(problem, budget)
    noisy = NoisyGradient(clip=None, momentum=0.0, average=True)
    for each in (noisy, PerturbedObjective(), PosteriorSampling()):
        try:
            if isinstance(each, NoisyGradient):
                each.check(problem, budget)
                each = each.with_proven_steps(problem, budget)
            yield each.plan(problem, budget)
        except InvalidArgument:
            continue


__all__ = ["RiskRange", "risk_range"]
