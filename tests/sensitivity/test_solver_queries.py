"""The queries of the later solvers keep their bounds on hostile rows, in exact arithmetic.

Entries of gradients, clipped gradients, gradient steps, and the fine gradients that objective
perturbation minimises with. Rows go through `LocalEngine`, as in a fit, and every comparison is one
of `Fraction`s: no tolerance for rounding is left.
"""

import itertools
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.grid import MOST_SLOPE_STEPS, X_STEPS
from riata.losses import Huber, Logistic, Squared
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.queries import Block, ClippedGradient, Gradient, GradientStep, Minimum
from riata.queries.minimum import SLOPE_ERROR
from riata.sets import L1Ball, L2Ball
from riata.vectors import Vector

from exact_neighbours import (
    P,
    assert_no_neighbour_exceeds,
    every_adjacency,
    every_bound,
    every_layout,
    every_loss,
    hostile_rows,
    some_points,
    squared_lengths,
    squared_share,
    summands,
)

pytestmark = pytest.mark.matrix(one_in=17)

N_HOSTILE = 60


# Entries of the gradient


@every_loss
@every_bound
@every_adjacency
@pytest.mark.parametrize("columns", [[3], [5, 0], [4, 1, 3, 2]])
def test_entries_of_a_gradient_keep_their_sensitivity(loss, bounds, adjacency, columns):
    rng = np.random.default_rng(30)
    x, y = hostile_rows(rng, N_HOSTILE // 3)
    problem = Problem(loss, L2Ball(1.0), bounds, 3, P, adjacency)
    for theta in some_points(rng, 3):
        query = GradientStep(problem, theta, 0.7).entries(np.array(columns))
        assert_no_neighbour_exceeds(query, summands(query, x, y), ("l1", "l2", "linf"))


@every_bound
def test_entries_are_those_of_the_gradient_dense_or_sparse(bounds):
    rng = np.random.default_rng(31)
    x, y = hostile_rows(rng, 10)
    problem = Problem(Squared(), L2Ball(1.0), bounds, len(x), P)
    columns = np.array([4, 1, 5])
    for theta in some_points(rng):
        gradient = Gradient(problem, theta)
        entries = GradientStep(problem, theta, 0.7).entries(columns)
        whole = LocalEngine(x, y, bounds).total(gradient)
        for layout, block in itertools.product((np.asarray, sparse.csr_array), (7, 10**6)):
            part = LocalEngine(layout(x), y, bounds, block_rows=block).total(entries)
            np.testing.assert_array_equal(part, whole[columns])
        np.testing.assert_array_equal(entries.from_total(part), gradient.from_total(whole)[columns])


@every_adjacency
def test_a_worst_pair_reaches_the_sensitivity_of_entries(adjacency):
    bounds = Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], 1.3)
    problem = Problem(Squared(), L2Ball(1.0), bounds, 4, P, adjacency)
    query = GradientStep(problem, Vector.zero(P), 1.0).entries(np.array([1, 2]))
    row = np.sign([0, 1, 1, 0, 0, 0]) * bounds.x
    for norm in ("l1", "l2", "linf"):
        assert 0.999 <= squared_share(query, (row, 1.3), (-row, 1.3), norm) <= 1


# Clipped gradients


@pytest.mark.matrix(one_in=17, test_all_one_in=3)
@every_loss
@every_bound
@every_layout
@pytest.mark.parametrize("clip", [1e-9, 1e-3, 0.5, 1.7, 1e6])
def test_no_row_adds_more_than_the_clip(loss, bounds, layout, clip):
    rng = np.random.default_rng(32)
    x, y = hostile_rows(rng, 6)
    problem = Problem(loss, L2Ball(1.0), bounds, 1, P, ADD_REMOVE)
    for theta in some_points(rng, 3):
        query = ClippedGradient(problem, theta, clip)
        alone = summands(query, x, y, layout)
        assert max(squared_lengths(query, alone)) <= Fraction(clip) ** 2
        assert_no_neighbour_exceeds(query, alone, ("l1", "l2", "linf"))
        # Short gradients are not touched: clipping is no other function of the rows.
        free = summands(Gradient(problem, theta), x, y, layout)
        lengths = squared_lengths(Gradient(problem, theta), free)
        short = [i for i, size in enumerate(lengths) if size <= Fraction(clip * 0.999) ** 2]
        assert clip < 1 or short
        np.testing.assert_array_equal(alone[short], free[short])


@every_bound
@every_adjacency
def test_replacing_a_row_of_a_clipped_gradient_keeps_its_sensitivity(bounds, adjacency):
    rng = np.random.default_rng(33)
    x, y = hostile_rows(rng, 20)
    problem = Problem(Squared(), L2Ball(1.0), bounds, 2, P, adjacency)
    for theta, clip in itertools.product(some_points(rng, 3), (0.05, 2.0)):
        query = ClippedGradient(problem, theta, clip)
        assert_no_neighbour_exceeds(query, summands(query, x, y), ("l1", "l2", "linf"))


