"""What the server makes of the sums, against moments without noise and against degenerate ones."""

import math

import numpy as np
import pytest
from scipy.special import expit

from riata.errors import InvalidArgument
from riata.local import Aggregator, Task
from riata.local.learners.canonical import FAMILIES, canonical, normal_canonical
from riata.local.learners.lasso import lasso, project_l1
from riata.local.learners.mean import mean_model, threshold_mean
from riata.local.learners.model import slope_scale
from riata.local.learners.moments import Moments, raise_eigenvalues
from riata.local.learners.regression import (
    MOST_KEPT,
    regression_model,
    screen_columns,
    screening_level,
    wide_model,
)
from riata.local.learners.ridge import ridge
from riata.local.randomize import randomize
from riata.mechanisms.noise import Noise
from riata.sets import L1Ball

pytestmark = pytest.mark.matrix(one_in=11)

KINDS = ["mean", "sparse-mean", "linear", "lasso", "sparse-linear", "logistic", "poisson", "kernel"]
SPLIT = {"gram": 0.5, "cross": 0.5}
NEARLY_NONE = 1e-9


def task(kind, epsilon=1.0, size=4, features=None, **fields):
    table = {
        "kind": kind,
        "epsilon": epsilon,
        "features": features
        or [{"name": "v", "kind": "vector", "size": size, "bounds": [-1.0, 1.0]}],
        **fields,
    }
    if "mean" not in kind and "target" not in fields:
        number = {"name": "t", "kind": "number", "bounds": [-1.0, 1.0]}
        count = {"name": "t", "kind": "number", "bounds": [0.0, 9.0], "center": 1.0}
        yes_no = {"name": "t", "kind": "yes-no"}
        table["target"] = {"logistic": yes_no, "poisson": count}.get(kind, number)
    if kind == "kernel":
        table.setdefault("kernel", {"width": 1.0, "pairs": 6})
    elif "mean" not in kind:
        table.setdefault("intercept", 0.15)
    return Task.from_table(table)


def exact(one, encoded, targets, noise=NEARLY_NONE):
    """The moments that a task's reports estimate, with hardly any noise."""
    u = one.vectors(encoded)
    return Moments(u.T @ u / len(u), u.T @ targets / len(u), noise, noise)


def rows(n, d, seed=0):
    x = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    return x * np.linspace(1.0, 0.3, d) + 0.1


# Exact moments


@pytest.mark.parametrize("kind", ["linear", "lasso"])
@pytest.mark.parametrize("intercept", [0.0, 0.15])
def test_without_noise_regression_is_least_squares(kind, intercept):
    one = task(kind, size=4, length=1.5, intercept=intercept)
    x = rows(500, 4)
    y = np.clip(
        x @ [0.5, -0.3, 0.2, 0.1] + 0.1 * (intercept > 0) + 0.05 * np.cos(9 * x[:, 0]), -1, 1
    )
    model = regression_model(one, len(x), exact(one, one.encoding.encode_array(x), y))
    short = one.encoding.encode_array(x) * 1.5  # after rows were shortened into the ball
    design = np.column_stack([short, np.ones(len(x))]) if intercept else short
    wanted = np.linalg.lstsq(design, y)[0]
    np.testing.assert_allclose(model.coef, wanted[:4], atol=1e-5)
    assert model.intercept == pytest.approx(wanted[4] if intercept else 0.0, abs=1e-5)
    np.testing.assert_allclose(model.predict(x), design @ wanted, atol=1e-5)
    assert model.signal
    assert np.all(model.errors > 0)
    assert np.all(model.errors < 1e-4)


