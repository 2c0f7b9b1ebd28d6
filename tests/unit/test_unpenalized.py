"""Columns that are always in the model: kept by every solver that takes them, refused by others."""

import dataclasses
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import riata.report
from riata import (
    Bounds,
    PrivateCoxRegression,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateOrdinalRegression,
    PrivatePoissonRegression,
    PrivateSparseRegression,
    Schema,
    export_onnx,
    load,
    read,
    save,
)
from riata.errors import Incompatible, InvalidArgument, SchemaError
from riata.fitting import plan
from riata.fitting.unpenalized import unpenalized_columns
from riata.losses import Squared
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import SOLVERS
from riata.solvers.sparse_descent import thresholded
from riata.solvers.unpenalized import Split

KEEP = {
    "greedy", "refitted-frank-wolfe", "sufficient-statistics", "whitened-gradient",
    "profile-gradient", "public-design", "hard-thresholding",
}  # fmt: skip

N, P = 8_000, 8
RNG = np.random.default_rng(26)
X = RNG.uniform(-1, 1, (N, P))
X[:, 0] = np.clip(0.7 * X[:, 3] + 0.5 * X[:, 0], -1, 1)  # age, which goes with what is selected
COEF = np.array([0.5, 0.0, 0.0, -0.4, 0.3, 0.0, 0.0, 0.0])
MARGIN = X @ COEF
Y = MARGIN + 0.2 * RNG.standard_normal(N)
SICK = (3 * MARGIN + RNG.logistic(size=N) > 0).astype(int)
VISITS = RNG.poisson(np.exp(MARGIN))
PAIN = np.digitize(2 * MARGIN + RNG.logistic(size=N), [-1.0, 1.0])
TIME = np.minimum(RNG.exponential(4 * np.exp(-MARGIN)), RNG.uniform(0, 10, N))
ALWAYS = [0, 1]


def lasso(epsilon=1.0, **more):
    given = {"delta": 1e-6, "bounds": Bounds(1.0, 2.0), "random_state": 1, "unpenalized": ALWAYS}
    return PrivateLasso(epsilon, **given | more)


def logistic(epsilon=1.0, **more):
    given = {"delta": 1e-6, "bounds": Bounds(1.0), "classes": [0, 1], "random_state": 1,
             "unpenalized": ALWAYS}  # fmt: skip
    return PrivateLogisticRegression(epsilon, **given | more)


# What solvers do.


def test_the_solvers_that_keep_unpenalized_columns():
    assert {name for name, kind in SOLVERS.items() if kind.keeps_unpenalized} == KEEP


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - KEEP))
def test_other_solvers_refuse_before_anything_is_charged(name):
    kinds = (L1Ball(1.0), L2Ball(1.0), SparseBall(2, 1.0))
    problems = [Problem(Squared(), each, Bounds(1.0, 1.0), 500, 4) for each in kinds]
    for problem in problems:
        budget = Budget(1.0, 1e-6)
        try:
            SOLVERS[name]().check(problem, budget)
        except Incompatible:
            continue
        with pytest.raises(Incompatible, match="unpenalized"):
            SOLVERS[name]().check(dataclasses.replace(problem, unpenalized=(1,)), budget)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "replace-label"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("norm", ["inf", "l2"])
def test_auto_takes_a_solver_that_keeps_them(adjacency, delta, norm):
    """For few and for many columns and rows, and for three classes."""
    bounds = Bounds(3.0, 1.0, norm=norm)
    for n_rows, n_features in ((300, 3), (300, 200), (20_000, 60), (5_000, 3_000)):
        for model in (
            lasso(delta=delta, bounds=bounds, adjacency=adjacency),
            logistic(delta=delta, bounds=bounds, adjacency=adjacency, classes=[0, 1, 2]),
        ):
            found = plan(model.request_for_shape(n_rows, n_features))
            assert found.plan.solver in KEEP
            assert "2 unpenalized columns in the model (0, 1)" in str(found.plan)
            assert found.plan.summary()["unpenalized"] == [0, 1]


@pytest.mark.parametrize("solver", ["greedy", "refitted-frank-wolfe", "whitened-gradient"])
def test_they_are_in_the_model_where_nothing_is_selected(solver):
    """Targets are noise of a tiny guarantee: a search finds nothing, and age stays."""
    for model in (lasso(0.05, solver=solver).fit(X, Y), logistic(0.05, solver=solver).fit(X, SICK)):
        coef = np.ravel(model.coef_)
        assert np.all(coef[ALWAYS] != 0)
        assert list(model.unpenalized_) == ALWAYS
        assert np.all(np.ravel(model.selection_order_)[ALWAYS] == 0)


