"""Rows that are shortened first: no neighbour exceeds the claim of the query that is asked."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import settings
from hypothesis import strategies as st
from scipy import sparse
from test_queries import P, exact_change, hostile_rows, hostile_targets, squared_length

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.estimators import PrivateLogisticRegression
from riata.grid import X_STEPS
from riata.losses import Logistic, Softmax, Squared
from riata.privacy.budget import ADD_REMOVE, CHANGED_CONTRIBUTIONS, REPLACE_ONE
from riata.problem import Problem
from riata.queries import (
    Block,
    CentredGradient,
    ColumnSquares,
    ColumnSums,
    OfShortRows,
    RowLengths,
    Scaling,
    SoftmaxGradient,
    SumsByClass,
)
from riata.sets import L2Ball
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=5)

GIVEN = [
    Bounds(50.0, 1.0, norm="l2"),
    Bounds(3.0, 1.0, norm="l2", nonnegative=True),
    Bounds(20.0, 1.0),
    Bounds([0.3, 1.0, 25.0, 1e-3, 1.0, 70.0], 1.0),
    Bounds(20.0, 1.0, length=30.0),
    Bounds(20.0, 1.0, nonzeros=3),
]
every_bound = pytest.mark.parametrize("given", GIVEN, ids=repr)
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
LENGTHS = [1.7, 0.4, 2.0**-9]
SCALING = Scaling.of(P, np.array([0, 2, 5]), np.array([0.2, -0.5, 0.0]), np.array([0.1, 2.0, 1e-3]))


def queries(bounds, length, adjacency):
    """Every kind that solvers ask about shortened rows, as it is asked."""
    short = bounds.shortened(length)
    problem = Problem(Squared(), L2Ball(1.0), short, 3, P, adjacency)
    classes = Problem(Softmax(3), L2Ball(1.0), short.with_y(3.0), 3, P, adjacency)
    theta = Vector.of(np.array([1.0, -2.0, 0.5, 0.0, 3.0, 0.1])).with_offset(0.2)
    asked = {
        "sums": ColumnSums(problem),
        "squares": ColumnSquares(problem, 0.3),
        "gradient": CentredGradient(problem, theta, 0.5, SCALING, 0.8),
        "class sums": SumsByClass(classes, 0.3),
        "softmax": SoftmaxGradient(classes, (theta,) * 3, 1.0, SCALING, 0.8, 0.5),
    }
    return {name: OfShortRows(query, bounds) for name, query in asked.items()}


def sums(query, bounds, x, y):
    return LocalEngine(np.atleast_2d(x), np.atleast_1d(y), bounds).total(query)


@every_bound
@every_adjacency
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@hypothesis_given(
    rows=st.tuples(hostile_rows, hostile_rows),
    targets=st.tuples(hostile_targets, hostile_targets),
    length=st.sampled_from(LENGTHS),
)
def test_no_hostile_neighbour_exceeds_the_sensitivity(given, adjacency, rows, targets, length):
    for name, query in queries(given, length, adjacency).items():
        ours, theirs = (sums(query, given, x, y) for x, y in zip(rows, targets, strict=True))
        change = exact_change(query, ours, theirs if adjacency == REPLACE_ONE else 0 * theirs)
        for norm in ("l1", "l2", "linf"):
            most = Fraction(query.sensitivity(norm)) ** 2
            assert squared_length(change, norm) <= most, (name, norm)


@pytest.mark.parametrize("given", [*GIVEN[:3], *GIVEN[4:]], ids=repr)  # one unit for all columns
@every_adjacency
def test_a_long_row_comes_near_to_the_sensitivity_and_beyond_it_if_it_is_not_shortened(
    given, adjacency, monkeypatch
):
    long = np.full(P, 1e3)

    def shares():
        for name, query in queries(given, 0.25, adjacency).items():
            if name == "sums":
                ours, theirs = (sums(query, given, s * long, 1.0) for s in (1, -1))
                change = exact_change(query, ours, (adjacency == REPLACE_ONE) * theirs)
                yield math.sqrt(squared_length(change, "l2")) / query.sensitivity("l2")

    least = 0.49 if given.nonnegative and adjacency == REPLACE_ONE else 0.98
    assert all(least < share <= 1 for share in shares())
    monkeypatch.setattr(OfShortRows, "_shortened", lambda self, x: x)  # the broken twin
    if given.norm == "l2":  # on the tighter grid rows of the wider one look the same
        monkeypatch.setattr(
            OfShortRows, "_shortened", lambda self, x: x * (self.given.x / self.query.bounds.x)
        )
    assert all(share > 1 for share in shares())


@every_bound
def test_what_a_row_becomes_depends_on_it_alone_and_not_on_its_container(given):
    rng = np.random.default_rng(0)
    x = np.where(rng.random((40, P)) < 0.5, 0.0, 9 * rng.standard_normal((40, P)))
    y = rng.integers(0, 3, 40).astype(float)
    rows = given.grid_x(x)
    for query in queries(given, 0.7, REPLACE_ONE).values():
        each = [query.block_sum(Block(rows[[i]], y[[i]])) for i in range(40)]
        whole = query.block_sum(Block(rows, y))
        np.testing.assert_array_equal(whole, np.sum(each, axis=0))
        of_sparse = query.block_sum(Block(given.grid_x(sparse.csr_array(x)), y))
        np.testing.assert_array_equal(whole, of_sparse)
        assert np.array_equal(whole, np.rint(whole))


@every_bound
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rows_that_an_engine_keeps_are_of_the_length_that_is_asked_for(given, layout):
    """As in a search, whose fits find lengths of their own."""
    x, y = layout(np.full((3, P), 1e3)), np.array([0.0, 1.0, 2.0])
    engine = LocalEngine(x, y, given)
    for length in (0.7, 0.25, 0.7):
        for name, query in queries(given, length, REPLACE_ONE).items():
            alone = LocalEngine(x, y, given).total(query)
            assert np.array_equal(engine.total(query), alone), name


@every_bound
@every_adjacency
@pytest.mark.parametrize("parts", [2, 8])
def test_a_row_has_one_vote_about_its_length(given, adjacency, parts):
    problem = Problem(Logistic(), L2Ball(1.0), given, 1, P, adjacency)
    query = RowLengths(problem, parts)
    rng = np.random.default_rng(1)
    for x in (np.zeros(P), np.full(P, 1e300), np.full(P, np.nan), rng.standard_normal(P)):
        vote = sums(query, given, x, 1.0)
        assert vote.sum() == 1
        assert set(vote) <= {0, 1}
        steps = np.ceil(
            Block(given.grid_x(x[None]), np.ones(1)).row_lengths(given) / query.top * X_STEPS
        )
        place = int(vote.argmax())
        assert query.edges[place] >= min(steps[0], X_STEPS) / X_STEPS
        assert not place or steps[0] / X_STEPS >= query.edges[place - 1]
    changed = CHANGED_CONTRIBUTIONS[adjacency]
    assert query.sensitivity("l2") == pytest.approx(math.sqrt(changed), rel=1e-9)
    assert query.sensitivity("l1") == pytest.approx(changed, rel=1e-9)


def test_no_bound_is_too_large_to_be_shortened():
    """The longest row may be longer than any bound that can be stated."""
    x = np.full((400, 5), 1e60)
    y = np.arange(400) % 2
    for rows in (x, 0 * x):
        model = PrivateLogisticRegression(
            5.0, 1e-7, bounds=Bounds(1e60), classes=[0, 1], solver="class-sums", random_state=1
        )
        assert np.isfinite(model.fit(rows, y).coef_).all()
    assert Bounds(1e60, 1.0).shortened(2e60).max_length == 1e60
