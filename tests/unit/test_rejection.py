"""Bounds on scores hold, and what is drawn from them is what the plain selection would draw.

`Watched` looks at every bound whenever a draw does, and compares it with all exact scores.
"""

import contextlib
import threading
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interrupts import interrupted_at
from scipy import sparse

from riata import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine, local, scores
from riata.engines.columns import SparseColumns
from riata.engines.gram import Gram
from riata.engines.scores import LazyScores
from riata.grid import BLOCK_ROWS, MOST_SLOPE_STEPS, X_STEPS
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared, Weighted
from riata.mechanisms import ExponentialMechanism, rejection
from riata.mechanisms.engine import Scores
from riata.mechanisms.noise import Noise
from riata.mechanisms.noisy_max import Scale
from riata.mechanisms.rejection import Envelope, SignedCandidate, draw
from riata.privacy.budget import Budget
from riata.privacy.events import BoundedRange, compose
from riata.problem import Problem
from riata.queries import (
    Block,
    Coordinate,
    Correlations,
    Gradient,
    Improvement,
    LengthSizes,
    LimitedSlope,
    MeanSlope,
    SlopeSizes,
    Support,
    SupportCurvature,
    SupportGradient,
    VertexUtilities,
)
from riata.sets import L1Ball, Simplex
from riata.solvers.greedy import PrivateGreedy
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=11)


class Broken(AssertionError):
    """A bound that is none."""


class Watched(LazyScores):
    """Compares every bound with every exact score, whenever bounds are used."""

    def exact(self):
        query = self._query
        dense = np.array(
            [
                query.utility(j, self._columns.sum(j, self._steps))
                for j in range(self._columns.shape[1])
            ]
        )
        return np.abs(dense) if self.symmetric else dense

    def groups(self):
        counts, bounds = super().groups()
        found, listed = self.exact(), []
        for group, count in enumerate(counts):
            members = [LazyScores.candidate(self, group, i) for i in range(count)]
            listed += members
            for j in members:
                low, high = super().between(group, j)
                most = max(abs(low), abs(high)) if self.symmetric else high
                # Terms as large as a utility may nearly cancel in a bound: the envelope has room.
                room = 1e-9 * abs(bounds[group]) + 2.0**-48 * self._query.row_bound("linf")
                if not found[j] <= most <= bounds[group] + room:
                    raise Broken(f"column {j}: {found[j]} <= {most} <= {bounds[group]}")
                value = self._query.utility(j, self._columns.sum(j, self._steps))
                if not low <= value <= high:
                    raise Broken(f"column {j}: {low} <= {value} <= {high}")
        if sorted(listed) != list(range(self._columns.shape[1])):
            raise Broken("not every column is in one group")
        return counts, bounds

    def closely(self, group, candidate):
        found = super().closely(group, candidate)
        value = self._query.utility(candidate, self._columns.sum(candidate, self._steps))
        if found is not None and not found[0] <= value <= found[1]:
            raise Broken(f"column {candidate}: {found[0]} <= {value} <= {found[1]}")
        return found


@pytest.fixture(params=["snapshots", "singles", "products"])
def everywhere(request, monkeypatch):
    """Bounds on scores for the smallest rows, and every bound watched.

    With so few entries there is a snapshot at every rejection; or seldom, and single columns; or
    scores come from inner products, where the loss allows it.
    """
    if request.param == "products":
        monkeypatch.setattr(local, "GRAM_COLUMNS_A_PASS", np.inf)
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    monkeypatch.setattr(local, "LazyScores", Watched)
    if request.param == "singles":
        monkeypatch.setattr(scores, "_PROPOSAL", 8)
        monkeypatch.setattr(scores, "_WASTE", 0.7)
        monkeypatch.setattr(scores, "_LOOKS", 1)
        monkeypatch.setattr(scores, "_GROUPING", 1)


