"""Extra releases, outside the fits of solvers, and a plan that pays for all of it together.

The solver gets a smaller budget, and the extra releases get the rest: their noise is the one at
which the whole composition spends what was asked for, to the last digits. The proof is in
docs/privacy/calibration.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from riata.errors import Incompatible
from riata.mechanisms import Exact
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate, epsilon_near, root_of_rho_near
from riata.problem import Problem
from riata.solvers.adaptive_budget import measurement_at
from riata.solvers.plan import ExtraRelease, Plan, Solver

#: The roles of the releases.
CLASS_COUNTS, MARGIN_COUNTS, MARGIN_SLOPES = "class counts", "margin counts", "margin slopes"
DATA_QUALITY = "data quality"

#: The part of the budget (of rho, or of epsilon where delta is 0) that goes to each kind, all fits
#: together. A few numbers need little; the solver's noise grows by half of these parts.
SHARES = {CLASS_COUNTS: 0.02, MARGIN_COUNTS: 0.02, MARGIN_SLOPES: 0.03, DATA_QUALITY: 0.01}


def plan_with_extra_releases(
    solver: Solver, problem: Problem, budget: Budget, fits: int, times: Mapping[str, int]
) -> Plan:
    """The solver's plan, with extra releases of each role, that spend the budget together.

    Parameters
    ----------
    times : mapping of str to int
        How often each role of `SHARES` is released.
    """
    if not times:
        return solver.plan(problem, budget, fits)
    if budget.epsilon == math.inf:
        exact = {role: ExtraRelease(Exact(), count) for role, count in times.items()}
        return replace(solver.plan(problem, budget, fits), extra_releases=exact)
    rest = _without(budget, sum(SHARES[role] for role in times))
    plan = solver.plan(problem, rest, fits)
    if plan.parts > 1:
        raise Incompatible(
            f'solver="{plan.solver}" on disjoint parts of the rows', "extra releases",
            because="these read all rows, and each part pays for its own rows only",
            instead="Use split=False",
        )  # fmt: skip

    def at(strength: float) -> dict[str, ExtraRelease]:
        return {
            role: ExtraRelease(
                measurement_at(strength * SHARES[role] / count, budget.delta == 0), count
            )
            for role, count in times.items()
        }

    strength = calibrate(lambda s: replace(plan, extra_releases=at(s)).event, budget)
    return replace(plan, budget=budget, extra_releases=at(strength))


def _without(budget: Budget, share: float) -> Budget:
    """About the budget that is left when `share` of its rho, or of its epsilon, is taken away.

    It need not be exact, only below the budget.
    """
    if budget.delta == 0:
        return replace(budget, epsilon=budget.epsilon * (1 - share))
    root = root_of_rho_near(budget.epsilon, budget.delta) * math.sqrt(1 - share)
    return replace(budget, epsilon=epsilon_near(root, budget.delta))
