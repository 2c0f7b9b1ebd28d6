"""Label privacy in estimators, ledgers, Statements, reports and at the command line."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from riata import (
    Bounds,
    Budget,
    BudgetExceeded,
    HeavyTailedRegression,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateSearch,
    forecast,
    load,
    peel,
    save,
)
from riata.cli.main import app
from riata.data import Schema, read
from riata.errors import Incompatible, InvalidArgument
from riata.fitting.statement import LABEL_NOTE
from riata.losses import Huber, Squared
from riata.lower_bounds import lower_bound
from riata.privacy.unit import PrivacyUnit
from riata.report.guarantee import guarantee
from riata.sets import L1Ball, SparseBall

UNIT = Bounds(x=1.0, y=1.0)
LABELS = {"adjacency": "replace-label"}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (2_000, 6))
Y = np.clip(0.5 * X[:, 0] - 0.3 * X[:, 1] + 0.1 + 0.1 * RNG.standard_normal(2_000), -1, 1)
CLASS = (RNG.random(2_000) < 1 / (1 + np.exp(-4 * X[:, 0] + 2 * X[:, 1]))).astype(int)


def lasso(epsilon=1.0, **options):
    return PrivateLasso(epsilon, **{"delta": 1e-6, "bounds": UNIT} | LABELS | options)


def classifier(epsilon=1.0, **options):
    given = {"delta": 1e-6, "bounds": UNIT, "classes": [0, 1]}
    return PrivateLogisticRegression(epsilon, **given | LABELS | options)


def ledger_of(adjacency, **options):
    return Ledger.create(
        ":memory:", dataset="people", ceiling=Budget(3.0, 1e-5, adjacency), **options
    )


# The default solver.


def test_auto_takes_the_public_design_and_spends_all_on_targets():
    model = classifier(calibration=False, random_state=0)
    plan = model.plan(*X.shape)
    assert plan.solver == "public-design"
    assert plan.spent.epsilon == pytest.approx(1.0, rel=1e-6)
    assert [role for role in plan.mechanisms if role != "rows"] == ["labels 1"]
    assert "at no cost" in str(plan)
    assert lower_bound(plan.problem, plan.budget) is None


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_it_fits_numbers_and_classes(delta):
    numbers = lasso(epsilon=2.0, delta=delta, random_state=0).fit(X, Y)
    assert numbers.score(X, Y) > 0.75
    assert numbers.coef_error_.shape == (6,)
    labels = classifier(epsilon=2.0, delta=delta, random_state=0).fit(X, CLASS)
    assert labels.score(X, CLASS) > 0.78


def test_without_noise_it_is_the_maximum_of_the_likelihood():
    many = np.tile(X, (20, 1))
    model = classifier(epsilon=1e6, calibration=False, random_state=0, radius=100.0)
    model.fit(many, np.tile(CLASS, 20))
    reference = LogisticRegression(C=np.inf).fit(X, CLASS)
    # Rows that are longer than most weigh less, which moves a correct model hardly.
    np.testing.assert_allclose(model.coef_[0], reference.coef_[0], atol=0.15)
    np.testing.assert_allclose(model.intercept_[0], reference.intercept_[0], atol=0.1)


def test_errors_of_numbers_are_those_of_least_squares_where_noise_is_small():
    """Wherever residuals are clipped: further out where noise is small."""
    model = lasso(epsilon=1e3, random_state=0, radius=10.0).fit(X, Y)
    moments = np.cov(X.T) * (len(X) - 1)
    expected = np.std(Y - model.predict(X)) * np.sqrt(np.diag(np.linalg.inv(moments)))
    ratio = model.coef_error_ / expected
    assert (ratio > 0.8).all()
    assert (ratio < 2.0).all()


def test_without_an_intercept_there_is_none():
    model = lasso(epsilon=3.0, fit_intercept=False, random_state=0).fit(X, Y)
    assert model.intercept_ == 0
    assert abs(model.coef_[0] - 0.5) < 0.2


def test_blank_columns_and_constant_targets_do_not_stop_it():
    blank = np.zeros((50, 3))
    for model, y in ((lasso(random_state=0), np.ones(50)), (classifier(random_state=0), [1] * 50)):
        assert np.isfinite(model.fit(blank, np.array(y)).coef_).all()


@pytest.mark.parametrize(
    "model",
    [
        classifier(class_weight="balanced"),
        PrivateErm(Huber(0.5), L1Ball(1.0), 1.0, 1e-6, bounds=UNIT, **LABELS),
        PrivateErm(Squared(), SparseBall(2), 1.0, 1e-6, bounds=UNIT, **LABELS),
        HeavyTailedRegression(1.0, 1e-6, truncation=1.0, sparsity=2, **LABELS),
    ],
)
def test_other_models_keep_their_solvers_and_noise(model):
    one = model.__class__(**model.get_params() | {"adjacency": "replace-one"})
    found, same = model.plan(2_000, 6), one.plan(2_000, 6)
    assert found.solver == same.solver != "public-design"
    assert found.releases == same.releases


def test_where_rows_are_secret_the_solver_refuses():
    with pytest.raises(Incompatible, match="protects targets alone"):
        lasso(solver="public-design", adjacency="replace-one").plan(100, 3)
    with pytest.raises(Incompatible, match="squared and the logistic"):
        PrivateErm(
            Huber(0.5), L1Ball(1.0), 1.0, bounds=UNIT, solver="public-design", **LABELS
        ).plan(100, 3)
    with pytest.raises(InvalidArgument, match="must be 1"):
        lasso(solver="public-design", steps=2).plan(100, 3)


def test_a_run_from_its_checkpoint_is_the_same(tmp_path):
    file = tmp_path / "run.checkpoint"
    first = lasso(random_state=3).fit(X, Y, checkpoint=file)
    again = lasso(random_state=3).fit(X, Y, checkpoint=file)
    np.testing.assert_array_equal(first.coef_, again.coef_)


def test_engines_agree():
    found = [lasso(random_state=1, engine=engine).fit(X, Y) for engine in ("local", "scan")]
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)


def test_it_can_be_forecast():
    found = forecast(lasso(), 2_000, 10, relevant=3, repeats=2)
    assert found.plan.solver == "public-design"
    assert np.isfinite(found.excess_risk)


# What is said.


def test_the_statement_says_that_rows_are_not_protected(tmp_path):
    model = lasso().fit(X, Y)
    assert "one row's target" in model.privacy_.sentence
    assert "public and NOT protected" in model.privacy_.sentence
    assert LABEL_NOTE in model.privacy_.notes
    search = PrivateSearch(
        lasso(epsilon=None, delta=None), {"radius": [1.0, 2.0]}, epsilon=1.0, delta=1e-6
    ).fit(X, Y)
    assert LABEL_NOTE in search.privacy_.notes
    assert LABEL_NOTE not in lasso(adjacency="replace-one").fit(X, Y).privacy_.notes
    save(model, tmp_path / "model.riata")
    assert load(tmp_path / "model.riata").privacy_ == model.privacy_


def test_the_report_promises_nothing_about_rows():
    found = guarantee(lasso().fit(X, Y).privacy_, simulated=False)
    words = " ".join([found.headline, *found.promise, *found.limits])
    assert "not protected" in found.headline
    assert "nothing is promised about them" in words
    assert "Had any one row" not in words
    assert any("one target" in tile.name for tile in found.tiles)


# Ledgers.


def test_a_ledger_of_targets_takes_charges_for_targets():
    ledger = ledger_of("replace-label")
    lasso(ledger=ledger).fit(X, Y)
    assert [charge.unit for charge in ledger.charges] == [PrivacyUnit("replace-label")]
    assert 0.8 < ledger.spent.epsilon <= 1.0  # at the larger delta of the ceiling


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove", "replace-person"])
def test_a_ledger_of_more_refuses_a_fit_that_protects_targets_alone(adjacency):
    ledger = ledger_of(adjacency)
    remedy = "people" if adjacency == "replace-person" else f"adjacency='{adjacency}'"
    with pytest.raises(BudgetExceeded, match=f"only targets .*Nothing was charged.*{remedy}"):
        lasso(ledger=ledger).fit(X, Y)
    assert ledger.charges == []


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_ledger_of_targets_refuses_fits_that_protect_rows(adjacency):
    ledger = ledger_of("replace-label")
    remedy = f"ledger create --adjacency {adjacency}"
    with pytest.raises(BudgetExceeded, match=f"targets alone.*{remedy}"):
        lasso(ledger=ledger, adjacency=adjacency).fit(X, Y)
    assert ledger.charges == []


def test_a_ledger_of_targets_refuses_people():
    unit = PrivacyUnit("replace-person", "patient")
    with pytest.raises(BudgetExceeded, match="replace-person --person patient"):
        ledger_of("replace-label").charge(
            lasso().plan(10, 2).event, adjacency="replace-person", unit=unit, summary={}
        )


# What is refused before a charge.


def test_people_are_refused_before_a_charge():
    frame = pd.DataFrame({"id": [1, 1, 2, 2], "a": [0.1, 0.2, 0.3, 0.4], "y": [0.0, 1.0, 0.0, 1.0]})
    schema = Schema.from_table(
        {
            "features": [{"name": "a", "kind": "number", "bounds": [0, 1]}],
            "person": "id", "rows_of_a_person": 1, "target": {"name": "y", "bounds": [0, 1]},
        }
    )  # fmt: skip
    ledger = ledger_of("replace-label")
    model = PrivateLasso(1.0, 1e-6, ledger=ledger, **LABELS)
    with pytest.raises(InvalidArgument, match=r"several targets.*Leave adjacency out"):
        model.fit(read(frame, schema))
    assert ledger.charges == []


def test_rows_without_targets_are_refused():
    with pytest.raises(InvalidArgument, match="these rows have none"):
        peel(X, 2, epsilon=1.0, bounds=Bounds(x=1.0), **LABELS)


# The command line.


@pytest.mark.not_quick
def test_the_command_line_knows_label_privacy(tmp_path):
    frame = pd.DataFrame(X[:500], columns=[f"c{j}" for j in range(6)]).assign(y=Y[:500])
    frame.to_csv(tmp_path / "data.csv", index=False)
    lines = ["[target]", 'name = "y"', "bounds = [-1, 1]"]
    for j in range(6):
        lines += ["[[features]]", f'name = "c{j}"', 'kind = "number"', "bounds = [-1, 1]"]
    (tmp_path / "schema.toml").write_text("\n".join(lines) + "\n")
    ledger = str(tmp_path / "ledger.db")
    create = ["ledger", "create", ledger, "--dataset", "d", "--epsilon", "3", "--delta", "1e-5"]
    run = CliRunner()
    assert run.invoke(app, [*create, "--adjacency", "replace-label"]).exit_code == 0
    fit = [
        "fit", "--data", str(tmp_path / "data.csv"), "--schema", str(tmp_path / "schema.toml"),
        "--epsilon", "1", "--ledger", ledger, "--out", str(tmp_path / "model"), "--yes",
    ]  # fmt: skip
    refused = run.invoke(app, fit)
    assert "protects targets alone" in str(refused.exception) + refused.output
    done = run.invoke(app, [*fit, "--adjacency", "replace-label"])
    assert done.exit_code == 0, done.output
    assert [each.adjacency for each in Ledger.open(ledger).charges] == ["replace-label"]
