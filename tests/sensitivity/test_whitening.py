"""Joint moments and preconditioned gradients keep their bounds, in exact arithmetic.

Rows and whitenings are hostile; a whitening is public, as in a fit. Every comparison is one of
`Fraction`s.
"""

import copy
import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from riata import losses
from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.grid import (
    BLOCK_ROWS,
    MOST_ROWS,
    THETA_STEPS,
    X_STEPS,
    coefficient_step,
    slope_steps,
)
from riata.mechanisms import GaussianMechanism
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE
from riata.queries import (
    Block,
    GradientMoments,
    JointMoments,
    PreconditionedGradient,
    Whitening,
    whitening,
)
from riata.queries.whitening import MOST_BEFORE, MOST_COORDINATES
from riata.solvers import averaged_gradient, whitened_defaults
from riata.vectors import Vector

from exact_neighbours import (
    LENGTH,
    NORMS,
    P,
    assert_no_neighbour_exceeds,
    every_adjacency,
    every_bound,
    every_layout,
    every_loss,
    hostile_rows,
    problem_of,
    some_points,
    squared_lengths,
    squared_share,
    summands,
)

pytestmark = pytest.mark.matrix(one_in=11)

RNG = np.random.default_rng(0)

#: A rotation, one that stretches by orders of magnitude, far centres, fewer and more coordinates.
WHITENINGS = {
    "plain": Whitening.of(np.eye(P), np.zeros(P)),
    "turned": Whitening.of(np.linalg.qr(RNG.standard_normal((P, P)))[0], RNG.normal(size=P)),
    "steep": Whitening.of(
        10.0 ** np.arange(-8, P - 8)[:, None] * RNG.normal(size=(P, P)), np.zeros(P)
    ),
    "far": Whitening.of(RNG.normal(size=(P, P)), np.array([1e9, -1e9, 3.0, -40.0, 1e5, 0.0])),
    "one": Whitening.of(np.full((1, P), 1e4), np.array([0.3])),
    "more": Whitening.of(RNG.normal(size=(2 * P, P)), RNG.normal(size=2 * P)),
    "nothing": Whitening.of(np.zeros((P, P)), np.zeros(P)),
}
every_whitening = pytest.mark.parametrize("name", WHITENINGS)
with_or_without = pytest.mark.parametrize("constant", [0.0, 0.5], ids=["plain", "constant"])


def moments_of(problem, theta, name, length=1.3, constant=0.5, scale=0.7, limit=np.inf):
    return JointMoments(problem, theta, limit, WHITENINGS[name], scale, length, constant * length)


def gradient_of(problem, theta, name, clip=0.4, constant=0.5, reach=5.0, limit=np.inf):
    return PreconditionedGradient(
        problem, theta, limit, WHITENINGS[name], reach, constant * reach, clip
    )


def squares_of(problem, theta, name, clip=0.4, constant=0.5, reach=5.0, limit=np.inf):
    return GradientMoments(problem, theta, limit, WHITENINGS[name], reach, constant * reach, clip)


def spread_of(problem, theta, name, length=1.3, constant=0.0, limit=np.inf):
    """Moments of rows alone, as averaged gradients ask for: no slope is seen in so large a unit."""
    return moments_of(problem, theta, name, length, constant, whitened_defaults.LARGEST, limit)


every_query = pytest.mark.parametrize("query_of", [moments_of, spread_of, gradient_of, squares_of])


@every_query
@every_adjacency
@every_layout
@every_whitening
@with_or_without
def test_neighbours_keep_the_sensitivity(query_of, adjacency, layout, name, constant):
    rng = np.random.default_rng(5)
    x, y = hostile_rows(rng, 6)
    problem = problem_of(n=3, adjacency=adjacency)
    for theta, length in itertools.product(some_points(rng, 2), (0.05, 2.0)):
        query = query_of(problem, theta, name, length, constant, limit=0.7)
        assert_no_neighbour_exceeds(query, summands(query, x, y, layout), NORMS)


# Whitenings


