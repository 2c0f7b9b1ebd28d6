"""As epsilon grows, every solver reaches the optimum that a reference finds without privacy."""

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Lasso

from riata import Bounds, Budget, PrivateErm, PrivateLasso
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.losses import Huber, Logistic, SmoothedHinge, Squared
from riata.mechanisms.noise import Noise
from riata.problem import Problem
from riata.queries import Gradient
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex
from riata.solvers import FrankWolfe, NoisyGradient, PerturbedObjective

pytestmark = pytest.mark.matrix(one_in=11)

INF = float("inf")
NEARLY_INFINITE = 1e9
N, P = 300, 12
STEPS = 2_000
RELATIVE = 1e-3

RNG = np.random.default_rng(2_015)
X = RNG.uniform(-1, 1, (N, P))
X[RNG.uniform(size=X.shape) < 0.3] = 0.0
THETA = np.r_[1.0, -0.7, 0.5, 0.3, np.zeros(P - 4)]
Y = np.clip(X @ THETA + 0.4 + 0.3 * RNG.standard_normal(N), -3, 3)
LABELS = np.where(2 * X @ THETA + 0.5 + RNG.logistic(size=N) > 0, 1.0, -1.0)
BOUNDS = Bounds(x=1.0, y=3.0)
VERTICES = RNG.uniform(-1, 1, (15, P))

#: Each set with the same set in cvxpy's words.
SETS = {
    "l1": (L1Ball(1.5), lambda w: [cp.norm1(w) <= 1.5]),
    "simplex": (Simplex(1.0), lambda w: [w >= 0, cp.sum(w) == 1]),
    "polytope": (Polytope(VERTICES), lambda w: in_hull(w, VERTICES)),
    "group": (
        GroupL1Ball(3, 1.2),
        lambda w: [sum(cp.norm2(w[j : j + 3]) for j in range(0, P, 3)) <= 1.2],
    ),
    "l2": (L2Ball(0.8), lambda w: [cp.norm2(w) <= 0.8]),
    "lp": (LpBall(1.3, 1.0), lambda w: [cp.pnorm(w, 1.3, approx=False) <= 1]),
    "linf": (LpBall(INF, 0.3), lambda w: [cp.norm_inf(w) <= 0.3]),
}
POLYTOPES = ("l1", "simplex", "polytope")
LOSSES = [Squared(), Huber(0.3), Logistic(), SmoothedHinge(0.5)]


def in_hull(w, vertices):
    weights = cp.Variable(len(vertices), nonneg=True)
    return [cp.sum(weights) == 1, vertices.T @ weights == w]


def in_cvxpy(loss, margin, y):
    match loss:
        case Squared():
            return cp.sum_squares(margin - y)
        case Huber(threshold):
            return cp.sum(cp.huber(margin - y, threshold))
        case Logistic():
            return cp.sum(cp.logistic(-cp.multiply(y, margin)))
        case SmoothedHinge(smoothing):
            short = cp.pos(1 - cp.multiply(y, margin))
            return cp.sum(cp.huber(short, smoothing)) / (2 * smoothing)


def targets(loss):
    return LABELS if loss.classifies else Y


def optimum(loss, constraints, y, *, intercept, y_bound=3.0):
    """The smallest mean loss over the set, and over the intercepts that a solver may visit."""
    w, b = cp.Variable(P), cp.Variable()
    reach = loss.offset_bound(1.0 if loss.classifies else y_bound) if intercept else 0.0
    objective = cp.Minimize(in_cvxpy(loss, X @ w + b, y) / N)
    problem = cp.Problem(objective, [*constraints(w), cp.abs(b) <= reach])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-7, tol_gap_rel=1e-7, tol_feas=1e-7)
    return problem.value


def risk(loss, y, coef, intercept):
    return float(loss.value(X @ coef + intercept, y).mean())


def assert_near_optimum(loss, y, model, best):
    found = risk(loss, y, model.coef_, model.intercept_)
    assert found <= best * (1 + RELATIVE)
    assert found >= best * (1 - 1e-5)  # the reference is one: nothing in the set is better


# PrivateLasso against scikit-learn's Lasso

