"""Sets: oracles, projections, norms and widths against brute force, cvxpy and Monte Carlo."""

import signal
from contextlib import contextmanager
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.sets import (
    GroupL1Ball,
    L1Ball,
    L2Ball,
    LpBall,
    Polytope,
    PolytopeSet,
    Simplex,
    SparseBall,
    polytope,
)

pytestmark = pytest.mark.matrix(one_in=11)

INF = float("inf")
SIZE = 6
LABELS = ["a", "b", "a", "c", "b", "a"]
PENTAGON = np.array([[1.0, 0.2], [0.3, 1.1], [-0.9, 0.7], [-0.8, -0.6], [0.5, -1.0]])
AWAY = np.random.default_rng(11).uniform(0.5, 2.0, (9, SIZE))  # its hull misses the origin
CROSS = 1.5 * np.vstack([np.eye(SIZE), -np.eye(SIZE)])  # the l1 ball, written down

BALLS = [
    L1Ball(1.5, SIZE),
    GroupL1Ball(2, 1.5, SIZE),
    GroupL1Ball(4, 0.8, SIZE),  # the last block is shorter
    GroupL1Ball(LABELS, 1.5),
    GroupL1Ball(np.array([5, 5, 9, 9, 9, 9]), 2.0),
    L2Ball(0.7, SIZE),
    LpBall(1, 1.5, SIZE),
    LpBall(1.3, 1.5, SIZE),
    LpBall(2, 1.5, SIZE),
    LpBall(3, 0.4, SIZE),
    LpBall(INF, 1.5, SIZE),
]
SYMMETRIC = [*BALLS, Polytope(CROSS)]
POLYTOPES = [
    L1Ball(1.5, SIZE),
    Simplex(2.0, SIZE),
    Polytope(PENTAGON),
    Polytope(AWAY),
    Polytope(CROSS),
]
SETS = [*BALLS, *POLYTOPES[1:]]

every_set = pytest.mark.parametrize("C", SETS, ids=repr)
every_ball = pytest.mark.parametrize("C", BALLS, ids=repr)
every_symmetric = pytest.mark.parametrize("C", SYMMETRIC, ids=repr)
every_polytope = pytest.mark.parametrize("C", POLYTOPES, ids=repr)


@contextmanager
def no_hang(seconds=10):
    """Turn an endless loop into a failure. Not a statement about speed."""

    def stop(*_):
        raise AssertionError("an endless loop")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def points_of(C, n, seed=0):
    """Points of C, written without asking C: scaled random directions or mixtures of vertices."""
    rng = np.random.default_rng(seed)
    if isinstance(C, Polytope):
        return rng.dirichlet(np.full(C.n_vertices, 0.3), n) @ C.vertices
    if isinstance(C, Simplex):
        return C.radius * rng.dirichlet(np.full(C.size, 0.3), n)
    v = rng.standard_normal((n, C.size)) * rng.choice([0.01, 1.0], (n, C.size))
    scale = np.array([own_norm(C, row) for row in v]) / C.radius
    return v / scale[:, None] * rng.uniform(0, 1, (n, 1)) ** 0.2


def own_norm(C, v):
    """The norm that the set is named after, computed independently."""
    v = np.asarray(v)
    if isinstance(C, GroupL1Ball):
        labels = C.groups if np.ndim(C.groups) else [j // C.groups for j in range(len(v))]
        return sum(
            np.linalg.norm([v[j] for j in range(len(v)) if labels[j] == label])
            for label in dict.fromkeys(labels)
        )
    if isinstance(C, L1Ball):
        return np.abs(v).sum()
    p = 2.0 if isinstance(C, L2Ball) else C.p
    return np.abs(v).max() if p == INF else (np.abs(v) ** p).sum() ** (1 / p)


def constraints(C, w):
    """The set in cvxpy's words."""
    if isinstance(C, L1Ball):
        return [cp.norm1(w) <= C.radius]
    if isinstance(C, Simplex):
        return [w >= 0, cp.sum(w) == C.radius]
    if isinstance(C, GroupL1Ball):
        groups = [np.flatnonzero(C.codes() == k) for k in np.unique(C.codes())]
        return [sum(cp.norm2(w[members]) for members in groups) <= C.radius]
    if isinstance(C, Polytope):
        u = cp.Variable(C.n_vertices, nonneg=True)
        return [cp.sum(u) == 1, C.vertices.T @ u == w]
    if isinstance(C, L2Ball) or C.p == 2:
        return [cp.norm2(w) <= C.radius]
    return [cp.pnorm(w, C.p, approx=False) <= C.radius]


def cvxpy_projection(C, v):
    w = cp.Variable(len(v))
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w - v)), constraints(C, w))
    # Power cones need more; second-order cones stall when they are asked for it.
    tolerance = 1e-10 if isinstance(C, LpBall) and C.p not in (1, 2, INF) else 1e-9
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance)
    return w.value


# start, minimiser, vertices


