"""A search: one charge for all of it, nothing beside the winner, every estimator of the centre."""

import io
import math
import pickle
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score

import riata
from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    LocalLasso,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
    PrivateQuantileRegression,
    PrivateSearch,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.errors import BudgetExceeded, Incompatible, InvalidArgument
from riata.losses import Huber, Logistic, Squared
from riata.privacy.accountants import spent
from riata.privacy.events import RandomlyRepeated, leaves
from riata.projections import GaussianProjection
from riata.sets import L1Ball, L2Ball
from riata.tuning import search as module

pytestmark = pytest.mark.matrix(one_in=11)

BOX, LENGTH = Bounds(1.0, 1.0), Bounds(1.5, 1.0, norm="l2")
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 4))
Y = 0.8 * X[:, 0] - 0.5 * X[:, 2]
SIGNS, NAMES = np.where(Y > 0, 1.0, -1.0), np.array(["a", "b", "c"])[np.digitize(Y, [-0.3, 0.3])]
STEPS = {"steps": [2, 3]}

CASES = {
    "lasso": (PrivateLasso(None, bounds=BOX), {"radius": [0.5, 2.0], "solver": ["greedy"]}, Y),
    "solvers": (
        PrivateLasso(None, bounds=BOX),
        [{"solver": ["frank-wolfe"], "steps": [2]}, {"solver": ["sufficient-statistics"]}],
        Y,
    ),
    "sparse": (PrivateSparseRegression(None, bounds=BOX), {"sparsity": [1, 2], **STEPS}, Y),
    "heavy tails": (HeavyTailedRegression(None), {"sparsity": [1, 2]}, Y),
    "projected": (ProjectedRegression(None, bounds=LENGTH), {"dimension": [1, 2], **STEPS}, Y),
    "compressed": (
        ProjectedRegression(
            None, bounds=LENGTH, compressed=True, projection=GaussianProjection(4, 9, seed=1)
        ),
        STEPS,
        Y,
    ),
    "erm": (
        PrivateErm(Squared(), L1Ball(1.0), None, bounds=BOX),
        {"set": [L1Ball(0.5), L1Ball(1.0)], "loss": [Squared(), Huber(0.5)], "steps": [2]},
        Y,
    ),
    "erm for labels": (PrivateErm(Logistic(), L2Ball(1.0), None, bounds=LENGTH), STEPS, SIGNS),
    "logistic": (
        PrivateLogisticRegression(None, bounds=BOX, classes=["a", "b", "c"]),
        {"penalty": ["l1", "l2"], "steps": [2]},
        NAMES,
    ),
    "logistic of two": (
        PrivateLogisticRegression(None, bounds=LENGTH, classes="observed"),
        STEPS,
        SIGNS,
    ),
    "svm": (PrivateLinearSVC(None, bounds=BOX, classes=[-1, 1]), {"radius": [1, 5]}, SIGNS),
    "projected classes": (
        ProjectedClassifier(None, bounds=LENGTH, classes=["a", "b", "c"], dimension=2),
        STEPS,
        NAMES,
    ),
}
every_case = pytest.mark.parametrize("name", CASES)


def lasso(**more):
    return PrivateLasso(None, bounds=BOX, solver="sufficient-statistics", **more)


def small(ledger=None, **more):
    return PrivateSearch(lasso(), {"radius": [0.5, 2.0]}, 1.0, 1e-6, ledger=ledger, **more)


@every_case
def test_every_estimator_of_the_centre_is_searched(name):
    estimator, grid, y = CASES[name]
    found = PrivateSearch(estimator, grid, 1e3, random_state=1).fit(X, y)
    assert found.best_params_.items() <= found.best_estimator_.get_params().items()
    assert found.best_estimator_.privacy_ is found.privacy_
    assert found.privacy_.seeded
    assert 1e3 * (1 - 1e-6) < found.privacy_.epsilon <= 1e3
    assert is_classifier(found) == is_classifier(estimator)
    assert is_regressor(found) == is_regressor(estimator)
    predicted = found.predict(X)
    assert np.array_equal(predicted, found.best_estimator_.predict(X))
    if is_classifier(estimator):
        wanted = np.mean(predicted == y)
    else:
        top = found.best_estimator_.row_bounds().y
        wanted = -np.mean(np.abs(np.clip(predicted, -top, top) - np.clip(y, -top, top)))
    assert found.best_score_error_ > 0
    assert found.best_score_ == pytest.approx(wanted, abs=9 * found.best_score_error_ + 1e-3)


