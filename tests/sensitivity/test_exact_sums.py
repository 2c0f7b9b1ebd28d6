"""Sums over rows are exact: they depend on the rows and on nothing else.

Not on the order of the rows, on threads, blocks or storage. So neighbours differ by one row's
summand and not by rounding as well, and that summand is an integer of known size.
"""

import functools
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression, losses
from riata.engines import LocalEngine, choice
from riata.errors import InvalidArgument
from riata.grid import BLOCK_ROWS, MOST_ROWS, MOST_SLOPE_STEPS, X_STEPS, slope_steps
from riata.losses import Huber, Logistic, Loss, SmoothedHinge, Squared
from riata.problem import Problem
from riata.queries import Block, Gradient, MeanSlope, Minimum
from riata.sets import L1Ball, L2Ball
from riata.solvers import GaussianFrankWolfe
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=11)

N, P = 3_001, 40
RNG = np.random.default_rng(51)
X = RNG.standard_normal((N, P)) * 10.0 ** RNG.integers(-3, 2, (N, 1))
X[RNG.random((N, P)) < 0.3] = 0.0
X[0, 0], X[1, 1], X[2, 2] = np.nan, np.inf, -1e300
Y = RNG.standard_normal(N)
THETA = Vector.of(RNG.standard_normal(P) / P).with_offset(0.3)
ORDER = RNG.permutation(N)

LOSSES = [Squared(), Huber(0.3), Logistic(), SmoothedHinge(0.5)]
ENTRYWISE = [Bounds(0.9, 1.0), Bounds(np.linspace(0.1, 3.0, P), 1.0)]
LENGTHWISE = [
    Bounds(1.7, 1.0, norm="l2"),
    Bounds(0.9, 1.0, length=1.7),
    Bounds(np.linspace(0.1, 3.0, P), 1.0, length=2.0),
]
every_loss = pytest.mark.parametrize("loss", losses.REGISTRY.complete(LOSSES), ids=repr)
every_bound = pytest.mark.parametrize("bounds", [*ENTRYWISE, *LENGTHWISE], ids=repr)


def totals(loss, bounds, x, y, **how):
    """The sums of both kinds of query at a point with few and at one with many non-zeros."""
    problem = Problem(loss, L1Ball(2.0), bounds, N, P, fit_intercept=True)
    engine = LocalEngine(x, y, bounds, **how)
    found = []
    for theta in (THETA, Vector.unit(P, 3, 0.7)):
        found += [engine.total(Gradient(problem, theta)), engine.total(MeanSlope(problem, theta))]
    assert all(total.dtype == np.int64 for total in found)
    return np.concatenate(found)


@every_loss
@every_bound
def test_a_sum_does_not_depend_on_the_order_of_the_rows(loss, bounds):
    expected = totals(loss, bounds, X, Y)
    np.testing.assert_array_equal(totals(loss, bounds, X[ORDER], Y[ORDER]), expected)
    np.testing.assert_array_equal(totals(loss, bounds, X[::-1], Y[::-1]), expected)


@every_loss
@every_bound
@pytest.mark.parametrize("shards", range(1, 17))
def test_a_sum_does_not_depend_on_how_rows_are_cut_into_blocks(loss, bounds, shards):
    expected = totals(loss, bounds, X, Y)
    cut = totals(loss, bounds, X, Y, block_rows=-(-N // shards))
    np.testing.assert_array_equal(cut, expected)


@every_loss
@pytest.mark.parametrize("bounds", ENTRYWISE, ids=repr)
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_a_sum_does_not_depend_on_sparse_storage(loss, bounds, container):
    expected = totals(loss, bounds, X, Y)
    np.testing.assert_array_equal(totals(loss, bounds, container(X), Y), expected)


@every_loss
@every_bound
@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: np.repeat(x, 2, axis=1)[:, ::2]])
def test_a_sum_does_not_depend_on_memory_order(loss, bounds, layout):
    np.testing.assert_array_equal(totals(loss, bounds, layout(X), Y), totals(loss, bounds, X, Y))


