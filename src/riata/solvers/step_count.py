"""How many steps noisy Frank-Wolfe should take, and what it may expect: from explicit bounds.

The bound is Jaggi's (2013, Theorem 1) for an oracle that errs by e_t in step t. With steps
mu_t = 2 / (t + 2), curvature G and h_t the excess risk,

    h_{t+1} <= (1 - mu_t) h_t + mu_t e_t + mu_t^2 G / 2.

Where the risk is straight, G = 0, the step is mu_t = 1: nothing is left of the start, and the last
step alone counts.

A longer run sees each step through more noise: e_t grows like sqrt(T) when costs compose as in
zCDP, and like T under pure composition.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from riata.errors import InvalidArgument
from riata.losses import Weighted
from riata.privacy.budget import check_number
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


def steps_by_theorem_2_5(problem: Problem, epsilon: float) -> int:
    """T of Theorem 2.5 of the paper, as printed: (curvature n epsilon / (L_1 ||C||_1))^(2/3).

    Far more steps than are good for data: docs/algorithms/frank_wolfe.md.
    """
    slope = problem.slope_bound * problem.gradient_bounds.row_norm("linf", problem.n_features)
    return _printed_steps(problem, epsilon, slope * problem.set.radius_in("l1"))


def steps_by_theorem_b_2(problem: Problem, epsilon: float) -> int:
    """T of Theorem B.2 of the paper, as printed: (curvature n epsilon / (L_2 G_C))^(2/3)."""
    slope = problem.slope_bound * problem.gradient_bounds.row_norm("l2", problem.n_features)
    return _printed_steps(problem, epsilon, slope * problem.set.gaussian_width().value)


def _printed_steps(problem: Problem, epsilon: float, scale: float) -> int:
    curvature = problem.curvature
    if curvature == math.inf:
        raise InvalidArgument(
            f"The {problem.loss.name} loss has no bounded curvature, of which the theorem takes a "
            "power. Round its corner by Smoothed(loss, width)."
        )
    epsilon = check_number("epsilon", epsilon)
    if not 0 < epsilon < math.inf:
        raise InvalidArgument(f"epsilon={epsilon!r} must be positive and finite.")
    return max(1, int((curvature * problem.n_rows * epsilon / scale) ** (2 / 3)))


def step_size(problem: Problem, t: int) -> Fraction:
    """mu_t: 2 / (t + 2), and 1 for a straight loss."""
    straight = problem.loss.curvature_bound(problem.y_bound) == 0
    return Fraction(1) if straight else Fraction(2, t + 2)


def excess_risk_bound(problem: Problem, step_error: float, steps: int) -> float:
    """The recursion above, run to the end."""
    risk, curvature = start_risk(problem), problem.curvature
    for t in range(1, steps + 1):
        mu = float(step_size(problem, t))
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


def zero_risk(problem: Problem) -> float:
    """The largest risk of the model 0, and so of its excess risk: for losses that are not negative.

    Where the set is large this is less than what `start_risk` says.
    """
    loss, y = problem.loss, problem.y_bound * np.array([-1.0, 1.0])
    if isinstance(loss, Weighted):
        y = np.arange(float(len(loss.weights)))
    elif loss.n_margins > 1:  # the codes of classes: what is none of them has no loss
        y = np.arange(float(loss.n_margins))
    margins = np.zeros(len(y) if loss.n_margins == 1 else (len(y), loss.n_margins))
    return min(float(loss.value(margins, y).max()), problem.worst_excess_risk)
