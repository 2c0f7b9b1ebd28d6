"""What users rely on, for the estimators that play every device in one process."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import riata
from riata import (
    Bounds,
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalPoissonRegression,
    LocalSparseMean,
    Statement,
)
from riata.errors import InvalidArgument
from riata.local import Task
from riata.local.task_plan import TaskPlan

pytestmark = pytest.mark.matrix(one_in=11)

N, P = 600, 6
BOUNDS, LENGTH = Bounds(1.0, 2.0), Bounds(2.0, 2.0, norm="l2")
RNG = np.random.default_rng(0)
X = np.round(RNG.uniform(-1, 1, (N, P)) * (RNG.random((N, P)) < 0.6), 3)
Y = np.round(1.2 * X[:, 0] - 0.8 * X[:, 1] + 0.3, 3)
LABELS = np.where(X[:, 0] - X[:, 1] > 0, "yes", "no")

MAKERS = {
    "mean": lambda **c: LocalSparseMean(**{"epsilon": 4.0, "bounds": LENGTH} | c),
    "plain mean": lambda **c: LocalSparseMean(
        **{"epsilon": 4.0, "bounds": BOUNDS, "threshold": "none"} | c
    ),
    "lasso": lambda **c: LocalLasso(**{"epsilon": 4.0, "bounds": BOUNDS} | c),
    "ridge": lambda **c: LocalLasso(
        **{"epsilon": 4.0, "bounds": LENGTH, "penalty": "l2", "fit_intercept": False} | c
    ),
    "kernel": lambda **c: LocalKernelRidge(
        **{"epsilon": 4.0, "bounds": BOUNDS, "pairs": 6, "width": 2.0} | c
    ),
    "poisson": lambda **c: LocalPoissonRegression(**{"epsilon": 4.0, "bounds": BOUNDS} | c),
    "logistic": lambda **c: LocalLogisticRegression(
        **{"epsilon": 4.0, "bounds": LENGTH, "classes": ["no", "yes"]} | c
    ),
}
MEANS, LINEAR = ("mean", "plain mean"), ("lasso", "ridge", "logistic", "poisson")
every = pytest.mark.parametrize("name", MAKERS)
predicting = pytest.mark.parametrize("name", [name for name in MAKERS if name not in MEANS])
regressor = pytest.mark.parametrize("name", ["lasso", "ridge", "kernel"])


def target(name):
    return LABELS if name == "logistic" else Y


def fitted(name, x=X, y=None, **changes):
    return MAKERS[name](**{"random_state": 0} | changes).fit(x, target(name) if y is None else y)


def same(one, other):
    np.testing.assert_array_equal(one.model_.theta, other.model_.theta)
    np.testing.assert_array_equal(one.model_.theta_errors, other.model_.theta_errors)
    assert one.model_.offset == other.model_.offset
    assert one.model_.evidence == other.model_.evidence
    assert one.task_ == other.task_
    assert one.privacy_ == other.privacy_


CONTAINERS = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "list": lambda x: x.tolist(),
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "pandas": lambda x: pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])]),
    "polars": lambda x: pl.DataFrame(x, schema=[f"c{i}" for i in range(x.shape[1])]),
}


@every
def test_every_container_gives_the_same_model(name):
    expected = fitted(name)
    for container in CONTAINERS.values():
        data = container(X)
        found = fitted(name, data)
        same(found, expected)
        if name not in MEANS:
            np.testing.assert_array_equal(found.predict(data), expected.predict(X))


@every
def test_rows_are_not_changed_and_not_kept(name):
    x, y = X.copy(), target(name).copy()
    few = fitted(name, x[:60], y[:60])
    many = fitted(name, x, y)
    np.testing.assert_array_equal(x, X)
    assert np.all(y == target(name))
    assert abs(len(pickle.dumps(many)) - len(pickle.dumps(few))) < 200
    assert len(pickle.dumps(many)) < 60_000
    arrays = [v for v in [*vars(many).values(), *vars(many.model_).values()] if np.ndim(v)]
    assert all(N not in np.shape(values) for values in arrays)


@every
def test_clones_pickles_and_parameters(name):
    model = MAKERS[name](random_state=3)
    assert repr(clone(model).get_params()) == repr(model.get_params())
    model.fit(X, target(name))
    again = pickle.loads(pickle.dumps(model))
    same(again, model)
    assert not hasattr(clone(model), "model_")
    same(clone(model).fit(X, target(name)), model)
    if name not in MEANS:
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for parameter, value in model.get_params(deep=False).items():
        model.set_params(**{parameter: value})
    assert repr(model)
    assert model._repr_html_()
    assert is_classifier(model) is (name == "logistic")
    assert is_regressor(model) is (name in ("lasso", "ridge", "kernel", "poisson"))


@predicting
def test_models_work_in_pipelines_and_searches(name):
    half = FunctionTransformer(lambda x: x / 2)
    pipe = make_pipeline(half, MAKERS[name]()).fit(X, target(name))
    assert np.isfinite(pipe.score(X, target(name)))
    assert np.all(np.isfinite(cross_val_score(MAKERS[name](), X, target(name), cv=2)))
    grid = {"epsilon": [0.5, 1.0]}
    GridSearchCV(MAKERS[name](), grid, cv=2, error_score="raise").fit(X, target(name))


@every
def test_seeds_agree_and_are_marked_and_no_seeds_differ(name):
    one, two = fitted(name, random_state=7), fitted(name, random_state=7)
    same(one, two)
    free = [fitted(name, random_state=seed) for seed in (None, None, 8)]
    if name not in ("lasso", "ridge"):  # in so few rows, they may find nothing at all
        assert len({model.model_.evidence for model in (one, *free)}) == 4
    for model, seeded in ((one, True), (free[0], False)):
        said = model.privacy_
        assert isinstance(said, Statement)
        assert said.private is not seeded
        assert said.seeded is seeded
        assert str(said).startswith("SEEDED: NOT PRIVATE") is seeded
        assert any(note.startswith("Simulated locally") for note in said.notes)
        assert said.epsilon == 4.0
        assert said.delta == 0.0
        assert said.public["reports"] == N
        assert said.public["task"] == model.task_.id
        assert said._repr_html_()
    generator = fitted(name, random_state=np.random.RandomState(7))
    assert not generator.privacy_.private


@every
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308])
def test_no_value_stops_a_fit_or_a_prediction(name, odd):
    x, y = X.copy(), target(name).astype(object)
    x[::7, ::2] = odd
    y[::5] = odd
    y = y if name == "logistic" else y.astype(float)
    model = fitted(name, x, y)
    assert np.isfinite(model.model_.theta).all()
    if name not in MEANS:
        found = model.predict(np.full((3, P), odd))
        assert found.shape == (3,)
        assert name == "logistic" or np.isfinite(found).all()


@every
def test_missing_is_0_and_outside_is_the_bound(name):
    outside, inside = X.copy(), X.copy()
    outside[:, 0], inside[:, 0] = np.nan, 0.0
    bounds = BOUNDS
    outside[:, 1], inside[:, 1] = 7.0, 1.0
    y = LABELS if name == "logistic" else np.where(Y > 0, np.inf, -9.0)
    cut = LABELS if name == "logistic" else np.where(Y > 0, 2.0, -2.0)
    same(fitted(name, outside, y, bounds=bounds), fitted(name, inside, cut, bounds=bounds))


@every
def test_entries_below_0_count_as_0_where_rows_are_nonnegative(name):
    bounds = Bounds(1.0, 2.0, nonnegative=True)
    same(fitted(name, X, bounds=bounds), fitted(name, np.maximum(X, 0.0), bounds=bounds))


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("per_column", [False, True])
def test_predictions_are_intercept_and_coefficients(name, intercept, per_column):
    """Whatever was learned, or no test would see coefficients at so few rows."""
    bounds = Bounds([1.0, 2.0, 1.0, 1.0, 4.0, 1.0], 2.0) if per_column else BOUNDS
    model = fitted(name, bounds=bounds, fit_intercept=intercept)
    learned = model.model_
    object.__setattr__(learned, "theta", np.linspace(-0.5, 0.4, P))
    object.__setattr__(learned, "offset", 0.1 * intercept)
    coef, start = learned.coef, learned.intercept
    assert intercept or start == 0.0
    if name == "logistic":
        np.testing.assert_allclose(model.decision_function(X), X @ coef + start)
        chance = model.predict_proba(X)
        np.testing.assert_allclose(chance.sum(axis=1), 1.0)
        np.testing.assert_array_equal(model.predict(X) == "yes", chance[:, 1] > 0.5)
    else:
        margins = X @ coef + start
        means = np.minimum(np.exp(margins), bounds.y) if name == "poisson" else margins
        np.testing.assert_allclose(model.predict(X), means)
        np.testing.assert_allclose(model.predict(X), learned.predict(X))


def test_attributes_have_the_shapes_of_scikit_learn():
    for name in ("lasso", "ridge"):
        model = fitted(name)
        assert model.coef_.shape == model.coef_error_.shape == (P,)
        assert isinstance(model.intercept_, float)
        assert isinstance(model.signal_, bool)
    model = fitted("logistic")
    assert model.coef_.shape == model.coef_error_.shape == (1, P)
    assert model.intercept_.shape == (1,)
    assert fitted("mean").mean_.shape == fitted("mean").mean_error_.shape == (P,)


@every
def test_the_task_needs_no_rows(name):
    model = MAKERS[name]()
    assert isinstance(model.task(P), Task)
    assert model.task(P) == fitted(name).task_


def test_plans_are_those_of_the_task():
    plan = MAKERS["mean"]().plan(10_000, P, length=0.4)
    assert isinstance(plan, TaskPlan)
    assert str(plan) == str(MAKERS["mean"]().task(P).plan(10_000, length=0.4))
    assert "share of the achievable gain" in str(plan)


def test_much_signal_is_found():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (40_000, 2)) / np.sqrt(2)
    y = x @ [1.2, -1.2]
    bounds = Bounds(1.0, 2.0, norm="l2")
    given = {"bounds": bounds, "random_state": 0, "epsilon": 4.0}
    for name in ("lasso", "ridge", "kernel"):
        assert fitted(name, x, y, **given).score(x, y) > 0.7, name
    labels = np.where(y > 0, "yes", "no")
    assert fitted("logistic", x, labels, **given).score(x, labels) > 0.9
    mean = fitted("mean", np.abs(x), **given)
    np.testing.assert_allclose(mean.mean_, np.abs(x).mean(axis=0), atol=6 * mean.mean_error_[0])


def test_the_radius_bounds_coefficients_of_columns_with_their_own_bounds():
    rng = np.random.default_rng(2)
    bounds = Bounds([1.0, 10.0], 2.0)
    x = rng.uniform(-1, 1, (40_000, 2)) * [1.0, 10.0]
    y = x @ [1.0, 0.1]
    free = LocalLasso(4.0, bounds=bounds, random_state=0).fit(x, y)
    assert np.abs(free.coef_).sum() > 0.6
    short = LocalLasso(4.0, bounds=bounds, radius=0.3, random_state=0).fit(x, y)
    assert np.abs(short.coef_).sum() <= 0.3 * (1 + 1e-9)
    assert short.signal_


# Mistakes


@every
def test_bounds_are_asked_for_before_a_row_is_read(name):
    model = MAKERS[name](bounds=None)
    with pytest.raises(InvalidArgument, match=r"needs bounds: .* reveal it\. Pass bounds=Bounds"):
        model.fit(object(), object())
    with pytest.raises(InvalidArgument, match="must be a Bounds, got float"):
        MAKERS[name](bounds=1.0).fit(X, target(name))
    with pytest.raises(InvalidArgument, match=r"2 entries and the data 6 columns.*Pass one number"):
        MAKERS[name](bounds=Bounds([1.0, 1.0], 1.0)).fit(X, target(name))


@regressor
def test_a_bound_on_y_is_asked_for(name):
    with pytest.raises(InvalidArgument, match=r"bound on y: devices clip to it\. Pass"):
        MAKERS[name](bounds=Bounds(1.0)).fit(X, Y)


@every
@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, np.inf, 16.5, "1", None, True])
def test_impossible_budgets(name, epsilon):
    with pytest.raises(InvalidArgument, match=r"epsilon=.*one report costs\. Pass a number above"):
        MAKERS[name](epsilon=epsilon).fit(X, target(name))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("mean", {"threshold": "firm"}, "threshold='firm' is not known. Use one of"),
        ("lasso", {"penalty": "l0"}, "penalty='l0' is not known. Use \"l1\" or"),
        ("lasso", {"radius": 0.0}, "radius=0.0: .* Pass a number above 0"),
        ("lasso", {"radius": np.nan}, "radius=nan"),
        ("lasso", {"radius": "1"}, "radius='1'"),
        ("kernel", {"width": 0.0}, "width=0.0"),
        ("kernel", {"pairs": 0}, "pairs=0: .* at most 2048"),
        ("kernel", {"pairs": 2.5}, "pairs=2.5 is not whole"),
        ("lasso", {"random_state": "x"}, "random_state must be None or an int"),
        ("logistic", {"classes": ["a", "b", "c"]}, "two classes, got 3 classes. Fit one model"),
        ("logistic", {"classes": ["yes"]}, "got 1 class. Pass classes"),
        ("logistic", {"classes": "yes"}, 'must be a list of two labels, or "observed"'),
    ],
)
def test_unknown_arguments(name, changes, message):
    with pytest.raises(InvalidArgument, match=message):
        MAKERS[name](**changes).fit(X, target(name))


def test_plans_refuse_what_fits_refuse():
    for model in (LocalLasso(1.0, bounds=BOUNDS, penalty="l0"), LocalLasso(0.0, bounds=BOUNDS)):
        with pytest.raises(InvalidArgument):
            model.plan(100, 3)
    with pytest.raises(InvalidArgument, match="threshold"):
        LocalSparseMean(1.0, bounds=BOUNDS, threshold="firm").task(3)


@predicting
def test_not_fitted(name):
    with pytest.raises(NotFittedError):
        MAKERS[name]().predict(X)
    with pytest.raises(ValueError, match="features"):
        fitted(name).predict(X[:, 1:])
    with pytest.raises(ValueError, match="requires y"):
        MAKERS[name]().fit(X, None)


def test_classes_are_sorted_public_or_taken_from_the_labels():
    turned = fitted("logistic", classes=["yes", "no"])
    assert turned.classes_.tolist() == ["no", "yes"]
    same(turned, fitted("logistic"))
    for classes in (None, "observed"):
        model = fitted("logistic", classes=classes)
        assert model.classes_.tolist() == ["no", "yes"]
        assert any("taken from the labels" in note for note in model.privacy_.notes)
        np.testing.assert_array_equal(model.model_.theta, turned.model_.theta)
        with pytest.raises(InvalidArgument, match="got 1 class"):
            fitted("logistic", y=np.full(N, "no"), classes=classes)
        with pytest.raises(InvalidArgument, match="Only binary classification"):
            fitted("logistic", y=np.arange(N) % 3, classes=classes)
    assert not any("taken from" in note for note in turned.privacy_.notes)
    odd = LABELS.astype(object)
    odd[0] = "secret"
    assert b"secret" not in pickle.dumps(fitted("logistic", y=odd))
    flags = fitted("logistic", y=LABELS == "yes", classes=[False, True])
    np.testing.assert_array_equal(flags.model_.theta, turned.model_.theta)
    assert flags.predict(X).dtype == bool


@every
def test_a_bar_is_drawn_for_those_who_ask(name, capsys):
    fitted(name)
    assert capsys.readouterr().err == ""
    model = fitted(name, verbose=True)
    shown = capsys.readouterr().err
    assert type(model).__name__ in shown
    assert "1/1" in shown
    same(model, fitted(name))


@every
def test_a_model_file_still_says_that_it_was_a_simulation(name, tmp_path):
    path = tmp_path / "model.riata"
    with pytest.raises(InvalidArgument, match="Call fit first"):
        riata.save(MAKERS[name](), path)
    assert not path.exists()
    riata.save(fitted(name), path)
    assert any("Simulated locally" in note for note in riata.load(path).privacy_.notes)


def test_many_columns_are_screened():
    x = sparse.random_array((300, 5000), density=0.001, rng=np.random.default_rng(3)).tocsr()
    model = LocalLasso(2.0, bounds=Bounds(1.0, 1.0, norm="l2"), random_state=0)
    model.fit(x, np.ones(300))
    assert model.task_.kind == "sparse-linear"
    assert model.predict(x).shape == (300,)
    assert len(pickle.dumps(model)) < 500_000
