"""Small things that once went wrong for people who read messages."""

import io
import re
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest
import typer.main
from rich.console import Console
from typer.testing import CliRunner

from riata import Bounds, PrivateLasso, PrivateSearch, forecast
from riata.audit import run, standard
from riata.cli.main import app
from riata.data import Schema
from riata.datasets import load_flights
from riata.demo import with_references
from riata.errors import InvalidArgument, SchemaError
from riata.losses import Squared
from riata.problem import Problem
from riata.report import html
from riata.sets import L1Ball
from riata.wording import rounded

SCHEMA = """
features = [
    {name = "age", kind = "number", bounds = [0, 100]},
    {name = "ward", kind = "choice", choices = ["a", "b"]},
]
target = {name = "cost", bounds = [0, 10]}
"""
X = np.random.default_rng(0).uniform(-1, 1, (200, 3))


def commands(command, path=()):
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


@pytest.mark.parametrize(
    ("path", "command"), list(commands(typer.main.get_command(app))), ids=lambda one: str(one)[:40]
)
def test_no_help_text_is_eaten_by_markup(path, command):
    """Words in brackets are not taken for marks of style."""
    wide = {"COLUMNS": "1000", "TERMINAL_WIDTH": "1000"}
    printed = CliRunner().invoke(app, [*path, "--help"], env=wide).output
    seen = " ".join(printed.replace("│", " ").split())
    assert "[[" not in seen
    for option in command.params:
        said = " ".join((getattr(option, "help", None) or "").replace("\\[", "[").split())
        assert said in seen


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('kind = "number"', 'kind = "numbr"', "In 'age', the field features[0].kind"),
        ("[0, 100]", "[100, 0]", "In 'age', the field features[0].bounds"),
        ('choices = ["a", "b"]', "choices = 3", "In 'ward', the field features[1].choices"),
        ('choices = ["a", "b"]', "", "In 'ward', the field features[1].choices is missing"),
        (
            'kind = "choice", ',
            'kind = "choice", colour = 1, ',
            "In 'ward', the field features[1].colour is unknown",
        ),
    ],
)
def test_a_mistake_in_a_schema_names_the_column(old, new, said):
    with pytest.raises(SchemaError, match=re.escape(said)):
        Schema.read(SCHEMA.replace(old, new).replace(", }", "}"))


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda: PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), solver="greddy"), "'greedy'"),
        (lambda: PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), engine="numbaa"), "'numba'"),
        (lambda: PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), adjacency="replace"), "'replace-one'"),
    ],
)
def test_a_misspelt_word_is_recognised(make, meant):
    with pytest.raises(InvalidArgument, match=f"Did you mean {meant}"):
        make().fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bounds = [0, 100]", "bound = [0, 100]", "Add it to the schema, or rename 'bound' if"),
        ("\ntarget", '\nunpenalized = ["aeg"]\ntarget', "did you mean 'age'"),
        ("\n]", '\n{name = "i", kind = "interaction", of = ["age", "wrad"]}]', "mean 'ward'"),
    ],
)
def test_a_misspelt_name_in_a_schema_is_recognised(old, new, said):
    with pytest.raises(SchemaError, match=said):
        Schema.read(SCHEMA.replace(old, new, 1))


def test_an_unknown_field_is_not_to_be_removed_if_it_is_misspelt():
    with pytest.raises(SchemaError) as problem:
        Schema.read(SCHEMA.replace("bounds = [0, 100]", "bounds = [0, 100], centre = 3"))
    assert "Did you mean center?" in str(problem.value)
    assert "Remove it" not in str(problem.value)


def test_an_interval_is_not_taken_for_two_columns():
    with pytest.raises(InvalidArgument, match="could be an interval") as problem:
        Bounds(x=(18, 90), y=1.0)
    assert "x=[18, 90]" in str(problem.value)
    assert Bounds(x=[18, 90]).x.tolist() == [18, 90]
    with pytest.raises(InvalidArgument, match="Bounds y must be a number"):
        Bounds(x=1.0, y=(0, 3))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "d.csv").write_text("age,ward,cost\n" + "3,a,4\n" * 50)
    return tmp_path


def test_errors_of_commands_name_no_python(here, riata_command):
    fit = ["fit", "--schema", "s.toml", "--data", "d.csv", "--epsilon", "1", "--out", "m", "--yes"]
    riata_command("ledger", "create", "x.db", "--dataset", "d", "--epsilon", "1", "--delta", "1e-6")
    (here / "t.toml").write_text(SCHEMA.split("target")[0])
    for command in (
        [*fit, "--ledger", "none.db"],
        ["ledger", "show", "none.db"],
        ["ledger", "create", "x.db", "--dataset", "d", "--epsilon", "1", "--delta", "1e-6"],
        [*fit, "--schema", "t.toml"],
        [*fit, "--data", "none.csv"],
    ):
        done = riata_command(*command)
        assert done.code != 0
        assert not re.search(r"\w\.\w+\(|Ledger\.|Schema\.|=\w+\(|target=False", done.err), done.err


@pytest.mark.not_quick
def test_a_fit_without_noise_is_warned_about(here, riata_command):
    done = riata_command(
        "fit", "--schema", "s.toml", "--data", "d.csv", "--epsilon", "inf", "--out", "m", "--yes"
    )
    assert done.code == 0
    assert "Warning: epsilon is infinite: the fit has no noise" in " ".join(done.err.split())
    assert "NOT PRIVATE" in done.out


def test_a_guess_has_no_more_relevant_columns_than_there_are():
    model = PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), radius=1.0)
    found = forecast(model, 100, 3, relevant=5, repeats=2)
    problem = Problem(Squared(), L1Ball(1.0), model.bounds, 100, 3)
    assert {found.guess.complete(problem, k).relevant for k in range(2)} == {3}
    assert "1 column matters" in str(forecast(model, 100, 1, relevant=5, repeats=2))


