"""The scaled gradient: what it plans and spends, degenerate data, and how well it fits."""

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.audit import random_pairs, replays
from riata.losses import SmoothedHinge, Squared
from riata.model_file import load, save
from riata.privacy import Budget
from riata.sets import L2Ball, SparseBall
from riata.solvers import ScaledGradient, scaled_gradient
from riata.solvers.scaled_gradient import FIRST_STEPS, SHARES, STEPS
from riata.solvers.whitened_shares import scale_share, whole_strength

from gradient_solvers import (
    assert_refused,
    assert_too_wide,
    every_adjacency,
    every_loss,
    planned_releases,
    problem_of,
    run_as_planned,
    some_budgets,
    what_does_not_fit,
    with_or_without,
)

pytestmark = pytest.mark.matrix(one_in=11)

BLOCKS = (4, 9, 30)
ROW = Bounds(len(BLOCKS) ** 0.5, 1.0, norm="l2")
some_problem = functools.partial(problem_of, bounds=ROW, p=43)


def categories(n=20_000, seed=0, noise=0.3):
    """One 1 in each block, rare levels among them, and targets that the levels decide."""
    rng = np.random.default_rng(seed)
    columns, offset, y = [], 0, np.zeros(n)
    for levels in BLOCKS:
        frequency = 1 / (np.arange(levels) + 1.0)
        level = rng.choice(levels, n, p=frequency / frequency.sum())
        columns.append(offset + level)
        offset += levels
        y += 0.2 * rng.standard_normal(levels)[level]
    places = np.stack(columns, axis=1)
    entries = (np.ones(places.size), places.ravel(), np.arange(0, places.size + 1, len(BLOCKS)))
    y = np.clip(y + noise * rng.standard_normal(n), -1, 1)
    return sparse.csr_array(entries, shape=(n, offset)), y


def lasso(epsilon=1.0, **options):
    common = {"bounds": ROW, "solver": "scaled-gradient", "random_state": 0}
    return PrivateLasso(epsilon, 1e-6, **common | options)


# The plan


@every_loss
@every_adjacency
@with_or_without
@some_budgets
def test_the_plan_spends_the_budget_exactly(loss, adjacency, intercept, fits, epsilon):
    problem = some_problem(loss, adjacency=adjacency, intercept=intercept)
    plan, count = planned_releases(ScaledGradient(), problem, fits, epsilon)
    assert count == fits * (STEPS + (STEPS + FIRST_STEPS + 2 + 1 if intercept else 1) + 4)
    # Each role has its share of the sum of 1 / z^2; the constant at least its own.
    spent = {role: k / plan[role].noise_multiplier ** 2 for role, k in plan.times.items()}
    constant = spent.pop("constant", 0.0) / sum(spent.values())
    shares = SHARES | {"rows": scale_share(whole_strength(problem, Budget(epsilon, 1e-6), fits))}
    whole = sum(shares[role] for role in spent)
    assert not intercept or constant >= SHARES["constant"] / whole * (1 - 1e-9)
    for role, part in spent.items():
        assert part / sum(spent.values()) == pytest.approx(shares[role] / whole)


def test_the_plan_tells_how_often_each_release_is_made():
    plan = ScaledGradient(5).plan(some_problem(), Budget(1.0, 1e-6), fits=2)
    text = str(plan)
    often = {"gradient": 10, "intercept": 10, "constant": 2 * FIRST_STEPS, "slopes": 4}
    often |= dict.fromkeys(("rows", "squares", "sums", "entries", "check"), 2)
    for role, times in often.items():
        assert any(
            line.startswith(f"{role}: ") and line.endswith(f"{times} releases")
            for line in plan.releases
        )
        assert f"{role}: Gaussian mechanism" in text
    assert sum(SHARES.values()) == pytest.approx(1.0)


@every_loss
@with_or_without
def test_a_run_makes_the_releases_that_it_planned_and_no_others(loss, intercept):
    x, y = categories(3_000)
    y = np.where(y > 0, 1.0, -1.0) if loss.classifies else y
    problem = some_problem(loss, n=3_000, intercept=intercept)
    assert run_as_planned(ScaledGradient(4), problem, x, y).theta.support.size > 0


@what_does_not_fit
def test_what_does_not_fit_is_refused(options, words):
    assert_refused(ScaledGradient(), ROW, options, words)


def test_too_many_columns_are_refused():
    assert_too_wide(ScaledGradient(), ROW, 2**26 + 1)


# Fits


