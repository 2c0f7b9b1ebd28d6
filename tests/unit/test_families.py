"""Regressions of counts, amounts and quantiles: links, deviance, weights, exposures, references."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import (
    GammaRegressor,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn.metrics import (
    d2_pinball_score,
    d2_tweedie_score,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_tweedie_deviance,
)

from riata import (
    Bounds,
    PrivateErm,
    PrivateGammaRegression,
    PrivateNegativeBinomialRegression,
    PrivatePoissonRegression,
    PrivateQuantileRegression,
    PrivateTweedieRegression,
    Schema,
    export_onnx,
    forecast,
    load,
    read,
    save,
)
from riata.errors import Incompatible, InvalidArgument
from riata.losses import Gamma, NegativeBinomial, Poisson, Tweedie
from riata.losses.exponential import exponential, logarithm
from riata.sets import L1Ball
from riata.solvers import PerturbedObjective

N, P = 4_000, 4
RNG = np.random.default_rng(26)
X = RNG.uniform(-1, 1, (N, P))
MEAN = np.exp(0.3 + X @ [0.8, -0.5, 0.3, 0.0])
YEARS = RNG.uniform(0.1, 1.0, N)
WEIGHTS = RNG.choice([0.25, 0.5, 1.0, 2.0], N)
COUNTS = RNG.poisson(MEAN).astype(float)
CLAIMS = RNG.poisson(YEARS * MEAN).astype(float)
AMOUNTS = RNG.gamma(3.0, MEAN / 3)
TOTALS = np.where(COUNTS > 0, RNG.gamma(2.0 * np.maximum(COUNTS, 1), 0.5), 0.0)
NUMBERS = X @ [0.8, -0.5, 0.3, 0.0] + 0.4 * RNG.standard_normal(N)
BOUNDS = Bounds(1.0, 20.0)

MODELS = {
    "poisson": (PrivatePoissonRegression, {}, COUNTS, 1.0),
    "negative binomial": (PrivateNegativeBinomialRegression, {"dispersion": 0.5}, COUNTS, None),
    "gamma": (PrivateGammaRegression, {"least_mean": 0.05}, AMOUNTS, 2.0),
    "tweedie": (PrivateTweedieRegression, {"least_mean": 0.05}, TOTALS, 1.5),
}
every_family = pytest.mark.parametrize("name", MODELS)


def made(name, epsilon=2.0, **more):
    kind, options, _, _ = MODELS[name]
    return kind(**{"epsilon": epsilon, "delta": 1e-6, "bounds": BOUNDS, **options, **more})


def noiseless(name, **more):
    """As private as nothing is: the optimum up to what a thousandth can see."""
    little = PerturbedObjective(regularisation=1e-6)
    if name in ("gamma", "tweedie"):  # no mean is as small, and a larger one bends the loss less
        more.setdefault("least_mean", 0.1)
    return made(name, 1e9, solver=little, radius=10.0, random_state=1, **more)


# Numerics: sums, products and quotients alone.


def test_exponential_and_logarithm_are_as_near_as_the_proofs_say():
    z = np.random.default_rng(0).uniform(-40, 40, 20_000)
    with np.errstate(all="raise"):
        found = exponential(z)
    exact = np.exp(z.astype(np.longdouble))
    assert float(np.abs(found / exact - 1).max()) <= 2.0**-43
    np.testing.assert_array_equal(exponential(np.array([0.0, 400.0])), [1.0, exponential(40.0)])
    x = np.exp(np.random.default_rng(1).uniform(-600, 600, 20_000))
    error = np.abs(logarithm(x) - np.log(x.astype(np.longdouble)))
    assert float((error / (1 + np.abs(np.log(x)))).max()) <= 2.0**-50
    assert logarithm(np.array([1.0]))[0] == 0


@pytest.mark.parametrize("n", [1, 3, 17, 1_000])
def test_a_slope_does_not_depend_on_the_rows_around_it(n):
    """Vector instructions for some rows and not for others would give other bits."""
    rng = np.random.default_rng(n)
    margin, y = rng.uniform(-3, 3, n), rng.poisson(2.0, n).astype(float)
    for loss in (Poisson(4.0), Gamma(0.2), Tweedie(1.3, 0.1, 9.0), NegativeBinomial(0.7)):
        for part in (loss.value, loss.slope, loss.curvature):
            alone = [part(margin[[i]], y[[i]])[0] for i in range(n)]
            np.testing.assert_array_equal(part(margin, y), alone)


@pytest.mark.parametrize(
    ("loss", "reference"),
    [
        (Poisson(), mean_poisson_deviance),
        (Gamma(), mean_gamma_deviance),
        (Tweedie(1.7), lambda y, m: mean_tweedie_deviance(y, m, power=1.7)),
    ],
    ids=["poisson", "gamma", "tweedie"],
)
def test_the_deviance_is_scikit_learns(loss, reference):
    y = AMOUNTS if loss.power == 2 else TOTALS
    np.testing.assert_allclose(loss.deviance(y, MEAN).mean(), reference(y, MEAN), rtol=1e-9)
    np.testing.assert_allclose(
        2 * loss.value(np.log(MEAN), y).mean(), reference(y, MEAN), rtol=1e-9
    )


def test_the_negative_binomial_deviance_is_its_formula():
    a, y, m = 0.5, COUNTS, MEAN
    ratio = np.log(np.where(y > 0, y, 1) / m) * y - (y + 1 / a) * np.log((1 + a * y) / (1 + a * m))
    np.testing.assert_allclose(NegativeBinomial(a).deviance(y, m), 2 * ratio, atol=1e-9)


def test_straight_tails_begin_where_they_were_put():
    loss = Tweedie(1.5, 0.5, 2.0)
    y = np.full(3, 1.0)
    assert np.all(np.diff(loss.slope(np.log([2.0, 3.0, 9.0]), 0 * y)) == 0)
    assert np.all(np.diff(loss.slope(np.log([0.5, 0.2, 0.1]), 1e6 * y) / 1e6) > -1e-5)
    for wrong in ((1.0,), (2.0,), (1.5, 2.0, 1.0), (1.5, -1.0), (1.5, 0.0, np.nan)):
        with pytest.raises(InvalidArgument):
            Tweedie(*wrong)
    for kind in (Poisson, Gamma, NegativeBinomial):
        with pytest.raises(InvalidArgument):
            kind(-1.0)


# Units of the targets.


@pytest.mark.parametrize("name", ["gamma", "tweedie"])
def test_a_model_of_amounts_does_not_depend_on_their_unit(name):
    """In units of 10,000 these had a D2 of -5.7 and -0.18, when fits began at a mean of 1."""
    kind, _, y, _ = MODELS[name]
    one, other = (
        kind(2.0, 1e-6, bounds=Bounds(1.0, 20.0 * unit), random_state=3).fit(X, y * unit)
        for unit in (1.0, 1e4)
    )
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=0.02, atol=0.01)
    assert other.intercept_ == pytest.approx(one.intercept_ + math.log(1e4), abs=0.02)
    assert other.score(X, y * 1e4) == pytest.approx(one.score(X, y), abs=0.01)
    assert one.score(X, y) > (0.3 if name == "gamma" else 0.05)


@pytest.mark.parametrize("loss", [Poisson(4.0), Gamma(0.5), Tweedie(1.5, 0.5, 9.0)])
@pytest.mark.parametrize("offset", [-3.0, -0.5, 0.0, 1.0, 4.0])
def test_a_mean_slope_tells_the_mean_of_the_targets(loss, offset):
    """Also where the loss is straight; there the curvature says nothing about it."""
    y = AMOUNTS[:50]
    slope = float(loss.slope(np.full(50, offset), y).mean())
    mean, falls = loss.likely_mean(offset, slope)
    assert mean == pytest.approx(y.mean())
    assert (mean - loss.likely_mean(offset, slope + 0.1)[0]) / 0.1 == pytest.approx(falls)


def test_few_rows_leave_the_mean_of_amounts_where_it_is():
    """It was off by a factor of e^33 or more in seven of these fits, before it was held near it."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.uniform(20, 80, (1_000, 1)) * [1.0, 2.0, 0.01]
        y = 500 * rng.gamma(2.0, 1.0, 1_000)
        model = PrivateGammaRegression(
            0.3, 1e-6, bounds=Bounds([100.0, 200.0, 1.0], 10_000), random_state=seed
        )
        assert abs(np.log(model.fit(x, y).predict(x)).mean() - math.log(1_000)) < 3