@every_set
def test_start_lies_in_the_set(C):
    start = C.start()
    assert start.size == C.size
    assert start.offset == 0.0
    assert C.contains(start.dense())


@every_set
def test_minimiser_is_a_point_of_the_set_that_no_point_beats(C):
    rng = np.random.default_rng(1)
    candidates = points_of(C, 2_000)
    for _ in range(20):
        g = rng.standard_normal(C.size) * rng.choice([1e-6, 1.0, 1e6])
        s = C.minimiser(g)
        assert C.contains(s.dense(), 1e-9)
        best = s.dot(g)
        assert best <= (candidates @ g).min() + 1e-9 * np.abs(g).max()


@every_symmetric
def test_minimiser_attains_the_dual_norm_of_a_symmetric_set(C):
    rng = np.random.default_rng(2)
    for scale in (1e-30, 1e-3, 1.0, 1e30):
        g = scale * rng.standard_normal(C.size)
        assert -C.minimiser(g).dot(g) == pytest.approx(C.dual_norm(g), rel=1e-12, abs=0)


@every_polytope
def test_minimiser_is_the_best_vertex(C):
    rng = np.random.default_rng(3)
    for _ in range(20):
        g = rng.standard_normal(C.size)
        best = min(C.vertex(i).dot(g) for i in range(C.n_vertices))
        assert C.minimiser(g).dot(g) == pytest.approx(best, rel=1e-14)


@every_set
def test_minimiser_of_a_zero_gradient_is_some_point_of_the_set(C):
    assert C.contains(C.minimiser(np.zeros(C.size)).dense())


@every_set
def test_minimiser_of_a_single_coordinate_is_some_best_point(C):
    for j in range(C.size):
        for sign in (-1.0, 1.0):
            g = np.zeros(C.size)
            g[j] = sign
            assert C.minimiser(g).dot(g) <= (points_of(C, 500) @ g).min() + 1e-12


@every_polytope
def test_utilities_are_minus_the_inner_products_with_the_vertices(C):
    g = np.random.default_rng(4).standard_normal(C.size)
    utilities = C.utilities(g)
    if C.symmetric:
        utilities = np.concatenate([utilities, -utilities])
    expected = [-C.vertex(i).dot(g) for i in range(C.n_vertices)]
    np.testing.assert_allclose(utilities, expected, rtol=1e-14)


def test_l1_vertices_are_implicit_positive_ones_first():
    p = 10**9  # no list of this length is ever written down
    C = L1Ball(2.5, p)
    assert C.n_vertices == 2 * p
    for index, coordinate, value in [(0, 0, 2.5), (p - 1, p - 1, 2.5), (p, 0, -2.5)]:
        vertex = C.vertex(index)
        assert (vertex.support.tolist(), vertex.values.tolist()) == ([coordinate], [value])
    assert C.vertex(2 * p - 1).values.tolist() == [-2.5]


def test_only_polytopes_offer_vertices():
    assert isinstance(L1Ball(), PolytopeSet)
    assert isinstance(Simplex(), PolytopeSet)
    assert not isinstance(L2Ball(), PolytopeSet)
    assert not isinstance(LpBall(1), PolytopeSet)
    assert not isinstance(GroupL1Ball(2), PolytopeSet)


# projection


@every_set
def test_projection_agrees_with_cvxpy(C):
    rng = np.random.default_rng(5)
    for scale in (0.5, 2.0, 10.0):
        v = scale * rng.standard_normal(C.size)
        with no_hang():
            mine = C.project(v)
        np.testing.assert_allclose(mine, cvxpy_projection(C, v), atol=1e-5)


@every_set
def test_projection_is_inside_idempotent_and_leaves_its_argument_alone(C):
    rng = np.random.default_rng(6)
    for _ in range(200):
        v = 3 * rng.standard_normal(C.size)
        before = v.copy()
        with no_hang():
            once = C.project(v)
            twice = C.project(once)
        assert C.contains(once, 1e-9)
        np.testing.assert_allclose(twice, once, atol=1e-9)
        np.testing.assert_array_equal(v, before)


@every_set
def test_projection_leaves_points_of_the_set_where_they_are(C):
    for v in points_of(C, 50, seed=7):
        with no_hang():
            np.testing.assert_allclose(C.project(v), v, atol=1e-9)


@every_set
def test_projection_satisfies_its_variational_inequality(C):
    # <v - Pv, w - Pv> <= 0 for all w in C characterises the projection.
    rng = np.random.default_rng(8)
    candidates = points_of(C, 1_000, seed=9)
    for _ in range(30):
        v = 3 * rng.standard_normal(C.size)
        with no_hang():
            nearest = C.project(v)
        assert ((candidates - nearest) @ (v - nearest)).max() <= 1e-8
        furthest = C.minimiser(nearest - v)
        assert furthest.dot(v - nearest) <= nearest @ (v - nearest) + 1e-8