@every_loss
@with_or_without
@pytest.mark.parametrize("kind", ["zeros", "one row", "one column", "constant", "rubbish", "huge"])
def test_degenerate_rows_give_a_finite_model(loss, intercept, kind):
    rng = np.random.default_rng(1)
    n, p = (1, 5) if kind == "one row" else (60, 1 if kind == "one column" else 5)
    x, y = rng.standard_normal((n, p)), rng.choice([-1.0, 1.0], n)
    match kind:
        case "zeros":
            x[:], y[:] = 0.0, 0.0
        case "constant":
            x[:], y[:] = 1.0, 1.0
        case "rubbish":
            x, y = rng.choice([np.nan, np.inf, -np.inf, 1e300, 0.0], (n, p)), y * np.nan
        case "huge":
            x *= 1e300
    for epsilon in (0.1, 1e5):
        model = PrivateErm(
            loss, L2Ball(100.0), epsilon, 1e-6, bounds=Bounds(1.0, 1.0, norm="l2"),
            solver=ScaledGradient(12), fit_intercept=intercept, random_state=0,
        ).fit(x, y)  # fmt: skip
        assert np.all(np.isfinite(model.coef_))
        assert np.isfinite(model.intercept_)
        assert intercept or model.intercept_ == 0.0


@pytest.mark.parametrize("bounds", [ROW, Bounds(1.0, 1.0)], ids=repr)
def test_with_a_huge_budget_it_comes_near_to_ridge(bounds):
    x, y = categories()
    held_x, held_y = categories(seed=0)[0][:5_000], y[:5_000]
    x, y = x[5_000:], y[5_000:]
    best = Ridge(1.0).fit(x, y).score(held_x, held_y)
    assert best > 0.3
    found = lasso(1e4, bounds=bounds).fit(x, y).score(held_x, held_y)
    assert best - 0.01 <= found <= best + 0.01


@pytest.mark.not_quick
def test_at_a_small_budget_it_beats_plain_noisy_gradients():
    x, y = categories(40_000, seed=2)
    scores = [
        lasso(1.0, solver=solver).fit(x[10_000:], y[10_000:]).score(x[:10_000], y[:10_000])
        for solver in ("scaled-gradient", "noisy-gradient")
    ]
    assert scores[0] > 0.8 * Ridge(1.0).fit(x, y).score(x, y)
    assert scores[0] > scores[1] + 0.1


@every_adjacency
def test_labels_and_classes_are_told_apart(adjacency):
    x, y = categories(40_000, seed=3)
    common = {
        "bounds": Bounds(ROW.x, norm="l2"), "solver": "scaled-gradient", "random_state": 0,
        "adjacency": adjacency,
    }  # fmt: skip
    two = PrivateLogisticRegression(1.0, 1e-6, classes=[0, 1], **common).fit(x, y > 0)
    base = max((y > 0).mean(), (y <= 0).mean())
    assert two.score(x, y > 0) > base + 0.05
    code = np.digitize(y, [-0.3, 0.3])
    three = PrivateLogisticRegression(3.0, 1e-6, classes=[0, 1, 2], **common).fit(x, code)
    assert three.coef_.shape == (3, x.shape[1])
    assert three.score(x, code) > np.bincount(code).max() / len(code) + 0.02


def test_without_a_signal_the_model_is_about_a_constant():
    x, _ = categories(20_000)
    rng = np.random.default_rng(4)
    y, fresh = np.clip(0.4 + 0.1 * rng.standard_normal((2, 20_000)), -1, 1)
    scores = []
    for seed in range(6):
        model = lasso(1.0, random_state=seed).fit(x, y)
        scores.append(model.score(x, fresh))
        assert abs(model.intercept_ - 0.4) < 0.1
    assert np.mean(scores) > -0.01


def test_the_intercept_counts_from_zero_and_not_from_the_centre():
    # Signed, far from 0: centring must be undone in the model that is returned.
    rng = np.random.default_rng(5)
    x = np.column_stack([0.6 + 0.1 * rng.standard_normal(30_000), rng.uniform(-0.5, 0, 30_000)])
    y = 0.9 * x[:, 0] + 0.5 * x[:, 1] - 0.2 + 0.05 * rng.standard_normal(30_000)
    model = lasso(100.0, bounds=Bounds(1.0, 1.0, norm="l2")).fit(x, y)
    np.testing.assert_allclose(model.coef_, [0.9, 0.5], atol=0.05)
    assert model.intercept_ == pytest.approx(-0.2, abs=0.04)