def test_a_whitening_is_as_asked_up_to_its_grids():
    matrix = RNG.normal(size=(4, P)) * [[1e-9], [1.0], [3e4], [1e-3]]
    centre = matrix @ RNG.uniform(-1, 1, P)
    made = Whitening.of(matrix, centre)
    np.testing.assert_allclose(made.matrix, matrix, atol=2.0**-34 * np.abs(matrix).sum(1).max())
    np.testing.assert_allclose(made.centre, centre, rtol=1e-6)
    assert made.size == 4


@pytest.mark.parametrize(
    "broken",
    [
        {"weights": np.full((1, P), 0.5)}, {"centres": np.array([0.5])},
        {"centres": np.array([2.0**53])}, {"steps": np.array([0.0])},
        {"steps": np.array([np.inf])}, {"steps": np.ones(2)},
        {"weights": np.full((1, P), float(THETA_STEPS))}, {"centres": np.array([np.nan])},
        {"weights": np.full((1, P), np.nan)}, {"steps": np.array([np.nan])},
        {"steps": np.array([1.01e100])}, {"steps": np.array([1e300])},
    ],
)  # fmt: skip
def test_a_whitening_off_its_grids_is_refused(broken):
    facts = {"weights": np.ones((1, P)), "centres": np.zeros(1), "steps": np.ones(1)}
    Whitening(**facts)
    with pytest.raises(ValueError, match="whitening"):
        Whitening(**facts | broken)
    many = MOST_COORDINATES + 1
    with pytest.raises(ValueError, match="coordinates"):
        Whitening(np.ones((many, 2)), np.zeros(many), np.ones(many))


SMALLEST, LARGEST, LARGEST_STEP = whitening._SMALLEST, whitening._LARGEST, whitening._LARGEST_STEP


@pytest.mark.parametrize("length", [SMALLEST, 1.0, LARGEST])
@pytest.mark.parametrize("size", [5e-324, 1e-200, 1.0, 1e99, 1.7e308])
def test_rows_are_finite_in_every_whitening_at_every_length(size, length):
    # A row that a coordinate maps to 0 beside one of a factor without an end would be NaN.
    matrix = np.full((2, P), size)
    matrix[1, 0] = -size
    at = Whitening.of(matrix, np.array([0.0, size]))
    assert np.isfinite(2.0**53 * (at.steps / length)).all()
    rows = np.array([np.zeros(P), np.eye(P)[0], np.full(P, 1.0)]) * X_STEPS
    problem, y = problem_of(), np.ones(3)
    for query in (
        JointMoments(problem, Vector.zero(P), np.inf, at, 1.0, length, length),
        PreconditionedGradient(problem, Vector.zero(P), np.inf, at, length, length, 1.0),
        GradientMoments(problem, Vector.zero(P), np.inf, at, length, length, 1.0),
    ):
        with np.errstate(all="raise"):
            total = query.block_sum(Block(rows, y))
        np.testing.assert_array_equal(total, np.rint(total))
        assert np.abs(total).max() <= 3 * X_STEPS * query.slope_steps


def test_the_largest_steps_leave_rows_finite():
    assert np.isfinite(2.0**53 * (LARGEST_STEP / SMALLEST))
    widest = 2**30  # columns, each with an entry of the largest size
    assert coefficient_step(np.array(widest * LARGEST_STEP)) <= LARGEST_STEP


def test_nobody_can_change_a_whitening_later():
    given = {"weights": np.ones((1, P)), "centres": np.zeros(1), "steps": np.ones(1)}
    made = Whitening(**given)
    given["weights"][0] = 7.0
    assert made.weights.max() == 1.0
    for each in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        for name in given:
            with pytest.raises(ValueError, match="read-only"):
                getattr(each, name)[0] = 2.0


@pytest.mark.parametrize(
    ("length", "constant", "scale"),
    [(0.0, 0.0, 1.0), (1.0, 1.1, 1.0), (1.0, -0.1, 1.0), (np.nan, 0.0, 1.0), (1.0, 0.0, np.inf),
     (1.0, 0.0, 1e-80), (1e80, 0.0, 1.0)],
)  # fmt: skip
def test_lengths_beyond_exact_sums_are_refused(length, constant, scale):
    at = (problem_of(), Vector.zero(P), np.inf, WHITENINGS["plain"])
    with pytest.raises(InvalidArgument, match="exact"):
        JointMoments(*at, scale, length, constant)
    with pytest.raises(InvalidArgument, match="exact"):
        PreconditionedGradient(*at, length, constant, scale)


