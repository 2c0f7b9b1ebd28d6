"""Ordered classes and durations: references, hostile rows, schemas, files, what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from riata import (
    Bounds,
    PrivateCoxRegression,
    PrivateLasso,
    PrivateOrdinalRegression,
    PrivateSearch,
    Schema,
    export_onnx,
    forecast,
    load,
    read,
    save,
)
from riata.errors import Incompatible, InvalidArgument
from riata.estimators.augment import augment
from riata.evaluation import evaluate, private_score
from riata.losses import Cox, OrderedLogistic
from riata.losses.cox import signed_durations

N = 6_000
RNG = np.random.default_rng(26)
X = RNG.uniform(-1, 1, (N, 3))
MARGIN = X @ [1.0, -0.8, 0.6]
PAIN = np.digitize(MARGIN + RNG.logistic(size=N), [-1.0, 0.5, 1.5])
DIED_AT = RNG.exponential(8 * np.exp(-MARGIN))
LEFT_AT = RNG.uniform(1, 14, N)
TIME = np.minimum(DIED_AT, LEFT_AT)
DIED = DIED_AT <= LEFT_AT


def ordinal(epsilon=2.0, **more):
    given = {"delta": 1e-6, "bounds": Bounds(1.0), "classes": range(4), "random_state": 1}
    return PrivateOrdinalRegression(epsilon, **given | more)


def cox(epsilon=2.0, **more):
    given = {"delta": 1e-6, "bounds": Bounds(1.0, 10.0), "random_state": 1}
    return PrivateCoxRegression(epsilon, **given | more)


# Without noise: the references of other libraries. Estimates are shrunken by about their sampling
# variance over themselves, which for so many rows is below a thousandth.


def many_rows(n=60_000):
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n, 3)) + np.array([0.2, 0.0, -0.1])
    return rng, x, x @ [1.0, -0.8, 0.9]


def assert_errors_are_on_the_safe_side(found, reference):
    """The curvature at the model is extrapolated, and rather too small than too large."""
    assert np.all((found > 0.98 * reference) & (found < 1.15 * reference))


@pytest.mark.long
def test_without_noise_ordered_classes_are_those_of_statsmodels():
    models = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    rng, x, margin = many_rows()
    y = np.digitize(margin + rng.logistic(size=len(x)), [-1.0, 0.5, 1.5])
    reference = models.OrderedModel(y, x, distr="logit").fit(method="bfgs", disp=0, gtol=1e-7)
    found = ordinal(1e9, bounds=Bounds(1.5), steps=60).fit(x, y)
    np.testing.assert_allclose(found.coef_, reference.params[:3], atol=1e-3)
    ends = reference.model.transform_threshold_params(reference.params)
    np.testing.assert_allclose(found.thresholds_, ends[1:-1], atol=1e-3)
    assert_errors_are_on_the_safe_side(found.coef_error_, reference.bse[:3])


@pytest.mark.long
def test_without_noise_rounded_durations_are_coxs_with_the_ties_of_breslow():
    """Every row is then at risk for whole bands, as in the partial likelihood of tied times."""
    hazards = pytest.importorskip("statsmodels.duration.hazard_regression")
    rng, x, margin = many_rows()
    died_at, left_at = rng.exponential(8 * np.exp(-margin)), rng.uniform(1, 14, len(x))
    months = np.ceil(np.minimum(np.minimum(died_at, left_at), 10))
    died = died_at <= np.minimum(left_at, 10)
    reference = hazards.PHReg(months, x, status=died, ties="breslow").fit(disp=0)
    found = cox(1e9, bounds=Bounds(1.5, 10.0), bands=10, steps=60).fit(x, months, died)
    np.testing.assert_allclose(found.coef_, reference.params, atol=1e-3)
    assert_errors_are_on_the_safe_side(found.coef_error_, reference.bse)


@pytest.mark.long
def test_without_noise_bands_are_a_poisson_regression_of_the_rows_of_all_bands():
    sm = pytest.importorskip("statsmodels.api")
    rng, x, margin = many_rows()
    died_at, left_at = rng.exponential(8 * np.exp(-margin)), rng.uniform(1, 14, len(x))
    t, died = np.minimum(died_at, left_at), died_at <= left_at
    ends = [2.0, 5.0, 10.0]
    lines, counts, times = [], [], []
    for k, (low, high) in enumerate(zip([0.0, *ends[:-1]], ends, strict=True)):
        here = t > low
        band = np.zeros((here.sum(), len(ends)))
        band[:, k] = 1
        lines.append(np.hstack([x[here], band]))
        counts.append(died[here] & (t[here] <= high))
        times.append(np.minimum(t[here], high) - low)
    glm = sm.GLM(np.concatenate(counts), np.vstack(lines), family=sm.families.Poisson(),
                 exposure=np.concatenate(times)).fit()  # fmt: skip
    found = cox(1e9, bounds=Bounds(1.5, 10.0), bands=ends, steps=60).fit(x, t, died)
    np.testing.assert_allclose(found.coef_, glm.params[:3], atol=1e-3)
    np.testing.assert_allclose(np.log(found.baseline_hazard_), glm.params[3:], atol=2e-3)


# Private fits.


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_private_fits_find_the_model(epsilon):
    """False alarms: the fits are seeded; each number is within four standard errors."""
    for model in (ordinal(epsilon).fit(X, PAIN), cox(epsilon).fit(X, TIME, DIED)):
        assert np.all(np.abs(model.coef_ - [1.0, -0.8, 0.6]) < 4 * model.coef_error_)
        assert np.all(model.coef_error_ < 0.3)
    assert cox(epsilon).fit(X, TIME, DIED).score(X, TIME, DIED) > 0.65


def test_probabilities_and_survival_are_those_of_the_model():
    model = ordinal(8.0).fit(X, PAIN)
    chances = model.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert chances.min() > 0
    shares = np.bincount(PAIN) / N
    np.testing.assert_allclose(chances.mean(axis=0), shares, atol=0.03)
    assert model.score(X, PAIN) > shares.max() + 0.05
    survival = cox(8.0).fit(X, TIME, DIED)
    found = survival.predict_survival_function(X, [0.0, 2.0, 5.0, 10.0, 99.0])
    assert np.all(found[:, 0] == 1)
    assert np.all(np.diff(found, axis=1) <= 0)
    np.testing.assert_array_equal(found[:, 3], found[:, 4])
    truth = np.exp(-np.exp(MARGIN)[:, None] * np.array([2.0, 5.0, 10.0]) / 8)
    np.testing.assert_allclose(found[:, 1:4].mean(axis=0), truth.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(survival.hazard_ratios_, np.exp(survival.coef_))
    np.testing.assert_array_equal(survival.predict(X), survival.predict_partial_hazard(X))
    np.testing.assert_allclose(
        np.log(survival.predict(X)), survival.predict_log_partial_hazard(X), atol=1e-9
    )


@pytest.mark.parametrize(
    ("n_classes", "thresholds"), [(2, (0.3,)), (3, (0.0, 1e-6)), (4, (-2.0, -1.0, 1.0))]
)
def test_the_curvature_of_ordered_classes_keeps_its_bound_and_narrow_classes_reach_it(
    n_classes, thresholds
):
    loss = OrderedLogistic(n_classes, thresholds)
    margins, bound = np.linspace(-40, 40, 80_001), loss.curvature_bound(float(n_classes))
    codes = (-1.0, *range(n_classes), n_classes, math.nan)
    curvatures = [loss.curvature(margins, np.full(len(margins), code)) for code in codes]
    assert np.min(curvatures) >= 0
    assert np.max(curvatures) <= bound
    assert (np.max(curvatures) > bound * (1 - 1e-5)) == (n_classes < 4)


@pytest.mark.parametrize("classes", [["mild", "severe"], ["severe", "mild"]])
def test_two_ordered_classes_are_told_by_their_threshold(classes):
    y = np.array(classes)[(PAIN > 2).astype(int)]
    model = ordinal(8.0, classes=classes).fit(X, y)
    found = model.augment(X)
    for k, label in enumerate(model.classes_):
        np.testing.assert_array_equal(found[f".fitted.{label}"], model.predict_proba(X)[:, k])
    np.testing.assert_array_equal(found[".class"], model.predict(X))
    assert evaluate(model, X, y).scores["AUC"] > 0.6  # and not one minus this


def test_errors_of_hazards_are_those_of_what_is_told():
    """The hazard over that of a row of zeros: where the rows of the fit lie is no part of it."""
    model = cox(8.0).fit(X, TIME, DIED)
    rows = np.array([[0.0, 0, 0], [1.0, 0, 0], [0.5, -0.5, 0.2]])
    whole = model.coef_covariance_[0, :-1, :-1]
    expected = np.sqrt(np.einsum("ij,jk,ik->i", rows, whole, rows))
    found = model.augment(rows)
    np.testing.assert_allclose(found[".se.fit"], expected * found[".fitted"])
    np.testing.assert_allclose(found[".fitted"], model.predict_partial_hazard(rows))
    del model.coef_covariance_
    bound = np.abs(rows) @ np.where(model.coef_ != 0, model.coef_error_, 0.0)
    np.testing.assert_allclose(augment(model, rows)[".se.fit"], bound * found[".fitted"])


def test_pure_noise_is_given_up():
    """False alarms: seeded; a model of noise has coefficients that do not stand out."""
    y, t = RNG.permutation(PAIN), RNG.permutation(TIME)
    for model in (ordinal(0.5).fit(X, y), cox(0.5).fit(X, t, RNG.permutation(DIED))):
        assert np.abs(model.coef_).sum() < 0.5
        assert np.isfinite(model.coef_).all()


HOSTILE = [1e300, -1e300, np.nan, np.inf, -np.inf, -1.0, 0.0]


def test_hostile_durations_are_clipped_and_censored():
    t, event = np.array([*HOSTILE, 3.0, 10.0]), np.ones(9)
    found = signed_durations(t, event, 10.0)
    np.testing.assert_array_equal(found, [-10, 0, 0, -10, 0, 0, 0, 3, 10])
    np.testing.assert_array_equal(
        signed_durations(t, np.full(9, np.nan), 10.0), [-10, 0, 0, -10, 0, 0, 0, -3, -10]
    )
    time, died = TIME.copy(), DIED.astype(float)
    time[:7], died[3:6] = HOSTILE, [1e300, np.nan, -np.inf]
    rows = X.copy()
    rows[:3] = [[1e300, np.nan, -np.inf]] * 3
    model = cox().fit(rows, time, died)
    assert np.isfinite(model.coef_).all()
    assert np.all(model.baseline_hazard_ > 0)
    labels = PAIN.astype(float)
    labels[:7] = HOSTILE
    other = ordinal().fit(rows, labels)
    assert np.isfinite(other.coef_).all()
    assert np.all(np.diff(other.thresholds_) > 0)


@pytest.mark.parametrize("kind", ["no events", "all at once", "nobody at risk", "one class"])
def test_degenerate_rows_end_with_a_model(kind):
    t, died, y = TIME, DIED, PAIN
    if kind == "no events":
        died = np.zeros(N, bool)
    elif kind == "all at once":
        t, died = np.full(N, 10.0), np.ones(N, bool)
    elif kind == "nobody at risk":
        t = np.full(N, np.nan)
    else:
        y = np.zeros(N, int)
    model, other = cox(0.3).fit(X, t, died), ordinal(0.3).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.baseline_hazard_).all()
    assert np.isfinite(other.coef_).all()
    assert np.all(np.diff(other.thresholds_) > 0)


def test_a_band_of_hardly_any_width_ends_with_a_model():
    """Warnings are errors here: a hazard of more than 1e308 was one, after the charge."""
    means = np.array([[0.5, 0.2, 0.1], [0.5, 0.2, 0.1]])
    found = Cox((5e-324, 1.0)).refitted(means, 0.01, 0.5, constant=False)
    assert np.isfinite(found.rates).all()


# Schemas, files, reports.


@pytest.fixture(scope="module")
def frame():
    words = np.array(["none", "some", "much", "unbearable"], dtype=object)
    died = np.where(DIED, "yes", "no").astype(object)
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": TIME, "died": died, "pain": words[PAIN]})


def schema(target, ignored):
    features = [{"name": k, "kind": "number", "bounds": [-1, 1], "knots": 0} for k in "ab"]
    return Schema.from_table({"ignore": ignored, "features": features, "target": target})


DURATION = {"name": "t", "bounds": [0, 10], "event": "died"}
ORDERED = {"name": "pain", "classes": ["none", "some", "much", "unbearable"]}


@pytest.mark.not_quick
def test_a_schema_names_the_event(frame, tmp_path):
    made = schema(DURATION, ["pain"])
    made_again = tmp_path / "schema.toml"
    made_again.write_text(made.toml())
    assert Schema.load(made_again).target == made.target
    model = PrivateCoxRegression(4.0, 1e-6, random_state=1).fit(read(frame, made))
    assert model.coef_[0] > 0.5 > -0.3 > model.coef_[1]
    assert model.score(frame) == model.score(frame, TIME, DIED) > 0.6
    with pytest.raises(InvalidArgument, match="would take it for a number"):
        PrivateLasso(4.0, 1e-6).fit(read(frame, made))
    plain = schema({"name": "t", "bounds": [0, 10]}, ["pain", "died"])
    with pytest.raises(InvalidArgument, match="needs a duration and an event"):
        PrivateCoxRegression(4.0, 1e-6).fit(read(frame, plain))
    with pytest.raises(InvalidArgument, match="rows in arrays"):
        PrivateCoxRegression(4.0, 1e-6).fit(read(frame, made), event=DIED)
    for wrong in (DURATION | {"bounds": [1, 10]}, {"name": "t", "classes": [0, 1], "event": "x"}):
        with pytest.raises(InvalidArgument, match="event"):
            schema(wrong, [])


def test_a_schema_lists_classes_in_their_order(frame):
    model = PrivateOrdinalRegression(4.0, 1e-6, random_state=1)
    model.fit(read(frame, schema(ORDERED, ["t", "died"])))
    assert model.ordered_classes_.tolist() == ORDERED["classes"]
    assert model.classes_.tolist() == sorted(ORDERED["classes"])
    assert model.coef_[0] > 0.5 > -0.3 > model.coef_[1]
    assert model.score(frame) == np.mean(model.predict(frame) == frame["pain"])
    shares = frame["pain"].value_counts(normalize=True)[model.classes_]
    np.testing.assert_allclose(model.predict_proba(frame).mean(axis=0), shares, atol=0.05)
    assert evaluate(model, frame).scores["accuracy"] == pytest.approx(model.score(frame))


def test_models_are_saved_described_and_exported(tmp_path):
    for name, model in (("o", ordinal().fit(X, PAIN)), ("c", cox().fit(X, TIME, DIED))):
        save(model, tmp_path / name)
        again = load(tmp_path / name)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert clone(model).bounds.y == model.bounds.y
        text = str(model.summary())
        assert ("odds ratio" if name == "o" else "hazard ratio") in text
        assert ("thresholds" if name == "o" else "baseline hazard") in text
        assert "(intercept)" not in text
        assert str(again.summary()) == text
        assert len(model.augment(X[:3])) == 3
        onnx = pytest.importorskip("onnx.reference")
        export_onnx(model, tmp_path / "model.onnx")
        graph = onnx.ReferenceEvaluator(str(tmp_path / "model.onnx"))
        found = graph.run(None, {graph.input_names[0]: X[:9]})
        if name == "o":
            np.testing.assert_array_equal(found[0], model.predict(X[:9]))
            np.testing.assert_allclose(found[-1], model.predict_proba(X[:9]), atol=1e-9)
        else:
            np.testing.assert_allclose(found[0], model.predict(X[:9]), rtol=1e-9)


# What is refused.


def test_what_cannot_be_fitted_is_refused_before_anything_is_charged():
    for wrong, says in (
        (lambda: ordinal(classes=None), "their order cannot be read"),
        (lambda: ordinal(classes=[1, 1]), "two different labels"),
        (lambda: ordinal(fit_intercept=False), "thresholds take its place"),
        (lambda: cox(bounds=Bounds(1.0)), "horizon"),
        (lambda: cox(bands=0), "at least 1"),
        (lambda: cox(bands=[1.0, 9.0]), "another time"),
        (lambda: cox(bands="many"), "number of bands"),
    ):
        with pytest.raises(InvalidArgument, match=says):
            wrong().plan(1_000, 3)
    for wrong in ({"delta": 0}, {"solver": "greedy"}, {"epsilon": math.inf}):
        for model in (ordinal(**wrong), cox(**wrong)):
            with pytest.raises(Incompatible):
                model.plan(1_000, 3)
    with pytest.raises(Incompatible, match="has none"):
        PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), solver="profile-gradient").plan(1_000, 3)
    with pytest.raises(InvalidArgument):
        OrderedLogistic(3, (1.0, 0.0))
    with pytest.raises(InvalidArgument):
        Cox((1.0, 1.0))
    with pytest.raises(InvalidArgument):
        Cox((1.0, 2.0), (1.0,))
    for model in (ordinal(None, delta=None), cox(None, delta=None)):
        with pytest.raises(Incompatible, match="something else"):
            PrivateSearch(model.set_params(random_state=None), {"steps": [4, 8]}, 1.0, 1e-6).fit(
                X, PAIN
            )
    with pytest.raises(InvalidArgument, match="score"):
        evaluate(cox().fit(X, TIME, DIED), X, TIME)


def test_forecasts_and_private_scores_know_no_order_and_no_durations():
    for model, y in ((ordinal(), PAIN), (cox(), TIME)):
        with pytest.raises(Incompatible):
            forecast(model, 1_000, 3)
        with pytest.raises(Incompatible, match="something else"):
            private_score(model.fit(X, y), X, y, epsilon=1.0)


def test_a_plan_costs_what_was_asked_for():
    for model in (ordinal(1.0), cox(1.0)):
        made = model.plan(1_000, 3)
        assert 0.999999 < made.spent.epsilon <= 1.0
        assert made.solver == "profile-gradient"
        assert "table" in str(made)


@pytest.mark.parametrize("name", ["cox", "ordinal"])
def test_a_file_is_fitted_from_the_command_line(name, frame, tmp_path, riata_command):
    made = schema(DURATION, ["pain"]) if name == "cox" else schema(ORDERED, ["t", "died"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "rows.toml").write_text(made.toml())
    given = ["--schema", tmp_path / "rows.toml", "--epsilon", "4", "--delta", "1e-6", "--seed", "1"]
    out, rows = tmp_path / "fitted", tmp_path / "rows.csv"
    done = riata_command("fit", "--data", rows, "--estimator", name, *given, "--out", out, "--yes")
    assert done.code == 0, done.err
    model = load(out / "model.riata")
    kind = PrivateCoxRegression if name == "cox" else PrivateOrdinalRegression
    assert type(model) is kind
    assert model.coef_[0] > 0.5 > -0.3 > model.coef_[1]


@pytest.mark.parametrize("engine", ["disk", "scan", "numpy"])
def test_every_engine_releases_the_same(engine):
    for model, y in ((ordinal, (PAIN,)), (cox, (TIME, DIED))):
        found = model(engine=engine).fit(X, *y)
        np.testing.assert_array_equal(found.coef_, model().fit(X, *y).coef_)


def test_people_are_protected_with_all_their_rows(frame):
    table = frame.assign(id=np.arange(N) // 2)
    made = Schema.from_table({
        "person": "id", "rows_of_a_person": 2, "ignore": ["pain"], "target": DURATION,
        "features": [{"name": "a", "kind": "number", "bounds": [-1, 1], "knots": 0},
                     {"name": "b", "kind": "number", "bounds": [-1, 1], "knots": 0}],
    })  # fmt: skip
    model = PrivateCoxRegression(4.0, 1e-6, adjacency="replace-person", random_state=1)
    source = read(table, made, random_state=1)
    assert model.fit(source).coef_[0] > 0.3
    assert "person" in model.privacy_.sentence or "people" in model.privacy_.sentence
