"""Sums, gradients and lines of all classes keep their bounds on hostile rows, in exact arithmetic.

Every comparison is one of `Fraction`s: no tolerance for rounding is left.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.losses import Softmax, Weighted
from riata.privacy.budget import ADD_REMOVE
from riata.problem import Problem
from riata.queries import (
    Block,
    Influence,
    MarginLengths,
    Scaling,
    SoftmaxGradient,
    SoftmaxLine,
    SumsByClass,
    class_sums,
)
from riata.queries import softmax as module
from riata.sets import L2Ball
from riata.vectors import Vector

from exact_neighbours import (
    NORMS,
    assert_no_neighbour_exceeds,
    assert_same_sums,
    every_adjacency,
    every_layout,
    exceeds,
    hostile_classes,
    squared_share,
    summands,
)

pytestmark = pytest.mark.matrix(one_in=5)

P, K = 5, 4
BOUNDS = [
    Bounds(1.4, float(K), norm="l2"),
    Bounds(0.9, float(K), nonnegative=True),
    Bounds([0.3, 1.0, 2.5, 1e-3, 1.0], float(K)),
]
LOSSES = [Softmax(K), Weighted(Softmax(K), (0.3, 2.0, 1.0, 0.7))]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=repr)


def hostile(rng):
    return hostile_classes(rng, 5, P, [0.0, 1.0, 2.0, 3.0, 0.5])


def models(rng, size):
    thetas = size * rng.standard_normal((K, P))
    return tuple(
        Vector.of(t).with_offset(float(b)) for t, b in zip(thetas, thetas[:, 0], strict=True)
    )


def some_queries(problem, rng):
    columns = np.array([0, 1, 3])
    scaling = Scaling.of(P, columns, rng.uniform(-0.9, 0.9, 3), rng.uniform(0.01, 2, 3))
    yield SumsByClass(problem, 0.1)
    for size in (0.0, 1.0, 1e6, 1e300):
        thetas = models(rng, size)
        influence = Influence(scaling, 2.0, rng.uniform(0, 3, K))
        yield SoftmaxGradient(problem, thetas, 1.0, scaling, 0.8, 0.7)
        yield SoftmaxGradient(problem, thetas, 9.0, scaling, 1e-3, 0.0)
        yield SoftmaxLine(problem, thetas, influence, 0.3, 2.0, rng.standard_normal(K))
        yield SoftmaxLine(problem, thetas, influence, 1e-9, 1e200, np.zeros(K))
        yield MarginLengths(problem, thetas)


@every_loss
@every_bound
@every_adjacency
@every_layout
def test_no_hostile_neighbour_exceeds_the_sensitivity(loss, bounds, adjacency, layout):
    rng = np.random.default_rng(50)
    x, y = hostile(rng)
    problem = Problem(loss, L2Ball(1.0), bounds, 3, P, adjacency)
    for query in some_queries(problem, rng):
        assert_no_neighbour_exceeds(query, summands(query, x, y, layout), NORMS)


@every_loss
def test_the_sensitivity_does_not_depend_on_the_number_of_classes(loss):
    del loss
    bounds, found = Bounds(1.0, 99.0, norm="l2"), set()
    scaling = Scaling.of(P, np.arange(P), np.zeros(P), np.ones(P))
    for k in (3, 10, 77):
        problem = Problem(Softmax(k), L2Ball(1.0), bounds, 100, P)
        thetas = (Vector.zero(P),) * k
        influence = Influence(scaling, 1.0, np.zeros(k))
        gradient = SoftmaxGradient(problem, thetas, 2.0, scaling, 1.0, 0.5)
        line = SoftmaxLine(problem, thetas, influence, 1.0, 1.0, np.zeros(k))
        each = (SumsByClass(problem, 0.1), gradient, line)
        found.add(tuple(query.sensitivity("l2") for query in each))
    assert len(found) == 1


def test_worst_pairs_reach_the_sensitivity():
    bounds = Bounds(1.4, float(K), norm="l2")
    problem = Problem(Softmax(K), L2Ball(1.0), bounds, 2, P)
    row = np.eye(P)[0] * 1.4
    sums = SumsByClass(problem, 0.1)
    assert 0.999 <= squared_share(sums, (row, 0.0), (row, 1.0)) <= 1
    # One class is certain and it is the other one: the slope is sqrt(2) long, and turns round.
    far = Vector.of(np.zeros(P))
    thetas = (far.with_offset(500.0), far, far.with_offset(-500.0), far.with_offset(-500.0))
    scaling = Scaling.of(P, np.arange(P), np.zeros(P), np.ones(P))
    gradient = SoftmaxGradient(problem, thetas, 2.0, scaling, 1.0, 0.0)
    assert 0.999 <= squared_share(gradient, (row, 1.0), (-row, 1.0)) <= 1
    short = SoftmaxGradient(problem, thetas, 1.0, scaling, 1.0, 0.0)
    assert short.sensitivity("l2") == pytest.approx(gradient.sensitivity("l2") / math.sqrt(2))
    assert 0.999 <= squared_share(short, (row, 1.0), (-row, 1.0)) <= 1
    influence = Influence(scaling, 1.0, np.zeros(K))
    tall = (Vector.of(np.eye(P)[0] * 99), Vector.of(-np.eye(P)[0] * 99), far, far)
    line = SoftmaxLine(problem, tall, influence, 1e-3, 40.0, np.zeros(K))
    assert 0.9 <= squared_share(line, (row, 1.0), (row, 0.0)) / Fraction(1, 4) <= 1.2


def broken(monkeypatch, name, change):
    original = getattr(module.OfClasses, name)
    monkeypatch.setattr(module.OfClasses, name, change(original))


def _cut_by_entries(self, block):
    centred = self.models.centred(self.models.margins(block)) / self.cut
    return np.trunc(np.clip(centred, -1.0, 1.0) * 2**16)


@every_layout
@pytest.mark.parametrize("twin", ["opposite rows", "two classes", "whole slopes", "long places"])
def test_broken_twins_are_caught(monkeypatch, layout, twin):
    rng = np.random.default_rng(51)
    x, y = hostile(rng)
    problem = Problem(Softmax(K), L2Ball(1.0), BOUNDS[0], 3, P)
    queries = list(some_queries(problem, rng))
    if twin == "opposite rows":
        query, y = queries[0], np.ones(len(y))
        monkeypatch.setattr(class_sums, "_without_negatives", lambda rows: rows)
    elif twin == "two classes":
        query = queries[0]
        monkeypatch.setattr(class_sums, "in_classes", lambda loss, y: np.ones((K, len(y))))
    elif twin == "whole slopes":  # each other class has the whole slope
        scaling = Scaling.of(P, np.arange(P), np.zeros(P), np.ones(P))
        query = SoftmaxGradient(problem, models(rng, 1.0), 9.0, scaling, 0.5, 0.0)
        broken(
            monkeypatch, "slopes_of", lambda of: lambda self, c, y: np.sign(of(self, c, y)) * 2**20
        )
    else:  # z is cut entry by entry, and not as a whole
        problem = Problem(Softmax(K), L2Ball(1.0), BOUNDS[0], 3, P, ADD_REMOVE)
        influence = Influence(
            Scaling.of(P, np.arange(P), np.zeros(P), np.ones(P)), 1.0, np.zeros(K)
        )
        query = SoftmaxLine(problem, models(rng, 1e6), influence, 0.3, 40.0, np.zeros(K))
        assert not exceeds(query, summands(query, x, y, layout), "l2")
        monkeypatch.setattr(module.SoftmaxLine, "places", _cut_by_entries)
    assert exceeds(query, summands(query, x, y, layout), "l2")


@pytest.mark.not_quick
@every_loss
@every_bound
def test_dense_and_sparse_rows_have_the_same_sums_whatever_the_blocks(loss, bounds):
    rng = np.random.default_rng(53)
    x, y = hostile(rng)
    x[rng.random(x.shape) < 0.5] = 0.0
    x = 0.99 * bounds.clip_x(x)
    problem = Problem(loss, L2Ball(1.0), bounds, len(x), P)
    assert_same_sums(list(some_queries(problem, rng)), x, y, bounds, rng)


def test_lines_of_one_engine_are_their_own():
    rng = np.random.default_rng(55)
    x, y = hostile(rng)
    problem = Problem(Softmax(K), L2Ball(1.0), BOUNDS[0], len(x), P)
    scaling = Scaling.of(P, np.arange(P), np.zeros(P), np.ones(P))
    influences = [Influence(scaling, 1.0, np.full(K, size)) for size in (0.0, 0.5)]
    shared, found = LocalEngine(x, y, BOUNDS[0]), []
    for thetas in (models(rng, 1.0), models(rng, 1.0)):
        for influence, cut, scale in itertools.product(influences, (0.3, 5.0), (1.0, 4.0)):
            line = SoftmaxLine(problem, thetas, influence, cut, scale, np.zeros(K))
            found.append(shared.total(line))
            alone = LocalEngine(x, y, BOUNDS[0]).total(line)
            np.testing.assert_array_equal(found[-1], alone)
    assert len(np.unique(found, axis=0)) == len(found)


@every_loss
def test_a_gradient_and_a_line_are_those_of_the_loss(loss):
    rng = np.random.default_rng(54)
    n, bounds = 60, Bounds(2.0, float(K), norm="l2")
    x, y = rng.uniform(-0.4, 0.4, (n, P)), rng.choice([-1.0, 0.0, 1.0, 2.0, 3.0], n)
    problem = Problem(loss, L2Ball(1.0), bounds, n, P)
    thetas, engine = models(rng, 1.0), LocalEngine(x, y, bounds)
    margins = np.column_stack([theta.margins(x) for theta in thetas])
    slopes = loss.slope(margins, y)
    centre, variances = rng.uniform(-0.1, 0.1, P), rng.uniform(0.5, 2.0, P)
    scaling = Scaling.of(P, np.arange(P), centre, variances)
    gradient = SoftmaxGradient(problem, thetas, 9.0, scaling, 9.0, 0.5)
    z = np.column_stack([(x / 2.0 - centre) / np.sqrt(variances), np.full(n, 0.5)])
    found = gradient.from_total(engine.total(gradient))
    np.testing.assert_allclose(found, slopes.T @ z / n, atol=2e-4)

    influence = Influence(scaling, 9.0, np.zeros(K))
    line = SoftmaxLine(problem, thetas, influence, 50.0, 30.0, np.arange(K) / 7)
    found = line.from_total(engine.total(line))
    z = (margins - margins.mean(axis=1, keepdims=True)) / 50.0
    risk = lambda a, b: loss.value(a * z + b, y).mean()  # noqa: E731
    a, b, h = 30.0, np.arange(K) / 7, 1e-4
    assert found[0] == pytest.approx((risk(a + h, b) - risk(a - h, b)) / (2 * h), abs=1e-4)
    for k, step in enumerate(h * np.eye(K)):
        expected = (risk(a, b + step) - risk(a, b - step)) / (2 * h)
        assert found[1 + k] == pytest.approx(expected, abs=1e-4)
    bend = (risk(a + 0.1, b) - 2 * risk(a, b) + risk(a - 0.1, b)) / 0.01
    assert found[-1] == pytest.approx(bend, abs=0.01)


def test_the_influence_of_a_row_is_taken_from_its_own_class():
    bounds = Bounds(1.0, 3.0, norm="l2")
    problem = Problem(Softmax(3), L2Ball(1.0), bounds, 1, 2)
    scaling = Scaling.of(2, np.arange(2), np.zeros(2), np.ones(2))
    thetas = tuple(Vector.of(np.array(t)) for t in ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0]))
    line = SoftmaxLine(
        problem, thetas, Influence(scaling, 9.0, np.array([0.5, 0.0, 0.0])), 4.0, 1.0, np.zeros(3)
    )
    rows = bounds.grid_x(np.array([[0.8, 0.4]]))
    own, other = (line.places(Block(rows, np.array([y])))[0] / 2**16 * 4.0 for y in (0.0, 1.0))
    plain = np.array([0.8, 0.4, 0.0]) - 0.4
    np.testing.assert_allclose(other, plain, atol=1e-3)
    taken = 0.5 * 0.8 * np.array([2, -1, -1]) / 3
    np.testing.assert_allclose(own, plain - taken, atol=1e-3)