def test_all_sums_are_exact():
    # Products with the weights, and the difference from a centre.
    assert X_STEPS * 2 * THETA_STEPS <= 2**52
    # Squared lengths, before rows are shortened; sums over a block, and over all rows.
    assert (MOST_COORDINATES + 1) * MOST_BEFORE**2 < 2**53
    assert (MOST_COORDINATES + 1) * X_STEPS**2 < 2**53
    assert BLOCK_ROWS * X_STEPS**2 < 2**53
    assert BLOCK_ROWS * X_STEPS * max(slope_steps(n) for n in (1, BLOCK_ROWS)) <= 2**53
    assert MOST_ROWS * X_STEPS**2 <= 2**62


@every_whitening
@every_layout
def test_a_row_in_new_coordinates_is_what_integers_give(name, layout):
    white = WHITENINGS[name]
    x, _ = hostile_rows(np.random.default_rng(3), 12)
    for bounds, step, most in ((LENGTH, 1e-4, 2**16), (Bounds(0.9, 1.3), 3e-7, 2**21)):
        grid = bounds.grid_x(layout(x))
        dense = grid.toarray() if sparse.issparse(grid) else grid
        block = Block(grid, np.zeros(len(dense)))
        found = np.concatenate([rows for _, rows in white.rows(block, step, most)])
        factors = white.steps / (X_STEPS * step)
        for row, new in zip(dense, found, strict=True):
            for i in range(white.size):
                whole = sum(int(a) * int(k) for a, k in zip(white.weights[i], row, strict=True))
                exact = whole - int(white.centres[i])
                assert float(exact) == exact
                assert new[i] == np.clip(np.rint(float(exact) * factors[i]), -most, most)


# Joint moments


@every_loss
@every_bound
@every_whitening
def test_no_row_adds_more_than_the_length_of_its_moments_allows(loss, bounds, name):
    rng = np.random.default_rng(4)
    x, y = hostile_rows(rng, 4)
    problem = problem_of(loss, bounds, adjacency=ADD_REMOVE)
    for theta, length, limit, constant, layout in zip(
        some_points(rng, 3), (1e-7, 1.3, 1e3), (np.inf, 0.2, 1e9), (0.5, 0.0, 0.5),
        (np.asarray, sparse.csr_array, np.asarray), strict=True,
    ):  # fmt: skip
        query = moments_of(problem, theta, name, length, constant, limit=limit)
        assert_no_neighbour_exceeds(query, summands(query, x, y, layout), NORMS)
        block = Block(bounds.grid_x(layout(x)), bounds.clip_y(y))
        for h in query.rows(block):
            assert np.array_equal(h, np.rint(h))
            free = h[:, : WHITENINGS[name].size + 1]
            assert all(sum(int(v) ** 2 for v in row) <= X_STEPS**2 for row in free)


@every_adjacency
def test_a_worst_pair_reaches_the_sensitivity_of_joint_moments(adjacency):
    problem = problem_of(n=4, adjacency=adjacency)
    query = moments_of(problem, Vector.zero(P), "plain", length=0.1, constant=0.0)
    pair = [(0.9 * np.eye(1, P, j), 0.0) for j in (0, 1)]
    assert 0.999 <= squared_share(query, *pair) <= 1


def test_opposite_rows_with_a_constant_reach_the_sensitivity_too():
    """Inner products of h are 0 where <u, u'> = -c^2."""
    problem = problem_of(n=4)
    query = moments_of(problem, Vector.zero(P), "plain", length=0.1, constant=1.0)
    pair = [(s * np.eye(1, P), 0.0) for s in (1, -1)]
    assert 0.999 <= squared_share(query, *pair) <= 1


SHORTENED = averaged_gradient.LENGTH * averaged_gradient.USUAL**0.5


