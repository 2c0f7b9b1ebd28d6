"""The whitened gradient: what it plans and spends, degenerate data, and how well it fits."""

import functools
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, ndtri
from sklearn.linear_model import LinearRegression, LogisticRegression

from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.audit import random_pairs, replays
from riata.losses import Logistic, OneAgainstRest, Squared
from riata.privacy import Budget
from riata.queries import JointMoments, PreconditionedGradient
from riata.sets import L1Ball, L2Ball
from riata.solvers import AveragedGradient, WhitenedGradient, averaged_gradient, whitened_line
from riata.solvers.empirical_bayes import (
    averaged_noise,
    best_constant,
    covariances,
    high_length,
    high_quantile,
    likely_columns,
    likely_size,
    lost_in_noise,
    part_to_keep,
    shortened_slopes,
    shrunken,
    without,
)
from riata.solvers.whitened_line import (
    GUESSED,
    LEFT,
    MOST_CORRELATED,
    SEEN,
    VARIANCE,
    Moments,
    likely_line,
)
from riata.solvers.whitened_run import Run
from riata.solvers.whitened_shares import STEPS

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

ROW = Bounds(3.0, 1.0, norm="l2")
some_problem = functools.partial(problem_of, bounds=ROW, p=12)


def correlated(n=8_000, p=12, seed=0):
    """Columns with standard deviations from 1 to 0.03, turned, off the origin, all relevant."""
    rng = np.random.default_rng(7)
    turn, coefficients = np.linalg.qr(rng.standard_normal((p, p)))[0], rng.standard_normal(p)
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, p))
    x = 0.3 * latent * np.geomspace(1, 0.03, p) @ turn + 0.2
    signal = latent @ coefficients / p**0.5
    return x, 0.1 + 0.15 * (signal + 0.5 * rng.standard_normal(n))


def lasso(epsilon=1.0, **options):
    common = {"bounds": ROW, "solver": "whitened-gradient", "random_state": 0}
    return PrivateLasso(epsilon, 1e-6, **common | options)


# The plan


@pytest.mark.matrix(one_in=7)
@every_loss
@with_or_without
@every_adjacency
@some_budgets
def test_the_plan_spends_the_budget_exactly(loss, intercept, adjacency, fits, epsilon):
    problem = some_problem(loss, adjacency=adjacency, intercept=intercept)
    plan, count = planned_releases(WhitenedGradient(), problem, fits, epsilon)
    rounds = sum(role.startswith("moments") for role in plan.mechanisms)
    scales = 1 if loss.classifies else 2
    errors = int(loss.least_squares)
    assert count == fits * (scales + rounds + STEPS + errors + 2 + 1)


@every_loss
@with_or_without
@pytest.mark.parametrize("n", [50, 5_000])
def test_an_averaged_plan_makes_the_releases_of_its_proof(loss, intercept, n):
    problem = some_problem(loss, n=n, intercept=intercept)
    plan = AveragedGradient(5).plan(problem, Budget(1.0, 1e-6))
    expected = {"lengths": 1, "gradient": 5, "along": 2, "check": 1}
    expected |= {} if loss.classifies else {"slopes": 1 + intercept}
    expected |= {"constant": 1} if intercept else {}
    seen = n > 500 and not loss.measured_curvature
    expected |= {"spread": 1} if seen else {}
    expected |= {"centre": 1} if seen and intercept else {}
    assert plan.times == expected


@pytest.mark.parametrize("larger", [None, -1.0, 1.0])
def test_an_averaged_run_starts_from_the_mean_row_or_that_of_the_larger_class(larger, monkeypatch):
    x, y = correlated()
    if larger is not None:
        y = np.where(y > np.quantile(y, 0.8), -larger, larger)
    found = []
    centre = averaged_gradient._Run._centre
    monkeypatch.setattr(
        averaged_gradient._Run, "_centre", lambda run: (centre(run), found.append(run.whitening))
    )
    options = {"solver": "averaged-gradient", "random_state": 0}
    if larger is None:
        PrivateLasso(1_000.0, 1e-6, bounds=ROW, **options).fit(x, y)
    else:
        options |= {"bounds": Bounds(3.0, norm="l2"), "classes": [-1.0, 1.0]}
        PrivateLogisticRegression(1_000.0, 1e-6, **options).fit(x, y)
    (whitening,) = found
    mean = x.mean(axis=0) if larger is None else x[y == larger].mean(axis=0)
    np.testing.assert_allclose(whitening.centre, whitening.matrix @ mean / 3, atol=0.02)
    assert np.abs(whitening.centre).max() > 0.1