def test_the_squared_error_can_be_asked_for():
    found = PrivateSearch(
        lasso(), {"radius": [0.5, 2.0]}, 1e4, scoring="squared-error", random_state=2
    ).fit(X, Y)
    assert found.best_score_ == pytest.approx(-np.mean((found.predict(X) - Y) ** 2), abs=1e-3)


def test_the_best_radius_wins_where_there_is_little_noise():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (20_000, 3))
    y = 0.9 * x[:, 0]
    grid = {"radius": [0.01, 0.9, 0.05]}
    found = PrivateSearch(lasso(), grid, 4.0, expected=20, random_state=3).fit(x, y)
    assert found.best_params_ == {"radius": 0.9}


def test_pure_privacy_works_to_the_last_digit():
    plan = PrivateSearch(lasso(), {"radius": [0.5, 2.0]}, 1.0, 0.0).plan(1_000, 4)
    assert plan.spent.delta == 0
    assert 1 - 1e-9 < plan.spent.epsilon <= 1.0
    assert plan.spent.accountant == "pure composition"


@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_plan_spends_the_budget_and_needs_no_data(delta):
    plan = small().set_params(delta=delta).plan(1_000, 4)
    assert 1 - 1e-9 < plan.spent.epsilon <= 1.0
    assert isinstance(plan.event, RandomlyRepeated)
    assert plan.event.stop == 1 / plan.expected == 0.25
    runs = [spent(run, plan.budget.delta / plan.expected).epsilon for run in plan.event.candidates]
    assert max(runs) < 1.0
    text = str(plan)
    for part in ("radius=0.5", "radius=2.0", "costs", "nothing is charged", "for the selection"):
        assert part in text


def test_a_run_is_a_fit_and_its_score():
    plan = PrivateSearch(lasso(), {"steps": [2, 3], "solver": ["frank-wolfe"]}, 1.0).plan(500, 4)
    runs = [leaves(run) for run in plan.event.candidates]
    assert len(runs) == 2
    for fit in plan.plans:
        assert leaves(fit.event) + Counter({plan.score.event: 1}) in runs


def test_one_expected_run_costs_no_selection():
    plan = small(expected=1).plan(1_000, 4)
    assert plan.spent.epsilon <= 1.0
    assert max(spent(run, 1e-6).epsilon for run in plan.event.candidates) > 1 - 1e-6


def test_the_ledger_is_charged_once_for_the_whole_search():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(5.0, 1e-6))
    searched = small(ledger, expected=6).fit(X, Y)
    (charge,) = ledger.charges
    assert leaves(charge.event) == {searched.plan(*X.shape).event: 1}
    assert ledger.spent.epsilon == pytest.approx(1.0, rel=1e-8)
    assert searched.privacy_.private
    assert searched.best_estimator_.ledger is None
    assert charge.summary["candidates"] == ["radius=0.5", "radius=2.0"]
    assert "PrivateSearch" in ledger.show()


def test_a_charge_that_does_not_fit_reads_nothing(monkeypatch):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(0.5, 1e-6))
    monkeypatch.setattr(PrivateSearch, "_best", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(BudgetExceeded):
        small(ledger).fit(X, Y)
    assert ledger.charges == []


def test_the_charge_is_made_before_a_row_is_read(monkeypatch):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6))

    def stopped(*_):
        assert len(ledger.charges) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivateSearch, "_best", stopped)
    with pytest.raises(KeyboardInterrupt):
        small(ledger).fit(X, Y)
    assert len(ledger.charges) == 1


def test_nothing_but_the_winner_is_kept_or_shown(monkeypatch):
    """Two searches that differ in the number of runs alone leave the same kind of object."""
    seen = []
    for runs in (1, 7):
        monkeypatch.setattr(module, "geometric", lambda stop, noise, runs=runs: runs)
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            found = small(random_state=4, verbose=True).fit(X, Y)
        state = {k: v for k, v in vars(found).items() if k not in found.get_params()}
        inner = {k for k in vars(found.best_estimator_) if not k.startswith("_")}
        seen.append((set(state), inner, found.privacy_.releases, found.privacy_.notes))
        assert set(state) == {
            "best_estimator_",
            "best_params_",
            "best_score_",
            "best_score_error_",
            "privacy_",
            "n_features_in_",
        }
        assert "7" not in out.getvalue()
    assert seen[0] == seen[1]


def test_runs_differ_and_a_seed_repeats_them():
    first, second, third = (small(random_state=seed, expected=5).fit(X, Y) for seed in (5, 5, 6))
    assert np.array_equal(first.best_estimator_.coef_, second.best_estimator_.coef_)
    assert first.best_score_ == second.best_score_ != third.best_score_
    assert not small().fit(X, Y).privacy_.seeded


