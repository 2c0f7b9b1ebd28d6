"""Scores on public rows exactly, on private ones for a budget that is charged first."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import brier_score_loss, log_loss, r2_score, roc_auc_score

import riata
from riata import (
    Bounds,
    Budget,
    BudgetExceeded,
    Ledger,
    LocalLasso,
    LocalSparseMean,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateQuantileRegression,
    ProjectedRegression,
    read,
)
from riata.errors import Incompatible, InvalidArgument
from riata.evaluation import evaluate, plan_score, private_score
from riata.losses import Logistic, Squared, WeightedRows
from riata.losses.weighted_rows import CODES
from riata.privacy.events import leaves
from riata.report import html
from riata.report.evaluation import evaluation_sections
from riata.sets import L1Ball

RNG = np.random.default_rng(0)
N = 400
X = RNG.uniform(-1, 1, (N, 3))
Y = X @ [0.6, -0.4, 0.0] + 0.05 * RNG.standard_normal(N)
LABELS = np.where(Y > 0.2, "high", np.where(Y < -0.2, "low", "middle"))
TWO = np.where(Y > 0, "yes", "no")
SCHEMA = {
    "features": [
        {"name": "a", "kind": "number", "bounds": [0, 10]},
        {"name": "b", "kind": "yes-no"},
    ],
    "target": {"name": "t", "bounds": [100, 300]},
}


def table(n=N, seed=1):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0, 10, n), rng.integers(0, 2, n)
    return pd.DataFrame({"a": a, "b": b, "t": 100 + 15 * a + 30 * b + rng.normal(0, 3, n)})


@pytest.fixture(scope="module")
def lasso():
    return PrivateLasso(5.0, 1e-6, bounds=Bounds(x=1.0, y=1.0), random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def logistic():
    model = PrivateLogisticRegression(5.0, 1e-6, bounds=Bounds(x=1.0), classes=["no", "yes"])
    return model.fit(X, TWO)


@pytest.fixture(scope="module")
def by_schema():
    return PrivateLasso(5.0, 1e-6).fit(read(table(), SCHEMA))


# Public rows.


def test_public_scores_are_those_of_scikit_learn(lasso, logistic):
    found = evaluate(lasso, X, Y)
    assert found.scores["R2"] == pytest.approx(r2_score(Y, lasso.predict(X)))
    assert found.constant["R2"] == pytest.approx(0.0, abs=1e-12)
    found, chances = evaluate(logistic, X, TWO), logistic.predict_proba(X)
    assert found.scores["accuracy"] == pytest.approx(logistic.score(X, TWO))
    assert found.scores["log loss"] == pytest.approx(log_loss(TWO, chances))
    assert found.scores["Brier score"] == pytest.approx(
        brier_score_loss(TWO == "yes", chances[:, 1])
    )
    assert found.scores["AUC"] == pytest.approx(roc_auc_score(TWO == "yes", chances[:, 1]))
    assert found.constant["AUC"] == 0.5
    assert found.n_rows == N
    false, true = found.roc
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)
    said, happened = found.calibration
    assert len(said) == 10
    assert np.all(np.diff(said) >= 0)
    assert happened.mean() == pytest.approx((TWO == "yes").mean(), abs=1e-9)


def test_several_classes_and_margins_without_probabilities():
    model = PrivateLogisticRegression(
        5.0, 1e-6, bounds=Bounds(x=1.0), classes=["high", "low", "middle"]
    ).fit(X, LABELS)
    found = evaluate(model, X, LABELS)
    assert found.scores["accuracy"] == pytest.approx(model.score(X, LABELS))
    assert found.roc is None
    said, happened = found.calibration
    assert happened.mean() == pytest.approx(found.scores["accuracy"])
    assert said.min() > 1 / 3
    svc = PrivateLinearSVC(5.0, 1e-6, bounds=Bounds(x=1.0), classes=["no", "yes"]).fit(X, TWO)
    found = evaluate(svc, X, TWO)
    assert found.roc is not None
    assert found.calibration is None
    assert list(found.scores) == ["accuracy", "AUC"]


def test_labels_that_are_no_class_are_counted_and_left_out(logistic):
    labels = np.array([*TWO[:-4], "YES", "No", "", "perhaps"], dtype=object)
    found = evaluate(logistic, X, labels)
    assert (found.n_rows, found.n_unknown) == (N - 4, 4)
    assert found.scores["accuracy"] == pytest.approx(logistic.score(X[:-4], TWO[:-4]))
    assert "4 of 400 labels are none of the classes" in str(found)
    with pytest.raises(InvalidArgument, match="Check their spelling"):
        evaluate(logistic, X, np.full(N, "Ja"))


def test_rows_by_a_schema(by_schema):
    rows = table(200, seed=2)
    rows["t"] = rows["t"].clip(100, 300)  # as a schema reads them
    found = evaluate(by_schema, rows)
    assert found.scores["R2"] == pytest.approx(r2_score(rows["t"], by_schema.predict(rows)))
    assert evaluate(by_schema, read(rows, SCHEMA)).scores == found.scores
    predicted, left = found.residuals
    assert len(predicted) == len(left) == 200
    np.testing.assert_allclose(predicted + left, rows["t"])


def test_what_cannot_be_evaluated_is_refused(lasso):
    mean = LocalSparseMean(1.0, bounds=Bounds(x=1.0)).fit(X)
    with pytest.raises(InvalidArgument, match="predicts"):
        evaluate(mean, X)
    with pytest.raises(ValueError, match="minimum of 1"):
        evaluate(lasso, X[:0], Y[:0])
    with pytest.raises(InvalidArgument, match="No row has a number"):
        evaluate(lasso, X, np.full(N, np.nan))
    local = LocalLasso(5.0, bounds=Bounds(x=1.0, y=1.0)).fit(X, Y)
    assert "R2" in evaluate(local, X, Y).scores


@pytest.mark.not_quick
def test_a_report_shows_the_plots(lasso, logistic):
    titles = [one.title for one in evaluation_sections(evaluate(logistic, X, TWO))]
    assert titles == ["Scores", "ROC", "Calibration"]
    page = html(logistic, sections=evaluation_sections(evaluate(logistic, X, TWO)))
    assert "false positive rate" in page
    assert "observed frequency" in page
    sections = evaluation_sections(evaluate(lasso, X, Y))
    assert [one.title for one in sections] == ["Scores", "Residuals"]
    assert "target minus prediction" in html(lasso, sections=sections)
    private = private_score(lasso, X, Y, epsilon=1.0)
    (section,) = evaluation_sections(private)
    assert "differentially private" in html(lasso, sections=[section])


# Private rows.


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_score_is_charged_before_a_row_is_read(lasso, monkeypatch, delta, adjacency):
    model = riata.PrivateLasso(1.0, 1e-6, bounds=lasso.bounds, adjacency=adjacency).fit(X, Y)
    ledger = Ledger.create(":memory:", dataset="held out", ceiling=Budget(1.0, 1e-6, adjacency))

    def load(self):
        assert len(ledger.charges) == 1
        return original(self)

    original = riata.engines.choice.Arrays.load
    monkeypatch.setattr(riata.engines.choice.Arrays, "load", load)
    planned = plan_score(model, X, Y, epsilon=0.5, delta=delta)
    assert ledger.charges == []
    found = private_score(model, X, Y, epsilon=0.5, delta=delta, ledger=ledger)
    (charge,) = ledger.charges
    assert leaves(charge.event) == leaves(planned.event)
    assert charge.summary["solver"] == "private score: absolute-error"
    assert found.epsilon == pytest.approx(0.5, rel=1e-6)
    assert (found.epsilon, found.delta) == (planned.spent.epsilon, planned.spent.delta)
    assert not found.seeded
    monkeypatch.setattr(riata.engines.choice.Arrays, "load", original)
    private_score(model, X, Y, epsilon=0.4, delta=delta, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        private_score(model, X, Y, epsilon=0.95, delta=delta, ledger=ledger)
    assert len(ledger.charges) == 2


def test_a_score_is_the_exact_one_plus_its_noise(lasso, logistic, by_schema):
    """Six standard deviations: of 60 draws one fails with probability below 1.2e-7."""
    rows = table(300, seed=3)
    cases = [
        (lasso, (X, Y), -np.abs(np.clip(lasso.predict(X), -1, 1) - np.clip(Y, -1, 1)).mean()),
        (logistic, (X, TWO), logistic.score(X, TWO)),
        (
            by_schema,
            (rows,),
            -np.abs(np.clip(by_schema.predict(rows), 100, 300) - rows["t"]).mean(),
        ),
    ]
    for model, given, exact in cases:
        for seed in range(20):
            found = private_score(model, *given, epsilon=8.0, delta=1e-6, random_state=seed)
            assert found.value == pytest.approx(exact, abs=6 * found.noise)
            assert found.seeded
            assert found.noise <= found.error
    assert found.noise < 10


def test_squared_errors_and_wrong_scores(lasso):
    found = private_score(lasso, X, Y, epsilon=8.0, delta=1e-6, scoring="squared-error")
    assert found.noise == pytest.approx(2 * plan_score(lasso, X, Y, epsilon=8.0, delta=1e-6).noise)
    with pytest.raises(InvalidArgument, match="accuracy"):
        private_score(lasso, X, Y, epsilon=1.0, scoring="accuracy")


def test_the_noise_of_people_grows_with_their_rows():
    people = table(300).assign(who=np.arange(300) // 3)
    noise = {}
    for k in (1, 3):
        schema = {**SCHEMA, "person": "who", "rows_of_a_person": k}
        model = PrivateLasso(5.0, 1e-6).fit(read(people, schema))
        planned = plan_score(model, read(people, schema), epsilon=1.0, delta=1e-6)
        assert planned.unit.adjacency == "replace-person"
        assert planned.unit.person == "who"
        noise[k] = planned.noise * planned.n_rows  # of the sum
        ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(1.0, 1e-6, "replace-person"))
        private_score(model, read(people, schema), epsilon=1.0, delta=1e-6, ledger=ledger)
        assert ledger.spent.epsilon == pytest.approx(1.0, rel=1e-6)
    assert noise[3] == pytest.approx(3 * noise[1], rel=1e-3)


def test_rows_too_wide_for_exact_sums_are_refused_before_the_charge(lasso, monkeypatch):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(9.0, 1e-6))
    monkeypatch.setattr("riata.row_norms.MOST_COLUMNS", 2)
    with pytest.raises(InvalidArgument, match=r"3 columns.*2 is the most"):
        private_score(lasso, X, Y, epsilon=1.0, ledger=ledger)
    assert ledger.charges == []


def test_what_cannot_be_scored_is_refused_before_the_charge(lasso, by_schema, logistic):
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(9.0, 1e-6))
    how = {"epsilon": 1.0, "ledger": ledger}
    named = PrivateLasso(1.0, bounds=Bounds(x=1.0, y=1.0))
    named.fit(pd.DataFrame(X, columns=list("abc")), Y)
    mistakes = [
        (lasso, (X[:, :2], Y), {}, "columns"),
        (named, (pd.DataFrame(X, columns=list("cba")), Y), {}, "order"),
        (lasso, (X, Y), {"epsilon": math.inf}, "inf"),
        (lasso, (X, Y), {"epsilon": 0.0}, "epsilon"),
        (lasso, (X, Y), {"random_state": 1}, "random_state"),
        (lasso, (X, Y), {"scoring": "r2"}, "scoring"),
        (lasso, (X, None), {}, "y"),
        (by_schema, (X,), {}, "source"),
        (by_schema, (read(table(), {**SCHEMA, "target": {"name": "t", "bounds": [0, 1]}}),), {},
         "another schema"),
        (PrivateLasso(1.0), (X, Y), {}, "fitted"),
    ]  # fmt: skip
    for model, given, more, said in mistakes:
        with pytest.raises((InvalidArgument, ValueError), match=said):
            private_score(model, *given, **(how | more))
    projected = ProjectedRegression(
        1.0, bounds=Bounds(x=1.0, y=1.0, norm="l2"), dimension=2, projection=np.eye(3)[:2],
        compressed=True,
    )  # fmt: skip
    projected.fit(X[:, :2], Y)
    with pytest.raises(Incompatible, match="projected"):
        private_score(projected, X[:, :2], Y, **how)
    assert ledger.charges == []


def test_models_of_a_loss_for_labels_have_an_accuracy():
    signs = np.where(Y > 0, 1.0, -1.0)
    model = PrivateErm(Logistic(), L1Ball(5.0), epsilon=5.0, delta=1e-6, bounds=Bounds(1.0, 1.0))
    model.fit(X, signs)
    found = private_score(model, X, signs, epsilon=8.0, delta=1e-6, random_state=0)
    assert found.value == pytest.approx(np.mean(model.predict(X) == signs), abs=6 * found.noise)


def test_rows_are_scored_without_weights():
    """A model of weighted rows is fitted to codes of about 2^50, and not scored on them."""
    weights = RNG.uniform(0, 2, N)
    model = PrivateQuantileRegression(5.0, 1e-6, bounds=Bounds(x=1.0, y=1.0), max_weight=2.0)
    model.fit(X, Y, sample_weight=weights)
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(9.0, 1e-6))
    found = private_score(model, X, Y, epsilon=8.0, delta=1e-6, ledger=ledger)
    wanted = -np.abs(np.clip(model.predict(X), -1, 1) - Y).mean()
    assert found.noise < 0.02
    assert found.value == pytest.approx(wanted, abs=6 * found.noise)
    assert model.max_weight == 2.0
    coded = WeightedRows(Squared(), 1.0, 2.0)
    erm = PrivateErm(coded, L1Ball(1.0), 1.0, 1e-6, bounds=Bounds(1.0, CODES))
    erm.fit(X, coded.encode(Y, weights))
    with pytest.raises(Incompatible, match="codes"):
        private_score(erm, X, coded.encode(Y, weights), epsilon=1.0, delta=1e-6, ledger=ledger)
    assert len(ledger.charges) == 1


def test_the_model_is_left_as_it_was(by_schema):
    before = {name: repr(value) for name, value in vars(by_schema).items()}
    private_score(by_schema, table(50), epsilon=1.0)
    evaluate(by_schema, table(50))
    assert {name: repr(value) for name, value in vars(by_schema).items()} == before


def test_hostile_rows_change_a_score_by_no_more_than_stated(by_schema):
    """Values beyond all bounds, missing and unreadable ones, as a neighbour of ordinary rows."""
    rows = table(60)
    planned = [plan_score(by_schema, rows, epsilon=1.0, delta=1e-6)]
    for bad in (1e300, -1e300, np.nan, np.inf):
        other = rows.astype(float)
        other.loc[5] = bad
        planned.append(plan_score(by_schema, other, epsilon=1.0, delta=1e-6))
    totals = [_total(one) for one in planned]
    most = planned[0].query.sensitivity("l2")
    assert max(abs(total - totals[0]) for total in totals) <= most * (1 + 1e-12)
    assert max(abs(total - totals[0]) for total in totals) > most / 100
    assert len({one.noise for one in planned}) == 1


def _total(planned):
    from riata.engines.choice import open_engine
    from riata.preparation import Preparation

    engine = open_engine("auto", Preparation(planned.bounds), planned.rows)
    return float(engine.total(planned.query)[0]) * planned.query.unit
