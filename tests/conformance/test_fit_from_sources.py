"""A fit from a source is the fit on its loaded rows, for every estimator."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import riata
from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSearch,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
    Schema,
    read,
)
from riata.curator import Curator
from riata.data import people as people_module
from riata.errors import BudgetExceeded, DataError, InvalidArgument
from riata.evaluation import private_score
from riata.fitting import plan
from riata.losses import Huber, Logistic, Squared
from riata.sets import L1Ball

N = 300
RNG = np.random.default_rng(3)
FRAME = pl.DataFrame(
    {
        "person": RNG.permutation(N) // 2,
        "age": RNG.integers(0, 100, N),
        "dose": RNG.uniform(0, 5, N).round(2),
        "ward": RNG.choice(["a", "b", "c"], N),
        "smokes": RNG.choice(["yes", "no"], N),
    }
).with_columns(
    days=(pl.col("age") / 5 + 10 + 2 * (pl.col("smokes") == "yes")).round(1),
    outcome=pl.when(pl.col("age") > 55).then(pl.lit("well")).otherwise(pl.lit("ill")),
    stage=(pl.col("age") // 34).cast(pl.String),
)
FEATURES = [
    {"name": "age", "kind": "number", "bounds": [0, 100]},
    {"name": "dose", "kind": "number", "bounds": [0, 5], "center": 0},
    {"name": "ward", "kind": "choice", "choices": ["a", "b"]},
    {"name": "smokes", "kind": "yes-no"},
]


def schema(target, **more):
    return Schema.from_table({"features": FEATURES, "target": target, "ignore_others": True} | more)


NUMBERS = schema({"name": "days", "bounds": [0, 40]})
TWO = schema({"name": "outcome", "classes": ["well", "ill"]})
THREE = schema({"name": "stage", "classes": ["0", "1", "2"]})
GIVEN = {"epsilon": 2.0, "delta": 1e-6, "random_state": 0}
LENGTH = Bounds(2.0, norm="l2")

REGRESSORS = {
    "lasso": PrivateLasso(**GIVEN),
    "lasso, length": PrivateLasso(**GIVEN, bounds=LENGTH),
    "lasso, no intercept": PrivateLasso(**GIVEN, fit_intercept=False),
    "sparse": PrivateSparseRegression(**GIVEN, sparsity=2, radius=20.0),
    "heavy": HeavyTailedRegression(**GIVEN, sparsity=2, scale=10.0),
    "projected": ProjectedRegression(**GIVEN, bounds=LENGTH, dimension=3),
    "erm": PrivateErm(Huber(1.0), L1Ball(20.0), **GIVEN),
}
CLASSIFIERS = {
    "logistic": PrivateLogisticRegression(**GIVEN),
    "logistic, balanced": PrivateLogisticRegression(**GIVEN, class_weight="balanced"),
    "svm": PrivateLinearSVC(**GIVEN),
    "projected": ProjectedClassifier(**GIVEN, bounds=LENGTH, dimension=3),
}
ERM = PrivateErm(Logistic(), L1Ball(5.0), **GIVEN)


def with_bounds(model, schema):
    """The same estimator for arrays: what the schema says is said by hand."""
    model = clone(model)
    if "bounds" in model.get_params():
        bounds = schema.bounds if model.bounds is None else model.bounds
        model.set_params(
            bounds=bounds if schema.bounds.y is None else bounds.with_y(schema.bounds.y)
        )
    return model


def agree(model, other, centre=0.0):
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_array_equal(model.intercept_, other.intercept_ + centre)
    # All but the name of the request, in which the schema is.
    assert replace(model.privacy_, request="") == replace(other.privacy_, request="")
    assert model.privacy_.request != other.privacy_.request
    assert model.feature_names_in_.tolist() == model.schema_.feature_names


@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
def test_regressors(model):
    source = read(FRAME, NUMBERS)
    x, y = source.load()
    model = clone(model).fit(source)
    other = with_bounds(model, NUMBERS).fit(x, y)
    agree(model, other, 20.0)
    wanted = other.predict(x) + 20.0
    np.testing.assert_allclose(model.predict(source), wanted)
    np.testing.assert_allclose(model.predict(FRAME), wanted)
    np.testing.assert_allclose(model.predict(FRAME.drop("days", "person").to_pandas()), wanted)
    days = FRAME["days"].to_numpy()
    assert model.score(source) == pytest.approx(model.score(FRAME, days), abs=1e-9)
    assert model.score(FRAME) == model.score(source) == pytest.approx(other.score(x, y))


@pytest.mark.parametrize("schema", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers(model, schema):
    source = read(FRAME, schema)
    x, codes = source.load()
    labels = FRAME[schema.target.name].to_numpy()
    np.testing.assert_array_equal(schema.classes[codes.astype(int)], labels)
    model = clone(model).fit(source)
    other = with_bounds(model, schema).set_params(classes=schema.classes).fit(x, labels)
    agree(model, other)
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_array_equal(model.predict(FRAME), other.predict(x))
    np.testing.assert_array_equal(model.decision_function(source), other.decision_function(x))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(source), other.predict_proba(x))
    assert model.score(source) == model.score(FRAME) == pytest.approx(other.score(x, labels))


def test_labels_of_any_loss():
    source = read(FRAME, TWO)
    x, codes = source.load()
    model = clone(ERM).fit(source)
    agree(model, with_bounds(ERM, TWO).fit(x, 2 * codes - 1))
    assert set(model.predict(FRAME)) <= {-1.0, 1.0}
    assert model.score(source) == pytest.approx(model.score(FRAME, 2 * codes - 1))
    with pytest.raises(InvalidArgument, match="3 classes"):
        clone(ERM).fit(read(FRAME, THREE))


def test_rows_without_a_class_are_never_right():
    odd = FRAME.with_columns(outcome=pl.lit("else"))
    model = clone(CLASSIFIERS["logistic"]).fit(read(FRAME, TWO))
    assert model.score(odd) == 0.0


def test_predictions_are_in_the_units_of_the_target():
    model = PrivateLasso(epsilon=float("inf"), random_state=0).fit(read(FRAME, NUMBERS))
    assert abs(model.predict(FRAME).mean() - FRAME["days"].mean()) < 0.5
    assert model.score(FRAME) > 0.9


def test_files_without_names(tmp_path):
    x = sparse.csr_array(RNG.uniform(-1, 1, (N, 5)))
    y = x.toarray()[:, 0] + 3
    np.savez(tmp_path / "t.npz", x=x.toarray(), y=y)
    wide = Schema.from_table({"features": {"count": 5}, "target": {"bounds": [0, 6]}})
    model = PrivateLasso(**GIVEN).fit(read(tmp_path / "t.npz", wide))
    other = PrivateLasso(**GIVEN, bounds=Bounds(1.0, 3.0)).fit(x, y - 3)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.intercept_ == other.intercept_ + 3
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_allclose(model.predict(x), other.predict(x) + 3)


def test_bounds_and_classes_that_disagree_are_refused_before_the_charge(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(10.0, 1e-5))
    given = {"epsilon": 1.0, "delta": 1e-6, "ledger": ledger}
    numbers, labels = read(FRAME, NUMBERS), read(FRAME, TWO)
    for bounds in (Bounds(2.0), Bounds(1.0, 5.0), Bounds(1.0, 20.0, nonnegative=True)):
        with pytest.raises(InvalidArgument, match="the schema says Bounds"):
            PrivateLasso(**given, bounds=bounds).fit(numbers)
    for classes in (["ill"], ["ill", "well", "dead"], "observed"):
        with pytest.raises(InvalidArgument, match="the schema says"):
            PrivateLogisticRegression(**given, classes=classes).fit(labels)
    with pytest.raises(InvalidArgument, match="predicts classes"):
        PrivateLogisticRegression(**given).fit(numbers)
    with pytest.raises(InvalidArgument, match="predicts numbers"):
        PrivateLasso(**given).fit(labels)
    with pytest.raises(InvalidArgument, match="Leave y out"):
        PrivateLasso(**given).fit(numbers, FRAME["days"])
    with pytest.raises(InvalidArgument, match="needs a target"):
        PrivateLasso(**given).fit(read(FRAME, NUMBERS, target=False))
    assert not ledger.charges
    PrivateLasso(**given, bounds=Bounds(1.0)).fit(numbers)
    PrivateLogisticRegression(**given, classes=["well", "ill"]).fit(labels)
    assert len(ledger.charges) == 2


@pytest.mark.parametrize("engine", ["auto", "scan", "disk", "dask"])
def test_a_row_that_is_not_there_is_no_blank_row_under_add_remove(tmp_path, engine):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(10.0, 1e-5))
    given = {"adjacency": "add-remove", "engine": engine}
    fixed = read(FRAME, replace(NUMBERS, rows=N + 50))
    for more in ({}, {"data_quality": True}):
        model = PrivateLasso(1.0, 1e-6, ledger=ledger, **given, **more)
        with pytest.raises(InvalidArgument, match=r"does not go with rows=350.*leave rows out"):
            model.fit(fixed)
    search = PrivateSearch(PrivateLasso(None, **given), {"radius": [1.0]}, 1.0, ledger=ledger)
    with pytest.raises(InvalidArgument, match="does not go with rows"):
        search.fit(fixed)
    fitted = PrivateLasso(1.0, 1e-6, adjacency="add-remove").fit(read(FRAME, NUMBERS))
    assert fitted.privacy_.adjacency == "add-remove"
    with pytest.raises(InvalidArgument, match="does not go with rows"):
        private_score(fitted, fixed, epsilon=1.0, ledger=ledger)
    assert not ledger.charges
    PrivateLasso(1.0, 1e-6, adjacency="replace-one").fit(fixed)


def test_a_blank_row_changes_sums_like_any_other_row():
    """Why add-remove is refused: 2 contributions differ where a row is taken out of the file."""
    table = {"features": [{"name": "w", "kind": "choice", "choices": ["x"]}], "rows": 2}
    found = Schema.from_table(table | {"target": {"name": "y", "classes": ["no", "yes"]}})
    full = pl.DataFrame({"w": ["x", "x"], "y": ["yes", "yes"]})
    (x, _), (fewer, _) = read(full, found).load(), read(full.head(1), found).load()
    assert abs(x - fewer).sum() == 2


def test_the_charge_comes_before_the_rows(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(10.0, 1e-5))
    source = read(FRAME, NUMBERS)

    def broken(rows):
        assert len(ledger.charges) == 1
        raise OSError("the disk is gone")
        yield

    monkeypatch.setattr(source, "_encoded", broken)
    with pytest.raises(OSError, match="gone"):
        PrivateLasso(1.0, 1e-6, ledger=ledger).fit(source)
    assert len(ledger.charges) == 1


def test_the_schema_of_an_earlier_fit_is_forgotten():
    model = PrivateLasso(**GIVEN).fit(read(FRAME, NUMBERS))
    x, y = read(FRAME, NUMBERS).load()
    with pytest.raises(InvalidArgument, match="needs bounds"):
        model.fit(x, y)
    model.set_params(bounds=Bounds(1.0, 20.0)).fit(x, y)
    assert not hasattr(model, "schema_")
    with pytest.raises(InvalidArgument, match="fitted on arrays"):
        model.predict(read(FRAME, NUMBERS))


def test_rows_to_predict_must_have_the_columns_of_the_schema():
    model = PrivateLasso(**GIVEN).fit(read(FRAME, NUMBERS))
    with pytest.raises(DataError, match="no column 'ward'"):
        model.predict(FRAME.drop("ward"))
    with pytest.raises(InvalidArgument, match="another schema"):
        model.predict(read(FRAME, TWO))
    with pytest.raises(ValueError, match="requires y"):
        model.score(read(FRAME, NUMBERS).load()[0])


@pytest.mark.parametrize(
    ("model", "schema"),
    [
        (REGRESSORS["lasso"], NUMBERS),
        (REGRESSORS["heavy"], NUMBERS),
        (CLASSIFIERS["logistic"], TWO),
    ],
)
def test_a_model_file_keeps_the_schema(model, schema, tmp_path):
    model = clone(model).fit(read(FRAME, schema))
    riata.save(model, tmp_path / "m.riata")
    again = riata.load(tmp_path / "m.riata")
    assert again.schema_ == schema
    np.testing.assert_array_equal(again.predict(FRAME), model.predict(FRAME))
    assert again.score(FRAME) == model.score(FRAME)


PEOPLE = schema({"name": "days", "bounds": [0, 40]}, person="person", rows_of_a_person=1)


def test_people_count_once():
    source = read(FRAME, PEOPLE, random_state=5)
    assert source.n_rows == N / 2
    model = PrivateLasso(**GIVEN).fit(source)
    x, y = source.load()
    other = PrivateLasso(**GIVEN, bounds=PEOPLE.bounds).fit(x, y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.privacy_.public["rows"] == N / 2
    assert model.privacy_.adjacency == "replace-person"
    assert "one person, with all of their rows" in model.privacy_.sentence
    assert model.privacy_.public["people"] == N / 2
    assert len(model.predict(source)) == len(model.predict(FRAME.drop("person"))) == N
    again = PrivateLasso(**GIVEN).fit(read(FRAME, PEOPLE, random_state=5))
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_a_known_draw_is_no_private_fit():
    with pytest.raises(InvalidArgument, match="protect nobody"):
        PrivateLasso(1.0).fit(read(FRAME, PEOPLE, random_state=5))
    PrivateErm(Squared(), L1Ball(1.0), 1.0, 1e-6).fit(read(FRAME, PEOPLE))


def test_several_rows_of_a_person_cost_what_they_must():
    several = schema({"name": "days", "bounds": [0, 40]}, person="person", rows_of_a_person=2)
    source = read(FRAME, several, random_state=5)
    assert source.n_rows == N
    model = PrivateLasso(**GIVEN, bounds=several.bounds, solver="frank-wolfe", steps=5)
    plans = {
        rows: plan(model.request_for_shape(N, several.n_features, rows_of_a_person=rows)).plan
        for rows in (None, 1, 2)
    }
    one, two = (plans[rows]["select"].epsilon for rows in (1, 2))
    assert plans[None]["select"].epsilon == one
    assert two == pytest.approx(one / 2, rel=1e-9)
    assert all(plan.spent.epsilon == pytest.approx(2.0) for plan in plans.values())
    model = PrivateLasso(**GIVEN).fit(source)
    assert model.privacy_.public["rows of a person"] == 2
    assert model.privacy_.public["people"] == N / 2
    assert model.privacy_.epsilon == pytest.approx(2.0)


def test_a_ledger_of_people_takes_no_fit_that_counts_rows(tmp_path):
    ledger = Ledger.create(
        tmp_path / "l.db", dataset="d", ceiling=Budget(3.0, 1e-6, "replace-person")
    )
    fair = {key: value for key, value in GIVEN.items() if key != "random_state"}
    PrivateLasso(**fair, ledger=ledger).fit(read(FRAME, PEOPLE))
    assert ledger.spent.epsilon == pytest.approx(2.0)
    with pytest.raises(BudgetExceeded, match="replace-person"):
        PrivateLasso(**fair, ledger=ledger, bounds=PEOPLE.bounds).fit(*read(FRAME, PEOPLE).load())
    with pytest.raises(InvalidArgument, match="add-remove"):
        PrivateLasso(**fair, adjacency="add-remove").fit(read(FRAME, PEOPLE))


def test_people_are_drawn_once_for_a_run_that_goes_on(tmp_path, monkeypatch):
    several = schema({"name": "days", "bounds": [0, 40]}, person="person", rows_of_a_person=1)
    drawn = []
    choose = people_module.sample_rows

    def told(*given):
        drawn.append(choose(*given))
        return drawn[-1]

    class Stop(BaseException):
        pass

    def stop(*given):
        raise Stop

    monkeypatch.setattr(people_module, "sample_rows", told)
    fit = PrivateLasso(1.0, 1e-6).fit
    with monkeypatch.context() as patched:
        patched.setattr(Curator, "release", stop)
        with pytest.raises(Stop):
            fit(read(FRAME, several), checkpoint=tmp_path / "fit")
    fit(read(FRAME, several), checkpoint=tmp_path / "fit")
    fit(read(FRAME, several), checkpoint=tmp_path / "other")
    assert len(drawn) == 3
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[1], drawn[2])
