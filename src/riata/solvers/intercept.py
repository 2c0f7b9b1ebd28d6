"""The intercept: fitted with theta, and paid for.

No set constrains it, so Frank-Wolfe's oracle does not apply. Instead each step releases the mean
slope of the loss, one number, and goes where a Newton step with the loss's largest curvature
leads. The intercept of the model is the average of those that were visited.
"""

from __future__ import annotations

import math
from dataclasses import replace

from riata.curator import Curator
from riata.mechanisms import (
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    SampledGaussianMechanism,
)
from riata.privacy.accountants import PureAccountant, ZcdpAccountant
from riata.privacy.budget import Budget
from riata.privacy.calibrate import noise_multiplier_at
from riata.problem import Problem
from riata.queries import MeanSlope
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.constant_share import posterior
from riata.solvers.measured_constant import error_at_first
from riata.solvers.plan import Plan
from riata.vectors import Vector

#: The part of the budget (of rho, or of epsilon under pure composition) that goes to the
#: intercept. One number needs little; the loss in the rest is about 5% of its noise.
SHARE = 0.1


def intercept_mechanism(other: Mechanism, budget: Budget, share: float = SHARE) -> Mechanism:
    """The mechanism that gets `share` of the budget when `other` gets the rest."""
    ratio = share / (1 - share)
    if isinstance(other, SampledGaussianMechanism):
        return replace(other, noise_multiplier=other.noise_multiplier / math.sqrt(ratio))
    if budget.delta == 0:
        return LaplaceMechanism(ratio * PureAccountant().epsilon(other.event, 0.0))
    return GaussianMechanism(noise_multiplier_at(ratio * ZcdpAccountant().rho(other.event)))


def with_intercept(
    role: str, step: Mechanism, problem: Problem, budget: Budget, share: float = SHARE
) -> dict[str, Mechanism]:
    """The mechanism of a step by its role, and that of the intercept if there is one."""
    if not problem.fit_intercept:
        return {role: step}
    return {role: step, "intercept": intercept_mechanism(step, budget, share)}


class Intercept:
    """Gradient descent for the intercept, and the average of where it went.

    A step of slope / largest curvature never overshoots, and a far optimum is reached in a number
    of steps proportional to its distance, also where the loss is straight or nearly so. The
    average, with weight t^later for step t, removes the noise.
    """

    def __init__(self, plan: Plan, problem: Problem, curator: Curator, later: int = 1) -> None:
        self._plan, self._problem, self._curator = plan, problem, curator
        self._later, self._sum, self._weight, self._squares = later, 0.0, 0.0, 0.0

    def slope(self, theta: Vector, problem: Problem | None = None, part: int = 0) -> float:
        """The released derivative of the risk in the intercept; 0 in a problem without one.

        In a plan that splits the rows, `problem` and `part` say which of them are asked.
        """
        if not self._problem.fit_intercept:
            return 0.0
        query = MeanSlope(problem or self._problem, theta)
        return float(self._curator.release(query, self._plan["intercept"], part)[0])

    def descend(self, theta: Vector, slope: float, t: int) -> float:
        """The intercept after step t."""
        problem = self._problem
        bound, curvature = problem.offset_bound, problem.loss.curvature_bound(problem.y_bound)
        if not 0 < curvature < math.inf:  # a subgradient step, which needs none
            curvature = problem.slope_bound * math.sqrt(t) / bound if bound else 1.0
        target = theta.offset - slope / curvature
        offset = min(max(float(target), -bound), bound)
        weight = float(t) ** self._later
        self._sum += weight * offset
        self._weight += weight
        self._squares += weight**2
        return offset

    @property
    def average(self) -> float:
        """The intercept of the model."""
        return self._sum / self._weight

    @property
    def likely(self) -> float:
        """The same, without what the noise of the average explains of it."""
        problem = self._problem
        curvature = problem.loss.curvature_bound(problem.y_bound)
        if not (problem.fit_intercept and 0 < curvature < math.inf):
            return self.average
        query = MeanSlope(problem, problem.set.start())
        noise = noise_std(self._plan["intercept"], query) / curvature
        noise *= math.sqrt(self._squares) / self._weight
        return posterior(self.average, noise, error_at_first(problem))[0]
