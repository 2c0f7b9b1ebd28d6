"""What a fit is worth before it is paid for: scores to expect, from public facts and a guess."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.estimators.progress import progress_bar
from riata.mechanisms.noise import Noise
from riata.simulation import Columns, Guess, Score, SimulatedEngine, World
from riata.solvers import Plan, Solver, Step
from riata.wording import number_of

#: Eight of ten fits lie between these quantiles.
LOW, HIGH = 0.1, 0.9

#: A model whose score is this near to a constant's, as a part of the best one's way, has learned
#: nothing.
NOTHING = 0.1


@dataclass(frozen=True)
class Forecast:
    """What to expect of a fit, if the guess is right.

    Every interval holds eight of ten fits: it runs from the 10% to the 90% quantile of the
    simulated ones. Nothing was charged and no row was read.

    Attributes
    ----------
    plan : Plan
        What the fit would do and cost.
    guess : Guess
    metric : {"R2", "AUC"}
    score : float
        The R2 or the AUC of a typical fit on fresh rows: half of the fits do better.
    interval : tuple of float
        The score of eight of ten fits.
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
    scores : tuple of Score
        Each simulated fit.
    """

    plan: Plan
    guess: Guess
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
    scores: tuple[Score, ...] = field(repr=False)
    estimator: Any = field(repr=False)

    @property
    def bound(self) -> float:
        """The explicit bound on the excess risk, for the worst data: `plan.excess_risk`."""
        return self.plan.excess_risk

    @property
    def sentence(self) -> str:
        """The forecast in words."""
        budget, rows = self.plan.budget, self.plan.problem.n_rows
        if self.nothing > HIGH:
            return (
                f"Nothing can be learned at epsilon {budget.epsilon:g} from {rows:,} rows if the "
                f"guess is right: expect the {self.metric} of a constant, {self.zero_score:.2g}. "
                "A larger epsilon or more rows are needed."
            )
        low, high = self.interval
        text = (
            f"Expect {self.metric} {self.score:z.3f}, and between {low:z.3f} and {high:z.3f} in "
            f"eight of ten fits; the best model has {self.best_score:.3g} and a constant "
            f"{self.zero_score:.3g}."
        )
        if self.nothing >= LOW:
            text += f" About {self.nothing:.0%} of the fits learn nothing."
        return text

    def _rows(self) -> list[tuple[str, str]]:
        problem, plan, guess = self.plan.problem, self.plan, self.guess

        def within(interval: tuple[float, float], digits: str = "z.3f") -> str:
            return f"{interval[0]:{digits}} to {interval[1]:{digits}} in eight of ten fits"

        assumed = f"if {plan.assumes}" if plan.assumes else "on the worst data"
        rows = [
            ("data", f"{problem.n_rows:,} rows, {problem.n_features:,} columns, {problem.bounds}"),
            ("fit", f"{plan.solver}, {number_of(plan.steps, 'step')}, {plan.budget}"),
            ("guess", described(guess, self.metric, problem.bounds.norm)),
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
        return "\n".join([self.sentence, *(f"  {key:<8} {value}" for key, value in self._rows())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = "#991b1b" if self.nothing > HIGH else "#14532d"
        cells = "".join(
            f'<tr><th style="text-align:left;padding:2px 12px 2px 0">{html.escape(key)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for key, value in self._rows()
        )
        return (
            f'<div style="border-left:4px solid {colour};padding-left:12px">'
            f'<p style="color:{colour};font-weight:600">{html.escape(self.sentence)}</p>'
            f"<table>{cells}</table></div>"
        )

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
        problem, options = self.plan.problem, dict(vars(self.guess))
        options.pop("nonnegative")  # the bounds say so
        curve = forecast_curve(
            self.estimator, problem.n_rows, problem.n_features, epsilons=epsilons,
            repeats=len(self.scores), **options,
        )  # fmt: skip
        return curve.plot(ax)


@dataclass(frozen=True)
class ForecastCurve:
    """Forecasts over a grid of epsilons or of numbers of rows.

    Attributes
    ----------
    over : {"epsilon", "rows"}
    at : tuple of float
    forecasts : tuple of Forecast
    """

    over: str
    at: tuple[float, ...]
    forecasts: tuple[Forecast, ...]

    def __str__(self) -> str:
        metric = self.forecasts[0].metric
        lines = [f"{self.over:>12}  {metric:>8}  eight of ten fits   learn nothing"]
        for value, each in zip(self.at, self.forecasts, strict=True):
            within = f"{each.interval[0]:z.3f} to {each.interval[1]:z.3f}"
            lines.append(f"{value:>12,.6g}  {each.score:>z8.3f}  {within:<17}   {each.nothing:.0%}")
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the expected score with its interval; returns the axes. Needs matplotlib."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6, 3.6), layout="constrained").subplots()
        first = self.forecasts[0]
        ax.plot(
            self.at, [each.score for each in self.forecasts], color="#b45309", marker="o",
            label="expected",
        )  # fmt: skip
        low, high = zip(*(each.interval for each in self.forecasts), strict=True)
        ax.fill_between(self.at, low, high, color="#b45309", alpha=0.15, label="eight of ten fits")
        ax.axhline(first.best_score, color="#1c1917", linestyle="--", label="best model")
        ax.axhline(first.zero_score, color="#a8a29e", linestyle=":", label="a constant")
        ax.set_xscale("log")
        ax.set_xlabel(self.over)
        ax.set_ylabel(first.metric)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower right")
        return ax


def forecast(
    estimator: Any,
    n_rows: int,
    n_features: int,
    *,
    relevant: int = 10,
    signal: float = 0.5,
    design: str = "uniform",
    spread: float = 1 / 3,
    positives: float = 0.5,
    density: float = 0.3,
    correlation: float = 0.0,
    group: int | None = None,
    nonzeros: int = 20,
    repeats: int = 20,
    seed: int = 0,
    verbose: bool = False,
) -> Forecast:
    """What to expect of a fit, before anything is spent.

    Worlds are made up in which the guess is true, and the estimator's own plan is carried out on
    each, noise included. No row of the user is read and no ledger is charged.

    Parameters
    ----------
    estimator : estimator of riata
        As it would be fitted. A classifier needs its classes, two of them.
    n_rows, n_features : int
        The shape of the table.
    relevant : int, default=10
        How many columns are guessed to matter.
    signal : float, default=0.5
        The R2 that the best linear model is guessed to have on fresh rows. For a classifier its
        AUC, which is above 0.5.
    design : {"uniform", "signs", "normal", "binary"}, default="uniform"
        How entries fill their bounds: evenly, only at plus and minus the bound, normally with a
        bound of four standard deviations, or as 0 and the bound.
    spread : float, default=1/3
        The standard deviation of y over its bound.
    positives : float, default=0.5
        For labels, the share of the second class.
    density : float, default=0.3
        For "binary", the share of entries that are not 0.
    correlation : float, default=0.0
        How correlated the columns of a group are.
    group : int, optional
        How many neighbouring columns are correlated; by default all of them.
    nonzeros : int, default=20
        For rows with a bound on their length: how many entries are not 0. Rows are as long as the
        bound, and columns as unequal as words: the k-th occurs 1 / (k + 10) as often.
    repeats : int, default=20
        How many fits are simulated.
    seed : int, default=0
        Of the simulation. It has nothing to do with the fit's noise.
    verbose : bool, default=False
        Whether to draw a progress bar.

    Examples
    --------
    >>> from riata import Bounds, PrivateLasso, forecast
    >>> lasso = PrivateLasso(epsilon=1.0, bounds=Bounds(x=1.0, y=1.0))
    >>> expected = forecast(lasso, n_rows=5_000, n_features=200, relevant=3, repeats=5)
    >>> expected.zero_score < expected.score < 0.51
    True
    """
    guess = Guess(
        relevant, signal, design, spread, positives, density, correlation, group, nonzeros
    )
    plan, solver = _planned(estimator, n_rows, n_features)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 2:
        raise InvalidArgument(
            f"repeats={repeats!r} must be a whole number of at least 2: the interval comes from it."
        )
    guess = replace(guess, nonnegative=plan.problem.bounds.nonnegative)
    scores = []
    with progress_bar("Forecast", repeats, verbose) as callback:
        for number in range(repeats):
            scores.append(_simulated(estimator, plan, solver, guess, (seed, number)))
            if callback is not None:
                callback(Step(number + 1, repeats))
    return _summed_up(plan, guess, tuple(scores), estimator)


def forecast_curve(
    estimator: Any,
    n_rows: int | Sequence[int],
    n_features: int,
    *,
    epsilons: Sequence[float] | None = None,
    **options: Any,
) -> ForecastCurve:
    """Forecasts for several epsilons, or for several numbers of rows.

    Parameters
    ----------
    estimator : estimator of riata
    n_rows : int or sequence of int
    n_features : int
    epsilons : sequence of float, optional
        In place of the estimator's own. Leave it out if `n_rows` is a sequence.
    **options
        As for `forecast`.
    """
    if (epsilons is None) == (np.ndim(n_rows) == 0):
        raise InvalidArgument(
            "A curve runs over one thing: pass several epsilons, or several numbers of rows."
        )
    if epsilons is None:
        rows = [int(n) for n in np.asarray(n_rows)]
        found = tuple(forecast(estimator, n, n_features, **options) for n in rows)
        return ForecastCurve("rows", tuple(map(float, rows)), found)
    models = [clone(estimator).set_params(epsilon=float(e), ledger=None) for e in epsilons]
    found = tuple(forecast(model, n_rows, n_features, **options) for model in models)  # type: ignore[arg-type]
    return ForecastCurve("epsilon", tuple(map(float, epsilons)), found)


def described(guess: Guess, metric: str, norm: str) -> str:
    """The guess in words."""
    entries = f"{guess.design} entries"
    if norm == "l2":
        entries = f"rows with {guess.nonzeros} {guess.design} entries"
    elif guess.design == "binary":
        entries += f" with density {guess.density:g}"
    if guess.correlation:
        among = "all columns" if guess.group is None else f"groups of {guess.group}"
        entries += f", correlation {guess.correlation:g} in {among}"
    of_y = f"y's deviation {guess.spread:.3g} of its bound"
    if metric == "AUC":
        of_y = f"{guess.positives:.0%} in the second class"
    return f"{guess.relevant} columns matter, best {metric} {guess.signal:g}, {entries}, {of_y}"


def _planned(estimator: Any, n_rows: int, n_features: int) -> tuple[Plan, Solver]:
    if not isinstance(estimator, PrivateLinearModel):
        raise InvalidArgument(
            f"forecast needs an estimator of riata, got {type(estimator).__name__}. "
            "Pass one as it would be fitted, such as PrivateLasso(epsilon=1.0, bounds=...)."
        )
    if getattr(estimator, "compressed", False):
        raise InvalidArgument(
            "A forecast draws rows before a projection, and compressed=True says that they are "
            "projected already. Forecast the same model with compressed=False."
        )
    plan: Plan = estimator.plan(n_rows, n_features)
    if plan.fits > 1:
        raise InvalidArgument(
            f"A forecast is for two classes, and {plan.fits} are given. Forecast one class against "
            "the rest: pass classes=[0, 1] and an epsilon for one of the fits."
        )
    return plan, estimator._chosen(plan.problem, plan.budget)


def _simulated(
    estimator: Any, plan: Plan, solver: Solver, guess: Guess, seed: tuple[int, int]
) -> Score:
    """One fit in a world of its own."""
    world = World(guess, plan.problem, np.random.default_rng(seed))
    x, y = world.draw()
    by_columns = isinstance(x, Columns) and plan.parts == 1 and plan.projection is None
    engine = SimulatedEngine(x, y) if by_columns else plan.engine(LocalEngine, world.whole(x), y)
    curator = Curator.open(
        plan.event, read=lambda: engine, noise=Noise(1_000_003 * seed[0] + seed[1]),
        adjacency=plan.budget.adjacency, parts=plan.parts, adaptive=plan.adaptive,
    )  # fmt: skip
    (solution,) = estimator._solved(solver, plan, [plan.problem], curator)
    return world.score(solution.theta, solution.line)


def _summed_up(plan: Plan, guess: Guess, scores: tuple[Score, ...], estimator: Any) -> Forecast:
    labels = plan.problem.loss.classifies
    excess = np.array([each.excess for each in scores])
    parts = excess / np.array([each.explained for each in scores])
    accuracies = np.array([each.accuracy for each in scores])
    values = np.array([each.value for each in scores])
    zero = 0.5 if labels else 0.0
    return Forecast(
        plan,
        guess,
        "AUC" if labels else "R2",
        score=float(np.median(values)),
        interval=_interval(values),
        best_score=float(np.median([each.best for each in scores])),
        zero_score=zero,
        excess_risk=float(np.median(excess)),
        excess_interval=_interval(excess),
        excess_part=float(np.median(parts)),
        accuracy=float(np.median(accuracies)),
        accuracy_interval=_interval(accuracies),
        zero_accuracy=max(guess.positives, 1 - guess.positives) if labels else math.nan,
        nothing=float(np.mean(values < zero + NOTHING * (guess.signal - zero))),
        scores=scores,
        estimator=clone(estimator).set_params(ledger=None),
    )


def _interval(values: np.ndarray) -> tuple[float, float]:
    """The quantiles between which a new value lies with probability HIGH - LOW."""
    low, high = np.quantile(values, [LOW, HIGH], method="weibull")
    return float(low), float(high)
