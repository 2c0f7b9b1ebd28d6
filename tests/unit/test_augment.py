"""`model.augment`: predictions with what is known about their errors."""

import copy
import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

import riata
from riata import (
    Bounds,
    LocalLogisticRegression,
    LocalSparseMean,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    ProjectedRegression,
    read,
)
from riata.errors import InvalidArgument
from riata.estimators.augment import augment

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (4000, 3))
REACH = stats.norm.ppf(0.975)
ENDS = [".fitted", ".se.fit", ".lower", ".upper"]


@pytest.fixture(scope="module")
def line():
    y = 0.5 * X[:, 0] - 0.3 * X[:, 1] + 0.2 + 0.1 * RNG.standard_normal(len(X))
    return PrivateLasso(2.0, 1e-6, bounds=Bounds(1.0, 2.0), random_state=0).fit(X, y)


@pytest.fixture
def without_covariances(line):
    model = copy.copy(line)
    del model.coef_covariance_
    return model


def test_errors_are_made_of_covariances(line):
    rows = np.array([[0.0, 0, 0], [1.0, -0.5, 0], [-0.2, 0.9, 0.4]])
    used, whole = np.column_stack([rows, np.ones(3)]), line.coef_covariance_[0]
    expected = np.sqrt([row @ whole @ row for row in used])
    np.testing.assert_allclose(augment(line, rows)[".se.fit"], expected)
    np.testing.assert_allclose(np.sqrt(np.diag(whole))[:-1], np.nan_to_num(line.coef_error_))
    assert math.sqrt(whole[-1, -1]) == pytest.approx(line.intercept_error_)


def test_a_prediction_is_known_where_what_it_adds_up_is_known(line):
    model = copy.copy(line)
    shared = np.pad(np.full((2, 2), 1e3), (0, 2))  # of the sum of the first two coefficients
    model.coef_covariance_ = line.coef_covariance_ + shared
    found = augment(model, np.array([[0.5, -0.5, 0], [0.5, 0.5, 0]]))[".se.fit"]
    assert np.isfinite(found).tolist() == [True, False]


def test_errors_without_covariances_are_the_sum_of_those_of_all_terms(without_covariances):
    line = without_covariances
    rows = np.array([[0.0, 0, 0], [1.0, -0.5, 0], [7.0, 0, 0]])  # the last is clipped to 1
    found = augment(line, rows)
    np.testing.assert_array_equal(found[".fitted"], line.predict(rows))
    used = np.where(line.coef_ != 0, line.coef_error_, 0.0)
    sizes = np.abs(np.clip(rows, -1, 1))
    np.testing.assert_allclose(found[".se.fit"], line.intercept_error_ + sizes @ used)
    np.testing.assert_allclose(found[".upper"] - found[".fitted"], REACH * found[".se.fit"])
    np.testing.assert_allclose(found[".fitted"] - found[".lower"], REACH * found[".se.fit"])
    narrow = augment(line, rows, 0.5)
    assert (narrow[".upper"] < found[".upper"]).all()


@pytest.mark.not_quick
def test_the_true_mean_lies_inside_for_almost_all_fits():
    """20 fits with fixed seeds, so the outcome is always the same."""
    truth, inside = np.array([0.5, -0.3, 0.0]), []
    rows = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = X @ truth + 0.2 + 0.3 * rng.standard_normal(len(X))
        model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 2.0), random_state=seed).fit(X, y)
        found, mean = augment(model, rows), rows @ truth + 0.2
        inside.append((found[".lower"] <= mean) & (mean <= found[".upper"]))
    assert np.mean(inside) >= 0.95


def test_unknown_errors_are_nan_only_where_they_matter(without_covariances):
    line = without_covariances
    kept = line.coef_error_.copy()
    line.coef_error_[0] = math.nan
    try:
        found = augment(line, np.array([[0.0, 1, 0], [0.1, 1, 0]]))
        assert np.isfinite(found[".se.fit"]).tolist() == [True, False]
        assert np.isnan(found[".lower"][1])
        assert np.isfinite(found[".fitted"]).all()
    finally:
        line.coef_error_ = kept


