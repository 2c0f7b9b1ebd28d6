"""Bounds that hold with high probability, against the noise that they speak of."""

import math

import numpy as np
import pytest
from scipy.stats import gamma

from riata import PrivateErm
from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.losses import Squared
from riata.privacy import Budget
from riata.problem import Problem
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import SOLVERS, NoisyGradient
from riata.solvers.tails import AverageTail, FrankWolfeTail, PosteriorTail

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


@pytest.mark.parametrize("name", ["frank-wolfe", "gaussian-frank-wolfe", "posterior-sampling"])
def test_noise_that_is_known_beats_markov(name):
    plan = planned(name)
    assert plan.excess_risk * 0.9 < plan.risk_bound(1e-3) < plan.excess_risk / 1e-3 / 100
    assert "with probability 0.95" in str(plan)
    assert "with probability" not in str(planned(name, n=10**5, fit_intercept=True))


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
