"""Without noise, models are those of R's survival and MASS, of lifelines and of statsmodels.

Rows have ties, censoring, exposures, weights, and columns whose means are not 0. Everything agrees
to a thousandth in coefficients of order 1. Epsilon is 1e9, whose noise is far below that. Solvers
that have a prior, which shrinks by about the sampling variance, get all columns as unpenalized; and
families with heavy tails, whose residuals they would clip, are fitted by perturbed objectives.
"""

import os
import subprocess
import textwrap

import numpy as np
import pandas as pd
import pytest

from riata import (
    Bounds,
    PrivateCoxRegression,
    PrivateGammaRegression,
    PrivateLogisticRegression,
    PrivateNegativeBinomialRegression,
    PrivateOrdinalRegression,
    PrivatePoissonRegression,
    PrivateQuantileRegression,
    PrivateTweedieRegression,
)
from riata.solvers import PerturbedObjective

pytestmark = pytest.mark.services

N, NEAR = 6_000, 1e-3
RNG = np.random.default_rng(20)
X = RNG.uniform(-1, 1, (N, 3)) + np.array([0.2, 0.0, -0.1])
MARGIN = X @ [0.8, -0.5, 0.3]
MEAN = np.exp(MARGIN)
NAMES = ["a", "b", "c"]
MORE = {"delta": 1e-6, "random_state": 1, "unpenalized": range(3)}
MINIMUM = {
    "delta": 1e-6, "random_state": 1, "radius": 10.0,
    "solver": PerturbedObjective(regularisation=1e-6),
}  # fmt: skip

DIED_AT, LEFT_AT = RNG.exponential(8 / MEAN), RNG.uniform(1, 14, N)
TIME = np.minimum(np.minimum(DIED_AT, LEFT_AT), 10.0)
DIED = np.minimum(LEFT_AT, 10.0) >= DIED_AT
PAIN = np.digitize(MARGIN + RNG.logistic(size=N), [-1.0, 0.5, 1.5])
YEARS = RNG.uniform(0.1, 1.0, N)
CLAIMS = RNG.poisson(YEARS * MEAN)
VISITS = RNG.negative_binomial(2, 2 / (2 + MEAN))
COSTS = RNG.gamma(4.0, MEAN / 4.0)
LOSSES = np.array([RNG.gamma(1.0, 1.0, k).sum() for k in RNG.poisson(MEAN)])
DAYS = MARGIN + 0.3 * RNG.standard_normal(N) * (1 + X[:, 1] / 4)

TWEEDIE = """
tweedie <- quasi(link = "log", variance = list(
  name = "mu^1.5", varfun = function(mu) mu^1.5, validmu = function(mu) all(mu > 0),
  dev.resids = function(y, mu, wt) 2 * wt * (2 * sqrt(mu) + 2 * y / sqrt(mu) - 4 * sqrt(y)),
  initialize = expression({ n <- rep.int(1, nobs); mustart <- y + 0.1 })))
"""


def numbers(folder, command, columns):
    """What a program prints about rows.csv in its folder."""
    frame = pd.DataFrame(X, columns=NAMES).assign(**columns)
    frame.to_csv(folder / "rows.csv", index=False, float_format="%.17g")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), dtype=float)


@pytest.fixture
def r(tmp_path):
    """The value of an expression of R, after some lines about `rows`."""

    def run(last, before="", **columns):
        script = tmp_path / "model.R"
        script.write_text(
            f"library(survival)\nlibrary(MASS)\nrows <- read.csv('rows.csv')\n{before}\n"
            f"cat(format(as.numeric({last}), digits = 15))\n"
        )
        return numbers(tmp_path, ["Rscript", "--vanilla", str(script)], columns)

    return run


@pytest.fixture
def lifelines(tmp_path):
    """What lines of Python print about `rows`, in an environment with the versions it needs."""
    python = os.environ.get("LIFELINES_PYTHON")
    if python is None:
        pytest.skip("LIFELINES_PYTHON, which make test-services sets, names no Python")

    def run(script, **columns):
        start = "import numpy as np, pandas as pd\nfrom lifelines import CoxPHFitter\n"
        start += "rows = pd.read_csv('rows.csv')\n"
        command = [python, "-W", "ignore", "-c", start + textwrap.dedent(script)]
        return numbers(tmp_path, command, columns)

    return run


def both(model):
    return np.r_[np.ravel(model.intercept_), np.ravel(model.coef_)]


def test_cox_with_ties_and_censoring_is_coxphs(r):
    """Durations are rounded up to months: half of the rows are censored, all share their month."""
    months = np.ceil(TIME)
    reference = r("c(coef(m), sqrt(diag(vcov(m))))",
                  "m <- coxph(Surv(t, d) ~ a + b + c, rows, ties = 'breslow')",
                  t=months, d=DIED.astype(int))  # fmt: skip
    assert 0.3 < DIED.mean() < 0.7
    model = PrivateCoxRegression(1e9, bounds=Bounds(1.5, 10.0), bands=10, steps=60, **MORE)
    model.fit(X, months, DIED)
    np.testing.assert_allclose(model.coef_, reference[:3], atol=NEAR)
    hazards = r("h$hazard", "m <- coxph(Surv(t, d) ~ a + b + c, rows, ties = 'breslow')\n"
                "h <- basehaz(m, centered = FALSE)", t=months, d=DIED.astype(int))  # fmt: skip
    np.testing.assert_allclose(np.cumsum(model.baseline_hazard_), hazards, atol=NEAR)