@every_loss
@every_bound
@every_whitening
def test_moments_of_rows_alone_keep_their_length_and_say_nothing_of_slopes(loss, bounds, name):
    rng = np.random.default_rng(12)
    x, y = hostile_rows(rng, 4)
    problem, q = problem_of(loss, bounds, adjacency=ADD_REMOVE), WHITENINGS[name].size
    for theta, limit, layout in zip(
        some_points(rng, 3), (np.inf, 1e-60, 1e9), (np.asarray, sparse.csr_array, np.asarray),
        strict=True,
    ):  # fmt: skip
        query = spread_of(problem, theta, name, SHORTENED, limit=limit)
        assert_no_neighbour_exceeds(query, summands(query, x, y, layout), NORMS)
        for h in query.rows(Block(bounds.grid_x(layout(x)), bounds.clip_y(y))):
            assert h.shape[1] == q + 1
            assert not h[:, q].any()
            assert all(sum(int(v) ** 2 for v in row) <= X_STEPS**2 for row in h)


@pytest.mark.parametrize("size", [1e40, 1e60])
def test_slopes_that_are_seen_in_the_largest_unit_are_shortened_with_their_rows(size):
    problem = problem_of(bounds=Bounds(1.4, size, norm="l2"), n=4, adjacency=ADD_REMOVE)
    query = spread_of(problem, Vector.zero(P), "plain", SHORTENED)
    x, y = hostile_rows(np.random.default_rng(13), 6)
    alone = summands(query, x, y * size)
    assert_no_neighbour_exceeds(query, alone, NORMS)
    assert bool(alone.any(axis=0)[-1]) == (size == whitened_defaults.LARGEST)


@every_adjacency
def test_a_worst_pair_reaches_the_sensitivity_of_moments_of_rows_alone(adjacency):
    problem = problem_of(n=4, adjacency=adjacency)
    query = spread_of(problem, Vector.zero(P), "plain", SHORTENED)
    pair = [(0.9 * np.eye(1, P, j), y) for j, y in ((0, 1.3), (1, -1.3))]
    assert 0.999 <= squared_share(query, *pair) <= 1


@every_whitening
@every_bound
@with_or_without
def test_moments_and_gradients_are_the_same_in_any_storage_and_order(name, bounds, constant):
    rng = np.random.default_rng(6)
    x, y = hostile_rows(rng, 20)
    problem = problem_of(bounds=bounds, n=len(x))
    theta = Vector.of(np.arange(P) / 5).with_offset(-0.2)
    for query in (
        moments_of(problem, theta, name, constant=constant, limit=0.8),
        gradient_of(problem, theta, name, constant=constant, limit=0.8),
        squares_of(problem, theta, name, constant=constant, limit=0.8),
    ):
        expected = summands(query, x, y).sum(axis=0).tolist()
        for layout, block in itertools.product((np.asarray, sparse.csr_array), (1, 13, 10**6)):
            order = rng.permutation(len(x))
            engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=block)
            assert engine.total(query).tolist() == expected


@pytest.mark.matrix(one_in=1)
@pytest.mark.parametrize("name", ["plain", "turned", "one"])
def test_whitened_rows_that_a_block_keeps_are_of_the_whitening_and_reach_that_are_asked_for(name):
    x, y = hostile_rows(np.random.default_rng(8), 4)
    rows, targets = LENGTH.grid_x(x), LENGTH.clip_y(y)
    kept, theta = Block(rows, targets), Vector.zero(P).with_offset(0.3)
    problem = problem_of(n=len(y))
    for reach, of in ((5.0, name), (0.7, name), (0.7, "more"), (5.0, name)):
        for query_of in (gradient_of, squares_of):
            query = query_of(problem, theta, of, reach=reach)
            alone = query.block_sum(Block(rows, targets))
            np.testing.assert_array_equal(query.block_sum(kept), alone)