def test_the_lasso_finds_the_true_support():
    rng = np.random.default_rng(1)
    d, places = 60, [3, 17, 40]
    one = task("lasso", size=d, length=1.0)
    truth = np.zeros(d)
    truth[places] = [0.8, -0.6, 0.7]
    gram = np.diag(np.full(d + 1, 0.85 / d))
    gram[-1, -1] = 0.15
    noise = 1e-5
    cross = np.append(gram[:-1, :-1] @ truth, 0.0) + noise * rng.standard_normal(d + 1)
    e = noise * rng.standard_normal(gram.shape)
    model = regression_model(one, 1000, Moments(gram + (e + e.T) / 2**0.5, cross, noise, noise))
    assert np.flatnonzero(model.theta).tolist() == places
    np.testing.assert_allclose(model.theta[places], truth[places], atol=0.02)
    assert np.flatnonzero(model.theta_errors).tolist() == places


def test_small_eigenvalues_are_raised():
    values = np.linalg.eigvalsh(raise_eigenvalues(np.diag([1.0, 0.01, -0.5]), 0.1))
    np.testing.assert_allclose(values, [0.1, 0.1, 1.0])


def test_the_l1_norm_is_kept_within_the_radius_in_own_units():
    rng = np.random.default_rng(2)
    for _ in range(50):
        theta, units = rng.standard_normal(7), rng.uniform(0.1, 3.0, 7)
        radius = rng.uniform(0.01, 2.0)
        near = project_l1(theta, units, radius)
        length = np.abs(units * theta).sum()
        assert np.abs(units * near).sum() == pytest.approx(min(radius, length))
        for _ in range(20):  # nothing inside is nearer
            other = rng.standard_normal(7)
            other *= min(1.0, radius / np.abs(units * other).sum())
            assert np.sum((near - theta) ** 2) <= np.sum((other - theta) ** 2) + 1e-9
        same = project_l1(theta, np.ones(7), radius)
        np.testing.assert_allclose(same, L1Ball(radius).project(theta), atol=1e-9)
    zero = np.zeros(3)
    assert project_l1(zero, np.ones(3), 1.0) is zero


def test_the_radius_of_a_lasso_bounds_its_coefficients():
    features = [
        {"name": "a", "kind": "number", "bounds": [0.0, 100.0]},
        {"name": "b", "kind": "number", "bounds": [-1.0, 1.0], "weight": 2.0},
    ]
    target = {"name": "t", "kind": "number", "bounds": [0.0, 50.0]}
    one = task("lasso", features=features, target=target)
    x = np.random.default_rng(3).uniform([0, -1], [100, 1], (400, 2))
    y = 0.2 * x[:, 0] + 5.0 * x[:, 1] + 15.0
    moments = exact(one, one.encoding.encode_array(x), one.target.scale(y))
    free = regression_model(one, 400, moments)
    np.testing.assert_allclose(free.coef, [0.2, 5.0], rtol=1e-5)
    for radius in (4.0, 0.5, 1e-6):
        found = regression_model(one, 400, moments, radius)
        assert np.abs(found.coef).sum() == pytest.approx(radius)


def test_a_wide_model_keeps_to_the_radius_too():
    one = task("sparse-linear", size=5000, length=1.0)
    kept = np.array([7, 4000])
    gram = np.diag([0.1, 0.1, 0.15])
    cross = np.array([0.05, -0.02, 0.0])
    moments = Moments(gram, cross, NEARLY_NONE, NEARLY_NONE)
    scale = slope_scale(one)[0]
    free = wide_model(one, 10, kept, moments)
    np.testing.assert_allclose(free.coef[kept], scale * np.array([0.5, -0.2]), rtol=1e-5)
    assert np.flatnonzero(free.coef).tolist() == kept.tolist()
    assert np.abs(wide_model(one, 10, kept, moments, 0.1).coef).sum() == pytest.approx(0.1)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
