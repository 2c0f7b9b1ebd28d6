"""Lifts: the smallest theta behind a projected vector, against cvxpy and its own certificate."""

import cvxpy as cp
import numpy as np
import pytest

from riata.errors import InvalidArgument
from riata.projections import PROJECTIONS, GaussianProjection, GivenProjection
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex
from riata.sets.lift import EXACT_DIMENSIONS, into_set, lift, lift_or_nearest, lift_within
from riata.sets.lift.first_order import ROOM, TOLERANCE

pytestmark = pytest.mark.matrix(one_in=11)

INF = float("inf")
M, D = 6, 20
PHI = GaussianProjection(M, D, seed=1)
AROUND = np.random.default_rng(0).standard_normal((40, D))
AWAY = np.random.default_rng(1).uniform(0.5, 2.0, (9, D))
LABELS = np.random.default_rng(2).integers(0, 7, D)

BALLS = [
    L1Ball(1.5, D),
    GroupL1Ball(3, 1.5, D),
    GroupL1Ball(LABELS, 0.5),
    GroupL1Ball(1, 1.0, D),
    GroupL1Ball(D, 1.0, D),
    L2Ball(0.7, D),
    LpBall(1, 1.5, D),
    LpBall(1.1, 1.5, D),
    LpBall(1.5, 1.5, D),
    LpBall(2, 1.5, D),
    LpBall(3, 0.4, D),
    LpBall(10, 0.4, D),
    LpBall(INF, 1.5, D),
]
CONES = [Simplex(2.0, D), Polytope(AROUND), Polytope(AWAY)]
every_ball = pytest.mark.parametrize("C", BALLS, ids=repr)
every_set = pytest.mark.parametrize("C", [*BALLS, *CONES], ids=repr)


def norm(C, w):
    """The norm of a set in cvxpy's words, and what it asks of w beside it."""
    if isinstance(C, L1Ball):
        return cp.norm1(w) / C.radius, []
    if isinstance(C, Simplex):
        return cp.sum(w) / C.radius, [w >= 0]
    if isinstance(C, GroupL1Ball):
        groups = [np.flatnonzero(C.codes() == k) for k in np.unique(C.codes())]
        return sum(cp.norm2(w[members]) for members in groups) / C.radius, []
    if isinstance(C, Polytope):
        u = cp.Variable(C.n_vertices, nonneg=True)
        return cp.sum(u), [C.vertices.T @ u == w]
    p = 2 if isinstance(C, L2Ball) else C.p
    return (cp.norm2(w) if p == 2 else cp.pnorm(w, p, approx=False)) / C.radius, []


def solved(C, problem):
    # Power cones need more; second-order cones stall when they are asked for it.
    tolerance = 1e-10 if isinstance(C, LpBall) and C.p not in (1, 2, INF) else 1e-8
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=tolerance, tol_gap_rel=tolerance)
    return problem.value


def cvxpy_lift(C, phi, v):
    w = cp.Variable(phi.n_features)
    size, also = norm(C, w)
    return solved(C, cp.Problem(cp.Minimize(size), [phi.matrix() @ w == v, *also])), w.value


def cvxpy_nearest(C, phi, v):
    w = cp.Variable(phi.n_features)
    size, also = norm(C, w)
    full = isinstance(C, Simplex | Polytope)
    inside = [size == 1 if full else size <= 1, *also]
    return solved(C, cp.Problem(cp.Minimize(cp.sum_squares(phi.matrix() @ w - v)), inside))


def reachable(C, phi, seed=3):
    """The projection of some point of the set's cone."""
    rng = np.random.default_rng(seed)
    if isinstance(C, Polytope):
        return phi.forward(C.vertices.T @ rng.dirichlet(np.ones(C.n_vertices)))
    theta = rng.standard_normal(phi.n_features)
    return phi.forward(np.abs(theta) if isinstance(C, Simplex) else theta)


