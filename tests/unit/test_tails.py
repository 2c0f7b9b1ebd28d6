"""Bounds that hold with high probability, against the noise that they speak of."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import gamma

from riata import PrivateErm
from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.losses import Logistic, Squared
from riata.mechanisms.noise import Noise
from riata.privacy import Budget
from riata.problem import Problem
from riata.queries import Minimum
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import SOLVERS, NoisyGradient, PerturbedObjective, Projected
from riata.solvers.objective_perturbation import strongly_convex_risk
from riata.solvers.tails import AverageTail, FrankWolfeTail, ObjectiveTail, PosteriorTail

ENTRIES, LENGTH = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")


@pytest.mark.parametrize("exponential", [True, False])
@pytest.mark.parametrize("steps", [1, 7, 200])
def test_the_recursion_with_the_worst_errors_is_rarely_above_the_bound(exponential, steps):
    """False alarms: 4,000 runs exceed a true bound of 0.05 in more than 0.08 of them with
    probability below exp(-30)."""
    rng = np.random.default_rng(steps)
    tail = FrankWolfeTail(2.0, 8.0, steps, 0.3, 0.1, exponential)
    risk = np.full(4_000, 2.0)
    for t in range(1, steps + 1):
        draw = rng.standard_exponential(4_000) if exponential else rng.standard_normal(4_000)
        mu = 2 / (t + 2)
        risk = (1 - mu) * risk + mu * (0.3 + 0.1 * draw) + mu * mu * 8.0 / 2
    above = np.mean(risk > tail.bound(0.05) * (1 + 1e-12))
    assert above <= 0.08
    assert np.quantile(risk, 0.95) > 0.8 * tail.bound(0.05)  # and not idle


def test_a_sum_of_exponentials_is_a_gamma_variable():
    for d in (1, 5, 100):
        for failure in (0.3, 0.01, 1e-9):
            exact = gamma(d).ppf(1 - failure)
            assert exact <= PosteriorTail(d, 1.0).bound(failure) <= 2.6 * exact + 2


def test_a_draw_from_a_convex_density_has_the_gamma_tail():
    """|theta| on a line and in a plane: the gamma law itself."""
    rng = np.random.default_rng(1)
    radius = rng.gamma(2.0, size=20_000)  # the density exp(-|theta|) in the plane
    assert np.mean(radius > PosteriorTail(2, 1.0).bound(0.05)) <= 0.05


def test_noisy_steps_on_a_line_are_rarely_above_the_bound():
    """A linear loss over the unit disc. False alarms below exp(-30), as above."""
    rng, T, noise, rate = np.random.default_rng(2), 40, 0.5, 0.1
    theta, total = np.zeros((2_000, 2)), np.zeros((2_000, 2))
    for _ in range(T):
        total += theta
        theta = theta - rate * (np.array([1.0, 0.0]) + noise * rng.standard_normal((2_000, 2)))
        theta /= np.maximum(1.0, np.linalg.norm(theta, axis=1))[:, None]
    excess = total[:, 0] / T + 1
    tail = AverageTail(1.0, 1.0, rate, T, 2, 1.0, noise)
    assert np.mean(excess > tail.bound(0.05)) <= 0.08
    assert tail.bound(0.05) < 2.0


@pytest.mark.parametrize("constraint", [L2Ball(1.0), L1Ball(2.0)], ids=repr)
@pytest.mark.parametrize("size", [2, 30])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_linear_term_is_rarely_above_the_bound(constraint, size, delta):
    """With the mechanism's own terms and the widest difference of the set along each of them.

    False alarms: 3,000 draws exceed a true bound of 0.05 in more than 0.08 of them with probability
    below exp(-20).
    """
    problem = Problem(Squared(), constraint, LENGTH, 10**4, size)
    plan = PerturbedObjective().plan(problem, Budget(1.0, delta))
    query, mechanism, noise = Minimum(problem), plan["minimise"], Noise(3)
    terms = np.array([mechanism._term(query, noise) for _ in range(3_000)])
    order = 2 if isinstance(constraint, L2Ball) else np.inf
    widest = 2 * constraint.radius * np.linalg.norm(terms, order, axis=1) / problem.n_rows
    excess = widest + mechanism.regularisation * constraint.radius**2 / (2 * problem.n_rows)
    above = np.mean(excess > plan.tail.bound(0.05))
    assert above <= 0.08
    assert np.quantile(excess, 0.95) > 0.35 * plan.tail.bound(0.05)  # and not idle


@pytest.mark.not_quick
def test_the_length_of_a_laplace_vector_is_rarely_above_its_part_of_the_bound():
    rng = np.random.default_rng(5)
    for size in (1, 5, 400):
        tail = ObjectiveTail(0.0, 0.0, 0.0, 0.0, size, 1.0, True)
        lengths = np.linalg.norm(rng.laplace(size=(20_000, size)), axis=1)
        for failure in (0.5, 0.05):
            assert np.mean(lengths > tail._laplace(failure)) <= failure
        assert tail._laplace(0.05) <= 5.0 * np.quantile(lengths, 0.95)


CASES = {
    "frank-wolfe": (L1Ball(1.0), ENTRIES, 1e-6),
    "gaussian-frank-wolfe": (L2Ball(1.0), LENGTH, 1e-6),
    "posterior-sampling": (L2Ball(1.0), LENGTH, 0.0),
    "objective-perturbation": (L2Ball(1.0), LENGTH, 1e-6),
    "projected": (L1Ball(1.0), LENGTH, 1e-6),
    "noisy-gradient": (L2Ball(1.0), LENGTH, 1e-6),
}


def planned(name, n=10**6, **facts):
    C, bounds, delta = CASES[name]
    problem = Problem(Squared(), C, bounds, n, 20, **facts)
    return SOLVERS[name]().plan(problem, Budget(0.5, delta))


@pytest.mark.parametrize("name", CASES)
def test_rarer_failures_cost_more_and_never_more_than_markov_says(name):
    plan = planned(name)
    bounds = [plan.risk_bound(failure) for failure in (0.5, 0.05, 1e-6)]
    assert bounds == sorted(bounds)
    for failure, bound in zip((0.5, 0.05, 1e-6), bounds, strict=True):
        assert bound <= min(plan.excess_risk / failure, plan.problem.worst_excess_risk)
    for failure in (0.0, 1.0, -1, float("nan")):
        with pytest.raises(InvalidArgument, match="failure"):
            plan.risk_bound(failure)


KNOWN = ["frank-wolfe", "gaussian-frank-wolfe", "posterior-sampling", "objective-perturbation"]


@pytest.mark.parametrize("name", KNOWN)
def test_noise_that_is_known_beats_markov(name):
    plan = planned(name)
    assert plan.excess_risk * 0.9 < plan.risk_bound(1e-3) < plan.excess_risk / 1e-3 / 100
    assert "with probability 0.95" in str(plan)
    counted = name == "objective-perturbation"  # the intercept is a coordinate like the others
    assert ("with probability" in str(planned(name, n=10**5, fit_intercept=True))) == counted


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_a_pure_projection_has_the_tail_of_its_inner_solver(loss):
    problem = Problem(loss, L1Ball(1.0), LENGTH, 10**9, 20)
    plan = Projected(dimension=5, inner="objective-perturbation").plan(problem, Budget(0.5, 0.0))
    assert isinstance(plan.tail.inner, ObjectiveTail)
    assert plan.tail.bound(1e-3) < replace(plan.tail, inner=None).bound(1e-3)


def test_an_average_without_momentum_has_a_bound_for_all_data():
    problem = Problem(Squared(), L2Ball(1.0), LENGTH, 10**5, 20)
    plan = NoisyGradient(clip=None, momentum=0.0, average=True).plan(problem, Budget(1.0, 1e-6))
    assert plan.assumes == ""
    assert plan.excess_risk < plan.risk_bound(0.01) < 3 * plan.excess_risk
    usual = NoisyGradient().plan(problem, Budget(1.0, 1e-6))
    assert usual.tail is None
    assert usual.assumes
    proven = NoisyGradient(clip=None, momentum=0.0, average=True).with_proven_steps(
        problem, Budget(1.0, 1e-6)
    )
    assert proven.plan(problem, Budget(1.0, 1e-6)).excess_risk < plan.excess_risk
    with pytest.raises(InvalidArgument, match="average"):
        NoisyGradient(average="no")


@pytest.mark.parametrize("name", ["hard-thresholding", "peeling"])
def test_sparse_models_promise_a_distance(name):
    bounds = LENGTH if name == "hard-thresholding" else ENTRIES
    distances = []
    for n in (10**4, 10**6):
        problem = Problem(Squared(), SparseBall(3), bounds, n, 50)
        plan = SOLVERS[name]().plan(problem, Budget(1.0, 1e-6))
        assert f"a distance of at most {plan.distance:.3g}" in str(plan)
        distances.append(plan.distance)
    assert distances[1] < distances[0] <= 2.0
    # the square falls like (s log d / (n epsilon))^2, up to the logarithm of the steps
    assert math.log10(distances[0] / distances[1]) == pytest.approx(2.0, abs=0.5) or (
        distances[0] == 2.0
    )


def test_the_average_is_that_of_the_iterates():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (500, 4))
    y = X[:, 0]

    def fitted(steps, average, momentum=0.0):
        solver = NoisyGradient(steps, 0.3, None, momentum, average=average)
        model = PrivateErm(
            Squared(), L2Ball(1.0), 1e6, 1e-6, bounds=LENGTH, solver=solver, fit_intercept=False,
            random_state=3,
        )  # fmt: skip
        return model.fit(X, y).coef_

    np.testing.assert_array_equal(fitted(1, True), np.zeros(4))  # the start alone
    visited = [np.zeros(4), *(fitted(t, False) for t in (1, 2))]
    np.testing.assert_allclose(fitted(3, True), np.mean(visited, axis=0), atol=1e-3)
    assert np.linalg.norm(fitted(3, False) - np.mean(visited, axis=0)) > 0.01


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_strongly_convex_risk_has_the_faster_bound(delta):
    problem = Problem(Squared(), L2Ball(1.0), Bounds(1.0, 1.0, norm="l2"), 4_000, 8)
    plan = PerturbedObjective().plan(problem, Budget(1.0, delta))
    bound = strongly_convex_risk(plan, 0.2)
    assert bound < plan.excess_risk / 4
    assert strongly_convex_risk(plan, 1e-9) == plan.excess_risk
    assert strongly_convex_risk(plan, 0.4) < bound
    ten_times = PerturbedObjective().plan(replace(problem, n_rows=40_000), Budget(1.0, delta))
    assert strongly_convex_risk(ten_times, 0.2) < bound / (10 if delta else 1)
    for modulus in (0.0, -1.0, np.nan):
        with pytest.raises(InvalidArgument, match="modulus"):
            strongly_convex_risk(plan, modulus)
    with pytest.raises(InvalidArgument, match="intercept"):
        strongly_convex_risk(replace(plan, problem=replace(problem, fit_intercept=True)), 0.2)


@pytest.mark.not_quick
def test_a_strongly_convex_risk_is_below_its_bound():
    """The mean of 15 fits: about half of the bound, and a false alarm is six of its errors away."""
    rng, n = np.random.default_rng(0), 2_000
    x = rng.standard_normal((n, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.clip(x @ [0.5, -0.3, 0.2, 0.0] + 0.1 * rng.standard_normal(n), -1, 1)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    excess = []
    for seed in range(15):
        model = PrivateErm(
            Squared(), L2Ball(1.0), 1.0, 1e-6, bounds=Bounds(1.0, 1.0, norm="l2"),
            solver="objective-perturbation", fit_intercept=False, random_state=seed,
        )  # fmt: skip
        theta = model.fit(x, y).coef_
        excess.append(np.mean((x @ theta - y) ** 2) - np.mean((x @ best - y) ** 2))
    modulus = 2 * np.linalg.eigvalsh(x.T @ x / n)[0]
    bound = strongly_convex_risk(model.plan(n, 4), modulus)
    assert 0.1 * bound < np.mean(excess) < bound