def test_cox_in_bands_of_time_is_lifelines(lifelines):
    """The same baseline, constant in bands of different lengths, and proportional hazards."""
    ends = [1.0, 3.0, 6.0, 10.0]
    script = f"""
        model = CoxPHFitter(baseline_estimation_method="piecewise", breakpoints={ends[:-1]})
        model.fit(rows, "t", "d")
        zero = pd.DataFrame(np.zeros((1, 3)), columns={NAMES})
        print(*model.params_["beta_"][{NAMES}])
        print(*np.log(model.predict_cumulative_hazard(zero, {ends}).to_numpy().ravel()))
    """
    reference = lifelines(script, t=TIME, d=DIED.astype(int))
    model = PrivateCoxRegression(1e9, bounds=Bounds(1.5, 10.0), bands=ends, steps=60, **MORE)
    model.fit(X, TIME, DIED)
    np.testing.assert_allclose(model.coef_, reference[:3], atol=NEAR)
    hazard = model.predict_cumulative_hazard(np.zeros((1, 3)), ends)
    np.testing.assert_allclose(np.log(np.ravel(hazard)), reference[3:], atol=NEAR)


def test_cox_of_continuous_durations_is_lifelines(lifelines):
    """The partial likelihood of times without ties, which narrow bands come close to."""
    script = f'print(*CoxPHFitter().fit(rows, "t", "d").params_[{NAMES}])'
    reference = lifelines(script, t=TIME, d=DIED.astype(int))
    model = PrivateCoxRegression(1e9, bounds=Bounds(1.5, 10.0), bands=50, steps=60, **MORE)
    np.testing.assert_allclose(model.fit(X, TIME, DIED).coef_, reference, atol=NEAR)


def test_ordinal_is_polrs(r):
    reference = r("c(coef(m), m$zeta)", "m <- polr(factor(y) ~ a + b + c, rows)", y=PAIN)
    model = PrivateOrdinalRegression(1e9, bounds=Bounds(1.5), classes=range(4), steps=60, **MORE)
    model.fit(X, PAIN)
    np.testing.assert_allclose(np.r_[model.coef_, model.thresholds_], reference, atol=NEAR)


def glm(family):
    return f"m <- glm(y ~ a + b + c, {family}, rows, epsilon = 1e-12, maxit = 100)"


def test_negative_binomial_with_a_given_theta_is_glms(r):
    reference = r("coef(m)", glm("negative.binomial(theta = 2)"), y=VISITS)
    model = PrivateNegativeBinomialRegression(
        1e9, bounds=Bounds(1.5, 60.0), dispersion=0.5, **MINIMUM
    ).fit(X, VISITS)
    np.testing.assert_allclose(both(model), reference, atol=NEAR)


def test_gamma_is_glms(r):
    reference = r("coef(m)", glm("Gamma(link = 'log')"), y=COSTS)
    model = PrivateGammaRegression(1e9, steps=60, bounds=Bounds(1.5, 30.0), **MORE).fit(X, COSTS)
    np.testing.assert_allclose(both(model), reference, atol=NEAR)


def test_tweedie_is_glms(r):
    assert 0.2 < (LOSSES == 0).mean() < 0.7
    reference = r("coef(m)", TWEEDIE + glm("tweedie"), y=LOSSES)
    model = PrivateTweedieRegression(1e9, bounds=Bounds(1.5, 60.0), least_mean=0.1, **MINIMUM).fit(
        X, LOSSES
    )
    np.testing.assert_allclose(both(model), reference, atol=NEAR)


def test_poisson_with_exposures_and_weights_is_glms(r):
    weight = np.where(X[:, 0] > 0, 2.0, 1.0)
    fit = ("m <- glm(y ~ a + b + c + offset(log(years)), poisson, rows, weights = w, "
           "epsilon = 1e-12)")  # fmt: skip
    reference = r("coef(m)", fit, y=CLAIMS, years=YEARS, w=weight)
    model = PrivatePoissonRegression(
        1e9, bounds=Bounds(1.5, 30.0), max_exposure=1.0, max_weight=2.0, **MINIMUM
    ).fit(X, CLAIMS, exposure=YEARS, sample_weight=weight)
    np.testing.assert_allclose(both(model), reference, atol=NEAR)


def test_logistic_with_an_unpenalized_column_is_glms_of_that_column(r):
    """Nothing else may enter: the ball of the others has no room."""
    reference = r("coef(glm(y ~ b, binomial, rows, epsilon = 1e-12))", y=(PAIN > 0).astype(int))
    model = PrivateLogisticRegression(
        np.inf, bounds=Bounds(1.5), classes=[0, 1], radius=1e-9, **MORE | {"unpenalized": [1]}
    ).fit(X, (PAIN > 0).astype(int))
    np.testing.assert_allclose([model.intercept_[0], model.coef_[0, 1]], reference, atol=NEAR)


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_quantile_is_statsmodels(quantile):
    models = pytest.importorskip("statsmodels.regression.quantile_regression")
    design = np.column_stack([np.ones(N), X])
    reference = models.QuantReg(DAYS, design).fit(q=quantile, p_tol=1e-9, max_iter=10_000).params
    model = PrivateQuantileRegression(
        1e9, bounds=Bounds(1.5, 5.0), quantile=quantile, smoothing=0.01, radius=5.0,
        solver="objective-perturbation", **MORE | {"unpenalized": None},
    ).fit(X, DAYS)  # fmt: skip
    np.testing.assert_allclose(both(model), reference, atol=NEAR)