# Without noise: the references of other libraries.


@every_family
@pytest.mark.parametrize("weighted", [False, True])
def test_without_noise_a_family_is_its_reference(name, weighted):
    _, _, y, power = MODELS[name]
    weight = WEIGHTS if weighted else None
    model = noiseless(name, max_weight=2.0 if weighted else None)
    model.fit(X, y, sample_weight=weight)
    if power is None:
        sm = pytest.importorskip("statsmodels.api")
        family = sm.families.NegativeBinomial(alpha=0.5)
        more = {"freq_weights": weight} if weighted else {}
        found = sm.GLM(y, sm.add_constant(X), family=family, **more).fit().params
    else:
        reference = TweedieRegressor(power=power, alpha=0.0, link="log", tol=1e-9, max_iter=9_000)
        reference.fit(X, y, sample_weight=weight)
        found = np.r_[reference.intercept_, reference.coef_]
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], found, atol=1e-3)


def test_without_noise_an_exposure_is_an_offset():
    model = noiseless("poisson", max_exposure=1.0).fit(X, CLAIMS, exposure=YEARS)
    rates = PoissonRegressor(alpha=0.0, tol=1e-9, max_iter=9_000)
    rates.fit(X, CLAIMS / YEARS, sample_weight=YEARS)  # the same likelihood
    np.testing.assert_allclose(model.coef_, rates.coef_, atol=1e-3)
    assert abs(model.intercept_ - rates.intercept_) < 1e-3
    sm = pytest.importorskip("statsmodels.api")
    glm = sm.GLM(CLAIMS, sm.add_constant(X), family=sm.families.Poisson(), exposure=YEARS).fit()
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], glm.params, atol=1e-3)


