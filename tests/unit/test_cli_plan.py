"""`riata plan` and what it calls: comparisons of solvers, and what a score takes."""

import json

import pytest

from riata import (
    Bounds,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    compare_solvers,
    required_epsilon,
    required_rows,
)
from riata.cli.plan import _fitting
from riata.errors import InvalidArgument
from riata.forecasting.costs import FULL, SPARSE, USUAL_PART, cost_of, duration, size
from riata.solvers import SOLVERS

LASSO = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0))
FEW = ["greedy", "frank-wolfe", "gaussian-frank-wolfe"]
PLAN = ["plan", "--rows", "2000", "--columns", "40", "--relevant", "2", "--repeats", "2"]


def test_every_solver_is_compared_or_it_is_said_why_not():
    found = compare_solvers(LASSO, 400, 20, relevant=2, repeats=2, patience=3.0)
    assert {each.solver for each in found.candidates} | set(found.impossible) == set(SOLVERS)
    scores = [each.forecast.score for each in found.candidates if each.forecast is not None]
    assert len(scores) >= 4
    assert scores == sorted(scores, reverse=True)
    for each in found.candidates:
        assert each.plan.solver.startswith(each.solver)
        assert (each.forecast is None) == bool(each.because)
        assert each.noise
        assert each.cost.seconds > 0
    assert sum(each.chosen for each in found.candidates) == 1
    assert "peeling" in found.impossible


def test_a_comparison_agrees_with_the_forecast_of_each_solver():
    from riata import forecast

    found = compare_solvers(LASSO, 1_000, 40, solvers=FEW, relevant=2, repeats=2, patience=1e9)
    for each in found.candidates:
        model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), solver=each.solver)
        assert forecast(model, 1_000, 40, relevant=2, repeats=2).scores == each.forecast.scores


def test_patience_leaves_out_what_is_slow():
    found = compare_solvers(LASSO, 100_000, 1_000, solvers=["noisy-gradient"], repeats=2)
    assert found.best.forecast is None
    assert "would take about" in found.best.because
    assert "not simulated" in str(found)


def test_classifiers_are_compared_by_accuracy_too():
    model = PrivateLogisticRegression(1.0, bounds=Bounds(1.0), classes=[0, 1])
    found = compare_solvers(model, 500, 20, solvers=["greedy"], signal=0.8, repeats=2)
    assert found.metric == "AUC"
    assert "accuracy" in found.rows()[0]


def test_nothing_is_compared_that_cannot_be():
    sparse = PrivateSparseRegression(1.0, bounds=Bounds(1.0, 1.0))
    with pytest.raises(InvalidArgument, match="No solver can fit this"):
        compare_solvers(sparse, 500, 20, solvers=["posterior-sampling"], repeats=2)
    with pytest.raises(InvalidArgument, match="relevent"):
        compare_solvers(LASSO, 500, 20, relevent=3)


def test_the_smallest_epsilon_is_found():
    found = required_epsilon(LASSO, 2_000, 30, 0.3, relevant=2, repeats=3)
    assert found.forecast.score >= 0.3
    smaller = [each.score for value, each in found.tried if value < found.value]
    assert smaller
    assert max(smaller) < 0.3
    assert f"Epsilon {found.value:g} should do" in str(found)
    sure = required_epsilon(LASSO, 2_000, 30, 0.3, sure=True, relevant=2, repeats=3)
    assert sure.value >= found.value
    assert sure.forecast.interval[0] >= 0.3


def test_the_fewest_rows_are_found():
    found = required_rows(LASSO, 30, 0.3, relevant=2, repeats=3, start=200)
    assert found.over == "rows"
    assert found.forecast.plan.problem.n_rows == found.value
    assert found.forecast.score >= 0.3
    assert "rows should do" in found.sentence


def test_what_no_model_has_is_not_searched_for():
    for score in (0.0, 0.51, 0.9):
        with pytest.raises(InvalidArgument, match="cannot be searched for"):
            required_epsilon(LASSO, 500, 20, score, signal=0.5, repeats=2)


def test_what_no_epsilon_reaches_is_said():
    with pytest.raises(InvalidArgument, match="No epsilon up to 100"):
        required_epsilon(LASSO, 20, 200, 0.49, signal=0.5, relevant=20, repeats=2)


def test_the_time_of_a_solver_that_ends_early_counts_the_steps_that_it_takes():
    found = compare_solvers(LASSO, 5_000, 40, solvers=["greedy"], relevant=2, repeats=2).best
    whole = cost_of(found.plan, steps=found.plan.steps)
    usual = cost_of(found.plan, steps=USUAL_PART * found.plan.steps)
    assert cost_of(found.plan) == usual
    assert found.forecast.steps < found.plan.steps / 2
    assert found.cost.seconds < whole.seconds
    assert found.cost == cost_of(found.plan, steps=found.forecast.steps)
    assert cost_of(found.plan, steps=1e9) == whole


def test_what_takes_minutes_to_plan_is_compared_on_request_alone(riata_command):
    found = riata_command(
        "plan", "--rows", "1000", "--columns", "2001", "--epsilon", "1", "--relevant", "3",
        "--signal", "0.5", "--repeats", "2", "--patience", "0.01",
    )  # fmt: skip
    assert found.code == 0, found.err
    assert "Not planned: projected, because its plan alone takes minutes" in found.out
    few = compare_solvers(LASSO, 200, 10, relevant=2, repeats=2, patience=0.01)
    assert few.unplanned == ()
    assert "projected" in {each.solver.partition(" ")[0] for each in few.candidates}


