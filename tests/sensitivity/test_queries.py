"""No pair of neighbours changes a query by more than its derived sensitivity, and one reaches it.

Rows go through `LocalEngine`, so they are clipped as in a fit. "Replace-one" puts another row in
the place of one; "add-remove" takes it away while the declared number of rows stays. Changes are
compared with the sensitivity in exact arithmetic: no tolerance for rounding is left.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from riata import losses, sets
from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.grid import MOST_SLOPE_STEPS, X_STEPS
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.privacy.budget import ADD_REMOVE, CHANGED_CONTRIBUTIONS, REPLACE_ONE
from riata.problem import Problem
from riata.queries import Block, Gradient, MeanSlope, VertexUtilities
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, PolytopeSet, Simplex
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=23)

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}

LOSSES = [
    Squared(),
    Huber(0.5),
    Huber(3.0),
    Logistic(),
    SmoothedHinge(1.0),
    SmoothedHinge(0.3),
    OneAgainstRest(Logistic(), 1),
]
every_loss = pytest.mark.parametrize("loss", losses.REGISTRY.complete(LOSSES), ids=repr)


def squared_length(vector, norm):
    """The square of the length of some Fractions, exactly."""
    if norm == "l2":
        return sum(v * v for v in vector)
    sizes = [abs(v) for v in vector]
    return (sum(sizes) if norm == "l1" else max(sizes)) ** 2


def exact_change(query, ours, theirs):
    """The change of the answer between two exact sums."""
    units = np.broadcast_to(query.unit, ours.shape)
    pairs = zip(ours, theirs, units, strict=True)
    return [(int(a) - int(b)) * Fraction(float(unit)) for a, b, unit in pairs]


def squares_of_change_over_sensitivity(problem, theta, engine, neighbour):
    """For each query and norm, (change between two engines / derived sensitivity)^2, exactly."""
    gradient, slope = Gradient(problem, theta), MeanSlope(problem, theta)
    squares = {}
    for name, query in (("gradient", gradient), ("mean slope", slope)):
        change = exact_change(query, engine.total(query), neighbour.total(query))
        for norm in NORMS:
            square = squared_length(change, norm) / Fraction(query.sensitivity(norm)) ** 2
            squares[f"{name} {norm}"] = square
    if isinstance(problem.set, PolytopeSet):
        scores = VertexUtilities(problem, theta)
        ours, theirs = (scores.from_total(e.total(scores)) for e in (engine, neighbour))
        change = max(abs(Fraction(a) - Fraction(b)) for a, b in zip(ours, theirs, strict=True))
        squares["vertex utilities linf"] = (change / Fraction(scores.sensitivity("linf"))) ** 2
    return squares


# Hostile rows: every loss, set and norm of the bounds.

P = 6
SETS = [
    L1Ball(1.7),
    Simplex(0.8),
    GroupL1Ball([0, 0, 1, 1, 1, 2], 1.2),
    L2Ball(1.1),
    LpBall(1.5, 0.9),
    LpBall(np.inf, 0.6),
    Polytope(
        [
            [1.0, 0.0, 0.0, -0.5, 0.0, 0.2],
            [0.0, -2.0, 0.0, 0.0, 0.3, 0.0],
            [0.1, 0.1, 0.1, 0.1, 0.1, 0.1],
            [0.0, 0.0, 1.5, 0.0, 0.0, -1.5],
            [-1.0, 0.0, 0.0, 0.7, 0.0, 0.0],
        ]
    ),
]
BOUNDS = [
    Bounds(0.9),
    Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7]),
    Bounds(1.4, norm="l2"),
    Bounds(0.9, length=1.4),
    Bounds([0.3, 1.0, 2.5, 1e-3, 1.0, 0.7], length=1.2),
    Bounds(1.3, norm=1.0),
    Bounds(1.3, norm=1.5),
    Bounds(1.3, norm=4.0),
]
every_set = pytest.mark.parametrize("constraint", sets.REGISTRY.complete(SETS, P), ids=str)
every_bound = pytest.mark.parametrize("bounds", BOUNDS, ids=repr)

#: Values far outside the bounds end on their boundary, so they also make the extreme rows.
hostile_values = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 5e-324]),
    st.floats(-3, 3),
    st.floats(),
)
hostile_rows = arrays(np.float64, (1, P), elements=hostile_values)
hostile_targets = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 2.0, 1e300, -1e300]), st.floats())


@st.composite
def points(draw, constraint):
    """A point of the set as a solver would reach it: from the start, towards extreme points."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    theta = constraint.start()
    for _ in range(draw(st.integers(0, 3))):
        direction = rng.standard_normal(P) * (rng.random(P) < 0.6)
        mu = draw(st.one_of(st.just(1.0), st.floats(0, 1)))
        theta = theta.toward(constraint.minimiser(direction), mu)
    return theta


