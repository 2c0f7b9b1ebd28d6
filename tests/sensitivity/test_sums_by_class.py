"""Sums and scores by class keep their bounds on hostile rows, in exact arithmetic.

Every comparison is one of `Fraction`s: no tolerance for rounding is left.
"""

import numpy as np
import pytest

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.losses import Logistic, OneAgainstRest, SmoothedHinge
from riata.privacy.budget import ADD_REMOVE
from riata.problem import Problem
from riata.queries import ScoreCounts, SumsByClass, class_sums
from riata.queries.class_sums import N_SCORE_BINS
from riata.sets import L2Ball
from riata.vectors import Vector

from exact_neighbours import (
    NORMS,
    P,
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

LOSSES = [Logistic(), SmoothedHinge(0.3), OneAgainstRest(Logistic(), 1)]
BOUNDS = [
    Bounds(1.4, 2.0, norm="l2"),
    Bounds(0.9, 2.0),
    Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], 2.0),
    Bounds(0.9, 2.0, length=1.4),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=repr)


def hostile(rng):
    return hostile_classes(rng, 6, P, [0.0, 1.0, 2.0])


def some_queries(problem, rng):
    yield SumsByClass(problem, 0.1)
    for k, theta in enumerate((np.zeros(P), 1e6 * rng.standard_normal(P))):
        yield ScoreCounts(problem, Vector.of(theta), 0.3 * k, 10.0 ** (k - 2))


@every_loss
@every_bound
@every_adjacency
@every_layout
def test_no_hostile_neighbour_exceeds_the_sensitivity(loss, bounds, adjacency, layout):
    rng = np.random.default_rng(40)
    x, y = hostile(rng)
    problem = Problem(loss, L2Ball(1.0), bounds, 3, P, adjacency)
    for query in some_queries(problem, rng):
        assert_no_neighbour_exceeds(query, summands(query, x, y, layout), NORMS)


@every_adjacency
def test_a_worst_pair_reaches_the_sensitivity(adjacency):
    problem = Problem(Logistic(), L2Ball(1.0), Bounds(1.4, 1.0, norm="l2"), 2, P, adjacency)
    query = SumsByClass(problem, 0.1)
    row = np.eye(P)[:1] * 1.4
    assert 0.999 <= squared_share(query, (row, 1.0), (row, -1.0)) <= 1


@every_layout
def test_negative_entries_that_are_kept_are_caught(monkeypatch, layout):
    # Opposite rows of one class are then 2 lengths apart, and the noise is for sqrt(2) of them.
    rng = np.random.default_rng(41)
    x, y = hostile(rng)
    query = SumsByClass(Problem(Logistic(), L2Ball(1.0), BOUNDS[0], 3, P), 0.1)
    assert not exceeds(query, summands(query, x, np.ones(len(y)), layout), "l2")
    monkeypatch.setattr(class_sums, "_without_negatives", lambda rows: rows)
    assert exceeds(query, summands(query, x, np.ones(len(y)), layout), "l2")


@every_layout
def test_a_row_that_is_added_to_both_classes_is_caught(monkeypatch, layout):
    x, y = hostile(np.random.default_rng(42))
    query = SumsByClass(Problem(Logistic(), L2Ball(1.0), BOUNDS[0], 3, P, ADD_REMOVE), 0.1)
    monkeypatch.setattr(class_sums, "is_positive", lambda loss, y: np.full(len(y), 2.0))
    assert exceeds(query, summands(query, x, y, layout), "l2")


@every_loss
@every_bound
def test_dense_and_sparse_rows_have_the_same_sums_whatever_the_blocks(loss, bounds):
    rng = np.random.default_rng(43)
    x, y = hostile(rng)
    x[rng.random(x.shape) < 0.5] = 0.0
    x = 0.99 * bounds.clip_x(x)  # a row that is shortened is so by how many entries it stores
    problem = Problem(loss, L2Ball(1.0), bounds, len(x), P)
    assert_same_sums(list(some_queries(problem, rng)), x, y, bounds, rng)


def test_sums_and_scores_are_those_of_the_rows():
    rng = np.random.default_rng(44)
    x, y = rng.random((40, P)) * 0.3, rng.choice([-1.0, 1.0], 40)
    problem = Problem(Logistic(), L2Ball(1.0), BOUNDS[0], 40, P)
    query, engine = SumsByClass(problem, 0.5), LocalEngine(x, y, BOUNDS[0])
    positive, other = query.from_total(engine.total(query))
    np.testing.assert_allclose(positive[:-1], x[y > 0].sum(axis=0) / 40, atol=1e-4)
    np.testing.assert_allclose(other[:-1], x[y < 0].sum(axis=0) / 40, atol=1e-4)
    assert positive[-1] / query.constant == pytest.approx(np.mean(y > 0))
    scores = ScoreCounts(problem, Vector.of(np.ones(P)), 0.9, 0.2)
    found = scores.from_total(engine.total(scores))
    assert found.shape == (2, N_SCORE_BINS)
    assert found.sum(axis=1) == pytest.approx([np.mean(y > 0), np.mean(y < 0)])
    middles = 0.9 + 0.2 * scores.middles()
    assert np.all(np.diff(middles) > 0)
    assert found[0] @ middles == pytest.approx(np.sum(x[y > 0]) / 40, abs=0.05)
