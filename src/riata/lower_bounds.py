"""What no private algorithm can do better: lower bounds on the excess risk, for given public facts.

Each one is the risk of some data inside the bounds, in the mean over a hidden choice, for every
private algorithm whose models lie in the set. The proofs are in docs/algorithms/lower_bound.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from riata.hard_instances import HardInstance
from riata.privacy.budget import ADD_REMOVE, REPLACE_LABEL, Budget
from riata.problem import Problem
from riata.sets import GroupL1Ball, L1Ball, Simplex, SparseBall
from riata.sets.lp import LpGeometry

#: Beyond this the exponential of a privacy loss says nothing any more.
_MOST_LOSS = 50.0


class LowerBound(NamedTuple):
    """A lower bound on the excess risk, and what the data hides."""

    value: float
    hidden: str


class _Case(NamedTuple):
    """A problem and a budget in the words of the proofs."""

    problem: Problem
    epsilon: float
    delta: float
    label: float

    @property
    def n(self) -> int:
        return self.problem.n_rows

    @property
    def column(self) -> float:
        """A bound that every column has."""
        return float(np.min(self.problem.bounds.x))

    @property
    def signs_in_rows(self) -> bool:
        return not self.problem.bounds.nonnegative

    def loss(self, margin: float) -> float:
        return float(self.problem.loss.value(np.array([margin]), np.array([self.label]))[0])

    def falls(self, margin: float) -> bool:
        """Whether the loss of a row of the label falls up to this margin."""
        return float(self.problem.loss.slope(np.array([margin]), np.array([self.label]))[0]) <= 0

    def gain(self, top: float, reached: float) -> float:
        """How much more a margin of at most `reached` in the mean costs than the best up to top."""
        best = min((top, min(self.label, top)), key=self.loss)
        at = min(reached, best)
        return max(0.0, self.loss(at) - self.loss(best)) if self.falls(at) else 0.0

    def slack(self, rows: float) -> float:
        """The delta of so many replaced rows."""
        if self.delta == 0:
            return 0.0
        loss = rows * self.epsilon
        if loss > _MOST_LOSS:
            return 1.0
        return min(1.0, self.delta * math.expm1(loss) / math.expm1(self.epsilon))

    def seen(self, rows: float, top: float, most: float) -> float:
        """The largest mean of sign * margin after so many rows, top in the mean, most at most."""
        return min(top, math.tanh(rows * self.epsilon / 2) * top + self.slack(rows) * most)

    def rows(self, most: float) -> list[int]:
        """Numbers of rows to try, all even if there is an intercept."""
        top = max(1.0, min(most, self.n, 400 / self.epsilon))
        tried = np.unique(np.rint(np.geomspace(1, top, 60)).astype(int))
        return [int(k) for k in tried if k <= most and not (self.problem.fit_intercept and k % 2)]


def lower_bounds(problem: Problem, budget: Budget) -> list[LowerBound]:
    """Every lower bound on the excess risk that is known for these facts, the largest first."""
    case = _case(problem, budget)
    if case is None:
        return []
    kinds: list[tuple[str, Callable[[_Case], Iterator[float]]]] = [
        ("signs", _signs),
        ("a vertex", _vertex),
        ("a direction", _direction),
        ("a dense direction", _dense_direction),
        ("a fingerprinting code", _code),
    ]
    found = [LowerBound(max(bounds(case), default=0.0), hidden) for hidden, bounds in kinds]
    return sorted((each for each in found if each.value > 0), reverse=True)


def lower_bound(problem: Problem, budget: Budget) -> LowerBound | None:
    """The largest of `lower_bounds`, None if none is known."""
    return next(iter(lower_bounds(problem, budget)), None)


def _case(problem: Problem, budget: Budget) -> _Case | None:
    loss, bounds = problem.loss, problem.bounds
    if budget.epsilon == math.inf or loss.inner is not None or loss.n_margins > 1:
        return None
    if loss.gradient_bounds is not None:
        return None  # what a loss of whole rows can look like is not known
    if problem.adjacency == REPLACE_LABEL:
        return None  # the hidden rows below would be public
    if bounds.norm == "inf" and bounds.max_length is not None:
        return None  # the rows below have entries at their bounds, and might be too long
    epsilon, delta = budget.epsilon, budget.delta
    if problem.adjacency == ADD_REMOVE:  # a replaced row is two steps
        delta *= 1 + math.exp(min(epsilon, _MOST_LOSS))
        epsilon *= 2
    label = 1.0 if problem.loss.classifies else problem.y_bound
    case = _Case(problem, epsilon, min(delta, 1.0), label)
    if problem.fit_intercept and problem.bounds.nonnegative:
        return None  # an intercept would learn the labels
    needs_mirror = problem.fit_intercept or problem.bounds.nonnegative
    if needs_mirror and not _symmetric(problem, label):
        return None
    if problem.fit_intercept and problem.loss.classifies and problem.n_rows % 2:
        return None
    return case


def _symmetric(problem: Problem, label: float) -> bool:
    """Whether the loss of (-m, -y) is that of (m, y)."""
    margins = np.linspace(-3.0, 3.0, 41) * max(problem.margin_bound, label)
    one = problem.loss.value(margins, np.full(41, label))
    return bool(np.allclose(one, problem.loss.value(-margins, np.full(41, -label)), rtol=1e-9))


def _powers(most: int) -> list[int]:
    return sorted({most, *(2**k for k in range(most.bit_length()) if 2**k <= most)})


def _even(problem: Problem, size: int) -> tuple[float, float] | None:
    """||u||_1 / size and ||u||_2 of the largest u on `size` columns with equal entries in C.

    None unless every theta of C has an l1 norm on these columns that is at most that of u.
    """
    C = problem.set
    if isinstance(C, L1Ball):
        return C.radius / size, C.radius / math.sqrt(size)
    if isinstance(C, LpGeometry):
        order = 0.0 if np.isinf(C.p) else 1 / C.p
        return C.radius * size**-order, C.radius * size ** (0.5 - order)
    if isinstance(C, GroupL1Ball):
        together = int(np.bincount(C.codes()).max())
    elif isinstance(C, SparseBall):
        together = C.sparsity
    else:
        return None
    return (C.radius / math.sqrt(size), C.radius) if size <= together else None


def _signs(case: _Case) -> Iterator[float]:
    """Rows +-e_j, k for each of b columns: which sign has which column? Also one dense row."""
    problem, p = case.problem, case.problem.n_features
    for b in _powers(p):
        even = _even(problem, b)
        if even is None:
            continue
        euclidean = isinstance(problem.set, LpGeometry) and problem.set.p == 2
        stretch = 1.0
        if euclidean and problem.bounds.norm == "inf" and case.signs_in_rows:
            whole = 2 ** (p.bit_length() - 1)  # orthogonal rows of signs in place of e_j
            stretch = math.sqrt(whole) if b <= whole else 1.0
        top = case.column * stretch * even[0]
        most = case.column * stretch * problem.set.radius_in("linf")
        for k in case.rows(case.n / b):
            yield b * k / case.n * case.gain(top, case.seen(k, top, most))
    if _even(problem, 1) is not None:
        top = problem.set.reach(problem.bounds)
        for k in case.rows(case.n):
            yield k / case.n * case.gain(top, case.seen(k, top, top))


def _vertex(case: _Case) -> Iterator[float]:
    """k rows e_j, all others 0: which j?"""
    C, p = case.problem.set, case.problem.n_features
    one = isinstance(C, LpGeometry) and C.p == 1
    if isinstance(C, GroupL1Ball):  # one column of each group: an l1 ball
        p = int(C.codes().max()) + 1
    elif not (one or isinstance(C, L1Ball | Simplex)):
        return
    top = case.column * C.radius_in("linf")
    for k in case.rows(case.n):
        known = math.exp(min(k * case.epsilon, _MOST_LOSS)) / p + case.slack(k)
        yield k / case.n * case.gain(top, top * min(1.0, known))


def _direction(case: _Case) -> Iterator[float]:
    """w rows that are all the same row of signs: which?"""
    problem = case.problem
    C = problem.set
    if not (isinstance(C, LpGeometry) and C.p >= 2 and case.signs_in_rows):
        return
    for b in _powers(problem.n_features):
        even = _even(problem, b)
        assert even is not None
        length = case.column * b ** (0.5 - 1 / problem.bounds.order)
        top = length * even[1]
        for w in case.rows(min(case.n, b / (2 * case.epsilon) + 1)):
            for t in np.linspace(0.1, 0.95, 18):
                missed = 1 - _guessed(case, w, float(t), b)
                if missed > 0:
                    yield w / case.n * missed * case.gain(top, top * float(t))


def _guessed(case: _Case, rows: int, t: float, size: int) -> float:
    """A bound on the probability that <v, theta> > t ||v|| ||theta|| for the hidden signs v."""
    return math.exp(min(rows * case.epsilon - t * t * size / 2, 0.0)) + case.slack(rows)


def _lasso_scale(case: _Case) -> float:
    """The square of the largest margin that a label reaches, 0 unless this is the LASSO."""
    problem = case.problem
    lasso = isinstance(problem.set, L1Ball) and problem.loss.least_squares
    if not lasso or problem.bounds.norm != "inf" or problem.fit_intercept:
        return 0.0
    if not case.signs_in_rows:
        return 0.0
    return min(problem.y_bound, problem.set.radius_in("l1") * case.column) ** 2


def _dense_direction(case: _Case) -> Iterator[float]:
    """The same beside orthogonal rows with label 0, which make sparse models expensive."""
    scale, n = _lasso_scale(case), case.n
    if scale == 0:
        return
    for p in _powers(case.problem.n_features):
        if p & (p - 1):
            continue  # orthogonal signs need a power of two
        for w in case.rows(min(n - p, p / (2 * case.epsilon) + 1)):
            tau = (n - w) // p / w
            for t in np.geomspace(0.02, 0.9, 20):
                missed = 1 - _guessed(case, w, float(t), p)
                if missed > 0 and tau > 0:
                    yield scale * w / n * (missed * tau / (tau + t * t) - tau / (1 + tau))


def _code(case: _Case) -> Iterator[float]:
    """Section 3 of the paper: `HardInstance`, for the LASSO."""
    scale = _lasso_scale(case)
    if scale > 0 and case.n >= 16:
        yield scale * _best_code(case.n, case.problem.n_features, case.epsilon, case.delta)


@lru_cache(maxsize=256)
def _best_code(n: int, p: int, epsilon: float, delta: float) -> float:
    best = 0.0
    for columns in (2**k for k in range(2, p.bit_length()) if 2**k <= p):
        rows = {round(n / (columns * tau)) for tau in (0.1, 0.15, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0)}
        for w in rows:
            repeats = (n - w) // columns
            if w < 1 or repeats < 1:
                continue
            for share in (0.08, 0.16, 0.24, 0.32, 0.4, 0.48):
                one = HardInstance(w, columns, repeats, share)
                best = max(best, one.lower_bound(epsilon, min(delta, 0.999)) * one.n_rows / n)
    return best


__all__ = ["LowerBound", "lower_bound", "lower_bounds"]