@pytest.mark.parametrize("center", [0.05, 0.35, 0.5, 0.75])
@pytest.mark.parametrize("spread", [0.1, 0.5, 1.0])
def test_the_canonical_model_predicts_what_least_squares_saw(family, center, spread):
    """From true coefficients to the slopes of least squares, and back."""
    law, rng = FAMILIES[family], np.random.default_rng(3)
    rows = np.column_stack([rng.standard_normal(4000), rng.random(4000) < 0.05])
    rows = rows - rows.mean(axis=0)
    chances = np.full(4000, 1 / 4000)
    truth, offset = spread * np.array([1.0, -2.0]), law.link(center)
    means = law.mean(offset + rows @ truth)
    slopes = np.linalg.lstsq(rows, means - means.mean())[0]
    found = canonical(law, rows, chances, slopes, means.mean(), 1e-12)
    np.testing.assert_allclose(found.theta, truth, rtol=1e-6)
    assert found.offset == pytest.approx(offset, abs=1e-6)
    nearby = canonical(law, rows, chances, slopes + np.array([1e-5, 0.0]), means.mean(), 1e-12)
    np.testing.assert_allclose(
        (nearby.theta - found.theta) / 1e-5, found.jacobian[:, 0], rtol=1e-2, atol=1e-3
    )


def test_impossible_moments_have_a_model_too():
    for law in FAMILIES.values():
        for center in (-5.0, 0.0, 1.0, 7.0):
            for variance in (0.0, 1e-12, 0.5, 1.0, 100.0):
                scale, offset = normal_canonical(law, variance, center)
                assert 0.0 <= scale * math.sqrt(variance) <= law.steepest + 1e-9
                assert math.isfinite(offset)


@pytest.mark.parametrize("kind", ["logistic", "poisson"])
def test_rare_answers_are_no_bias(kind):
    """Least squares with a scale would be off by 0.3 and more."""
    rng = np.random.default_rng(8)
    n, truth = 400_000, np.array([1.5, -1.0, 0.7])
    features = [{"name": f"x{j}", "kind": "yes-no", "center": 0.0} for j in range(3)]
    one = task(kind, features=features)
    x = (rng.random((n, 3)) < [0.1, 0.05, 0.3]).astype(float)
    x[:, 2] = np.where(rng.random(n) < 0.3, x[:, 0], x[:, 2])  # related to another one
    margins = x @ truth - 0.5
    y = rng.random(n) < expit(margins) if kind == "logistic" else rng.poisson(np.exp(margins))
    targets = 2.0 * y - 1.0 if kind == "logistic" else one.target.scale(y.astype(float))
    model = regression_model(one, n, exact(one, one.encoding.encode_array(x), targets, 1e-6))
    np.testing.assert_allclose(model.coef, truth, atol=0.08)
    assert model.intercept == pytest.approx(-0.5, abs=0.05)


def test_logistic_coefficients_of_normal_rows_are_recovered():
    rng = np.random.default_rng(4)
    n, d, truth = 400_000, 3, np.array([4.0, -2.0, 1.0])
    one = task("logistic", size=d, length=5.0)
    x = 0.25 * rng.standard_normal((n, d)).clip(-4, 4)
    labels = rng.random(n) < expit(x @ truth + 0.4)
    encoded = one.encoding.encode_array(x)
    model = regression_model(one, n, exact(one, encoded, 2.0 * labels - 1.0, 1e-6))
    # A standard error of the rows themselves is about 0.015: 6 of them fail less often than 1e-8.
    np.testing.assert_allclose(model.coef, truth, atol=0.1)
    assert model.intercept == pytest.approx(0.4, abs=0.08)
    chance = model.predict_probability(x[:100])
    np.testing.assert_array_equal(model.predict(x[:100]), chance > 0.5)
    np.testing.assert_allclose(chance, expit(model.intercept + x[:100] @ model.coef), atol=1e-12)


def test_a_kernel_model_follows_a_smooth_function():
    one = task("kernel", size=1, kernel={"width": 0.5, "pairs": 24})
    x = np.linspace(-1, 1, 400)[:, None]
    y = 0.8 * np.sin(4 * x[:, 0])
    model = regression_model(one, 400, exact(one, one.encoding.encode_array(x), y, 1e-7))
    assert np.abs(model.predict(x) - y).max() < 0.05
    with pytest.raises(AttributeError, match="no coefficients"):
        model.coef  # noqa: B018
    assert "kernel model with 48 features" in str(model)


