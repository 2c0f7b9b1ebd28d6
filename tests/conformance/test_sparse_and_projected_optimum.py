"""As epsilon grows, sparse solvers find the best columns and projected ones the lift."""

import math
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse

from riata import (
    Bounds,
    PrivateErm,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.losses import Logistic, Squared
from riata.projections import GaussianProjection, GivenProjection, StructuredProjection
from riata.sets import GroupL1Ball, L1Ball, L2Ball, Simplex, SparseBall
from riata.sets.lift import lift_or_nearest
from riata.solvers import (
    HardThresholding,
    NoisyGradient,
    PrivateHardThresholding,
    PrivatePeeling,
    Projected,
)

pytestmark = pytest.mark.matrix(one_in=11)

NEARLY_INFINITE = 1e8
N, P, S = 2_000, 12, 3
RNG = np.random.default_rng(2_019)
X = RNG.uniform(-1, 1, (N, P))
THETA = np.zeros(P)
THETA[[2, 5, 9]] = [0.6, -0.5, 0.3]
Y = X @ THETA + 0.2 + 0.1 * RNG.standard_normal(N)
BOUNDS = Bounds(1.0, 2.0)


def least_squares(columns, intercept=True):
    """Coefficients on these columns, the intercept last."""
    a = np.c_[X[:, list(columns)], np.ones(N)] if intercept else X[:, list(columns)]
    return np.linalg.lstsq(a, Y, rcond=None)[0]


def best_columns(intercept=True):
    """Those with the smallest sum of squares, of all sets of S columns."""

    def squares(columns):
        a = np.c_[X[:, list(columns)], np.ones(N)] if intercept else X[:, list(columns)]
        return np.square(a @ least_squares(columns, intercept) - Y).sum()

    return min(combinations(range(P), S), key=squares)


SPARSE = {
    "reference": (HardThresholding(tolerance=1e-9), math.inf, 1e-6, 1e-5),
    "auto": ("auto", math.inf, 1e-6, 1e-4),
    "thresholding": (PrivateHardThresholding(30), NEARLY_INFINITE, 1e-6, 1e-4),
    "peeling": (PrivatePeeling(30), NEARLY_INFINITE, 1e-6, 1e-4),
    "peeling, auto": ("peeling", NEARLY_INFINITE, 1e-6, 1e-4),
    "peeling, pure": (PrivatePeeling(30), NEARLY_INFINITE, 0.0, 1e-4),
    "peeling, laplace": (PrivatePeeling(30, values="laplace"), NEARLY_INFINITE, 1e-6, 1e-4),
    "peeling, split": (PrivatePeeling(10, split=True), NEARLY_INFINITE, 1e-6, 0.03),
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("case", SPARSE)
def test_sparse_solvers_find_the_best_columns_and_their_least_squares(case, intercept):
    solver, epsilon, delta, close = SPARSE[case]
    columns = best_columns(intercept)
    expected = least_squares(columns, intercept)
    model = PrivateSparseRegression(
        epsilon, delta, bounds=BOUNDS, sparsity=S, radius=2.0, solver=solver,
        fit_intercept=intercept, random_state=1,
    ).fit(X, Y)  # fmt: skip
    assert tuple(np.flatnonzero(model.coef_)) == columns
    np.testing.assert_allclose(model.coef_[list(columns)], expected[:S], atol=close)
    if intercept:
        assert model.intercept_ == pytest.approx(expected[S], abs=5 * close)
    else:
        assert model.intercept_ == 0.0


def test_sparse_rows_and_sparse_columns():
    few = X * (np.random.default_rng(4).random(X.shape) < 0.4)
    models = [
        PrivateSparseRegression(5.0, 1e-6, bounds=BOUNDS, sparsity=S, random_state=1).fit(x, Y)
        for x in (few, sparse.csr_array(few))
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_thresholding_takes_the_papers_steps_when_noise_vanishes():
    C = SparseBall(S, 0.5, P)
    theta = np.zeros(P)
    for _ in range(4):
        theta = C.project(theta - 0.4 * 2 * X.T @ (X @ theta - Y) / N)
    for solver in (PrivateHardThresholding(4, 0.4), PrivatePeeling(4, 0.4)):
        model = PrivateErm(
            Squared(), C, NEARLY_INFINITE, 1e-6, bounds=BOUNDS, solver=solver,
            fit_intercept=False, random_state=1,
        ).fit(X, Y)  # fmt: skip
        np.testing.assert_allclose(model.coef_, theta, atol=1e-5)
        assert np.linalg.norm(model.coef_) <= 0.5 * (1 + 1e-12)


def test_thresholding_of_rows_with_a_bound_on_their_length_needs_the_right_step():
    length = Bounds(float(np.linalg.norm(X, axis=1).max()), 2.0, norm="l2")
    model = PrivateSparseRegression(
        NEARLY_INFINITE, 1e-6, bounds=length, sparsity=S, radius=2.0, random_state=1,
        solver=PrivateHardThresholding(30, 0.75),
    ).fit(X, Y)  # fmt: skip
    assert tuple(np.flatnonzero(model.coef_)) == (2, 5, 9)
    np.testing.assert_allclose(model.coef_[[2, 5, 9]], least_squares((2, 5, 9))[:S], atol=1e-4)


def test_thresholding_classifies():
    labels = np.where(X @ THETA + 0.1 * np.random.default_rng(5).logistic(size=N) > 0, 1.0, -1.0)
    model = PrivateErm(
        Logistic(), SparseBall(S, 5.0), NEARLY_INFINITE, 1e-6, bounds=Bounds(1.0),
        solver=PrivatePeeling(60), random_state=1,
    ).fit(X, labels)  # fmt: skip
    assert tuple(np.flatnonzero(model.coef_)) == (2, 5, 9)
    assert model.score(X, labels) > 0.85


# posterior samples


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_posterior_sample_at_large_epsilon_is_least_squares(delta):
    x, y = X[:400] / math.sqrt(P), Y[:400]
    model = PrivateErm(
        Squared(), L2Ball(5.0), 1e7, delta, bounds=Bounds(1.0, 2.0, norm="l2"),
        solver="posterior-sampling", random_state=1,
    ).fit(x, y)  # fmt: skip
    best = np.linalg.lstsq(np.c_[x, np.ones(400)], y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, best[:-1], atol=0.02)
    assert model.intercept_ == pytest.approx(best[-1], abs=0.01)
    excess = np.mean((model.predict(x) - y) ** 2) - np.mean((x @ best[:-1] + best[-1] - y) ** 2)
    assert -1e-12 <= excess <= model.plan(400, P).excess_risk


@pytest.mark.parametrize("intercept", [False, True])
def test_posterior_samples_keep_to_their_ball(intercept):
    x, y = X[:400] / math.sqrt(P), Y[:400]
    for seed in range(5):
        model = PrivateErm(
            Squared(), L2Ball(0.5), 1e4, 0.0, bounds=Bounds(1.0, 2.0, norm="l2"),
            solver="posterior-sampling", fit_intercept=intercept, random_state=seed,
        ).fit(x, y)  # fmt: skip
        assert abs(model.intercept_) <= 2.0
        assert np.linalg.norm(model.coef_) <= 0.5 * (1 + 1e-9)


# projections

LENGTH = Bounds(1.0, 2.0, norm="l2")
SHORT = X / math.sqrt(P)


def smallest_in_l1(phi, v, radius):
    """The lift as a linear program in cvxpy's words, if the ball holds it, else the nearest."""
    w = cp.Variable(phi.n_features)
    problem = cp.Problem(cp.Minimize(cp.norm1(w)), [phi.matrix() @ w == v])
    problem.solve(solver=cp.CLARABEL)
    if problem.status == "optimal" and problem.value <= radius:
        return w.value
    miss = cp.Minimize(cp.sum_squares(phi.matrix() @ w - v))
    cp.Problem(miss, [cp.norm1(w) <= radius]).solve(solver=cp.CLARABEL)
    return w.value


INNER = {
    "noisy-gradient": (NoisyGradient(400, step_size=1.0, clip=None), 1e-6),
    "objective-perturbation": ("objective-perturbation", 0.0),
    "posterior-sampling": ("posterior-sampling", 0.0),
}


@pytest.mark.parametrize("m", [4, P])
@pytest.mark.parametrize("inner", INNER)
def test_a_projected_model_is_the_lift_of_the_model_of_projected_rows(inner, m):
    solver, delta = INNER[inner]
    phi = GaussianProjection(m, P, seed=3)
    radius = 3.0
    model = ProjectedRegression(
        1e6, delta, bounds=LENGTH, radius=radius, projection=phi, solver=solver, clip=4.0,
        random_state=1,
    ).fit(SHORT, Y)  # fmt: skip
    small = PrivateErm(
        Squared(), L2Ball(L1Ball(radius, P).image_radius(phi)), 1e6, delta,
        bounds=Bounds(4.0, 2.0, norm="l2"), solver=solver, random_state=1,
    ).fit(phi.rows_of_steps(LENGTH.grid_x(SHORT), LENGTH.x), Y)  # fmt: skip
    assert model.intercept_ == small.intercept_
    np.testing.assert_array_equal(model.coef_, lift_or_nearest(L1Ball(radius, P), phi, small.coef_))
    expected = smallest_in_l1(phi, small.coef_, radius)
    image = phi.forward(model.coef_)
    np.testing.assert_allclose(image, phi.forward(expected), atol=1e-4)
    assert np.abs(model.coef_).sum() <= np.abs(expected).sum() * (1 + 1e-4) + 1e-6
    np.testing.assert_allclose(model.coef_, expected, atol=2e-3)


def test_as_many_dimensions_as_columns_lose_nothing():
    model = ProjectedRegression(
        1e6, 0.0, bounds=LENGTH, radius=6.0, dimension=P, projection="structured", seed=5, clip=8.0,
        solver="posterior-sampling", random_state=1,
    ).fit(SHORT, Y)  # fmt: skip
    best = np.linalg.lstsq(np.c_[SHORT, np.ones(N)], Y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, best[:-1], atol=0.1)
    assert model.intercept_ == pytest.approx(best[-1], abs=0.01)


@pytest.mark.parametrize("given", ["matrix", "list", "projection"])
@pytest.mark.parametrize("intercept", [False, True])
def test_compressed_rows_give_the_model_that_rows_would_have_given(given, intercept):
    """ProjERM on rows that somebody else projected is StdERM with the same matrix."""
    phi = GaussianProjection(5, P, seed=3)
    form = {
        "matrix": phi.matrix(),
        "list": phi.matrix().tolist(),
        "projection": GivenProjection(phi.matrix()),
    }[given]
    common = {"clip": 1.0, "fit_intercept": intercept, "random_state": 3}
    x = LENGTH.clip_x(SHORT)
    std = ProjectedRegression(2.0, 1e-6, bounds=LENGTH, projection=phi, **common).fit(x, Y)
    rows = phi.rows_of_steps(LENGTH.grid_x(x), LENGTH.x)
    proj = ProjectedRegression(
        2.0, 1e-6, bounds=LENGTH, projection=form, compressed=True, **common
    ).fit(rows, Y)
    np.testing.assert_array_equal(proj.coef_, std.coef_)
    assert proj.intercept_ == std.intercept_
    assert proj.n_features_in_ == 5
    assert proj.coef_.shape == (P,)
    expected = LENGTH.clip_x(rows) @ phi.forward(proj.coef_) + proj.intercept_
    np.testing.assert_allclose(proj.predict(rows), expected, rtol=1e-12)
    assert proj.plan(N, 5).spent == std.plan(N, P).spent


@pytest.mark.parametrize("classes", [2, 3])
def test_compressed_rows_give_the_classifier_that_rows_would_have_given(classes):
    labels = np.digitize(X @ THETA, [0.0] if classes == 2 else [-0.2, 0.2])
    phi = StructuredProjection(6, P, seed=1)
    common = {"classes": list(range(classes)), "clip": 1.0, "random_state": 3, "steps": 20}
    x = LENGTH.clip_x(SHORT)
    std = ProjectedClassifier(9.0, 1e-6, bounds=LENGTH, projection=phi, **common).fit(x, labels)
    rows = phi.rows_of_steps(LENGTH.grid_x(x), LENGTH.x)
    proj = ProjectedClassifier(
        9.0, 1e-6, bounds=LENGTH, projection=phi, compressed=True, **common
    ).fit(rows, labels)
    np.testing.assert_array_equal(proj.coef_, std.coef_)
    np.testing.assert_array_equal(proj.intercept_, std.intercept_)
    assert proj.coef_.shape == (1 if classes == 2 else 3, P)
    assert proj.decision_function(rows).shape == ((N,) if classes == 2 else (N, 3))
    np.testing.assert_allclose(proj.predict_proba(rows).sum(axis=1), 1)
    assert set(proj.predict(rows)) <= set(range(classes))


def test_projected_classifiers_learn():
    labels = np.where(X @ THETA > 0, "yes", "no")
    model = ProjectedClassifier(
        1e6, 1e-6, bounds=LENGTH, classes=["no", "yes"], dimension=P, projection="structured",
        radius=40.0, solver=NoisyGradient(200, step_size=10.0, clip=None), random_state=0,
    ).fit(SHORT, labels)  # fmt: skip
    assert model.score(SHORT, labels) > 0.9


@pytest.mark.parametrize(
    "C", [Simplex(1.0), GroupL1Ball(3, 1.0), L2Ball(1.0), L1Ball(1.0)], ids=repr
)
def test_every_convex_set_can_be_projected_and_lifted(C):
    model = PrivateErm(
        Squared(), C, 1e6, 1e-6, bounds=LENGTH, random_state=0,
        solver=Projected(dimension=6, clip=3.0, inner=NoisyGradient(50)),
    ).fit(SHORT, Y)  # fmt: skip
    assert C.sized(P).contains(model.coef_, 1e-6)


def test_long_projected_rows_are_cut_to_the_clip():
    phi = GaussianProjection(5, P, seed=3)
    model = ProjectedRegression(
        1e6, 1e-6, bounds=LENGTH, projection=phi, clip=0.1, random_state=0, radius=0.2
    )
    rows = phi.rows(LENGTH.clip_x(SHORT))
    assert np.linalg.norm(rows, axis=1).mean() > 0.3
    short = np.clip(rows, -0.1, 0.1)  # entry by entry first, or an overflow would undo the rest
    short *= np.minimum(1, 0.1 / np.linalg.norm(short, axis=1))[:, None]
    again = ProjectedRegression(
        1e6, 1e-6, bounds=Bounds(0.1, 2.0, norm="l2"), projection=phi, compressed=True,
        random_state=0, radius=0.2,
    )  # fmt: skip
    np.testing.assert_allclose(model.fit(SHORT, Y).coef_, again.fit(short, Y).coef_, atol=1e-4)
