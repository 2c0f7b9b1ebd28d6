"""Class counts and the queries of a calibration keep their bounds on hostile rows, exactly.

Rows go through `LocalEngine`, as in a fit, and every comparison is one of `Fraction`s. Each query
has a broken twin with half the sensitivity, which the same tests must catch.
"""

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.losses import Logistic, OneAgainstRest, Weighted
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.queries import ClassCounts, MarginCounts, MarginSlopes
from riata.sets import L1Ball
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=13)

P, K = 4, 3
PLAIN = OneAgainstRest(Logistic(), 1)
LOSSES = [PLAIN, Weighted(PLAIN, (0.3, 7.0, 1.1)), Weighted(PLAIN, (5.0, 1e-3, 2.0))]
BOUNDS = [
    Bounds(0.9, float(K)),
    Bounds([0.3, 1.0, 2.5, 1e-3], float(K)),
    Bounds(1.4, float(K), norm="l2"),
]
NORMS = ("l1", "l2", "linf")
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])


def hostile(rng, n=14):
    """Corners, short rows, empty rows and rubbish, and codes that are none."""
    rubbish = np.array([0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.01, -0.01, 1.0, -1.0])
    near = rng.standard_normal((n, P)) * 10.0 ** rng.integers(-6, 3, (n, 1))
    corners = rng.choice([-1e9, 1e9], (n, P))
    x = np.vstack([corners, near, rng.choice(rubbish, (n, P)), np.zeros((3, P))])
    y = rng.choice([-1.0, 0.0, 1.0, 2.0, 0.5, 9.0, -9.0, np.nan, np.inf], len(x))
    return x, y


def points(rng):
    yield Vector.zero(P)
    yield Vector.zero(P).with_offset(-2.5)
    yield Vector.of(rng.standard_normal(P)).with_offset(0.4)
    yield Vector.of(100 * rng.standard_normal(P)).with_offset(-1.0)


def queries(problem, rng):
    yield ClassCounts(problem, K)
    for theta in points(rng):
        yield MarginCounts(problem, theta)
        for cut, line in ((1e-3, (0.2, 0.0)), (2.0, (-3.0, 5.0)), (500.0, (400.0, -1.0))):
            yield MarginSlopes(problem, theta, cut, line)


def squares(changes, norm):
    """The square of the length of each row of whole numbers, exactly."""
    changes = np.asarray(changes, dtype=object)
    if norm == "l2":
        return (changes * changes).sum(axis=1)
    sizes = np.abs(changes)
    return (sizes.sum(axis=1) if norm == "l1" else sizes.max(axis=1)) ** 2


def answers(query, bounds, x, y, layout=np.asarray):
    """What each row alone adds to the sum: whole numbers."""
    rows = (LocalEngine(layout(x[[i]]), y[[i]], bounds).total(query) for i in range(len(y)))
    return np.unique(np.array([np.asarray(total) for total in rows]), axis=0)


def worst_ratio(query, alone, norm):
    """The largest change between neighbours over the sensitivity, squared, exactly."""
    allowed = Fraction(query.sensitivity(norm)) ** 2
    changes = alone
    if query.adjacency == REPLACE_ONE:
        pairs = itertools.combinations(range(len(alone)), 2)
        changes = [alone[i] - alone[j] for i, j in pairs] or [0 * alone[0]]
    return int(max(squares(changes, norm))) * Fraction(float(query.unit)) ** 2 / allowed


@every_loss
@every_bound
@every_adjacency
def test_no_neighbour_exceeds_the_sensitivity(loss, bounds, adjacency):
    rng = np.random.default_rng(50)
    x, y = hostile(rng)
    problem = Problem(loss, L1Ball(1.0), bounds, 3, P, adjacency)
    for query in queries(problem, rng):
        alone = answers(query, bounds, x, y)
        for norm in NORMS:
            assert worst_ratio(query, alone, norm) <= 1
        if query.nonnegative_inner:
            assert np.all(alone.astype(object) @ alone.T.astype(object) >= 0)


@every_adjacency
@pytest.mark.parametrize("norm", NORMS)
def test_a_worst_pair_reaches_each_sensitivity(adjacency, norm):
    bounds, loss = Bounds(1.0, float(K)), LOSSES[1]
    problem = Problem(loss, L1Ball(1.0), bounds, 4, P, adjacency)
    theta = Vector.unit(P, 0, 3.0)
    x = np.zeros((4, P))
    x[:, 0] = [1, -1, 1, -1]
    y = np.array([1.0, 1.0, 1.0, 0.0])
    reached = {
        # Of two counts in different cells no single one changes by more than one row.
        ClassCounts(problem, K): 1 if norm != "linf" or adjacency == ADD_REMOVE else 1 / 4,
        MarginCounts(problem, theta): 1 if norm != "linf" or adjacency == ADD_REMOVE else 1 / 4,
    }
    for query, expected in reached.items():
        found = worst_ratio(query, answers(query, bounds, x, y), norm)
        assert 0.999 * expected <= found <= expected
    # A positive row on the wrong side, and its opposite, where both labels weigh the same.
    same = Problem(PLAIN, L1Ball(1.0), bounds, 4, P, adjacency)
    query = MarginSlopes(same, theta, 3.0, (0.0, 0.0))
    y = np.array([1.0, 0.0, 0.0, 1.0])
    found = worst_ratio(query, answers(query, bounds, x, y), norm)
    assert 0.999 <= found <= 1