SOLVERS = [
    ("auto", INF, 1e-6),
    ("frank-wolfe", NEARLY_INFINITE, 1e-6),
    ("frank-wolfe", NEARLY_INFINITE, 0.0),
    ("gaussian-frank-wolfe", NEARLY_INFINITE, 1e-6),
]


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("solver", "epsilon", "delta"), SOLVERS)
def test_private_lasso_reaches_scikit_learns_lasso(solver, epsilon, delta, intercept, container):
    reference = Lasso(alpha=0.02, fit_intercept=intercept, tol=1e-10, max_iter=100_000).fit(X, Y)
    # The penalised solution solves the constrained problem whose radius is its own l1 norm.
    radius = float(np.abs(reference.coef_).sum())
    best = risk(Squared(), Y, reference.coef_, reference.intercept_)
    model = PrivateLasso(
        epsilon,
        delta,
        bounds=BOUNDS,
        radius=radius,
        solver=solver,
        steps=STEPS,
        fit_intercept=intercept,
        random_state=1,
    ).fit(container(X), Y)
    assert np.abs(model.coef_).sum() <= radius * (1 + 1e-12)
    assert_near_optimum(Squared(), Y, model, best)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=0.03)
    assert model.intercept_ == pytest.approx(reference.intercept_, abs=0.02)


def test_scikit_learns_lasso_is_the_constrained_optimum_that_cvxpy_finds():
    reference = Lasso(alpha=0.02, tol=1e-10, max_iter=100_000).fit(X, Y)
    radius = np.abs(reference.coef_).sum()
    best = optimum(Squared(), lambda w: [cp.norm1(w) <= radius], Y, intercept=True)
    assert risk(Squared(), Y, reference.coef_, reference.intercept_) == pytest.approx(
        best, rel=1e-6
    )


# PrivateErm against cvxpy


@pytest.mark.parametrize(
    ("name", "intercept"),
    [*((name, False) for name in SETS), ("l1", True), ("group", True), ("linf", True)],
)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_private_erm_reaches_cvxpys_optimum(loss, name, intercept):
    C, constraints = SETS[name]
    y = targets(loss)
    best = optimum(loss, constraints, y, intercept=intercept)
    private = "frank-wolfe" if name in POLYTOPES else "gaussian-frank-wolfe"
    for epsilon, solver, used in (
        (INF, "auto", "non-private frank-wolfe"),
        (NEARLY_INFINITE, private, private),
    ):
        model = PrivateErm(
            loss,
            C,
            epsilon,
            1e-6,
            bounds=BOUNDS,
            solver=solver,
            steps=STEPS,
            fit_intercept=intercept,
            random_state=2,
        ).fit(X, y)
        assert model.privacy_.solver == used
        assert C.sized(P).contains(model.coef_, 1e-9)
        assert_near_optimum(loss, y, model, best)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gaussian_noise_on_a_polytope_and_pure_selection_reach_the_optimum_too(loss):
    C, constraints = SETS["l1"]
    y = targets(loss)
    best = optimum(loss, constraints, y, intercept=True)
    for solver, delta in (("gaussian-frank-wolfe", 1e-6), ("frank-wolfe", 0.0)):
        model = PrivateErm(
            loss,
            C,
            NEARLY_INFINITE,
            delta,
            bounds=BOUNDS,
            solver=solver,
            steps=STEPS,
            random_state=3,
        ).fit(X, y)
        assert_near_optimum(loss, y, model, best)


# objective perturbation and noisy gradients


@pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["approximate", "pure"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["l1", "l2", "simplex", "group"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_objective_perturbation_reaches_cvxpys_optimum(loss, name, intercept, delta):
    C, constraints = SETS[name]
    y = targets(loss)
    best = optimum(loss, constraints, y, intercept=intercept)
    model = PrivateErm(
        loss,
        C,
        NEARLY_INFINITE,
        delta,
        bounds=BOUNDS,
        solver=PerturbedObjective(1, 1e-3),  # one candidate: the automatic choice takes a second
        fit_intercept=intercept,
        random_state=2,
    ).fit(X, y)
    assert model.n_iter_ == 1
    assert C.sized(P).contains(model.coef_, 1e-9)
    found = risk(loss, y, model.coef_, model.intercept_)
    assert best * (1 - 1e-5) <= found <= best * (1 + 1e-5)


@pytest.mark.parametrize("delta", [1e-6, 0.0], ids=["approximate", "pure"])
def test_objective_perturbation_chooses_a_regularisation_that_vanishes_with_the_noise(delta):
    model = PrivateErm(
        Squared(),
        L1Ball(1.5),
        NEARLY_INFINITE,
        delta,
        bounds=BOUNDS,
        solver="objective-perturbation",
        random_state=2,
    ).fit(X, Y)
    best = optimum(Squared(), SETS["l1"][1], Y, intercept=True)
    assert risk(Squared(), Y, model.coef_, model.intercept_) <= best * (1 + 1e-5)


def test_a_given_regularisation_is_that_of_ridge_regression():
    weight = 40.0
    model = PrivateErm(
        Squared(),
        L2Ball(5.0),
        NEARLY_INFINITE,
        1e-6,
        bounds=BOUNDS,
        solver=PerturbedObjective(1, weight),
        fit_intercept=False,
        random_state=2,
    ).fit(X, Y)
    ridge = np.linalg.solve(2 * X.T @ X + weight * np.eye(P), 2 * X.T @ Y)
    np.testing.assert_allclose(model.coef_, ridge, atol=5e-4)


@pytest.mark.parametrize(
    ("name", "intercept"),
    [*((name, False) for name in SETS if name != "lp"), ("l1", True), ("l2", True)],
)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_noisy_gradients_reach_cvxpys_optimum(loss, name, intercept):
    C, constraints = SETS[name]
    y = targets(loss)
    best = optimum(loss, constraints, y, intercept=intercept)
    model = PrivateErm(
        loss,
        C,
        NEARLY_INFINITE,
        1e-6,
        bounds=BOUNDS,
        solver=NoisyGradient(300, step_size=0.3, clip=None),
        fit_intercept=intercept,
        random_state=2,
    ).fit(X, y)
    assert C.sized(P).contains(model.coef_, 1e-9)
    assert_near_optimum(loss, y, model, best)


def test_a_wide_clip_changes_nothing_and_a_narrow_one_bounds_each_row():
    def fitted(clip):
        solver = NoisyGradient(20, step_size=0.3, clip=clip)
        model = PrivateErm(
            Squared(),
            L2Ball(2.0),
            NEARLY_INFINITE,
            1e-6,
            bounds=BOUNDS,
            solver=solver,
            fit_intercept=False,
            random_state=2,
        )
        return model.fit(X, Y).coef_

    np.testing.assert_allclose(fitted(1e6), fitted(None), atol=1e-4)
    # One step from 0 along clipped gradients: twenty of them, written again.
    theta, move = np.zeros(P), np.zeros(P)
    for _ in range(20):
        each = 2 * (X @ theta - Y)[:, None] * X
        each *= np.minimum(1, 0.5 / np.linalg.norm(each, axis=1))[:, None]
        moved = L2Ball(2.0, P).project(theta - 0.1 * 0.3 * each.mean(axis=0) + 0.9 * move)
        theta, move = moved, moved - theta
    np.testing.assert_allclose(fitted(0.5), theta, atol=1e-4)


def test_samples_of_the_rows_reach_the_optimum_too():
    best = optimum(Squared(), SETS["l2"][1], Y, intercept=False)
    model = PrivateErm(
        Squared(),
        L2Ball(0.8),
        1e6,
        1e-6,
        bounds=BOUNDS,
        solver=NoisyGradient(300, step_size=0.1, clip=None, sampling=0.5),
        fit_intercept=False,
        random_state=2,
    ).fit(X, Y)
    found = risk(Squared(), Y, model.coef_, 0.0)
    assert best * (1 - 1e-5) <= found <= best * 1.02


def paper_walk(C, steps):
    """Algorithm 1, written again: the squared loss, no intercept, no noise."""
    theta = C.start().dense()
    for t in range(1, steps + 1):
        s = C.minimiser(2 * X.T @ (X @ theta - Y) / N).dense()
        theta += 2 / (t + 2) * (s - theta)
    return theta


@pytest.mark.parametrize("steps", [1, 2, 5, 30])
@pytest.mark.parametrize(
    ("name", "solver", "delta"),
    [
        ("l1", "frank-wolfe", 1e-6),
        ("l1", "frank-wolfe", 0.0),
        ("polytope", "frank-wolfe", 1e-6),
        ("l2", "gaussian-frank-wolfe", 1e-6),
        ("lp", "gaussian-frank-wolfe", 1e-6),
    ],
)
def test_private_solvers_take_the_papers_steps_when_noise_vanishes(name, solver, delta, steps):
    C = SETS[name][0].sized(P)
    model = PrivateErm(
        Squared(),
        C,
        NEARLY_INFINITE,
        delta,
        bounds=BOUNDS,
        solver=solver,
        steps=steps,
        fit_intercept=False,
        random_state=5,
    ).fit(X, Y)
    np.testing.assert_allclose(model.coef_, paper_walk(C, steps), atol=1e-3)


# intercepts far from 0

FAR = {
    "huber, y far beyond its threshold": (Huber(0.1), np.clip(Y + 2.1, -5, 5)),
    "huber, y at its threshold": (Huber(0.5), np.clip(Y + 2.1, -5, 5)),
    "squared": (Squared(), np.clip(Y + 2.1, -5, 5)),
    "logistic, one label in thirty": (
        Logistic(),
        np.where(X @ THETA - 4 + np.random.default_rng(5).logistic(size=N) > 0, 1.0, -1.0),
    ),
    "hinge with a sharp corner, one label in thirty": (
        SmoothedHinge(0.05),
        np.where(X @ THETA - 4 + np.random.default_rng(5).logistic(size=N) > 0, 1.0, -1.0),
    ),
}


@pytest.mark.parametrize("case", FAR)
def test_an_intercept_far_from_zero_is_found(case):
    loss, y = FAR[case]
    best = optimum(loss, SETS["l1"][1], y, intercept=True, y_bound=5.0)
    model = PrivateErm(
        loss, L1Ball(1.5), INF, bounds=Bounds(x=1.0, y=5.0), steps=STEPS, random_state=4
    ).fit(X, y)
    assert_near_optimum(loss, y, model, best)


# the duality gap


class Recorder(LocalEngine):
    """Keeps the iterates at which the gradient was asked for."""

    def __init__(self, x, y, bounds):
        super().__init__(x, y, bounds)
        self.iterates = []

    def total(self, query):
        if isinstance(query, Gradient):
            self.iterates.append(query.theta)
        return super().total(query)


def solve(loss, C, y, *, intercept, steps, tolerance=0.0):
    bounds = BOUNDS.with_y(1.0) if loss.classifies else BOUNDS
    problem = Problem(loss, C, bounds, N, P, fit_intercept=intercept)
    solver = FrankWolfe(steps=steps, tolerance=tolerance)
    plan = solver.plan(problem, Budget(INF))
    engine = Recorder(X, y, bounds)
    curator = Curator.open(plan.event, read=lambda: engine, noise=Noise(0), adjacency="replace-one")
    seen = []
    solution = solver.run(plan, plan.problem, curator, seen.append)
    return solution, seen, engine.iterates


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["l1", "simplex", "group"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_callback_sees_at_every_step_a_gap_that_bounds_the_excess_risk(loss, name, intercept):
    C, constraints = SETS[name]
    y = targets(loss)
    best = optimum(loss, constraints, y, intercept=intercept)
    _, seen, iterates = solve(loss, C, y, intercept=intercept, steps=300)
    assert [step.number for step in seen] == list(range(1, 301))
    assert all(step.total == 300 for step in seen)
    for step, theta in zip(seen, iterates, strict=True):
        excess = risk(loss, y, theta.dense(), theta.offset) - best
        assert excess <= step.gap + 1e-6
    assert min(step.gap for step in seen) < 0.1 * seen[0].gap


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_the_returned_gap_certifies_the_returned_model(steps, intercept, scale):
    # With small targets the start is nearly optimal and a first step leads away from it.
    y = scale * Y
    best = optimum(Squared(), SETS["l1"][1], y, intercept=intercept)
    solution, _, _ = solve(Squared(), L1Ball(1.5), y, intercept=intercept, steps=steps)
    excess = risk(Squared(), y, solution.theta.dense(), solution.theta.offset) - best
    assert excess <= solution.gap + 1e-6


@pytest.mark.parametrize("intercept", [False, True])
def test_frank_wolfe_stops_at_its_tolerance_with_a_certified_model(intercept):
    best = optimum(Squared(), SETS["l2"][1], Y, intercept=intercept)
    solution, seen, _ = solve(
        Squared(), SETS["l2"][0], Y, intercept=intercept, steps=5_000, tolerance=1e-4
    )
    assert solution.steps < 5_000
    assert solution.steps == len(seen)
    assert solution.gap == seen[-1].gap <= 1e-4
    assert all(step.gap > 1e-4 for step in seen[:-1])
    excess = risk(Squared(), Y, solution.theta.dense(), solution.theta.offset) - best
    assert excess <= 1e-4 + 1e-6


@pytest.mark.parametrize("name", ["l1", "simplex", "group", "l2"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_the_planned_excess_risk_holds_without_noise(loss, name):
    C, constraints = SETS[name]
    y = targets(loss)
    best = optimum(loss, constraints, y, intercept=False)
    bounds = BOUNDS.with_y(1.0) if loss.classifies else BOUNDS
    for steps in (1, 5, 40):
        problem = Problem(loss, C, bounds, N, P)
        promised = FrankWolfe(steps=steps).plan(problem, Budget(INF)).excess_risk
        solution, _, _ = solve(loss, C, y, intercept=False, steps=steps)
        excess = risk(loss, y, solution.theta.dense(), solution.theta.offset) - best
        assert excess <= promised