@pytest.mark.not_quick
@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_without_noise_a_quantile_is_scikit_learns(quantile):
    model = PrivateQuantileRegression(
        1e9, 1e-6, bounds=Bounds(1.0, 3.0), quantile=quantile, smoothing=0.01, radius=5.0,
        solver="objective-perturbation", random_state=1,
    ).fit(X, NUMBERS)  # fmt: skip
    reference = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, NUMBERS)
    ours, best = model.score(X, NUMBERS), d2_pinball_score(
        NUMBERS, reference.predict(X), alpha=quantile
    )  # fmt: skip
    assert best - 1e-3 <= ours <= best + 1e-9
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=0.03)  # a flat minimum


def test_gamma_regressor_has_the_same_model():
    found = noiseless("gamma").fit(X, AMOUNTS).predict(X)
    reference = GammaRegressor(alpha=0.0, tol=1e-9, max_iter=9_000).fit(X, AMOUNTS)
    np.testing.assert_allclose(found, reference.predict(X), rtol=3e-3)


# Private fits.


@every_family
def test_a_private_fit_explains_deviance(name):
    """False alarms: fits are seeded, and at epsilon 2 D2 is 0.1 to 0.3 with an error of 0.01."""
    _, _, y, power = MODELS[name]
    model = made(name, random_state=3).fit(X, y)
    assert model.privacy_.solver == "whitened-gradient"
    means = model.predict(X)
    np.testing.assert_allclose(means, np.exp(X @ model.coef_ + model.intercept_), rtol=1e-9)
    assert model.score(X, y) > 0.08
    if power is not None:
        expected = d2_tweedie_score(y, means, power=power)
        np.testing.assert_allclose(model.score(X, y), expected, rtol=1e-9)
        expected = d2_tweedie_score(y, means, power=power, sample_weight=WEIGHTS)
        np.testing.assert_allclose(model.score(X, y, WEIGHTS), expected, rtol=1e-9)


