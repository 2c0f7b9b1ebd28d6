"""What users of the estimators rely on."""

import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from riata import (
    Bounds,
    Budget,
    BudgetExceeded,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLogisticRegression,
)
from riata.datasets import load_flights
from riata.losses import Logistic, SmoothedHinge
from riata.mechanisms import ExponentialMechanism
from riata.privacy import calibrate
from riata.privacy.events import compose
from riata.queries import Gradient
from riata.sets import L1Ball, L2Ball
from riata.solvers import GaussianFrankWolfe, PrivateFrankWolfe

BOUNDS = Bounds(x=1.0, y=2.0)
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (5000, 20)) * (RNG.random((5000, 20)) < 0.5)
Y = 0.6 * X[:, 0] - 0.4 * X[:, 1] + 0.3 + 0.05 * RNG.standard_normal(5000)
LABELS = np.where(2 * X[:, 0] - X[:, 1] + 0.2 > 0, "yes", "no")


def lasso(**changes):
    return PrivateLasso(**{"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS} | changes)


def logistic(**changes):
    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "classes": ["no", "yes"]}
    return PrivateLogisticRegression(**given | changes)


@pytest.mark.parametrize(
    "container",
    [sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_array, pd.DataFrame, list],
)
def test_every_container_gives_the_same_model(container):
    expected = lasso(random_state=0).fit(X, Y)
    data = X.tolist() if container is list else container(X)
    if container is pd.DataFrame:
        data.columns = [f"c{i}" for i in range(20)]
    found = lasso(random_state=0).fit(data, Y)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-12)
    np.testing.assert_allclose(found.predict(data), expected.predict(X), rtol=1e-12)


def test_polars_frames_are_rows():
    frame = pl.DataFrame(X, schema=[f"c{i}" for i in range(20)])
    model = lasso(random_state=0).fit(frame, pl.Series(Y))
    assert list(model.feature_names_in_) == frame.columns
    np.testing.assert_array_equal(model.coef_, lasso(random_state=0).fit(X, Y).coef_)


def test_sparse_rows_are_never_made_dense(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError("densified")

    rows, toarray, widths = sparse.csr_array(X), sparse.csr_array.toarray, []
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_array, name, refuse)
    assert lasso(solver="frank-wolfe").fit(rows, Y).predict(rows).shape == (5000,)

    def few_columns(self, *args, **kwargs):
        widths.append(self.shape[1])
        return toarray(self, *args, **kwargs)

    # A refit copies the columns that were found, some rows at a time.
    monkeypatch.setattr(sparse.csr_array, "toarray", few_columns)
    model = lasso(solver="greedy", epsilon=100.0).fit(rows, Y)
    assert model.predict(rows).shape == (5000,)
    assert 0 < max(widths) < X.shape[1]


def test_large_epsilon_recovers_coefficients_and_intercept():
    model = lasso(epsilon=1e6, steps=400, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.coef_[:2], [0.6, -0.4], atol=0.02)
    assert model.intercept_ == pytest.approx(0.3, abs=0.01)
    assert model.score(X, Y) > 0.95