def test_a_row_at_a_rounding_boundary_has_one_image_in_every_memory_order():
    # Sums of squares over columns round differently in the two orders. Bisection finds rows whose
    # image would show it.
    bounds, rng, moved = Bounds(1.0, norm="l2"), np.random.default_rng(52), 0
    for _ in range(40):
        x = rng.standard_normal((2, P))

        def image(value, layout, x=x):
            x[0, 0] = value
            return bounds.grid_x(layout(x))[0, 0]

        low, high = 0.5, 0.6
        start = image(low, np.ascontiguousarray)
        while low < (middle := (low + high) / 2) < high:
            if image(middle, np.ascontiguousarray) > start:
                high = middle
            else:
                low = middle
        for value in (low, high):
            assert image(value, np.asfortranarray) == image(value, np.ascontiguousarray)
        moved += image(low, np.ascontiguousarray) < image(high, np.ascontiguousarray)
    assert moved == 40


# Whole fits.


def fitted(x, y):
    """The bytes of three models: two that select and one with Gaussian noise."""
    common = {"bounds": Bounds(1.0, 1.0), "random_state": 7}
    models = [
        PrivateLasso(2.0, 1e-6, **common).fit(x, y),
        PrivateLogisticRegression(2.0, 1e-6, classes=[0, 1, 2], **common).fit(
            x, np.digitize(y, [-0.4, 0.4])
        ),
        PrivateErm(Huber(0.5), L2Ball(1.0), 2.0, 1e-6, solver=GaussianFrankWolfe(12), **common).fit(
            x, y
        ),
    ]
    return b"".join(part.tobytes() for m in models for part in (m.coef_, np.array(m.intercept_)))


def test_a_fit_does_not_depend_on_the_order_of_the_rows():
    assert fitted(X[ORDER], Y[ORDER]) == fitted(X, Y)


@pytest.mark.not_quick
@pytest.mark.parametrize("block_rows", [7, 1, 200, 1_500])
def test_a_fit_does_not_depend_on_how_rows_are_cut_into_blocks(monkeypatch, block_rows):
    expected = fitted(X[:500], Y[:500])
    in_blocks = functools.partial(LocalEngine, block_rows=block_rows)
    monkeypatch.setattr(choice, "LocalEngine", in_blocks)
    assert fitted(X[:500], Y[:500]) == expected


def test_a_fit_does_not_depend_on_storage():
    expected = fitted(X, Y)
    assert fitted(np.asfortranarray(X), Y) == expected
    assert fitted(sparse.csr_array(X), Y) == expected


_THREADS = """
import sys
import numpy, threadpoolctl
sys.path.insert(0, sys.argv[1])
import test_exact_sums as this
used = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()
        if pool["user_api"] == "blas"}
print(used, this.fitted(this.X, this.Y).hex())
"""


@pytest.mark.long
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
def test_a_fit_does_not_depend_on_the_number_of_threads():
    printed = []
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
        done = subprocess.run(
            [sys.executable, "-c", _THREADS, os.path.dirname(__file__)],
            env=os.environ | dict.fromkeys(names, threads),
            capture_output=True,
            text=True,
            timeout=3600,
        )
        assert done.returncode == 0, done.stderr
        used, model = done.stdout.split()
        assert used == f"{{{threads}}}"
        printed.append(model)
    assert printed[0] == printed[1] == fitted(X, Y).hex()


# The largest sums.

LARGEST = 2**53


def block_of_largest_rows(last):
    """A whole block of rows whose summands are all as large as they get, except for the last."""
    x, y = np.ones((BLOCK_ROWS, 1)), np.full(BLOCK_ROWS, -1.0)
    if last is not None:
        x[-1], y[-1] = last[0] / X_STEPS, -last[1] / MOST_SLOPE_STEPS
    return x, y


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_block_of_the_largest_rows_is_summed_without_rounding(container):
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), BLOCK_ROWS, 1)
    query = Gradient(problem, problem.set.start())
    for last, expected in [
        (None, LARGEST),
        ((1, 1), LARGEST - X_STEPS * MOST_SLOPE_STEPS + 1),  # odd: float64 has no more such numbers
        ((-1, 1), LARGEST - X_STEPS * MOST_SLOPE_STEPS - 1),
    ]:
        x, y = block_of_largest_rows(last)
        engine = LocalEngine(container(x), y, problem.bounds)
        assert len(engine._blocks) == 1
        assert [int(v) for v in engine.total(query)] == [expected]