@pytest.mark.parametrize(
    "solver", ["greedy", "refitted-frank-wolfe", "sufficient-statistics", "whitened-gradient"]
)
def test_estimates_are_those_of_least_squares(solver):
    """Also of a column without an effect. False alarms: fits are seeded, within 4 errors."""
    model = lasso(4.0, solver=solver).fit(X, Y)
    reference = LinearRegression().fit(X, Y).coef_
    z = (model.coef_ - reference)[ALWAYS] / model.coef_error_[ALWAYS]
    assert np.all(np.abs(z) < 4)
    assert set(np.flatnonzero(model.coef_)) >= {0, 1, 3, 4}


@pytest.mark.parametrize("solver", ["whitened-gradient", "public-design"])
def test_no_prior_pulls_them_to_zero(solver):
    """With all columns unpenalized and hardly any noise, the model is that of least squares, and of
    the maximum of the likelihood; a prior has another, seen in the last assertion."""
    label = {"adjacency": "replace-label"} if solver == "public-design" else {"steps": 60}
    few = 600
    every = lasso(1e6, solver=solver, unpenalized=range(P), **label).fit(X[:few], Y[:few])
    best = LinearRegression().fit(X[:few], Y[:few]).coef_
    np.testing.assert_allclose(every.coef_, best, atol=1e-3)
    odds = LogisticRegression(C=np.inf, tol=1e-9).fit(X[:few], SICK[:few]).coef_
    every = logistic(1e6, solver=solver, unpenalized=range(P), **label).fit(X[:few], SICK[:few])
    pulled = logistic(1e6, solver=solver, unpenalized=None, **label).fit(X[:few], SICK[:few])
    np.testing.assert_allclose(every.coef_, odds, atol=6e-3)
    assert np.abs(pulled.coef_ - odds).max() > 5 * np.abs(every.coef_ - odds).max()


def test_what_others_add_is_pulled_and_the_rest_follows():
    """A model of unpenalized columns alone is no part of what a prior sees."""
    rng = np.random.default_rng(1)
    matrix = np.linalg.qr(rng.normal(size=(5, 5)))[0] @ np.diag([1, 2, 3, 1, 2.0])
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 100, 5, unpenalized=(4, 1))
    split = Split.of(problem, matrix)
    assert list(split.penalized) == [0, 2, 3]
    w = rng.normal(size=5)
    alone = split.alone(w)
    assert np.abs((matrix.T @ alone)[[0, 2, 3]]).max() < 1e-12  # has none of the others
    assert abs(alone @ (w - alone)) < 1e-12
    pulled = split.shrunken(w, np.full(5, 100.0), 1.0)
    np.testing.assert_allclose(pulled, alone, atol=1e-3)  # nothing speaks for the others
    found, columns = split.likely_columns(w, 100.0, 1.0)
    np.testing.assert_allclose(split.alone(found), alone, atol=1e-12)
    assert columns[[1, 4]].all()
    nobody = Split.of(dataclasses.replace(problem, unpenalized=()), matrix)
    assert not nobody.alone(w).any()


def test_the_intercept_and_the_others_are_beside_them_for_other_families():
    bounds, more = Bounds(1.0, 8.0), {"delta": 1e-6, "random_state": 1, "unpenalized": ALWAYS}
    models = [
        PrivatePoissonRegression(4.0, bounds=bounds, **more).fit(X, VISITS),
        PrivateLinearSVC(4.0, bounds=bounds, classes=[0, 1], **more).fit(X, SICK),
        PrivateOrdinalRegression(4.0, bounds=bounds, classes=range(3), **more).fit(X, PAIN),
        PrivateCoxRegression(4.0, bounds=Bounds(1.0, 10.0), **more).fit(X, TIME),
        logistic(4.0, classes=[0, 1, 2]).fit(X, PAIN),
        lasso(4.0, adjacency="replace-label").fit(X, Y),
    ]
    for model in models:
        assert np.all(np.atleast_2d(model.coef_)[:, ALWAYS] != 0)
        assert model.privacy_.public["unpenalized columns"] == "0, 1"


# Sets: they are about the other columns alone.


