"""With a budget that hardly matters, refitting solvers agree with fits of the true columns."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from riata import Bounds, PrivateErm
from riata.losses import Huber, Logistic, SmoothedHinge, Squared
from riata.sets import L1Ball

RNG = np.random.default_rng(2_026)
N, P = 6_000, 25
X = RNG.choice([-1.0, 1.0], (N, P))  # rows of one length: none is shortened
TRUE = np.zeros(P)
SUPPORT = np.array([2, 7, 19])
TRUE[SUPPORT] = [0.9, -0.7, 0.5]
Y = X @ TRUE + 0.3 + 0.2 * RNG.uniform(-1, 1, N)
LABELS = np.where(X @ TRUE + 0.4 + RNG.logistic(size=N) > 0, 1.0, -1.0)
SOLVERS = ["greedy", "refitted-frank-wolfe", "sufficient-statistics"]
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_delta = pytest.mark.parametrize("delta", [0.0, 1e-6])


def fitted(loss, y, solver, delta, y_bound):
    return PrivateErm(
        loss, L1Ball(10.0), 1e6, delta, bounds=Bounds(1.0, y_bound), solver=solver, random_state=1
    ).fit(X, y)


@every_solver
@every_delta
@pytest.mark.parametrize("loss", [Squared(), Huber(3.0)], ids=repr)
def test_regressions_agree_with_least_squares_on_the_true_support(solver, delta, loss):
    model = fitted(loss, Y, solver, delta, 3.0)
    design = np.column_stack([X[:, SUPPORT], np.ones(N)])
    expected = np.linalg.lstsq(design, Y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_[SUPPORT], expected[:-1], atol=0.02)
    assert model.intercept_ == pytest.approx(expected[-1], abs=0.02)
    others = np.delete(model.coef_, SUPPORT)
    assert np.abs(others).max() <= 0.02


@every_solver
@every_delta
def test_a_logistic_fit_agrees_with_the_likelihood_on_the_true_support(solver, delta):
    model = fitted(Logistic(), LABELS, solver, delta, 1.0)
    reference = LogisticRegression(C=1e6).fit(X[:, SUPPORT], LABELS)
    np.testing.assert_allclose(model.coef_[SUPPORT], reference.coef_[0], atol=0.1)
    assert model.intercept_ == pytest.approx(reference.intercept_[0], abs=0.1)
    assert np.abs(np.delete(model.coef_, SUPPORT)).max() <= 0.1


@pytest.mark.parametrize("solver", SOLVERS[1:])
def test_a_robust_regression_agrees_too_where_residuals_are_large_at_first(solver):
    model = fitted(Huber(0.5), Y, solver, 1e-6, 3.0)
    np.testing.assert_allclose(model.coef_[SUPPORT], TRUE[SUPPORT], atol=0.05)


@pytest.mark.parametrize("solver", ["greedy", "sufficient-statistics"])
def test_a_hinge_fit_classifies_as_the_true_support_does(solver):
    model = fitted(SmoothedHinge(), LABELS, solver, 1e-6, 1.0)
    ours = np.sign(X @ model.coef_ + model.intercept_)
    best = np.sign(X @ TRUE + 0.4)
    assert (ours == LABELS).mean() >= (best == LABELS).mean() - 0.02


@every_solver
def test_standard_errors_shrink_to_those_of_the_rows(solver):
    model = fitted(Squared(), Y, solver, 1e-6, 3.0)
    residual = np.std(Y - X @ model.coef_ - model.intercept_)
    errors = np.asarray(model.coef_error_)[SUPPORT]
    assert np.all(errors >= 0.3 * residual / np.sqrt(N))
    assert np.all(errors <= 5 * residual / np.sqrt(N))
    assert model.training_fit_ == pytest.approx(1 - residual**2 / np.var(Y), abs=0.2)
