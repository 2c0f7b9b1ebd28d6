"""Equation (1), the excess risk of given rows, and the printed numbers of steps."""

import numpy as np
import pytest

from riata import Bounds, PrivateErm
from riata.errors import InvalidArgument
from riata.evaluation import excess_risk
from riata.hard_instances import HardInstance
from riata.losses import Hinge, Linear, Logistic, Smoothed, Squared
from riata.privacy import Budget
from riata.problem import Problem
from riata.sets import L1Ball, L2Ball, Simplex
from riata.solvers import PrivateFrankWolfe
from riata.solvers.step_count import steps_by_theorem_2_5, steps_by_theorem_b_2

ENTRIES, LENGTH = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 4))
    return X, np.clip(X @ [0.5, -0.2, 0.0, 0.1] + 0.05 * rng.standard_normal(300), -1, 1)


def test_the_excess_of_squares_is_that_of_least_squares_inside_the_set(rows):
    X, y = rows
    best = np.linalg.lstsq(X, y)[0]
    theta = best + np.array([0.1, 0.0, 0.0, -0.1])
    expected = np.mean((X @ theta - y) ** 2) - np.mean((X @ best - y) ** 2)
    assert excess_risk(theta, X, y, Squared(), L1Ball(1.0)) == pytest.approx(expected, abs=1e-8)
    assert excess_risk(best, X, y, Squared(), L1Ball(1.0)) == pytest.approx(0.0, abs=1e-8)


def test_the_minimum_of_hard_data_is_the_one_that_it_knows():
    instance = HardInstance.make(code_rows=6, n_features=64, tau=0.2, code_share=0.12, seed=7)
    X, y = instance.data(0)
    zero = np.zeros(X.shape[1])
    found = excess_risk(zero, X, y, Squared(), L1Ball(1.0))
    assert found == pytest.approx(instance.excess_risk(zero, 0), rel=1e-4)


@pytest.mark.parametrize(
    "loss", [Squared(), Logistic(), Linear(), Smoothed(Hinge(), 0.2)], ids=repr
)
@pytest.mark.parametrize("C", [L1Ball(0.7), L2Ball(0.7), Simplex(0.7)], ids=repr)
def test_no_point_of_the_set_is_better_than_the_minimum(rows, loss, C):
    X, y = rows[0], np.where(rows[1] > 0, 1.0, -1.0)
    rng = np.random.default_rng(1)
    for _ in range(40):
        theta = C.sized(4).project(rng.standard_normal(4))
        assert excess_risk(theta, X, y, loss, C) >= -1e-8


def test_the_mean_over_fits_is_below_the_bound_of_the_plan(rows):
    X, y = np.tile(rows[0], (20, 1)), np.tile(rows[1], 20)
    found = []
    for seed in range(5):
        model = PrivateErm(
            Squared(), L1Ball(1.0), 1.0, 1e-6, bounds=ENTRIES, solver="frank-wolfe",
            fit_intercept=False, random_state=seed,
        ).fit(X, y)  # fmt: skip
        found.append(excess_risk(model.coef_, X, y, Squared(), L1Ball(1.0)))
    assert 0 < np.mean(found) < model.plan(len(y), 4).excess_risk


def test_a_loss_with_a_corner_is_refused(rows):
    with pytest.raises(InvalidArgument, match="Smoothed"):
        excess_risk(np.zeros(4), *rows, Hinge(), L1Ball(1.0))


def test_the_printed_steps_of_the_unit_lasso():
    """(8 n epsilon / 4)^(2/3), as in docs/papers.md."""
    for n, steps in ((4_096, 406), (10_000, 736), (1_048_576, 16_383)):
        assert steps_by_theorem_2_5(Problem(Squared(), L1Ball(1.0), ENTRIES, n, 50), 1.0) == steps
    case = Problem(Squared(), L1Ball(1.0), ENTRIES, 10_000, 50)
    assert (
        steps_by_theorem_2_5(case, 1.0)
        > 20 * PrivateFrankWolfe().plan(case, Budget(1.0, 1e-6)).steps
    )


def test_the_printed_steps_over_a_ball():
    case = Problem(Squared(), L2Ball(1.0), LENGTH, 10_000, 50)
    width = L2Ball(1.0).sized(50).gaussian_width().value
    assert steps_by_theorem_b_2(case, 0.5) == int((8 * 5_000 / (4 * width)) ** (2 / 3))
    assert steps_by_theorem_b_2(Problem(Linear(), L2Ball(1.0), LENGTH, 100, 5), 1.0) == 1
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InvalidArgument, match="epsilon"):
            steps_by_theorem_b_2(case, wrong)
    with pytest.raises(InvalidArgument, match="Smoothed"):
        steps_by_theorem_2_5(Problem(Hinge(), L1Ball(1.0), ENTRIES, 100, 5), 1.0)
