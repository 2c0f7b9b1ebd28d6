"""Algorithm 1 of Talwar, Thakurta and Zhang (2015): Frank-Wolfe without privacy."""

from __future__ import annotations

from dataclasses import dataclass

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.mechanisms import Exact
from riata.privacy.budget import Budget, check_number
from riata.problem import Problem
from riata.queries import risk_gradient
from riata.solvers.intercept import Intercept
from riata.solvers.plan import Plan, Solver, check_steps
from riata.solvers.requirements import convex_set, infinite_epsilon
from riata.solvers.solution import Callback, Solution, Step
from riata.solvers.step_count import MOST_STEPS, excess_risk_bound, step_size


@dataclass(frozen=True)
class FrankWolfe(Solver):
    """Frank-Wolfe without noise: the reference that private fits are compared with. NOT PRIVATE.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        The most steps to take; "auto" is 10,000.
    tolerance : float, default=1e-6
        Stop when the duality gap is below it. The gap certifies the model: its excess risk is at
        most the gap.

    References
    ----------
    Talwar, Thakurta, Zhang (2015). Nearly-optimal private LASSO. Algorithm 1, Theorem 2.2.
    Jaggi (2013). Revisiting Frank-Wolfe.
    """

    tolerance: float = 1e-6

    name = "non-private frank-wolfe"
    private = False
    row_losses = None
    requirements = (
        infinite_epsilon('Use solver="frank-wolfe", which is private, or epsilon=float("inf")'),
        convex_set,
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
        risk = excess_risk_bound(problem, 0.0, steps)
        return Plan(self.name, problem, budget, steps, mechanisms, fits, risk)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 1, line by line."""
        C, theta = problem.set, problem.set.start()  # line 1
        gap = float("inf")
        intercept = Intercept(plan, problem, curator)
        for t in range(1, plan.steps + 1):  # line 2
            gradient = curator.release(risk_gradient(problem, theta), plan["gradient"])
            s = C.minimiser(gradient)  # line 3
            slope = intercept.slope(theta)
            gap = theta.dot(gradient) - s.dot(gradient)
            gap += theta.offset * slope + problem.offset_bound * abs(slope)
            if callback is not None:
                callback(Step(t, plan.steps, gap))
            if gap <= self.tolerance or t == plan.steps:
                break
            b = intercept.descend(theta, slope, t)
            theta = theta.toward(s, step_size(problem, t)).with_offset(b)  # line 4
        return Solution(theta, t, gap)  # line 5
