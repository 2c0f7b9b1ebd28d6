"""What a wanted score takes: the smallest epsilon, or the fewest rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from riata.errors import InvalidArgument
from riata.forecasting.result import Forecast
from riata.forecasting.simulate import checked_guess, simulate_fits
from riata.privacy.budget import check_number

#: The search ends when the answer is known up to this factor.
CLOSE = 1.15

#: What is searched: nothing below is worth a fit, and above it nothing is protected, or the
#: simulation is too large.
EPSILONS, ROWS = (1e-3, 100.0), (100, 10_000_000)


@dataclass(frozen=True)
class Required:
    """The answer to "which epsilon?" or "how many rows?", if the guess is right.

    Attributes
    ----------
    over : {"epsilon", "rows"}
    value : float
        The smallest that was found, rounded up to two digits.
    score : float
        What was wanted.
    sure : bool
        Whether nine of ten fits reach it, and not only half of them.
    forecast : Forecast
        Of a fit with `value`.
    tried : tuple of (float, Forecast)
        All that was simulated, in rising order.
    """

    over: str
    value: float
    score: float
    sure: bool
    forecast: Forecast
    tried: tuple[tuple[float, Forecast], ...] = field(repr=False)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        often = "nine of ten fits" if self.sure else "half of the fits"
        amount = f"{self.value:,.0f} rows" if self.over == "rows" else f"Epsilon {self.value:g}"
        low, high = self.forecast.interval
        return (
            f"{amount} should do for {self.forecast.metric} {self.score:g} in {often}, if the "
            f"guess is right: expect {self.forecast.score:z.3f} (80% interval {low:z.3f} "
            f"to {high:z.3f})."
        )

    def __str__(self) -> str:
        lines = [self.sentence, f"{self.over:>12}  {self.forecast.metric:>8}  80% interval"]
        for value, each in self.tried:
            within = f"{each.interval[0]:z.3f} to {each.interval[1]:z.3f}"
            lines.append(f"{value:>12,.6g}  {each.score:>z8.3f}  {within}")
        return "\n".join(lines)

    __repr__ = __str__


def required_epsilon(
    estimator: Any,
    n_rows: int,
    n_features: int,
    score: float,
    *,
    sure: bool = False,
    repeats: int = 12,
    seed: int = 0,
    verbose: bool = False,
    **guess: Any,
) -> Required:
    """Search for the smallest epsilon with which a fit reaches a score. Reads and charges nothing.

    Parameters
    ----------
    estimator : estimator of riata
        As it would be fitted. Its own epsilon is where the search begins.
    n_rows, n_features : int
    score : float
        The R2, or for a classifier the AUC, on fresh rows.
    sure : bool, default=False
        Whether nine of ten fits have to reach it, or half of them.
    repeats : int, default=12
        Simulated fits for each epsilon that is tried.
    seed : int, default=0
        Of the simulation; all epsilons are tried in the same made-up worlds.
    verbose : bool, default=False
    **guess
        As for `forecast`.

    Examples
    --------
    >>> from riata import Bounds, PrivateLasso, required_epsilon
    >>> lasso = PrivateLasso(epsilon=1.0, bounds=Bounds(x=1.0, y=1.0))
    >>> found = required_epsilon(lasso, 5_000, 100, 0.3, relevant=3, repeats=2)
    >>> 0.01 < found.value < 1
    True
    """
    guessed = checked_guess(guess, repeats)

    def at(epsilon: float) -> Forecast:
        model = clone(estimator).set_params(epsilon=epsilon, ledger=None)
        return simulate_fits(
            model, n_rows, n_features, guessed, repeats, seed, verbose,
            title=f"epsilon {epsilon:.3g}",
        )  # fmt: skip

    start = min(max(check_number("epsilon", estimator.epsilon), EPSILONS[0]), EPSILONS[1])
    return _search("epsilon", at, start, EPSILONS, score, sure)


def required_rows(
    estimator: Any,
    n_features: int,
    score: float,
    *,
    sure: bool = False,
    start: int = 10_000,
    repeats: int = 12,
    seed: int = 0,
    verbose: bool = False,
    **guess: Any,
) -> Required:
    """Search for the fewest rows with which a fit reaches a score. Reads and charges nothing.

    Parameters
    ----------
    estimator : estimator of riata
        As it would be fitted.
    n_features : int
    score : float
        The R2, or for a classifier the AUC, on fresh rows.
    sure : bool, default=False
        Whether nine of ten fits have to reach it, or half of them.
    start : int, default=10_000
        Where the search begins.
    repeats, seed, verbose, **guess
        As for `required_epsilon`.
    """
    guessed = checked_guess(guess, repeats)

    def at(rows: float) -> Forecast:
        return simulate_fits(
            clone(estimator).set_params(ledger=None), int(rows), n_features, guessed, repeats,
            seed, verbose, title=f"{rows:,.0f} rows",
        )  # fmt: skip

    begin = min(max(check_number("start", start), ROWS[0]), ROWS[1])
    return _search("rows", at, begin, ROWS, score, sure)


def _search(
    over: str,
    at: Callable[[float], Forecast],
    start: float,
    limits: tuple[float, float],
    score: float,
    sure: bool,
) -> Required:
    """Widen by factors of 4 until the score is reached and missed, then halve on a log scale."""
    tried: dict[float, Forecast] = {}

    def reached(value: float) -> bool:
        if value not in tried:
            tried[value] = at(value)
        found = tried[value]
        return (found.low_score if sure else found.score) >= score

    middle = _two_digits(start)
    enough = reached(middle)
    _check_score(score, tried[middle])
    low = high = middle
    while enough and low > limits[0]:
        high, low = low, max(_two_digits(low / 4), limits[0])
        if not reached(low):
            break
    while not enough and high < limits[1]:
        low, high = high, min(_two_digits(high * 4), limits[1])
        if reached(high):
            break
    if not reached(high):
        raise InvalidArgument(
            f"No {over} up to {limits[1]:,g} reaches {tried[high].metric} {score:g} if the guess "
            f"is right: expect {tried[high].score:.3f} there. Want less, or change "
            f"{'epsilon' if over == 'rows' else 'the number of rows'} or the solver."
        )
    while high / low > CLOSE and not reached(low):
        middle = _two_digits(math.sqrt(low * high))
        if middle in (low, high):
            break
        low, high = (low, middle) if reached(middle) else (middle, high)
    value = low if reached(low) else high
    return Required(over, value, score, sure, tried[value], tuple(sorted(tried.items())))


def _check_score(score: float, found: Forecast) -> None:
    if not found.zero_score < check_number("score", score) < found.best_score:
        raise InvalidArgument(
            f"An {found.metric} of {score:g} cannot be searched for: a constant has "
            f"{found.zero_score:g}, and the best model of the guess {found.best_score:.3g}. Want "
            "something between them, or guess a larger signal."
        )


def _two_digits(value: float) -> float:
    """Up to two digits."""
    place = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / place - 1e-9) * place:.10g}")