def test_a_private_fit_uses_exposures_and_weights():
    given = {"max_exposure": 1.0, "max_weight": 2.0, "random_state": 5}
    model = made("poisson", 5.0, **given).fit(X, CLAIMS, WEIGHTS, exposure=YEARS)
    assert "Poisson of exposed rows" in model.privacy_.public["loss"]
    assert abs(model.intercept_ - 0.3) < 0.15  # of rates; the mean claims are half of them
    np.testing.assert_allclose(model.predict(X, YEARS), YEARS * model.predict(X))
    assert model.score(X, CLAIMS, WEIGHTS, exposure=YEARS) > 0.1
    heavy = np.where(X[:, 1] > 0, 2.0, 0.0)
    other = made("poisson", 5.0, **given).fit(X, np.where(X[:, 1] > 0, 4.0, 0.0), heavy)
    assert other.predict(X[X[:, 1] > 0]).mean() == pytest.approx(4.0, rel=0.15)


def test_bounds_may_be_far_too_wide():
    model = made("poisson", 3.0, bounds=Bounds(10.0, 1_000.0), random_state=2).fit(X, COUNTS)
    assert model.score(X, COUNTS) > 0.1


def test_hostile_rows_change_no_shape_and_raise_nothing():
    y = COUNTS.copy()
    y[:5] = [1e300, -1e300, np.nan, np.inf, -np.inf]
    weight = WEIGHTS.copy()
    weight[:5] = [np.nan, np.inf, -1.0, 1e300, 0.0]
    years = YEARS.copy()
    years[:5] = [0.0, -1.0, np.nan, 1e300, 1e-300]
    for name in MODELS:
        model = made(name, max_weight=2.0, max_exposure=1.0, random_state=4)
        model.fit(X, y, weight, exposure=years)
        assert np.all(np.isfinite(model.coef_))


def test_a_private_quantile_is_where_it_should_be():
    """False alarm: the part below has a standard error of 0.008 by sampling, and noise like it."""
    for quantile in (0.25, 0.9):
        model = PrivateQuantileRegression(
            3.0, 1e-6, bounds=Bounds(1.0, 4.0), quantile=quantile, random_state=2
        ).fit(X, NUMBERS)
        assert abs(np.mean(model.predict(X) > NUMBERS) - quantile) < 0.08
        best = X @ [0.8, -0.5, 0.3, 0.0] + 0.4 * norm.ppf(quantile)
        assert model.score(X, NUMBERS) > d2_pinball_score(NUMBERS, best, alpha=quantile) - 0.05


# Interfaces.


def test_what_a_fit_is_not_given_a_bound_for_is_refused():
    with pytest.raises(InvalidArgument, match="max_weight"):
        made("poisson").fit(X, COUNTS, WEIGHTS)
    with pytest.raises(InvalidArgument, match="max_exposure"):
        made("poisson").fit(X, COUNTS, exposure=YEARS)
    with pytest.raises(InvalidArgument, match="has no exposure"):
        PrivateQuantileRegression(1.0, bounds=BOUNDS).fit(X, COUNTS, exposure=YEARS)
    with pytest.raises(InvalidArgument, match=r"sample_weight has 3 entries"):
        made("poisson", max_weight=2.0).fit(X, COUNTS, WEIGHTS[:3])
    for wrong in ({"max_weight": 0.0}, {"max_exposure": -1.0}, {"radius": "wide"}):
        with pytest.raises(InvalidArgument):
            made("poisson", **wrong).fit(X, COUNTS)
    for wrong in ({"least_mean": "small"}, {"least_mean": -1.0}):
        with pytest.raises(InvalidArgument, match="least_mean"):
            made("gamma", **wrong).fit(X, AMOUNTS)
    with pytest.raises(InvalidArgument, match="smoothing"):
        PrivateQuantileRegression(1.0, bounds=BOUNDS, smoothing="much").fit(X, COUNTS)