@every_loss
@with_or_without
@pytest.mark.parametrize("steps", [1, 4])
def test_an_averaged_run_makes_the_releases_that_it_planned(loss, intercept, steps):
    x, y = correlated(500)
    y = np.where(y > 0, 1.0, -1.0) if loss.classifies else y
    problem = some_problem(loss, n=500, intercept=intercept)
    run_as_planned(AveragedGradient(steps), problem, x, y)


@pytest.mark.parametrize(
    ("n", "epsilon", "rounds"), [(100, 0.1, 1), (1_000, 0.3, 2), (1_000, 1.0, 3), (9_000, 1.0, 4)]
)
def test_more_can_be_measured_in_more_rounds(n, epsilon, rounds):
    plan = WhitenedGradient().plan(some_problem(n=n), Budget(epsilon, 1e-6))
    made = [plan[role].noise_multiplier for role in plan.mechanisms if role.startswith("moments")]
    assert len(made) == rounds
    assert np.allclose(np.divide(made[:-1], made[1:]), 2**0.5)


@every_loss
@with_or_without
@pytest.mark.parametrize("steps", [1, 4])
def test_a_run_makes_the_releases_that_it_planned_and_no_others(loss, intercept, steps):
    x, y = correlated(500)
    y = np.where(y > 0, 1.0, -1.0) if loss.classifies else y
    problem = some_problem(loss, n=500, intercept=intercept)
    solution = run_as_planned(WhitenedGradient(steps), problem, x, y)
    assert (solution.offset_error is not None) == intercept


@what_does_not_fit
def test_what_does_not_fit_is_refused(options, words):
    assert_refused(WhitenedGradient(), ROW, options, words)


def test_too_many_columns_are_refused():
    assert_too_wide(WhitenedGradient(), ROW, 1_025)


# Fits


@pytest.mark.matrix(one_in=7)
@every_loss
@with_or_without
@pytest.mark.parametrize("kind", ["zeros", "one row", "one column", "constant", "rubbish", "huge"])
def test_degenerate_rows_give_a_finite_model(loss, intercept, kind):
    rng = np.random.default_rng(1)
    n, p = (1, 5) if kind == "one row" else (60, 1 if kind == "one column" else 5)
    x, y = rng.standard_normal((n, p)), rng.choice([-1.0, 1.0], n)
    match kind:
        case "zeros":
            x[:] = 0.0
        case "constant":
            x[:], y[:] = 0.7, 1.0
        case "rubbish":
            x[:], y[:] = rng.choice([np.nan, np.inf, -np.inf, 0.0], (n, p)), np.nan
    size = 1e50 if kind == "huge" else 1.0
    bounds = Bounds(size, size, norm="l2")
    model = PrivateErm(
        loss, L2Ball(1.0), 1.0, 1e-6, bounds=bounds, fit_intercept=intercept,
        solver="whitened-gradient", random_state=2,
    ).fit(size * x, y if loss.classifies else size * y)  # fmt: skip
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_)


@pytest.mark.parametrize("bounds", [ROW, Bounds(1.0, 1.0), Bounds(100.0, 100.0)], ids=repr)
def test_correlated_columns_are_fitted_nearly_as_well_as_without_privacy(bounds):
    x, y = correlated()
    fresh, truth = correlated(seed=1)
    best = LinearRegression().fit(x, y).score(fresh, truth)
    assert best > 0.6
    model = lasso(3.0, bounds=bounds).fit(x, y)
    assert model.score(fresh, truth) > best - 0.02
    assert model.training_fit_ == pytest.approx(best, abs=0.1)
    errors = model.coef_error_[model.coef_ != 0]  # a weak column may be left out
    assert len(errors) >= len(model.coef_) - 1
    assert 0 < np.median(errors) < np.abs(model.coef_).max()


def test_two_classes_are_told_apart_nearly_as_well_as_without_privacy():
    x, y = correlated()
    labels = np.where(y > 0.25, 1, 0)  # one row in five
    best = LogisticRegression(C=1e3, max_iter=3_000).fit(x, labels)
    model = PrivateLogisticRegression(
        3.0, 1e-6, bounds=ROW, classes=[0, 1], solver="whitened-gradient", random_state=0
    ).fit(x, labels)
    assert model.score(x, labels) > best.score(x, labels) - 0.015
    assert np.corrcoef(model.decision_function(x), best.decision_function(x))[0, 1] > 0.98
    assert model.predict_proba(x)[:, 1].mean() == pytest.approx(labels.mean(), abs=0.03)


