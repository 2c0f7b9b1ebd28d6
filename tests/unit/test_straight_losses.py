"""Frank-Wolfe on straight losses: curvature 0, steps of 1."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from riata import PrivateErm
from riata.bounds import Bounds
from riata.losses import Linear, RowLoss, Squared
from riata.lower_bounds import lower_bound
from riata.privacy import Budget
from riata.problem import Problem
from riata.sets import L1Ball, L2Ball, Simplex
from riata.solvers import FrankWolfe, GaussianFrankWolfe, PrivateFrankWolfe
from riata.solvers.risk_range import risk_range
from riata.solvers.step_count import step_size
from riata.solvers.tails import FrankWolfeTail

ENTRIES, LENGTH = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")
BUDGET = Budget(1.0, 1e-6)

CASES = {
    "frank-wolfe": (PrivateFrankWolfe, L1Ball(1.0), ENTRIES),
    "gaussian-frank-wolfe": (GaussianFrankWolfe, L2Ball(1.0), LENGTH),
}
each_case = pytest.mark.parametrize("name", CASES)


def problem(name, n=10**5, p=50, loss=None):
    _, C, bounds = CASES[name]
    return Problem(loss or Linear(), C, bounds, n, p)


def test_a_straight_loss_takes_steps_of_1_and_others_the_published_ones():
    straight = RowLoss(lambda theta, x, y: -y * x, lipschitz=1.0, norm="l2", smoothness=0.0)
    for t in (1, 2, 9):
        assert step_size(problem("frank-wolfe"), t) == 1
        assert step_size(problem("gaussian-frank-wolfe", loss=straight), t) == 1
        assert step_size(problem("frank-wolfe", loss=Squared()), t) == Fraction(2, t + 2)


@each_case
@pytest.mark.parametrize("steps", ["auto", 1, 7])
def test_nothing_stays_on_the_start(name, steps):
    _, C, bounds = CASES[name]
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.4, 0.4, (20_000, 5))
    y = np.sign(X[:, 1])
    model = PrivateErm(
        Linear(), C, 5.0, 1e-6, bounds=bounds, solver=name, steps=steps, fit_intercept=False,
        random_state=1,
    )  # fmt: skip
    np.testing.assert_allclose(model.fit(X, y).coef_, np.eye(5)[1], atol=0.05)
    assert model.plan(20_000, 5).steps == (1 if steps == "auto" else steps)


def test_without_noise_the_first_step_is_the_minimum():
    X = np.array([[0.5, -0.9], [0.1, -0.3]])
    model = PrivateErm(
        Linear(), L1Ball(2.0), float("inf"), bounds=ENTRIES, steps=3, fit_intercept=False
    )
    np.testing.assert_array_equal(model.fit(X, np.ones(2)).coef_, [0.0, -2.0])
    plan = FrankWolfe(3).plan(problem("frank-wolfe"), Budget(float("inf")))
    assert plan.excess_risk == 0.0


@each_case
def test_the_bound_is_the_error_of_one_oracle_and_falls_like_1_over_n(name):
    solver = CASES[name][0]
    risks = [solver().plan(problem(name, n), BUDGET).excess_risk for n in (10**5, 10**6)]
    assert risks[0] < 0.002
    assert risks[0] / risks[1] == pytest.approx(10.0, rel=0.01)
    assert solver(4).plan(problem(name), BUDGET).excess_risk > risks[0]


@pytest.mark.not_quick
@each_case
def test_fits_stay_below_the_bound(name):
    """The mean of 40 fits on data without a signal, whose errors are the largest."""
    solver, C, bounds = CASES[name]
    n, rng = 400, np.random.default_rng(2)
    X = rng.uniform(-1, 1, (n, 30)) * (1.0 if name == "frank-wolfe" else 30**-0.5)
    y, excess = rng.choice([-1.0, 1.0], n), []
    for seed in range(40):
        model = PrivateErm(
            Linear(), C, 1.0, 1e-6, bounds=bounds, solver=name, fit_intercept=False,
            random_state=seed,
        )  # fmt: skip
        theta, gradient = model.fit(X, y).coef_, -(y @ X) / n
        excess.append(gradient @ theta - gradient @ C.sized(30).minimiser(gradient).dense())
    plan = solver().plan(problem(name, n, 30), BUDGET)
    assert 0 < np.mean(excess) < plan.excess_risk
    assert np.mean(np.array(excess) > plan.risk_bound(0.05)) <= 0.05


@pytest.mark.parametrize("exponential", [True, False])
def test_the_tail_is_that_of_the_last_step(exponential):
    for steps in (1, 30):
        tail = FrankWolfeTail(2.0, 0.0, steps, 0.3, 0.1, exponential)
        by_hand = np.log(1 / 0.01) if exponential else np.sqrt(2 * np.log(1 / 0.01))
        assert 0.3 + 0.1 * by_hand <= tail.bound(0.01) <= 0.3 + 0.18 * by_hand


@pytest.mark.not_quick
def test_the_range_between_lower_and_upper_bound_is_narrow():
    for C, bounds in ((L1Ball(1.0), ENTRIES), (Simplex(1.0), ENTRIES), (L2Ball(1.0), LENGTH)):
        case = Problem(Linear(), C, bounds, 10**5, 50)
        found = risk_range(case, BUDGET)
        assert found.lower == lower_bound(case, BUDGET).value > 0
        assert found.factor < 40
        assert found.plan.steps == 1


def test_steps_of_1_are_not_compiled():
    """The closed form of a compiled path is that of steps 2 / (t + 2)."""
    anything = SimpleNamespace(compiles=lambda path, epsilon: True)
    solver, straight = PrivateFrankWolfe(3), problem("frank-wolfe")
    plan = solver.plan(straight, BUDGET)
    assert solver._path(plan, straight, anything) is None
    assert solver._path(plan, replace(straight, loss=Squared()), anything) is not None