@every_layout
@every_adjacency
def test_a_worst_pair_reaches_the_clip(layout, adjacency):
    bounds = Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], 1.3)
    problem = Problem(Squared(), L2Ball(1.0), bounds, 4, P, adjacency)
    query = ClippedGradient(problem, Vector.zero(P), 0.4)
    assert query.sensitivity("l2") == pytest.approx(0.4 / 4 * (1 + (adjacency == REPLACE_ONE)))
    pair = [(layout(s * bounds.x[None, :]), 1.3) for s in (1, -1)]
    assert 0.999 <= squared_share(query, *pair) <= 1


@every_bound
def test_a_clipped_sum_depends_neither_on_blocks_nor_on_order_nor_on_storage(bounds):
    rng = np.random.default_rng(34)
    x, y = hostile_rows(rng, 25)
    problem = Problem(Logistic(), L2Ball(1.0), bounds, len(x), P)
    query = ClippedGradient(problem, Vector.of(np.arange(P) / 5).with_offset(-0.2), 0.3)
    expected = {
        layout: LocalEngine(layout(x), y, bounds).total(query)
        for layout in (np.asarray, sparse.csr_array)
    }
    if bounds.norm == "inf":  # a bound on the length leaves room for the entries that are stored
        np.testing.assert_array_equal(*expected.values())
    for layout, block in itertools.product(expected, (1, 13, 50)):
        order = rng.permutation(len(x))
        engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=block)
        np.testing.assert_array_equal(engine.total(query), expected[layout])


def test_empty_rows_in_every_place_add_nothing():
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Squared(), L2Ball(1.0), bounds, 9, P)
    query = ClippedGradient(problem, Vector.zero(P), 0.1)
    full = np.vstack([np.eye(P)[:3], np.ones((2, P))])
    places = [[0, 1, 2, 3, 4], [2, 3, 5, 6, 8], [0, 3, 4, 7, 8]]
    expected = LocalEngine(full, np.ones(5), bounds).total(query)
    for place in places:
        x = np.zeros((9, P))
        x[place] = full
        for layout, block in itertools.product((np.asarray, sparse.csr_array), (2, 100)):
            engine = LocalEngine(layout(x), np.ones(9), bounds, block_rows=block)
            np.testing.assert_array_equal(engine.total(query), expected)
    for layout in (np.asarray, sparse.csr_array):
        none = bounds.grid_x(layout(np.zeros((0, P))))
        np.testing.assert_array_equal(query.block_sum(Block(none, np.zeros(0))), np.zeros(P))


@every_layout
@pytest.mark.parametrize("bound", [0.77, 0.9, 1.1])
def test_the_length_of_a_wide_row_is_known_to_the_digits_that_clipping_leaves(layout, bound):
    # One long entry and many short ones: each short one is rounded the same way.
    p = 2**17
    steps = np.ones((1, p))
    steps[0, 0] = X_STEPS
    found = Block(layout(steps), np.zeros(1)).row_lengths(Bounds(bound, 1.0))[0]
    exact = (Fraction(bound) / X_STEPS) ** 2 * (X_STEPS**2 + p - 1)
    assert abs(Fraction(found) ** 2 / exact - 1) <= Fraction(2) ** -40


# Gradient steps


@every_loss
@every_bound
@every_adjacency
@pytest.mark.parametrize("rate", [1e-6, 0.37, 1e5])
def test_a_gradient_step_keeps_its_sensitivity_as_computed(loss, bounds, adjacency, rate):
    # `from_total` rounds: what a selection sees are floats, and they are compared as they are.
    rng = np.random.default_rng(35)
    x, y = hostile_rows(rng, 6)
    problem = Problem(loss, L2Ball(1.0), bounds, 2, P, adjacency)
    for theta in some_points(rng):
        query = GradientStep(problem, theta, rate)
        common = LocalEngine(x[:1], y[:1], bounds).total(query)
        totals = common + summands(query.gradient, x, y)
        answers = [[Fraction(float(v)) for v in query.from_total(total)] for total in totals]
        without = [Fraction(float(v)) for v in query.from_total(common)]
        largest = 0
        for i, one in enumerate(answers):
            others = answers[:i] if adjacency == REPLACE_ONE else [without]
            for other in others:
                largest = max(largest, max(abs(a - b) for a, b in zip(one, other, strict=True)))
        assert largest <= Fraction(query.sensitivity("linf"))