@pytest.mark.parametrize("given", [L1Ball(0.2), L2Ball(0.2), SparseBall(1, 0.2)])
def test_a_projection_leaves_unpenalized_coefficients(given):
    problem = Problem(Squared(), given, Bounds(1.0, 1.0), 100, 5, unpenalized=(4, 1))
    theta = np.array([3.0, -2.0, 1.0, 0.5, 0.01])
    found = problem.project(theta)
    assert np.all(found[[1, 4]] == theta[[1, 4]])
    rest = np.where(np.isin(np.arange(5), problem.penalized), theta, 0.0)
    np.testing.assert_array_equal(found[[0, 2, 3]], problem.set.project(rest)[[0, 2, 3]])


def test_hard_thresholding_keeps_them_beside_the_largest_of_the_others():
    problem = Problem(Squared(), SparseBall(1, 1.0), Bounds(1.0, 1.0), 100, 5, unpenalized=(4,))
    found = thresholded(problem, np.array([0.1, -0.3, 0.2, 0.0, 0.05]))
    assert list(np.flatnonzero(found)) == [1, 4]
    long = thresholded(problem, np.array([0.1, -3.0, 0.2, 0.0, 4.0]))
    np.testing.assert_allclose(long, [0, -0.6, 0, 0, 0.8])
    for epsilon, solver in ((np.inf, "auto"), (8.0, "hard-thresholding"), (8.0, "greedy")):
        model = PrivateSparseRegression(
            epsilon, 1e-6, bounds=Bounds(1.0, 2.0), sparsity=2, solver=solver, random_state=1,
            unpenalized=[1],
        ).fit(X, Y)  # fmt: skip
        assert model.coef_[1] != 0
        assert np.count_nonzero(model.coef_) <= 3


@pytest.mark.parametrize("radius", [0.1, 1.0])
def test_the_reference_is_the_optimum_beside_a_ball(radius):
    """Frank-Wolfe without noise: residuals are uncorrelated with unpenalized columns, and equally
    correlated with the others that are in the model, which is the lasso's condition."""
    model = lasso(np.inf, radius=radius, unpenalized=[0, 1]).fit(X, Y)
    left = Y - model.predict(X)
    correlation = (X - X.mean(axis=0)).T @ left / N
    assert np.abs(correlation[ALWAYS]).max() < 2e-5
    rest = np.delete(model.coef_, ALWAYS)
    assert np.abs(rest).sum() <= radius + 1e-9
    if radius < 0.5:
        inside = np.delete(correlation, ALWAYS)[np.abs(rest) > 1e-3]
        np.testing.assert_allclose(np.abs(inside), np.abs(inside).max(), rtol=0.02)


def test_the_reference_refuses_sets_that_are_no_balls():
    from riata import PrivateErm
    from riata.sets import Simplex

    with pytest.raises(Incompatible, match="unpenalized columns"):
        PrivateErm(
            Squared(), Simplex(), np.inf, bounds=Bounds(1.0, 1.0), unpenalized=[0]
        ).plan(100, 5)  # fmt: skip


# Which columns they are.

SCHEMA = """
unpenalized = ["age", "sex"]
[[features]]
name = "age"
kind = "number"
bounds = [0, 100]
[[features]]
name = "dose"
kind = "number"
bounds = [0, 1]
[[features]]
name = "sex"
kind = "choice"
choices = ["f", "m"]
other = false
[target]
name = "sick"
classes = ["no", "yes"]
"""


def frame(n=3_000):
    rng = np.random.default_rng(3)
    age, dose = rng.uniform(20, 90, n), rng.uniform(0, 1, n)
    sick = rng.logistic(size=n) + 0.03 * (age - 50) + dose > 0.5
    return pd.DataFrame(
        {"age": age, "dose": dose, "sex": rng.choice(["f", "m"], n),
         "sick": np.where(sick, "yes", "no")}
    )  # fmt: skip


def test_names_indices_and_truth_values_are_understood():
    names = ["age", "sex", "dose"]
    assert unpenalized_columns(["dose", "age"], 3, names) == (0, 2)
    assert unpenalized_columns(np.array([2, 0, 2]), 3) == (0, 2)
    assert unpenalized_columns(np.array([True, False, True]), 3) == (0, 2)
    assert unpenalized_columns([], 3) == () == unpenalized_columns(None, 3)
    schema = Schema.read(SCHEMA)
    assert unpenalized_columns(None, 4, None, schema) == (0, 2, 3)
    assert unpenalized_columns(["sex=m"], 4, None, schema) == (0, 2, 3)
    alone = dataclasses.replace(schema, unpenalized=())
    assert unpenalized_columns(["sex"], 4, None, alone) == (2, 3)
    assert unpenalized_columns(["sex=m", 0], 4, None, alone) == (0, 3)


