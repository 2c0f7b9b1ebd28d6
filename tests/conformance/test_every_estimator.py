"""What users rely on, for every estimator: containers, copies, pipelines, charges, Statements."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
    Statement,
)
from riata.losses import Huber, Squared
from riata.privacy.events import leaves
from riata.projections import GaussianProjection
from riata.sets import L1Ball, L2Ball
from riata.solvers import NoisyGradient, PerturbedObjective, PrivatePeeling

pytestmark = pytest.mark.matrix(one_in=11)

N, P = 400, 10
ENTRIES, LENGTH = Bounds(1.0, 2.0), Bounds(4.0, 2.0, norm="l2")
RNG = np.random.default_rng(0)
X = np.round(RNG.uniform(-1, 1, (N, P)) * (RNG.random((N, P)) < 0.6), 3)
Y = np.round(0.6 * X[:, 0] - 0.4 * X[:, 1] + 0.3 + 0.05 * RNG.standard_normal(N), 3)
LABELS = np.where(2 * X[:, 0] - X[:, 1] + 0.2 > 0, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.2, 0.2])
PHI = GaussianProjection(P, 15, seed=1)
GIVEN = {"epsilon": 2.0, "delta": 1e-6}
TWO, ALL = {"classes": ["no", "yes"]}, {"classes": [0, 1, 2]}


def projected_compressed(**c):
    return ProjectedRegression(**GIVEN | c, bounds=LENGTH, projection=PHI, compressed=True, steps=4)


#: Each estimator, and whether its rows are summed exactly: then their order changes nothing at all.
REGRESSORS = {
    "lasso": (lambda **c: PrivateLasso(**GIVEN | c, bounds=ENTRIES, steps=4), True),
    "lasso, length": (lambda **c: PrivateLasso(**GIVEN | c, bounds=LENGTH, steps=4), True),
    "noisy gradient": (
        lambda **c: PrivateErm(
            Huber(0.5), L2Ball(1.0), **GIVEN | c, bounds=LENGTH, solver=NoisyGradient(4)
        ),
        False,  # each gradient is clipped in float64
    ),
    "objective": (
        lambda **c: PrivateErm(
            Squared(), L1Ball(1.0), **GIVEN | c, bounds=LENGTH, solver=PerturbedObjective(1, 9.0)
        ),
        True,
    ),
    "posterior": (
        lambda **c: PrivateErm(
            Squared(), L2Ball(1.0), **GIVEN | c, bounds=LENGTH, solver="posterior-sampling"
        ),
        True,
    ),
    "sparse": (
        lambda **c: PrivateSparseRegression(**GIVEN | c, bounds=ENTRIES, sparsity=3, steps=4),
        True,
    ),
    "sparse, length": (
        lambda **c: PrivateSparseRegression(**GIVEN | c, bounds=LENGTH, sparsity=3, steps=4),
        True,
    ),
    "heavy tails": (lambda **c: HeavyTailedRegression(**GIVEN | c, sparsity=3, steps=4), True),
    "projected": (
        lambda **c: ProjectedRegression(**GIVEN | c, bounds=LENGTH, dimension=4, steps=4),
        False,  # rows are projected in float64
    ),
    "projected, entries": (
        lambda **c: ProjectedRegression(
            **GIVEN | c, bounds=ENTRIES, dimension=4, projection="structured", steps=4
        ),
        False,
    ),
    "compressed": (projected_compressed, False),
}
CLASSIFIERS = {
    "logistic": (
        lambda **c: PrivateLogisticRegression(**TWO | GIVEN | c, bounds=ENTRIES, steps=4),
        True,
    ),
    "logistic, length": (
        lambda **c: PrivateLogisticRegression(**TWO | GIVEN | c, bounds=LENGTH, steps=4),
        False,
    ),
    "svc": (lambda **c: PrivateLinearSVC(**TWO | GIVEN | c, bounds=ENTRIES, steps=4), True),
    "svc, length": (
        lambda **c: PrivateLinearSVC(**TWO | GIVEN | c, bounds=LENGTH, steps=4, penalty="l1"),
        False,
    ),
    "projected labels": (
        lambda **c: ProjectedClassifier(
            **TWO | GIVEN | c, bounds=LENGTH, dimension=4, projection="sparse-sign", steps=4
        ),
        False,
    ),
}
EVERY = REGRESSORS | CLASSIFIERS
every = pytest.mark.parametrize("name", EVERY)
every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


def make(name, **changes):
    return EVERY[name][0](**changes)


def target(name):
    return LABELS if name in CLASSIFIERS else Y


def assert_same(name, found, expected):
    """To the bit, or up to what float64 does in another order of the same sums."""
    close = {"rtol": 0, "atol": 0} if EVERY[name][1] else {"rtol": 1e-3, "atol": 2e-3}
    np.testing.assert_allclose(found.coef_, expected.coef_, **close)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, **close)
    assert str(found.privacy_) == str(expected.privacy_)


CONTAINERS = {
    "csr array": sparse.csr_array,
    "coo array": sparse.coo_array,
    "list": lambda x: x.tolist(),
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "pandas": lambda x: pd.DataFrame(x, columns=[f"c{i}" for i in range(x.shape[1])]),
    "polars": lambda x: pl.DataFrame(x, schema=[f"c{i}" for i in range(x.shape[1])]),
}


@every
def test_every_container_gives_the_same_model_and_the_same_predictions(name):
    expected = make(name, random_state=0).fit(X, target(name))
    for container in CONTAINERS.values():
        data = container(X)
        found = make(name, random_state=0).fit(data, target(name))
        assert_same(name, found, expected)
        if name not in CLASSIFIERS:
            np.testing.assert_allclose(found.predict(data), found.predict(_as_named(found, X)))


def _as_named(model, x):
    names = getattr(model, "feature_names_in_", None)
    return x if names is None else pd.DataFrame(x, columns=names)


@every
def test_the_rows_are_not_changed(name):
    x, y = X.copy(), target(name).copy()
    make(name).fit(x, y)
    np.testing.assert_array_equal(x, X)
    assert np.all(y == target(name))
    rows = sparse.csr_array(X)
    make(name).fit(rows, y)
    np.testing.assert_array_equal(rows.toarray(), X)


@every
def test_float32_and_integers_are_rows(name):
    y = target(name)
    for kind in (np.float32, np.int8):
        x = (np.sign(X) if kind is np.int8 else X).astype(kind)
        found = make(name, random_state=0).fit(x, y)
        assert_same(name, found, make(name, random_state=0).fit(x.astype(float), y))
        assert found.coef_.dtype == np.float64
        assert found.predict(x).shape == (N,)


@every
def test_the_order_of_the_rows_does_not_matter(name):
    order = np.random.default_rng(1).permutation(N)
    expected = make(name, random_state=0).fit(X, target(name))
    assert_same(name, make(name, random_state=0).fit(X[order], target(name)[order]), expected)
    predicted = expected.predict(X)[order]
    if name in CLASSIFIERS:
        assert np.all(predicted == expected.predict(X[order]))
    else:
        np.testing.assert_allclose(predicted, expected.predict(X[order]), atol=1e-12)


@every
def test_clones_pickles_and_parameters(name):
    model = make(name)
    assert clone(model).get_params().keys() == model.get_params().keys()
    fitted = model.fit(X, target(name))
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.privacy_ == fitted.privacy_
    assert not hasattr(clone(fitted), "coef_")
    assert clone(fitted).fit(X, target(name)).coef_.shape == fitted.coef_.shape
    for parameter, value in fitted.get_params(deep=False).items():
        model.set_params(**{parameter: value})
    repr(fitted), fitted._repr_html_()


@every
def test_kinds_of_models(name):
    assert is_classifier(make(name)) is (name in CLASSIFIERS)
    assert is_regressor(make(name)) is (name not in CLASSIFIERS)


@every
def test_models_work_in_pipelines_and_searches(name):
    half = FunctionTransformer(lambda x: x / 2)
    pipe = make_pipeline(half, make(name)).fit(X, target(name))
    assert pipe.predict(X).shape == (N,)
    assert np.isfinite(pipe.score(X, target(name)))
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(100.0, 1e-4))
    cross_val_score(make(name, ledger=ledger), X, target(name), cv=2, error_score="raise")
    grid = {"epsilon": [0.5, 1.0]}
    GridSearchCV(make(name, ledger=ledger), grid, cv=2, error_score="raise").fit(X, target(name))
    assert len(ledger.charges) == 2 + 2 * 2 + 1


@every
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_ledger_is_charged_what_the_plan_says(name, adjacency):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6, adjacency))
    model = make(name, ledger=ledger, adjacency=adjacency)
    plan = model.plan(N, P)
    assert ledger.charges == []
    model.fit(X, target(name))
    (charge,) = ledger.charges
    assert leaves(charge.event) == leaves(plan.event)
    assert charge.summary["estimator"] == type(model).__name__
    assert charge.summary["solver"] == plan.solver == model.privacy_.solver
    assert charge.summary["releases"] == list(plan.releases) == list(model.privacy_.releases)
    assert 2 * (1 - 1e-6) <= ledger.spent.epsilon <= 2
    assert model.privacy_.epsilon == plan.spent.epsilon
    if not plan.adaptive:  # a run with a pool decides itself
        assert model.n_iter_ == plan.steps


@every
def test_the_statement_says_everything(name):
    model = make(name).fit(X, target(name))
    said = model.privacy_
    assert isinstance(said, Statement)
    assert said.private
    assert 2 * (1 - 1e-6) <= said.epsilon <= 2
    assert said.delta == 1e-6
    text, page = str(said), said._repr_html_()
    for part in ("(2, 1e-06)-differentially private", "replacement of one row"):
        assert part in text
        assert part in page
    facts = said.public
    assert facts["rows"] == N
    assert facts["columns"] == (15 if name == "compressed" else P)
    assert facts["set"] == str(model.plan(N, P).problem.set)
    assert facts["bounds"] == repr(model.plan(N, P).problem.bounds)
    assert ("classes" in facts) is (name in CLASSIFIERS)
    assert json.loads(json.dumps(said.to_dict()))["public"]["rows"] == N
    seeded = make(name, random_state=1).fit(X, target(name)).privacy_
    assert not seeded.private
    assert str(seeded).startswith("SEEDED: NOT PRIVATE")


@every
def test_fits_without_a_seed_differ_and_with_one_agree(name):
    y = target(name)
    # Few steps may select alike, and intercepts differ; with little budget two may find nothing.
    free = [make(name, epsilon=100.0).fit(X, y) for _ in range(2)]
    names = ("coef_", "intercept_", "training_fit_")
    released = [[np.asarray(getattr(m, k, 0.0)).tobytes() for k in names] for m in free]
    assert released[0] != released[1]
    one, two = (make(name, random_state=7).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    generator = make(name, random_state=np.random.RandomState(7)).fit(X, y)
    assert not generator.privacy_.private


@every
@pytest.mark.parametrize("intercept", [False, True])
def test_coefficients_lie_in_the_set_and_intercepts_can_be_left_out(name, intercept):
    model = make(name, fit_intercept=intercept, random_state=3).fit(X, target(name))
    C = model.plan(N, P).problem.set
    for coef in np.atleast_2d(model.coef_):
        assert C.contains(coef, 1e-6)
    if not intercept:
        assert not np.any(model.intercept_)
    elif not model.plan(N, P).adaptive:  # these take 0 for an intercept that noise explains
        assert np.any(model.intercept_)
    assert ("with intercept" in str(model.plan(N, P))) is intercept


@every
def test_rows_to_predict_are_read_as_rows_to_fit(name):
    model = make(name).fit(X, target(name))
    outside = np.array([[np.nan] + [1e300] * (P - 1)])
    assert model.predict(outside).shape == (1,)
    limit = model.row_bounds().clip_x(outside)
    np.testing.assert_array_equal(model.predict(outside), model.predict(limit))
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, 1:])


@every_classifier
def test_three_classes_share_one_budget(name):
    model = make(name, classes=[0, 1, 2], random_state=0).fit(X, THREE)
    assert model.coef_.shape == (3, P)
    assert model.intercept_.shape == (3,)
    assert model.decision_function(X).shape == (N, 3)
    assert set(model.predict(X)) <= {0, 1, 2}
    assert 2 * (1 - 1e-6) <= model.privacy_.epsilon <= 2
    together = getattr(model, "multinomial", False)
    assert model.plan(N, P).fits == (1 if together else 3)
    if not together:
        shared = r"\b(12|3) (releases|selections)|each of 3 fits"
        assert re.search(shared, model.privacy_.releases[0])


@every_classifier
def test_classes_are_public_or_declared(name):
    with pytest.raises(ValueError, match="needs classes"):
        make(name, classes=None).fit(X, LABELS)
    assert make(name, classes=None).fit(X, LABELS == "yes").classes_.tolist() == [False, True]
    observed = make(name, classes="observed").fit(X, LABELS)
    assert observed.classes_.tolist() == ["no", "yes"]
    assert any("declared the set of labels" in note for note in observed.privacy_.notes)
    odd = LABELS.astype(object)
    odd[0] = "secret"
    assert "secret" not in repr(vars(make(name).fit(X, odd)))


def test_classifiers_learn_with_a_large_budget():
    given = {"epsilon": 1e3, "random_state": 0, "steps": 60}
    for name in ("logistic", "svc", "logistic, length"):
        model = make(name).set_params(**given).fit(X, LABELS)
        assert model.score(X, LABELS) > 0.85, name
    assert not hasattr(make("svc"), "predict_proba")
    for name in ("logistic", "logistic, length", "projected labels"):
        model = make(name, random_state=0).fit(X, LABELS)
        probability = model.predict_proba(X)
        np.testing.assert_allclose(probability.sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict(X) == "yes", probability[:, 1] > 0.5)


def test_a_split_fit_charges_one_part_and_says_so():
    models = {}
    for split in (False, True):
        ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6))
        solver = PrivatePeeling(5, split=split)
        model = PrivateSparseRegression(
            2.0, 1e-6, bounds=ENTRIES, sparsity=3, solver=solver, ledger=ledger
        ).fit(X, Y)
        models[split] = sum(leaves(ledger.charges[0].event).values())
        assert ledger.spent.epsilon == pytest.approx(2.0, rel=1e-6)
        assert model.n_iter_ == 5
        assert any("split into 5 parts" in line for line in model.privacy_.releases) is split
    assert models[False] == 5 * models[True]


@pytest.mark.parametrize(
    "model",
    [
        PrivateSparseRegression(np.inf, bounds=ENTRIES, sparsity=3, steps=5),
        PrivateLogisticRegression(np.inf, bounds=LENGTH, classes=[0, 1], steps=5, radius=1.0),
        PrivateLinearSVC(np.inf, bounds=ENTRIES, classes=[0, 1], steps=5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_infinite_epsilon_says_that_it_is_not_private(model):
    model.fit(X, (LABELS == "yes").astype(int))
    assert not model.privacy_.private
    assert str(model.privacy_).startswith("NOT PRIVATE")
    assert model.privacy_.solver.startswith("non-private")