@pytest.mark.parametrize("C", [ball for ball in SETS if not isinstance(ball, Polytope)], ids=repr)
@pytest.mark.parametrize("scale", [1e6, 1e12, 1e25])
def test_projection_of_far_points_stays_accurate(C, scale):
    v = np.zeros(C.size)
    v[1] = scale
    v[0] = scale / 4
    with no_hang():
        nearest = C.project(v)
    assert C.contains(nearest, 1e-6)
    # From afar the nearest point is the one that reaches furthest towards v.
    assert nearest @ v == pytest.approx(C.minimiser(-v).dot(v), rel=1e-5)


@pytest.mark.parametrize("p", [1.05, 1.3, 3.0, 7.0])
def test_projection_ends_for_points_a_rounding_error_outside(p):
    rng = np.random.default_rng(10)
    C = LpBall(p, 1.0, 5)
    for _ in range(25):
        edge = rng.standard_normal(5)
        edge /= np.linalg.norm(edge, p)
        for ulps in range(-2, 5):
            v = edge * (1 + ulps * np.finfo(float).eps)
            with no_hang():
                np.testing.assert_allclose(C.project(v), edge, atol=1e-12)


# norms


@every_ball
def test_minkowski_norm_is_the_norm_over_the_radius(C):
    for v in np.random.default_rng(12).standard_normal((20, C.size)):
        assert C.minkowski_norm(v) == pytest.approx(own_norm(C, v) / C.radius, rel=1e-12)


@pytest.mark.parametrize("p", [1.001, 1.05, 1.3, 3.0, 50.0, 500.0])
@pytest.mark.parametrize("scale", [1e-30, 1e-4, 0.4, 3.0, 1e30])
def test_lp_norms_neither_underflow_nor_overflow(p, scale):
    # A reach of 0 would scale the noise to 0.
    C, ones = LpBall(p, 2.0, 5), np.full(5, scale)
    q = p / (p - 1)
    dual = pytest.approx(2.0 * scale * 5 ** (1 / q), rel=1e-9, abs=0)
    assert C.dual_norm(ones) == dual
    assert C.weighted_reach(ones) == dual
    assert C.minkowski_norm(ones) == pytest.approx(scale * 5 ** (1 / p) / 2.0, rel=1e-9, abs=0)


@pytest.mark.parametrize("C", POLYTOPES, ids=repr)
def test_minkowski_norm_of_a_polytope_scales_its_points(C):
    for i in range(C.n_vertices):
        assert C.minkowski_norm(3 * C.vertex(i).dense()) <= 3 * (1 + 1e-9)
    assert C.minkowski_norm(np.zeros(C.size)) == pytest.approx(0, abs=1e-12)


def test_minkowski_norm_of_a_written_down_l1_ball_is_the_l1_norm():
    for v in np.random.default_rng(13).standard_normal((10, SIZE)):
        assert Polytope(CROSS).minkowski_norm(v) == pytest.approx(np.abs(v).sum() / 1.5, rel=1e-7)


def test_minkowski_norm_is_infinite_where_no_multiple_of_the_set_reaches():
    assert Simplex(1.0, 3).minkowski_norm(np.array([0.5, -1e-3, 0.2])) == INF
    assert Polytope(AWAY).minkowski_norm(-np.ones(SIZE)) == INF
    assert Simplex(2.0, 3).minkowski_norm(np.array([1.0, 0.0, 3.0])) == pytest.approx(2.0)


@every_set
def test_dual_norm_is_the_largest_inner_product(C):
    rng = np.random.default_rng(14)
    inside = points_of(C, 3_000, seed=15)
    for _ in range(10):
        v = rng.standard_normal(C.size)
        dual = C.dual_norm(v)
        assert np.abs(inside @ v).max() <= dual * (1 + 1e-12)
        attained = max(abs(C.minimiser(v).dot(v)), abs(C.minimiser(-v).dot(v)))
        assert attained == pytest.approx(dual, rel=1e-12)


@every_symmetric
def test_hoelders_inequality_holds(C):
    rng = np.random.default_rng(16)
    for _ in range(50):
        v, w = rng.standard_normal((2, C.size))
        assert abs(v @ w) <= C.minkowski_norm(v) * C.dual_norm(w) * (1 + 1e-7)


@pytest.mark.parametrize(
    ("C", "order"),
    [
        (L1Ball(1.5, SIZE), INF),
        (Simplex(1.5, SIZE), INF),
        (L2Ball(1.5, SIZE), 2),
        (LpBall(1, 1.5, SIZE), INF),
        (LpBall(1.3, 1.5, SIZE), 1.3 / 0.3),
        (LpBall(3, 1.5, SIZE), 1.5),
        (LpBall(INF, 1.5, SIZE), 1),
    ],
    ids=repr,
)
def test_dual_norm_has_the_conjugate_exponent(C, order):
    for v in np.random.default_rng(17).standard_normal((10, SIZE)):
        assert C.dual_norm(v) == pytest.approx(1.5 * np.linalg.norm(v, order), rel=1e-12)