@every_set
@pytest.mark.parametrize("seed", [3, 4])
def test_the_lift_is_as_small_as_cvxpys(C, seed):
    v = reachable(C, PHI, seed)
    theta = lift(C, PHI, v)
    best, where = cvxpy_lift(C, PHI, v)
    np.testing.assert_allclose(PHI.forward(theta), v, atol=1e-11)
    assert C.minkowski_norm(theta) == pytest.approx(best, rel=2e-7)
    if not isinstance(C, LpBall) or C.p != INF:
        np.testing.assert_allclose(theta, where, atol=2e-4 * np.abs(where).max())


@pytest.mark.parametrize(("m", "d", "seed"), [(9, 97, 3), (6, 112, 29), (2, 91, 53)])
def test_one_large_group_is_not_taken_for_the_best_because_it_was_looked_at_first(m, d, seed):
    rng = np.random.default_rng(seed)
    phi, C = GaussianProjection(m, d, seed), GroupL1Ball(rng.integers(0, 5, d))
    v = rng.standard_normal(m)
    assert C.minkowski_norm(lift(C, phi, v)) == pytest.approx(cvxpy_lift(C, phi, v)[0], rel=2e-7)


@pytest.mark.parametrize("p", [1.02, 1.3, 4.0, 30.0])
def test_exponents_far_from_2_are_solved_to_their_certificate(p):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 80))
        phi = GaussianProjection(int(rng.integers(1, d + 1)), d, seed)
        v = rng.standard_normal(phi.dimension)
        np.testing.assert_allclose(phi.forward(lift(LpBall(p), phi, v)), v, atol=1e-10)


@every_ball
@pytest.mark.parametrize("kind", PROJECTIONS)
def test_the_lift_undoes_every_kind_of_projection(C, kind):
    phi = PROJECTIONS[kind](8, D, seed=2)
    v = np.random.default_rng(5).standard_normal(8)
    theta = lift(C, phi, v)
    np.testing.assert_allclose(phi.forward(theta), v, atol=1e-11)
    assert C.minkowski_norm(theta) == pytest.approx(cvxpy_lift(C, phi, v)[0], rel=2e-7)


@every_set
@pytest.mark.parametrize("scale", [1e-12, 1e9])
def test_the_lift_scales_with_v_and_against_the_projection(C, scale):
    v = reachable(C, PHI)
    theta = lift(C, PHI, v)
    np.testing.assert_allclose(lift(C, PHI, scale * v), scale * theta, atol=1e-6 * scale)
    wide = GivenProjection(scale * PHI.matrix())
    np.testing.assert_allclose(lift(C, wide, v), theta / scale, atol=1e-6 / scale)


@every_set
def test_the_lift_of_zero_is_zero(C):
    np.testing.assert_array_equal(lift(C, PHI, np.zeros(M)), np.zeros(D))


@every_ball
def test_rows_that_repeat_others_change_nothing(C):
    rng = np.random.default_rng(6)
    mix = np.vstack([np.eye(M), rng.standard_normal((2, M))])
    v = rng.standard_normal(M)
    once, twice = lift(C, PHI, v), lift(C, GivenProjection(mix @ PHI.matrix()), mix @ v)
    np.testing.assert_allclose(PHI.forward(twice), v, atol=1e-10)
    assert C.minkowski_norm(twice) == pytest.approx(C.minkowski_norm(once), rel=2e-7)


@every_ball
def test_a_square_projection_leaves_no_choice(C):
    phi = GaussianProjection(D, D)
    theta = np.random.default_rng(7).standard_normal(D)
    np.testing.assert_allclose(lift(C, phi, phi.forward(theta)), theta, atol=1e-8)


@pytest.mark.parametrize("kind", PROJECTIONS)
def test_a_sparse_vector_comes_back_exactly(kind):
    phi = PROJECTIONS[kind](60, 1_000, seed=4)
    theta = np.zeros(1_000)
    theta[[3, 77, 500, 998]] = [1.0, -2.0, 0.5, 3.0]
    v = phi.forward(theta)
    for C in (L1Ball(), LpBall(1.0), GroupL1Ball(1)):
        np.testing.assert_allclose(lift(C, phi, v), theta, atol=1e-7)
    found = lift(L1Ball(), phi, v)
    np.testing.assert_allclose(found, theta, atol=1e-12)
    assert np.flatnonzero(found).tolist() == [3, 77, 500, 998]
    found = lift(Simplex(), phi, phi.forward(np.abs(theta)))
    np.testing.assert_allclose(found, np.abs(theta), atol=1e-12)
    assert np.abs(lift(L2Ball(), phi, v) - theta).max() > 0.5