LOSSES = [
    Squared(),
    Huber(0.7),
    Logistic(),
    SmoothedHinge(0.5),
    Weighted(Logistic(), (0.2, 1.0)),
    OneAgainstRest(Logistic(), 1),
]
SETS = [L1Ball(2.0), Simplex(3.0), L1Ball(1e-3)]


@st.composite
def runs(draw_):
    """A problem, its rows, and where theta moves."""
    n = draw_(st.integers(1, 30))
    p = draw_(st.integers(1, 12))
    rng = np.random.default_rng(draw_(st.integers(0, 2**32)))
    x = rng.uniform(-1, 1, (n, p)) * (rng.random((n, p)) < draw_(st.sampled_from([0.1, 0.5, 1])))
    if draw_(st.booleans()):
        x[:, rng.integers(p)] = 0.0
    if draw_(st.booleans()):
        x[rng.integers(n)] = rng.choice([np.nan, np.inf, -np.inf, 1e300], p)
    kind = draw_(st.sampled_from(["one", "each", "l2"]))
    bound = {"one": 1.0, "each": 10.0 ** rng.uniform(-3, 3, p), "l2": 0.8}[kind]
    bounds = Bounds(bound, 1.0, norm="l2" if kind == "l2" else "inf")
    if kind == "each":
        x = x * bound
    loss = draw_(st.sampled_from(LOSSES))
    if isinstance(loss, OneAgainstRest):
        y = rng.integers(0, 3, n).astype(float)
        bounds = Bounds(bound, 2.0, norm=bounds.norm)
    else:
        y = rng.choice([-1.0, 1.0], n) if loss.classifies else rng.uniform(-1, 1, n)
    problem = Problem(loss, draw_(st.sampled_from(SETS)), bounds, n_rows=n, n_features=p)
    rows = sparse.csr_array(np.where(np.isnan(x), 0, x)) if draw_(st.booleans()) else x
    epsilon = draw_(st.sampled_from([1e-3, 0.3, 5.0, 1e4, 1e9]))
    return problem, rows, y, epsilon, rng


def select_along(problem, engine, epsilon, rng, noise, steps=12):
    """Frank-Wolfe with an intercept that wanders, and now and then a new start."""
    theta, chosen = problem.set.start(), []
    for t in range(steps):
        query = VertexUtilities(problem, theta)
        index = ExponentialMechanism(epsilon).release(query, engine, noise)
        assert 0 <= index < problem.set.n_vertices
        chosen.append(index)
        vertex = problem.set.vertex(index)
        if t == 7:
            theta = Vector.of(theta.dense())
        offset = rng.normal() if rng.random() < 0.3 else theta.offset
        theta = theta.toward(vertex, 2 / (t + 2)).with_offset(offset)
    return chosen


@pytest.mark.not_quick
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(runs())
def test_no_score_exceeds_its_bounds(everywhere, run):
    problem, rows, y, epsilon, rng = run
    engine = LocalEngine(rows, y, problem.bounds)
    select_along(problem, engine, epsilon, rng, Noise(1))


@pytest.mark.not_quick
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(runs(), st.floats(0.01, 1.0), st.floats(0.01, 2.0))
def test_no_correlation_of_dense_rows_exceeds_its_bounds(everywhere, run, entry_limit, limit):
    problem, rows, y, epsilon, rng = run
    x = rows.toarray() if sparse.issparse(rows) else rows
    engine, noise = LocalEngine(x, y, problem.bounds), Noise(2)
    theta = Vector.zero(problem.n_features)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "MOST_KEPT", 0)  # or a copy is looked at in one pass
        for t in range(10):
            most = entry_limit if t != 5 else 1.0
            query = Correlations(problem, theta, limit * (1 + t % 3), most)
            index = ExponentialMechanism(epsilon).release(query, engine, noise)
            column = index % problem.n_features
            theta = theta.plus(Vector.unit(problem.n_features, column, 0.3 * rng.normal()))
            if t == 8:  # utilities of other units on the same engine
                other = VertexUtilities(problem, theta)
                ExponentialMechanism(epsilon).release(other, engine, noise)


