"""Iterative hard thresholding, without privacy and with it (Algorithms 3 and 4 of the lecture)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.mechanisms import Exact, GaussianMechanism, Mechanism
from riata.privacy.budget import Budget, check_number
from riata.problem import Problem
from riata.queries import Gradient
from riata.solvers.intercept import Intercept
from riata.solvers.noisy_gradient import check_step_size
from riata.solvers.plan import Plan, Solver, check_steps, count_steps
from riata.solvers.requirements import (
    infinite_epsilon,
    max_nonzeros,
    positive_delta,
)
from riata.solvers.solution import Callback, Solution, Step
from riata.solvers.sparse_descent import SparseDescent, sparse_rate, sparsity_of, thresholded
from riata.vectors import Vector, length

#: The most steps of the reference.
MOST_STEPS = 1_000


@dataclass(frozen=True)
class HardThresholding(Solver):
    """Iterative hard thresholding without noise: the reference. NOT PRIVATE.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        The most steps to take; "auto" is 1,000.
    step_size : float or "auto", default="auto"
    tolerance : float, default=1e-6
        Stop when a step moves the coefficients by less than this part of the radius.

    References
    ----------
    Blumensath, Davies (2009). Iterative hard thresholding for compressed sensing.
    Jain, Tewari, Kar (2014). On iterative hard thresholding methods for high-dimensional
    M-estimation.
    """

    step_size: float | str = "auto"
    tolerance: float = 1e-6

    name = "non-private hard-thresholding"
    private = False
    keeps_unpenalized: ClassVar[bool] = True
    requirements = (
        max_nonzeros,
        infinite_epsilon('Use solver="hard-thresholding", which is private'),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_step_size(self.step_size)
        if not check_number("tolerance", self.tolerance) >= 0:
            raise InvalidArgument(f"tolerance={self.tolerance!r} must not be negative.")

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps) or MOST_STEPS
        mechanisms: dict[str, Mechanism] = {"gradient": Exact()}
        if problem.fit_intercept:
            mechanisms["intercept"] = Exact()
        return Plan(
            self.name, problem, budget, steps, mechanisms, fits, 0.0, assumes="it converges"
        )

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 3, line by line."""
        theta, rate = problem.set.start(), sparse_rate(problem, self.step_size)
        intercept = Intercept(plan, problem, curator)
        for t in range(1, plan.steps + 1):  # line 2
            gradient = curator.release(Gradient(problem, theta), plan["gradient"])
            b = intercept.descend(theta, intercept.slope(theta), t)
            moved = thresholded(problem, theta.dense() - rate * gradient)  # lines 3-4
            change = length(moved - theta.dense()) + abs(b - theta.offset)
            theta = Vector.of(moved).with_offset(b)
            if callback is not None:
                callback(Step(t, plan.steps))
            if change <= self.tolerance * problem.set.radius_in("l2"):
                break
        return Solution(theta, t)  # line 6


@dataclass(frozen=True)
class PrivateHardThresholding(SparseDescent):
    """Iterative hard thresholding with Gaussian noise on every gradient.

    Parameters
    ----------
    steps : int or "auto", default="auto"
    step_size : float or "auto", default="auto"
        How far a step follows the gradient. "auto" is right for columns that are nearly
        uncorrelated; halve it where many columns move together.

    Notes
    -----
    *Privacy.* The rows are read once a step, by the noisy gradient of all columns, and once more
    if there is an intercept. Keeping the largest entries is post-processing.

    *Differences from the paper.* The noise is scaled to the Euclidean length that a row's gradient
    really has at the iterate. For rows bounded entry by entry this contains sqrt(p), which the
    printed sigma leaves out: there, solver="peeling" is far better.

    References
    ----------
    Wang, Gu (2019). Differentially private iterative gradient hard thresholding.
    """

    name = "hard-thresholding"
    keeps_unpenalized: ClassVar[bool] = True
    requirements = (positive_delta(), *SparseDescent.requirements)

    def mechanism(self, problem: Problem, budget: Budget, strength: float) -> Mechanism:
        return GaussianMechanism(1 / strength)

    def noise_length(self, problem: Problem, mechanism: Mechanism) -> float:
        """The noise that survives: the largest s of p normal numbers."""
        assert isinstance(mechanism, GaussianMechanism)
        row = problem.bounds.row_norm("l2", problem.n_features)
        s, free = sparsity_of(problem), len(problem.unpenalized)
        largest = math.sqrt(2 * s * math.log(math.e * problem.n_features / s) + free)
        return mechanism.noise_multiplier * problem.worst_sensitivity(row) * largest

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 4, line by line."""
        theta, rate = problem.set.start(), sparse_rate(problem, self.step_size)
        intercept = Intercept(plan, problem, curator)
        for t in count_steps(plan.steps, callback):  # line 2
            gradient = curator.release(Gradient(problem, theta), plan["gradient"])  # line 3: + Z_t
            b = intercept.descend(theta, intercept.slope(theta), t)
            moved = thresholded(problem, theta.dense() - rate * np.asarray(gradient))  # lines 3-4
            theta = Vector.of(moved).with_offset(b)
        return Solution(theta.with_offset(intercept.average), plan.steps)  # line 6
