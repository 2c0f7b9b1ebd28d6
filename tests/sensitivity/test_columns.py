"""Moments of columns and gradients of centred, scaled rows keep their bounds, in exact arithmetic.

Rows, centres and scales are hostile; centres and scales are public, as in a fit. Every comparison
is one of `Fraction`s.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.grid import MOST_ROWS, X_STEPS, slope_steps
from riata.mechanisms import GaussianMechanism
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE
from riata.queries import Block, CentredGradient, ColumnSquares, ColumnSums
from riata.queries.columns import MOST_COLUMNS, WEIGHT_STEPS, Scaling
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


def scaling(columns, centre, weights, step=1e-3):
    whole = (np.array(v, dtype=np.int64) for v in (centre, weights))
    return Scaling(P, np.array(columns), *whole, step)


#: Centres at the ends of the bounds, scales that differ by orders of magnitude, one column.
SCALINGS = {
    "plain": scaling(range(P), [0] * P, [1] * P),
    "far": scaling(range(P), [X_STEPS - 1, 1 - X_STEPS] * (P // 2), [7] * P),
    "steep": scaling([0, 2, 3, 5], [9, -800, 65535, 0], [1, 2**27 - 99, 31, 2**27], 1e-9),
    "one": scaling([4], [-31_000], [2**28], 1e4),
    "made": Scaling.of(P, np.arange(P), np.linspace(-1, 1, P), 10.0 ** np.arange(-4.0, P - 4)),
}
every_scaling = pytest.mark.parametrize("name", SCALINGS)


def typical_length(scaled):
    """About how long a row on the grid is in the scaled space."""
    return scaled.step * float(np.sqrt(scaled.weights.sum()))


# Moments


@every_bound
@every_adjacency
@every_layout
@pytest.mark.parametrize("limit", [None, 1e-9, 0.01, 0.3, 1.0, 7.0])
def test_moments_of_columns_keep_their_sensitivity(bounds, adjacency, layout, limit):
    x, y = hostile_rows(np.random.default_rng(1), 15)
    problem = problem_of(bounds=bounds, n=2, adjacency=adjacency)
    query = ColumnSums(problem) if limit is None else ColumnSquares(problem, limit)
    assert_no_neighbour_exceeds(query, summands(query, x, y, layout), NORMS)


@every_bound
@pytest.mark.parametrize("limit", [0.01, 0.3, 1.0])
def test_moments_are_what_integers_give_in_any_storage_and_order(bounds, limit):
    rng = np.random.default_rng(2)
    x, y = hostile_rows(rng, 25)
    problem = problem_of(bounds=bounds, n=len(x))
    cut = int(np.ceil(limit * X_STEPS))
    for layout in (np.asarray, sparse.csr_array):
        grid = bounds.grid_x(layout(x))
        rows = grid.toarray() if sparse.issparse(grid) else grid
        columns = [[int(v) for v in column] for column in rows.T]
        expected = (
            [sum(column) for column in columns],
            [sum(min(abs(v), cut) ** 2 // cut for v in column) for column in columns],
        )
        for query, sums in zip(
            (ColumnSums(problem), ColumnSquares(problem, limit)), expected, strict=True
        ):
            for block in (1, 13, 10**6):
                order = rng.permutation(len(x))
                engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=block)
                assert engine.total(query).tolist() == sums
            targets = bounds.clip_y(y)
            np.testing.assert_array_equal(
                query.block_sum(Block(sparse.csr_array(rows), targets)),
                query.block_sum(Block(rows, targets)),
            )


@every_adjacency
def test_worst_pairs_reach_the_sensitivities_of_moments(adjacency):
    problem = problem_of(n=3, adjacency=adjacency)
    rows = np.zeros((3, P))
    rows[0, 0], rows[1, 0], rows[2, 1] = 9.0, -9.0, 9.0
    for query, other in ((ColumnSums(problem), 1), (ColumnSquares(problem, 1.0), 2)):
        assert 0.999 <= squared_share(query, (rows[0], 0.0), (rows[other], 0.0)) <= 1


def test_moments_of_no_rows_are_zero():
    for query in (ColumnSums(problem_of()), ColumnSquares(problem_of(), 0.5)):
        for layout in (np.asarray, sparse.csr_array):
            none = LENGTH.grid_x(layout(np.zeros((0, P))))
            np.testing.assert_array_equal(query.block_sum(Block(none, np.zeros(0))), np.zeros(P))


# Scalings


@every_scaling
@every_layout
def test_the_length_of_a_scaled_row_is_an_exact_integer(name, layout):
    scaled = SCALINGS[name]
    x, _ = hostile_rows(np.random.default_rng(3), 12)
    for bounds in (LENGTH, Bounds(0.9, 1.3)):
        grid = bounds.grid_x(layout(x))
        dense = grid.toarray() if sparse.issparse(grid) else grid
        expected = [
            sum(
                int(a) * (int(row[j]) - int(c)) ** 2
                for j, c, a in zip(scaled.columns, scaled.centre_steps, scaled.weights, strict=True)
            )
            for row in dense
        ]
        assert scaled.squared_lengths(grid).tolist() == expected
        assert max(expected) <= 2**62


def test_a_scaling_is_as_asked_up_to_its_grids():
    variances = 10.0 ** np.array([-4.0, -3.0, 0.0, 1.0, 2.0, -1.0])
    centre = np.array([0.1, -0.3, 1.0, -1.0, 0.7, 0.0])
    made = Scaling.of(P, np.arange(P), centre, variances)
    np.testing.assert_allclose(made.centre, centre, atol=2 / X_STEPS)
    np.testing.assert_allclose(made.scales[:3], variances[:3] ** -0.5, rtol=1e-3)
    assert made.weights.min() >= 1
    for spread in (np.ones(4), np.array([1e-300, 1.0, 1e300]), np.full(3, 1e-280)):
        size = len(spread)
        extreme = Scaling.of(size, np.arange(size), np.zeros(size), spread)
        assert 1 <= extreme.weights.min() <= extreme.weights.sum() <= 2 * WEIGHT_STEPS


@pytest.mark.parametrize(
    ("centre", "weights", "step"),
    [
        ([X_STEPS], [1], 1.0), ([-X_STEPS], [1], 1.0), ([0], [0], 1.0), ([0], [-1], 1.0),
        ([0], [2 * WEIGHT_STEPS + 1], 1.0), ([0], [1], 0.0), ([0], [1], np.inf),
        ([0], [1], np.nan), ([0, 1], [1], 1.0), ([0], [1, 1], 1.0), ([-(2**63)], [1], 1.0),
    ],
)  # fmt: skip
def test_a_scaling_off_its_grids_is_refused(centre, weights, step):
    with pytest.raises(ValueError, match=r"scaling|centre|weights"):
        scaling([3], centre, weights, step)


def test_weights_whose_sum_wraps_around_are_refused():
    with pytest.raises(ValueError, match="weights are too large"):
        scaling([1, 3], [0, 0], [2**62, 2**62], 1.0)


def test_sums_of_centred_rows_fit_into_64_bits():
    largest = max(
        slope_steps(n) * (2 * X_STEPS - 1) * n for n in (1, 2**20, 2**26, 2**26 + 1, MOST_ROWS)
    )
    assert largest + 2**45 < 2**63  # room for the noise where it is not rounded to a coarser grid
    assert 2 * WEIGHT_STEPS * (2 * X_STEPS) ** 2 <= 2**62
    assert WEIGHT_STEPS + 3 * MOST_COLUMNS // 2 <= 2 * WEIGHT_STEPS


# Gradients


@every_loss
@every_bound
@every_layout
@every_scaling
def test_no_row_adds_more_than_the_length_allows(loss, bounds, layout, name):
    rng = np.random.default_rng(4)
    x, y = hostile_rows(rng, 6)
    scaled = SCALINGS[name]
    problem = problem_of(loss, bounds, adjacency=ADD_REMOVE)
    for theta, part, limit in zip(
        some_points(rng, 3), (1e-7, 0.3, 1e3), (np.inf, 0.2, 1e9), strict=True
    ):
        size = part * typical_length(scaled)
        query = CentredGradient(problem, theta, limit, scaled, size)
        alone = summands(query, x, y, layout)
        allowed = (Fraction(query.slope_bound()) * Fraction(size) * (1 + Fraction(1, 2**40))) ** 2
        assert max(squared_lengths(query, alone)) <= allowed
        assert_no_neighbour_exceeds(query, alone, NORMS)
        # Rows that are short enough are not touched.
        grid, targets = bounds.grid_x(layout(x)), bounds.clip_y(y)
        lengths = np.sqrt(scaled.squared_lengths(grid)) * (scaled.step / X_STEPS)
        short = lengths <= 0.999 * size
        assert short.any() or part < 1
        np.testing.assert_array_equal(
            query.shortened(Block(grid, targets))[short], query.slopes(Block(grid, targets))[short]
        )


@every_adjacency
@every_layout
@every_scaling
def test_neighbours_keep_the_sensitivity_of_a_centred_gradient(adjacency, layout, name):
    rng = np.random.default_rng(5)
    x, y = hostile_rows(rng, 15)
    scaled = SCALINGS[name]
    problem = problem_of(bounds=LENGTH, n=3, adjacency=adjacency)
    for theta, part in itertools.product(some_points(rng, 2), (0.05, 2.0)):
        query = CentredGradient(problem, theta, 0.7, scaled, part * typical_length(scaled))
        assert_no_neighbour_exceeds(query, summands(query, x, y, layout), NORMS)


@every_scaling
@every_bound
def test_a_centred_sum_is_what_integers_give_in_any_storage_and_order(name, bounds):
    rng = np.random.default_rng(6)
    x, y = hostile_rows(rng, 20)
    scaled = SCALINGS[name]
    problem = problem_of(bounds=bounds, n=len(x))
    theta = Vector.of(np.arange(P) / 5).with_offset(-0.2)
    query = CentredGradient(problem, theta, 0.8, scaled, 0.4 * typical_length(scaled))
    for layout in (np.asarray, sparse.csr_array):
        grid, targets = bounds.grid_x(layout(x)), bounds.clip_y(y)
        rows = grid.toarray() if sparse.issparse(grid) else grid
        slopes = [int(s) for s in query.shortened(Block(grid, targets))]
        expected = [
            sum(s * (int(row[j]) - int(c)) for s, row in zip(slopes, rows, strict=True))
            for j, c in zip(scaled.columns, scaled.centre_steps, strict=True)
        ]
        for block in (1, 13, 10**6):
            order = rng.permutation(len(x))
            engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=block)
            assert engine.total(query).tolist() == expected
        np.testing.assert_array_equal(
            query.block_sum(Block(sparse.csr_array(rows), targets)),
            query.block_sum(Block(rows, targets)),
        )


@every_adjacency
def test_a_worst_pair_reaches_the_sensitivity_of_a_centred_gradient(adjacency):
    scaled = scaling([0, 2], [30_000, -9], [50, 3])
    problem = problem_of(n=4, adjacency=adjacency)
    query = CentredGradient(problem, Vector.zero(P), np.inf, scaled, 0.1 * typical_length(scaled))
    row = 0.9 * np.eye(1, P, 2)
    assert 0.999 <= squared_share(query, (row, 1.3), (row, -1.3)) <= 1


def test_the_noise_is_the_same_in_every_direction_of_the_scaled_space():
    scaled = scaling([1, 2, 5], [9, 800, -3], [1, 400, 2**20])
    problem = problem_of(n=5)
    query = CentredGradient(problem, Vector.zero(P), np.inf, scaled, 0.3)
    engine, noise = LocalEngine(np.zeros((5, P)), np.zeros(5), LENGTH), Noise(7)
    mechanism = GaussianMechanism(1.7)
    draws = np.array([mechanism.release(query, engine, noise) for _ in range(3_000)])
    np.testing.assert_allclose(draws.std(axis=0), 1.7 * query.sensitivity("l2"), rtol=0.07)
    together = np.corrcoef(draws.T) - np.eye(3)
    assert np.abs(together).max() < 0.1


def test_rows_whose_length_is_measured_before_centring_are_caught(monkeypatch):
    scaled = SCALINGS["far"]
    problem = problem_of(n=3)
    size = 0.5 * typical_length(scaled)
    query = CentredGradient(problem, Vector.zero(P), np.inf, scaled, size)
    x, y = np.zeros((2, P)), np.array([1.3, -1.3])
    assert_no_neighbour_exceeds(query, summands(query, x, y), ["l2"])

    def without_centring(self, x):
        return np.square(x[:, self.columns].astype(np.int64)) @ self.weights

    monkeypatch.setattr(Scaling, "squared_lengths", without_centring)
    with pytest.raises(AssertionError):
        assert_no_neighbour_exceeds(query, summands(query, x, y), ["l2"])
