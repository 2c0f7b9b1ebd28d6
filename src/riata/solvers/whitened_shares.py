"""How the whitened gradient divides its budget, by public facts."""

from __future__ import annotations

import math
from functools import lru_cache

from riata.mechanisms import GaussianMechanism
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.solvers.calibrated import gaussian_mechanisms
from riata.solvers.measured_constant import releases
from riata.solvers.plan import Plan

#: "auto" takes this many gradients, and averages what this part of them, the last ones, lead to.
STEPS, AVERAGED = 12, 0.5

#: What the rounds get of the budget, each twice the one before, and the first and the averaged
#: gradients, and the estimate of the fit.
SHARES = {"moments": 0.35, "first": 0.12, "gradient": 0.485, "check": 0.015}

#: What the second moments of the gradient's summands get, which errors of least squares are made
#: of.
ERRORS = 0.03

#: So many rounds from so many rows times the strength of the guarantee for each column.
ROUNDS = ((30.0, 4), (10.0, 3), (3.0, 2), (0.0, 1))

#: A scale gets the share with which three tenths of the rows are 5 standard deviations of a bin's
#: noise, within limits; the gradients along the model that which finds a multiple of it to 0.4.
SCALES, LEAST_FOR_SCALES, MOST_FOR_SCALES = 24.0, 0.005, 0.1
ALONG, LEAST_ALONG, MOST_ALONG = 40.0, 0.04, 0.15

#: Where the curvature is measured, the best constant is found in so many rounds, each with a scale
#: of the slopes, and gets this share.
CONSTANTS, CONSTANT_SHARE = 3, 0.05


def shares(problem: Problem, steps: int, strength: float) -> dict[str, tuple[int, float]]:
    """How often each kind of release is made, and what it gets; `strength` is that of all rows."""
    last = math.ceil(AVERAGED * steps)
    scale = scale_share(strength)
    found = {"lengths": (1, scale)}
    if not problem.loss.classifies:  # whose slopes are known at 0
        found["slopes"] = (1, scale)
    if problem.loss.measured_curvature:
        found["slopes"] = (CONSTANTS + 1, 2 * scale)
        found["constant"] = (releases(problem, CONSTANTS), CONSTANT_SHARE)
    rounds = next(k for least, k in ROUNDS if strength / problem.n_features >= least)
    for k in range(rounds):
        found[f"moments {k + 1}"] = (1, SHARES["moments"] * 2**k / (2**rounds - 1))
    if steps > last:
        found["first"] = (steps - last, SHARES["first"])
    found["gradient"] = (last, SHARES["gradient"])
    if problem.loss.least_squares:
        found["errors"] = (1, ERRORS)
    return found | {"along": (2, along_share(strength)), "check": (1, SHARES["check"])}


def scale_share(strength: float) -> float:
    return min(max(min(SCALES / strength, 1.0) ** 2, LEAST_FOR_SCALES), MOST_FOR_SCALES)


def along_share(strength: float) -> float:
    return min(max(min(ALONG / strength, 1.0) ** 2, LEAST_ALONG), MOST_ALONG)


def whole_strength(problem: Problem, budget: Budget, fits: int = 1) -> float:
    """The number of rows times the strength of the guarantee of each of `fits` models.

    The strength of one Gaussian release with noise 1 / m is m. That of a Laplace release is the one
    of a Gaussian with the same standard deviation.
    """
    if budget.delta == 0:
        return problem.n_rows * budget.row_epsilon / fits / math.sqrt(2)
    return problem.n_rows / _multiplier_of_whole(budget, fits)


@lru_cache(maxsize=64)
def _multiplier_of_whole(budget: Budget, fits: int) -> float:
    """The noise multiplier of one release with all of a budget: a search for shares asks often."""
    whole = gaussian_mechanisms({"whole": 1}, {"whole": 1.0}, budget, fits)["whole"]
    assert isinstance(whole, GaussianMechanism)
    return whole.noise_multiplier


def strength_of(plan: Plan, problem: Problem) -> float:
    """The number of rows for each column, times the strength of a plan's guarantee."""
    if plan.budget.delta == 0:
        return whole_strength(problem, plan.budget, plan.fits) / problem.n_features
    spent = 0.0
    for role, mechanism in plan.mechanisms.items():
        assert isinstance(mechanism, GaussianMechanism)
        spent += plan.times[role] / mechanism.noise_multiplier**2
    return problem.n_rows * math.sqrt(spent) / problem.n_features