def test_targets_that_nothing_explains_cost_little():
    """Eight fits lost 0.006 of R2 on average, and 0.023 without `shrink`."""
    x, y = correlated(4_000)
    y = np.random.default_rng(5).permutation(y)
    lost = [-lasso(0.3, random_state=k).fit(x, y).score(x, y) for k in range(8)]
    assert np.mean(lost) < 0.01


def test_sparse_rows_give_the_same_model():
    x, y = correlated(600)
    x[np.abs(x) < 0.1] = 0.0
    dense, packed = (lasso().fit(rows, y) for rows in (x, sparse.csr_array(x)))
    np.testing.assert_array_equal(dense.coef_, packed.coef_)
    assert dense.intercept_ == packed.intercept_


def test_columns_that_do_not_matter_are_left_out():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (20_000, 20))
    y = 0.3 * x[:, 2] - 0.3 * x[:, 5] + 0.05 * rng.standard_normal(len(x))
    coef = lasso(3.0, bounds=Bounds(1.0, 1.0)).fit(x, y).coef_
    assert coef[[2, 5]] == pytest.approx([0.3, -0.3], abs=0.01)
    assert np.count_nonzero(coef) < 10


# What is made of releases


def test_a_scale_is_a_high_quantile_and_lost_in_noise_it_is_on_the_safe_side():
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-15, 1)])
    counts = np.zeros(17)
    counts[8:10] = 0.5
    assert high_quantile(counts, 1e-3, edges, 0.05) == edges[9]
    assert high_quantile(counts, 0.1, edges, 0.05) in edges[8:14]
    assert high_quantile(0 * counts, 1.0, edges, 0.05) < edges[10]
    assert high_quantile(0 * counts, 1.0, edges, 0.95) >= edges[-2]
    assert high_quantile(0 * counts, 1e-3, edges, 0.05) == 1.0


@pytest.mark.parametrize("noise", [1e-3, 0.03])
def test_rows_of_zeros_say_nothing_of_a_scale(noise):
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-15, 1)])
    counts = np.zeros(17)
    counts[0], counts[8:10] = 0.8, 0.1
    assert high_quantile(counts, noise, edges, 0.5) in edges[9:12]


def test_rows_that_are_few_and_long_count_by_their_squares():
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-15, 1)])
    counts = np.zeros(17)
    counts[8], counts[16] = 0.95, 0.05
    assert high_length(counts, 1e-3, edges, 0.5) == pytest.approx(0.5**0.5)
    assert high_length(counts, 0.1, edges, 0.5) == high_quantile(counts, 0.1, edges, 0.5)
    counts[8], counts[12:14] = 0.8, 0.1  # seen in a window of two bins, and not in all
    assert high_length(counts, 0.045, edges, 0.05) == edges[12]
    counts[8], counts[9], counts[12:] = 0.8, 0.2, 0.0
    assert high_length(counts, 1e-3, edges, 0.5) == edges[9]


def test_where_most_rows_are_0_the_lengths_of_the_others_are_on_the_large_side():
    edges = np.concatenate([[0.0], 2.0 ** np.arange(-15, 1)])
    counts = np.zeros(17)
    counts[8], counts[9] = 0.1, 0.02
    assert high_length(counts, 0.06, edges, 0.5) == high_quantile(counts, 0.06, edges, 0.5)
    counts[0] = 0.88
    assert high_length(counts, 0.06, edges, 0.5) == high_quantile(counts, 0.06, edges, 0.95)
    assert high_length(counts, 0.2, edges, 0.5) == high_quantile(counts, 0.2, edges, 0.5)


def rare_flags(density, common, seed):
    """Flags that come together if they have a common cause, and numbers that are their sums."""
    rng = np.random.default_rng(seed)
    shared, own = rng.standard_normal((9_000, 1)), rng.standard_normal((9_000, 13))
    X = (np.sqrt(common) * shared + np.sqrt(1 - common) * own < ndtri(density)).astype(float)
    sums = X @ rng.uniform(0.5, 1.5, 13)
    y = 0.3 * sums / sums.std() + 0.22 * rng.standard_normal(9_000)
    return X, np.clip(y, -1.1, 1.1)


