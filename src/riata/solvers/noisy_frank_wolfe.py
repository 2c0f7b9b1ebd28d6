"""What Algorithms 2 and 3 share: a plan that spends the budget in equal steps."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from riata.mechanisms import Mechanism
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.solvers.calibrated import calibrate_mechanisms
from riata.solvers.intercept import with_intercept
from riata.solvers.plan import Plan, Solver, check_steps
from riata.solvers.step_count import REFERENCE_STEPS, best_steps, excess_risk_bound, start_risk
from riata.solvers.tails import FrankWolfeTail


@dataclass(frozen=True)
class NoisyFrankWolfe(Solver):
    """Frank-Wolfe whose oracle is private."""

    #: The role of the mechanism that answers for the oracle.
    role = ""

    row_losses = None

    @abstractmethod
    def oracle(self, strength: float, budget: Budget) -> Mechanism:
        """The private oracle's mechanism; a larger strength is more accurate and costs more."""

    @abstractmethod
    def oracle_error(self, problem: Problem, mechanism: Mechanism) -> float:
        """A bound on the expected error of one step's oracle, over all data inside the bounds."""

    @abstractmethod
    def error_tail(self, problem: Problem, mechanism: Mechanism) -> tuple[float, float, bool]:
        """The level and the scale of one step's error, and whether its tail is exponential."""

    def least_oracle_error(self, problem: Problem, mechanism: Mechanism) -> float:
        """The smallest known bound of this kind, for `excess_risk`; the rule for steps is older."""
        return self.oracle_error(problem, mechanism)

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps)
        if steps is None:
            reference = self._calibrated(problem, budget, fits * REFERENCE_STEPS)
            error = self.oracle_error(problem, reference[self.role])
            steps = best_steps(problem, error, growth=0.5 if budget.delta > 0 else 1.0)
        mechanisms = self._calibrated(problem, budget, fits * steps)
        error = self.least_oracle_error(problem, mechanisms[self.role])
        risk = excess_risk_bound(problem, error, steps)
        level, scale, exponential = self.error_tail(problem, mechanisms[self.role])
        curvature = problem.curvature
        tail = FrankWolfeTail(start_risk(problem), curvature, steps, level, scale, exponential)
        return Plan(
            self.name, problem, budget, steps, mechanisms, fits, risk,
            assumes=problem.loss.assumes, tail=tail if curvature < math.inf else None,
        )  # fmt: skip

    def _calibrated(self, problem: Problem, budget: Budget, times: int) -> dict[str, Mechanism]:
        """The mechanisms that spend the budget when each is used `times` times."""

        def at(strength: float) -> dict[str, Mechanism]:
            return with_intercept(self.role, self.oracle(strength, budget), problem, budget)

        return calibrate_mechanisms(at, times, budget)