def walked_by_products(monkeypatch):
    """A path over dense rows with the squared loss, watched."""
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    monkeypatch.setattr(local, "LazyScores", Watched)
    monkeypatch.setattr(local, "GRAM_COLUMNS_A_PASS", np.inf)
    rng = np.random.default_rng(12)
    x = rng.uniform(-1, 1, (400, 30))
    problem = Problem(Squared(), L1Ball(2.0), Bounds(1.0, 1.0), 400, 30)
    engine = LocalEngine(x, np.clip(x[:, 0] - x[:, 1], -1, 1), problem.bounds)
    select_along(problem, engine, 3.0, rng, Noise(3), steps=60)
    return engine


def test_inner_products_of_all_columns_take_the_place_of_passes(monkeypatch):
    engine = walked_by_products(monkeypatch)
    assert "_gram" in engine.__dict__
    assert engine._scores[X_STEPS].passes < 3  # where theta begins anew is the second


def test_wrong_inner_products_of_all_columns_are_noticed(monkeypatch):
    right = Gram.sums
    monkeypatch.setattr(Gram, "sums", lambda self, source: 1.001 * right(self, source))
    with pytest.raises(Broken):
        walked_by_products(monkeypatch)


# Broken twins of the bounds.


def small(body=None, epsilon=0.5, n=40, p=6, rows=sparse.csr_array):
    rng = np.random.default_rng(11)
    x, y = rng.uniform(-1, 1, (n, p)), rng.choice([-1.0, 1.0], n)
    problem = Problem(Logistic(), body or L1Ball(3.0), Bounds(1.0, 1.0), n, p)
    return problem, LocalEngine(rows(x), y, problem.bounds)


def no_drift(monkeypatch):
    monkeypatch.setattr(LazyScores, "_norms", lambda self, room: (0.0, 0.0))


def no_swap(monkeypatch):
    learn = LazyScores._learn

    def dropped(self, look):
        order = self._order.copy()
        learn(self, look)
        self._order = order

    monkeypatch.setattr(LazyScores, "_learn", dropped)


def stale_snapshot(monkeypatch):
    rest = LazyScores._set_rest

    def moved(self, multiples=None):
        self._snapshots = [self._snapshots[-1]._replace(slopes=self._slopes)]
        self._grouped, self._group_sizes = np.ones(1), np.zeros((1, 1))
        rest(self, np.ones(1))  # as if the scores were those of the present slopes

    monkeypatch.setattr(LazyScores, "_set_rest", moved)


def one_part(monkeypatch):
    parts = LazyScores._set_parts

    def alone(self):
        parts(self)
        self._other = 0 * self._other

    monkeypatch.setattr(LazyScores, "_set_parts", alone)


def near_enough(monkeypatch):
    closely = LazyScores.closely

    def nearer(self, group, candidate):
        found = closely(self, group, candidate)
        return None if found is None else (found[1], found[1])

    monkeypatch.setattr(LazyScores, "closely", nearer)


def no_way(monkeypatch):
    at = LazyScores.at

    def still(self, *given):
        at(self, *given)
        self._way_length = self._way_largest = 0.0

    monkeypatch.setattr(LazyScores, "at", still)


def low_groups(monkeypatch):
    group = LazyScores._group

    def lower(self):
        group(self)
        self._group_score = self._group_score - scores._WIDTH / self._factor

    monkeypatch.setattr(LazyScores, "_group", lower)


@pytest.mark.parametrize("everywhere", ["singles"], indirect=True)
@pytest.mark.parametrize("twin", [no_drift, no_swap, stale_snapshot, no_way, low_groups])
def test_broken_bounds_are_noticed(everywhere, twin, monkeypatch):
    problem, engine = small()
    monkeypatch.setattr(scores, "_LOOSE", 0.0)
    select_along(problem, engine, 0.5, np.random.default_rng(0), Noise(3))
    twin(monkeypatch)
    with pytest.raises(Broken):
        select_along(problem, engine, 0.5, np.random.default_rng(0), Noise(8), steps=200)


