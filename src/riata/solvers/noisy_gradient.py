"""Noisy projected gradient descent (Bassily, Smith and Thakurta 2014), on all rows or samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from riata.curator import Curator
from riata.errors import Incompatible, InvalidArgument
from riata.mechanisms import GaussianMechanism, Mechanism, SampledGaussianMechanism
from riata.privacy.budget import Budget, check_number, check_scale
from riata.privacy.calibrate import calibrate
from riata.privacy.events import compose
from riata.problem import Problem
from riata.queries import Gradient
from riata.solvers.intercept import Intercept, intercept_mechanism
from riata.solvers.plan import (
    Callback,
    Plan,
    Solution,
    Solver,
    check_steps,
    counted,
    refuse_infinity,
    refuse_pure,
)
from riata.vectors import Vector

#: The numbers of steps that "auto" chooses between.
STEP_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


@dataclass(frozen=True)
class NoisyGradient(Solver):
    """Gradient descent whose gradients carry Gaussian noise, projected onto the set.

    Right for rows whose Euclidean length is bounded, such as texts: the noise of a step then does
    not grow with the number of columns. For rows bounded entry by entry it grows like its root.

    Parameters
    ----------
    steps : int or "auto", default="auto"
    step_size : float or "auto", default="auto"
        How far a step follows the gradient.
    clip : float, optional
        The largest Euclidean length of one row's gradient; longer ones are shortened. Without it,
        the bounds and the loss say how long one can be.
    sampling : float, default=1.0
        The share of the rows that a step reads, drawn in secret. Below 1 a step is faster and
        costs less, but sees less.

    Notes
    -----
    *Privacy.* The rows are read once a step, by the noisy gradient, and once more if there is an
    intercept. Steps on all rows compose to one Gaussian release, whose curve is exact; steps on
    samples compose by Renyi divergences. The average of the iterates is post-processing.

    References
    ----------
    Bassily, Smith, Thakurta (2014). Private empirical risk minimization. Algorithm 1.
    Abadi et al. (2016). Deep learning with differential privacy.
    """

    steps: int | str = "auto"
    step_size: float | str = "auto"
    clip: float | None = None
    sampling: float = 1.0

    name = "noisy-gradient"

    def __post_init__(self) -> None:
        check_steps(self.steps)
        check_step_size(self.step_size)
        if self.clip is not None:
            check_scale("clip", self.clip, "it is the largest length of one row's gradient.")
        if not 0 < check_number("sampling", self.sampling) <= 1:
            raise InvalidArgument(
                f"sampling={self.sampling!r} must lie in (0, 1]: it is the share of the rows that "
                "a step reads. Use 1.0 to read them all."
            )

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        refuse_infinity(self.name, budget)
        refuse_pure(self.name, budget, 'solver="objective-perturbation"')
        if not problem.set.convex:
            raise Incompatible(
                f'solver="{self.name}"', str(problem.set),
                because="the average of its iterates would leave a set that is not convex",
                instead='Use solver="hard-thresholding"',
            )  # fmt: skip
        given = check_steps(self.steps)
        plans = [self._planned(problem, budget, fits, n) for n in ([given] if given else STEP_COUNTS)]
        return min(plans, key=lambda plan: plan.excess_risk)

    def _planned(self, problem: Problem, budget: Budget, fits: int, steps: int) -> Plan:
        def at(strength: float) -> dict[str, Mechanism]:
            return self._mechanisms(problem, budget, strength)

        times = steps * fits
        mechanisms = at(
            calibrate(lambda s: compose(*((m.event, times) for m in at(s).values())), budget)
        )
        plan = Plan(self.name, problem, budget, steps, mechanisms, fits, 0.0)
        object.__setattr__(plan, "excess_risk", self._excess_risk(plan))
        return plan

    def _mechanisms(self, problem: Problem, budget: Budget, strength: float) -> dict[str, Mechanism]:
        gradient: Mechanism = GaussianMechanism(1 / strength)
        if self.sampling < 1:
            gradient = SampledGaussianMechanism(1 / strength, self.sampling)
        if not problem.fit_intercept:
            return {"gradient": gradient}
        return {"gradient": gradient, "intercept": intercept_mechanism(gradient, budget)}

    def _query(self, problem: Problem, theta: Vector) -> Gradient:
        if self.clip is None:
            return problem.gradient(theta)
        return problem.clipped_gradient(theta, self.clip)

    def _noise_length(self, plan: Plan) -> float:
        """The expected length of the noise of one gradient, or a little more."""
        problem, mechanism = plan.problem, plan["gradient"]
        row = problem.bounds.row_norm("l2", problem.n_features)
        sensitivity = problem.worst_sensitivity(row)
        if self.clip is not None:
            sensitivity = min(sensitivity, sensitivity / (problem.slope_bound * row) * self.clip)
        z = mechanism.noise_multiplier  # type: ignore[attr-defined]
        sampled = sensitivity * math.sqrt((1 - self.sampling) / self.sampling * problem.n_rows) / 2
        return math.hypot(z * sensitivity / self.sampling * math.sqrt(problem.n_features), sampled)

    def _rate(self, plan: Plan) -> float:
        """The step that the explicit bound recommends."""
        if not isinstance(self.step_size, str):
            return float(self.step_size)
        distance, noise = plan.problem.set.radius_in("l2"), self._noise_length(plan)
        return min(
            1 / (2 * _smoothness(plan.problem)), distance / (noise * math.sqrt(2 * plan.steps))
        )

    def _excess_risk(self, plan: Plan) -> float:
        """||C||^2 / (2 rate T) + rate * noise^2: for the average of T steps, each at most 1 / (2 L)."""
        problem, rate = plan.problem, self._rate(plan)
        distance = 2 * problem.set.radius_in("l2")
        risk = distance**2 / (2 * rate * plan.steps) + rate * self._noise_length(plan) ** 2
        return min(risk, 2 * problem.slope_bound * problem.margin_bound)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        C, theta, rate = problem.set, problem.set.start(), self._rate(plan)
        intercept, mean = Intercept(plan, problem, curator), np.zeros(problem.n_features)
        for t in counted(plan.steps, callback):
            gradient = curator.release(self._query(problem, theta), plan["gradient"])
            b = intercept.descend(theta, intercept.slope(theta), t)
            theta = Vector.of(C.project(theta.dense() - rate * gradient)).with_offset(b)
            mean += (theta.dense() - mean) * 2 / (t + 1)  # later iterates count more
        return Solution(Vector.of(mean).with_offset(intercept.average), plan.steps)


def _smoothness(problem: Problem) -> float:
    """The largest eigenvalue of the Hessian of the risk, whatever the rows inside the bounds."""
    row = problem.bounds.row_norm("l2", problem.n_features)
    return problem.loss.curvature_bound(problem.y_bound) * row**2


def check_step_size(step_size: object) -> None:
    if not (isinstance(step_size, str) and step_size == "auto"):
        check_scale("step_size", step_size, 'it is how far a step goes. Use "auto" to have it chosen.')