@pytest.mark.parametrize(
    "name",
    ["epsilon", "delta", "bounds", "ledger", "adjacency", "random_state", "verbose"],
)
def test_parameters_that_touch_privacy_are_refused_in_the_grid(name):
    with pytest.raises(InvalidArgument, match=f"'{name}', which cannot be searched"):
        PrivateSearch(lasso(), {name: [1.0, 2.0]}, 1.0).fit(X, Y)


def test_classes_are_refused_in_the_grid():
    model = PrivateLogisticRegression(None, bounds=BOX, classes=[-1, 1])
    with pytest.raises(InvalidArgument, match="cannot be searched"):
        PrivateSearch(model, {"classes": [[-1, 1]]}, 1.0).fit(X, SIGNS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": PrivateLasso(1.0, bounds=BOX)}, "The estimator has epsilon=1.0"),
        ({"estimator": lasso(delta=1e-6)}, "The estimator has delta=1e-06"),
        ({"estimator": lasso(random_state=1)}, "The estimator has random_state=1"),
        ({"estimator": LocalLasso(1.0, bounds=BOX)}, "central model"),
        ({"estimator": None}, "central model"),
        ({"grid": {"radios": [1.0]}}, "'radios', which is no parameter"),
        ({"grid": 3}, "not a parameter grid"),
        ({"grid": {"radius": 1.0}}, "not a parameter grid"),
        ({"grid": {"radius": []}}, "not a parameter grid"),
        ({"epsilon": 0}, "must be positive"),
        ({"epsilon": math.inf}, "GridSearchCV"),
        ({"delta": 1.0}, r"must lie in \[0, 1\)"),
        ({"expected": 0.5}, "expected=0.5"),
        ({"expected": True}, "expected=True"),
        ({"expected": math.nan}, "expected=nan"),
        ({"scoring": "accuracy"}, "scoring='accuracy' is not known"),
        ({"ledger": "study.db"}, "ledger must be a Ledger"),
    ],
)
def test_bad_arguments_stop_a_search_before_a_row_is_read(change, message, monkeypatch):
    monkeypatch.setattr(PrivateSearch, "_best", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(InvalidArgument, match=message):
        small().set_params(**change).fit(X, Y)


def quantile(**more):
    return PrivateQuantileRegression(None, bounds=Bounds(1.0, 1.0), **more)


@pytest.mark.parametrize(
    ("estimator", "grid", "said"),
    [
        (lambda: quantile(), {"data_quality": [False, True]}, "count the rows anew"),
        (lambda: quantile(), {"max_weight": [None, 2.0]}, "no weights"),
        (lambda: quantile(max_weight=2.0), {"radius": [0.5, 1.0]}, "max_weight=None"),
        (
            lambda: PrivatePoissonRegression(None, bounds=Bounds(1.0, 1.0), max_exposure=1.0),
            {"radius": [0.5, 1.0]}, "max_exposure=None",
        ),
    ],
)  # fmt: skip
def test_weights_and_counts_of_bad_cells_are_refused_before_the_charge(estimator, grid, said):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(9.0, 1e-5))
    search = PrivateSearch(estimator(), grid, 1.0, 1e-6, ledger=ledger)
    with pytest.raises(InvalidArgument, match=said):
        search.fit(X, Y)
    with pytest.raises(InvalidArgument, match=said):
        search.plan(*X.shape)
    assert ledger.charges == []


class RefusesLate(PrivateLasso):
    """Whose plans say nothing of what its fits refuse."""

    def request(self, X, y=None, **of_rows):
        if self.radius == 2.0:
            raise InvalidArgument("not with this radius")
        return super().request(X, y, **of_rows)


def test_what_a_fit_of_any_candidate_refuses_is_refused_before_the_charge():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(9.0, 1e-5))
    lasso = RefusesLate(None, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", steps=2)
    search = PrivateSearch(lasso, {"radius": [1.0, 2.0]}, 1.0, 1e-6, ledger=ledger)
    with pytest.raises(InvalidArgument, match="not with this radius"):
        search.fit(X, Y)
    assert ledger.charges == []


def test_a_seed_and_a_ledger_contradict_each_other():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6))
    with pytest.raises(InvalidArgument, match="random_state makes the noise known"):
        small(ledger, random_state=1).fit(X, Y)
    assert ledger.charges == []


def test_losses_for_numbers_and_for_labels_are_not_compared():
    erm = PrivateErm(Squared(), L1Ball(1.0), None, bounds=BOX)
    with pytest.raises(InvalidArgument, match="cannot be compared"):
        PrivateSearch(erm, {"loss": [Squared(), Logistic()]}, 1.0).fit(X, SIGNS)


