"""The intercept: fitted beside theta, and paid for.

No set constrains it, so Frank-Wolfe's oracle does not apply. Instead each step releases the mean
slope of the loss, one number, and aims at the point where a Newton step with the loss's largest
curvature would go. The step towards it is the same as theta's, which averages the noise.
"""

from __future__ import annotations

import math

import numpy as np

from riata.curator import Curator
from riata.mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism
from riata.privacy.accountants import ZcdpAccountant
from riata.privacy.budget import Budget
from riata.privacy.events import BoundedRange, Pure
from riata.problem import Problem
from riata.solvers.plan import Plan
from riata.vectors import Vector

#: The part of the budget (of rho, or of epsilon under pure composition) that goes to the
#: intercept. One number needs little; the loss in the rest is about 5% of its noise.
SHARE = 0.1


def intercept_mechanism(beside: Mechanism, budget: Budget) -> Mechanism:
    """The mechanism that gets `SHARE` of the budget when `beside` gets the rest."""
    ratio = SHARE / (1 - SHARE)
    if budget.delta == 0:
        assert isinstance(beside.event, (Pure, BoundedRange))
        return LaplaceMechanism(ratio * beside.event.epsilon)
    return GaussianMechanism(1 / math.sqrt(2 * ratio * ZcdpAccountant().rho(beside.event)))


def intercept_slope(theta: Vector, plan: Plan, problem: Problem, curator: Curator) -> float:
    """The released derivative of the risk in the intercept; 0 in a problem without one."""
    if not problem.fit_intercept:
        return 0.0
    return float(curator.release(problem.mean_slope(theta), plan["intercept"])[0])


def with_intercept(s: Vector, theta: Vector, slope: float, problem: Problem) -> Vector:
    """`s` with the intercept to move towards."""
    target = theta.offset - slope / problem.loss.curvature_bound(problem.y_bound)
    return s.with_offset(float(np.clip(target, -problem.offset_bound, problem.offset_bound)))
