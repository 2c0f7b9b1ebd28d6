"""Every solver that applies, with its forecast, its noise and its cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sklearn.base import clone

from riata.errors import Incompatible, InvalidArgument
from riata.forecasting.costs import Cost, cost_of, duration, size
from riata.forecasting.result import Forecast
from riata.forecasting.simulate import checked_guess, forecast_fit, simulate_fits
from riata.privacy.events import Pure, ZeroConcentrated
from riata.simulation import PartialGuess
from riata.solvers import SOLVERS, Plan

#: Solvers whose simulation draws only the columns that it looks at.
_QUICK = {"greedy", "refitted-frank-wolfe", "frank-wolfe", "gaussian-frank-wolfe"}

#: A simulated fit of the others takes so many times as long as a fit of given rows.
_SIMULATED = {"sufficient-statistics": 2.0, "objective-perturbation": 1.2, "class-sums": 2.0}
_OTHERWISE = 6.0

#: The plan of these alone takes minutes on more columns: it draws a projection of all of them. They
#: are compared if they are asked for.
SLOW_PLANS, MOST_COLUMNS = frozenset({"projected"}), 2_000


@dataclass(frozen=True)
class Candidate:
    """One solver of a comparison.

    Attributes
    ----------
    solver : str
    plan : Plan
    chosen : bool
        Whether it is what the estimator takes by itself.
    cost : Cost
        Seconds and memory of the fit, roughly.
    forecast : Forecast or None
    because : str
        Why there is no forecast.
    """

    solver: str
    plan: Plan
    chosen: bool
    cost: Cost
    forecast: Forecast | None
    because: str = ""

    @property
    def noise(self) -> str:
        """The noise of one step, in words."""
        plan = self.plan
        if isinstance(plan.adaptive_budget, Pure):
            return f"epsilon {plan.adaptive_budget.epsilon:.3g} in all"
        if isinstance(plan.adaptive_budget, ZeroConcentrated):
            return f"rho {plan.adaptive_budget.rho:.3g} in all"
        first = next(iter(plan.mechanisms.values()))
        if hasattr(first, "noise_multiplier"):
            return f"{first.noise_multiplier:.3g} x sensitivity"
        if hasattr(first, "epsilon"):
            return f"epsilon {first.epsilon:.3g}"
        return first.describe(1).partition(";")[0]


@dataclass(frozen=True)
class Comparison:
    """Solvers side by side, the best expected score first. No row was read, nothing charged.

    Attributes
    ----------
    candidates : tuple of Candidate
    impossible : dict of str to str
        Why each of the other solvers cannot be used.
    guess : PartialGuess
    unplanned : tuple of str
        Solvers that were left out because their plan alone takes minutes.
    """

    candidates: tuple[Candidate, ...]
    impossible: dict[str, str] = field(repr=False)
    guess: PartialGuess
    unplanned: tuple[str, ...] = ()

    @property
    def metric(self) -> str:
        return "AUC" if self.candidates[0].plan.problem.loss.classifies else "R2"

    @property
    def best(self) -> Candidate:
        """The candidate with the best expected score."""
        return self.candidates[0]

    @property
    def guessed(self) -> str:
        """The guess in words."""
        return "; ".join(f"{said}" for _, said in self.guess.rows(self.best.plan.problem))

    def rows(self) -> list[tuple[str, ...]]:
        """A head and one line for each solver, in words."""
        labels = self.metric == "AUC"
        head: tuple[str, ...] = ("solver", "steps", self.metric, "80% interval")
        head += ("accuracy",) * labels + ("excess", "noise per step", "time", "memory")
        lines = [head]
        for each in self.candidates:
            name = each.solver + " *" * each.chosen
            said: tuple[str, ...] = ("-", "not simulated", *("-",) * labels, "-")
            if (found := each.forecast) is not None:
                said = (
                    f"{found.score:z.3f}",
                    f"{found.interval[0]:z.3f} to {found.interval[1]:z.3f}",
                )
                said += (f"{found.accuracy:.3f}",) * labels + (f"{found.excess_part:.1%}",)
            cost = (duration(each.cost.seconds), size(each.cost.bytes))
            lines.append((name, str(each.plan.steps), *said, each.noise, *cost))
        return lines

    def __str__(self) -> str:
        lines = self.rows()
        widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the expected score of each solver with its interval. Needs matplotlib."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6.4, 3.6), layout="constrained").subplots()
        known = [each for each in reversed(self.candidates) if each.forecast is not None]
        for place, each in enumerate(known):
            found = each.forecast
            assert found is not None
            colour = "#b45309" if each.chosen else "#57534e"
            ax.plot(found.interval, [place, place], color=colour, linewidth=5, alpha=0.3)
            ax.plot([found.score], [place], color=colour, marker="o")
        ax.set_yticks(range(len(known)), [each.solver for each in known])
        if known and known[0].forecast is not None:
            ax.axvline(known[0].forecast.best_score, color="#1c1917", linestyle="--")
            ax.axvline(known[0].forecast.zero_score, color="#a8a29e", linestyle=":")
        ax.set_xlabel(f"expected {self.metric}; dashed: best model, dotted: a constant")
        ax.spines[["top", "right"]].set_visible(False)
        return ax


def compare_solvers(
    estimator: Any,
    n_rows: int,
    n_features: int,
    *,
    solvers: Sequence[str] | None = None,
    repeats: int = 10,
    patience: float = 10.0,
    seed: int = 0,
    verbose: bool = False,
    **guess: Any,
) -> Comparison:
    """Forecast the same fit with every solver that applies to it.

    Parameters
    ----------
    estimator : estimator of riata
        As it would be fitted. Its solver is what the others are compared with.
    n_rows, n_features : int
        The shape of the table.
    solvers : sequence of str, optional
        By default all of `riata.solvers.SOLVERS`; on more than 2,000 columns without
        "projected", whose plan alone takes minutes there.
    repeats : int, default=10
        How many fits of each solver are simulated.
    patience : float, default=10.0
        Seconds for one solver. When they are over, two simulated fits are enough; a solver for
        which even those would take longer is not simulated.
    seed, verbose, **guess
        As for `forecast`.

    Examples
    --------
    >>> from riata import Bounds, PrivateLasso, compare_solvers
    >>> lasso = PrivateLasso(epsilon=1.0, bounds=Bounds(x=1.0, y=1.0))
    >>> found = compare_solvers(lasso, 5_000, 100, solvers=["greedy", "frank-wolfe"],
    ...                         relevant=3, repeats=2)
    >>> found.best.solver
    'greedy'
    """
    guessed = checked_guess(guess, repeats)
    usual = forecast_fit(estimator, n_rows, n_features).plan.solver
    candidates: list[Candidate] = []
    problems: dict[str, InvalidArgument] = {}
    slow = SLOW_PLANS if solvers is None and n_features > MOST_COLUMNS else frozenset()
    for name in [each for each in SOLVERS if each not in slow] if solvers is None else solvers:
        model = clone(estimator).set_params(solver=name, ledger=None)
        try:
            plan = forecast_fit(model, n_rows, n_features).plan
        except InvalidArgument as problem:
            problems[name] = problem
            continue
        cost = cost_of(plan, _entries(plan, guessed))
        how = (repeats, seed, verbose, patience)
        simulate = partial(simulate_fits, model, n_rows, n_features, guessed, *how, title=name)
        forecast, because = _forecast_or_reason(name, cost, patience, simulate)
        if forecast is not None:
            cost = cost_of(plan, _entries(plan, guessed), forecast.steps)
        candidates.append(Candidate(name, plan, plan.solver == usual, cost, forecast, because))
    if not candidates:
        raise InvalidArgument(f"No solver can fit this. {_reasons(problems)}")
    candidates.sort(key=lambda each: each.forecast.score if each.forecast else -1e9, reverse=True)
    impossible = {name: str(problem) for name, problem in problems.items()}
    return Comparison(tuple(candidates), impossible, guessed, tuple(sorted(slow)))


def _reasons(problems: dict[str, InvalidArgument]) -> str:
    """Each reason once, with the solvers that it is about, and then what to do."""
    about: dict[str, list[str]] = {}
    remedies: dict[str, None] = {}
    for name, problem in problems.items():
        if isinstance(problem, Incompatible):
            _, that, because, instead = problem.parts
            about.setdefault(f"{because} ({that})", []).append(name)
            remedies[f"{instead}."] = None
        else:
            about.setdefault(str(problem).removesuffix("."), []).append(name)
    reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in about.items())
    return " ".join([f"{reasons}.", *remedies])


def _forecast_or_reason(
    solver: str, cost: Cost, patience: float, simulate: Callable[[], Forecast]
) -> tuple[Forecast | None, str]:
    """The forecast, or why there is none."""
    needed = 2 * _SIMULATED.get(solver, _OTHERWISE) * cost.seconds
    if solver not in _QUICK and needed > patience:
        return None, f"two simulated fits would take about {duration(needed)}"
    try:
        return simulate(), ""
    except InvalidArgument as problem:
        return None, str(problem)


def _entries(plan: Plan, guess: PartialGuess) -> float:
    """How many entries of rows like those of the guess are not 0."""
    rows, columns = plan.problem.n_rows, plan.problem.n_features
    assumed = guess.complete(plan.problem, 0)
    if plan.problem.bounds.favours_gradients or "nonzeros" in guess.stated:
        return float(rows * min(assumed.nonzeros, columns))
    binary = guess.stated.get("design") == "binary"
    return rows * columns * (assumed.density if binary else 1.0)