def stored_twice(rows, again):
    """Sparse rows in which every entry is stored twice and counts as the sum of the two."""
    n, p = rows.shape
    where = np.tile(np.arange(p), 2 * n)
    data = np.stack([rows, again], axis=1).reshape(-1)
    return sparse.csr_array((data, where, 2 * p * np.arange(n + 1)), shape=(n, p))


@pytest.mark.not_quick
@pytest.mark.matrix(one_in=23, test_all_one_in=3)
@every_loss
@every_set
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_no_hostile_neighbour_exceeds_the_sensitivity(loss, constraint, data):
    """Under all bounds at once: hypothesis fails at some thousand cases of one test."""
    y_bound = data.draw(st.sampled_from([1.0, 0.4, 2.5]))
    offset = data.draw(st.one_of(st.just(0.0), st.floats(-1, 1))) * loss.offset_bound(y_bound)
    constraint = constraint.sized(P)
    theta = data.draw(points(constraint)).with_offset(offset)

    common = data.draw(hostile_rows), data.draw(hostile_targets)
    ours = data.draw(hostile_rows), data.draw(hostile_targets)
    theirs = data.draw(hostile_rows), data.draw(hostile_targets)
    doubled = data.draw(st.one_of(st.none(), hostile_rows))

    def engine(bounds, *members):
        x = np.vstack([row for row, _ in members])
        y = np.array([target for _, target in members])
        if doubled is not None:
            x = stored_twice(x, np.vstack([doubled] * len(x)))
        return LocalEngine(x, y, bounds)

    for bounds in (each.with_y(y_bound) for each in BOUNDS):
        here = engine(bounds, common, ours)
        neighbours = {
            REPLACE_ONE: engine(bounds, common, theirs),
            ADD_REMOVE: engine(bounds, common),
        }
        for adjacency, neighbour in neighbours.items():
            problem = Problem(loss, constraint, bounds, 2, P, adjacency, fit_intercept=True)
            squares = squares_of_change_over_sensitivity(problem, theta, here, neighbour)
            for what, square in squares.items():
                assert square <= 1, f"{what} under {adjacency} and {bounds}"


def hostile_block(rng, n):
    """Many rows at once: extreme corners, single long entries, and rubbish."""
    rubbish = np.array([0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.01, -0.01, 1.0, -1.0])
    corners = rng.choice([-1e9, 1e9], (n, P))
    single = np.zeros((n, P))
    single[np.arange(n), rng.integers(0, P, n)] = rng.choice([-1e9, 1e9], n)
    near = rng.standard_normal((n, P)) * 10.0 ** rng.integers(-2, 3, (n, 1))
    return np.vstack([corners, single, near, rng.choice(rubbish, (n, P))])


@pytest.mark.matrix(one_in=23, test_all_one_in=3)
@every_loss
@every_set
@every_bound
def test_no_summand_of_thousands_of_hostile_rows_exceeds_what_adding_it_may_change(
    loss, constraint, bounds
):
    rng = np.random.default_rng(20)
    bounds, constraint = bounds.with_y(1.3), constraint.sized(P)
    x = hostile_block(rng, 250)
    y = rng.choice([-9.0, -1.0, 0.0, 1.0, 9.0, np.nan, np.inf], len(x))
    problem = Problem(loss, constraint, bounds, 10, P, ADD_REMOVE)
    theta = constraint.start()
    for t in range(4):
        theta = theta.toward(constraint.minimiser(rng.standard_normal(P)), 2 / (t + 2))
        theta = theta.with_offset(0.5 * t)
        query = Gradient(problem, theta)
        rows = bounds.grid_x(x)
        slopes = query.slopes(Block(rows, bounds.clip_y(y)))
        summands = slopes[:, None] * rows  # up to 2^32, so exact
        assert np.array_equal(summands, np.rint(summands))
        assert np.abs(slopes).max() <= MOST_SLOPE_STEPS
        assert np.abs(rows).max() <= X_STEPS
        for norm, order in NORMS.items():
            longest = summands[np.linalg.norm(summands * query.unit, order, axis=1).argmax()]
            change = exact_change(query, longest, np.zeros(P))
            assert squared_length(change, norm) <= Fraction(query.sensitivity(norm)) ** 2
        if isinstance(constraint, PolytopeSet):
            scores = VertexUtilities(problem, theta)
            largest = max(np.abs(scores.from_total(row)).max() for row in summands)
            assert largest <= scores.sensitivity("linf")


