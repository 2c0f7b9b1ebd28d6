"""What is kept, shared and left out in a step over sparse rows has the bits of the plain way."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds
from riata.engines import LocalEngine
from riata.engines.columns import SparseColumns
from riata.engines.margins import Margins
from riata.grid import X_STEPS, some_rows, transposed, with_entries
from riata.losses import Logistic, Softmax, Squared
from riata.privacy.accountants import ACCOUNTANTS, GaussianAccountant, RenyiAccountant, spent
from riata.privacy.events import Gaussian, compose
from riata.problem import Problem
from riata.queries import (
    Block,
    CentredGradient,
    ClippedGradient,
    EntrySizes,
    Gradient,
    LimitedSlope,
    Scaling,
    SoftmaxGradient,
)
from riata.queries.coefficients import Coefficients
from riata.queries.sizes import ENTRIES_LOOKED_AT, SHARE_STEPS, bins_of, column_ranks, upper_edges
from riata.sets import L2Ball
from riata.vectors import Vector


def some_matrix(n=90, p=40, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    entries = rng.normal(size=(n, p)) * (rng.random((n, p)) < density)
    entries[3, :4] = [np.nan, np.inf, -1e30, 1e-320]
    entries[5] = 0.0
    return entries, rng.choice([-1.0, 1.0, np.nan], n, p=[0.4, 0.5, 0.1])


def problem_of(n, p, loss=None):
    bounds = Bounds(0.8, 1.0, length=1.5)
    return Problem(loss or Logistic(), L2Ball(1.0), bounds, n, p, fit_intercept=True)


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr("riata.queries.block._ENTRIES_OF_A_PIECE", 30)
    monkeypatch.setattr("riata.queries.block._PIECE_OF_COLUMNS", 0)


def test_sums_in_pieces_are_those_of_dense_rows(small_pieces):
    x, y = some_matrix()
    problem, rng = problem_of(*x.shape), np.random.default_rng(1)
    few = np.arange(0, 40, 3)
    scaling = Scaling.of(40, few, rng.uniform(-0.5, 0.5, len(few)), rng.uniform(0.1, 2, len(few)))
    joint = replace(problem, loss=Softmax(3))
    models = tuple(Vector.of(rng.normal(size=40)) for _ in range(3))
    theta = models[0].with_offset(0.3)
    engine = LocalEngine(sparse.csr_array(x), y, problem.bounds)
    for query in (
        Gradient(problem, theta),
        ClippedGradient(problem, theta, 0.3),
        CentredGradient(problem, theta, 0.4, scaling, 0.7),
        CentredGradient(problem, theta, 0.4, scaling, 0.4),
        LimitedSlope(problem, theta, 0.2),
        SoftmaxGradient(joint, models, 1.0, scaling, 0.7, 0.5),
    ):
        plain = LocalEngine(x, y, problem.bounds)  # a new one, which was asked nothing before
        assert np.array_equal(engine.total(query), plain.total(query)), query
    assert len(engine._blocks[0]._pieces) > 10


def test_rows_are_cut_and_turned_without_a_copy():
    x = sparse.csr_array(some_matrix()[0])
    few = some_rows(x, 10, 20)
    for view in (few, transposed(few), with_entries(few, few.data)):
        assert np.shares_memory(view.data, x.data)
        assert np.shares_memory(view.indices, x.indices)
    np.testing.assert_array_equal(few.toarray(), x.toarray()[10:20])
    np.testing.assert_array_equal(transposed(few).toarray(), x.toarray()[10:20].T)
    np.testing.assert_array_equal(with_entries(few, 2 * few.data).toarray(), 2 * few.toarray())


class Counted(Logistic):
    """Counts how many slopes are asked for."""

    def slope(self, margin, y):
        object.__setattr__(self, "asked", getattr(self, "asked", 0) + len(y))
        return super().slope(margin, y)


def test_queries_at_one_model_share_its_slopes_and_no_others_do(small_pieces):
    x, y = some_matrix()
    loss, n = Counted(), len(y)
    problem, theta = problem_of(*x.shape, loss), Vector.of(np.linspace(-1, 1, 40))
    engine = LocalEngine(sparse.csr_array(x), y, problem.bounds)
    engine.total(Gradient(problem, theta))
    engine.total(LimitedSlope(problem, theta, 0.2))
    assert loss.asked == n
    squared = replace(problem, loss=Squared())
    for model in (theta, theta.with_offset(0.1)):
        other = LimitedSlope(squared, model, 0.2)
        fresh = LocalEngine(sparse.csr_array(x), y, problem.bounds)
        assert np.array_equal(engine.total(other), fresh.total(other))


@pytest.mark.parametrize("look", [0, 4_000])
def test_margins_of_some_rows_are_followed_to_those_of_all(monkeypatch, look):
    """Column by column, if to look at a column costs nothing, and otherwise begun again."""
    monkeypatch.setattr("riata.engines.columns._LOOK", look)
    rng = np.random.default_rng(2)
    entries = rng.integers(-X_STEPS, X_STEPS + 1, (60, 30)) * (rng.random((60, 30)) < 0.3)
    x, bounds, theta = sparse.csr_array(entries.astype(float)), Bounds(0.3, 1.0), np.zeros(30)
    margins, followed = Margins(x, SparseColumns(x)), 0
    for step in range(40):
        theta[rng.integers(30)] += rng.normal()
        if step % 7 == 0:
            theta = rng.normal(size=30) * 10.0 ** rng.integers(-3, 3)
        model = Coefficients.made_of(Vector.of(theta), bounds)
        start = int(rng.integers(60))
        few = slice(start, int(rng.integers(start, 61)))
        expected = model.in_units(model.steps_of(x))
        assert np.array_equal(margins.inner(model, few), expected[few])
        followed += margins.followed
        if step % 3 == 0:
            assert np.array_equal(margins.inner(model), expected)
    assert followed > 10


def test_models_of_which_one_has_many_more_columns_are_not_followed(monkeypatch):
    monkeypatch.setattr("riata.engines.columns._LOOK", 0)
    x = sparse.csr_array(np.full((20, 300), float(X_STEPS)))
    margins, bounds = Margins(x, SparseColumns(x)), Bounds(0.3, 1.0)
    for size in (300, 3, 200, 0, 100):
        theta = Vector.of(np.where(np.arange(300) < size, 0.1 + size, 0.0))
        model = Coefficients.of(theta, bounds)
        assert np.array_equal(margins.inner(model), model.in_units(model.steps_of(x)))


def test_coefficients_are_kept_for_a_model_and_for_its_bounds():
    theta, bounds = Vector.of(np.linspace(-1, 1, 9)), Bounds(0.3, 1.0)
    assert Coefficients.of(theta, bounds) is Coefficients.of(theta, bounds)
    assert Coefficients.of(theta, Bounds(0.6, 1.0)).unit == 2 * Coefficients.of(theta, bounds).unit


@pytest.mark.parametrize("kind", ["flags", "two sizes", "long flags", "zeros", "signs", "none"])
@pytest.mark.parametrize("parts", [2, 8])
def test_votes_on_sizes_are_counted_row_by_row(kind, parts):
    rng = np.random.default_rng(3)
    n, p = 50, 200
    x = np.where(rng.random((n, p)) < (0.6 if kind == "long flags" else 0.1), 1.0 * X_STEPS, 0.0)
    x[7] = 0.0
    if kind == "two sizes":
        x[::3] = np.minimum(x[::3], 300.0)
    if kind == "signs":
        x[::2] *= -1
    rows = sparse.csr_array(x)
    if kind == "zeros":
        rows.data[::5] = 0.0
    if kind == "none":
        rows.data[:] = 0.0
    expected, ranks = np.zeros(len(upper_edges(parts))), column_ranks(p)
    for row in rows.toarray():
        filled = np.flatnonzero(row)
        most = -(-ENTRIES_LOOKED_AT * p // max(len(filled), ENTRIES_LOOKED_AT))
        seen = filled[ranks[filled] < most]
        bins, counts = np.unique(bins_of(row[seen], parts), return_counts=True)
        expected[bins] += counts * SHARE_STEPS // max(len(seen), 1)
    query = EntrySizes(problem_of(n, p), parts)
    for form in (rows, rows.toarray()):
        assert np.array_equal(query.block_sum(Block(form, np.zeros(n))), expected)


def test_lengths_of_scaled_rows_are_exact_at_the_bounds():
    weights = np.array([2**28 - 3, 1, 2])
    centre = np.array([1 - X_STEPS, X_STEPS - 1, 0])
    scaling = Scaling(4, np.array([0, 1, 3]), centre, weights, 0.1)
    x = np.array([[X_STEPS, -X_STEPS, 5, 7], [-X_STEPS, X_STEPS, 0, 0], [0, 0, 0, 0]])
    expected = [
        sum(
            int(w) * (int(row[j]) - int(c)) ** 2
            for w, c, j in zip(weights, centre, (0, 1, 3), strict=True)
        )
        for row in x
    ]
    for form in (x.astype(float), sparse.csr_array(x.astype(float))):
        assert scaling.squared_lengths(form).tolist() == expected


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.5])
def test_no_accountant_undercuts_the_exact_curve(delta):
    """`spent` asks the others only where the exact one says 0."""
    exact = GaussianAccountant()
    assert exact.exact
    assert not RenyiAccountant().exact
    for z in np.geomspace(0.01, 1e5, 29):
        event = compose((Gaussian(float(z)), 3), (Gaussian(2 * float(z)), 1))
        able = [each for each in ACCOUNTANTS if each.applies_to(event, delta)]
        assert len(able) > 1
        epsilon, name = min((each.epsilon(event, delta), each.name) for each in able)
        found = spent(event, delta)
        assert (found.epsilon, found.accountant) == (epsilon, name)