def test_costs_grow_with_rows_and_columns():
    def seconds(rows, columns):
        return cost_of(LASSO.plan(rows, columns)).seconds

    assert seconds(1_000, 50) < seconds(100_000, 50) < seconds(100_000, 5_000)
    assert cost_of(LASSO.plan(1_000, 50), entries=100).bytes < cost_of(LASSO.plan(1_000, 50)).bytes
    assert set(FULL) == set(SPARSE) <= set(SOLVERS)
    assert (duration(0.2), duration(90), duration(7300), duration(1e6)) == (
        "1 s", "90 s", "2 h", "12 d",
    )  # fmt: skip
    assert (size(2e8), size(3e9)) == ("200 MB", "3.0 GB")


def test_the_command_prints_a_table(riata_command):
    done = riata_command(*PLAN, "--epsilon", "1", *[w for s in FEW for w in ("--solver", s)])
    assert done.code == 0, done.err
    assert "nothing is charged and no row is read" in done.out
    for solver in FEW:
        assert solver in done.out
    assert "…" not in done.out


def test_the_command_answers_programs_and_draws(riata_command, tmp_path):
    done = riata_command(
        *PLAN, "--epsilon", "1", "--solver", "greedy", "--json", "--plot", tmp_path / "plan.svg"
    )
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    (greedy,) = facts["solvers"]
    assert greedy["forecast"]["metric"] == "R2"
    assert greedy["seconds"] > 0
    assert "<svg" in (tmp_path / "plan.svg").read_text()


def test_the_command_asks_the_other_way_round(riata_command, tmp_path):
    done = riata_command(*PLAN, "--for-r2", "0.3", "--json", "--plot", tmp_path / "curve.png")
    assert done.code == 0, done.err
    assert json.loads(done.out)["over"] == "epsilon"
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    done = riata_command(*PLAN, "--epsilon", "1", "--for-r2", "0.3", "--solve", "rows")
    assert "rows should do for R2 0.3" in done.out


def test_a_study_is_planned_from_its_schema(riata_command, tmp_path):
    (tmp_path / "s.toml").write_text(
        """
        [budget]
        epsilon = 2.0
        [schema]
        features = [{name = "a", kind = "number", bounds = [0, 1]},
                    {name = "b", kind = "text", buckets = 16}]
        target = {name = "y", classes = ["no", "yes"]}
        [guess]
        rows = 3000
        relevant = 2
        repeats = 2
        """
    )
    done = riata_command("plan", tmp_path / "s.toml", "--solver", "greedy", "--json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert (facts["rows"], facts["columns"]) == (3000, 17)
    assert "best AUC 0.8" in facts["guess"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--epsilon", "1", "--solve", "delta"], "epsilon or rows"),
        (["--epsilon", "1", "--for-auc", "0.7"], "Use --for-r2"),
        (["--epsilon", "1", "--for-r2", "0.1", "--for-auc", "0.7"], "one thing"),
        (["--epsilon", "1", "--plot", "plan.exe"], ".svg"),
        (["--epsilon", "1", "--solver", "gredy"], "is not known"),
        (["--epsilon", "1", "--design", "odd"], "design"),
        ([], "There is no epsilon"),
        (["--epsilon", "0"], "must be positive"),
        (["--epsilon", "1", "--set", "what"], "--set penalty=l2"),
        (["--epsilon", "1", "--set", "penalt=l2"], "penalt is unknown"),
    ],
)
def test_a_wrong_question_is_refused(riata_command, change, message):
    done = riata_command(*PLAN, *change)
    assert (done.code, done.out) == (2, "")
    assert message in " ".join(done.err.split())


def test_what_is_missing_is_said(riata_command):
    assert "Pass --rows" in riata_command("plan", "--columns", "3", "--epsilon", "1").err
    assert "Pass --columns" in riata_command("plan", "--rows", "3", "--epsilon", "1").err


def test_a_plan_refuses_what_its_fit_would_refuse(tmp_path, riata_command):
    schema = tmp_path / "s.toml"
    schema.write_text(
        'rows = 500\nfeatures = [{name = "a", kind = "yes-no"}]\n'
        'target = {name = "y", bounds = [0, 1]}\n'
    )
    done = riata_command(
        "plan", "--schema", str(schema), "--epsilon", "1", "--adjacency", "add-remove"
    )
    assert done.code == 2
    assert "does not go with rows=500" in done.err


def test_three_classes_are_planned_without_a_forecast(tmp_path, riata_command):
    (tmp_path / "s.toml").write_text(
        'features = [{name = "age", kind = "number", bounds = [0, 110]}]\n'
        'target = {name = "stage", classes = ["I", "II", "III"]}\n'
    )
    plan = ["plan", "--schema", str(tmp_path / "s.toml"), "--rows", "9000", "--epsilon", "1"]
    done = riata_command(*plan)
    assert done.code == 0, done.err
    assert "softmax" in done.out
    assert "costs    epsilon 1" in done.out
    assert "Forecasts are for two classes" in done.err
    assert json.loads(riata_command(*plan, "--json").out)["n_rows"] == 9000


def test_a_narrow_terminal_gets_fewer_columns():
    rows = [("solver", "R2", "80% interval", "noise per step", "memory")]
    rows.append(("greedy", "0.5", "0.4 to 0.6", "61.2 x sensitivity", "244 MB"))
    assert _fitting(rows, None) == rows == _fitting(rows, 80)
    assert [len(row) for row in _fitting(rows, 40)] == [4, 4]
    assert _fitting(rows, 10)[0] == ("solver", "R2")