@pytest.mark.parametrize("everywhere", ["singles"], indirect=True)
@pytest.mark.parametrize("body", [L1Ball(3.0), Simplex(3.0)], ids=["ball", "simplex"])
def test_slopes_between_two_snapshots_have_scores_between(everywhere, body, monkeypatch):
    rng = np.random.default_rng(17)
    x, y = rng.uniform(-1, 1, (50, 9)), rng.uniform(-1, 1, 50)
    problem = Problem(Squared(), body, Bounds(1.0, 1.0), 50, 9)

    def known_between():
        engine = LocalEngine(sparse.csr_array(x), y, problem.bounds)
        theta = Vector.zero(9)
        for share in (0.9, 0.1, 0.1):
            known = engine.scores(VertexUtilities(problem, theta), 1.0)
            known.groups()
            known._take_snapshot()
            theta = theta.toward(problem.set.vertex(4), share)
        theta = theta.toward(Vector.zero(9), 0.6)
        return engine.scores(VertexUtilities(problem, theta), 1.0)

    known = known_between()
    known.groups()
    assert known._rest_length < 1e-3 * np.linalg.norm(known._slopes)
    one_part(monkeypatch)
    with pytest.raises(Broken):
        known_between().groups()


@pytest.mark.parametrize("everywhere", ["singles"], indirect=True)
def test_a_quick_look_that_claims_too_much_is_noticed(everywhere, monkeypatch):
    problem, engine = small(rows=np.asarray, p=60)  # more than are kept
    monkeypatch.setattr(scores, "_SLIGHT", 1e9)
    select_along(problem, engine, 0.5, np.random.default_rng(0), Noise(3))
    looks = []
    monkeypatch.setattr(scores, "Look", lambda *args: looks.append(args[3]))
    select_along(problem, engine, 0.5, np.random.default_rng(0), Noise(3))
    assert any(off > 0 for off in looks)  # there were quick ones
    near_enough(monkeypatch)
    with pytest.raises(Broken):
        select_along(problem, engine, 0.5, np.random.default_rng(0), Noise(8), steps=200)


# The envelope and the coins.


class Fixed(Scores):
    """Scores of a few groups that are known exactly."""

    def __init__(self, groups, symmetric=False):
        self._groups, self.symmetric = groups, symmetric

    def groups(self):
        return (
            np.array([len(group) for group in self._groups]),
            np.array([max(map(abs, g)) if self.symmetric else max(g) for g in self._groups]),
        )

    def candidate(self, group, place):
        return sum(len(each) for each in self._groups[:group]) + place

    def exactly(self, group, candidate):
        return [value for each in self._groups for value in each][candidate]

    def between(self, group, candidate):
        return (self.exactly(group, candidate),) * 2


UNITS = Scale(1.0, 0.5)

LEVELS = [
    [[0.0, -1.0], [-0.5], [-30.0, -31.0], [-900.0]],
    [[2.0**39], [2.0**39 - 1.0, 0.0], [-(2.0**39)]],
    [[1e-300, -1e-300]],
    [[-745.0], [-746.0, -800.0]],
]


@pytest.mark.parametrize("symmetric", [False, True], ids=["listed", "symmetric"])
@pytest.mark.parametrize("levels", LEVELS, ids=str)
def test_the_envelope_is_above_every_weight(levels, symmetric):
    known = Fixed(levels, symmetric)
    envelope = Envelope(known, UNITS.factor)
    counts = known.groups()[0]
    assert 2**59 < envelope.total == int(counts @ envelope.heights) < 2**62
    with mpmath.workprec(400):
        for group, values in enumerate(levels):
            for value in values:
                v = abs(mpmath.mpf(value)) if symmetric else mpmath.mpf(value)
                log = v + mpmath.log1p(mpmath.exp(-2 * v)) if symmetric else v
                exact = envelope.exact_probability(mpmath.mp, group, log)
                assert 0 < exact < 1
                float_one = envelope.probability(group, rejection.log_weight(value, symmetric))
                assert abs(float_one - exact) < rejection.band(value) / 4