def test_dual_norm_of_groups_is_the_longest_group():
    v = np.array([3.0, 4.0, 1.0, 1.0, 0.0, 2.0])
    assert GroupL1Ball(2, 2.0, 6).dual_norm(v) == pytest.approx(10.0)
    assert GroupL1Ball(["a", "b", "a", "b", "b", "b"], 1.0).dual_norm(v) == pytest.approx(
        np.sqrt(16 + 1 + 4)
    )


@every_set
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_radius_in_a_norm_bounds_all_points_and_is_attained(C, norm):
    order = {"l1": 1, "l2": 2, "linf": INF}[norm]
    radius = C.radius_in(norm)
    assert np.linalg.norm(points_of(C, 3_000, seed=18), order, axis=1).max() <= radius * (1 + 1e-12)
    # Extreme points: single coordinates, whole groups, the all-ones direction, vertices.
    directions = [*np.eye(C.size), np.ones(C.size)]
    if isinstance(C, GroupL1Ball):
        directions += [1.0 * (C.codes() == k) for k in np.unique(C.codes())]
    if isinstance(C, Polytope):
        extreme = C.vertices
    elif isinstance(C, Simplex):
        extreme = np.array([C.vertex(i).dense() for i in range(C.n_vertices)])
    else:
        extreme = np.array([C.radius * d / own_norm(C, d) for d in directions])
    assert np.linalg.norm(extreme, order, axis=1).max() == pytest.approx(radius, rel=1e-12)


@every_set
def test_weighted_reach_is_the_largest_weighted_l1_norm(C):
    rng = np.random.default_rng(19)
    inside = np.abs(points_of(C, 5_000, seed=20))
    for weights in (np.ones(C.size), rng.uniform(0, 2, C.size), np.eye(C.size)[0]):
        reach = C.weighted_reach(weights)
        assert (inside @ weights).max() <= reach * (1 + 1e-12)
        if isinstance(C, Polytope):
            attained = (np.abs(C.vertices) @ weights).max()
        else:
            attained = np.abs(C.minimiser(-weights).dense()) @ weights
        assert attained == pytest.approx(reach, rel=1e-12)


@every_set
@pytest.mark.parametrize("x", [0.3, "columns", "l2"])
def test_reach_bounds_every_margin_and_is_attained(C, x):
    rng = np.random.default_rng(21)
    if x == "l2":
        bounds = Bounds(0.7, norm="l2")
    else:
        bounds = Bounds(rng.uniform(0.1, 2, C.size) if x == "columns" else x)
    reach = C.reach(bounds)
    rows = bounds.clip_x(100 * rng.standard_normal((400, C.size)))
    inside = points_of(C, 400, seed=22)
    assert np.abs(rows @ inside.T).max() <= reach * (1 + 1e-12)
    # Attained: the extreme row for the extreme point, over many attempts.
    found = 0.0
    for row in [*np.eye(C.size), *rows, *(bounds.per_column(C.size) * s for s in np.sign(rows))]:
        for w in (C.minimiser(row).dense(), C.minimiser(-row).dense()):
            length = np.linalg.norm(w)
            best = 0.7 * w / length if x == "l2" else bounds.per_column(C.size) * np.sign(w)
            found = max(found, abs(best @ w))
    assert found == pytest.approx(reach, rel=1e-2)


# contains, sized


@every_set
def test_contains_accepts_the_inside_and_rejects_the_outside(C):
    for v in points_of(C, 30, seed=23):
        assert C.contains(v)
    far = C.radius_in("l2") * 1.01
    for direction in np.random.default_rng(24).standard_normal((10, C.size)):
        assert not C.contains(far * direction / np.linalg.norm(direction))


@every_ball
def test_contains_is_strict_up_to_its_tolerance(C):
    v = np.random.default_rng(25).standard_normal(C.size)
    v *= C.radius / own_norm(C, v)
    assert C.contains(v)
    assert not C.contains(v * (1 + 1e-7))
    assert C.contains(v * (1 + 1e-7), tolerance=1e-6)


def test_the_simplex_contains_neither_smaller_sums_nor_negative_entries():
    C = Simplex(1.0, 3)
    assert C.contains(np.array([0.2, 0.3, 0.5]))
    assert not C.contains(np.array([0.2, 0.3, 0.4]))
    assert not C.contains(np.array([-0.1, 0.6, 0.5]))
    assert not C.contains(np.zeros(3))


@pytest.mark.parametrize("open_set", [L1Ball(2.0), Simplex(2.0), L2Ball(2.0), LpBall(3, 2.0)])
def test_a_ball_takes_its_dimension_once(open_set):
    assert open_set.size is None
    with pytest.raises(InvalidArgument, match="sized"):
        open_set.start()
    C = open_set.sized(4)
    assert C.size == 4
    assert C.sized(4).size == 4
    assert open_set.size is None
    with pytest.raises(InvalidArgument, match="dimension 4 and the data 5 columns"):
        C.sized(5)