def test_a_sum_beyond_float64_is_exact():
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), BLOCK_ROWS, 1)
    query = Gradient(problem, problem.set.start())
    engine = LocalEngine(*block_of_largest_rows((1, 1)), problem.bounds)
    engine._blocks = engine._blocks * 33
    total = 33 * (LARGEST - X_STEPS * MOST_SLOPE_STEPS + 1)
    assert int(float(total)) != total  # or the test would show nothing
    assert [int(v) for v in engine.total(query)] == [total]


def test_no_number_of_rows_that_a_problem_allows_overflows():
    assert MOST_ROWS * X_STEPS * slope_steps(MOST_ROWS) < 2**63
    Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), MOST_ROWS, 1)
    with pytest.raises(InvalidArgument, match="exact"):
        Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), MOST_ROWS + 1, 1)


@pytest.mark.parametrize("p", [1, 100, 20_000])
def test_margins_are_exact_for_the_longest_rows(p):
    # One product of integers for each column: their sum must fit float64 in any order.
    rng = np.random.default_rng(53)
    problem = Problem(Squared(), L1Ball(3.0), Bounds(1.0, 1.0), 2, p)
    theta = Vector.of(rng.dirichlet(np.ones(p)) * rng.choice([-3.0, 3.0], p))
    query = Gradient(problem, theta)
    signs = np.sign(theta.dense())
    margins = query.margins(Block(X_STEPS * np.vstack([signs, -signs]), None))
    assert margins[0] == -margins[1]
    assert margins[0] == pytest.approx(3.0, abs=p * 3.0 * 2.0**-34)
    shuffled = rng.permutation(p)
    again = Gradient(problem, Vector.of(theta.dense()[shuffled]))
    rows = rng.integers(-X_STEPS, X_STEPS + 1, (2, p)).astype(float)
    np.testing.assert_array_equal(
        query.margins(Block(rows, None)), again.margins(Block(rows[:, shuffled], None))
    )


class Broken(Loss):
    """A loss that claims a slope of at most 1 and returns something else."""

    name = "broken"

    def __init__(self, slope):
        self.returned = slope

    def value(self, margin, y):
        return np.zeros_like(margin)

    def slope(self, margin, y):
        return np.full_like(margin, self.returned)

    def curvature(self, margin, y):
        return np.full_like(margin, self.returned)

    def slope_bound(self, margin, y):
        return 1.0

    def curvature_bound(self, y):
        return 1.0

    def offset_bound(self, y):
        return 1.0


@pytest.mark.parametrize("slope", [np.nan, np.inf, -np.inf, 1e300, -1e300, 1 + 1e-9])
def test_a_loss_that_breaks_its_promise_cannot_exceed_the_bound(slope):
    problem = Problem(Broken(slope), L1Ball(1.0), Bounds(1.0, 1.0), 3, 2)
    engine = LocalEngine(np.ones((3, 2)), np.ones(3), problem.bounds)
    theta = problem.set.start()
    assert np.abs(engine.total(MeanSlope(problem, theta))).max() <= 3 * MOST_SLOPE_STEPS
    assert np.abs(engine.total(Gradient(problem, theta))).max() <= 3 * MOST_SLOPE_STEPS * X_STEPS


# Rows on the grid.

SCALES = [1e-60, 0.1, 1.0, 3.7, 1e60]


def hostile_rows(p, scale):
    """Rows inside, at, just outside and far outside bounds of this scale, and rubbish."""
    rng = np.random.default_rng(54)
    unit = rng.standard_normal((12, p))
    unit *= scale / np.linalg.norm(unit, axis=1, keepdims=True)
    half_steps = (rng.integers(0, 2, (4, p)) + 0.5) * scale / X_STEPS
    rubbish = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, scale, -scale]
    return np.vstack(
        [
            unit,
            unit * (1 + 2.0**-52),
            unit * 1e9,
            half_steps,
            scale * np.eye(1, p),
            np.full((1, p), scale),
            np.full((1, p), scale / np.sqrt(p)),
            np.full((1, p), 1e308),
            rng.choice(rubbish, (12, p)),
        ]
    )