def test_an_envelope_that_is_a_step_too_low_is_noticed():
    # Without the step up, a candidate far below the best is never proposed.
    envelope = Envelope(Fixed(LEVELS[0]), UNITS.factor)
    assert (envelope.heights - 1).min() == 0


class Scripted(Noise):
    """Given words first, then the same one for ever."""

    def __init__(self, words, then):
        super().__init__(seed=0)
        self._given, self._then = list(words), then

    def words(self, n):
        first, self._given = self._given[:n], self._given[n:]
        # A block is used from its end.
        given = np.array(first + [self._then] * (n - len(first)), dtype="<u8")
        return given[::-1] if n > 1 else given


@pytest.mark.parametrize("gap", [30.0, 45.0, 700.0])
def test_no_candidate_is_impossible(gap):
    # The second of a group has a chance far below the first bits of a coin. It is proposed, and all
    # bits of its coin are 0 as long as the test can tell.
    known = Fixed([[0.0, -gap]])
    total = Envelope(known, UNITS.factor).total
    assert draw(known, UNITS, Scripted([total - 1, 0], then=0)) == SignedCandidate(1, True)


def test_a_coin_turns_at_exactly_the_right_bit():
    # The probability of the second candidate, to 300 bits, is where its coin must turn.
    known = Fixed([[0.0, -3.0]])
    envelope = Envelope(known, UNITS.factor)
    with mpmath.workprec(500):
        chance = envelope.exact_probability(mpmath.mp, 0, mpmath.mpf(-3.0))
        cell = int(mpmath.floor(chance * mpmath.mpf(2) ** (52 + 64 * 4)))
    for step, accepted in ((-(2**8), True), (2**8, False)):
        bits = cell + step
        first, rest = bits >> 256, [(bits >> (64 * k)) & (2**64 - 1) for k in (3, 2, 1, 0)]

        class Coins(Noise):
            """The block of words, then the refinements."""

            def __init__(self, first=first, rest=rest):
                super().__init__(seed=0)
                self._rest = list(rest)
                self._block = [envelope.total - 1, first << 12, 0, 0]  # then the first candidate

            def words(self, n):
                if n == 1:
                    return np.array([self._rest.pop(0)], dtype="<u8")
                block = self._block + [2**63] * (n - len(self._block))
                return np.array(block[::-1], dtype="<u8")

        assert draw(known, UNITS, Coins()).candidate == int(accepted)


def test_numbers_below_a_total_are_uniform():
    total = 3 * 2**60
    words = rejection._Words(Scripted([2**64 - 1, 15 * 2**60, 15 * 2**60 - 1], then=5))
    assert words.below(total) == total - 1  # two words beyond the last multiple are thrown away
    assert words.below(total) == 5


# What the rules depend on.