def test_released_moments_are_a_symmetric_matrix_of_means():
    x = np.array([[0.3, -0.2, 0.1, 0.0, 0.4, 0.2], [-0.1, 0.5, 0.0, 0.3, 0.0, 0.1]])
    y = np.array([0.4, -0.9])
    problem = problem_of(bounds=Bounds(1.0, 1.0), n=2)
    query = moments_of(problem, Vector.zero(P), "turned", length=9.0, scale=2.0)
    found = query.from_total(LocalEngine(x, y, problem.bounds).total(query))
    white = WHITENINGS["turned"]
    u = x @ white.matrix.T - white.centre
    h = np.column_stack([u, -2 * y / 2.0, np.full(2, 4.5)])
    np.testing.assert_allclose(found, h.T @ h / 2, atol=2e-3)
    np.testing.assert_array_equal(found, found.T)


def test_noise_off_the_diagonal_is_less_by_the_root_of_two():
    """Each of 2,000 draws: a deviation of 12% is beyond 7 standard errors, one in 10^11."""
    problem = problem_of(n=5)
    query = moments_of(problem, Vector.zero(P), "one")
    engine, noise = LocalEngine(np.zeros((5, P)), np.zeros(5), LENGTH), Noise(7)
    mechanism = GaussianMechanism(1.7)
    draws = np.array([mechanism.release(query, engine, noise) for _ in range(2_000)])
    spread = draws.std(axis=0) / (1.7 * query.sensitivity("l2"))
    expected = np.where(np.eye(3, dtype=bool), 1.0, 0.5**0.5)
    np.testing.assert_allclose(spread, expected, rtol=0.12)


# Gradients


@every_loss
@every_bound
@every_whitening
def test_no_row_adds_more_than_the_clip_of_its_gradient(loss, bounds, name):
    rng = np.random.default_rng(7)
    x, y = hostile_rows(rng, 4)
    problem = problem_of(loss, bounds, adjacency=ADD_REMOVE)
    for theta, clip, limit, constant, layout in zip(
        some_points(rng, 3), (1e-7, 0.3, 1e3), (np.inf, 0.2, 1e9), (0.5, 0.0, 0.5),
        (np.asarray, sparse.csr_array, np.asarray), strict=True,
    ):  # fmt: skip
        query = gradient_of(problem, theta, name, clip, constant, limit=limit)
        alone = summands(query, x, y, layout)
        allowed = Fraction(clip) ** 2 * (1 + Fraction(1, 2**40))
        assert max(squared_lengths(query, alone)) <= allowed
        assert_no_neighbour_exceeds(query, alone, NORMS)


@every_adjacency
def test_a_worst_pair_reaches_the_sensitivity_of_a_whitened_gradient(adjacency):
    problem = problem_of(n=4, adjacency=adjacency)
    query = gradient_of(problem, Vector.zero(P), "turned", clip=0.1)
    row = 0.9 * np.eye(1, P, 2)
    assert 0.999 <= squared_share(query, (row, 1.3), (row, -1.3)) <= 1


def test_a_gradient_that_is_not_clipped_is_the_mean_of_slopes_times_rows():
    x = np.array([[0.3, -0.2, 0.1, 0.0, 0.4, 0.2], [-0.1, 0.5, 0.0, 0.3, 0.0, 0.1]])
    y = np.array([0.4, -0.9])
    problem = problem_of(bounds=Bounds(1.0, 1.0), n=2)
    query = gradient_of(problem, Vector.zero(P), "turned", clip=1e3)
    found = query.from_total(LocalEngine(x, y, problem.bounds).total(query))
    white = WHITENINGS["turned"]
    u = np.column_stack([x @ white.matrix.T - white.centre, np.full(2, 2.5)])
    np.testing.assert_allclose(found, -2 * y @ u / 2, atol=1e-3)


# Second moments of clipped gradients


@every_loss
@every_bound
@every_whitening
def test_no_row_adds_more_than_the_squared_clip_of_its_gradient(loss, bounds, name):
    rng = np.random.default_rng(11)
    x, y = hostile_rows(rng, 4)
    problem = problem_of(loss, bounds, adjacency=ADD_REMOVE)
    for theta, clip, limit, constant, layout in zip(
        some_points(rng, 4), (1e-7, 0.3, 1e3, 1e-30), (np.inf, 0.2, 1e9, np.inf),
        (0.5, 0.0, 0.5, 0.5), (np.asarray, sparse.csr_array, np.asarray, np.asarray), strict=True,
    ):  # fmt: skip
        query = squares_of(problem, theta, name, clip, constant, limit=limit)
        alone = summands(query, x, y, layout)
        assert all(float(v) == int(v) for one in alone for v in one)
        assert_no_neighbour_exceeds(query, alone, NORMS)


