"""Algorithm 1 of Talwar, Thakurta and Zhang (2015): Frank-Wolfe without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.losses import Squared
from riata.mechanisms import Exact
from riata.privacy.budget import Budget, check_number
from riata.problem import Problem
from riata.queries import Support, SupportCurvature, risk_gradient
from riata.solvers.intercept import Intercept
from riata.solvers.plan import Plan, Solver, check_steps
from riata.solvers.requirements import beside_ball, convex_set, infinite_epsilon
from riata.solvers.solution import Callback, Solution, Step
from riata.solvers.step_count import MOST_STEPS, excess_risk_bound, step_size
from riata.vectors import Vector


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Frank-Wolfe without noise: the reference that private fits are compared with. NOT PRIVATE.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        The most steps to take; "auto" is 10,000.
    tolerance : float, default=1e-6
        Stop when the duality gap is below it. The gap certifies the model: its excess risk is at
        most the gap. With unpenalized columns it counts what a step of theirs gains, and certifies
        nothing.

    References
    ----------
    Talwar, Thakurta, Zhang (2015). Nearly-optimal private LASSO. Algorithm 1, Theorem 2.2.
    Jaggi (2013). Revisiting Frank-Wolfe.
    """

    tolerance: float = 1e-6

    name = "non-private frank-wolfe"
    private = False
    row_losses = None
    keeps_unpenalized: ClassVar[bool] = True
    requirements = (
        infinite_epsilon('Use solver="frank-wolfe", which is private, or epsilon=float("inf")'),
        convex_set,
        beside_ball,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not check_number("tolerance", self.tolerance) >= 0:
            raise InvalidArgument(f"tolerance={self.tolerance!r} must not be negative.")

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps) or MOST_STEPS
        mechanisms = {"gradient": Exact()}
        if problem.fit_intercept:
            mechanisms["intercept"] = Exact()
        times = {"moments": 1} if problem.unpenalized else {}
        mechanisms |= dict.fromkeys(times, Exact())
        risk = excess_risk_bound(problem, 0.0, steps)
        return Plan(self.name, problem, budget, steps, mechanisms, fits, risk, times=times)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 1, line by line."""
        C, theta = problem.set, problem.set.start()  # line 1
        gap = float("inf")
        intercept = Intercept(plan, problem, curator)
        unpenalized = _UnpenalizedSteps(plan, problem, curator)
        for t in range(1, plan.steps + 1):  # line 2
            whole = unpenalized.added_to(theta)
            gradient = curator.release(risk_gradient(problem, whole), plan["gradient"])
            gained, gradient = unpenalized.descend(gradient)
            s = C.minimiser(gradient)  # line 3
            slope = intercept.slope(whole)
            gap = gained + theta.dot(gradient) - s.dot(gradient)
            gap += theta.offset * slope + problem.offset_bound * abs(slope)
            if callback is not None:
                callback(Step(t, plan.steps, gap))
            if gap <= self.tolerance or t == plan.steps:
                break
            b = intercept.descend(theta, slope, t)
            theta = theta.toward(s, step_size(problem, t)).with_offset(b)  # line 4
        return Solution(whole, t, gap)  # line 5


class _UnpenalizedSteps:
    """Unpenalized columns: no set is about them, and they take Newton steps.

    With the largest curvature of the loss in place of the present one, so that none goes too far.
    """

    def __init__(self, plan: Plan, problem: Problem, curator: Curator) -> None:
        self._columns = np.array(problem.unpenalized, dtype=np.intp)
        self._values = np.zeros(len(self._columns))
        if not problem.unpenalized:
            return
        support, squares = Support(self._columns, problem.bounds), Squared()
        query = SupportCurvature(
            replace(problem, loss=squares), problem.set.start(), math.inf, support,
            support.longest, 0.0,
        )  # fmt: skip
        moments = curator.release(query, plan["moments"]) / squares.curvature_bound(problem.y_bound)
        units = problem.bounds.per_column(problem.n_features)[self._columns]
        curvature = problem.loss.curvature_bound(problem.y_bound)
        self._inverse = np.linalg.pinv(curvature * moments * units[:, None] * units)

    def added_to(self, theta: Vector) -> Vector:
        if not len(self._columns):
            return theta
        return theta.plus(Vector(theta.size, self._columns, self._values))

    def descend(self, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        """Take a step. What it gains at most, and the gradient of the other columns."""
        mine, rest = gradient[self._columns], gradient.copy()
        rest[self._columns] = 0.0
        if not len(self._columns):
            return 0.0, rest
        move = self._inverse @ mine
        self._values = self._values - move
        return float(mine @ move), rest