def test_sparse_rows_and_frames_are_the_same(line):
    rows = X[:5]
    dense, thin = augment(line, rows), augment(line, sparse.csr_array(rows))
    for name in ENDS:
        np.testing.assert_allclose(dense[name], thin[name])
    frame = line.augment(rows)
    assert list(frame.columns) == ENDS
    np.testing.assert_array_equal(frame[".se.fit"], dense[".se.fit"])


@pytest.mark.parametrize("epsilon", [2.0, 60.0])
def test_intervals_of_single_targets_hold_as_often_as_they_say(epsilon):
    """Of 2,000 new rows: 2.5 points is five standard errors. Seeds are fixed.

    At epsilon 2 the noise of the spread, which is added, is half of it.
    """
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (6000, 3))
    y = 0.5 * x[:, 0] - 0.3 * x[:, 1] + 0.2 + 0.1 * rng.standard_normal(6000)
    rows, model = x[4000:], PrivateLasso(epsilon, 1e-6, bounds=Bounds(1.0, 2.0), random_state=0)
    model.fit(x[:4000], y[:4000])
    found = augment(model, rows, interval="prediction")
    inside = np.mean((found[".lower"] <= y[4000:]) & (y[4000:] <= found[".upper"]))
    assert 0.925 <= inside <= (0.975 if epsilon > 10 else 1.0)
    assert model.residual_spread_ == pytest.approx(0.1, rel=0.05 if epsilon > 10 else 0.5)
    assert model.summary().to_frame("glance")["sigma"][0] == model.residual_spread_
    mean = augment(model, rows)
    np.testing.assert_array_equal(found[".se.fit"], mean[".se.fit"])
    assert (found[".lower"] < mean[".lower"]).all()
    frame = model.augment(rows, interval="prediction")
    np.testing.assert_array_equal(frame[".upper"], found[".upper"])


def test_intervals_of_single_targets_need_a_spread(line):
    with pytest.raises(InvalidArgument, match="'confidence', 'prediction'"):
        augment(line, X, interval="both")
    labels = PrivateLogisticRegression(1.0, bounds=Bounds(1.0), random_state=0)
    with pytest.raises(InvalidArgument, match="Hold rows out"):
        augment(labels.fit(X, X[:, 0] > 0), X, interval="prediction")


def test_a_frame_keeps_its_columns():
    people = pd.DataFrame({"age": RNG.uniform(0, 100, 3000)}, index=np.arange(3000) + 7)
    people["cost"] = 0.5 * people["age"] + RNG.normal(0, 3, 3000)
    schema = {
        "features": [{"name": "age", "kind": "number", "bounds": [0, 100], "knots": 0}],
        "target": {"name": "cost", "bounds": [0, 100]},
    }
    model = PrivateLasso(3.0, 1e-6, random_state=0).fit(read(people, schema))
    found = model.augment(people.iloc[:4])
    assert list(found.columns) == ["age", "cost", *ENDS]
    assert found.index.tolist() == [7, 8, 9, 10]
    assert np.isfinite(found[".se.fit"]).all()
    np.testing.assert_array_equal(found[".fitted"], model.predict(people.iloc[:4]))
    assert ".fitted" not in people.columns


def test_means_of_counts_are_positive():
    y = RNG.poisson(np.exp(0.5 * X[:, 0]))
    model = PrivatePoissonRegression(3.0, 1e-6, bounds=Bounds(1.0, 9.0), random_state=0).fit(X, y)
    found = augment(model, X[:9])
    np.testing.assert_allclose(found[".fitted"], model.predict(X[:9]))
    margins = model._margins(X[:9])
    error = found[".se.fit"] / found[".fitted"]
    np.testing.assert_allclose(found[".lower"], np.exp(margins - REACH * error))
    np.testing.assert_allclose(found[".upper"], np.exp(margins + REACH * error))