def test_whether_margins_are_followed_depends_on_public_numbers_alone(monkeypatch):
    n, p = 300, 200
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), n, p)
    query = Gradient(problem, Vector.zero(p))
    for few in (1, 3_599, 3_600, 3_601, 60_000, 60_001):
        monkeypatch.setattr(local, "FEW_ENTRIES", few)
        kinds = [
            [LocalEngine(rows(x), np.ones(len(x)), problem.bounds)._many(query) for x in data]
            for rows in (np.asarray, sparse.csr_array)
            for data in [(np.ones((n, p)), np.zeros((n, p)), np.ones((n + 1, p)))]
        ]
        assert all(len(set(each)) == 1 for each in kinds)
        assert kinds[0][0] == (few <= 60_000)
        assert kinds[1][0] == (few <= 3_600)


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_margin_of_a_row_does_not_depend_on_other_rows(rows, monkeypatch):
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    rng = np.random.default_rng(12)
    x, y = rng.uniform(-1, 1, (30, 8)), rng.uniform(-1, 1, 30)
    other = x.copy()
    other[7] = [np.inf, -1.0, np.nan, 0.0, 0.0, 1e300, 0.1, 0.0]
    problem = Problem(Squared(), L1Ball(2.0), Bounds(np.linspace(0.1, 3, 8), 1.0), 30, 8)
    engines = [LocalEngine(rows(each), y, problem.bounds) for each in (x, other)]
    theta = problem.set.start()
    for t in range(60):
        query = VertexUtilities(problem, theta)
        for engine in engines:
            ExponentialMechanism(1.0).release(query, engine, Noise(t))
        ours, theirs = (engine._margins.of(query.gradient) for engine in engines)
        np.testing.assert_array_equal(np.delete(ours, 7), np.delete(theirs, 7))
        vertex = problem.set.vertex(int(rng.integers(16)))
        theta = theta.toward(vertex, 2 / (t + 2)).with_offset(0.01 * t)
    gridded = Gradient(problem, theta).margins(Block(engines[0]._x, y))
    np.testing.assert_allclose(engines[0]._margins.of(Gradient(problem, theta)), gridded, atol=1e-9)


def test_extreme_numbers_go_the_plain_way(monkeypatch):
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    problem, engine = small()
    query = VertexUtilities(problem, Vector.zero(6))
    assert engine.scores(query, 1.0) is not None
    assert engine.scores(query, 1e15) is None
    for limit in (1e-130, 1e-101):
        tiny = Correlations(problem, Vector.zero(6), limit, 1.0)
        assert engine.scores(tiny, 1.0) is None
    for epsilon in (1e10, 1e12):
        assert ExponentialMechanism(epsilon).release(query, engine, Noise(4)) < 12


def test_scores_are_kept_as_long_as_they_are_of_use(monkeypatch):
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    monkeypatch.setattr(scores, "_WASTE", 0.7)
    problem, engine = small()
    theta = Vector.zero(6)

    def passes(query):
        before = engine._scores[query.most].passes if query.most in engine._scores else 0.0
        return engine.scores(query, 0.1).passes - before

    def utilities(theta, polytope=problem.set):
        return VertexUtilities(replace(problem, set=polytope), theta)

    assert passes(utilities(theta)) == 1  # the first one
    assert passes(utilities(theta)) == 0  # the same again
    assert passes(utilities(theta.with_offset(1.0))) == 0
    moved = theta.toward(problem.set.vertex(2), 0.5)
    assert passes(utilities(moved)) == 0
    assert passes(utilities(moved, L1Ball(1.0, 6))) == 1  # utilities of another radius
    assert passes(utilities(moved, Simplex(1.0, 6))) == 1  # and without their negatives
    assert passes(utilities(Vector.zero(6))) == 1  # another beginning


@pytest.mark.not_quick
@pytest.mark.parametrize("everywhere", ["singles"], indirect=True)
@pytest.mark.parametrize("place", ["_group", "between", "_norms"])
def test_an_interrupt_leaves_nothing_half_known(everywhere, place, monkeypatch):
    monkeypatch.setattr(scores, "_LOOSE", 0.0)
    problem, engine = small()
    for seed in range(30):
        calls, real = np.random.default_rng(seed).integers(1, 40), getattr(Watched, place)

        with monkeypatch.context() as patch:
            patch.setattr(Watched, place, interrupted_at(calls, real))
            with contextlib.suppress(KeyboardInterrupt):
                select_along(problem, engine, 0.5, np.random.default_rng(seed), Noise(seed))
        select_along(problem, engine, 0.5, np.random.default_rng(seed), Noise(seed), steps=3)


# Degenerate rows.