def test_a_step_from_far_away_needs_the_room_for_rounding():
    # theta is so large that rounding theta - rate * gradient moves it by more than a row does.
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Huber(1e-3), L2Ball(1e9), bounds, 1, 1, ADD_REMOVE)
    query = GradientStep(problem, Vector.of(np.array([1e9 / 3])), 2e-5)
    total = LocalEngine(np.array([[1.0]]), np.zeros(1), bounds).total(query)
    ours, theirs = (Fraction(float(query.from_total(t)[0])) for t in (total, 0 * total))
    change = abs(ours - theirs)
    assert Fraction(query.row_bound("linf")) * Fraction(101, 100) < change
    assert change <= Fraction(query.sensitivity("linf"))


def test_a_step_is_moved_by_its_entries():
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Squared(), L2Ball(1.0), bounds, 3, P)
    theta = Vector.of(np.array([0.5, 0.0, -0.25, 0.0, 0.0, 1.0]))
    query = GradientStep(problem, theta, 0.5)
    x, y = np.eye(P)[:3], np.array([1.0, -1.0, 0.5])
    engine = LocalEngine(x, y, bounds)
    columns = np.array([5, 0, 1])
    entries = query.entries(columns)
    moved = query.moved(columns, entries.from_total(engine.total(entries)))
    np.testing.assert_array_equal(moved.support, [0, 1, 5])
    np.testing.assert_array_equal(moved.values, query.from_total(engine.total(query))[[0, 1, 5]])


# Fine gradients, and what objective perturbation is calibrated to


def exact_gradient(loss, rows, targets, limits, theta):
    """The sum of slope * (x, 1) over rows on the grid, with 60 digits."""
    mp = mpmath.mp.clone()
    mp.prec = 200
    out = [mp.mpf(0)] * (len(theta.dense()) + 1)
    for row, y in zip(rows, targets, strict=True):
        x = [mp.mpf(int(v)) * mp.mpf(float(limit)) / X_STEPS
             for v, limit in zip(row, limits, strict=True)]  # fmt: skip
        pairs = zip(x, theta.dense(), strict=True)
        margin = sum((a * mp.mpf(float(b)) for a, b in pairs), mp.mpf(theta.offset))
        y = mp.mpf(float(y))
        slope = 2 * (margin - y) if isinstance(loss, Squared) else -y / (1 + mp.exp(y * margin))
        out = [total + slope * v for total, v in zip(out, [*x, mp.mpf(1)], strict=True)]
    return out


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@every_bound
@every_layout
def test_a_fine_gradient_is_within_its_stated_error(loss, bounds, layout):
    rng = np.random.default_rng(36)
    x, y = hostile_rows(rng, 5)
    bounds = bounds.with_y(1.0) if isinstance(loss, Logistic) else bounds
    problem = Problem(loss, L2Ball(2.0), bounds, len(x), P, fit_intercept=True)
    query = Minimum(problem)
    rows, targets = bounds.grid_x(x), bounds.clip_y(y)
    for k in range(4):
        theta = Vector.of(2.0 * rng.standard_normal(P) / 4 ** (k + 1)).with_offset(0.9 * (k > 1))
        fine = query.gradient(theta)
        found = fine.from_total(LocalEngine(layout(x), y, bounds).total(fine))
        exact = exact_gradient(loss, rows, targets, bounds.per_column(P), theta)
        error = mpmath.sqrt(sum((a - float(b)) ** 2 for a, b in zip(exact, found, strict=True)))
        assert error <= query.gradient_error
    assert query.gradient_error <= 1e-10 * query.n_rows * query.row_bound("l2")


@pytest.mark.parametrize("p", [4, 64, 256])
def test_a_slope_at_the_corner_of_the_bounds_is_not_clipped_at_a_rounded_one(p):
    """Coefficients that all round down, and a row that attains the reach of the true ones."""
    bounds = Bounds(1.0, 1e-6)
    problem = Problem(Squared(), L1Ball(float(p)), bounds, 1, p)
    step = 2.0**-35 * p
    theta = Vector.of(np.full(p, (np.rint(0.99 / step) + 0.49) * step))
    query = Minimum(problem)
    fine = query.gradient(theta)
    rows, y = np.ones((1, p)), np.array([-1e-6])
    found = fine.from_total(LocalEngine(rows, y, bounds).total(fine))
    exact = exact_gradient(Squared(), bounds.grid_x(rows), y, bounds.per_column(p), theta)
    error = mpmath.sqrt(sum((a - float(b)) ** 2 for a, b in zip(exact, found, strict=True)))
    assert error <= query.gradient_error


@every_bound
@every_layout
def test_a_fine_gradient_depends_neither_on_blocks_nor_on_order(bounds, layout):
    rng = np.random.default_rng(37)
    x, y = hostile_rows(rng, 25)
    problem = Problem(Logistic(), L2Ball(2.0), bounds, len(x), P, fit_intercept=True)
    fine = Minimum(problem).gradient(Vector.of(rng.standard_normal(P)).with_offset(0.7))
    expected = LocalEngine(layout(x), y, bounds).total(fine)
    for block in (1, 13, 50):
        order = rng.permutation(len(x))
        engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=block)
        np.testing.assert_array_equal(engine.total(fine), expected)