SCHEMA = {
    "features": [
        {"name": "a", "kind": "number", "bounds": [0, 2]},
        {"name": "b", "kind": "number", "bounds": [0, 2]},
    ],
    "target": {"name": "y", "bounds": [0, 20]},
}


def frame(n=20_000):
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"a": rng.uniform(0, 2, n), "b": rng.uniform(0, 2, n)})
    rows["y"] = 4 + 5 * rows["a"] + rng.standard_normal(n)
    rows["c"] = np.where(rows["a"] > 1, "high", "low")
    return rows


def test_a_source_is_searched_in_its_own_units():
    rows, table = frame(), {**SCHEMA, "ignore": ["c"]}
    lasso = PrivateLasso(None, solver="frank-wolfe")
    search = PrivateSearch(lasso, {"radius": [1.0, 30.0]}, 4.0, random_state=1, expected=6)
    source = riata.read(rows, table)
    assert search.plan_for(source).plans[0].problem.n_rows == len(rows)
    search.fit(source)
    assert search.best_params_ == {"radius": 30.0}
    assert search.best_estimator_.score(rows) > 0.7
    assert search.best_estimator_.intercept_ == pytest.approx(9.0, abs=1.0)
    assert search.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(search.predict(source), search.predict(rows))


def test_classes_of_a_source_are_searched():
    rows = frame()
    table = {**SCHEMA, "target": {"name": "c", "classes": ["low", "high"]}, "ignore": ["y"]}
    search = PrivateSearch(
        PrivateLogisticRegression(None), {"solver": ["auto", "frank-wolfe"]}, 4.0, random_state=1
    ).fit(riata.read(rows, table))
    assert search.best_score_ > 0.9
    assert search.best_estimator_.score(rows) > 0.9


def test_rows_of_people_are_refused():
    rows = frame(90).assign(who=np.arange(90) // 3)
    table = {**SCHEMA, "person": "who", "rows_of_a_person": 2, "ignore": ["c"]}
    with pytest.raises(Incompatible, match="rows of people"):
        PrivateSearch(PrivateLasso(None), {"radius": [1.0]}, 1.0).fit(riata.read(rows, table))


def test_clones_pickles_sparse_rows_and_model_files(tmp_path):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(2.0, 1e-6))
    assert clone(small(ledger)).ledger is ledger
    found = small().fit(sparse.csr_array(X), Y)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.predict(X), found.predict(X))
    riata.save(found.best_estimator_, tmp_path / "model.riata")
    loaded = riata.load(tmp_path / "model.riata")
    assert loaded.privacy_.epsilon == found.privacy_.epsilon == pytest.approx(1.0)


def test_methods_are_those_of_the_estimator():
    assert not hasattr(small(), "predict_proba")
    found = PrivateSearch(
        PrivateLogisticRegression(None, bounds=LENGTH, classes=[-1, 1], steps=2),
        {"radius": [1.0, 9.0]},
        4.0,
    ).fit(X, SIGNS)
    assert found.predict_proba(X).shape == (400, 2)
    assert np.allclose(np.exp(found.predict_log_proba(X)), found.predict_proba(X))
    assert found.decision_function(X).shape == (400,)
    assert found.classes_.tolist() == [-1, 1]
    assert 0 <= found.score(X, SIGNS) <= 1


# scikit-learn's own searches


def fits_of(ledger):
    return [charge.summary["estimator"] for charge in ledger.charges]


def test_grid_search_of_scikit_learn_charges_every_fit():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(50.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=BOX, ledger=ledger, steps=2)
    GridSearchCV(model, {"radius": [0.5, 1.0, 2.0]}, cv=2).fit(X, Y)
    assert fits_of(ledger) == ["PrivateLasso"] * 7  # 3 candidates, 2 folds, and the refit


def test_cross_validation_of_scikit_learn_charges_every_fit():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(50.0, 1e-6))
    cross_val_score(PrivateLasso(1.0, 1e-6, bounds=BOX, ledger=ledger, steps=2), X, Y, cv=3)
    assert fits_of(ledger) == ["PrivateLasso"] * 3


def test_grid_search_of_scikit_learn_stops_at_the_ceiling():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(1.5, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=BOX, ledger=ledger, steps=2)
    grid = GridSearchCV(model, {"radius": [0.5, 1.0, 2.0]}, cv=2, error_score="raise")
    with pytest.raises(BudgetExceeded):
        grid.fit(X, Y)
    assert ledger.spent.epsilon <= 1.5