@pytest.mark.parametrize("everywhere", ["snapshots"], indirect=True)
@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("body", [L1Ball(1.0), Simplex(1.0)], ids=["ball", "simplex"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (4, 4)])
@pytest.mark.parametrize("filled", [0.0, 1.0])
def test_degenerate_rows_give_a_candidate(everywhere, rows, body, shape, filled):
    n, p = shape
    problem = Problem(Squared(), body, Bounds(1.0, 1.0), n, p)
    for y in (np.zeros(n), np.ones(n)):  # with 0 all slopes at 0 are 0
        engine = LocalEngine(rows(np.full((n, p), filled)), y, problem.bounds)
        for epsilon in (1e-6, 1.0, 1e6):
            select_along(problem, engine, epsilon, np.random.default_rng(0), Noise(5), steps=6)


def test_sums_of_more_rows_than_float64_can_add_are_exact():
    n = BLOCK_ROWS + 3
    x = np.full((n, 1), float(X_STEPS))
    x[::2] -= 1
    slopes = np.full(n, float(MOST_SLOPE_STEPS))
    slopes[::3] -= 1
    exact = int((x[:, 0].astype(np.int64) * slopes.astype(np.int64)).sum())
    for rows in (x, sparse.csr_array(x)):
        columns = SparseColumns(rows)
        assert columns.sum(0, slopes) == exact
        known = LazyScores(columns)
        error = abs(float(columns.sums(slopes)[0]) - exact)
        assert error <= known._rounding / 4 * columns.sizes[0] * MOST_SLOPE_STEPS
        assert columns.sizes[0] >= int(np.abs(x).astype(np.int64).sum())
        assert columns.lengths[0] ** 2 >= int(np.square(x.astype(np.int64)).sum())


@pytest.mark.parametrize("most", [X_STEPS, 1_000, 1])
def test_columns_are_those_of_the_rows(most):
    rng = np.random.default_rng(13)
    x = np.rint(rng.uniform(-1, 1, (50, 9)) * X_STEPS) * (rng.random((50, 9)) < 0.5)
    cut, slopes = np.clip(x, -most, most), np.rint(rng.normal(0, 1e4, 50))
    for rows in (x, sparse.csr_array(x)):
        columns = SparseColumns(rows).clipped(most)
        np.testing.assert_array_equal(columns.sums(slopes), cut.T @ slopes)
        for j in range(9):
            assert columns.sum(j, slopes) == int(cut[:, j] @ slopes)
            dense = np.zeros(50)
            where, entries = columns.entries(j)
            dense[where] = entries
            np.testing.assert_array_equal(dense, cut[:, j])
        np.testing.assert_allclose(columns.sizes, np.abs(cut).sum(axis=0), rtol=1e-8)
        np.testing.assert_allclose(columns.lengths, np.linalg.norm(cut, axis=0), rtol=1e-8)


# Queries about margins and a few columns.


def margin_queries(problem, theta):
    columns = Support(np.array([1, 4, 6]), problem.bounds)
    on = (theta, 0.7, columns, 0.9, 0.5)
    return [
        MeanSlope(problem, theta),
        LimitedSlope(problem, theta, 0.4),
        SlopeSizes(problem, theta),
        Coordinate(problem, theta, 0.6, 0.5, 4),
        Coordinate(problem, theta, 0.6, 0.5, 7),  # a column of zeros
        SupportGradient(problem, *on),
        SupportCurvature(problem, *on),
        Improvement(problem, theta, Vector.zero(theta.size).with_offset(0.1), 0.8),
        LengthSizes(problem, columns),
    ]


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("block_rows", [BLOCK_ROWS, 7])
def test_known_rows_give_the_sums_of_plain_ones(rows, block_rows, monkeypatch):
    rng = np.random.default_rng(15)
    n, p = 90, 8
    x = rng.uniform(-1, 1, (n, p)) * (rng.random((n, p)) < 0.6)
    x[:, 7] = 0.0
    y = rng.choice([-1.0, 1.0], n)
    problem = Problem(Logistic(), L1Ball(4.0), Bounds(np.linspace(0.2, 1, p), 1.0), n, p)
    plain, known = (
        LocalEngine(rows(x), y, problem.bounds, block_rows=block_rows) for _ in range(2)
    )
    theta = Vector.of(rng.normal(size=p)).with_offset(0.3)
    for moved in (theta, theta.plus(Vector.unit(p, 2, 0.4)), theta.with_offset(-1.0)):
        for query in margin_queries(problem, moved):
            monkeypatch.setattr(local, "FEW_ENTRIES", 2**60)
            expected = plain.total(query)
            monkeypatch.setattr(local, "FEW_ENTRIES", 0)
            named = isinstance(query, LengthSizes)  # columns, and no inner products
            assert known._by_columns(query) == (rows is not np.asarray or not named)
            found = known.total(query)
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, expected)


