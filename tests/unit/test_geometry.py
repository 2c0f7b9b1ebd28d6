"""Norms, widths and curvature by name, against brute force."""

import math
from itertools import combinations

import numpy as np
import pytest

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.geometry import (
    curvature_of_data,
    mutual_incoherence,
    one_sided_width,
    restricted_strong_convexity,
    row_norm,
    set_norm,
    smoothness,
    smoothness_curvature,
)
from riata.losses import Linear, RowLoss, Squared
from riata.lower_bounds import lower_bound
from riata.privacy import Budget
from riata.problem import Problem
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex, SparseBall
from riata.solvers import GaussianFrankWolfe
from riata.solvers.step_count import start_risk

INF = float("inf")
P = 6
SETS = [
    L1Ball(1.5, P), Simplex(0.7, P), L2Ball(2.0, P), LpBall(1.5, 0.5, P), LpBall(INF, 0.5, P),
    GroupL1Ball(2, 1.2, P), SparseBall(3, 1.1, P), Polytope(np.arange(24.0).reshape(4, P) - 9),
]  # fmt: skip
ORDERS = [1.0, 1.3, 1.5, 2.0, 4.0, INF]


@pytest.mark.parametrize("C", SETS, ids=repr)
def test_the_norm_of_a_set_is_reached_and_never_passed(C):
    rng = np.random.default_rng(0)
    points = [C.project(5 * rng.standard_normal(P) * rng.integers(0, 2, P)) for _ in range(300)]
    even = np.ones(P) if not isinstance(C, GroupL1Ball) else np.repeat([1.0, 0.0], [2, P - 2])
    points += [C.project(20 * even), C.project(20 * np.eye(P)[0])]
    points += [C.minimiser(-row).dense() for row in np.eye(P)]
    for q in ORDERS:
        longest = max(np.linalg.norm(point, q) for point in points)
        assert longest <= set_norm(C, q) * (1 + 1e-9)
        if not isinstance(C, Polytope):
            assert longest >= 0.97 * set_norm(C, q)
    for q, name in ((1.0, "l1"), (2.0, "l2"), (INF, "linf")):
        assert set_norm(C, q) == pytest.approx(C.radius_in(name))


@pytest.mark.parametrize("bounds", [Bounds(0.5, 1.0), Bounds(np.arange(1.0, 7.0), 1.0),
                                    Bounds(2.0, 1.0, norm="l2")], ids=repr)  # fmt: skip
def test_the_norm_of_a_row_is_that_of_bounds_where_they_know_it(bounds):
    for r, name in ((1.0, "l1"), (2.0, "l2"), (INF, "linf")):
        assert row_norm(bounds, r, P) == pytest.approx(bounds.row_norm(name, P))
    assert row_norm(bounds, INF, P) <= row_norm(bounds, 3.0, P) <= row_norm(bounds, 2.0, P)


@pytest.mark.parametrize("q", ORDERS)
def test_smoothness_is_that_of_the_worst_rows(q):
    problem = Problem(Squared(), LpBall(q, 0.5), Bounds(1.0, 1.0), 10, P)
    hessian = 2 * np.ones((P, P))  # ten rows of ones
    r = INF if q == 1 else (1.0 if q == INF else q / (q - 1))
    rng = np.random.default_rng(1)
    tried = [rng.standard_normal(P) for _ in range(500)] + [np.ones(P), np.eye(P)[0]]
    found = max(np.linalg.norm(hessian @ v, r) / np.linalg.norm(v, q) for v in tried)
    assert found == pytest.approx(smoothness(problem, q))


def test_the_remarks_need_their_factors():
    ones = np.ones((10, P))
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 10, P)
    # theta = e_1, s = -e_1, gamma = 1: 2 (L(s) - L(theta) - <s - theta, grad L(theta)>)
    theta, s = np.eye(P)[0], -np.eye(P)[0]
    gradient = 2 * ones.T @ (ones @ theta) / 10
    true = 2 * (np.mean((ones @ s) ** 2) - np.mean((ones @ theta) ** 2) - (s - theta) @ gradient)
    assert true == pytest.approx(8.0)
    assert smoothness_curvature(problem, 1.0) == pytest.approx(8.0)  # printed: 2
    assert curvature_of_data(ones, problem.set) == pytest.approx(8.0)  # printed: 4
    assert problem.curvature == pytest.approx(8.0)
    for q in ORDERS:
        assert smoothness_curvature(problem, q) >= problem.curvature * (1 - 1e-12)


CORNERS = Polytope(np.arange(12.0).reshape(4, 3) ** 2 / 40)


@pytest.mark.not_quick
@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("C", [L1Ball(0.7, 3), Simplex(2.0, 3), L2Ball(1.3, 3), CORNERS], ids=repr)
def test_the_curvature_of_data_is_the_largest_over_pairs(C):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((20, 3))
    ends = [C.minimiser(rng.standard_normal(3)).dense() for _ in range(800)]
    found = max(2 * np.mean((x @ (a - b)) ** 2) for a in ends for b in ends[:200])
    assert 0.98 * curvature_of_data(x, C) <= found <= curvature_of_data(x, C) * (1 + 1e-9)


def test_incoherence_bounds_every_sparse_vector():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((400, 8))
    exact = min(
        np.linalg.eigvalsh(x[:, list(s)].T @ x[:, list(s)] / 400)[0]
        for s in combinations(range(8), 3)
    )
    assert 0.3 < restricted_strong_convexity(x, 3) <= exact
    assert restricted_strong_convexity(np.ones((5, 4)), 2) == pytest.approx(0.0)
    assert mutual_incoherence(np.eye(4)) == 0.0
    assert mutual_incoherence([[1.0, 2.0], [1.0, 2.0]]) == pytest.approx(1.0)


