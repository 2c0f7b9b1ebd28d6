"""A made-up world in which a guess is true: its rows, its best model, and scores against it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit, ndtri

from riata.errors import Incompatible, InvalidArgument
from riata.grid import X_STEPS
from riata.problem import Problem
from riata.simulation.columns import MOST_ENTRIES, SimulatedColumns
from riata.simulation.guess import Guess
from riata.simulation.partial_guess import has_sparse_rows
from riata.vectors import Vector

#: Models are judged on so many fresh rows, or on fewer if these have many columns.
FRESH_ROWS = 8_000
_FRESH_ENTRIES = 2e7

#: A score is measured on so many rows at least.
LEAST_HELD_OUT = 50

#: Of rows of bounded length, the k-th most common column occurs 1 / (k + this) as often.
_COMMONEST, _RARER = 10, 30

#: ... to a power in this range, which differs from world to world.
_STEEPNESS = (1.0, 1.5)

#: The factor that the columns of sparse rows share has so many levels.
_LEVELS = 16

#: The logarithms of the sizes of columns of bounded rows have this deviation.
_UNEQUAL = 0.5

#: A world's truth has margins of at most this deviation, and may miss a guessed AUC by this part.
_LARGEST_SLOPE, _SHORT = 20.0, 0.3

#: So many truths are tried for one that has the guessed signal.
_TRIES = 50


class UnreachableSignal(InvalidArgument):
    """Too few rows have entries in the relevant columns for a model to reach the signal."""


@dataclass(frozen=True)
class Score:
    """How good one model is on fresh rows.

    Attributes
    ----------
    excess : float
        Its risk less that of the best model.
    explained : float
        The risk of the best constant less that of the best model.
    value : float
        Its R2, or its AUC.
    best : float
        That of the best model.
    held_out : float
        The R2 or AUC that is measured on held-out rows, a third as many as the fit has.
    accuracy : float
        The share of labels that it gets right; NaN for numbers.
    """

    excess: float
    explained: float
    value: float
    best: float
    held_out: float = math.nan
    accuracy: float = math.nan


class World:
    """Rows that follow a guess, with a sparse truth behind them.

    Parameters
    ----------
    guess : Guess
    problem : Problem
        The facts about the fit that is to be forecast.
    rng : numpy.random.Generator
    """

    def __init__(self, guess: Guess, problem: Problem, rng: np.random.Generator) -> None:
        if problem.loss.gradient_bounds is not None:
            raise Incompatible(
                "a forecast", f"the {problem.loss.name} loss",
                because="it simulates margins, and this loss is a function of whole rows",
                instead="Use rows that you simulate yourself, and fit them",
            )  # fmt: skip
        if problem.bounds.order != math.inf and problem.bounds.max_length is None:
            raise Incompatible(
                "a forecast", repr(problem.bounds),
                because="it simulates rows with bounded entries or a bounded Euclidean length",
                instead='Use norm="inf" or a norm of at most 2 for the forecast',
            )  # fmt: skip
        self.guess, self.problem, self._rng = guess, problem, rng
        p = problem.n_features
        self._units = problem.bounds.per_column(p)
        self._loadings = rng.standard_normal(p) if self._popularity is not None else np.ones(p)
        self._fills = self._column_fills()
        fresh = int(min(FRESH_ROWS, max(500, _FRESH_ENTRIES // p)))
        self._fresh = self._table(fresh)
        if not any(self._choose_truth() for _ in range(_TRIES)):
            raise UnreachableSignal(
                f"No model on {guess.relevant} relevant columns reaches signal={guess.signal!r}, "
                "because too few rows have any of them. Guess more relevant columns, more "
                "nonzeros, or a weaker signal."
            )
        self._truth = self._margins(self._fresh, self._theta) + self._offset

    @property
    def labels(self) -> bool:
        return self.problem.loss.classifies

    @property
    def _of_length(self) -> bool:
        return self.problem.bounds.favours_gradients

    @property
    def _longest(self) -> float:
        longest = self.problem.bounds.max_length
        assert longest is not None
        return longest

    def _inside(self, rows: Any) -> Any:
        """Rows of the right length with entries inside their bounds."""
        return rows if self.problem.bounds.norm == "l2" else self.problem.bounds.clip_x(rows)

    # Rows.

    @cached_property
    def _popularity(self) -> np.ndarray | None:
        """How often each column of a sparse row is not 0, relative to the others."""
        p = self.problem.n_features
        if not has_sparse_rows(self.problem.bounds, p, self.guess.nonzeros):
            return None
        often = (np.arange(p) + min(_COMMONEST, p / _RARER)) ** -self._rng.uniform(*_STEEPNESS)
        return often / often.sum()

    def _table(self, n: int) -> Any:
        if self._of_length:
            return self._of_bounded_length(n)
        return SimulatedColumns(self.guess, n, self.problem.n_features, self._rng)

    def _of_bounded_length(self, n: int) -> Any:
        """Rows as long as their bound, with a few entries that are not 0."""
        p, rng, popularity = self.problem.n_features, self._rng, self._popularity
        k = p if popularity is None else self.guess.nonzeros
        if n * k > MOST_ENTRIES:
            raise InvalidArgument(
                f"A forecast of {n:,} rows with {k} entries each would need more than "
                f"{MOST_ENTRIES:,.0f} made-up ones. Forecast fewer rows, or guess fewer nonzeros."
            )
        if popularity is None:
            rows = np.asarray(SimulatedColumns(self.guess, n, p, rng)) / X_STEPS * self._fills
            return self._inside(rows * (self._longest / math.sqrt(p)))
        columns = self._places(popularity, n, k)
        binary = self.guess.design == "binary"
        entries = np.ones(n * k) if binary else self.guess.draw((n * k,), rng)
        table = sparse.csr_array((entries, columns, np.arange(0, n * k + 1, k)), shape=(n, p))
        table.sum_duplicates()
        lengths = np.sqrt(table.multiply(table).sum(axis=1))
        table.data *= np.repeat(self._longest / np.maximum(lengths, 1e-9), np.diff(table.indptr))
        return self._inside(table)

    def _column_fills(self) -> np.ndarray:
        """How large the entries of each column are, relative to the others."""
        return np.exp(_UNEQUAL * self._rng.standard_normal(self.problem.n_features))

    def _places(self, popularity: np.ndarray, n: int, k: int) -> np.ndarray:
        """The columns of n times k entries: each row's common factor makes some likelier."""
        r, rng, p = self.guess.correlation, self._rng, len(popularity)
        if r == 0:
            return np.searchsorted(np.cumsum(popularity), rng.random(n * k)).clip(max=p - 1)
        if self.labels:  # two kinds of rows, such as texts on two topics
            share = self.guess.positives
            levels = np.array([-share, 1 - share]) / math.sqrt(share * (1 - share))
            level = (rng.random(n) < share).astype(np.int64)
        else:
            levels = ndtri((np.arange(_LEVELS) + 0.5) / _LEVELS)
            level = rng.integers(0, _LEVELS, n)
        found = np.empty((n, k), dtype=np.int64)
        strength = math.sqrt(r / (1 - r))
        for number, z in enumerate(levels):
            often = popularity * np.exp(strength * z * self._loadings)
            cumulated = np.cumsum(often / often.sum())
            rows = level == number
            drawn = np.searchsorted(cumulated, rng.random((int(rows.sum()), k)))
            found[rows] = drawn.clip(max=p - 1)
        return found.ravel()

    def _margins(self, table: Any, theta: np.ndarray) -> np.ndarray:
        if isinstance(table, SimulatedColumns):
            return table @ (theta * self._units) / X_STEPS
        return table @ theta

    def draw(self) -> tuple[Any, np.ndarray]:
        """Rows and targets to fit."""
        x = self._table(self.problem.n_rows)
        margins, rng = self._margins(x, self._theta) + self._offset, self._rng
        if not self.labels:
            noise = self._noise * rng.standard_normal(len(margins))
            return x, self.problem.bounds.clip_y(margins + noise)
        return x, self._labelled(rng.random(len(margins)) < expit(margins))

    def _labelled(self, positive: np.ndarray) -> np.ndarray:
        """Labels as the loss reads them: class codes, or -1 and 1."""
        return np.where(positive, *self.problem.loss.class_targets())

    def whole(self, x: Any) -> Any:
        """The rows as an array, or as they are if they are sparse."""
        return np.asarray(x) * (self._units / X_STEPS) if isinstance(x, SimulatedColumns) else x

    # The truth.

    def _choose_truth(self) -> bool:
        """Choose relevant columns, and scale their weights to the signal; False if none suits."""
        p, rng = self.problem.n_features, self._rng
        s = min(self.guess.relevant, p)
        weights = np.zeros(p)
        chosen = rng.choice(p, s, replace=False, p=self._popularity)
        with_factor = rng.random(s) < (1 + self.guess.alignment) / 2
        signs = np.where(with_factor, 1.0, -1.0) * np.sign(self._loadings[chosen])
        weights[chosen] = rng.uniform(0.5, 1.5, s) * signs
        self._theta, self._offset = weights / self._units, 0.0
        return self._scaled()

    def _scaled(self) -> bool:
        """Whether the best model can have the guessed R2 or AUC; the truth then has."""
        margins = self._margins(self._fresh, self._theta)
        deviation = float(margins.std())
        if deviation == 0:
            return False
        guess = self.guess
        if not self.labels:
            wanted = guess.spread * self.problem.y_bound
            self._theta *= math.sqrt(guess.signal) * wanted / deviation
            self._noise = math.sqrt(1 - guess.signal) * wanted
            return True
        if guess.signal <= 0.5:
            raise InvalidArgument(
                f"signal={guess.signal!r} must be above 0.5 for labels: it is the AUC of the best "
                "model, and guessing has 0.5."
            )
        standard = (np.sort(margins)[:: max(1, len(margins) // 2_000)] - margins.mean()) / deviation

        def too_good(slope: float) -> float:
            odds = slope * standard + self._offset_for(slope * standard)
            return auc(odds, expit(odds)) - guess.signal

        short = -too_good(_LARGEST_SLOPE)
        if short > _SHORT * (guess.signal - 0.5):
            return False
        slope = _LARGEST_SLOPE
        if short < 0:
            slope = float(brentq(too_good, 0.0, _LARGEST_SLOPE, xtol=1e-4))
        self._theta *= slope / deviation
        self._offset = self._offset_for(slope * standard) - slope / deviation * margins.mean()
        return True

    def _offset_for(self, margins: np.ndarray) -> float:
        """The intercept at which the second class has its share."""
        most = 20.0 + float(np.abs(margins).max())
        share = self.guess.positives
        return float(brentq(lambda b: expit(margins + b).mean() - share, -most, most, xtol=1e-4))

    # Scores.

    def score(self, theta: Vector, line: tuple[float, float] = (1.0, 0.0)) -> Score:
        """How good a model is on fresh rows, compared with the truth.

        `line` is the slope and the intercept that are applied to its margins.
        """
        margins = self._margins(self._fresh, theta.dense()) + theta.offset
        margins = line[0] * margins + line[1]
        return self._of_labels(margins) if self.labels else self._of_numbers(margins)

    def _of_numbers(self, margins: np.ndarray) -> Score:
        noise, truth, loss = self._noise**2, self._truth, self.problem.loss
        lost, variance = float(np.mean((margins - truth) ** 2)), float(truth.var())
        excess, explained = lost, variance
        if not loss.least_squares:
            draws = truth + self._noise * self._rng.standard_normal(len(truth))
            of_truth = loss.value(truth, draws).mean()
            excess = float(loss.value(margins, draws).mean() - of_truth)
            explained = float(
                loss.value(np.full_like(truth, truth.mean()), draws).mean() - of_truth
            )
        total = variance + noise
        few = self._held_out
        y = truth[few] + self._noise * self._rng.standard_normal(len(truth[few]))
        measured = 1 - float(np.mean((y - margins[few]) ** 2) / max(y.var(), 1e-300))
        return Score(excess, explained, 1 - (lost + noise) / total, variance / total, measured)

    def _of_labels(self, margins: np.ndarray) -> Score:
        odds = expit(self._truth)
        share = float(odds.mean())
        risk = self._risk(margins, odds)
        best, constant = self._truth, np.full_like(margins, logit(share))
        loss = self.problem.loss
        if loss.link != "logit":
            best, constant = self._fitted(self._truth, odds), self._fitted(0 * margins, odds)
        of_best = self._risk(best, odds)
        return Score(
            risk - of_best,
            self._risk(constant, odds) - of_best,
            auc(margins, odds),
            auc(self._truth, odds),
            self._measured_auc(margins, odds),
            float(np.where(margins > 0, odds, 1 - odds).mean()),
        )

    @property
    def _held_out(self) -> slice:
        """A third as many fresh rows as the fit has, if there are so many."""
        return slice(max(LEAST_HELD_OUT, self.problem.n_rows // 3))

    def _measured_auc(self, margins: np.ndarray, odds: np.ndarray) -> float:
        few = self._held_out
        labels = (self._rng.random(len(odds[few])) < odds[few]).astype(np.float64)
        if labels.min() == labels.max():
            return auc(margins, odds)
        return auc(margins[few], labels)

    def _risk(self, margins: np.ndarray, odds: np.ndarray) -> float:
        """The expected loss of margins, over labels with these odds."""
        loss, ones = self.problem.loss, np.ones(len(margins), dtype=bool)
        of_each = odds * loss.value(margins, self._labelled(ones))
        of_each += (1 - odds) * loss.value(margins, self._labelled(~ones))
        return float(of_each.mean())

    def _fitted(self, margins: np.ndarray, odds: np.ndarray) -> np.ndarray:
        """The multiple of margins, with an offset, that has the smallest risk."""
        found = minimize(
            lambda v: self._risk(v[0] * margins + v[1], odds), [1.0, 0.0], method="Nelder-Mead"
        ).x
        return found[0] * margins + found[1]


def auc(margins: np.ndarray, odds: np.ndarray) -> float:
    """The probability that a row of the second class has a larger margin than one of the first."""
    values, where = np.unique(margins, return_inverse=True)
    ones = np.bincount(where, odds, len(values))
    zeros = np.bincount(where, 1 - odds, len(values))
    below = np.cumsum(zeros) - zeros
    return float(ones @ (below + zeros / 2) / max(ones.sum() * zeros.sum(), 1e-300))