def test_a_greedy_search_follows_its_margins(monkeypatch):
    rng = np.random.default_rng(16)
    n, p = 4_000, 60
    x = (rng.random((n, p)) < 0.3).astype(float)
    y = np.where(x[:, 0] + x[:, 1] - 2 * x[:, 2] + rng.normal(0, 0.3, n) > 0, 1.0, -1.0)
    problem = Problem(Logistic(), L1Ball(20.0), Bounds(1.0, 1.0), n, p, fit_intercept=True)
    plan = PrivateGreedy().plan(problem, Budget(5.0, 1e-6))
    for few in (2**60, 0):
        monkeypatch.setattr(local, "FEW_ENTRIES", few)
        engine = LocalEngine(sparse.csr_array(x), y, problem.bounds)
        curator = Curator(engine, plan.adaptive_budget, Noise(9), adaptive=True)
        theta = PrivateGreedy().run(plan, problem, curator).theta
        assert {0, 1, 2} <= set(np.argsort(-np.abs(theta.dense()))[:3].tolist())
        assert theta.dense()[:3] @ [1, 1, -2] > 5
    assert "_followed" in engine.__dict__  # the selections were made from sums that follow


# The limit of no noise, and many threads.


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("body", [L1Ball(5.0), Simplex(5.0)], ids=["ball", "simplex"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=["squared", "logistic"])
def test_with_next_to_no_noise_the_best_vertex_is_selected(rows, body, loss, monkeypatch):
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    rng = np.random.default_rng(14)
    n, p = 200, 30
    x, y = rng.uniform(-1, 1, (n, p)), rng.choice([-1.0, 1.0], n)
    problem = Problem(loss, body, Bounds(1.0, 1.0), n, p)
    engine, plain = (LocalEngine(rows(x), y, problem.bounds) for _ in range(2))
    theta, ties, noise = problem.set.start(), 0, Noise(6)
    for t in range(150):
        query = VertexUtilities(problem, theta)
        chosen = ExponentialMechanism(1e9).release(query, engine, noise)
        values = query.from_total(plain.total(query))
        values = np.concatenate([values, -values]) if query.symmetric else values
        best = int(values.argmax())
        if chosen != best:  # margins that were followed round otherwise: a few steps of slopes
            ties += 1
            assert values[best] - values[chosen] <= 4 / n * 2.0**-16 * query.row_bound("linf")
        theta = theta.toward(problem.set.vertex(chosen), 2 / (t + 2))
    assert ties <= 3


def test_threads_take_turns(monkeypatch):
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    monkeypatch.setattr(local, "LazyScores", Watched)
    problem, engine = small(n=20, p=4)
    curator = Curator(engine, compose((BoundedRange(0.5), 80)), Noise(7))
    failed = []

    def run(seed):
        rng, theta = np.random.default_rng(seed), problem.set.start()
        try:
            for _ in range(20):
                query = VertexUtilities(problem, theta)
                chosen = curator.release(query, ExponentialMechanism(0.5))
                theta = theta.toward(problem.set.vertex(chosen), rng.random())
        except Exception as error:  # shown by the thread that started this one
            failed.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
