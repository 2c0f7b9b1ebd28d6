"""Mean errors of predictions keep their bounds on hostile rows, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds
from riata.engines import LocalEngine
from riata.engines.shard import Shard
from riata.grid import MOST_SLOPE_STEPS
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.queries import AbsoluteError, Block, SquaredError, WrongLabels
from riata.vectors import Vector

from exact_neighbours import (
    BOUNDS,
    P,
    hostile_rows,
    some_points,
)

LINES = ((2.0, -0.1), (0.5, 0.0), (1.0, 0.3))


def queries(bounds, adjacency, n_rows):
    points = list(some_points(np.random.default_rng(6)))
    many = [WrongLabels(tuple(points[:3]), bounds, n_rows, adjacency, (0.0, 1.0, 2.0), LINES)]
    for theta in points:
        facts = ((theta,), bounds, n_rows, adjacency)
        many += [
            AbsoluteError(*facts),
            SquaredError(*facts),
            WrongLabels(*facts, (-1.0, 1.0), LINES[:1]),
        ]
    return many


def summands(query, x, y):
    rows, targets = query.bounds.grid_x(x), query.bounds.clip_y(y)
    return [query.block_sum(Block(rows[[i]], targets[[i]])) for i in range(len(targets))]


@pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_one_row_changes_a_mean_error_by_no_more_than_stated(bounds, adjacency):
    x, y = hostile_rows(np.random.default_rng(5), 10)
    for query in queries(bounds, adjacency, 7):
        each = [int(one[0]) for one in summands(query, x, y)]
        assert max(map(abs, each)) <= MOST_SLOPE_STEPS
        unit, claim = Fraction(query.unit), Fraction(query.sensitivity("l2"))
        changes = each if adjacency == ADD_REMOVE else [max(each) - min(each)]
        assert max(abs(change) * unit for change in changes) <= claim
        assert query.sensitivity("l1") == query.sensitivity("l2") == query.sensitivity("linf")


@pytest.mark.parametrize("kind", [AbsoluteError, SquaredError])
def test_a_pair_of_rows_comes_close_to_the_bound(kind):
    bounds = Bounds(x=1.0, y=2.0)
    query = kind((Vector.unit(P, 0, 5.0),), bounds, 1, REPLACE_ONE)
    x = np.zeros((2, P))
    x[:, 0] = 1.0
    right, wrong = summands(query, x, np.array([2.0, -2.0]))
    change = abs(float((right - wrong)[0])) * query.unit
    assert change == pytest.approx(query.sensitivity("l2"), rel=1e-9)
    assert query.from_total(right)[0] == 0
    assert query.from_total(wrong)[0] == pytest.approx(query.largest)


@pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
def test_a_sum_does_not_depend_on_the_engine_or_the_layout(bounds):
    x, y = hostile_rows(np.random.default_rng(5), 10)
    for query in queries(bounds, REPLACE_ONE, len(y)):
        alone = sum(int(one[0]) for one in summands(query, x, y))
        engines = [
            LocalEngine(x, y, bounds),
            LocalEngine(sparse.csr_array(x), y, bounds),
            Shard(bounds.grid_x(x), bounds.clip_y(y)),
        ]
        assert [int(engine.total(query)[0]) for engine in engines] == [alone] * 3


def test_labels_are_those_of_the_odds():
    bounds, x = Bounds(x=1.0, y=2.0), np.array([[1.0], [-1.0]])
    theta = Vector.unit(1, 0, 1.0)
    query = WrongLabels((theta,), bounds, 2, REPLACE_ONE, (0.0, 1.0), ((-1.0, 0.0),))
    assert [int(one[0]) for one in summands(query, x, np.array([0.0, 0.0]))] == [
        -MOST_SLOPE_STEPS,
        MOST_SLOPE_STEPS,
    ]