def test_groups_that_are_not_needed_are_exactly_zero():
    phi = GaussianProjection(60, 1_000, seed=4)
    theta = np.zeros(1_000)
    theta[40:45], theta[700:705] = 1.0, np.arange(5.0)
    found = lift(GroupL1Ball(5), phi, phi.forward(theta))
    np.testing.assert_allclose(found, theta, atol=1e-9)
    assert np.count_nonzero(found) == 10


def test_the_l1_lift_is_a_vertex():
    v = np.random.default_rng(8).standard_normal(M)
    assert np.count_nonzero(lift(L1Ball(), PHI, v)) <= M


@pytest.mark.long
@pytest.mark.parametrize("kind", PROJECTIONS)
def test_a_hundred_thousand_columns(kind):
    # A dense program would have 2 x 100 x 100,000 entries. The prices prove what is found.
    d, m = 100_000, 100
    phi = PROJECTIONS[kind](m, d)
    rng = np.random.default_rng(9)
    theta = np.zeros(d)
    theta[rng.choice(d, 4, replace=False)] = [1.0, -1.0, 2.0, 0.3]
    np.testing.assert_allclose(lift(L1Ball(), phi, phi.forward(theta)), theta, atol=1e-12)

    v = rng.standard_normal(m)
    found = lift(L1Ball(), phi, v)
    np.testing.assert_allclose(phi.forward(found), v, atol=1e-11)
    support = np.flatnonzero(found)
    assert len(support) == m
    prices = np.linalg.solve(phi.columns(support).T, np.sign(found[support]))
    assert np.abs(phi.back(prices)).max() <= 1 + 1e-8
    assert v @ prices == pytest.approx(np.abs(found).sum(), rel=1e-10)


@pytest.mark.not_quick
def test_a_hundred_thousand_columns_in_groups():
    d, m = 100_000, 100
    phi, C = GaussianProjection(m, d), GroupL1Ball(4, 1.0, d)
    theta = np.zeros(d)
    theta[400:404], theta[88_000:88_004] = [1.0, -1.0, 2.0, 0.3], [1.0, 1.0, 0.0, 1.0]
    np.testing.assert_allclose(lift(C, phi, phi.forward(theta)), theta, atol=1e-8)


# out of reach


def test_what_no_multiple_of_the_set_reaches_is_refused():
    phi = GivenProjection(np.abs(PHI.matrix()))
    for C in (Simplex(2.0, D), Polytope(AWAY)):
        with pytest.raises(InvalidArgument, match=r"out of reach.*`lift_or_nearest`"):
            lift(C, phi, -np.ones(M))
    twice = GivenProjection(np.vstack([PHI.matrix(), PHI.matrix()[0]]))
    for C in BALLS:
        with pytest.raises(InvalidArgument, match="out of reach"):
            lift(C, twice, np.arange(M + 1.0))


@every_set
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_the_nearest_point_is_cvxpys(C, scale):
    v = scale * np.random.default_rng(10).standard_normal(M) * C.radius_in("l2")
    theta = into_set(C, PHI, v)
    assert C.contains(theta, 1e-7)
    best = cvxpy_nearest(C, PHI, v)
    close = pytest.approx(best, rel=1e-6, abs=1e-7 * (v @ v))
    assert np.square(PHI.forward(theta) - v).sum() == close


@every_set
def test_the_nearest_point_is_proved_to_be_the_nearest(C):
    v = 5 * np.random.default_rng(11).standard_normal(M) * C.radius_in("l2")
    theta = into_set(C, PHI, v)
    gradient = PHI.back(PHI.forward(theta) - v)
    gap = gradient @ theta - C.minimiser(gradient).dot(gradient)
    assert gap <= 1e-8 * np.square(PHI.forward(theta) - v).sum()


