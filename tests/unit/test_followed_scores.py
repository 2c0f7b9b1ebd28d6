"""The correlations of all columns, which follow the rows whose slopes changed.

`Watched` compares all that a draw may ask for with sums that are made anew.
"""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interrupts import interrupted_at
from scipy import sparse

from riata import Bounds
from riata.engines import LocalEngine, followed_scores, local
from riata.engines.columns import SparseColumns
from riata.engines.followed_scores import FollowedScores
from riata.grid import BLOCK_ROWS, X_STEPS, slope_steps
from riata.losses import Huber, Logistic, Squared
from riata.mechanisms import ExponentialMechanism
from riata.mechanisms.noise import Noise
from riata.problem import Problem
from riata.queries import Block, Correlations
from riata.sets import L1Ball
from riata.vectors import Vector


class Broken(AssertionError):
    """A number that is not that of the rows."""


class Watched(FollowedScores):
    """Compares every bound and every utility with those of plain sums."""

    rows = None  # on the grid
    rare_seen = other_seen = 0

    def groups(self):
        counts, bounds = super().groups()
        block = Block(sparse.csr_array(self.rows), None)
        expected = self._query.from_total(block.sums(self._steps, self._query.most))
        listed = []
        for group, count in enumerate(counts):
            for place in range(count):
                column = self.candidate(group, place)
                listed.append(column)
                low, high = self.between(group, column)
                value = self.exactly(group, column)
                if value != expected[column]:
                    raise Broken(f"column {column}: {value}, and not {expected[column]}")
                if not (low <= value <= high and max(-low, high) <= bounds[group]):
                    raise Broken(f"column {column}: {low} <= {value} <= {high} <= {bounds[group]}")
        if sorted(listed) != list(range(self.rows.shape[1])):
            raise Broken("not every column is in one group")
        Watched.rare_seen += len(self._rare)
        Watched.other_seen += len(self._large)
        return counts, bounds


@pytest.fixture
def watched(monkeypatch):
    """Followed sums for the smallest rows, a few rows at a time, and all of them watched."""
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    monkeypatch.setattr(local, "FollowedScores", Watched)
    monkeypatch.setattr(followed_scores, "_ENTRIES_AT_ONCE", 20)
    monkeypatch.setattr(followed_scores, "_SUMS_A_COLUMN", 1)


def select_along(problem, engine, epsilon, noise, rng, limits=(0.5,), entry_limits=(1.0,)):
    """Selections as the greedy search makes them: some moves, other limits, other strengths."""
    theta, p = Vector.zero(problem.n_features), problem.n_features
    for t in range(12):
        limit, entry_limit = limits[t // 4 % len(limits)], entry_limits[t // 6 % len(entry_limits)]
        query = Correlations(problem, theta, limit, entry_limit)
        Watched.rows = engine._x
        selection = ExponentialMechanism(epsilon * (1 + t % 5))
        index = selection.release(query, engine, noise)
        assert 0 <= index < 2 * p
        if t % 3:  # else nothing was found
            theta = theta.plus(Vector.unit(p, index % p, 0.3 * rng.normal()))
        if t == 8:
            theta = theta.with_offset(0.2)


@st.composite
def runs(draw_):
    n, p = draw_(st.integers(1, 40)), draw_(st.integers(1, 12))
    rng = np.random.default_rng(draw_(st.integers(0, 2**32)))
    filled = draw_(st.sampled_from([0.1, 0.5, 1])) * rng.random(p)
    x = rng.uniform(-1, 1, (n, p)) * (rng.random((n, p)) < filled)
    bound = draw_(st.sampled_from([1.0, 10.0 ** rng.uniform(-3, 3, p)]))
    loss = draw_(st.sampled_from([Squared(), Huber(0.7), Logistic()]))
    y = rng.choice([-1.0, 1.0], n) if loss.classifies else rng.uniform(-1, 1, n)
    problem = Problem(loss, L1Ball(3.0), Bounds(bound, 1.0), n_rows=n, n_features=p)
    form = draw_(st.sampled_from([sparse.csr_array, sparse.csc_array]))
    return problem, form(x * bound), y, draw_(st.sampled_from([1e-9, 0.1, 1.0, 10.0, 1e4])), rng


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(runs(), st.floats(0.01, 1.0), st.floats(0.01, 2.0))
def test_every_utility_is_that_of_plain_sums(watched, run, entry_limit, limit):
    problem, rows, y, epsilon, rng = run
    engine = LocalEngine(rows, y, problem.bounds)
    select_along(problem, engine, epsilon, Noise(1), rng, (limit, 2 * limit), (entry_limit, 1.0))


def small():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (60, 9)) * (rng.random((60, 9)) < np.linspace(0.05, 0.9, 9))
    problem = Problem(Squared(), L1Ball(3.0), Bounds(1.0, 1.0), 60, 9)
    return problem, LocalEngine(sparse.csr_array(x), rng.uniform(-1, 1, 60), problem.bounds)