# Worst pairs. There are 40 columns so that one of them, the support of theta, is a small part of
# a row even in l1. With bounds on entries a row can make the margin as large as it gets on the
# support and still be anything on the free columns, so theta is an extreme point. With bounds on
# the length a row must split its length between the two, so theta is small or spread out: then
# nearly all of the slope comes from y and nearly all of the row is free.

WIDE = 40
RADIUS, SMALL = 0.8, 0.02
Y = 1.3
OFFSET = 0.4


def along(values):
    """A row or a point with these leading coordinates."""
    out = np.zeros(WIDE)
    out[: len(values)] = values
    return out


#: No vertex reaches as far as the second one, and it shares no coordinate with the other two.
FAR = along([0.0, 0.0, *np.tile([1.0, -0.5], 19)])
WIDE_POLYTOPE = Polytope([along([RADIUS]), FAR, along([RADIUS * SMALL])])

#: Each set with an extreme point (for bounds on entries) and a short one (for bounds in l2).
WIDE_SETS = [
    (L1Ball(RADIUS), along([RADIUS]), along([RADIUS * SMALL])),
    # Every point of the simplex sums to the radius: the shortest in l2 is the centre.
    (Simplex(0.2), along([0.2]), np.full(WIDE, 0.2 / WIDE)),
    (GroupL1Ball(4, RADIUS), along([RADIUS]), along([RADIUS * SMALL])),
    (L2Ball(RADIUS), along([RADIUS]), along([RADIUS * SMALL])),
    (LpBall(1.5, RADIUS), along([RADIUS]), along([RADIUS * SMALL])),
    (LpBall(np.inf, RADIUS), along([RADIUS]), along([RADIUS * SMALL])),
    (WIDE_POLYTOPE, along([RADIUS]), along([RADIUS * SMALL])),
]
WIDE_BOUNDS = [
    Bounds(0.9, Y),
    Bounds(np.linspace(0.2, 2.0, WIDE), Y),
    Bounds(1.2, Y, norm="l2"),
]


def target_of_largest_slope(loss, sign):
    """The y inside the bounds with the largest slope at a margin of this sign."""
    if isinstance(loss, OneAgainstRest):
        return 0.0 if sign > 0 else float(loss.positive)
    return -sign * Y