@pytest.mark.parametrize(("density", "common"), [(0.02, 0.6), (0.04, 0.6), (0.04, 0.0)])
@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_rare_flags_are_learned_or_left_alone(density, common, epsilon):
    bounds, scores = Bounds(1.0, 1.1), []
    for seed in range(12):
        X, y = rare_flags(density, common, seed)
        model = PrivateLasso(epsilon, 1e-6, bounds=bounds, random_state=seed).fit(X, y)
        scores.append(model.score(X, y))
    assert min(scores) > -0.05
    assert np.mean(scores) > (0.15 if epsilon < 0.2 else 0.25)


def test_few_long_rows_among_short_ones_do_no_harm():
    scores = []
    for seed in range(8):
        X, y = rare_flags(0.1, 0.6, seed)
        X[:, 0] = 0.02 * np.random.default_rng(seed).standard_normal(9_000)
        model = PrivateLasso(0.3, 1e-6, bounds=Bounds(1.0, 1.1), random_state=seed).fit(X, y)
        scores.append(model.score(X, y))
    assert min(scores) > 0.4


def test_coefficients_are_shrunk_by_as_much_as_they_are_noise():
    rng = np.random.default_rng(0)
    null, clear = rng.standard_normal(40), 10 * rng.standard_normal(40)
    assert np.abs(shrunken(null, np.ones(40), 40.0)).max() < 0.3
    np.testing.assert_allclose(shrunken(clear, np.ones(40), 8_000.0), clear, rtol=0.02)
    assert np.isfinite(shrunken(clear, np.zeros(40), 1.0)).all()


def test_how_much_of_a_model_is_kept():
    assert part_to_keep(1.0, 0.01) == pytest.approx(1.0, abs=1e-3)
    assert part_to_keep(0.8, 0.01) == pytest.approx(0.8, abs=0.01)
    assert part_to_keep(0.0, 0.1) < 0.05
    assert part_to_keep(-3.0, 0.1) < 0.05
    assert part_to_keep(0.3, 0.3, 1e-3) < 0.01 < 0.3 < part_to_keep(0.3, 0.3, 1e3)
    assert 0.3 < part_to_keep(0.5, 100.0) < 0.7  # which says nothing
    assert np.isfinite(part_to_keep(1e6, 0.0))


def test_a_size_lies_between_its_guess_and_what_was_found_with_noise():
    assert likely_size(0.31, 0.1, 1.0) == 0.31  # beyond doubt, whatever was guessed
    assert 0.2 < likely_size(0.2, 0.1, 1.0) < 0.5
    assert 1.0 < likely_size(2.0, 1.0, 1.0) < 2.0
    assert 0 < likely_size(-3.0, 1.0, 1.0) < 0.5
    # What says nothing leaves the mean of the lognormal guess.
    assert likely_size(0.0, 1e9, 1.0) == pytest.approx(math.exp(math.log(2) ** 2 / 2), rel=0.01)


def test_a_size_is_the_mean_given_both():
    powers = np.random.default_rng(0).standard_normal(200_000)
    chances = np.exp(-((2.0 * 2.0**powers - 1.5) ** 2) / 2 / 0.8**2)
    known = chances @ (2.0 * 2.0**powers) / chances.sum()
    assert likely_size(1.5, 0.8, 2.0) == pytest.approx(known, rel=0.01)


def line_of(part, variance, covariance, noise):
    """What noise of this size would leave of the moments at a part of a model."""
    return Moments(part, variance, noise, covariance - part * variance, noise / 2)


def test_moments_without_noise_are_what_they_say():
    for variance, covariance in ((0.3, 0.2), (2.0, 1.3), (0.05, 0.15)):
        exact = [line_of(part, variance, covariance, 1e-4) for part in (0.0, 0.8)]
        found = likely_line(exact, 1.0, 1.0)
        assert found.covariance == pytest.approx(covariance, rel=2e-3)
        assert found.variance == pytest.approx(variance, rel=2e-3)
        assert found.left == pytest.approx(max(1 - covariance**2 / variance, LEFT), abs=2e-3)
        assert found.error < 1e-3