def test_thresholds_of_means():
    mean, level = np.array([5.0, -4.0, 0.5, 0.0]), math.sqrt(2 * math.log(5))
    assert threshold_mean(mean, 1.0, "none") is mean
    np.testing.assert_allclose(threshold_mean(mean, 1.0, "hard"), [5.0, -4.0, 0.0, 0.0])
    np.testing.assert_allclose(threshold_mean(mean, 1.0, "soft"), [5 - level, level - 4, 0, 0])


def test_a_sparse_mean_without_a_clear_coordinate_is_no_signal():
    seen = np.array([3.0, -2.9, 0.1, 0.0])
    for threshold in ("hard", "soft"):
        silent = mean_model(task("sparse-mean"), 10, seen, 1.0, threshold)
        assert not silent.signal
        assert not silent.theta.any()
        clear = mean_model(task("sparse-mean"), 10, 2 * seen, 1.0, threshold)
        assert clear.signal
        assert np.flatnonzero(clear.theta).tolist() == [0, 1]
    plain = mean_model(task("mean"), 10, seen, 1.0)
    assert not plain.signal
    np.testing.assert_array_equal(plain.theta, seen)


def test_screening_keeps_the_columns_that_are_clear():
    cross = np.zeros(10_001)
    cross[[5, 77, 9_000]] = [9.0, -8.0, 7.0]
    cross[-1] = 100.0  # the constant
    assert screen_columns(cross, 1.0, True).tolist() == [5, 77, 9_000]
    assert screen_columns(cross, 1.0, False).tolist() == [5, 77, 9_000, 10_000]
    assert screen_columns(cross, 3.0, True).tolist() == []
    many = np.linspace(10, 20, 300)
    assert screen_columns(many, 1.0, False).tolist() == list(range(300 - MOST_KEPT, 300))
    assert screening_level(1) < screening_level(100) < screening_level(10_000)


def test_means_that_are_noise_are_pulled_to_0_and_clear_ones_are_not():
    gram = np.diag([0.3, 0.2, 0.15])
    gram[:2, 2] = gram[2, :2] = np.array([0.2, -0.1]) * math.sqrt(0.15)
    cross = np.array([0.1, 0.1, 0.3 * math.sqrt(0.15)])
    clear = Moments(gram, cross, NEARLY_NONE, NEARLY_NONE).covariances(0.15)
    np.testing.assert_allclose(clear.means, [0.2, -0.1])
    np.testing.assert_allclose(clear.gram, np.diag([0.3, 0.2]) - np.outer(clear.means, clear.means))
    np.testing.assert_allclose(clear.cross, [0.1 - 0.06, 0.1 + 0.03])
    assert clear.center == pytest.approx(0.3)
    noisy = Moments(gram, cross, 1.0, 1.0).covariances(0.15)
    assert np.all(noisy.means == 0)
    assert noisy.center == 0.0


# Units

MIXED = [
    {"name": "age", "kind": "number", "bounds": [18.0, 90.0], "center": 40.0, "weight": 0.5},
    {"name": "smokes", "kind": "yes-no"},
    {"name": "town", "kind": "choice", "choices": ["a", "b", "c"], "weight": 2.0},
    {"name": "v", "kind": "vector", "size": 2, "bounds": [-3.0, 1.0]},
]
TARGET = {"name": "t", "kind": "number", "bounds": [-10.0, 30.0], "center": 5.0}


def people(n, seed=5):
    rng = np.random.default_rng(seed)
    return [
        {
            "age": float(rng.uniform(18, 90)),
            "smokes": bool(rng.random() < 0.3),
            "town": "abc"[rng.integers(3)],
            "v": rng.uniform(-3, 1, 2),
        }
        for _ in range(n)
    ]


def numbers(person):
    """The columns in the units of the answers."""
    town = [float(person["town"] == choice) for choice in "abc"]
    return [person["age"], float(person["smokes"]), *town, *person["v"]]


