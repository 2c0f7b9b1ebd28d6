"""How many steps noisy Frank-Wolfe should take, and what it may expect: from explicit bounds.

The bound is Jaggi's (2013, Theorem 1) for an oracle that errs by e_t in step t. With steps
mu_t = 2 / (t + 2), curvature G and h_t the excess risk,

    h_{t+1} <= (1 - mu_t) h_t + mu_t e_t + mu_t^2 G / 2.

A longer run sees each step through more noise: e_t grows like sqrt(T) when costs compose as in
zCDP, and like T under pure composition.
"""

from __future__ import annotations

import math

import numpy as np

from riata.problem import Problem

#: The bound charges every step with the worst curvature over all data inside the bounds. On data,
#: the best number of steps is about an eighth of the one that minimises it (benchmarks/rates.py).
STEPS_BELOW_BOUND = 8.0

#: A plan never takes more steps than this unless the user asks for them.
MOST_STEPS = 10_000


#: Costs compose regularly only in a run of some length, so the error is read off at this one.
REFERENCE_STEPS = 64


def best_steps(problem: Problem, reference_error: float, growth: float) -> int:
    """The T that minimises 2 G / T + e T^growth, cut to what data needs.

    Parameters
    ----------
    problem : Problem
    reference_error : float
        The expected error of the oracle in a run of `REFERENCE_STEPS` steps.
    growth : float
        1/2 or 1: how the error grows with the number of steps.
    """
    error = reference_error / REFERENCE_STEPS**growth
    curvature = problem.curvature
    if curvature == math.inf:  # slopes that jump: as if they grew evenly over all margins
        curvature = 2 * problem.worst_excess_risk
    best = (2 * curvature / (growth * error)) ** (1 / (1 + growth))
    return int(min(max(math.ceil(best / STEPS_BELOW_BOUND), 1), MOST_STEPS))


def excess_risk_bound(problem: Problem, step_error: float, steps: int) -> float:
    """The recursion above, run to the end."""
    risk, curvature = start_risk(problem), problem.curvature
    for t in range(1, steps + 1):
        mu = 2 / (t + 2)
        risk = (1 - mu) * risk + mu * step_error + mu * mu * curvature / 2
    return min(risk, problem.worst_excess_risk)


def start_risk(problem: Problem) -> float:
    """The largest excess risk of the point that a run starts from.

    A convex loss falls by at most its slope at the start times the change of a margin.
    """
    if np.any(problem.set.start().values):
        return problem.worst_excess_risk
    slope = problem.loss.slope_bound(0.0, problem.y_bound)
    return min(slope * problem.margin_bound, problem.worst_excess_risk)
