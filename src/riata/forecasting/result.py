"""What a forecast says, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riata.simulation import PartialGuess, Score
from riata.solvers import Plan
from riata.wording import facts_html, number_of, shape_of

#: The quantiles of an 80% interval.
LOW, HIGH = 0.1, 0.9


@dataclass(frozen=True)
class Forecast:
    """What to expect of a fit, if the guess is right.

    Every interval holds 80% of the fits: it runs from the 10% to the 90% quantile of the
    simulated ones. Those differ by their noise, and by what the guess leaves open. Nothing was
    charged and no row was read.

    Attributes
    ----------
    plan : Plan
        What the fit would do and cost.
    guess : PartialGuess
        What was stated about the rows.
    metric : {"R2", "AUC"}
    score : float
        The R2 or the AUC of a typical fit on fresh rows: half of the fits do better.
    interval : tuple of float
        The 80% interval of the score as it is measured on held-out rows, a third as many as the
        fit has.
    best_score, zero_score : float
        Those of the best model in the guessed world, and of the best constant.
    excess_risk : float
        How much larger the risk of a typical fit is than that of the best model.
    excess_interval : tuple of float
    excess_part : float
        The same as a part of what the best model explains: 0 is perfect, and a constant has 1. A
        classifier that is too sure of itself may have more, and still rank well.
    accuracy, accuracy_interval : float, tuple of float
        The share of labels that a typical fit gets right; NaN for numbers.
    zero_accuracy : float
        That of always naming the larger class.
    nothing : float
        The share of fits that learn nothing worth having.
    steps : float
        How many steps a typical fit takes: fewer than its plan has if it ends early.
    scores : tuple of Score
        Each simulated fit.
    """

    plan: Plan
    guess: PartialGuess
    metric: str
    score: float
    interval: tuple[float, float]
    best_score: float
    zero_score: float
    excess_risk: float
    excess_interval: tuple[float, float]
    excess_part: float
    accuracy: float
    accuracy_interval: tuple[float, float]
    zero_accuracy: float
    nothing: float
    steps: float
    scores: tuple[Score, ...] = field(repr=False)
    estimator: Any = field(repr=False)

    @property
    def bound(self) -> float:
        """The explicit bound on the excess risk, for the worst data: `plan.excess_risk`."""
        return self.plan.excess_risk

    @property
    def low_score(self) -> float:
        """The score on very many fresh rows that nine of ten fits reach."""
        return float(np.quantile([each.value for each in self.scores], LOW, method="weibull"))

    @property
    def sentence(self) -> str:
        """The forecast in words."""
        budget, rows = self.plan.budget, self.plan.problem.n_rows
        if self.nothing > HIGH:
            return (
                f"Nothing can be learned at epsilon {budget.epsilon:g} from "
                f"{number_of(rows, 'row')} if the guess is right: expect the {self.metric} of a "
                f"constant, {self.zero_score:.2g}. A larger epsilon or more rows are needed."
            )
        low, high = self.interval
        text = (
            f"Expect {self.metric} {self.score:z.3f} (80% interval {low:z.3f} to {high:z.3f}); the "
            f"best model has {self.best_score:.3g} and a constant {self.zero_score:.3g}."
        )
        if self.nothing >= LOW:
            text += f" About {self.nothing:.0%} of the fits learn nothing."
        return text

    def rows(self) -> list[tuple[str, str]]:
        """The forecast line by line, in words."""
        problem, plan = self.plan.problem, self.plan

        def within(interval: tuple[float, float], digits: str = "z.3f") -> str:
            return f"80% interval {interval[0]:{digits}} to {interval[1]:{digits}}"

        assumed = f"if {plan.assumes}" if plan.assumes else "on the worst data"
        rows = [
            ("data", f"{shape_of(problem.n_rows, problem.n_features)}, {problem.bounds}"),
            ("fit", f"{plan.solver}, {number_of(plan.steps, 'step')}, {plan.budget}"),
            *self.guess.rows(problem),
            (self.metric, f"{self.score:z.3f}, {within(self.interval)}"),
        ]
        if self.metric == "AUC":
            rows.append(
                (
                    "accuracy",
                    f"{self.accuracy:.3f}, {within(self.accuracy_interval)}; "
                    f"{self.zero_accuracy:.3g} by naming the larger class",
                )
            )
        return [
            *rows,
            ("best", f"{self.metric} {self.best_score:.3g}, and a constant {self.zero_score:.3g}"),
            (
                "risk",
                f"excess {self.excess_risk:.3g}, {within(self.excess_interval, '.3g')}: "
                f"{self.excess_part:.2%} of what can be explained",
            ),
            ("bound", f"excess at most {self.bound:.3g} {assumed}"),
            ("made of", f"{len(self.scores)} simulated fits; no row was read, nothing charged"),
        ]

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {key:<8} {value}" for key, value in self.rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = "#991b1b" if self.nothing > HIGH else "#14532d"
        return facts_html(self.sentence, self.rows(), colour, colour)

    def plot(self, epsilons: Sequence[float] | None = None, ax: Any = None) -> Any:
        """Draw the expected score against epsilon, with its interval: other forecasts are made.

        Parameters
        ----------
        epsilons : sequence of float, optional
            By default a tenth of the fit's epsilon to ten times as much.
        ax : matplotlib axes, optional
        """
        if epsilons is None:
            epsilons = tuple(self.plan.budget.epsilon * 10 ** (k / 3) for k in range(-3, 4))
        problem = self.plan.problem
        from riata.forecasting.curve import forecast_curve  # which makes forecasts

        curve = forecast_curve(
            self.estimator, problem.n_rows, problem.n_features, epsilons=epsilons,
            repeats=len(self.scores), **self.guess.stated,
        )  # fmt: skip
        return curve.plot(ax)