def test_sets_with_columns_of_their_own_refuse_other_data():
    with pytest.raises(InvalidArgument, match=r"6 .* 5 columns"):
        GroupL1Ball(LABELS).sized(5)
    with pytest.raises(InvalidArgument, match=r"2 .* 5 columns"):
        Polytope(PENTAGON).sized(5)
    assert GroupL1Ball(LABELS).sized(6).size == 6
    assert GroupL1Ball(2).sized(5).codes().tolist() == [0, 0, 1, 1, 2]
    with pytest.raises(InvalidArgument, match="sized"):
        GroupL1Ball(2).codes()


def test_group_labels_may_be_anything_hashable_in_any_order():
    by_name, by_number = GroupL1Ball(LABELS), GroupL1Ball([7, 1, 7, -3, 1, 7])
    v = np.arange(6.0)
    assert by_name.minkowski_norm(v) == pytest.approx(by_number.minkowski_norm(v))
    np.testing.assert_allclose(by_name.project(v), by_number.project(v))


# bad parameters

BAD_RADII = [0, 0.0, -1, np.nan, INF, -INF, "a", None, True, [1.0]]


@pytest.mark.parametrize("radius", BAD_RADII, ids=repr)
@pytest.mark.parametrize(
    "make",
    [L1Ball, Simplex, L2Ball, lambda r: LpBall(3, r), lambda r: GroupL1Ball(2, r)],
    ids=["l1", "simplex", "l2", "lp", "group"],
)
def test_a_bad_radius_is_refused(make, radius):
    with pytest.raises(InvalidArgument, match="radius"):
        make(radius)


@pytest.mark.parametrize("p", [0.5, 0, -1, np.nan, "a", None, True])
def test_a_bad_exponent_is_refused(p):
    with pytest.raises(InvalidArgument, match="p"):
        LpBall(p)


@pytest.mark.parametrize("groups", [0, -1, 2.5, True, np.nan, INF, "a", None, [["a", "b"]]])
def test_bad_groups_are_refused(groups):
    with pytest.raises(InvalidArgument, match="groups"):
        GroupL1Ball(groups)


def test_group_labels_that_contradict_n_features_are_refused():
    with pytest.raises(InvalidArgument, match="groups"):
        GroupL1Ball(LABELS, 1.0, 7)


@pytest.mark.parametrize(
    "vertices",
    [[], [[]], [1.0, 2.0], [[1.0, np.nan]], [[INF, 1.0]], [["a", "b"]], [[1.0], [1.0, 2.0]], "a"],
)
def test_bad_vertices_are_refused(vertices):
    with pytest.raises(InvalidArgument, match="vertices"):
        Polytope(vertices)


def test_vertices_with_more_coordinates_than_roundings_are_counted_for_are_refused(monkeypatch):
    assert Polytope(CROSS).roundings + SIZE <= polytope.MOST_SIZE + 1 == 2**24
    monkeypatch.setattr(polytope, "MOST_SIZE", 2)
    Polytope(np.eye(2))
    with pytest.raises(InvalidArgument, match="3 coordinates, and 2 is the most"):
        Polytope(np.eye(3))


def test_a_polytope_does_not_follow_later_changes_of_the_callers_array():
    vertices = np.eye(3)
    C = Polytope(vertices)
    vertices *= 100
    assert C.radius_in("l2") == pytest.approx(1.0)


# Gaussian width

EXACT_WIDTHS = [
    L1Ball(1.5, 1),
    L1Ball(1.5, 2),
    L1Ball(0.5, 300),
    Simplex(2.0, 50),
    GroupL1Ball(1, 1.0, 40),
    GroupL1Ball(4, 1.5, 64),
    GroupL1Ball(60, 1.0, 100),
    GroupL1Ball(LABELS, 2.0),
    L2Ball(1.0, 1),
    L2Ball(2.0, 80),
    LpBall(1, 1.5, 90),
    LpBall(2, 1.5, 90),
    LpBall(INF, 1.5, 90),
]


def monte_carlo_width(C, draws, seed=26):
    """Mean and standard error of sup |<g, w>|, from the set's own formula written again."""
    g = np.random.default_rng(seed).standard_normal((draws, C.size))
    if isinstance(C, GroupL1Ball):
        squares = np.stack([(g[:, C.codes() == k] ** 2).sum(1) for k in np.unique(C.codes())])
        sups = C.radius * np.sqrt(squares.max(axis=0))
    elif isinstance(C, Polytope):
        sups = np.abs(g @ C.vertices.T).max(axis=1)
    elif isinstance(C, L1Ball | Simplex) or (isinstance(C, LpBall) and C.p == 1):
        sups = C.radius * np.abs(g).max(axis=1)
    else:
        p = C.p
        sups = C.radius * np.linalg.norm(g, 1 if p == INF else p / (p - 1), axis=1)
    return sups.mean(), sups.std(ddof=1) / np.sqrt(draws)


@pytest.mark.parametrize("C", EXACT_WIDTHS, ids=repr)
def test_exact_widths_agree_with_a_large_monte_carlo(C):
    width = C.gaussian_width()
    assert width.error == 0.0
    mean, error = monte_carlo_width(C, 100_000)
    # 6 standard errors of a mean of 100,000 draws: a false alarm for 2e-9 of all seeds.
    assert abs(width.value - mean) <= 6 * error