@every_set
def test_lifted_is_the_lift_inside_and_the_nearest_point_outside(C):
    v = reachable(C, PHI)
    theta = lift(C, PHI, v)
    size = C.minkowski_norm(theta)
    np.testing.assert_allclose(
        lift_or_nearest(C, PHI, v * (1 - 1e-12) / size),
        theta / size,
        atol=1e-6 * np.abs(theta).max(),
    )
    outside = 1.5 * v / size
    np.testing.assert_array_equal(lift_or_nearest(C, PHI, outside), into_set(C, PHI, outside))
    assert np.linalg.norm(
        PHI.forward(lift_or_nearest(C, PHI, outside)) - outside
    ) > 1e-3 * np.linalg.norm(v)


@pytest.mark.parametrize("C", CONES, ids=repr)
def test_lifted_lies_in_a_set_that_misses_the_origin(C):
    # Half of a point of a simplex has a smaller norm than the set's points, and is not one.
    v = 0.5 * reachable(C, PHI)
    assert C.contains(lift_or_nearest(C, PHI, v), 1e-7)
    phi = GivenProjection(np.abs(PHI.matrix()))
    assert C.contains(lift_or_nearest(C, phi, -np.ones(M)), 1e-7)


def test_lifted_finds_the_point_of_the_simplex_that_is_there():
    inside = np.full(D, 2.0 / D)
    v = PHI.forward(inside)
    theta = lift_or_nearest(Simplex(2.0, D), PHI, v)
    assert lift(Simplex(2.0, D), PHI, v).sum() < 1.9
    assert theta.sum() == pytest.approx(2.0)
    np.testing.assert_allclose(PHI.forward(theta), v, atol=1e-6)


@pytest.mark.not_quick
@pytest.mark.parametrize("C", [L1Ball(), Simplex(), GroupL1Ball(4)], ids=repr)
def test_the_nearest_point_among_a_hundred_thousand_columns(C):
    d, m = 100_000, 100
    phi, C = GaussianProjection(m, d), C.sized(d)
    v = np.random.default_rng(12).standard_normal(m) / 5
    theta = into_set(C, phi, v)
    gradient = phi.back(phi.forward(theta) - v)
    gap = gradient @ theta - C.minimiser(gradient).dot(gradient)
    assert gap <= 1e-8 * np.square(phi.forward(theta) - v).sum()
    assert C.contains(theta)


@every_ball
def test_the_nearest_point_to_zero_is_zero(C):
    np.testing.assert_allclose(into_set(C, PHI, np.zeros(M)), 0.0, atol=1e-12)


def test_a_simplex_that_reaches_zero_reaches_it():
    phi = GivenProjection(np.hstack([PHI.matrix(), -PHI.matrix()]))
    theta = lift_or_nearest(Simplex(1.0), phi, np.zeros(M))
    assert Simplex(1.0).contains(theta)
    np.testing.assert_allclose(phi.forward(theta), 0.0, atol=1e-8)


# by products alone


@every_ball
@pytest.mark.parametrize("tolerance", [0.1, 1e-3])
def test_a_lift_by_products_solves_nearly_and_is_hardly_larger_than_need_be(C, tolerance):
    v = reachable(C, PHI)
    smallest = C.minkowski_norm(lift(C, PHI, v))
    v = 0.6 * v / smallest
    theta = lift_within(C, PHI, v, tolerance)
    assert np.linalg.norm(PHI.forward(theta) - v) <= tolerance * np.linalg.norm(v) * (1 + 1e-9)
    assert C.minkowski_norm(theta) <= 0.6 * ROOM * (1 + 1e-6)


@every_set
@pytest.mark.parametrize("tolerance", [0.1, 1e-3])
def test_a_lift_by_products_out_of_reach_is_near_the_nearest_image(C, tolerance):
    v = 5 * np.random.default_rng(11).standard_normal(M) * C.radius_in("l2")
    theta = lift_within(C, PHI, v, tolerance)
    assert C.contains(theta)
    best = PHI.forward(into_set(C, PHI, v))
    away = np.linalg.norm(PHI.forward(theta) - best)
    assert away <= tolerance * np.linalg.norm(v) * (1 + 1e-6)


