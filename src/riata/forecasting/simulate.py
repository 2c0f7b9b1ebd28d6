"""What a fit is worth before it is paid for: scores to expect, from public facts and a guess."""

from __future__ import annotations

import math
import time
from dataclasses import replace
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
from riata.problem import Problem
from riata.releases import unobserved
from riata.simulation import (
    PartialGuess,
    Score,
    SimulatedColumns,
    SimulatedEngine,
    World,
)
from riata.simulation.world import UnreachableSignal
from riata.solvers import Plan, Step

#: A model whose score is this near to a constant's, as a part of the best one's way, has learned
#: nothing.
NOTHING = 0.1

#: If too few relevant columns cannot have a signal, so many times as many are tried.
MORE_RELEVANT = 3


def forecast(
    estimator: Any,
    n_rows: int,
    n_features: int,
    *,
    signal: float | None = None,
    relevant: int | None = None,
    design: str | None = None,
    spread: float | None = None,
    positives: float | None = None,
    density: float | None = None,
    correlation: float | None = None,
    group: int | None = None,
    alignment: float | None = None,
    nonzeros: int | None = None,
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
    signal : float, optional
        The R2 of the best linear model on fresh rows, 0.5 by default, or for a classifier its AUC,
        0.8 by default.
    relevant, design, correlation, alignment : optional
        As for `riata.simulation.Guess`: how many columns matter, how entries fill their bounds, and
        what columns have in common. What is not stated differs between the simulated fits, so that
        the interval is wider.
    spread, positives, density, group, nonzeros : optional
        As for `riata.simulation.Guess`, with its defaults. The number of nonzeros is by default
        that of the bounds.
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
        "signal": signal, "relevant": relevant, "design": design, "spread": spread,
        "positives": positives, "density": density, "correlation": correlation, "group": group,
        "alignment": alignment, "nonzeros": nonzeros,
    }  # fmt: skip
    guessed = checked_guess(guess, repeats)
    return simulate_fits(estimator, n_rows, n_features, guessed, repeats, seed, verbose)


def checked_guess(guess: dict[str, Any], repeats: int) -> PartialGuess:
    """The guess, if it is possible and enough fits are asked for."""
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 2:
        raise InvalidArgument(
            f"repeats={repeats!r} must be a whole number of at least 2: the interval comes from it."
        )
    return PartialGuess(guess)


def simulate_fits(
    estimator: Any,
    n_rows: int,
    n_features: int,
    guess: PartialGuess,
    repeats: int,
    seed: int,
    verbose: bool,
    patience: float = math.inf,
    title: str = "Forecast",
) -> Forecast:
    """Simulate fits: `repeats` of them, or at least two within so many seconds."""
    fit = forecast_fit(estimator, n_rows, n_features)
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
    return _forecast_from(fit.plan, guess, tuple(scores), float(np.median(steps)), estimator)


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
def _simulate_fit(fit: PlannedFit, guess: PartialGuess, seed: tuple[int, int]) -> tuple[Score, int]:
    """One fit in a world of its own, and how many steps it took."""
    plan = fit.plan
    world = _world(guess, plan.problem, seed)
    x, y = world.draw()
    by_columns = isinstance(x, SimulatedColumns) and plan.parts == 1 and plan.projection is None
    engine = SimulatedEngine(x, y) if by_columns else plan.engine(LocalEngine, world.whole(x), y)
    curator = Curator.open(
        plan.event, read=lambda: engine, noise=Noise(1_000_003 * seed[0] + seed[1]),
        adjacency=plan.budget.adjacency, parts=plan.parts, adaptive=plan.adaptive,
    )  # fmt: skip
    (solution,) = solve(fit, curator)
    return world.score(solution.theta, solution.line), solution.steps


def _world(guess: PartialGuess, problem: Problem, seed: tuple[int, int]) -> World:
    """A world; with more relevant columns if so few cannot have the signal and none were stated."""
    complete = guess.complete(problem, seed[1])
    while True:
        try:
            return World(complete, problem, np.random.default_rng(seed))
        except UnreachableSignal:
            if "relevant" not in guess.stated and complete.relevant < problem.n_features:
                more = min(MORE_RELEVANT * complete.relevant, problem.n_features)
                complete = replace(complete, relevant=more)
            elif "design" not in guess.stated and complete.design == "binary":
                complete = replace(complete, design="normal")
            else:
                raise


def _forecast_from(
    plan: Plan, guess: PartialGuess, scores: tuple[Score, ...], steps: float, estimator: Any
) -> Forecast:
    labels = plan.problem.loss.classifies
    excess = np.array([each.excess for each in scores])
    parts = excess / np.array([each.explained for each in scores])
    accuracies = np.array([each.accuracy for each in scores])
    values = np.array([each.value for each in scores])
    zero, best = 0.5 if labels else 0.0, float(np.median([each.best for each in scores]))
    share = guess.complete(plan.problem, 0).positives
    return Forecast(
        plan,
        guess,
        "AUC" if labels else "R2",
        score=float(np.median(values)),
        interval=_interval(np.array([each.held_out for each in scores])),
        best_score=best,
        zero_score=zero,
        excess_risk=float(np.median(excess)),
        excess_interval=_interval(excess),
        excess_part=float(np.median(parts)),
        accuracy=float(np.median(accuracies)),
        accuracy_interval=_interval(accuracies),
        zero_accuracy=max(share, 1 - share) if labels else math.nan,
        nothing=float(np.mean(values < zero + NOTHING * (best - zero))),
        steps=steps,
        scores=scores,
        estimator=clone(estimator).set_params(ledger=None),
    )


def _interval(values: np.ndarray) -> tuple[float, float]:
    """The quantiles between which a new value lies with probability HIGH - LOW."""
    low, high = np.quantile(values, [LOW, HIGH], method="weibull")
    return float(low), float(high)