def test_a_line_is_the_mean_given_noisy_moments():
    rng = np.random.default_rng(0)
    variances = 2.0 ** (VARIANCE + GUESSED * rng.standard_normal(400_000))
    correlated = rng.random(len(variances)) < SEEN * MOST_CORRELATED / (1 + SEEN * MOST_CORRELATED)
    sizes = MOST_CORRELATED * rng.random(len(variances)) * correlated * np.sqrt(0.8 * variances)
    seen = [Moments(0.0, 0.9, 0.3, 0.35, 0.2), Moments(0.4, 0.5, 0.2, 0.1, 0.15)]
    misses = sum(
        ((variances - each.variance) / each.of_variance) ** 2
        + ((sizes - each.part * variances - each.covariance) / each.of_covariance) ** 2
        for each in seen
    )
    chances = np.exp(-misses / 2)
    chances /= chances.sum()
    found = likely_line(seen, 0.8, 1.0)
    assert found.covariance == pytest.approx(chances @ sizes, rel=0.02)
    assert found.variance == pytest.approx(chances @ variances, rel=0.02)
    spread = math.sqrt(chances @ sizes**2 - (chances @ sizes) ** 2)
    assert found.error == pytest.approx(spread, rel=0.03)


def test_moments_of_noise_keep_nothing():
    nothing = [line_of(part, 0.7, 0.0, 0.2) for part in (0.0, 0.1)]
    assert likely_line(nothing, 1.0, 1.0).covariance < 0.02
    assert likely_line(nothing, 1.0, 1e-6).covariance < 1e-6
    against = [line_of(part, 0.7, -0.6, 0.1) for part in (0.0, 0.1)]
    assert 0 <= likely_line(against, 1.0, 1.0).covariance < 1e-3


@pytest.mark.parametrize("solver", ["whitened-gradient", "averaged-gradient"])
@pytest.mark.parametrize("factor", [0.7, 1.0, 2.5])
def test_how_far_margins_spread_is_measured(solver, factor, monkeypatch):
    """The part that is kept is the right one, and the intercept leaves no mean."""
    x, y = correlated(20_000)
    usual = whitened_line.usual_margins
    monkeypatch.setattr(whitened_line, "usual_margins", lambda run, w: factor * usual(run, w))
    model = lasso(3.0, solver=solver).fit(x, y)
    predicted = model.predict(x)
    line = np.polyfit(predicted, y, 1)
    assert line[0] == pytest.approx(1.0, abs=0.05)
    assert predicted.mean() == pytest.approx(y.mean(), abs=0.03 * y.std())


@every_loss
@pytest.mark.parametrize("solver", [WhitenedGradient(2), AveragedGradient(2)], ids=repr)
def test_the_releases_along_a_model_are_those_of_the_proof(solver, loss, monkeypatch):
    x, y = correlated(500)
    y = np.where(y > 0, 1.0, -1.0) if loss.classifies else y
    found, release = [], Run.release

    def listened(run, role, query):
        found.extend([type(query)] * (role == "along"))
        return release(run, role, query)

    monkeypatch.setattr(Run, "release", listened)
    run_as_planned(solver, some_problem(loss, n=500, intercept=True), x, y)
    of_numbers = not (loss.classifies or loss.measured_curvature)
    assert found == 2 * [JointMoments if of_numbers else PreconditionedGradient]


def test_to_leave_out_a_column_is_to_fit_again_without_it():
    rng = np.random.default_rng(1)
    matrix = np.linalg.inv(np.linalg.cholesky(np.cov(rng.standard_normal((3, 50)))))
    w = matrix[:, 0] * 3 - matrix[:, 0] @ matrix[:, 1] / (matrix[:, 1] @ matrix[:, 1])
    left, kept = likely_columns(w, matrix, 0.3, 10.0)
    assert 0 < kept.sum() < 3
    coefficients = matrix.T @ left
    np.testing.assert_allclose(coefficients[~kept], 0.0, atol=1e-12)
    # The nearest vector to w among those with these coefficients equal to 0.
    others = matrix[:, ~kept]
    near = w - others @ np.linalg.lstsq(others, w, rcond=None)[0] if others.size else w
    np.testing.assert_allclose(left, near, atol=1e-10)
    assert likely_columns(w, matrix, 0.0, 10.0)[1].all()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("loss", [Logistic(), OneAgainstRest(Logistic(), 1)], ids=repr)
def test_the_best_constant_follows_from_the_mean_slope(loss, share):
    slope = 0.5 - share
    constant, curvature = best_constant(loss, slope, 6.0)
    assert constant == pytest.approx(np.log(share / (1 - share)), abs=1e-6)
    assert curvature == pytest.approx(share * (1 - share), abs=1e-6)


# Privacy