@pytest.mark.parametrize(
    "C", [LpBall(1.3, 1.5, 40), LpBall(3, 1.5, 40), Polytope(PENTAGON), Polytope(AWAY)], ids=repr
)
def test_default_widths_are_within_their_own_error_bar(C):
    width = C.gaussian_width()
    assert width.error > 0
    mean, error = monte_carlo_width(C, 100_000)
    assert abs(width.value - mean) <= 6 * np.hypot(width.error, error)


@pytest.mark.parametrize(
    ("estimated", "exact"),
    [
        (Polytope(np.vstack([np.eye(30), -np.eye(30)])), L1Ball(1.0, 30)),
        (Polytope(2.0 * np.eye(30)), Simplex(2.0, 30)),
        (LpBall(2.0000001, 1.0, 30), L2Ball(1.0, 30)),
        (LpBall(1.0000001, 1.0, 30), L1Ball(1.0, 30)),
    ],
    ids=["l1 ball", "simplex", "l2 ball", "nearly l1"],
)
def test_the_monte_carlo_width_is_near_the_closed_form_of_the_same_set(estimated, exact):
    width = estimated.gaussian_width()
    assert width.error > 0
    assert abs(width.value - exact.gaussian_width().value) <= 6 * width.error


def test_more_draws_make_the_error_bar_shorter_and_the_same_label_gives_the_same_width():
    C = LpBall(3, 1.0, 20)
    assert C.gaussian_width() == C.gaussian_width()
    assert C.gaussian_width(1_600).error < 0.7 * C.gaussian_width(400).error


def test_width_scales_with_the_radius():
    for make in (L1Ball, Simplex, L2Ball, lambda r, p: LpBall(3, r, p)):
        one, three = make(1.0, 25).gaussian_width(), make(3.0, 25).gaussian_width()
        assert three.value == pytest.approx(3 * one.value, rel=1e-9)
        assert three.error == pytest.approx(3 * one.error, rel=1e-9)


def test_width_of_a_polytope_does_not_need_its_vertices_in_order():
    forwards, backwards = Polytope(AWAY), Polytope(AWAY[::-1])
    assert forwards.gaussian_width().value == pytest.approx(backwards.gaussian_width().value)


def test_width_closed_forms():
    assert L1Ball(1.0, 1).gaussian_width().value == pytest.approx(np.sqrt(2 / np.pi), rel=1e-7)
    assert L1Ball(1.0, 2).gaussian_width().value == pytest.approx(2 / np.sqrt(np.pi), rel=1e-7)
    assert L2Ball(1.0, 2).gaussian_width().value == pytest.approx(np.sqrt(np.pi / 2), rel=1e-12)
    assert L2Ball(1.0, 10**6).gaussian_width().value == pytest.approx(1e3, rel=1e-6)
    assert LpBall(INF, 1.0, 7).gaussian_width().value == pytest.approx(7 * np.sqrt(2 / np.pi))


def test_width_of_the_l1_ball_grows_like_the_root_of_the_logarithm():
    for p in (2, 10, 10**3, 10**6, 10**9):
        width = L1Ball(1.0, p).gaussian_width().value
        top = np.sqrt(2 * np.log(2 * p))
        assert 0.6 * top <= width <= top


def test_width_of_groups_grows_like_the_root_of_size_and_logarithm_of_number():
    # E max over m groups of a chi with k degrees of freedom is at most sqrt(k) + sqrt(2 ln m).
    for k in (1, 5, 50, 1_000):
        for m in (1, 10, 1_000):
            width = GroupL1Ball(k, 1.0, k * m).gaussian_width().value
            assert np.sqrt(k - 0.5) * (1 if k > 1 else 0.99) <= width
            assert width <= np.sqrt(k) + np.sqrt(2 * np.log(m))


def test_groups_of_one_and_one_group_of_all_are_the_l1_and_the_l2_ball():
    ones, all_in_one = GroupL1Ball(1, 1.5, 20), GroupL1Ball(20, 1.5, 20)
    assert ones.gaussian_width().value == pytest.approx(
        L1Ball(1.5, 20).gaussian_width().value, rel=1e-7
    )
    assert all_in_one.gaussian_width().value == pytest.approx(
        L2Ball(1.5, 20).gaussian_width().value, rel=1e-7
    )
    v = np.random.default_rng(27).standard_normal(20)
    np.testing.assert_allclose(ones.project(v), L1Ball(1.5).project(v), atol=1e-12)
    np.testing.assert_allclose(all_in_one.project(v), L2Ball(1.5).project(v), atol=1e-12)


def test_width_of_a_set_without_a_dimension_is_refused():
    with pytest.raises(InvalidArgument, match="sized"):
        L1Ball(1.0).gaussian_width()