def stored_twice(rows):
    """Sparse rows in which every entry is stored twice and counts as the sum of the two."""
    n, p = rows.shape
    data = np.stack([rows, rows], axis=1).reshape(-1)
    where = np.tile(np.arange(p), 2 * n)
    return sparse.csr_array((data, where, 2 * p * np.arange(n + 1)), shape=(n, p))


CONTAINERS = {"dense": np.asarray, "sparse": sparse.csr_array, "duplicates": stored_twice}
every_container = pytest.mark.parametrize("container", CONTAINERS)
every_norm = pytest.mark.parametrize("norm", ["inf", "l2"])


@every_container
@every_norm
@pytest.mark.parametrize("p", [1, 2, 3, 10, 100, 1_000, 10_000])
def test_every_row_on_the_grid_is_inside_the_bounds(container, norm, p):
    for scale in SCALES:
        rows = Bounds(scale, norm=norm).grid_x(CONTAINERS[container](hostile_rows(p, scale)))
        rows = rows.toarray() if sparse.issparse(rows) else rows
        assert np.abs(rows).max() <= X_STEPS
        steps = rows.astype(np.int64)
        assert np.array_equal(steps, rows)
        if norm == "l2":  # at most 10,000 * 2^32: exact in 64 bits
            assert (steps**2).sum(axis=1).max() <= X_STEPS**2


@every_container
@every_norm
@pytest.mark.parametrize("p", [1, 3, 40, 1_000])
def test_the_image_of_a_row_does_not_depend_on_other_rows(container, norm, p):
    bounds = Bounds(1.3, norm=norm)

    def images(rows):
        found = bounds.grid_x(CONTAINERS[container](rows))
        return found.toarray() if sparse.issparse(found) else found

    rows = hostile_rows(p, 1.3)
    together = images(rows)
    for i in range(len(rows)):
        np.testing.assert_array_equal(images(rows[i : i + 1])[0], together[i])
    shuffled = np.random.default_rng(55).permutation(len(rows))
    np.testing.assert_array_equal(images(rows[shuffled]), together[shuffled])


@every_container
@every_norm
def test_a_row_inside_the_bounds_moves_by_half_a_step_and_the_room_for_it(container, norm):
    rng = np.random.default_rng(56)
    rows = rng.uniform(-1, 1, (200, 9)) / 3  # every l2 norm is below 1
    bounds = Bounds(2.0, norm=norm)
    doubled = container == "duplicates"
    found = bounds.grid_x(CONTAINERS[container](rows))
    found = found.toarray() if sparse.issparse(found) else found
    meant = rows * (1 + doubled) / 2.0 * X_STEPS
    assert np.abs(found - meant).max() <= 0.5 + 1e-9


@every_norm
def test_the_longest_row_loses_almost_nothing(norm):
    for p in (1, 100, 10_000):
        row = np.eye(1, p) if norm == "l2" else np.ones((1, p))
        found = Bounds(1.0, norm=norm).grid_x(row)
        lost = 1 - np.abs(found).max() / X_STEPS
        assert lost <= (0 if norm == "inf" else np.sqrt(p) / 2**17 + 2.0**-16)


def test_fine_margins_do_not_depend_on_the_order_of_the_columns():
    # Those of objective perturbation: two products of integers, each exact in any order.
    rng, p = np.random.default_rng(54), 2_000
    minimum = Minimum(Problem(Squared(), L1Ball(3.0), Bounds(1.0, 1.0), 2, p))
    theta, rows = rng.standard_normal(p) / p, rng.integers(-X_STEPS, X_STEPS + 1, (50, p))
    order = rng.permutation(p)
    one = minimum.gradient(Vector.of(theta)).margins(Block(rows.astype(float), None))
    other = minimum.gradient(Vector.of(theta[order])).margins(
        Block(rows[:, order].astype(float), None)
    )
    np.testing.assert_array_equal(one, other)