def test_probabilities_stay_between_0_and_1():
    y = RNG.random(len(X)) < 1 / (1 + np.exp(-3 * X[:, 0]))
    model = PrivateLogisticRegression(3.0, 1e-6, bounds=Bounds(1.0), random_state=0).fit(X, y)
    model.calibration_ = np.array([[0.8, 0.1]])
    found = augment(model, X[:50])
    np.testing.assert_allclose(found[".fitted"], model.predict_proba(X[:50])[:, 1])
    np.testing.assert_array_equal(found[".class"], model.predict(X[:50]))
    assert (found[".lower"] > 0).all()
    assert (found[".lower"] < found[".fitted"]).all()
    assert (found[".upper"] < 1).all()
    p = found[".fitted"]
    margin_error = found[".se.fit"] / (p * (1 - p))
    odds = np.log(found[".upper"] / (1 - found[".upper"]))
    np.testing.assert_allclose(odds, np.log(p / (1 - p)) + REACH * margin_error)


def test_a_classifier_without_probabilities_has_margins():
    y = X[:, 0] > 0
    model = PrivateLinearSVC(3.0, 1e-6, bounds=Bounds(1.0), random_state=0).fit(X, y)
    found = augment(model, X[:9])
    np.testing.assert_allclose(found[".fitted"], model.decision_function(X[:9]))
    np.testing.assert_array_equal(found[".class"], model.predict(X[:9]))


def test_several_classes_have_probabilities_without_errors():
    y = np.array(["a", "b", "c"])[RNG.integers(0, 3, len(X))]
    model = PrivateLogisticRegression(
        1.0, 1e-6, bounds=Bounds(1.0), classes=["a", "b", "c"], random_state=0
    ).fit(X, y)
    found = augment(model, X[:9])
    assert [*found] == [".fitted.a", ".fitted.b", ".fitted.c", ".class"]
    np.testing.assert_allclose(sum(found[f".fitted.{k}"] for k in "abc"), 1.0)


def test_models_that_say_nothing_have_nan():
    y = X[:, 0]
    plain = PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", random_state=0)
    assert np.isnan(augment(plain.fit(X, y), X[:3])[".se.fit"]).all()
    local = LocalLogisticRegression(2.0, bounds=Bounds(1.0), random_state=0).fit(X, y > 0)
    found = augment(local, X[:3])
    np.testing.assert_allclose(found[".fitted"], local.predict_proba(X[:3])[:, 1])
    assert np.isnan(found[".se.fit"]).all()
    again = augment(local.model_, X[:3])
    np.testing.assert_allclose(again[".fitted"], found[".fitted"])
    small = ProjectedRegression(1.0, bounds=Bounds(2.0, 1.0, norm="l2"), dimension=2).fit(X, y)
    assert np.isnan(augment(small, X[:3])[".se.fit"]).all()
    with pytest.raises(InvalidArgument, match="predicts nothing"):
        LocalSparseMean(1.0, bounds=Bounds(1.0)).fit(X).augment(X)


def test_a_level_is_a_probability(line):
    with pytest.raises(InvalidArgument, match="level"):
        line.augment(X[:2], level=2)


def test_without_an_intercept_it_has_no_error():
    model = PrivateLasso(
        2.0, 1e-6, bounds=Bounds(1.0, 2.0), fit_intercept=False, random_state=0
    ).fit(X, X[:, 0])
    assert augment(model, np.zeros((1, 3)))[".se.fit"].tolist() == [0.0]


def test_a_loaded_model_says_the_same_and_nothing_is_charged(line, tmp_path):
    riata.save(line, tmp_path / "m.riata")
    loaded = riata.load(tmp_path / "m.riata").augment(X[:3])
    pd.testing.assert_frame_equal(loaded, line.augment(X[:3]))
    ledger = riata.Ledger.create(":memory:", dataset="d", ceiling=riata.Budget(5.0, 1e-6))
    model = PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), ledger=ledger).fit(X, X[:, 0])
    model.augment(X[:3])
    assert len(ledger.charges) == 1