def test_widths_of_both_kinds():
    """Monte Carlo with 40,000 draws: an error of five standard deviations has less than 1e-6."""
    rng = np.random.default_rng(4)
    g = rng.standard_normal((40_000, P))
    top = g.max(axis=1)
    assert one_sided_width(Simplex(2.0, P)).value == pytest.approx(
        2 * top.mean(), abs=10 * top.std() / 200
    )
    assert one_sided_width(Simplex(1.0, 1)).value == pytest.approx(0.0, abs=1e-9)
    assert one_sided_width(Simplex(1.0, 2)).value == pytest.approx(1 / math.sqrt(math.pi))
    for C in SETS[2:6]:
        assert one_sided_width(C) == C.gaussian_width()
    away = Polytope(np.vstack([np.eye(P), -np.eye(P)]) + 100.0)
    near = Polytope(np.vstack([np.eye(P), -np.eye(P)]))
    one = one_sided_width(away)
    assert abs(one.value - one_sided_width(near).value) < 6 * (one.error + 1)
    assert one.value < away.gaussian_width().value


def test_impossible_arguments_are_refused():
    with pytest.raises(InvalidArgument, match="at least 1"):
        set_norm(L1Ball(1.0, 3), 0.5)
    with pytest.raises(InvalidArgument, match="two columns"):
        mutual_incoherence(np.ones((3, 1)))
    with pytest.raises(InvalidArgument, match="is 0"):
        mutual_incoherence(np.zeros((3, 2)))
    with pytest.raises(InvalidArgument, match="sparsity"):
        restricted_strong_convexity(np.eye(3), 0)
    with pytest.raises(InvalidArgument, match="hard to compute"):
        curvature_of_data(np.eye(3), LpBall(3.0, 1.0, 3))


@pytest.mark.parametrize("q", [1.25, 1.5, 2.0])
def test_the_bound_over_lq_balls_grows_like_the_cube_root_of_the_columns(q):
    """Talwar, Thakurta and Zhang, section 1: for rows in the dual norm, whatever q is."""
    bounds = Bounds(1.0, 1.0, norm=q / (q - 1))
    few, many = (
        GaussianFrankWolfe()
        .plan(Problem(Squared(), LpBall(q), bounds, 10**7, p), Budget(1.0, 1e-6))
        .excess_risk
        for p in (64, 1024)
    )
    assert math.log(many / few) / math.log(16) == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize("q", [1.0, 1.25, 1.5, 2.0, 4.0])
def test_remark_1_is_the_curvature_for_rows_in_the_dual_norm(q):
    r = INF if q == 1 else q / (q - 1)
    problem = Problem(Squared(), LpBall(q, 0.7), Bounds(1.3, 1.0, norm=r), 10, P)
    assert smoothness_curvature(problem, q) == pytest.approx(8 * (0.7 * 1.3) ** 2)
    assert problem.curvature == pytest.approx(smoothness_curvature(problem, q))
    declared = RowLoss(lambda theta, x, y: x, 3.0, q, smoothness=2.0)
    assert Problem(declared, LpBall(q, 0.7), Bounds(1.0, 1.0), 10, P).curvature == pytest.approx(
        4 * 2.0 * 0.7**2
    )


@pytest.mark.parametrize("p", [1.5, 2.0, 4.0])
def test_the_width_of_an_lp_ball_grows_like_a_power_of_the_dimension(p):
    """d^(1 - 1/p), up to the conjugate norm of one normal number; 5% for estimated widths."""
    q = 1 / (1 - 1 / p)
    one = math.sqrt(2) * (math.gamma((q + 1) / 2) / math.sqrt(math.pi)) ** (1 / q)
    for d in (64, 1024):
        width = one_sided_width(LpBall(p, 1.0, d)).value
        assert width / d ** (1 - 1 / p) == pytest.approx(one, rel=0.05)


def test_a_model_that_reads_nothing_costs_twice_the_slope_times_the_radius_at_most():
    """Footnote 4 of Kasiviswanathan and Jin, attained by a straight loss, and half of it at 0."""
    problem = Problem(Linear(), L2Ball(0.5), Bounds(1.0, 1.0, norm="l2"), 10, 3)
    assert problem.worst_excess_risk == pytest.approx(2 * 1.0 * 0.5)
    assert start_risk(problem) == pytest.approx(0.5)
    x, y = np.tile([1.0, 0.0, 0.0], (10, 1)), np.ones(10)
    worst = np.mean(Linear().value(x @ [-0.5, 0, 0], y) - Linear().value(x @ [0.5, 0, 0], y))
    assert worst == pytest.approx(problem.worst_excess_risk)


def test_linear_losses_over_a_ball_cost_the_root_of_the_dimension_over_n():
    """The lower bound of section 4 of Kasiviswanathan and Jin."""

    def least(n, d):
        problem = Problem(Linear(), L2Ball(1.0), Bounds(1.0, 1.0, norm="l2"), n, d)
        return lower_bound(problem, Budget(1.0, 1e-12)).value

    assert least(10**5, 64) / least(10**6, 64) == pytest.approx(10, rel=0.02)
    assert least(10**6, 1024) / least(10**6, 64) == pytest.approx(4, rel=0.05)
    assert least(10**6, 64) > 0.3 * 8 / 10**6