@pytest.mark.parametrize("delta", [None, 0.0, 1e-9, 1e-6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("make", [lasso, logistic])
def test_the_statement_spends_exactly_what_was_asked(make, epsilon, delta):
    y = Y if make is lasso else LABELS
    statement = make(epsilon=epsilon, delta=delta).fit(X[:200], y[:200]).privacy_
    assert statement.epsilon <= epsilon
    assert statement.epsilon >= epsilon * (1 - 1e-9)
    assert statement.delta == (1e-6 if delta is None else delta)
    assert statement.adjacency == "replace-one"
    assert statement.private


def test_default_delta_is_far_below_one_over_n():
    model = PrivateLasso(1.0, bounds=BOUNDS)
    assert model.plan(n_rows=1000, n_features=5).budget.delta == 1e-6
    assert model.plan(n_rows=10**8, n_features=5).budget.delta == pytest.approx(1e-9)


def test_the_statement_reads_well_everywhere():
    statement = logistic().fit(X, LABELS).privacy_
    text, page = str(statement), statement._repr_html_()
    for part in ("(1, 1e-06)-differentially private", "replacement of one row", "gradient"):
        assert part in text
        assert part in page
    assert "classes" in text
    facts = json.loads(json.dumps(statement.to_dict()))
    assert facts["epsilon"] == statement.epsilon
    assert facts["private"] is True
    assert facts["public"]["rows"] == 5000


def test_html_escapes_labels():
    labels = np.where(LABELS == "yes", "<script>", "b")
    model = logistic(classes=["<script>", "b"]).fit(X, labels)
    assert "<script>" not in model.privacy_._repr_html_()


def test_a_seed_marks_the_model_as_not_private():
    first, second = (lasso(random_state=7).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert not first.privacy_.private
    assert str(first.privacy_).startswith("SEEDED: NOT PRIVATE")
    assert first.privacy_.to_dict()["seeded"]


def test_fits_without_a_seed_differ():
    assert not np.array_equal(lasso().fit(X, Y).coef_, lasso().fit(X, Y).coef_)


def test_infinite_epsilon_says_that_it_is_not_private():
    model = lasso(epsilon=math.inf, steps=50).fit(X, Y)
    assert not model.privacy_.private
    assert str(model.privacy_).startswith("NOT PRIVATE")


def test_add_remove_halves_the_noise_and_says_so():
    replace, remove = (
        lasso(adjacency=a, fit_intercept=False).plan(5000, 20).problem
        for a in ("replace-one", "add-remove")
    )
    one, half = (Gradient(each, each.set.start()).sensitivity("l2") for each in (replace, remove))
    assert half * 2 == one
    assert "number of rows is public" in lasso(adjacency="add-remove").fit(X, Y).privacy_.sentence


def test_noise_is_four_times_below_the_papers_composition():
    # eps0 = epsilon / sqrt(8 T ln(1 / delta)) is the paper's rule for T private selections.
    rule = 1.0 / math.sqrt(8 * 40 * math.log(1e6))
    ours = calibrate(lambda e: compose((ExponentialMechanism(e).event, 40)), Budget(1.0, 1e-6))
    plan = lasso(steps=40, fit_intercept=False, solver="frank-wolfe").plan(5000, 20)
    assert plan["select"].epsilon == pytest.approx(ours)
    assert ours / rule >= 4


def test_pure_privacy_uses_permute_and_flip():
    model = lasso(delta=0.0, solver="frank-wolfe").fit(X, Y)
    assert "permute-and-flip" in model.privacy_.releases[0]
    assert "Laplace" in model.privacy_.releases[1]
    assert model.privacy_.sentence.startswith("The model is 1-differentially private")


def test_solver_objects_are_accepted():
    assert lasso(solver=PrivateFrankWolfe(7, selection="laplace")).fit(X, Y).n_iter_ == 7
    assert lasso(solver=GaussianFrankWolfe(steps=5)).fit(X, Y).n_iter_ == 5
    assert lasso(solver="gaussian-frank-wolfe", steps=6).fit(X, Y).n_iter_ == 6


def test_clone_keeps_parameters_and_ledger():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(10.0, 1e-6))
    model = lasso(ledger=ledger)
    assert clone(model).ledger is ledger


def test_cross_validation_is_charged_for_every_fit():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(50.0, 1e-5))
    cross_val_score(lasso(ledger=ledger), X, Y, cv=3)
    assert len(ledger.charges) == 3
    GridSearchCV(lasso(ledger=ledger), {"radius": [0.5, 1.0]}, cv=2).fit(X, Y)
    assert len(ledger.charges) == 3 + 2 * 2 + 1


def test_cross_validation_stops_at_the_ceiling():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6))
    with pytest.raises(BudgetExceeded):
        cross_val_score(lasso(ledger=ledger), X, Y, cv=8, error_score="raise")
    assert ledger.spent.epsilon <= 2.0


def test_a_fitted_model_survives_pickling():
    model = lasso().fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.privacy_ == model.privacy_


def test_models_work_in_pipelines():
    half = FunctionTransformer(lambda x: x / 2)
    assert make_pipeline(half, lasso()).fit(X, Y).predict(X).shape == (5000,)


def test_rows_to_predict_are_read_as_rows_to_fit():
    model = lasso().fit(X, Y)
    outside = np.array([[np.nan] + [1e300] * 19])
    inside = np.array([[0.0] + [1.0] * 19])
    np.testing.assert_array_equal(model.predict(outside), model.predict(inside))