@every_adjacency
def test_no_replay_exceeds_the_claim(adjacency):
    for bounds in (ROW, Bounds(1.0, 1.0)):
        model = PrivateLasso(
            1.0, 1e-6, bounds=bounds, solver=WhitenedGradient(4), adjacency=adjacency
        )
        found = list(replays(model, random_pairs(model, 12, 3, 8), seed=1))
        assert all(each.sound for each in found)
        assert max(each.worst for each in found) > 0.3


@pytest.mark.parametrize(("rate", "pull"), [(1.0, 1.0), (0.4, 0.4), (0.4, 0.25)])
def test_the_noise_of_averaged_iterates_is_that_of_a_simulation(rate, pull):
    """Of 40,000 runs: 3% is beyond 8 standard errors. The seed is fixed."""
    rng = np.random.default_rng(0)
    noises = np.array([2.0] * 6 + [0.5] * 6)
    w, total = np.zeros(40_000), np.zeros(40_000)
    for t, noise in enumerate(noises):
        w = w - pull * w - rate * noise * rng.standard_normal(len(w))
        total += w if t >= 6 else 0.0
    expected = (total / 6).std()
    assert averaged_noise(noises, rate, pull, 6) == pytest.approx(expected, rel=0.03)


def test_what_shortened_slopes_leave_is_that_of_rows():
    """Of 200,000 rows: 1% is beyond five standard errors. The seed is fixed."""
    margins = 0.7 * np.random.default_rng(0).standard_normal(200_000) - 1.2
    odds = expit(margins)
    bends, factors = odds * (1 - odds), np.minimum(1.0, 0.6 / np.maximum(odds, 1 - odds))
    found = shortened_slopes(Logistic(), -1.2, 0.7, 0.6)
    expected = [bends @ factors, bends @ factors**2] / bends.sum()
    np.testing.assert_allclose(found, expected, rtol=0.01)
    assert shortened_slopes(Logistic(), -1.2, 0.7, 1.0) == pytest.approx((1.0, 1.0))
    assert shortened_slopes(Logistic(), 1e60, 1.0, 0.1) == (1.0, 1.0)  # where nothing bends


@pytest.mark.parametrize("p", [2, 5, 30])
def test_eigenvalues_of_noise_alone_are_lost_in_it(p):
    """Of 1,000 matrices at most 2% have one that is not; 0.3% are expected. The seed is fixed."""
    rng, seen = np.random.default_rng(0), 0
    for _ in range(1_000):
        noise = np.triu(0.3 * rng.standard_normal((p, p)), 1)
        noise += noise.T + np.diag(0.3 * 2**0.5 * rng.standard_normal(p))
        seen += not lost_in_noise(np.linalg.eigvalsh(noise), 0.3).all()
    assert seen <= 20
    assert not lost_in_noise(np.array([8.0]), 1.0).any()


def test_errors_of_columns_that_were_kept_are_those_without_the_others():
    """As in least squares on the columns that are left."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((500, 4)) @ rng.standard_normal((4, 4))
    moments = rows.T @ rows / 500
    matrix = np.linalg.cholesky(moments).T  # whitened: (rows @ inverse) has moments of 1
    white = np.linalg.inv(matrix).T  # coefficients are white.T @ w
    left_out = np.array([False, True, False, True])
    root = without(white, left_out) @ white
    covariance = covariances(root, np.zeros(4, dtype=bool))[0]
    few = np.ix_(~left_out, ~left_out)
    np.testing.assert_allclose(covariance[few], np.linalg.inv(moments[few]))
    np.testing.assert_allclose(covariance[left_out], 0, atol=1e-12)


def test_categories_that_add_up_to_one_leave_room_for_the_rest():
    """With an intercept their common part is noise alone, of any length, and the set is narrow."""
    rng = np.random.default_rng(0)
    number, group = rng.uniform(-0.5, 0.5, 10_000), rng.integers(0, 3, 10_000)
    x = np.column_stack([number, 0.05 * np.eye(3)[group]])
    y = number + 0.05 * rng.standard_normal(10_000)
    model = PrivateErm(
        Squared(), L1Ball(2.0), epsilon=1.0, delta=1e-6, bounds=Bounds(x=1.0, y=1.0),
        solver="whitened-gradient",
    )  # fmt: skip
    for seed in range(10):
        fitted = model.set_params(random_state=seed).fit(x, y)
        assert fitted.score(x, y) > 0.95
        assert np.abs(fitted.coef_).sum() <= 2 + 1e-9