def test_the_noise_grows_with_the_largest_weight_alone():
    """A bound twice as large on weights doubles the sensitivity of what a step releases."""
    from riata.queries import Gradient
    from riata.vectors import Vector

    found = []
    for most in (1.5, 3.0):
        problem = made("poisson", max_weight=most).plan(N, P).problem
        found.append(Gradient(problem, Vector.zero(P)).sensitivity("l2"))
    assert found[1] == pytest.approx(2 * found[0], rel=1e-12)
    assert Fraction(found[0]) > 0


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame({"age": 50 * (X[:, 0] + 1), "urban": X[:, 1] > 0, "visits": COUNTS})


@pytest.fixture(scope="module")
def schema():
    return Schema.from_table({
        "features": [
            {"name": "age", "kind": "number", "bounds": [0, 100]},
            {"name": "urban", "kind": "yes-no"},
        ],
        "target": {"name": "visits", "bounds": [0, 20]},
    })  # fmt: skip


def test_counts_of_a_source_are_not_moved(frame, schema):
    """A source moves the middle of the range of a target to 0."""
    model = PrivatePoissonRegression(4.0, 1e-6, random_state=1).fit(read(frame, schema))
    assert model.predict(frame).mean() == pytest.approx(COUNTS.mean(), rel=0.1)
    assert model.score(frame) > 0.05
    with pytest.raises(InvalidArgument, match="rows in arrays"):
        PrivatePoissonRegression(4.0, max_weight=1.0).fit(
            read(frame, schema), sample_weight=WEIGHTS
        )
    weighted = PrivatePoissonRegression(4.0, 1e-6, max_weight=1.0, random_state=1)
    assert weighted.fit(read(frame, schema)).predict(frame).mean() == pytest.approx(
        COUNTS.mean(), rel=0.1
    )


@every_family
def test_models_are_saved_and_exported(name, tmp_path):
    model = made(name, max_weight=2.0, random_state=1).fit(X, MODELS[name][2], WEIGHTS)
    save(model, tmp_path / "model.riata")
    again = load(tmp_path / "model.riata")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params()["max_weight"] == 2.0
    assert clone(model).bounds.y == model.bounds.y
    onnx = pytest.importorskip("onnx.reference")
    export_onnx(model, tmp_path / "model.onnx")
    graph = onnx.ReferenceEvaluator(str(tmp_path / "model.onnx"))
    found = graph.run(None, {graph.input_names[0]: X[:9]})[0]
    np.testing.assert_allclose(found, model.predict(X[:9]), rtol=1e-9)


def test_a_forecast_says_that_it_knows_no_counts():
    with pytest.raises(Incompatible, match="mean is the margin"):
        forecast(made("poisson"), 1_000, 4)


@pytest.mark.not_quick
def test_losses_without_tails_are_fitted_by_solvers_that_need_none():
    for loss, y in ((Poisson(), COUNTS), (Tweedie(1.5, 0.1), TOTALS)):
        model = PrivateErm(loss, L1Ball(1.5), 5.0, 1e-6, bounds=Bounds(1.0, 8.0), random_state=1)
        assert np.isfinite(model.fit(X, y).score(X, y))
        with pytest.raises(Incompatible, match="curvature"):
            model.set_params(solver="greedy").fit(X, y)


@pytest.mark.parametrize("solver", ["greedy", "sufficient-statistics", "noisy-gradient"])
def test_other_solvers_fit_counts_too(solver):
    model = made("poisson", 8.0, solver=solver, random_state=1, radius=3.0).fit(X, COUNTS)
    assert model.score(X, COUNTS) > 0.02
    assert math.isfinite(model.intercept_)
