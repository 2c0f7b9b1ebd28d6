"""The queries of the refitting solvers keep their bounds on hostile rows, in exact arithmetic.

Sizes, clipped slopes, correlations, gradients and curvatures on a support, and improvements: what
one row adds is an integer of bounded size that depends on this row alone, and sensitivities hold to
the last bit. See docs/privacy/refit.md and docs/privacy/scales.md.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.grid import BLOCK_ROWS, MOST_ROWS, MOST_SLOPE_STEPS, X_STEPS
from riata.losses import Gamma, Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.mechanisms import GaussianMechanism, LaplaceMechanism, SampledGaussianMechanism
from riata.mechanisms.noise import Noise
from riata.mechanisms.sampled import _Sampled
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.queries import (
    Block,
    Coordinate,
    Correlations,
    EntrySizes,
    Gradient,
    Improvement,
    LengthSizes,
    LimitedSlope,
    MeanCurvature,
    SlopeSizes,
    SupportCurvature,
    SupportGradient,
)
from riata.queries.sizes import N_BINS, SHARE_STEPS, bins_of, upper_edges
from riata.queries.support import Support
from riata.sets import L1Ball, L2Ball
from riata.vectors import Vector

from exact_neighbours import (
    BOUNDS,
    LOSSES,
    P,
    exceeds,
    hostile_rows,
    in_fractions,
    some_points,
    squared_length,
    squared_share,
    whole_answers,
)

pytestmark = pytest.mark.matrix(one_in=19)

FEW = np.array([4, 1, 3])
every_loss = pytest.mark.parametrize("loss", [*LOSSES, OneAgainstRest(Logistic(), 1)], ids=repr)
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
LAYOUTS = [np.asarray, sparse.csr_array]


def with_explicit_zeros(x):
    """Sparse rows that store their zeros."""
    n, p = x.shape
    stored = (x.ravel().astype(float), np.tile(np.arange(p), n), p * np.arange(n + 1))
    return sparse.csr_array(stored, shape=x.shape)


def on_support(kind, **fixed):
    """A query on some columns: short, exact, long and generous limits."""

    def make(problem, theta, k):
        support = Support(FEW[: 1 + k % 3], problem.bounds)
        length = [0.37, support.longest, 2.0**-16, 3 * support.longest, 1e-300][k]
        constant = [0.0, 0.5, 1.0, 2.0**-17, 0.0][k] if "constant" not in fixed else 0.0
        return kind(problem, theta, LIMITS[k], support, length, constant)

    return make


#: Where slopes are clipped: sharply, nearly nowhere, nowhere, below everything, beyond the bound.
LIMITS = [0.03, 1.0, math.inf, 1e-300, 1e300]
ENTRY_LIMITS = [0.01, 1.0, 2.0**-16, 1e-300, 7.0]
MAKERS = {
    "slope sizes": lambda problem, theta, k: SlopeSizes(problem, theta),
    "entry sizes": lambda problem, theta, k: EntrySizes(problem),
    "length sizes": lambda problem, theta, k: LengthSizes(
        problem, Support(FEW[: 1 + k % 3], problem.bounds)
    ),
    "limited slope": lambda problem, theta, k: LimitedSlope(problem, theta, LIMITS[k]),
    "mean curvature": lambda problem, theta, k: MeanCurvature(problem, theta, LIMITS[k]),
    "correlations": lambda problem, theta, k: Correlations(
        problem, theta, LIMITS[k], ENTRY_LIMITS[-1 - k]
    ),
    "coordinate": lambda problem, theta, k: Coordinate(
        problem, theta, LIMITS[k], ENTRY_LIMITS[k], k % P
    ),
    "support gradient": on_support(SupportGradient),
    "support curvature": on_support(SupportCurvature),
    "support curvature without constant": on_support(SupportCurvature, constant=0.0),
    "improvement": lambda problem, theta, k: Improvement(
        problem,
        theta,
        Vector.unit(P, 2, 0.3).with_offset(0.1),
        [0.1, 2.0, 1e6, 1e-300, math.inf][k],
    ),
}
every_query = pytest.mark.parametrize("name", MAKERS)


def queries(name, problem, points):
    """Some of a kind, at several points and with several limits."""
    return [MAKERS[name](problem, theta, k) for k, theta in enumerate(points)]


def norms(query):
    return ("linf",) if type(query) is Correlations else ("l1", "l2", "linf")


def summands(query, bounds, x, y, layout=np.asarray):
    """What each row alone adds to the sum, as integers."""
    rows, targets = bounds.grid_x(layout(x)), bounds.clip_y(y)
    each = [query.block_sum(Block(rows[[i]], targets[[i]])) for i in range(len(targets))]
    assert all(np.array_equal(one, np.rint(one)) for one in each)
    return np.array(each).astype(np.int64)


def assert_no_neighbour_exceeds(query, alone):
    """Every row keeps `row_bound`, and no neighbour exceeds the sensitivity, as integers."""
    alone = np.unique(alone, axis=0)
    answers, unit = whole_answers(query, alone)
    for norm in norms(query):
        one_row = Fraction(query.row_bound(norm)) / query.n_rows * (1 + Fraction(1, 2**40))
        most = (min(one_row, Fraction(query.sensitivity(norm))) / unit) ** 2
        assert max(squared_length(answer, norm) for answer in answers) <= most
        assert not exceeds(query, alone, norm)


@every_query
@every_loss
@every_bound
@every_adjacency
def test_no_neighbour_changes_an_answer_by_more_than_its_sensitivity(name, loss, bounds, adjacency):
    rng = np.random.default_rng(40)
    x, y = hostile_rows(rng, 8)
    problem = Problem(loss, L1Ball(1.0), bounds, 3, P, adjacency, fit_intercept=True)
    for query in queries(name, problem, some_points(rng, 5)):
        assert_no_neighbour_exceeds(query, summands(query, bounds, x, y))


@every_query
@every_loss
@every_bound
def test_a_sum_is_that_of_its_rows_alone_in_every_order_block_and_layout(name, loss, bounds):
    rng = np.random.default_rng(41)
    x, y = hostile_rows(rng, 5)
    problem = Problem(loss, L1Ball(1.0), bounds, len(x), P)
    for query in queries(name, problem, some_points(rng, 5)):
        found = {}
        for layout in (*LAYOUTS, with_explicit_zeros, np.asfortranarray):
            expected = summands(query, bounds, x, y, layout).sum(axis=0)
            found[layout] = expected
            for block in (1, 13, 10**6):
                order = rng.permutation(len(x))
                engine = LocalEngine(layout(x[order]), y[order], bounds, block_rows=block)
                total = engine.total(query)
                assert total.dtype == np.int64
                np.testing.assert_array_equal(total, expected)
        if bounds.norm == "inf":  # a bound on the length leaves room for the entries stored
            for other in found.values():
                np.testing.assert_array_equal(other, found[np.asarray])


@every_query
def test_small_pieces_of_a_block_do_not_change_its_sum(monkeypatch, name):
    # Dense copies are made of a few rows at a time.
    rng = np.random.default_rng(42)
    x, y = hostile_rows(rng, 20)
    problem = Problem(Huber(0.5), L1Ball(1.0), BOUNDS[1], len(x), P)
    for query in queries(name, problem, some_points(rng, 5)):
        engine = [LocalEngine(layout(x), y, BOUNDS[1]) for layout in LAYOUTS]
        whole = engine[0].total(query)
        with monkeypatch.context() as patch:
            for limit, entries in (("_ENTRIES_AT_ONCE", 7), ("_CLIPPED_AT_ONCE", 13)):
                patch.setattr(f"riata.queries.block.{limit}", entries)
            patch.setattr("riata.queries.sizes._ROWS_AT_ONCE", 3)
            for each in engine:
                np.testing.assert_array_equal(each.total(query), whole)


@every_query
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_rows_add_nothing(name, layout):
    problem = Problem(Squared(), L1Ball(1.0), BOUNDS[0], 5, P)
    none = BOUNDS[0].grid_x(layout(np.zeros((0, P))))
    for query in queries(name, problem, [Vector.zero(P)]):
        np.testing.assert_array_equal(query.block_sum(Block(none, np.zeros(0))), 0.0)


# Summands with non-negative inner products


def inner(a, b, units):
    pairs = zip(a, b, units, strict=True)
    return sum(int(p) * int(q) * Fraction(float(u)) ** 2 for p, q, u in pairs)


@every_query
@every_loss
@every_bound
def test_inner_products_are_said_to_be_non_negative_exactly_where_they_are(name, loss, bounds):
    rng = np.random.default_rng(43)
    x, y = hostile_rows(rng, 8)
    problem = Problem(loss, L1Ball(1.0), bounds, 3, P)
    smallest = 0
    for query in queries(name, problem, some_points(rng, 5)):
        alone = np.unique(summands(query, bounds, x, y), axis=0)
        units = np.broadcast_to(query.unit, alone.shape[1:])
        pairs = itertools.combinations(alone, 2)
        found = min((inner(a, b, units) for a, b in pairs), default=0)
        assert found >= 0 or not query.nonnegative_inner
        smallest = min(smallest, found)
    assert query.nonnegative_inner == (name in NONNEGATIVE)
    if name != "improvement":  # whose first number, a loss, often outweighs the second
        assert (smallest < 0) == (name not in NONNEGATIVE)


NONNEGATIVE = (
    "mean curvature", "slope sizes", "entry sizes", "length sizes", "support curvature",
    "support curvature without constant",
)  # fmt: skip


def test_only_the_euclidean_sensitivity_is_smaller_where_inner_products_are_non_negative():
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 8, P)
    sizes = SlopeSizes(problem, Vector.zero(P))
    assert sizes.sensitivity("l2") == pytest.approx(math.sqrt(2) / 8, rel=1e-9)
    assert sizes.sensitivity("l1") == sizes.sensitivity("linf") == pytest.approx(2 / 8, rel=1e-9)
    removed = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 8, P, ADD_REMOVE)
    for norm in ("l1", "l2", "linf"):
        found = SlopeSizes(removed, Vector.zero(P)).sensitivity(norm)
        assert found == pytest.approx(1 / 8, rel=1e-9)


def test_a_secret_sample_does_not_count_on_non_negative_inner_products():
    # The replaced row and its replacement are sampled by different coins: each of them, alone, is
    # half of what the accountant of samples takes the sensitivity for.
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 8, P)
    for query in (SlopeSizes(problem, Vector.zero(P)), Gradient(problem, Vector.zero(P))):
        sampled = _Sampled(query, 2**62, Noise(0).coins())
        assert sampled.sensitivity("l2") >= 2 * query.row_bound("l2") / query.n_rows
    mechanism = SampledGaussianMechanism(1e-6, 1.0)
    engine = LocalEngine(np.zeros((8, P)), np.ones(8), problem.bounds)
    assert len(mechanism.release(SlopeSizes(problem, Vector.zero(P)), engine, Noise(0))) == N_BINS


# Pairs that reach the bounds


def worst_pairs():
    entries = Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], 1.3)
    up = np.sign([0, 1, 0, 1, 1, 0]) * entries.x
    problem = Problem(Squared(), L1Ball(1.0), entries, 4, P)
    support = Support(FEW, entries)
    zero = Vector.zero(P)
    yield "limited slope", LimitedSlope(problem, zero, 0.5), (up, 1.3), (up, -1.3)
    # One number between 0 and the limit, for which the factor is 1 and sqrt(2) is allowed.
    counts = replace(problem, loss=Gamma(0.1))
    yield "mean curvature", MeanCurvature(counts, zero, 0.5), (up, 1.3), (up, -1.3)
    yield "coordinate", Coordinate(problem, zero, 0.5, 0.2, 1), (up, 1.3), (-up, 1.3)
    yield "correlations", Correlations(problem, zero, 0.5, 0.2), (up, 1.3), (-up, 1.3)
    gradient = SupportGradient(problem, zero, 0.5, support, 0.4, 0.3)
    yield "support gradient", gradient, (up, 1.3), (up, -1.3)
    # Orthogonal rows: the change of a curvature is sqrt(2) lengths.
    first, second = (up * (np.arange(P) == j) for j in (1, 4))
    curvature = SupportCurvature(problem, zero, math.inf, support, 0.9, 0.0)
    yield "support curvature", curvature, (first, 1.3), (second, 1.3)
    yield "slope sizes", SlopeSizes(problem, zero), (up, 1.3), (up, 0.01)
    yield "entry sizes", EntrySizes(problem), (up, 1.3), (up / 9, 1.3)
    yield "length sizes", LengthSizes(problem, support), (up, 1.3), (up / 9, 1.3)
    improvement = Improvement(problem, Vector.unit(P, 1, 1.0), zero, 0.1)
    yield "improvement", improvement, (up, 1.3), (0 * up, 0.0)


@pytest.mark.parametrize("pair", list(worst_pairs()), ids=lambda pair: pair[0])
@every_adjacency
def test_a_worst_pair_comes_near_to_the_sensitivity(pair, adjacency):
    name, query, ours, theirs = pair
    query = replace(query, problem=replace(query.problem, adjacency=adjacency))
    norm = "linf" if name == "correlations" else "l2"
    share = math.sqrt(squared_share(query, ours, theirs, norm))
    least = 0.89
    if adjacency == REPLACE_ONE:
        least = {"improvement": 0.49, "mean curvature": 0.7}.get(name, least)
    assert least <= share <= 1


# The largest sums


def largest_queries():
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Squared(), L1Ball(1.0), bounds, MOST_ROWS, 1)
    zero, support = Vector.zero(1), Support(np.array([0]), bounds)
    yield "correlations", Correlations(problem, zero, math.inf, 1.0)
    yield "coordinate", Coordinate(problem, zero, math.inf, 1.0, 0)
    yield "support gradient", SupportGradient(problem, zero, math.inf, support, 2.0, 1.0)
    yield "support curvature", SupportCurvature(problem, zero, math.inf, support, 2.0, 1.0)
    yield "mean curvature", MeanCurvature(problem, zero, 2.0)
    yield "entry sizes", EntrySizes(problem)
    yield "length sizes", LengthSizes(problem, support)
    yield "slope sizes", SlopeSizes(problem, zero)
    yield "improvement", Improvement(problem, Vector.unit(1, 0, 1.0), zero, 0.5)


@pytest.mark.parametrize("query", [pytest.param(q, id=name) for name, q in largest_queries()])
@pytest.mark.parametrize("container", LAYOUTS)
def test_a_block_of_the_largest_rows_is_summed_without_rounding(query, container):
    bounds = Bounds(1.0, 1.0)
    x, y = np.ones((BLOCK_ROWS, 1)), np.full(BLOCK_ROWS, -1.0)
    x[-1], y[-1] = 1 / X_STEPS, -1 / MOST_SLOPE_STEPS  # an odd last digit
    one, last = (
        query.block_sum(Block(bounds.grid_x(x[[i]]), y[[i]])).astype(np.int64).tolist()
        for i in (0, -1)
    )
    engine = LocalEngine(container(x), y, bounds)
    assert len(engine._blocks) == 1
    expected = [(BLOCK_ROWS - 1) * a + b for a, b in zip(one, last, strict=True)]
    assert engine.total(query).tolist() == expected
    assert max(abs(a) for a in one) * MOST_ROWS <= 2**62


# Limits at the edges of floating point

EDGES = [0.0, -0.0, -1.0, math.nan, 5e-324, 1e-310, 1e-300, 1e300, math.inf]


@pytest.mark.parametrize("limit", EDGES)
@every_loss
def test_every_limit_leaves_ordinary_noise(limit, loss):
    rng = np.random.default_rng(44)
    x, y = hostile_rows(rng, 4)
    problem = Problem(loss, L1Ball(1.0), Bounds(1.0, 1.3), 3, P)
    theta = Vector.unit(P, 1, 0.4)
    support = Support(FEW, problem.bounds)
    made = [
        LimitedSlope(problem, theta, limit),
        Coordinate(problem, theta, limit, 0.5, 2),
        Correlations(problem, theta, limit, 0.5),
        SupportGradient(problem, theta, limit, support, 0.5, 0.2),
        SupportCurvature(problem, theta, limit, support, 0.5, 0.2),
        Improvement(problem, theta, Vector.zero(P), limit),
    ]
    for query in made:
        assert_no_neighbour_exceeds(query, summands(query, problem.bounds, x, y))
        for norm in norms(query):
            assert 1e-200 < query.sensitivity(norm) < 1e200
        if "l2" in norms(query):
            scale = GaussianMechanism(1.0).scale(query) / np.asarray(query.unit)
            assert np.isfinite(scale).all()
            assert (scale > 1).all()


@pytest.mark.parametrize("length", [0.0, -1.0, math.nan, math.inf])
def test_a_length_or_constant_out_of_range_is_refused(length):
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 3, P)
    support = Support(FEW, problem.bounds)
    for kind in (SupportGradient, SupportCurvature):
        with pytest.raises(InvalidArgument, match="length"):
            kind(problem, Vector.zero(P), 1.0, support, length, 0.0)
        with pytest.raises(InvalidArgument, match="constant"):
            kind(problem, Vector.zero(P), 1.0, support, 1.0, 1.0 + abs(length or 1.0))


@every_bound
def test_rows_on_a_support_are_no_longer_than_allowed(bounds):
    rng = np.random.default_rng(45)
    problem = Problem(Squared(), L1Ball(1.0), bounds, 3, P)
    support = Support(FEW, bounds)
    block = rng.integers(-X_STEPS, X_STEPS + 1, (300, 3)).astype(float)
    block[:50] *= rng.choice([0.0, 1.0], (50, 3))
    lengths = support.lengths(block) / X_STEPS
    for length in (*lengths[lengths > 0][:40], 0.1, 1.0, math.sqrt(3), 1e-5):
        for constant in (0.0, 0.3, 1 / 3):
            query = SupportGradient(problem, Vector.zero(P), 1.0, support, float(length), constant)
            rows = query.rows(block)
            assert np.array_equal(rows, np.rint(rows))
            allowed = Fraction(float(length)) ** 2 + Fraction(constant) ** 2
            for row in rows:
                assert Fraction(sum(int(v) ** 2 for v in row), X_STEPS**2) <= allowed
            short = lengths <= length * (1 - 1e-9)
            np.testing.assert_array_equal(rows[short, :3], block[short])  # no other function


class Odd(Squared):
    """A loss that breaks its promises about curvature."""

    name = "odd"

    def __init__(self, returned, bound=2.0):
        object.__setattr__(self, "returned", returned)
        object.__setattr__(self, "bound", bound)

    def curvature(self, margin, y):
        return np.full_like(margin, self.returned)

    def curvature_bound(self, y):
        return self.bound


@pytest.mark.parametrize("returned", [math.nan, math.inf, -math.inf, -3.0, 1e300, -0.0, 2 + 1e-9])
def test_a_curvature_that_breaks_its_promise_cannot_exceed_the_bound(returned):
    rng = np.random.default_rng(46)
    x, y = hostile_rows(rng, 8)
    problem = Problem(Odd(returned), L1Ball(1.0), Bounds(1.0, 1.0), 3, P)
    theta, support = Vector.unit(P, 2, 0.5), Support(FEW, problem.bounds)
    for limit in (0.1, math.inf):
        for query in (
            SupportCurvature(problem, theta, limit, support, 0.7, 0.4),
            Coordinate(problem, theta, limit, 0.3, 2),
        ):
            alone = summands(query, problem.bounds, x, y)
            assert_no_neighbour_exceeds(query, alone)
            weights = query.weights(Block(problem.bounds.grid_x(x), problem.bounds.clip_y(y)))
            assert ((weights >= 0) & (weights <= 1)).all()


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf, 1e200, 1e-200])
def test_a_curvature_bound_that_no_noise_can_be_scaled_to_is_refused(bound):
    problem = Problem(Odd(2.0, bound), L1Ball(1.0), Bounds(1.0, 1.0), 3, P)
    theta, support = Vector.zero(P), Support(FEW, problem.bounds)
    curvature = SupportCurvature(problem, theta, 1.0, support, 0.7, 0.4)
    coordinate = Coordinate(problem, theta, 1.0, 0.3, 2)
    engine = LocalEngine(np.ones((3, P)), np.ones(3), problem.bounds)
    for query in (curvature, coordinate):
        with pytest.raises(InvalidArgument, match="curvature bound"):
            GaussianMechanism(1.0).release(query, engine, Noise(0))


@every_loss
def test_weights_are_curvatures_as_parts_of_the_largest_one(loss):
    problem = Problem(loss, L1Ball(1.0), Bounds(1.0, 1.0), 3, P)
    rng = np.random.default_rng(47)
    x, y = rng.uniform(-1, 1, (200, P)), rng.choice([-1.0, 1.0], 200)
    rows = problem.bounds.grid_x(x)
    theta = Vector.of(np.array([0.3, 0.0, -0.2, 0.0, 0.5, 0.0]))
    free = LimitedSlope(problem, theta, math.inf)
    margins = free.margins(Block(rows, y))
    expected = loss.curvature(margins, y) / loss.curvature_bound(1.0)
    np.testing.assert_allclose(free.weights(Block(rows, y)), expected, rtol=1e-12)
    slopes = np.abs(loss.slope(margins, y))
    cut = LimitedSlope(problem, theta, 0.1)
    with np.errstate(divide="ignore"):
        expected = expected * np.minimum(1.0, 0.1 / slopes)
    np.testing.assert_allclose(cut.weights(Block(rows, y)), expected, rtol=1e-12)


# What each query means


def test_answers_are_the_means_that_they_are_named_for():
    rng = np.random.default_rng(48)
    n, bounds = 400, Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], 1.3)
    x, y = rng.uniform(-1, 1, (n, P)) * bounds.x, rng.uniform(-1.3, 1.3, n)
    problem = Problem(Squared(), L1Ball(1.0), bounds, n, P, fit_intercept=True)
    theta = Vector.of(np.array([0.3, 0.0, -0.2, 0.0, 0.5, 0.0])).with_offset(0.2)
    engine = LocalEngine(x, y, bounds)

    def answer(query):
        return query.from_total(engine.total(query))

    slope = 2 * (x @ theta.dense() + 0.2 - y)
    cut, units = np.clip(slope, -0.8, 0.8), x / bounds.x
    entries = np.clip(units, -0.4, 0.4)
    weight = 2 * np.minimum(1, 0.8 / np.abs(slope))
    near = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(answer(LimitedSlope(problem, theta, 0.8)), [cut.mean()], **near)
    found = answer(Correlations(problem, theta, 0.8, 0.4))
    np.testing.assert_allclose(found, cut @ entries / n, **near)
    for j in range(P):
        found = answer(Coordinate(problem, theta, 0.8, 0.4, j))
        falls = (weight * np.abs(units[:, j] * entries[:, j])).mean()
        np.testing.assert_allclose(found, [(cut * entries[:, j]).mean(), falls], **near)
    support = Support(FEW, bounds)
    u = units[:, FEW]
    u = u * np.minimum(1, 0.9 / np.linalg.norm(u, axis=1))[:, None]
    u = np.column_stack([u, np.full(n, 0.25)])
    at = (theta, 0.8, support, 0.9, 0.25)
    np.testing.assert_allclose(answer(SupportGradient(problem, *at)), cut @ u / n, **near)
    expected = (u * weight[:, None]).T @ u / n
    np.testing.assert_allclose(answer(SupportCurvature(problem, *at)), expected, **near)
    other = Vector.zero(P)
    losses = [(x @ t.dense() + t.offset - y) ** 2 for t in (other, theta)]
    expected = np.clip([losses[0], losses[0] - losses[1]], -0.6, 0.6).mean(axis=1)
    np.testing.assert_allclose(answer(Improvement(problem, theta, other, 0.6)), expected, **near)


def test_sizes_are_counted_in_the_bins_that_the_edges_name():
    steps = np.array([0, 1, 2, 3, 4, 7, 8, X_STEPS // 2, X_STEPS - 1, X_STEPS])
    edges, found = upper_edges(), bins_of(np.concatenate([steps, -steps]))
    assert len(edges) == N_BINS > found.max()
    np.testing.assert_array_equal(found[: len(steps)], found[len(steps) :])
    for k, size in zip(found, [*steps, *steps], strict=True):
        assert size / X_STEPS <= edges[k]
        assert k == 0 or size / X_STEPS >= edges[k - 1] * (k > 1)


def test_a_row_has_one_vote_on_the_sizes_of_its_entries():
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Squared(), L1Ball(1.0), bounds, 3, 7)
    query = EntrySizes(problem)
    x = np.array([[1, 1, 1, 0.1, 0, 0, 0], [0.0] * 7, [1e9, -1e9, np.nan, 1, 1, 1, 1]])
    alone = summands(query, bounds, x, np.zeros(3))
    top = int(bins_of(np.array([X_STEPS]))[0])
    assert alone[0, top] == 3 * SHARE_STEPS // 4
    assert alone[0].sum() == SHARE_STEPS
    assert not alone[1].any()
    assert alone[2, top] == SHARE_STEPS
    thirds = summands(query, bounds, np.array([[1, 0.1, 0.01, 0, 0, 0, 0]]), np.zeros(1))[0]
    assert thirds.sum() == 3 * (SHARE_STEPS // 3) < SHARE_STEPS  # rounded down


# Selections see floats


@every_loss
@every_bound
@every_adjacency
def test_correlations_keep_their_sensitivity_as_computed(loss, bounds, adjacency):
    rng = np.random.default_rng(49)
    x, y = hostile_rows(rng, 6)
    for n_rows in (1, 3, MOST_ROWS):
        problem = Problem(loss, L1Ball(1.0), bounds, n_rows, P, adjacency)
        for k, theta in enumerate(some_points(rng, 3)):
            query = Correlations(problem, theta, LIMITS[k], ENTRY_LIMITS[k])
            most = int(query.most) * query.slope_steps
            alone = np.unique(summands(query, bounds, x, y), axis=0)
            # What all other rows add: nothing, or nearly as much as they can, with odd digits.
            for others in (0, (n_rows - 1) * most - 1, (n_rows - 1) * most // 3):
                rest = np.full(P, max(others, 0), dtype=np.int64)
                totals = [rest + one for one in alone]
                answers = [[Fraction(float(v)) for v in query.from_total(t)] for t in totals]
                without = [Fraction(float(v)) for v in query.from_total(rest)]
                largest = Fraction(0)
                for i, one in enumerate(answers):
                    for other in answers[:i] if adjacency == REPLACE_ONE else [without]:
                        apart = (abs(a - b) for a, b in zip(one, other, strict=True))
                        largest = max(largest, *apart)
                assert largest <= Fraction(query.sensitivity("linf"))


def test_correlations_of_many_rows_need_the_room_for_rounding():
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), MOST_ROWS, 1, ADD_REMOVE)
    rng = np.random.default_rng(50)
    query = Correlations(problem, Vector.zero(1), 1.1, 1.0)
    row = query.slope_steps * X_STEPS
    exceeded = 0
    exact = Fraction(query.row_bound("linf")) / MOST_ROWS * (1 + Fraction(1, 2**40))
    for _ in range(300):
        rest = (MOST_ROWS - 1) * row - int(rng.integers(0, 2**53))
        ours, theirs = (
            Fraction(float(query.from_total(np.array([t]))[0])) for t in (rest + row, rest)
        )
        assert abs(ours - theirs) <= Fraction(query.sensitivity("linf"))
        exceeded += abs(ours - theirs) > exact
    assert exceeded


def test_correlations_are_for_selections_alone():
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 3, P)
    query = Correlations(problem, Vector.zero(P), 1.0, 1.0)
    for norm in ("l1", "l2"):
        with pytest.raises(ValueError, match="Selection"):
            query.sensitivity(norm)
    for mechanism in (GaussianMechanism(1.0), LaplaceMechanism(1.0)):
        with pytest.raises(ValueError, match="Selection"):
            mechanism.scale(query)


# Numbers of different units


@pytest.mark.not_quick
@pytest.mark.parametrize("mechanism", [GaussianMechanism(0.7), LaplaceMechanism(1.5)])
def test_both_numbers_of_a_coordinate_get_the_noise_of_the_sensitivity(mechanism):
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 50, P)
    query = Coordinate(problem, Vector.zero(P), 0.4, 0.3, 2)
    engine = LocalEngine(np.full((50, P), 0.5), np.linspace(-1, 1, 50), problem.bounds)
    exact, noise = query.from_total(engine.total(query)), Noise(51)
    drawn = np.array([mechanism.release(query, engine, noise) for _ in range(4_000)]) - exact
    spread = mechanism.scale(query) * (
        math.sqrt(2) if isinstance(mechanism, LaplaceMechanism) else 1
    )
    beside = query.largest_curvature / (query.slope_bound() * Coordinate.BESIDE)
    np.testing.assert_allclose(drawn.std(axis=0) / [1, beside], spread, rtol=0.1)
    assert mechanism.scale(query) == pytest.approx(
        0.7 * 2 * 0.4 * 0.3 * math.hypot(1, Coordinate.BESIDE) / 50
        if isinstance(mechanism, GaussianMechanism)
        else 2 * 0.4 * 0.3 * (1 + Coordinate.BESIDE) / 50 / 1.5,
        rel=1e-3,
    )


@pytest.mark.parametrize("loss", [Squared(), SmoothedHinge(0.3)], ids=repr)
def test_the_norm_of_a_wide_support_is_its_length_times_the_root_of_its_width(loss):
    # The l1 norms of pure privacy are reached by rows with equal entries.
    bounds = Bounds(1.0, 1.0)
    problem = Problem(loss, L2Ball(1.0), bounds, 1, P, ADD_REMOVE)
    support = Support(np.arange(P), bounds)
    theta = Vector.zero(P)
    row = bounds.grid_x(np.ones((1, P)))
    for query, least in (
        (SupportGradient(problem, theta, math.inf, support, 1.0, 0.0), 0.999),
        (SupportCurvature(problem, theta, math.inf, support, 1.0, 0.0), 0.999),
    ):
        assert isinstance(
            query, SupportGradient if not query.nonnegative_inner else SupportCurvature
        )
        one = query.block_sum(Block(row, np.array([-1.0]))).astype(np.int64)
        share = sum(map(abs, in_fractions(query, one))) / Fraction(query.sensitivity("l1"))
        if isinstance(loss, Squared):
            assert least <= share <= 1
        assert share <= 1