def test_the_limbs_of_a_fine_slope_are_exact_to_the_largest_block():
    # Three limbs of 16 bits: a block's products and sums stay below 2^53, the total below 2^63.
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Squared(), L2Ball(1.0), bounds, 4, 1, fit_intercept=True)
    fine = Minimum(problem).gradient(Vector.zero(1))
    x = np.array([[1.0], [1.0], [-1.0], [1.0]])
    y = np.array([1.0, -1.0, 2.0**-30, -(2.0**-30)])
    limbs = fine._limbs(Block(bounds.grid_x(x), y))
    assert np.abs(limbs).max() <= 2**16
    whole = [sum(int(v) << s for v, s in zip(row, (32, 16, 0), strict=True)) for row in limbs]
    assert whole == [-(2**48), 2**48, -(2**18), 2**18]
    assert np.abs(limbs).max() * X_STEPS * (2**53 // (X_STEPS * MOST_SLOPE_STEPS)) <= 2**53


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_float64_knows_a_slope_as_well_as_it_is_trusted(loss):
    mp = mpmath.mp.clone()
    mp.prec = 200
    margins = np.concatenate([np.linspace(-40, 40, 401), np.geomspace(1e-300, 700, 200)])
    for y in (1.0, -1.0, 0.3):
        slopes = loss.slope(margins, np.full(len(margins), y))
        for margin, slope in zip(margins, slopes, strict=True):
            m = mp.mpf(float(margin))
            exact = 2 * (m - mp.mpf(y))
            if isinstance(loss, Logistic):
                exact = -mp.mpf(y) / (1 + mp.exp(mp.mpf(y) * m))
            bound = loss.slope_bound(abs(float(margin)), abs(y))
            assert abs(exact - mp.mpf(float(slope))) <= SLOPE_ERROR * bound


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("row", [0.1, 1.0, 30.0])
def test_the_curvature_of_a_row_is_that_of_its_squared_length(row, fit_intercept):
    bounds = Bounds(row, 1.5, norm="l2")
    for loss, curvature in ((Squared(), 2.0), (Logistic(), 1.5**2 / 4)):
        problem = Problem(loss, L2Ball(1.0), bounds, 7, P, fit_intercept=fit_intercept)
        query = Minimum(problem)
        square = row**2 + fit_intercept
        assert query.row_curvature == pytest.approx(curvature * square, rel=1e-9)
        assert Fraction(query.row_curvature) >= Fraction(curvature) * (
            Fraction(row) ** 2 + fit_intercept
        )
        for regularisation in (1e-3, 1.0, 1e3):
            exact = mpmath.log1p(mpmath.mpf(curvature) * square / regularisation)
            assert exact <= query.stretch(regularisation) <= exact * (1 + 1e-9)


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@pytest.mark.parametrize("fit_intercept", [False, True])
@every_bound
@every_adjacency
def test_no_neighbour_changes_the_sum_of_gradients_by_more(loss, fit_intercept, bounds, adjacency):
    rng = np.random.default_rng(38)
    x, y = hostile_rows(rng, 20)
    problem = Problem(loss, L2Ball(1.5), bounds, 50, P, adjacency, fit_intercept=fit_intercept)
    query = Minimum(problem)
    largest = 0.0
    for _ in range(6):
        dense = rng.standard_normal(P)
        offset = query.offset_bound * rng.choice([-1, 0, 1])
        theta = Vector.of(1.5 * dense / np.linalg.norm(dense)).with_offset(offset)
        fine = query.gradient(theta)
        grid, targets = bounds.grid_x(x), bounds.clip_y(y)
        alone = np.array(
            [fine.from_total(fine.block_sum(Block(grid[[i]], targets[[i]]))) for i in range(len(y))]
        )[:, : query.size]
        apart = alone[:, None] - (alone[None] if adjacency == REPLACE_ONE else 0)
        largest = max(largest, np.sqrt(np.square(apart).sum(axis=-1)).max())
    assert largest <= query.sensitivity("l2") * (1 + 1e-12)
    assert largest >= 0.3 * query.sensitivity("l2")
    once = query.slope_bound * query.row_length
    if adjacency == REPLACE_ONE:  # both slopes are taken at the same theta: docs, Lemma 3
        assert once < query.sensitivity("l2") <= 2 * once * (1 + 1e-9)
    else:
        assert query.sensitivity("l2") == pytest.approx(once)


def test_a_minimum_has_no_sensitivity_in_other_norms():
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 5, P)
    for norm in ("l1", "linf"):
        with pytest.raises(ValueError, match="Euclidean"):
            Minimum(problem).sensitivity(norm)