def test_a_lift_by_products_of_zero_and_of_what_no_point_reaches():
    for C in BALLS:
        np.testing.assert_array_equal(lift_within(C, PHI, np.zeros(M)), np.zeros(D))
    flat = GivenProjection(np.vstack([PHI.matrix(), np.zeros(D)]))
    v = np.append(np.zeros(M), 1.0)
    for C in (L1Ball(1.0, D), L2Ball(1.0, D)):
        np.testing.assert_allclose(lift_within(C, flat, v), 0.0, atol=1e-9)
    for tolerance in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(InvalidArgument, match="tolerance"):
            lift_within(L1Ball(), PHI, np.ones(M), tolerance)


@pytest.mark.parametrize(
    "C", [L1Ball(), GroupL1Ball(4), L2Ball(), Simplex(), LpBall(INF, 0.01), LpBall(1.5)], ids=repr
)
def test_many_dimensions_are_lifted_by_products(C):
    m, d = EXACT_DIMENSIONS + 20, 3_000
    phi, C = PROJECTIONS["structured"](m, d), C.sized(d)
    theta = np.zeros(d)
    theta[[5, 60, 700]] = 1 / 3
    for v in (phi.forward(C.project(theta)), np.random.default_rng(2).standard_normal(m)):
        found = lift_or_nearest(C, phi, v)
        np.testing.assert_array_equal(found, lift_within(C, phi, v))
        assert C.contains(found)


def distance_outside(C, theta):
    """How far theta is outside of a set, relative to it, by the definition of the set."""
    if isinstance(C, Polytope):  # its corners are independent here, so the mixture is unique
        mixture = np.linalg.lstsq(C.vertices.T, theta)[0]
        missed = np.abs(C.vertices.T @ mixture - theta).max() / np.abs(C.vertices).max()
        return max(-mixture.min(), abs(mixture.sum() - 1), missed)
    if isinstance(C, Simplex):
        return max(-theta.min(), abs(theta.sum() / C.radius - 1))
    if isinstance(C, GroupL1Ball):
        size = np.sqrt(np.bincount(C.codes(), weights=theta**2)).sum()
    else:
        order = {L1Ball: 1.0, L2Ball: 2.0}.get(type(C)) or C.p
        size = np.linalg.norm(theta, order)
    return size / C.radius - 1


@pytest.mark.long
@pytest.mark.matrix(one_in=1)
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["l1", "group", "l2", "simplex", "linf", "lp", "polytope"])
def test_a_thousand_dimensions_and_a_hundred_thousand_columns_lie_in_the_set(kind, noise):
    m, d = 1_000, 100_000
    rng = np.random.default_rng(11)
    theta = np.zeros(d)
    theta[rng.choice(d, 10, replace=False)] = 0.1
    if kind == "polytope":
        C = Polytope(rng.standard_normal((200, d)) / np.sqrt(d))
        theta = C.vertices.T @ rng.dirichlet(np.ones(200))
    else:
        C = {
            "l1": L1Ball(1.0, d), "group": GroupL1Ball(10, 1.0, d), "l2": L2Ball(1.0, d),
            "simplex": Simplex(1.0, d), "linf": LpBall(INF, 10 / d, d), "lp": LpBall(1.5, 1.0, d),
        }[kind]  # fmt: skip
        theta = theta if kind == "simplex" else 0.5 * C.project(theta)
    phi = PROJECTIONS["structured"](m, d)
    v = phi.forward(theta)
    v = v + noise * np.linalg.norm(v) * rng.standard_normal(m) / np.sqrt(m)
    found = lift_or_nearest(C, phi, v)
    assert distance_outside(C, found) <= 1e-9
    assert np.linalg.norm(phi.forward(found) - v) <= (TOLERANCE + 1.1 * noise) * np.linalg.norm(v)


# bad arguments


@pytest.mark.parametrize("function", [lift, into_set, lift_or_nearest])
def test_bad_arguments_are_refused(function):
    for v in (np.ones(M + 1), np.ones((M, 1)), np.full(M, np.nan), np.full(M, INF)):
        with pytest.raises(InvalidArgument, match=f"{M} finite numbers"):
            function(L1Ball(), PHI, v)
    with pytest.raises(InvalidArgument, match="dimension 7 and the data 20"):
        function(L1Ball(1.0, 7), PHI, np.ones(M))