WIDTHS = [
    *EXACT_WIDTHS,
    SparseBall(1, 1.5, 40),
    SparseBall(5, 0.7, 60),
    SparseBall(40, 1.0, 40),
    LpBall(1.3, 1.5, 40),
    LpBall(3, 1.5, 40),
    Polytope(PENTAGON),
    Polytope(AWAY),
    Polytope(np.random.default_rng(31).standard_normal((50, 20))),
]


def sups(C, draws=4_000, seed=32):
    """sup |<g, w>| over C for many g, written again."""
    g = np.random.default_rng(seed).standard_normal((draws, C.size))
    if isinstance(C, SparseBall):
        largest = -np.sort(-np.abs(g), axis=1)[:, : C.sparsity]
        return C.radius * np.linalg.norm(largest, axis=1)
    return np.array([C.dual_norm(row) for row in g])


@pytest.mark.parametrize("C", WIDTHS, ids=repr)
def test_every_width_agrees_with_monte_carlo(C):
    width, found = C.gaussian_width(), sups(C)
    error = found.std(ddof=1) / np.sqrt(len(found))
    # 6 standard errors of a mean of 4,000 draws: a false alarm for 2e-9 of all seeds.
    assert abs(width.value - found.mean()) <= 6 * np.hypot(width.error, error)


@pytest.mark.parametrize("C", WIDTHS, ids=repr)
def test_every_width_lies_between_that_of_a_segment_and_that_of_a_ball(C):
    radius, width = C.radius_in("l2"), C.gaussian_width()
    assert width.value >= radius * np.sqrt(2 / np.pi) * (1 - 1e-9) - 6 * width.error
    assert width.value <= radius * np.sqrt(C.size) * (1 + 1e-9) + 6 * width.error


@pytest.mark.parametrize("k", [1, 2, 10, 200])
@pytest.mark.parametrize("size", [1, 5, 100])
def test_fact_1_a_polytope_of_k_vertices_is_no_wider_than_the_root_of_the_logarithm(k, size):
    vertices = np.random.default_rng([33, k, size]).standard_normal((k, size))
    for C in (Polytope(vertices), L1Ball(2.0, size), Simplex(2.0, size)):
        # A segment has two ends: with |<g, w>| each vertex counts twice.
        top = C.radius_in("l2") * np.sqrt(2 * np.log(2 * C.n_vertices))
        width = C.gaussian_width()
        assert width.value <= top + 6 * width.error


@pytest.mark.parametrize("k", [1, 4, 25, 100])
@pytest.mark.parametrize("groups", [2, 10, 1_000])
def test_fact_2_groups_are_about_as_wide_as_root_of_size_plus_root_of_logarithm(k, groups):
    d = k * groups
    fact = np.sqrt(k) + np.sqrt(2 * np.log(d / k))
    width = GroupL1Ball(k, 1.0, d).gaussian_width().value
    assert 0.5 * fact <= width <= fact


# at most s non-zeros

SPARSE = [SparseBall(1, 1.5, SIZE), SparseBall(2, 0.7, SIZE), SparseBall(SIZE, 2.0, SIZE)]
every_sparse = pytest.mark.parametrize("C", SPARSE, ids=repr)


def sparse_points(C, n, seed=0):
    """Points with few non-zeros, written without asking C."""
    rng = np.random.default_rng(seed)
    out = np.zeros((n, C.size))
    for row in out:
        places = rng.choice(C.size, rng.integers(1, C.sparsity + 1), replace=False)
        v = rng.standard_normal(len(places))
        row[places] = C.radius * rng.uniform() ** 0.2 * v / np.linalg.norm(v)
    return out


def on_every_support(C):
    return [np.array(places) for places in combinations(range(C.size), C.sparsity)]


@every_sparse
def test_sparse_projection_is_the_nearest_of_all_supports(C):
    rng = np.random.default_rng(41)
    for scale in (1e-8, 0.1, 1.0, 1e6):
        v = scale * rng.standard_normal(C.size)
        found = C.project(v)
        assert np.count_nonzero(found) <= C.sparsity
        assert np.linalg.norm(found) <= C.radius * (1 + 1e-12)
        nearest = np.inf
        for places in on_every_support(C):
            w = np.zeros(C.size)
            w[places] = v[places] * min(1, C.radius / np.linalg.norm(v[places]))
            nearest = min(nearest, np.linalg.norm(v - w))
        assert np.linalg.norm(v - found) == pytest.approx(nearest, rel=1e-12)
        assert np.all(np.linalg.norm(sparse_points(C, 500) - v, axis=1) >= nearest * (1 - 1e-12))
        np.testing.assert_allclose(C.project(found), found, rtol=1e-12)
    for v in sparse_points(C, 20, seed=42):
        np.testing.assert_allclose(C.project(v), v, rtol=1e-12)