@dataclass(frozen=True, eq=False)
class HalfClassCounts(ClassCounts):
    def row_bound(self, norm):
        return super().row_bound(norm) / 2


@dataclass(frozen=True, eq=False)
class HalfMarginCounts(MarginCounts):
    def row_bound(self, norm):
        return super().row_bound(norm) / 2


@dataclass(frozen=True, eq=False)
class HalfMarginSlopes(MarginSlopes):
    def row_bound(self, norm):
        return super().row_bound(norm) / 2


@dataclass(frozen=True, eq=False)
class NonnegativeMarginSlopes(MarginSlopes):
    nonnegative_inner = True  # it is not: two rows can point in opposite directions


@pytest.mark.parametrize(
    "twin", [HalfClassCounts, HalfMarginCounts, HalfMarginSlopes, NonnegativeMarginSlopes]
)
@every_adjacency
def test_a_broken_twin_is_caught(twin, adjacency):
    if twin is NonnegativeMarginSlopes and adjacency == ADD_REMOVE:
        pytest.skip("with one row there is no angle")
    bounds = Bounds(1.0, float(K))
    x = np.zeros((4, P))
    x[:, 0] = [1, -1, 1, -1]
    y = np.array([1.0, 1.0, 0.0, 0.0])
    theta = Vector.unit(P, 0, 3.0)
    problem = Problem(PLAIN, L1Ball(1.0), bounds, 4, P, adjacency)
    about = {HalfClassCounts: (K,), HalfMarginCounts: (theta,)}
    query = twin(problem, *about.get(twin, (theta, 3.0, (0.0, 0.0))))
    assert worst_ratio(query, answers(query, bounds, x, y), "l2") > 1


@every_loss
@every_bound
def test_sums_depend_neither_on_blocks_nor_on_order_nor_on_storage(loss, bounds):
    rng = np.random.default_rng(51)
    x, y = hostile(rng)
    problem = Problem(loss, L1Ball(1.0), bounds, len(x), P)
    for query in queries(problem, rng):
        for layout in (np.asarray, sparse.csr_array):
            expected = LocalEngine(layout(x), y, bounds).total(query)
            order = rng.permutation(len(x))
            engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=7)
            np.testing.assert_array_equal(engine.total(query), expected)


def test_counts_are_counts():
    bounds = Bounds(1.0, float(K))
    problem = Problem(LOSSES[1], L1Ball(1.0), bounds, 6, P)
    y = np.array([0.0, 1.0, 1.0, 2.0, -1.0, 0.5])
    counts = ClassCounts(problem, K)
    total = LocalEngine(np.zeros((6, P)), y, bounds).total(counts)
    np.testing.assert_allclose(counts.from_total(total), [1 / 6, 2 / 6, 1 / 6])
    x = np.zeros((6, P))
    x[:, 0] = [1, -1, 0.5, 0.26, 0, 1]
    query = MarginCounts(problem, Vector.unit(P, 0, 2.0))
    table = query.from_total(LocalEngine(x, y, bounds).total(query))
    margins, weights = query.sizes(), np.array([0.3, 7.0, 7.0, 1.1, 0.3, 0.3])
    assert table.sum() == pytest.approx(weights.sum() / 6, rel=1e-4)
    assert table[1].sum() == pytest.approx(14 / 6, rel=1e-4)  # the positive label is code 1
    assert table[1, margins < 0].sum() == pytest.approx(7 / 6, rel=1e-4)
    assert np.all(np.diff(margins) >= 0)
    assert margins[-1] == 2.0


def test_slopes_of_the_identity_are_those_of_the_risk():
    bounds = Bounds(1.0, float(K))
    rng = np.random.default_rng(52)
    x, y = rng.uniform(-1, 1, (50, P)), rng.integers(0, K, 50).astype(float)
    theta = Vector.of(rng.standard_normal(P)).with_offset(0.3)
    margins = x @ theta.dense() + 0.3
    problem = Problem(LOSSES[2], L1Ball(1.0), bounds, 50, P)
    cut = 10.0
    query = MarginSlopes(problem, theta, cut, (cut, 0.0))
    found = query.from_total(LocalEngine(x, y, bounds).total(query))
    slopes = LOSSES[2].slope(margins, y)
    np.testing.assert_allclose(found, [slopes @ margins / cut / 50, slopes.mean()], atol=1e-3)