class TestClassifier:
    def test_two_classes(self):
        model = logistic(epsilon=5.0, random_state=0).fit(X, LABELS)
        assert model.coef_.shape == (1, 20)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(X, LABELS) > 0.9
        probability = model.predict_proba(X)
        np.testing.assert_allclose(probability.sum(axis=1), 1)
        np.testing.assert_array_equal(model.predict(X) == "yes", probability[:, 1] > 0.5)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probability)

    def test_three_classes_share_one_budget(self):
        labels = np.digitize(X[:, 0], [-0.2, 0.2])
        model = logistic(epsilon=20.0, classes=[0, 1, 2], random_state=0).fit(X, labels)
        assert model.coef_.shape == (3, 20)
        assert model.privacy_.epsilon == pytest.approx(20.0, rel=1e-9)
        assert model.score(X, labels) > 0.6
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert "gradient: Gaussian" in str(model.privacy_)
        model = logistic(epsilon=20.0, classes=[0, 1, 2], solver="greedy", random_state=0)
        model.fit(X, labels)
        assert model.privacy_.epsilon == pytest.approx(20.0, rel=1e-9)
        assert model.score(X, labels) > 0.6
        assert "each of 3 fits" in model.privacy_.releases[0]

    def test_booleans_declare_their_classes_and_categoricals_do_not(self):
        assert logistic(classes=None).fit(X, LABELS == "yes").classes_.tolist() == [False, True]
        labels = pd.Series(LABELS).astype("category")
        with pytest.raises(ValueError, match="needs classes"):
            logistic(classes=None).fit(X, labels)
        assert logistic().fit(X, labels).classes_.tolist() == ["no", "yes"]

    def test_observed_classes_are_stated(self):
        notes = logistic(classes="observed").fit(X, LABELS).privacy_.notes
        assert any("declared the set of labels in y public" in note for note in notes)

    def test_one_odd_label_in_a_list_changes_no_other(self):
        labels = (LABELS == "yes").astype(int).tolist()
        labels[0] = -1
        outside = logistic(classes=[0, 1], random_state=0).fit(X, labels)
        labels[0] = "odd"
        other = logistic(classes=[0, 1], random_state=0).fit(X, labels)
        # a type inferred from all labels would turn every one of them into no class
        np.testing.assert_array_equal(outside.coef_, other.coef_)
        np.testing.assert_array_equal(outside.intercept_, other.intercept_)
        assert other.score(X, (LABELS == "yes").astype(int)) > 0.7

    def test_a_label_outside_the_classes_is_no_error(self):
        labels = LABELS.astype(object)
        labels[0], labels[1], labels[2] = "secret", None, float("nan")
        model = logistic().fit(X, labels)
        assert model.classes_.tolist() == ["no", "yes"]
        assert "secret" not in repr(vars(model))


def test_erm_with_labels_is_a_classifier():
    y = np.where(LABELS == "yes", 1.0, -1.0)
    for loss, ball in ((Logistic(), L1Ball(5.0)), (SmoothedHinge(), L2Ball(3.0))):
        model = PrivateErm(loss, ball, 10.0, 1e-6, bounds=Bounds(x=1.0), random_state=0)
        model.fit(X, y)
        assert set(np.unique(model.predict(X))) <= {-1.0, 1.0}
        assert model.score(X, y) > 0.8
        np.testing.assert_array_equal(model.decision_function(X) > 0, model.predict(X) == 1)
    assert not hasattr(PrivateErm(loss=_squared(), set=L1Ball(), epsilon=1.0), "decision_function")


def _squared():
    from riata.losses import Squared

    return Squared()


def test_a_progress_bar_is_drawn_on_request(capsys):
    lasso(steps=3, verbose=True).fit(X, Y)
    lasso(steps=3).fit(X, Y)
    captured = capsys.readouterr()
    assert captured.err.count("3/3") == 1
    assert captured.out == ""


def test_packaged_flights_are_what_their_docstring_says():
    flights = load_flights()
    assert flights.x.shape == (327_346, 186)
    assert len(flights.feature_names) == 186
    assert flights.x.has_canonical_format
    np.testing.assert_array_equal(np.diff(flights.x.indptr), 7)
    assert flights.y.mean() * 180 == pytest.approx(6.895, abs=1e-3)