def run_small(problem, engine, **given):
    select_along(problem, engine, 0.2, Noise(3), np.random.default_rng(4), **given)


def test_some_columns_have_few_entries_and_others_many(watched):
    Watched.rare_seen = Watched.other_seen = 0
    run_small(*small())
    assert Watched.rare_seen > 0
    assert Watched.other_seen > 0


# Broken twins.


def forgotten_rows(monkeypatch):
    monkeypatch.setattr(FollowedScores, "_add", lambda self, x, slopes: None)


def old_slopes(monkeypatch):
    follow = FollowedScores._follow

    def once(self, steps):
        if self._steps is None:
            follow(self, steps)
        self._steps = steps

    monkeypatch.setattr(FollowedScores, "_follow", once)


def entries_as_they_are(monkeypatch):
    rows_of = SparseColumns.rows_of
    monkeypatch.setattr(
        SparseColumns, "rows_of", lambda self, columns, most: rows_of(self, columns, X_STEPS)
    )


def few_that_are_not(monkeypatch):
    largest = FollowedScores._largest
    monkeypatch.setattr(FollowedScores, "_largest", lambda self, few: largest(self, few) / 9)


def old_utilities(monkeypatch):
    group = FollowedScores._group

    def once(self, factor):
        if self.version == 0:
            group(self, factor)

    monkeypatch.setattr(FollowedScores, "_group", once)


@pytest.mark.parametrize(
    "twin", [forgotten_rows, old_slopes, entries_as_they_are, few_that_are_not, old_utilities]
)
def test_broken_sums_are_noticed(watched, twin, monkeypatch):
    given = {"limits": (0.5, 0.01), "entry_limits": (0.05,)}
    run_small(*small(), **given)
    twin(monkeypatch)
    with pytest.raises(Broken):
        run_small(*small(), **given)


@pytest.mark.parametrize("place", ["_split", "_add", "_group"])
def test_an_interrupt_leaves_nothing_half_known(watched, place, monkeypatch):
    problem, engine = small()
    for calls in range(1, 15):
        real = getattr(FollowedScores, place)

        with monkeypatch.context() as patch:
            patch.setattr(FollowedScores, place, interrupted_at(calls, real))
            with contextlib.suppress(KeyboardInterrupt):
                run_small(problem, engine, limits=(0.5, 0.2), entry_limits=(1.0, 0.4))
        run_small(problem, engine)


def test_an_interrupt_between_any_two_assignments_leaves_nothing_half_known(watched, monkeypatch):
    given = {"limits": (0.5, 0.01), "entry_limits": (1.0, 0.05)}
    left = [0]

    class Interrupted(Watched):
        def __setattr__(self, name, value):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            super().__setattr__(name, value)

    monkeypatch.setattr(local, "FollowedScores", Interrupted)
    for calls in range(1, 40):
        problem, engine = small()
        left[0] = calls
        with contextlib.suppress(KeyboardInterrupt):
            run_small(problem, engine, **given)
        left[0] = 0
        run_small(problem, engine, **given)


def test_a_search_of_one_engine_follows_that_of_another_problem(watched):
    problem, engine = small()
    run_small(problem, engine)
    run_small(replace(problem, loss=Huber(0.3)), engine)


def test_sums_of_more_rows_than_float64_can_add_are_exact():
    n = BLOCK_ROWS + 3
    x = np.full((n, 2), float(X_STEPS))
    x[::2, 0] -= 1
    problem = Problem(Squared(), L1Ball(3.0), Bounds(1.0, 1.0), n, 2)
    query = Correlations(problem, Vector.zero(2), 9.0, 1.0)
    known, most = FollowedScores(SparseColumns(sparse.csr_array(x))), float(slope_steps(n))
    whole = x.astype(np.int64)
    slopes = np.full(n, most)
    for changed in (1, 3):
        slopes = np.where(np.arange(n) % changed == 0, 1 - slopes, slopes)
        known.at(query, slopes.copy(), 1.0)
        assert known._totals.tolist() == (slopes.astype(np.int64) @ whole).tolist()
        assert abs(known._totals).max() > 2**53 or changed > 1


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("columns", [[], [3], [0, 2, 5, 8], list(range(9))])
def test_rows_of_some_columns_are_clipped(form, columns):
    rng = np.random.default_rng(5)
    x = np.rint(rng.uniform(-1, 1, (50, 9)) * X_STEPS) * (rng.random((50, 9)) < 0.4)
    found = SparseColumns(form(x)).rows_of(np.array(columns, dtype=np.int64), 30_000)
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), np.clip(x[:, columns], -30_000, 30_000))