def test_sparse_projection_of_nothing_and_of_ties():
    C = SparseBall(2, 1.0, 5)
    np.testing.assert_array_equal(C.project(np.zeros(5)), np.zeros(5))
    tied = C.project(np.ones(5))
    assert np.count_nonzero(tied) == 2
    assert np.linalg.norm(tied) == pytest.approx(1.0)
    v = np.array([0.3, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(C.project(v), v)
    assert C.project(-np.ones(5)).min() == pytest.approx(-np.sqrt(0.5))


@every_sparse
def test_sparse_minimiser_dual_norm_and_reach_are_the_best_of_all_supports(C):
    rng = np.random.default_rng(43)
    for scale in (1e-12, 1.0, 1e12):
        g = scale * rng.standard_normal(C.size)
        best = max(C.radius * np.linalg.norm(g[places]) for places in on_every_support(C))
        s = C.minimiser(g)
        assert len(s.support) <= C.sparsity
        assert C.contains(s.dense())
        assert -s.dot(g) == pytest.approx(best, rel=1e-12)
        assert C.dual_norm(g) == pytest.approx(best, rel=1e-12)
        assert C.weighted_reach(np.abs(g)) == pytest.approx(best, rel=1e-12)
        assert np.abs(sparse_points(C, 500, seed=44) @ g).max() <= best * (1 + 1e-12)
    assert C.minimiser(np.zeros(C.size)).dense().tolist() == [0.0] * C.size
    assert C.dual_norm(np.zeros(C.size)) == 0.0


@every_sparse
@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_sparse_radius_in_a_norm_bounds_all_points_and_is_attained(C, norm):
    order = {"l1": 1, "l2": 2, "linf": INF}[norm]
    radius = C.radius_in(norm)
    points = sparse_points(C, 2_000, seed=45)
    assert np.linalg.norm(points, order, axis=1).max() <= radius * (1 + 1e-12)
    even = np.zeros(C.size)
    even[: C.sparsity] = C.radius / np.sqrt(C.sparsity)
    single = np.r_[C.radius, np.zeros(C.size - 1)]
    attained = max(np.linalg.norm(v, order) for v in (even, single))
    assert attained == pytest.approx(radius, rel=1e-12)


@every_sparse
@pytest.mark.parametrize("x", [0.3, "columns", "l2"])
def test_sparse_reach_bounds_every_margin_and_is_attained(C, x):
    rng = np.random.default_rng(46)
    if x == "l2":
        bounds = Bounds(0.7, norm="l2")
        row = 0.7 * np.eye(C.size)[0]
    else:
        bounds = Bounds(rng.uniform(0.1, 2, C.size) if x == "columns" else x)
        row = np.array(bounds.per_column(C.size))
    rows = bounds.clip_x(100 * rng.standard_normal((400, C.size)))
    reach = C.reach(bounds)
    assert np.abs(rows @ sparse_points(C, 400, seed=47).T).max() <= reach * (1 + 1e-12)
    assert abs(C.minimiser(row).dot(row)) == pytest.approx(reach, rel=1e-12)


def test_sparse_norms_and_membership():
    C = SparseBall(2, 2.0, 4)
    assert C.minkowski_norm(np.array([3.0, 0, 4.0, 0])) == pytest.approx(2.5)
    assert C.minkowski_norm(np.array([1e-9, 0, 4.0, 1e-9])) == INF
    assert C.minkowski_norm(np.zeros(4)) == 0.0
    assert C.contains(np.array([0, 1.2, 0, -1.6]))
    assert not C.contains(np.array([0, 1.2, 0.1, -1.2]))
    assert not C.contains(np.array([0, 1.3, 0, -1.6]))
    half = (np.array([2.0, 0, 0, 0]) + np.array([0, 0, 0, 2.0]) + np.array([0, 2.0, 0, 0])) / 3
    assert not C.contains(half)  # a mixture of points of the set


def test_only_the_sparse_ball_is_not_convex_and_no_polytope():
    assert all(C.convex for C in SETS)
    C = SparseBall(2)
    assert not C.convex
    assert not isinstance(C, PolytopeSet)
    assert C.projection_error(1.0) is None
    assert C.size is None
    assert C.sized(7).size == 7
    assert C.sized(7).start().dense().tolist() == [0.0] * 7
    assert SparseBall(2, 1.0) == C


@pytest.mark.parametrize("sparsity", [0, -1, 1.0, 2.5, True, "2", None, np.nan])
def test_a_bad_sparsity_is_refused(sparsity):
    with pytest.raises(InvalidArgument, match="sparsity"):
        SparseBall(sparsity)


@pytest.mark.parametrize("radius", BAD_RADII, ids=repr)
def test_a_bad_radius_of_a_sparse_ball_is_refused(radius):
    with pytest.raises(InvalidArgument, match="radius"):
        SparseBall(2, radius)


def test_more_non_zeros_than_columns_are_refused_once_the_columns_are_known():
    C = SparseBall(5)
    assert C.sized(5).radius_in("l1") == pytest.approx(np.sqrt(5))
    with pytest.raises(InvalidArgument, match="sparsity=5 with 4 columns"):
        C.sized(4)
    with pytest.raises(InvalidArgument, match="dimension 6"):
        SparseBall(5, 1.0, 6).sized(7)
