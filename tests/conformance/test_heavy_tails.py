"""Rows with heavy tails: where they are cut, and what that buys."""

import math

import numpy as np
import pytest

from riata import Bounds, BudgetExceeded, HeavyTailedRegression, Ledger, PrivateLasso
from riata.privacy.budget import Budget
from riata.solvers import PrivatePeeling

N, P = 20_000, 60
THETA = np.zeros(P)
THETA[[3, 7]] = [0.5, -0.5]


def rows(seed, n=N, df=3):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(df, (n, P))
    return x, x @ THETA + rng.standard_t(df, n)


def error(model):
    return float(np.linalg.norm(model.coef_ - THETA))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_truncation_beats_bounds_at_the_largest_value(seed):
    x, y = rows(seed)
    heavy = HeavyTailedRegression(4.0, 1e-6, sparsity=2, scale=math.sqrt(3), random_state=seed)
    # Bounds from the rows are not private; here they are the best that a user could have guessed.
    bounds = Bounds(float(np.abs(x).max()), float(np.abs(y).max()))
    lasso = PrivateLasso(
        4.0, 1e-6, bounds=bounds, radius=1.0, solver="frank-wolfe", random_state=seed
    )
    assert bounds.x > 100
    assert error(lasso.fit(x, y)) > 0.6  # 0.71 is the error of no model at all
    assert error(heavy.fit(x, y)) < 0.25
    assert set(np.flatnonzero(heavy.coef_)) == {3, 7}


def test_more_budget_and_more_rows_make_a_better_model():
    def mean_error(epsilon, n):
        models = [
            HeavyTailedRegression(
                epsilon, 1e-6, sparsity=2, scale=math.sqrt(3), random_state=seed
            ).fit(*rows(seed, n))
            for seed in range(3)
        ]
        return np.mean([error(model) for model in models])

    assert mean_error(100.0, N) < 0.5 * mean_error(4.0, N) < 0.25 * mean_error(1.0, 5_000)
    assert mean_error(1e6, N) < 0.03


def test_the_scale_of_the_data_does_not_matter_if_it_is_declared():
    x, y = rows(5)
    one = HeavyTailedRegression(4.0, 1e-6, sparsity=2, random_state=1, fit_intercept=False)
    many = HeavyTailedRegression(
        4.0, 1e-6, sparsity=2, random_state=1, fit_intercept=False, scale=1024.0
    )
    one.fit(x, y)
    many.fit(1024 * x, 1024 * y)
    np.testing.assert_allclose(many.coef_, one.coef_, rtol=1e-6)
    assert many.truncation_ == 1024 * one.truncation_


@pytest.mark.parametrize("p", [2, 3, 500])
@pytest.mark.parametrize("sparsity", [1, 2])
@pytest.mark.parametrize(("n", "epsilon"), [(10, 0.1), (1_000, 1.0), (10**7, 2.0)])
def test_the_truncation_rule(n, epsilon, sparsity, p):
    model = HeavyTailedRegression(epsilon, 1e-6, sparsity=sparsity, scale=2.0)
    plan = model.plan(n, p)
    rule = 2.0 * max(1.0, (n * epsilon / (sparsity * math.log(max(p, 3)))) ** 0.25)
    assert plan.problem.bounds.x == plan.problem.bounds.y == pytest.approx(rule, rel=1e-12)
    assert plan.problem.bounds.norm == "inf"
    cut = HeavyTailedRegression(epsilon, 1e-6, sparsity=sparsity, truncation=3.5).plan(n, p)
    assert cut.problem.bounds.x == cut.problem.bounds.y == 3.5


def test_the_model_cuts_where_it_says_in_fit_and_in_predict():
    x, y = rows(6, n=500)
    model = HeavyTailedRegression(5.0, 1e-6, sparsity=2, random_state=0).fit(x, y)
    K = model.truncation_
    assert model.plan(500, P).problem.bounds.x == K
    assert str(K) in model.privacy_.public["bounds"]
    again = HeavyTailedRegression(5.0, 1e-6, sparsity=2, random_state=0)
    again.fit(np.clip(x, -K, K), np.clip(y, -K, K))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    expected = np.clip(x, -K, K) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(x), expected, rtol=1e-12)
    far = HeavyTailedRegression(5.0, 1e-6, sparsity=2, random_state=0)
    far.fit(np.where(np.abs(x) > K, np.sign(x) * 1e300, x), y)
    np.testing.assert_array_equal(far.coef_, model.coef_)


def test_a_second_fit_that_is_refused_leaves_the_first_model_as_it_was():
    x, y = rows(7, n=500)
    model = HeavyTailedRegression(5.0, 1e-6, sparsity=2).fit(x, y)
    before, cut = model.predict(x), model.truncation_
    full = Ledger.create(":memory:", dataset="d", ceiling=Budget(0.1, 1e-6))
    with pytest.raises(BudgetExceeded):
        model.set_params(ledger=full).fit(x[:100], y[:100])
    np.testing.assert_array_equal(model.predict(x), before)
    assert model.truncation_ == cut
    model.set_params(ledger=None).fit(x[:100], y[:100])
    assert model.truncation_ == model.plan(100, P).problem.bounds.x < cut


def test_splitting_costs_more_noise_than_all_rows_at_usual_budgets():
    errors = {True: [], False: []}
    for seed in range(4):
        x, y = rows(seed, n=60_000)
        for split, found in errors.items():
            solver = PrivatePeeling(4, step_size=1 / 12, split=split)
            model = HeavyTailedRegression(
                1.0, 1e-6, sparsity=2, scale=math.sqrt(3), solver=solver, random_state=seed
            )
            found.append(error(model.fit(x, y)))
            assert ("split into 4 parts" in model.privacy_.releases[-1]) is split
    assert np.mean(errors[False]) < np.mean(errors[True])


def test_a_split_fit_is_charged_for_one_part():
    x, y = rows(8, n=900)
    ledgers = {}
    for split in (True, False):
        ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6))
        solver = PrivatePeeling(6, split=split)
        HeavyTailedRegression(2.0, 1e-6, sparsity=2, solver=solver, ledger=ledger).fit(x, y)
        ledgers[split] = ledger
        assert ledger.spent.epsilon == pytest.approx(2.0, rel=1e-6)
    from riata.privacy.events import leaves

    counts = {k: sum(leaves(v.charges[0].event).values()) for k, v in ledgers.items()}
    assert counts[False] == 6 * counts[True]
