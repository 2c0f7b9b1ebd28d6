"""Weights of classes from a private count, and margins turned into probabilities.

Both are extra releases of a classifier: `plan_with_extra_releases` has paid for them. The proofs
are in docs/privacy/calibration.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from riata.curator import Curator
from riata.fitting.extra_planning import CLASS_COUNTS, MARGIN_COUNTS, MARGIN_SLOPES
from riata.mechanisms import ObjectivePerturbation
from riata.problem import Problem
from riata.queries import ClassCounts, MarginCounts, MarginSlopes
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.plan import Plan
from riata.vectors import Vector

#: No row counts more than this many times the mean row: the noise grows with the largest weight.
LARGEST_WEIGHT = 20.0

#: A bin of margins counts if it holds more than this many standard deviations of its noise.
VISIBLE = 3.0

#: Margins are clipped at this quantile of their sizes.
LIMIT_QUANTILE = 0.98

#: The line must be better than the identity by this many times what noise alone would make of it.
SURE = 4.0

#: And by this many standard deviations of the noise on the counts.
CLEAR = 2.0

#: The smallest and the largest slope of a line.
FLATTEST, STEEPEST = 0.01, 100.0

#: More rounds than weights, or a line through a few bins, ever need.
_STEPS = 50

IDENTITY = (1.0, 0.0)


def balanced_weights(
    plan: Plan, problem: Problem, curator: Curator, n_classes: int
) -> tuple[float, ...]:
    """Weights that make the classes count alike, from their released counts.

    A class that the noise hides counts as if it had as many rows as the noise. The mean weight of
    a row is 1, or where the plan's cost rests on the loss's curvature the largest weight is.
    """
    mechanism, query = plan.extra_releases[CLASS_COUNTS].mechanism, ClassCounts(problem, n_classes)
    found = curator.release(query, mechanism)
    shares = np.maximum(found, noise_std(mechanism, query) + 1 / problem.n_rows)
    shares = shares / shares.sum()
    weights = 1 / (n_classes * shares)
    for _ in range(_STEPS):  # a smaller weight lowers the mean, and so the largest that is allowed
        weights = np.minimum(weights, LARGEST_WEIGHT * (weights @ shares))
    weights /= weights @ shares
    if any(isinstance(each, ObjectivePerturbation) for each in plan.mechanisms.values()):
        weights /= weights.max()
    return tuple(map(float, weights))


def calibrated_line(
    plan: Plan, problem: Problem, curator: Curator, theta: Vector
) -> tuple[float, float]:
    """The line (a, b) for which expit(a * margin + b) is the probability of the positive class.

    Counts of rows by label and margin give a first line, and one Newton step with a noisy gradient
    the next. What noise explains is shrunk to the identity.
    """
    table = _counted(plan, problem, curator, theta)
    if table is None:
        _slopes(plan, problem, curator, theta, 1.0, (1.0, 0.0))  # it is paid for either way
        return IDENTITY
    first = table.fitted()
    gradient, noise = _slopes(plan, problem, curator, theta, table.limit, tuple(first))
    return table.improved(first, gradient, noise, problem.n_rows)


def _slopes(
    plan: Plan,
    problem: Problem,
    curator: Curator,
    theta: Vector,
    limit: float,
    line: tuple[float, ...],
) -> tuple[np.ndarray, float]:
    mechanism = plan.extra_releases[MARGIN_SLOPES].mechanism
    query = MarginSlopes(problem, theta, limit, (float(line[0]), float(line[1])))
    return curator.release(query, mechanism), noise_std(mechanism, query)


def _counted(plan: Plan, problem: Problem, curator: Curator, theta: Vector) -> _Table | None:
    """The bins of margins that stand out from the noise, or None if none does."""
    mechanism, query = plan.extra_releases[MARGIN_COUNTS].mechanism, MarginCounts(problem, theta)
    found = curator.release(query, mechanism)
    noise = noise_std(mechanism, query)
    totals = found.sum(axis=0)
    seen = totals > VISIBLE * math.sqrt(2) * noise
    if not seen.any():
        return None
    margins, totals = query.sizes()[seen], totals[seen]
    positive = np.clip(found[1, seen], 0.0, totals)
    order = np.argsort(np.abs(margins))
    below = np.cumsum(totals[order]) / totals.sum()
    limit = float(np.abs(margins)[order][np.searchsorted(below, LIMIT_QUANTILE)]) * math.sqrt(2)
    limit = min(limit, query.top) or query.top
    rows = np.column_stack([np.clip(margins / limit, -1.0, 1.0), np.ones(len(margins))])
    return _Table(rows, totals, positive, limit, noise)


@dataclass(frozen=True)
class _Table:
    """Rows by margin, as released: lines are in units of `limit`, so the identity is (limit, 0).

    Attributes
    ----------
    rows : ndarray of shape (n_bins, 2)
        The margin of each bin over `limit`, and 1.
    totals, positive : ndarray of shape (n_bins,)
        The weight of all rows, and of those with a positive label.
    limit : float
    noise : float
        The standard deviation of the noise of a count.
    """

    rows: np.ndarray
    totals: np.ndarray
    positive: np.ndarray
    limit: float
    noise: float

    @property
    def identity(self) -> np.ndarray:
        return np.array([self.limit, 0.0])

    @property
    def _pull(self) -> float:
        """A weak penalty on leaving the identity, for labels that a margin separates."""
        return max(self.noise, 1e-6) / max(self.limit, 1.0) ** 2

    def _risk(self, line: np.ndarray) -> float:
        margins = self.rows @ line
        away = line - self.identity
        risk = self.totals @ np.logaddexp(0.0, margins) - self.positive @ margins
        return float(risk + self._pull * away @ away / 2)

    def _curvatures(self, line: np.ndarray) -> np.ndarray:
        odds = expit(self.rows @ line)
        found: np.ndarray = odds * (1 - odds)
        return found

    def curvature(self, line: np.ndarray) -> np.ndarray:
        weighted = self.rows * (self.totals * self._curvatures(line))[:, None]
        found: np.ndarray = self.rows.T @ weighted
        return found

    def _errors(self, line: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """The standard errors that noise leaves in the curvature along each direction."""
        squares = np.square(self.rows @ directions) * self._curvatures(line)[:, None]
        spread: np.ndarray = np.sqrt(np.square(squares).sum(axis=0))
        return math.sqrt(2) * self.noise * spread + 1e-12

    def _sure_gain(self, line: np.ndarray) -> float:
        """How far its risk on the counts is below the identity's, less what noise explains."""
        before, after = self.rows @ self.identity, self.rows @ line
        negative = np.logaddexp(0.0, before) - np.logaddexp(0.0, after)
        positive = np.logaddexp(0.0, -before) - np.logaddexp(0.0, -after)
        gain = (self.totals - self.positive) @ negative + self.positive @ positive
        spread = self.noise * math.sqrt(float(negative @ negative + positive @ positive))
        return float(gain) - CLEAR * spread

    def fitted(self) -> np.ndarray:
        """The line of least risk on the counts."""
        line = np.zeros(2)
        for _ in range(_STEPS):
            slope = self.rows.T @ (self.totals * expit(self.rows @ line) - self.positive)
            slope += self._pull * (line - self.identity)
            move = np.linalg.solve(self.curvature(line) + self._pull * np.eye(2), -slope)
            size = 1.0
            while self._risk(line + size * move) > self._risk(line) and size > 1e-9:
                size /= 2
            line = line + size * move
            if np.abs(size * move).max() < 1e-9:
                break
        return line

    def improved(
        self, line: np.ndarray, gradient: np.ndarray, noise: float, n_rows: int
    ) -> tuple[float, float]:
        """One Newton step, shrunk to the identity by what noise explains; in units of 1.

        Each direction is shrunk by itself: where all margins are alike, the level is well known
        and the slope is not. A slope that is not possible leaves the mean margin where it is.
        """
        values, vectors = np.linalg.eigh(self.curvature(line))
        errors = self._errors(line, vectors)
        clear = values > VISIBLE * errors  # along the other directions the rows say nothing
        vectors, values, errors = vectors[:, clear], values[clear], errors[clear]
        step = (vectors.T @ gradient) / values
        away = vectors.T @ (line - self.identity) - step
        chance = (noise**2 + (step * errors) ** 2) / values + 1 / n_rows
        better = away**2 * values
        part = _beyond(better, chance)
        sure = 2 * self._sure_gain(self.identity + vectors @ (part * away))
        better *= min(1.0, max(sure, 0.0) / max(float(part @ better), 1e-300))
        kept = self.identity + vectors @ (_beyond(better, chance) * away)
        slope = float(np.clip(kept[0] / self.limit, FLATTEST, STEEPEST))
        middle = float(self.totals @ self.rows[:, 0] / self.totals.sum())
        return slope, float(kept[1] + (kept[0] - slope * self.limit) * middle)


def _beyond(better: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """Which part of each gain is kept, beside what chance alone would make of it."""
    found: np.ndarray = np.maximum(0.0, 1 - SURE * chance / np.maximum(better, 1e-300))
    return found