@every_adjacency
def test_a_worst_pair_reaches_the_sensitivity_of_squared_gradients(adjacency):
    problem = problem_of(n=4, adjacency=adjacency)
    query = squares_of(problem, Vector.zero(P), "plain", clip=0.01, constant=0.0, reach=1.0)
    pair = [(0.9 * np.eye(1, P, j), 1.3) for j in (0, 1)]
    assert 0.999 <= squared_share(query, *pair) <= 1


def test_squared_gradients_that_are_not_clipped_are_what_they_say():
    x = np.array([[0.3, -0.2, 0.1, 0.0, 0.4, 0.2], [-0.1, 0.5, 0.0, 0.3, 0.0, 0.1]])
    y = np.array([0.4, -0.9])
    problem = problem_of(bounds=Bounds(1.0, 1.0), n=2)
    query = squares_of(problem, Vector.zero(P), "turned", clip=9.0)
    found = query.from_total(LocalEngine(x, y, problem.bounds).total(query))
    white = WHITENINGS["turned"]
    u = np.column_stack([x @ white.matrix.T - white.centre, np.full(2, 2.5)])
    g = (-2 * y)[:, None] * u
    np.testing.assert_allclose(found, g.T @ g / 2, atol=4e-3)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("clip", [0.02, 0.4, 1e3])
def test_shortened_slopes_of_labels_have_the_mean_0_at_the_true_model(clip):
    """Each row stands for both labels, with the probabilities that the model gives them."""
    rng = np.random.default_rng(10)
    x, theta = rng.uniform(-1, 1, (40, P)), Vector.of(rng.normal(size=P)).with_offset(-1.5)
    problem = problem_of(losses.Logistic(), Bounds(1.0, 1.0), n=1)
    query = gradient_of(problem, theta, "turned", clip)
    chances = expit(x @ theta.dense() + theta.offset)
    ours, theirs = (
        np.array([LocalEngine(row[None], [y], problem.bounds).total(query) for row in x])
        for y in (1.0, -1.0)
    )
    left = np.abs(chances[:, None] * ours + (1 - chances)[:, None] * theirs)
    assert (left <= X_STEPS + 1e-4 * np.abs(ours)).all()
    if clip < 0.1:  # and many were shortened
        whole = gradient_of(problem, theta, "turned", 1e3)
        plain = [LocalEngine(row[None], [-1.0], problem.bounds).total(whole) for row in x]
        assert (np.abs(theirs).max(axis=1) < 0.9 * np.abs(plain).max(axis=1)).mean() > 0.5


def test_a_label_of_a_weight_beyond_the_two_that_are_compared_is_clipped():
    problem = problem_of(
        losses.Weighted(losses.OneAgainstRest(losses.Logistic(), 1), (0.3, 7.0, 900.0)),
        Bounds(1.0, 2.0), n=1, adjacency=ADD_REMOVE,
    )  # fmt: skip
    query = gradient_of(problem, Vector.zero(P), "turned", clip=0.4)
    row = (0.9 * np.eye(1, P, 2), 2.0)
    assert 0.99 <= squared_share(query, row, row) <= 1


# Broken twins


@every_query
def test_rows_whose_length_is_measured_before_whitening_are_caught(query_of, monkeypatch):
    x, y = hostile_rows(np.random.default_rng(9), 12)
    query = query_of(problem_of(n=3), Vector.zero(P), "turned", constant=0.01)
    assert_no_neighbour_exceeds(query, summands(query, x, y), ["l2"])
    honest = np.einsum

    def short(paths, a, b):
        return honest(paths, a, b) * 1e-4

    monkeypatch.setattr(np, "einsum", short)
    with pytest.raises(AssertionError):
        assert_no_neighbour_exceeds(query, summands(query, x, y), ["l2"])
