"""`model.test`: several coefficients at once, from what was released."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

import riata
from riata import (
    Bounds,
    LocalKernelRidge,
    LocalSparseMean,
    PrivateLasso,
    PrivateLogisticRegression,
    read,
)
from riata.errors import InvalidArgument
from riata.estimators.adjustment import adjusted
from riata.estimators.joint_test import joint_test, known_squares
from riata.local import Aggregator, Client, Task

SCHEMA = {
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 100], "knots": 0},
        {"name": "bmi", "kind": "number", "bounds": [10, 50], "knots": 3},
        {"name": "ward", "kind": "choice", "choices": ["a", "b", "c"]},
    ],
    "target": {"name": "cost", "bounds": [0, 100]},
}


def with_numbers(coef, error, **more):
    """A fitted model whose released numbers are these."""
    model = PrivateLasso(1.0, bounds=Bounds(x=1.0, y=1.0), solver="frank-wolfe", steps=1, **more)
    model.fit(np.zeros((30, len(coef))), np.zeros(30))
    model.coef_, model.coef_error_ = np.array(coef, dtype=float), np.array(error, dtype=float)
    return model


@pytest.fixture(scope="module")
def by_schema():
    rng = np.random.default_rng(0)
    n = 4000
    rows = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n), "bmi": rng.uniform(10, 50, n),
            "ward": rng.choice(["a", "b", "c"], n),
        }
    )  # fmt: skip
    rows["cost"] = 20 + 0.5 * rows["age"] + 10 * (rows["ward"] == "b") + rng.normal(0, 5, n)
    # With this seed "bmi" and "(other)" are left out, as the tests below say.
    return PrivateLasso(3.0, 1e-6, random_state=31).fit(read(rows, SCHEMA))


def test_one_column_is_tested_as_in_the_summary():
    model = with_numbers([0.3, -0.2], [0.1, 0.2])
    test = model.test(1)
    (one,) = test.functions
    term = {each.name: each for each in model.summary().functions[0].terms}["x[1]"]
    assert (test.method, test.columns, one.df) == ("wald", ("x[1]",), 1)
    assert one.statistic == pytest.approx(term.z**2)
    assert test.p == one.p == pytest.approx(term.p)
    assert one.p == pytest.approx(stats.chi2.sf(one.statistic, 1))


def test_several_columns_are_tested_without_covariances():
    test = with_numbers([0.3, -0.2, 0.1], [0.1, 0.2, 0.1]).test([0, "x[1]", 2])
    (one,) = test.functions
    assert test.method == "bonferroni"
    assert one.df == 3
    assert one.estimates.tolist() == [0.3, -0.2, 0.1]
    single = stats.chi2.sf([9, 1, 1], 1)
    assert one.p == pytest.approx(np.min(adjusted(single, "bonferroni")))
    assert one.statistic == pytest.approx(9)
    assert test.records() == [
        {"term": "x[0], x[1], x[2]", "statistic": one.statistic, "df": 3, "p.value": one.p,
         "method": "bonferroni"}
    ]  # fmt: skip
    assert "bonferroni" in str(test)
    assert "df 3" in str(test)


def test_p_is_at_most_1_and_columns_count_once():
    assert with_numbers([0.1, 0.1], [0.1, 0.2]).test([0, 1, "x[0]"]).functions[0].df == 2
    assert with_numbers([0.1, 0.1], [1.0, 1.0]).test([0, 1]).p == 1.0


def test_it_rejects_no_more_often_than_it_says_whatever_the_dependence():
    """400 draws with fixed seeds: a test at 10% rejects more than 59 of them once in 1000 times."""
    rng, model = np.random.default_rng(0), with_numbers([1.0] * 5, [1.0] * 5)
    for share in (0.0, 0.9, -0.2):
        spread = np.full((5, 5), share) + (1 - share) * np.eye(5)
        rejected = 0
        for z in rng.multivariate_normal(np.zeros(5), spread, 400):
            model.coef_ = z
            rejected += model.test(range(5)).p <= 0.1
        assert rejected <= 59


def test_unknown_errors_count_and_can_reject_nothing():
    model = with_numbers([0.3, 5.0, 0.0], [0.1, math.nan, math.nan])
    some = model.test([0, 1, 2]).functions[0]
    assert some.df == 3
    assert some.p == pytest.approx(3 * stats.chi2.sf(9, 1))
    none = model.test([1, 2])
    assert math.isnan(none.p)
    assert math.isnan(none.functions[0].statistic)
    assert "says nothing about the errors" in str(none)
    assert none.functions[0].reason in str(none)
    assert "left these columns out" in model.test(2).functions[0].reason


def test_features_of_a_schema_are_all_their_columns(by_schema):
    names = list(by_schema.feature_names_in_)
    assert by_schema.test("ward").columns == tuple(n for n in names if n.startswith("ward="))
    assert by_schema.test(["bmi", "age"]).functions[0].df == 4
    assert by_schema.test("age").p < 1e-6
    assert "left these columns out" in str(by_schema.test("bmi"))
    # Beside an intercept only differences are determined: two of three, and "(other)" was left out.
    ward = by_schema.test("ward")
    assert (ward.method, ward.functions[0].df) == ("wald", 3)
    assert ward.p < 1e-6
    assert "says nothing about the errors" in str(by_schema.test("ward=b"))
    age = {term.name: term for term in by_schema.summary().functions[0].terms}["age"]
    assert by_schema.test("age").functions[0].estimates.tolist() == [pytest.approx(age.estimate)]
    assert by_schema.test("age").functions[0].errors.tolist() == [pytest.approx(age.error)]


def test_a_wald_test_is_that_of_the_textbook():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 3))
    whole, values = root.T @ root, rng.normal(size=3)
    squares = known_squares(values, np.stack([whole, np.zeros((3, 3))]))
    assert len(squares) == 3
    assert squares.sum() == pytest.approx(values @ np.linalg.solve(whole, values))
    # What all three share is a guess: their differences are tested, whatever is added to all.
    shared = np.full((3, 3), 1e4)
    difference = np.array([[1.0, -1, 0], [0, 1, -1]])
    spread = difference @ whole @ difference.T
    for more in (0.0, 50.0):
        squares = known_squares(values + more, np.stack([whole + shared, shared]))
        assert len(squares) == 2
        d = difference @ values
        assert squares.sum() == pytest.approx(d @ np.linalg.solve(spread, d), rel=2e-3)
    assert len(known_squares(values, np.full((2, 3, 3), math.nan))) == 0
    assert len(known_squares(values, np.zeros((2, 3, 3)))) == 0


@pytest.mark.not_quick
def test_wald_tests_of_columns_without_effect_reject_as_often_as_they_say():
    """60 fits with fixed seeds, three columns without effect beside one with: about 6 below 0.1."""
    p = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((2_000, 4)) @ np.array(
            [[1, 0.7, 0, 0], [0, 0.7, 0.5, 0], [0, 0, 0.9, 0.3], [0, 0, 0, 1.0]]
        )
        y = np.clip(0.5 * x[:, 3] + rng.standard_normal(2_000), -5, 5)
        model = PrivateLasso(3.0, 1e-6, bounds=Bounds(4.0, 5.0), random_state=seed)
        test = model.fit(np.clip(x, -4, 4), y).test([0, 1, 2])
        p.append(1.0 if math.isnan(test.p) else test.p)
        assert model.test([2, 3]).p < 1e-6
    assert np.mean(np.array(p) <= 0.1) <= 0.2


def test_each_class_has_a_test_of_its_own():
    model = PrivateLogisticRegression(1.0, bounds=Bounds(x=1.0), classes=["a", "b", "c"])
    model.fit(np.zeros((30, 2)), np.array(["a", "b", "c"] * 10))
    model.coef_ = np.array([[0.1, 0.2], [0.0, 0.0], [1.0, 0.1]])
    model.coef_error_ = np.array([[0.1, 0.1], [math.nan, math.nan], [0.2, 0.2]])
    test = model.test([0, 1])
    assert [each.label for each in test.functions] == ["a", "b", "c"]
    assert [each.df for each in test.functions] == [2, 2, 2]
    assert math.isnan(test.functions[1].p)
    assert test.p == pytest.approx(3 * 2 * stats.chi2.sf(25, 1))
    assert [each["y.level"] for each in test.records()] == ["a", "b", "c"]


@pytest.mark.parametrize("columns", ["x", "x[2]", 2, -1, 1.0, True, None, [0, "y"], [], [[0]]])
def test_other_columns_are_refused(columns):
    with pytest.raises(InvalidArgument, match="columns"):
        with_numbers([0.1, 0.1], [0.1, 0.1]).test(columns)


def test_models_without_coefficients_have_no_test():
    x = np.random.default_rng(0).uniform(-1, 1, (100, 2))
    for model in (
        LocalSparseMean(1.0, bounds=Bounds(x=1.0)).fit(x),
        LocalKernelRidge(1.0, bounds=Bounds(x=1.0, y=1.0)).fit(x, x[:, 0]),
    ):
        with pytest.raises(InvalidArgument, match="nothing to test"):
            model.test(0)
    with pytest.raises(NotFittedError):
        PrivateLasso(1.0).test(0)


def test_a_loaded_model_says_the_same_and_nothing_is_charged(by_schema, tmp_path):
    riata.save(by_schema, tmp_path / "m.riata")
    assert str(riata.load(tmp_path / "m.riata").test("ward")) == str(by_schema.test("ward"))
    ledger = riata.Ledger.create(":memory:", dataset="d", ceiling=riata.Budget(5.0, 1e-6))
    x = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    model = PrivateLasso(1.0, bounds=Bounds(x=1.0, y=1.0), ledger=ledger).fit(x, x[:, 0])
    model.test([0, 1])
    assert len(ledger.charges) == 1


def test_models_of_reports_have_it_by_question():
    task = Task.from_table(
        {
            "kind": "linear", "epsilon": 4.0,
            "features": [
                {"name": "age", "kind": "number", "bounds": [0, 100]},
                {"name": "ward", "kind": "choice", "choices": ["a", "b"]},
            ],
            "target": {"name": "cost", "kind": "number", "bounds": [0, 100]},
        }
    )  # fmt: skip
    aggregator = Aggregator(task)
    rng = np.random.default_rng(0)
    for _ in range(30):
        row = {"age": float(rng.uniform(0, 100)), "ward": "a", "cost": 50.0}
        aggregator.add(Client(task).report(row))
    model = aggregator.solve()
    test = joint_test(model, "ward")
    assert test.functions[0].df == 2
    assert set(test.columns) <= set(model.names)