@pytest.mark.parametrize("intercept", [0.0, 0.15])
def test_coefficients_are_in_the_units_of_the_answers(intercept):
    one = task("linear", features=MIXED, target=TARGET, intercept=intercept)
    asked = people(600)
    encoded = np.array([one.encoding.encode(person) for person in asked])
    x = np.array([numbers(person) for person in asked])
    y = np.clip(0.1 * x[:, 0] - 2 * x[:, 1] + x[:, 3] + 1.5 * x[:, 5] + 3.0, -10, 30)
    model = regression_model(one, 600, exact(one, encoded, one.target.scale(y)))
    assert len(model.coef) == len(model.names) == 7
    predicted = model.predict(asked)
    np.testing.assert_allclose(predicted, model.intercept + x @ model.coef, rtol=1e-9)
    if intercept:  # columns of choices sum to 1, so only differences between them are known
        np.testing.assert_allclose(predicted, y, atol=1e-3)
        np.testing.assert_allclose(model.coef[[0, 1, 5, 6]], [0.1, -2.0, 1.5, 0.0], atol=1e-3)
        assert model.coef[3] - model.coef[2] == pytest.approx(1.0, abs=1e-3)


def test_arrays_lists_and_dicts_predict_alike():
    features = [MIXED[0], MIXED[1]]
    one = task("linear", features=features, target=TARGET)
    x = np.array([[20.0, 1.0], [50.0, 0.0], [90.0, 1.0]])
    gram = np.diag([0.1, 0.1, 0.15])
    model = regression_model(one, 3, Moments(gram, np.array([0.05, 0.02, 0.1]), 1e-6, 1e-6))
    expected = model.intercept + x @ model.coef
    np.testing.assert_allclose(model.predict(x), expected)
    np.testing.assert_allclose(model.predict(x.tolist()), expected)
    dicts = [{"age": age, "smokes": bool(smokes)} for age, smokes in x]
    np.testing.assert_allclose(model.predict(dicts), expected)
    np.testing.assert_allclose(model.predict(x.astype(int)), expected)
    clipped = model.predict(np.array([[1e9, np.nan]]))
    np.testing.assert_allclose(clipped, model.predict([{"age": 90}]))
    with pytest.raises(InvalidArgument, match=r"2 columns"):
        model.predict(np.zeros((2, 3)))
    assert model.predict(np.zeros((0, 2))).shape == (0,)
    assert model.predict([]).shape == (0,)


def test_means_are_in_the_units_of_the_answers():
    one = task("mean", features=MIXED)
    asked = people(300)
    x = np.array([numbers(person) for person in asked])
    encoded = np.array([one.encoding.encode(person) for person in asked])
    model = mean_model(one, 300, encoded.mean(axis=0), 1e-9)
    np.testing.assert_allclose(model.mean, x.mean(axis=0), rtol=1e-9)
    ends = model.intervals(0.9)
    np.testing.assert_allclose(ends.mean(axis=1), model.mean)
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * 1.6448536 * model.errors, rtol=1e-6)
    assert np.all(model.intervals(0.99)[:, 1] > ends[:, 1])
    for missing in ("coef", "intercept"):
        with pytest.raises((AttributeError, AssertionError)):
            getattr(model, missing)
    with pytest.raises(AttributeError, match="no predictions"):
        model.predict(asked)


def test_intervals_and_errors_of_coefficients_have_their_units():
    small = task("linear", features=[MIXED[0], MIXED[1]], target=TARGET)
    wide = {**TARGET, "bounds": [-1000.0, 3000.0], "center": 500.0}
    large = task("linear", features=[MIXED[0], MIXED[1]], target=wide)
    moments = Moments(np.diag([0.1, 0.1, 0.15]), np.array([0.05, 0.02, 0.1]), 1e-4, 1e-4)
    one, two = (regression_model(t, 9, moments) for t in (small, large))
    np.testing.assert_allclose(two.coef, 100 * one.coef)
    np.testing.assert_allclose(two.errors, 100 * one.errors)
    np.testing.assert_allclose(one.intervals()[:, 1] - one.coef, 1.6448536 * one.errors, rtol=1e-6)