def free_row(bounds, theta, what, constraint):
    """The longest row, in the sense of the query, that is (nearly) orthogonal to theta."""
    free = np.ones(WIDE)
    free[np.flatnonzero(theta)] = 0.0
    if not free.any():  # the centre of the simplex: alternating signs are orthogonal to it
        free = np.tile([1.0, -1.0], WIDE // 2)
    if bounds.norm == "inf":
        signs = np.sign(FAR) if constraint is WIDE_POLYTOPE and "utilities" in what else 1.0
        return free * signs * bounds.per_column(WIDE)
    if what == "vertex utilities linf" and constraint is WIDE_POLYTOPE:
        return bounds.x * FAR / np.linalg.norm(FAR)
    if what == "gradient l1" or what == "gradient l2":
        return bounds.x * free / np.linalg.norm(free)
    return bounds.x * np.eye(WIDE)[1]  # all of the length in one free column


def worst_pair(loss, bounds, theta, what, constraint):
    """Two rows: the largest slope for both, and free columns of opposite sign."""
    free = free_row(bounds, theta, what, constraint)
    on_support = np.zeros(WIDE)
    if bounds.norm == "inf":
        on_support = np.sign(theta) * bounds.per_column(WIDE)
    y = target_of_largest_slope(loss, +1)
    return (on_support + free, y), (on_support - free, y)


def worst_slopes(loss, bounds, theta):
    """Two rows whose margins, and so slopes, are as far apart as they get."""
    if bounds.norm == "inf":
        aligned = np.sign(theta) * bounds.per_column(WIDE)
    else:
        aligned = bounds.x * theta / np.linalg.norm(theta)
    return (aligned, target_of_largest_slope(loss, +1)), (
        -aligned,
        target_of_largest_slope(loss, -1),
    )


def square_of(problem, theta, what, row, other):
    """The square for one query when `row` is replaced, or removed if `other` is None."""
    rest = [(np.linspace(-1, 1, WIDE), 0.3)]

    def engine(*members):
        x, y = zip(*members, strict=True)
        return LocalEngine(np.array(x), np.array(y), problem.bounds)

    neighbour = engine(*rest) if other is None else engine(*rest, other)
    return squares_of_change_over_sensitivity(problem, theta, engine(*rest, row), neighbour)[what]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(
    ("constraint", "extreme", "short"), WIDE_SETS, ids=[str(s) for s, _, _ in WIDE_SETS]
)
@pytest.mark.parametrize("bounds", WIDE_BOUNDS, ids=repr)
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_worst_pair_reaches_the_sensitivity(loss, constraint, extreme, short, bounds, adjacency):
    dense = extreme if bounds.norm == "inf" else short
    problem = Problem(loss, constraint, bounds, 2, WIDE, adjacency, fit_intercept=True)
    assert problem.set.contains(dense)
    queries = ["gradient l1", "gradient l2", "gradient linf"]
    if isinstance(constraint, PolytopeSet):
        queries.append("vertex utilities linf")
    for what, offset in itertools.product(queries, [0.0, OFFSET]):
        row, other = worst_pair(loss, bounds, dense, what, problem.set)
        other = other if adjacency == REPLACE_ONE else None
        square = square_of(problem, Vector.of(dense).with_offset(offset), what, row, other)
        assert 0.95**2 <= square <= 1, what
    # Without an intercept only: with one, the slopes of one sign are out of reach, and the range
    # of the slope is smaller than twice its largest size.
    row, other = worst_slopes(loss, bounds, dense)
    other = other if adjacency == REPLACE_ONE else None
    square = square_of(problem, Vector.of(dense), "mean slope l2", row, other)
    assert 0.999**2 <= square <= 1


def test_the_unit_lasso_has_a_pair_that_moves_a_score_by_eight_over_n():
    n = 5
    problem = Problem(Squared(), Simplex(1.0), Bounds(1.0, 1.0), n, 2)
    scores = VertexUtilities(problem, problem.set.start())
    assert scores.sensitivity("linf") == pytest.approx(8 / n, rel=1e-12)
    rest = np.ones((n - 1, 2)), np.zeros(n - 1)

    def answer(row):
        x, y = np.vstack([rest[0], row]), np.append(rest[1], -1.0)
        return scores.from_total(LocalEngine(x, y, problem.bounds).total(scores))

    change = answer([1.0, 1.0]) - answer([1.0, -1.0])
    assert np.abs(change).max() == pytest.approx(8 / n, rel=1e-12)


@pytest.mark.parametrize("norm", ["inf", "l2"])
def test_replacing_a_row_counts_twice_what_adding_one_counts(norm):
    bounds = Bounds(0.7, 1.1, norm=norm)
    at = {
        adjacency: Problem(Squared(), L1Ball(1.0), bounds, 9, 4, adjacency)
        for adjacency in CHANGED_CONTRIBUTIONS
    }
    theta = Vector.of(np.array([0.5, 0.0, -0.2, 0.0]))
    for order in NORMS:
        replaced = Gradient(at[REPLACE_ONE], theta).sensitivity(order)
        assert replaced == 2 * Gradient(at[ADD_REMOVE], theta).sensitivity(order)


def test_utilities_have_no_sensitivity_in_other_norms():
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 9, 4)
    scores = VertexUtilities(problem, problem.set.start())
    assert isinstance(scores, VertexUtilities)
    for norm in ("l1", "l2"):
        with pytest.raises(ValueError, match="one utility"):
            scores.sensitivity(norm)


# Rounding.


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rounding_in_a_long_sum_does_not_exceed_the_sensitivity(container):
    # Casacuberta, Shoham, Vadhan, Wilson (2022). The first rows sum to just below a power of 2,
    # and the row in question decides whether the sum crosses it. Above, float64 is twice as
    # coarse, and each of the many small summands that follow is rounded up to twice its size:
    # a float sum over these rows changes by nearly twice the sensitivity.
    k = 16
    before, after = 2**k - 1, 2**k
    small = 2.0 ** (k - 53) * (1 + 2.0**-20)
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), before + 1 + after, 1)
    x = container(np.ones((problem.n_rows, 1)))
    engines = []
    for target in (-1.0, 1.0):
        y = np.repeat([-1.0, target, -small], [before, 1, after])
        engines.append(LocalEngine(x, y, problem.bounds))
    squares = squares_of_change_over_sensitivity(problem, problem.set.start(), *engines)
    for what, square in squares.items():
        assert 0.99 <= square <= 1, what


