"""A fit without estimators: the same releases as theirs, charged before a row is read, with a name
that depends on the machine only where a run may go on elsewhere."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from riata import (
    Bounds,
    Budget,
    Ledger,
    PrivateLasso,
    PrivateLogisticRegression,
    Schema,
    read,
)
from riata.engines.choice import Arrays
from riata.errors import BudgetExceeded, InvalidArgument
from riata.fitting import ExtraReleases, Request, plan, planning, run
from riata.fitting.rows import SourceRows
from riata.losses import Logistic, OneAgainstRest, Squared
from riata.sets import L1Ball

X = np.random.default_rng(0).uniform(-1, 1, (300, 4))
Y = 0.5 * X[:, 0]
LABELS = (Y > 0).astype(int)
BOUNDS, BUDGET = Bounds(1.0, 1.0), Budget(1.0, 1e-6)
SQUARED = Request((Squared(),), L1Ball(1.0), BOUNDS, BUDGET, *X.shape, "frank-wolfe", 3)


class Unreadable(Arrays):
    def load(self):
        raise AssertionError("a row was read")

    blocks = pieces = load


def test_a_request_releases_what_the_estimator_of_the_same_arguments_releases():
    model = PrivateLasso(
        1.0, 1e-6, bounds=BOUNDS, radius=1.0, solver="frank-wolfe", steps=3, random_state=5
    ).fit(X, Y)
    fitted = run(plan(replace(SQUARED, seed=5)), Arrays(X, Y))
    (solution,) = fitted.solutions
    np.testing.assert_array_equal(solution.theta.dense(), model.coef_)
    assert solution.theta.offset == model.intercept_
    assert fitted.statement.releases == model.privacy_.releases
    assert fitted.statement.seeded


def test_extra_releases_are_those_of_a_classifier():
    model = PrivateLogisticRegression(
        1.0, 1e-6, bounds=Bounds(1.0), classes=[0, 1], class_weight="balanced", calibration=True,
        radius=1.0, penalty="l1", solver="frank-wolfe", steps=3, random_state=5,
    ).fit(X, LABELS)  # fmt: skip
    request = replace(
        SQUARED, losses=(OneAgainstRest(Logistic(), 1),), bounds=Bounds(1.0, 2.0), seed=5,
        extra_releases=ExtraReleases(balanced=True, calibration=True), classes=np.array([0, 1]),
    )  # fmt: skip
    (solution,) = run(plan(request), Arrays(X, LABELS.astype(float))).solutions
    np.testing.assert_array_equal(solution.theta.dense(), model.coef_[0])
    np.testing.assert_array_equal(solution.weights, model.class_weight_)
    np.testing.assert_array_equal(solution.line, model.calibration_[0])


def test_a_run_is_charged_before_a_row_is_read(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    planned = plan(SQUARED)
    with pytest.raises(AssertionError, match="a row was read"):
        run(planned, Unreadable(X, Y), ledger=ledger)
    (charge,) = ledger.charges
    assert charge.summary["request"] == planned.identity().digest
    with pytest.raises(BudgetExceeded):
        run(planned, Unreadable(X, Y), ledger=ledger)


TABLE = {
    "features": [
        {"name": name, "kind": "number", "bounds": [-1, 1], "knots": 0} for name in "abcd"
    ],
    "target": {"name": "y", "bounds": [-1, 1]},
}
COLUMNS = {name: X[:, i] for i, name in enumerate("abcd")} | {"y": Y}
COLUMNS |= {"id": np.arange(300) // 2, "other": np.arange(300) % 150}


def source_rows(**more):
    schema = Schema.from_table(TABLE | {"ignore_others": True} | more)
    return SourceRows(read(pl.DataFrame(COLUMNS), schema), False)


def test_a_run_takes_only_the_rows_that_it_was_planned_for(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(9.0, 1e-5))
    added = replace(SQUARED, budget=Budget(1.0, 1e-6, "add-remove"))
    pairs = source_rows(person="id", rows_of_a_person=2)
    others = source_rows(person="other", rows_of_a_person=2)
    person, two = (Budget(1.0, 1e-6, "replace-person", k) for k in (1, 2))
    for request, rows, why in (
        (SQUARED, source_rows(rows=299), "have the shape"),
        (SQUARED, source_rows(features=TABLE["features"][:3]), "have the shape"),
        (SQUARED, source_rows(person="id", rows_of_a_person=1), "have the shape"),
        (added, source_rows(rows=300), "add-remove"),
        (SQUARED, pairs, "for single rows"),
        (replace(SQUARED, budget=person, schema=pairs.schema), pairs, "for 1 rows"),
        (replace(SQUARED, budget=two, schema=pairs.schema), others, "another schema"),
    ):
        with pytest.raises(InvalidArgument, match=why):
            run(plan(request), rows, ledger=ledger)
    with pytest.raises(InvalidArgument, match="add-remove"):
        replace(added, schema=source_rows(rows=300).schema)
    assert ledger.charges == []
    for request, rows in (
        (SQUARED, source_rows(rows=300)),
        (added, source_rows()),
        (replace(SQUARED, budget=two, schema=pairs.schema), pairs),
    ):
        run(plan(replace(request, seed=1)), rows)


def test_a_known_seed_is_never_charged(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    with pytest.raises(InvalidArgument, match="protects nobody"):
        run(plan(replace(SQUARED, seed=5)), Unreadable(X, Y), ledger=ledger)
    assert ledger.charges == []


def test_the_machine_names_only_runs_that_may_go_on_elsewhere(tmp_path, monkeypatch):
    planned = plan(SQUARED)
    names = []
    for processor in ("one", "another"):
        monkeypatch.setattr(planning, "machine", lambda name=processor: {"processor": name})
        file = tmp_path / processor
        names += [
            (
                run(planned, Arrays(X, Y)).statement.request,
                run(planned, Arrays(X, Y), checkpoint=file).statement.request,
            )
        ]
    (plain, kept), (plain_elsewhere, kept_elsewhere) = names
    assert plain == plain_elsewhere
    assert len({plain, kept, kept_elsewhere}) == 3


@pytest.mark.parametrize("shape", [(299, 4), (301, 4), (300, 3), (300, 5)])
def test_rows_of_another_shape_are_refused_before_the_charge(tmp_path, shape):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0, 1e-6))
    with pytest.raises(InvalidArgument, match="the plan is for"):
        run(plan(SQUARED), Unreadable(np.zeros(shape), np.zeros(shape[0])), ledger=ledger)
    assert not ledger.charges


@pytest.mark.parametrize(
    "other",
    [{"bounds": Bounds(0.5, 1.0)}, {"bounds": Bounds(1.0, 0.5)}, {"adjacency": "add-remove"},
     {"n_rows": 299}],
    ids=str,
)  # fmt: skip
def test_problems_with_another_promise_than_the_plan_are_refused(other):
    """Rows are clipped into the plan's bounds, and noise is scaled to those of the problems."""
    planned = plan(SQUARED)
    problems = tuple(replace(each, **other) for each in planned.problems)
    with pytest.raises(InvalidArgument, match="differ in bounds"):
        replace(planned, problems=problems)
    alike = tuple(replace(each, bounds=Bounds(1.0, 1.0)) for each in planned.problems)
    assert replace(planned, problems=alike).identity() == planned.identity()