# No signal


@pytest.mark.parametrize("kind", ["linear", "lasso", "logistic", "poisson", "kernel"])
def test_without_signal_a_model_predicts_a_constant(kind):
    one = task(kind, size=3)
    size = one.vector_size
    rng = np.random.default_rng(6)
    moments = Moments(np.eye(size) / size, 0.1 * rng.standard_normal(size), 0.1, 0.1)
    model = regression_model(one, 1000, moments)
    assert not model.signal
    assert not model.theta.any()
    assert not model.theta_errors.any()
    assert "no signal" in str(model)
    x = rows(50, 3)
    assert len(np.unique(model.predict(x))) == 1
    if kind == "logistic":
        np.testing.assert_allclose(model.predict_probability(x), 0.5)


def test_without_signal_the_clear_mean_of_the_target_is_still_predicted():
    one = task("linear", size=2)
    cross = np.array([0.0, 0.0, 0.4 * math.sqrt(0.15)])
    model = regression_model(one, 1000, Moments(np.diag([0.1, 0.1, 0.15]), cross, 0.01, 0.01))
    assert not model.signal
    np.testing.assert_allclose(model.predict(np.zeros((3, 2))), 0.4, rtol=1e-3)


def test_more_evidence_is_wanted_where_more_was_searched():
    moments = Moments(np.diag([0.1, 0.1]), np.array([0.045, 0.0]), 1e-6, 0.01).covariances(0)
    assert ridge(moments).signal
    assert not ridge(moments, 40.0).signal
    many = Moments(np.eye(400) * 0.1, np.append(0.045, np.zeros(399)), 1e-6, 0.01)
    assert not lasso(many.covariances(0), np.ones(400)).signal


# Degenerate collections


def finite(model, size):
    held = [model.theta, model.theta_errors, [model.offset, model.evidence]]
    if model.task.kind != "kernel":
        held += [model.errors, model.intervals()]
    if model.task.target is not None:
        held.append(np.asarray(model.predict(np.ones((2, size))), dtype=float))
        assert model.signal or not model.theta.any()
    assert str(model)
    assert model.privacy.private
    return all(np.isfinite(values).all() for values in held)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.001, 1.0, 16.0])
def test_few_reports_make_a_model(kind, epsilon):
    for size in (1, 2, 5):
        one = task(kind, epsilon, size)
        for n in (0, 1, 2, 3, 40):
            seeds = np.random.default_rng(n).integers(0, 2**64, n, dtype=np.uint64)
            assert finite(Aggregator(one, expected=100).add(seeds).solve(), size)


@pytest.mark.parametrize("kind", KINDS[2:])
@pytest.mark.parametrize("silent", ["gram", "cross"])
def test_an_arm_without_reports_is_no_signal_or_no_harm(kind, silent):
    one = task(kind, 1.0, 3, arms=SPLIT)
    seeds = np.random.default_rng(7).integers(0, 2**64, 200, dtype=np.uint64)
    question = one.question(silent)
    theirs = (seeds >= question.first) & (seeds - np.uint64(question.first) < question.seeds)
    aggregator = Aggregator(one, expected=100).add(seeds[~theirs])
    assert aggregator.sums[silent].count == 0
    assert finite(aggregator.solve(), 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 1.0, np.nan, np.inf])
def test_rows_that_are_all_the_same(kind, value):
    one = task(kind, 4.0, 2)
    x = one.encoding.encode_array(np.full((300, 2), value))
    y = None if one.target is None else np.ones(300)
    assert finite(Aggregator(one, expected=300).add(randomize(one, x, y, Noise(8))).solve(), 2)


def test_moments_of_zero_and_without_noise_are_no_signal():
    one = task("linear", size=2)
    model = regression_model(one, 0, Moments(np.zeros((3, 3)), np.zeros(3), 1.0, 1.0))
    assert not model.signal
    assert np.all(model.predict(np.ones((2, 2))) == 0)
