"""What a search will do and cost, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.mechanisms import Additive
from riata.privacy.accountants import Spent, spent
from riata.privacy.accountants.repetition import cost_of_selection
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate, root_of_rho_near
from riata.privacy.events import RandomlyRepeated, compose
from riata.solvers import Plan
from riata.solvers.adaptive_budget import measurement_at, noise_std
from riata.tuning.candidates import candidate
from riata.tuning.scoring import check_scoring, error_of
from riata.vectors import Vector
from riata.wording import number_of, shape_of

#: The part of a run (of its rho, or of its epsilon where delta is 0) that its score gets.
SCORE_SHARE = 0.15

#: How near to the budget the fits are brought; the noise of the scores takes up the rest.
_NEAR = 2e-3

#: The number of runs has the geometric distribution.
SHAPE = 1.0


@dataclass(frozen=True)
class SearchPlan:
    """The candidates, their plans, the noise of their scores, and what all of it costs.

    Attributes
    ----------
    budget : Budget
        What was asked for.
    estimators : tuple of estimators
        The candidates, each with the part of the budget that its fit gets.
    parameters : tuple of dict
        What the grid says about each.
    plans : tuple of Plan
        The fit of each.
    score : Mechanism
        Releases the score of one fit.
    scoring : str
    expected : float
        The number of runs to expect.
    score_error : float
        The standard deviation of the noise of a score.
    event : RandomlyRepeated
        The cost of the search.
    """

    budget: Budget
    estimators: tuple[PrivateLinearModel, ...] = field(repr=False)
    parameters: tuple[dict[str, Any], ...]
    plans: tuple[Plan, ...]
    bounds: tuple[Bounds, ...]
    score: Additive
    scoring: str
    expected: float

    @property
    def event(self) -> RandomlyRepeated:
        return _event(self.plans, self.score, self.expected)

    @property
    def spent(self) -> Spent:
        return spent(self.event, self.budget.delta)

    @property
    def score_error(self) -> float:
        problem = self.plans[0].problem
        nothing = (Vector.zero(1),)
        labels = {"labels": (), "lines": ()} if self.scoring == "accuracy" else {}
        query = error_of(
            self.scoring, nothing, self.bounds[0], problem.n_rows, problem.adjacency, **labels
        )
        return noise_std(self.score, query)

    @property
    def releases(self) -> tuple[str, ...]:
        run = spent(self.event.candidates[0], self.budget.delta / self.expected)
        return (
            f"one of {len(self.plans)} candidates, with its model and its score: the best of a "
            f"random number of runs, {self.expected:g} on average",
            f"each run: at most epsilon {self._of_a_run():.4g} at delta {run.delta:.3g}, and "
            f"{cost_of_selection(self.event):.4g} for the selection",
            f"score: {self.scoring}, {self.score.describe(1)}, standard deviation "
            f"{self.score_error:.3g}",
        )

    def _of_a_run(self) -> float:
        each = self.budget.delta / self.expected
        return max(spent(run, each).epsilon for run in self.event.candidates)

    def summary(self) -> dict[str, Any]:
        """Public facts for the ledger."""
        problem = self.plans[0].problem
        return {
            "solver": "random search",
            "candidates": [_in_words(each) for each in self.parameters],
            "expected": self.expected,
            "scoring": self.scoring,
            "n_rows": problem.n_rows,
            "n_features": problem.n_features,
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "releases": list(self.releases),
        }

    def __str__(self) -> str:
        p, total = self.plans[0].problem, self.spent
        rows = [
            ("data", f"{shape_of(p.n_rows, p.n_features)}, {p.bounds}"),
            *(
                ("tries", f"{_in_words(each)}: {plan.solver}, {number_of(plan.steps, 'step')}")
                for each, plan in zip(self.parameters, self.plans, strict=True)
            ),
            *(("release", line) for line in self.releases),
            (
                "costs",
                f"epsilon {total.epsilon:.9g} at delta {total.delta:g} by {total.accountant}",
            ),
        ]
        head = f"Search for {self.budget}: nothing is charged and no row is read."
        return "\n".join([head, *(f"  {key:<8} {value}" for key, value in rows)])

    __repr__ = __str__


def _in_words(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in parameters.items()) or "as given"


def _event(plans: tuple[Plan, ...], score: Additive, expected: float) -> RandomlyRepeated:
    runs = tuple(compose((plan.event, 1), (score.event, 1)) for plan in plans)
    return RandomlyRepeated(runs, SHAPE, 1 / expected)


def plan_search(
    estimator: PrivateLinearModel,
    parameters: list[dict[str, Any]],
    budget: Budget,
    shape: tuple[int, int],
    expected: float,
    scoring: object,
) -> SearchPlan:
    """The plan that spends the budget: every run gets the same part of it."""
    if budget.epsilon == math.inf:
        raise InvalidArgument(
            "epsilon=inf has no noise to search with. Without privacy, use scikit-learn's "
            "GridSearchCV with an estimator of epsilon=inf."
        )
    delta = budget.delta / expected

    def tried(epsilon: float) -> tuple[PrivateLinearModel, ...]:
        return tuple(candidate(estimator, each, epsilon, delta) for each in parameters)

    name = check_scoring(scoring, list(tried(budget.epsilon)))

    def plans(epsilon: float) -> tuple[Plan, ...]:
        return tuple(each.plan(*shape) for each in tried(epsilon))

    def cost(epsilon: float) -> float:
        score = _score(epsilon, delta)
        return spent(_event(plans(epsilon), score, expected), budget.delta).epsilon

    epsilon = _just_below(cost, budget.epsilon)
    found = plans(epsilon)
    strength = calibrate(
        lambda s: _event(found, measurement_at(s, budget.delta == 0), expected), budget
    )
    top = max(plan.problem.y_bound for plan in found)
    return SearchPlan(
        budget=budget,
        estimators=tried(epsilon),
        parameters=tuple(parameters),
        plans=found,
        bounds=tuple(plan.problem.bounds.with_y(top) for plan in found),
        score=measurement_at(strength, budget.delta == 0),
        scoring=name,
        expected=expected,
    )


def _score(epsilon: float, delta: float) -> Additive:
    """The mechanism for the score of a fit that gets this epsilon."""
    part = SCORE_SHARE / (1 - SCORE_SHARE)
    amount = epsilon if delta == 0 else root_of_rho_near(epsilon, delta) ** 2
    return measurement_at(part * amount, delta == 0)


def _just_below(cost: Callable[[float], float], total: float) -> float:
    """An epsilon whose cost is below `total`, and by little. Costs grow nearly in proportion."""
    low, high, epsilon = 0.0, total, total / 2
    for _ in range(30):
        ratio = cost(epsilon) / total
        if 1 - _NEAR <= ratio < 1:
            return epsilon
        low, high = (epsilon, high) if ratio < 1 else (low, epsilon)
        guess = epsilon * (1 - _NEAR / 2) / ratio
        epsilon = guess if low < guess < high else (low + high) / 2
    return low or epsilon
