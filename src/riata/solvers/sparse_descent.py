"""What private hard thresholding and peeling share: a plan of equal steps over a sparse ball."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.mechanisms import Mechanism
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.solvers.calibrated import calibrate_mechanisms
from riata.solvers.intercept import with_intercept
from riata.solvers.noisy_gradient import check_step_size
from riata.solvers.plan import Plan, Solver, check_steps
from riata.solvers.requirements import Requirement, bounded_curvature, max_nonzeros
from riata.vectors import length

#: The step that "auto" takes, in units of 1 / (curvature of the loss * bound of a column squared).
#: What it leaves of the distance to the optimum, for columns that are nearly uncorrelated and have
#: mean squares between bound^2 / 3 (uniform entries) and bound^2 (signs), is at most one half.
STEP = 1.5
CONTRACTION = 0.5

#: "auto" never takes more steps than this.
MOST_STEPS = 60

ASSUMES = "the columns are nearly uncorrelated and a model of this sparsity is right"


@dataclass(frozen=True)
class SparseDescent(Solver):
    """Private gradient steps over a `SparseBall`."""

    step_size: float | str = "auto"

    #: The role of the mechanism that makes a step.
    role = "gradient"
    requirements: ClassVar[tuple[Requirement, ...]] = (max_nonzeros,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_step_size(self.step_size)

    def check(self, problem: Problem, budget: Budget) -> None:
        super().check(problem, budget)
        if self.step_size == "auto":
            bounded_curvature.check(f'solver="{self.name}"', problem, budget)

    @abstractmethod
    def mechanism(self, problem: Problem, budget: Budget, strength: float) -> Mechanism:
        """One step's mechanism; a larger strength is more accurate and costs more."""

    @abstractmethod
    def noise_length(self, problem: Problem, mechanism: Mechanism) -> float:
        """The expected length of the noise that one step leaves in the gradient, roughly."""

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps)
        if steps is None:
            candidates = range(1, min(MOST_STEPS, problem.n_rows) + 1)
            one = self.planned(problem, budget, fits, 1)
            noise = self.noise_length(problem, one[self.role]) * _usual_slope(problem)
            growth = 0.5 if budget.delta > 0 else 1.0
            steps = min(candidates, key=lambda n: self.distance(problem, n, noise * n**growth))
        return self.planned(problem, budget, fits, steps)

    def planned(self, problem: Problem, budget: Budget, fits: int, steps: int) -> Plan:
        times = steps * fits

        def at(strength: float) -> dict[str, Mechanism]:
            step = self.mechanism(problem, budget, strength)
            return with_intercept(self.role, step, problem, budget)

        mechanisms = calibrate_mechanisms(at, times, budget)
        noise = self.noise_length(problem, mechanisms[self.role])
        distance = self.distance(problem, steps, noise)
        risk = self.excess_risk(problem, distance)
        return Plan(
            self.name, problem, budget, steps, mechanisms, fits, risk, assumes=ASSUMES,
            distance=min(distance, 2 * problem.set.radius_in("l2")),
        )  # fmt: skip

    def distance(self, problem: Problem, steps: int, noise: float) -> float:
        """How far from the optimum T steps end: c^T ||C|| + rate * noise / (1 - c)."""
        rate = sparse_rate(problem, self.step_size)
        start = problem.set.radius_in("l2")
        return CONTRACTION**steps * start + rate * noise / (1 - CONTRACTION)

    def excess_risk(self, problem: Problem, distance: float) -> float:
        """The risk at this distance if the rows spread evenly, at most that of the start."""
        curvature = problem.loss.curvature_bound(problem.y_bound) * _spread(problem) ** 2
        return min(curvature * distance**2 / 2, problem.worst_excess_risk)


def sparse_rate(problem: Problem, step_size: float | str) -> float:
    """The step: what is given, or a public rule.

    Of rows with a bound on their length, the squares of s columns sum to something between s / p of
    the square of the bound, if all columns are alike, and all of it. The rule takes the middle.
    """
    if not isinstance(step_size, str):
        return float(step_size)
    square = _spread(problem) ** 2
    if problem.bounds.favours_gradients:
        square *= math.sqrt(sparsity_of(problem) / problem.n_features)
    return STEP / (problem.loss.curvature_bound(problem.y_bound) * square)


def _usual_slope(problem: Problem) -> float:
    """The slope bound near the start, where the noise of a run is set, over the worst one."""
    usual = problem.loss.slope_bound(0.0, problem.y_bound)
    return usual / problem.slope_bound


def _spread(problem: Problem) -> float:
    return problem.bounds.row_norm("linf", problem.n_features)


def sparsity_of(problem: Problem) -> int:
    """How many coefficients to keep, without those of unpenalized columns."""
    assert problem.set.max_nonzeros is not None
    return problem.set.max_nonzeros


def thresholded(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """The largest coefficients, and those of unpenalized columns, within the radius together."""
    if not problem.unpenalized:
        return problem.set.project(theta)
    shortened = np.where(problem.project(theta) != 0, theta, 0.0)
    return shortened * min(1.0, problem.set.radius_in("l2") / max(length(shortened), 1e-300))