# Extreme parameters: refused when they are written down, or right.

TINY_AND_HUGE = [1e-320, 1e-300, 1e-200, 1e-160, 1e-100, 1e-60, 1e60, 1e100, 1e160, 1e200, 1e300]
every_scale = pytest.mark.parametrize("scale", TINY_AND_HUGE)


def extreme_change(problem, theta):
    """The squares for two rows at the edge of the bounds whose free columns have opposite signs."""
    ours = np.full((1, problem.n_features), np.inf)
    theirs = -ours
    theirs[:, theta.support] = np.inf
    engines = [LocalEngine(x, np.array([-np.inf]), problem.bounds) for x in (ours, theirs)]
    return squares_of_change_over_sensitivity(problem, theta, *engines)


def check_extreme(problem):
    theta = problem.set.vertex(0) if isinstance(problem.set, PolytopeSet) else problem.set.start()
    for query in (Gradient(problem, theta), MeanSlope(problem, theta)):
        for norm in NORMS:
            assert 0 < query.sensitivity(norm) < np.inf
    scores = VertexUtilities(problem, theta)
    assert 0 < scores.sensitivity("linf") < np.inf
    for what, square in extreme_change(problem, theta).items():
        assert square <= 1, what


def build(make):
    """What `make` builds, or None if it refuses its arguments before any row is read."""
    try:
        return make()
    except InvalidArgument:
        return None


@every_scale
@pytest.mark.parametrize("norm", ["inf", "l2"])
@pytest.mark.parametrize("y_scaled", [False, True], ids=["y=1", "y=x"])
def test_bounds_at_any_scale_are_refused_or_keep_the_sensitivity(scale, norm, y_scaled):
    bounds = build(lambda: Bounds(scale, scale if y_scaled else 1.0, norm=norm))
    if bounds is not None:
        check_extreme(Problem(Squared(), L1Ball(1.0), bounds, 1, 16))


@every_scale
def test_a_radius_at_any_scale_is_refused_or_keeps_the_sensitivity(scale):
    problem = build(lambda: Problem(Squared(), L1Ball(scale), Bounds(1.0, 1.0), 1, 16))
    if problem is not None:
        check_extreme(problem)


@every_scale
def test_vertices_at_any_scale_are_refused_or_keep_the_sensitivity(scale):
    vertices = scale * np.vstack([np.eye(16), -np.eye(16)])
    problem = build(lambda: Problem(Squared(), Polytope(vertices), Bounds(1.0, 1.0), 1, 16))
    if problem is not None:
        check_extreme(problem)


@every_scale
@pytest.mark.parametrize("kind", [Huber, SmoothedHinge])
def test_a_loss_scale_at_any_scale_is_refused_or_keeps_the_sensitivity(scale, kind):
    problem = build(lambda: Problem(kind(scale), L1Ball(1.0), Bounds(1.0, 1.0), 1, 16))
    if problem is not None:
        check_extreme(problem)


@pytest.mark.parametrize("order", [1.0, 1.25, 1.5, 3.0, 8.0])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_worst_pair_of_rows_in_any_norm_reaches_the_sensitivity(order, adjacency):
    """Of a gradient, by rows that are orthogonal to theta; of utilities, by one column."""
    bounds = Bounds(1.2, Y, norm=order)
    problem = Problem(Logistic(), L1Ball(RADIUS), bounds, 2, WIDE, adjacency)
    theta = Vector.of(along([RADIUS * 1e-9]))
    free = np.r_[0.0, np.ones(WIDE - 1)]
    even, one = 1.2 * free / np.linalg.norm(free, order), 1.2 * np.eye(WIDE)[1]
    rows = {
        "gradient l1": even, "gradient l2": even if order > 2 else one, "gradient linf": one,
        "vertex utilities linf": one,
    }  # fmt: skip
    for what, row in rows.items():
        other = None if adjacency == ADD_REMOVE else (-row, Y)
        square = square_of(problem, theta, what, (row, Y), other)
        assert 0.9 <= square <= 1, what
