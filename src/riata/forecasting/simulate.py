"""What a fit is worth before it is paid for: scores to expect, from public facts and a guess."""

from __future__ import annotations

import math
import time
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import Incompatible, InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.fitting import PlannedFit, solve
from riata.fitting import plan as plan_fit
from riata.fitting.progress import progress_bar
from riata.forecasting.result import HIGH, LOW, Forecast
from riata.mechanisms.noise import Noise
from riata.releases import unobserved
from riata.simulation import Guess, Score, SimulatedColumns, SimulatedEngine, World
from riata.solvers import Plan, Step

#: A model whose score is this near to a constant's, as a part of the best one's way, has learned
#: nothing.
NOTHING = 0.1


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
    relevant, signal, design, spread, positives, density, correlation, group, nonzeros
        The guess, as for `riata.simulation.Guess`: how many columns matter, the R2 (for a
        classifier the AUC) of the best linear model on fresh rows, how entries fill their bounds,
        and so on.
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
    guess = {
        "relevant": relevant, "signal": signal, "design": design, "spread": spread,
        "positives": positives, "density": density, "correlation": correlation, "group": group,
        "nonzeros": nonzeros,
    }  # fmt: skip
    guessed = checked_guess(guess, repeats)
    return simulate_fits(estimator, n_rows, n_features, guessed, repeats, seed, verbose)


def checked_guess(guess: dict[str, Any], repeats: int) -> Guess:
    """The guess, if it is possible and enough fits are asked for."""
    unknown = sorted(set(guess) - {each.name for each in fields(Guess)})
    if unknown:
        raise InvalidArgument(f"A guess has no {unknown[0]!r}. See forecast for what it has.")
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 2:
        raise InvalidArgument(
            f"repeats={repeats!r} must be a whole number of at least 2: the interval comes from it."
        )
    return Guess(**guess)


def simulate_fits(
    estimator: Any,
    n_rows: int,
    n_features: int,
    guess: Guess,
    repeats: int,
    seed: int,
    verbose: bool,
    patience: float = math.inf,
    title: str = "Forecast",
) -> Forecast:
    """Simulate fits: `repeats` of them, or at least two within so many seconds."""
    fit = forecast_fit(estimator, n_rows, n_features)
    plan = fit.plan
    relevant = min(guess.relevant, plan.problem.n_features)
    guess = replace(guess, relevant=relevant, nonnegative=plan.problem.bounds.nonnegative)
    scores, steps, begun = [], [], time.monotonic()
    with progress_bar(title, repeats, verbose) as callback:
        for number in range(repeats):
            score, taken = _simulate_fit(fit, guess, (seed, number))
            scores.append(score)
            steps.append(taken)
            if callback is not None:
                callback(Step(number + 1, repeats))
            if number and time.monotonic() - begun > patience:
                break
    return _forecast_from(plan, guess, tuple(scores), float(np.median(steps)), estimator)


def forecast_fit(estimator: Any, n_rows: int, n_features: int) -> PlannedFit:
    """A fit that can be forecast."""
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
    fit = plan_fit(estimator.request_for_shape(n_rows, n_features))
    loss = fit.plan.problem.loss
    if not loss.classifies and loss.link != "identity":
        raise Incompatible(
            "a forecast", f"the {loss.name} loss",
            because="it simulates numbers whose mean is the margin itself",
            instead="Use data of your own that is made up, and fit with a random_state",
        )  # fmt: skip
    if (classes := max(fit.plan.fits, loss.n_margins)) > 1:
        raise InvalidArgument(
            f"A forecast is for two classes, and {classes} are given. Forecast one class against "
            "the rest: name two classes, and the part of epsilon that one of the fits gets."
        )
    return fit


@unobserved()
def _simulate_fit(fit: PlannedFit, guess: Guess, seed: tuple[int, int]) -> tuple[Score, int]:
    """One fit in a world of its own, and how many steps it took."""
    plan = fit.plan
    world = World(guess, plan.problem, np.random.default_rng(seed))
    x, y = world.draw()
    by_columns = isinstance(x, SimulatedColumns) and plan.parts == 1 and plan.projection is None
    engine = SimulatedEngine(x, y) if by_columns else plan.engine(LocalEngine, world.whole(x), y)
    curator = Curator.open(
        plan.event, read=lambda: engine, noise=Noise(1_000_003 * seed[0] + seed[1]),
        adjacency=plan.budget.adjacency, parts=plan.parts, adaptive=plan.adaptive,
    )  # fmt: skip
    (solution,) = solve(fit, curator)
    return world.score(solution.theta, solution.line), solution.steps


def _forecast_from(
    plan: Plan, guess: Guess, scores: tuple[Score, ...], steps: float, estimator: Any
) -> Forecast:
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
        steps=steps,
        scores=scores,
        estimator=clone(estimator).set_params(ledger=None),
    )


def _interval(values: np.ndarray) -> tuple[float, float]:
    """The quantiles between which a new value lies with probability HIGH - LOW."""
    low, high = np.quantile(values, [LOW, HIGH], method="weibull")
    return float(low), float(high)
