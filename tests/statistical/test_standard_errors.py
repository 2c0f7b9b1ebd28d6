"""Standard errors of refitted coefficients cover the truth as often as they say.

Nominal coverage is 90%. Over the 20 fits of a case, with seeds fixed, between 80% and 97% of the
true coefficients that were found must lie inside. Seeds make the outcome the same in every run, so
the test raises no false alarm.
"""

import math

import numpy as np
import pytest
from scipy.special import expit

from riata import Bounds, PrivateLasso, PrivateLogisticRegression

NORMAL_90 = 1.645
FITS = 20
P = 40
TRUTH = {3: 0.35, 11: -0.25, 20: 0.2, 33: -0.2}


def uniform(rng, n):
    return rng.uniform(-1, 1, (n, P))


def signs(rng, n):
    return rng.choice([-1.0, 1.0], (n, P))


def correlated(rng, n):
    common = rng.standard_normal((n, P // 4))
    x = math.sqrt(0.5) * rng.standard_normal((n, P))
    return np.clip(x + math.sqrt(0.5) * np.repeat(common, 4, axis=1), -3, 3)


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("epsilon", [0.8, 3.0])
@pytest.mark.parametrize("rows", [uniform, signs, correlated])
def test_regression_coefficients_are_covered(rows, epsilon):
    columns, theta = np.array(list(TRUTH)), np.array(list(TRUTH.values()))
    inside, intercepts = [], []
    for seed in range(FITS):
        rng = np.random.default_rng(seed)
        x = rows(rng, 6_000)
        y = x[:, columns] @ theta + 0.1 + 0.2 * rng.standard_normal(len(x))
        bounds = Bounds(3.0 if rows is correlated else 1.0, 2.0)
        model = PrivateLasso(epsilon, 1e-6, bounds=bounds, solver="greedy", random_state=seed).fit(
            x, y
        )
        found = model.coef_[columns] != 0
        off = (model.coef_[columns] - theta)[found] / model.coef_error_[columns][found]
        inside.extend(np.abs(off) < NORMAL_90)
        if not math.isnan(model.intercept_error_):
            intercepts.append(abs(model.intercept_ - 0.1) < NORMAL_90 * model.intercept_error_)
    assert len(inside) > 3.5 * FITS
    assert 0.8 <= np.mean(inside) <= 0.97
    assert np.mean(intercepts) >= 0.7  # 20 of them: three standard deviations below 0.9


def test_logistic_coefficients_are_covered():
    columns, theta = np.array([3, 11, 20]), np.array([3.0, -2.0, 2.0])
    inside = []
    for seed in range(FITS):
        rng = np.random.default_rng(seed)
        x = uniform(rng, 10_000)
        y = rng.random(len(x)) < expit(x[:, columns] @ theta)
        model = PrivateLogisticRegression(
            3.0, 1e-6, bounds=Bounds(1.0), solver="greedy", random_state=seed
        ).fit(x, y)
        found = model.coef_[0, columns] != 0
        error = model.coef_error_[0, columns][found]
        inside.extend(np.abs((model.coef_[0, columns] - theta)[found] / error) < NORMAL_90)
    assert len(inside) > 2.5 * FITS
    assert 0.8 <= np.mean(inside) <= 0.97


def test_errors_are_unknown_where_nothing_was_fitted():
    rng = np.random.default_rng(0)
    x = uniform(rng, 4_000)
    y = 0.5 * x[:, 3] + 0.1 * rng.standard_normal(len(x))
    model = PrivateLasso(2.0, 1e-6, bounds=Bounds(1.0, 1.0), solver="greedy", random_state=0).fit(
        x, y
    )
    assert np.array_equal(np.isnan(model.coef_error_), model.coef_ == 0)
    plain = PrivateLasso(
        2.0, 1e-6, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", random_state=0
    ).fit(x, y)
    assert np.isnan(plain.coef_error_).all()
    assert math.isnan(plain.intercept_error_)
    assert math.isnan(plain.training_fit_)


def test_the_training_fit_is_near_the_true_one_and_says_how_near():
    off = []
    for seed in range(FITS):
        rng = np.random.default_rng(seed)
        x = uniform(rng, 6_000)
        y = 0.5 * x[:, 3] + 0.2 * rng.standard_normal(len(x))
        model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), random_state=seed).fit(x, y)
        real = 1 - np.mean((y - model.predict(x)) ** 2) / np.var(y)
        off.append((model.training_fit_ - real) / model.training_fit_error_)
    assert np.abs(np.mean(off)) < 4  # losses are clipped, so a small bias stays
    assert np.std(off) < 3


def test_whitened_gradients_are_covered_and_so_is_an_intercept_far_from_the_rows():
    """Columns between 0 and 1: the intercept is the prediction at a corner.

    Without the error of how much of the model is kept, 81% of the coefficients are covered; with
    the error of gradients at the mean row alone, one intercept in four is.
    """
    theta, inside, intercepts = np.array([1.0, -0.7, 0.5, 0.3]), [], []
    for seed in range(FITS):
        rng = np.random.default_rng(seed)
        x = rng.beta(2, 3, (6_000, 4))
        y = x @ theta + 0.4 + 0.3 * rng.standard_normal(len(x))
        model = PrivateLasso(0.8, 1e-6, bounds=Bounds(1.0, 3.0), random_state=seed).fit(x, y)
        assert model.privacy_.solver == "whitened-gradient"
        known = np.isfinite(model.coef_error_)
        inside.extend(np.abs(model.coef_ - theta)[known] < NORMAL_90 * model.coef_error_[known])
        intercepts.append(abs(model.intercept_ - 0.4) < NORMAL_90 * model.intercept_error_)
    assert len(inside) > 3.5 * FITS
    assert 0.85 <= np.mean(inside) <= 0.97
    assert np.mean(intercepts) >= 0.7


def test_residuals_that_grow_with_a_column_are_covered():
    """Where sampling decides: the errors of residuals of one spread cover the first in 60%."""
    theta, inside, intercepts = np.array([1.0, -0.7, 0.5, 0.3]), [], []
    for seed in range(FITS):
        rng = np.random.default_rng(seed)
        x = np.clip(rng.standard_t(4, (6_000, 4)), -8, 8)
        y = x @ theta + 0.4 + 0.4 * x[:, 0] * rng.standard_normal(len(x))
        model = PrivateLasso(20.0, 1e-6, bounds=Bounds(8.0, 30.0), random_state=seed).fit(x, y)
        assert model.privacy_.solver == "whitened-gradient"
        inside.append(np.abs(model.coef_ - theta) < NORMAL_90 * model.coef_error_)
        intercepts.append(abs(model.intercept_ - 0.4) < NORMAL_90 * model.intercept_error_)
    assert np.mean(inside, axis=0)[0] >= 0.8
    assert 0.85 <= np.mean(inside) <= 0.97
    assert np.mean(intercepts) >= 0.7