def test_columns_in_other_units_give_the_same_model():
    x, y = categories(20_000, seed=6)
    plain = lasso(3.0).fit(x, y)
    unit = 1024  # a power of two: rows on the grid are then the same to the last bit
    wide = lasso(3.0, bounds=Bounds(unit * ROW.x, 1.0, norm="l2")).fit(unit * x, y)
    np.testing.assert_array_equal(unit * wide.coef_, plain.coef_)


def test_dense_and_sparse_rows_give_the_same_model():
    x, y = categories(3_000, seed=7)
    bounds = Bounds(1.0, 1.0)  # a bound on the length leaves room for the entries that are stored
    one, other = (lasso(30.0, bounds=bounds).fit(rows, y) for rows in (x, x.toarray()))
    assert np.count_nonzero(one.coef_)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.intercept_ == other.intercept_


@pytest.mark.parametrize("copies", [30, 100])
def test_columns_that_repeat_each_other_do_not_make_it_diverge(copies):
    rng = np.random.default_rng(8)
    x = np.repeat(rng.choice([0.0, 1.0], (10_000, 2)), copies, axis=1)
    y = 0.5 * x[:, 0] - 0.5 * x[:, -1] + 0.1 * rng.standard_normal(10_000)
    model = lasso(20.0, bounds=Bounds((2 * copies) ** 0.5, 1.0, norm="l2")).fit(x, y)
    assert model.score(x, y) > 0.8


def test_the_model_stays_in_its_set():
    x, y = categories(5_000)
    for radius in (1e-3, 0.1):
        assert np.abs(lasso(100.0, radius=radius).fit(x, y).coef_).sum() <= radius * (1 + 1e-9)
    sparse_model = PrivateErm(
        Squared(), SparseBall(3, 10.0), 100.0, 1e-6, bounds=ROW, solver="scaled-gradient",
        random_state=0,
    ).fit(x, y)  # fmt: skip
    assert np.count_nonzero(sparse_model.coef_) <= 3


def test_a_stable_rate_is_kept_and_an_unstable_one_made_smaller():
    move = np.array([1.0, 0.0])
    assert scaled_gradient._stable(0.5, np.array([3.0, 0.0]), move, 0.0) == 0.5
    assert scaled_gradient._stable(0.5, np.array([300.0, 0.0]), move, 0.0) < 0.05
    assert scaled_gradient._stable(0.5, np.array([300.0, 0.0]), move, 100.0) == 0.5
    assert scaled_gradient._stable(0.5, np.array([300.0, 0.0]), 0 * move, 0.0) == 0.5


def test_a_model_with_the_solver_is_saved_and_loaded(tmp_path):
    x, y = categories(2_000)
    model = lasso(solver=ScaledGradient(6)).fit(x, y)
    save(model, tmp_path / "model.riata")
    again = load(tmp_path / "model.riata")
    assert again.solver == ScaledGradient(6)
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


# Replays


@every_adjacency
@pytest.mark.parametrize("loss", [Squared(), SmoothedHinge(0.3)], ids=repr)
@pytest.mark.parametrize("epsilon", [1.0, 3e3])
def test_no_release_of_a_fit_exceeds_its_claim(loss, adjacency, epsilon):
    # At the large epsilon scales stand out and columns are kept, so that gradients are replayed.
    model = PrivateErm(
        loss, L2Ball(10.0), epsilon, 1e-6, bounds=Bounds(1.3, 1.0, norm="l2"),
        solver=ScaledGradient(4), adjacency=adjacency,
    )  # fmt: skip
    found = list(replays(model, random_pairs(model, 12, 12, 8), seed=1))
    assert all(each.sound for each in found)
    assert all(each.realised.epsilon <= each.claimed.epsilon for each in found)
    assert max(each.worst for each in found) > 0.3
    if epsilon > 1:
        assert all(len(each.releases) == 4 + (4 + FIRST_STEPS) + 2 + 5 for each in found)


def test_rows_are_not_shortened_to_nothing_where_most_are_zeros():
    rng = np.random.default_rng(0)
    common, own = rng.standard_normal((6_000, 1)), rng.standard_normal((6_000, 600))
    X = (np.sqrt(0.6) * common + np.sqrt(0.4) * own < -2.9).astype(float)  # 0.2% are 1
    y = np.clip(0.2 * X.sum(axis=1) + 0.2 * rng.standard_normal(6_000), -1.1, 1.1)
    for seed in range(4):
        model = PrivateLasso(1.0, 1e-6, bounds=Bounds(5.0, 1.1, norm="l2"), random_state=seed)
        assert model.fit(X, y).privacy_.solver == "scaled-gradient"
        assert model.score(X, y) > -0.05