@pytest.mark.parametrize(
    ("given", "match"),
    [("age", "must be a list"), (3, "must be a list"), ([5], "index"), ([-1], "index"),
     ([1.5], "index"), ([True], "1 truth values"), (["agee"], "Did you mean 'age'"),
     ([None], "index")],
)  # fmt: skip
def test_what_is_no_column_is_refused(given, match):
    with pytest.raises(InvalidArgument, match=match):
        unpenalized_columns(given, 3, ["age", "sex", "dose"])


def test_names_without_named_columns_are_refused():
    with pytest.raises(InvalidArgument, match="use indices"):
        lasso(unpenalized=["age"]).plan(100, 3)
    with pytest.raises(SchemaError, match="features of the schema"):
        Schema.read(SCHEMA.replace('"age", "sex"]', '"weight"]'))


def test_a_data_frame_has_names():
    x = pd.DataFrame(X[:, :3], columns=["age", "sex", "dose"])
    model = lasso(unpenalized=["sex"]).fit(x, Y)
    assert list(model.unpenalized_) == [1]
    assert "sex: always in the model" in " ".join(str(model.summary()).split())


def test_a_schema_says_them_and_everything_shows_them(tmp_path):
    schema = Schema.read(SCHEMA)
    assert Schema.read(schema.toml()) == schema
    model = PrivateLogisticRegression(2.0, 1e-6, random_state=1).fit(read(frame(), schema))
    names = [str(model.feature_names_in_[j]) for j in model.unpenalized_]
    assert names[-2:] == ["sex=f", "sex=m"]
    assert all(name.startswith(("age", "sex")) for name in names)  # with the knots of age
    assert model.privacy_.public["unpenalized columns"] == ", ".join(names)
    riata.report.write(model, tmp_path / "model.html")
    assert "Always in the model: age" in (tmp_path / "model.html").read_text()
    save(model, tmp_path / "model.riata")
    loaded = load(tmp_path / "model.riata")
    np.testing.assert_array_equal(loaded.unpenalized_, model.unpenalized_)
    assert str(loaded.summary()) == str(model.summary())
    np.testing.assert_array_equal(loaded.conf_int(), model.conf_int())
    export_onnx(model, tmp_path / "model.onnx")


def test_intervals_of_named_columns_count_no_selection():
    """As those of the intercept: others may be corrected for a search, and these never are."""
    model = lasso(solver="greedy").fit(X, Y)
    plain, corrected = model.conf_int(correction=None), model.conf_int(correction="bonferroni")
    np.testing.assert_array_equal(plain[ALWAYS], corrected[ALWAYS])
    assert np.all((corrected - plain)[3] != 0)
    terms = {term.name: term for term in model.summary().functions[0].terms}
    assert np.isnan(terms["x[0]"].p_adjusted)
    assert not np.isnan(terms["x[3]"].p_adjusted)
    np.testing.assert_allclose([terms["x[0]"].low, terms["x[0]"].high], plain[0])


def test_a_damaged_model_file_has_no_other_columns(tmp_path):
    model = lasso().fit(X, Y)
    model.unpenalized_ = np.array([0, P])
    with pytest.raises(InvalidArgument, match="unpenalized"):  # which reads it again
        save(model, tmp_path / "model.riata")


@pytest.mark.not_quick
def test_the_command_line_takes_names(tmp_path):
    """The schema marks age and sex, the option adds dose: the plan has all of their columns."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    frame().to_csv(tmp_path / "rows.csv", index=False)
    call = [sys.executable, "-m", "riata", "fit", "--data", "rows.csv", "--schema", "schema.toml",
            "--out", "model", "--epsilon", "2", "--seed", "1", "--unpenalized", "dose", "--yes",
            "--json"]  # fmt: skip
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "unpenalized columns" in done.stdout
    assert "dose" in load(tmp_path / "model" / "model.riata").privacy_.public["unpenalized columns"]


@pytest.mark.parametrize("adjacency", ["replace-one", "replace-label"])
@pytest.mark.parametrize("rows", [np.zeros((400, 4)), np.full((400, 4), 1e300)], ids=["0", "alike"])
def test_columns_that_say_nothing_end_with_a_model(rows, adjacency):
    """All columns are the same, so that no estimate is better than another."""
    for epsilon in (1.0, 1e6):
        for model, y in ((lasso, Y[:400]), (logistic, SICK[:400])):
            coef = model(epsilon, adjacency=adjacency).fit(rows, y).coef_
            assert np.isfinite(coef).all()