def test_a_plan_rounds_for_people():
    plan = PrivateLasso(1.0, bounds=Bounds(1.0, 1.0), radius=221.66361012083306).plan(1000, 3)
    assert "L1Ball(radius=221.664, n_features=3)" in str(plan)
    assert (
        rounded("x=1.0 y2.00001 v1.2.33333 3.14159e-07") == "x=1.0 y2.00001 v1.2.33333 3.14159e-07"
    )
    assert rounded("y=10000.0, length=1.0009765625") == "y=10000.0, length=1.00098"


def test_a_reason_is_told_once(here, riata_command):
    command = [
        "plan", "--rows", "2000000", "--columns", "3000", "--relevant", "3", "--signal", "0.5",
        "--epsilon", "1", "--patience", "0", "--repeats", "2", "--solver", "noisy-gradient",
        "--solver", "scaled-gradient", "--solver", "objective-perturbation",
    ]  # fmt: skip
    done = riata_command(*command)
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith("Not simulated")]
    assert len({line.split(". ", 1)[1] for line in lines}) == len(lines) > 0
    assert ".." not in done.out
    refused = riata_command(
        "plan", "--rows", "100", "--columns", "3", "--relevant", "1", "--signal", "0.5",
        "--epsilon", "1", "--solver", "peeling", "--solver", "hard-thresholding",
    )  # fmt: skip
    assert refused.code == 2
    sentences = [one.strip() for one in re.split(r"[.;:] ", refused.err) if len(one) > 30]
    assert len(sentences) == len(set(sentences))
    assert "hard-thresholding, peeling: " in refused.err or "peeling, hard-" in refused.err


@pytest.mark.parametrize("solver", ["frank-wolfe", "gaussian-frank-wolfe", "whitened-gradient"])
def test_one_release_is_one_release(solver):
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), solver=solver)
    model = model.set_params(steps=1) if solver != "whitened-gradient" else model
    text = str(model.fit(X, X[:, 0]).privacy_) + html(model) + str(model.plan(200, 3))
    assert not re.search(r"\b1 (releases|selections|steps)\b", text)
    assert re.search(r"\b1 (release|selection|step)\b", text)
    search = PrivateSearch(
        PrivateLasso(None, bounds=Bounds(1.0, 1.0), solver="frank-wolfe", steps=1),
        {"radius": [1.0]}, 1.0, 1e-6,
    )  # fmt: skip
    assert "1 steps" not in str(search.plan(200, 3))


def test_one_row_and_one_column_are_not_called_rows_and_columns():
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0))
    assert "1 row, 1 column, Bounds" in str(model.plan(1, 1))
    assert "2 rows, 3 columns, Bounds" in str(model.plan(2, 3))
    one = PrivateLasso(1e6, bounds=Bounds(1.0, 1.0), random_state=0).fit(X[:, :1], X[:, 0])
    assert "1 of 1 column is not 0" in str(one.summary())
    assert "200 rows of 1 column." in html(one)


@pytest.mark.not_quick
def test_a_row_is_not_called_a_person():
    for adjacency in ("replace-one", "add-remove"):
        model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), adjacency=adjacency)
        page = html(model.fit(X, X[:, 0]))
        assert "stands for one person" not in page
        assert "one row" in page.lower()


def test_the_demo_compares_categories_with_one_of_them():
    """With all categories and an intercept, only their differences are determined."""
    flights = with_references(load_flights())
    assert "origin=EWR" not in flights.feature_names
    assert {"origin=JFK", "origin=LGA", "dep_delay"} <= set(flights.feature_names)
    ones = flights.x[:, [flights.feature_names.index(f"origin={o}") for o in ("JFK", "LGA")]]
    assert ones.sum(axis=1).min() == 0
    assert flights.x.shape[1] == len(flights.feature_names)


def test_the_dashboard_says_something_at_first():
    page = (files("riata.collect") / "static" / "dashboard.html").read_text()
    assert re.search(r'id="state"[^>]*>[^<]{20,}<', page)
    assert "<noscript>" in page


def test_the_dashboard_does_not_show_a_mean_outside_of_an_interval():
    """A mean of few collections with a signal is outside of what 80% of them have."""
    page = (files("riata.collect") / "static" / "dashboard.js").read_text()
    assert "on average" in page
    assert "in 80% of collections" in page
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not there")
    part = re.search(r"^const part = .*$", page, re.MULTILINE)[0]
    shown = "[0.0123, 0.00042, 0, -0.0473, 0.0999, 0.1, 0.678, 1].map(part).join(' ')"
    done = subprocess.run(
        [node, "-e", f"{part} console.log({shown})"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["0.012", "0.00042", "0", "-0.047", "0.1", "0.10", "0.68", "1.00"]


@pytest.mark.parametrize("terminal", [False, True])
def test_an_audit_is_not_silent_in_a_pipe(monkeypatch, terminal):
    seen = io.StringIO()
    monkeypatch.setattr(standard, "ESTIMATORS", {"one": None, "two": None})
    monkeypatch.setattr(standard, "ONE_STEP", {})
    monkeypatch.setattr(standard, "CURVES", {})
    monkeypatch.setattr(standard, "replay_estimator", lambda name, total, progress: name)
    monkeypatch.setattr(standard, "search_estimator", lambda name, total, progress: name)
    for rows in ("replay_rows", "search_rows", "attack_rows", "curve_rows"):
        monkeypatch.setattr(run.report, rows, lambda found: [])
    console = Console(file=seen, force_terminal=terminal)
    run.run_audits(1, 1, 1, 1, console, lambda table: None)
    assert ("one: done" in seen.getvalue()) is not terminal
