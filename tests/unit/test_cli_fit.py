"""`riata fit`: the plan first, then the charge, then the rows; and what is written at the end."""

import gzip
import json

import numpy as np
import pytest

import riata
from riata import Budget, Ledger
from riata.cli.study import load_study
from riata.data.readers.csv_file import CsvReader
from riata.errors import InvalidArgument, SchemaError

SCHEMA = """
[[features]]
name = "age"
kind = "number"
bounds = [0, 100]

[[features]]
name = "smoker"
kind = "yes-no"

[target]
name = "cost"
bounds = [0, 1000]
"""
STUDY = """
schema = "claims.toml"
data = "claims.csv"
out = "model"
estimator = "lasso"
checkpoint = "run.checkpoint"

[parameters]
solver = "frank-wolfe"
steps = 3

[budget]
epsilon = 1.0
delta = 1e-7

[ledger]
path = "claims.db"
"""
#: A cell that must not be seen anywhere.
SECRET = "73571"


def rows(n=400):
    rng = np.random.default_rng(0)
    lines = [
        f"{age},{'yes' if smokes else 'no'},{9 * age + 50 * smokes}"
        for age, smokes in zip(rng.integers(0, 100, n), rng.integers(0, 2, n), strict=True)
    ]
    lines[7] = f"{SECRET},{SECRET},{SECRET}"
    return "\n".join(["age,smoker,cost", *lines]) + "\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.toml").write_text(SCHEMA)
    (tmp_path / "claims.csv").write_text(rows())
    (tmp_path / "study.toml").write_text(STUDY)
    Ledger.create("claims.db", dataset="claims", ceiling=Budget(1.5, 1e-6))
    return tmp_path


def charges():
    return Ledger.open("claims.db").charges


def test_a_study_is_fitted_and_written(here, riata_command):
    done = riata_command("fit", "study.toml", "--yes")
    assert done.code == 0, done.err
    assert "differentially private" in done.out
    assert done.err.index("Plan for epsilon=1") < done.err.index("Ledger of 'claims'")
    assert "their number is public, and no cell is looked at" in done.err
    model = riata.load("model/model.riata")
    assert model.privacy_.epsilon == pytest.approx(1.0, rel=1e-3)
    assert model.n_iter_ == 3
    assert json.loads((here / "model/statement.json").read_text())["private"] is True
    assert "differentially private" in (here / "model/statement.txt").read_text()
    assert "<html" in (here / "model/report.html").read_text()
    assert len(charges()) == 1
    assert SECRET not in done.out + done.err + (here / "model/report.html").read_text()


def test_flags_are_enough_and_json_is_all_that_is_printed(here, riata_command):
    done = riata_command(
        "fit", "--schema", "claims.toml", "--data", "claims.csv", "--epsilon", "0.5", "--out", "m",
        "--solver", "frank-wolfe", "--steps", "2", "--no-intercept", "--radius", "700",
        "--ledger", "claims.db", "--yes", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["statement"]["public"]["intercept"] is False
    assert facts["statement"]["steps"] == 2
    assert "radius=700" in facts["statement"]["public"]["set"]
    assert facts["ledger"]["spent"] == pytest.approx(0.5, rel=1e-3)
    assert sorted(facts["files"]) == ["model", "report", "statement.json", "statement.txt"]


def test_flags_go_before_the_study(here, riata_command):
    done = riata_command("fit", "study.toml", "--steps", "2", "--out", "other", "--yes", "--json")
    assert json.loads(done.out)["statement"]["steps"] == 2
    assert (here / "other/model.riata").exists()


def test_a_guess_is_forecast_before_the_charge(here, riata_command):
    (here / "study.toml").write_text(STUDY + "[guess]\nrelevant = 1\nsignal = 0.6\nrepeats = 2\n")
    done = riata_command("fit", "study.toml", "--yes", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["forecast"]["metric"] == "R2"
    assert "R2" in done.err


def test_it_refuses_without_a_terminal_and_without_consent(here, riata_command):
    done = riata_command("fit", "study.toml")
    assert done.code == 2
    assert "pass --yes" in done.err
    assert charges() == []


@pytest.mark.parametrize(("answer", "fitted"), [("y\n", True), ("n\n", False), ("", False)])
def test_it_asks_at_a_terminal(here, riata_command, answer, fitted):
    done = riata_command("fit", "study.toml", said=answer)
    assert done.code == 0
    assert "Spend this, and fit?" in done.err
    assert len(charges()) == fitted
    assert (here / "model/model.riata").exists() == fitted


def test_the_ledger_is_charged_before_a_row_is_read(here, riata_command, monkeypatch):
    seen = []

    def opened(*arguments):
        seen.append(len(charges()))
        raise OSError(5, "Input/output error", "claims.csv")

    monkeypatch.setattr(CsvReader, "chunks", opened)
    done = riata_command("fit", "study.toml", "--yes")
    assert done.code == 4
    assert seen == [1]
    assert "Input/output error" in done.err
    assert not (here / "model/model.riata").exists()


def test_a_file_that_is_cut_off_is_found_after_the_charge_and_quotes_nothing(here, riata_command):
    whole = gzip.compress((rows() * 50).encode())
    (here / "claims.csv.gz").write_bytes(whole[: len(whole) // 2])
    (here / "fixed.toml").write_text("rows = 20000\n" + SCHEMA)
    done = riata_command(
        "fit", "study.toml", "--schema", "fixed.toml", "--data", "claims.csv.gz", "--yes"
    )
    assert done.code == 4
    assert "truncated" in done.err
    assert "Counting" not in done.err
    assert SECRET not in done.err
    assert len(charges()) == 1


def test_nothing_is_charged_beyond_the_ceiling(here, riata_command):
    done = riata_command("fit", "study.toml", "--epsilon", "5", "--yes")
    assert done.code == 3
    assert "more than the ceiling of 1.5" in done.err
    assert charges() == []


def test_ctrl_c_says_how_to_go_on_and_going_on_costs_nothing(here, riata_command, monkeypatch):
    real = CsvReader.chunks

    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(CsvReader, "chunks", stopped)
    done = riata_command("fit", "study.toml", "--yes")
    assert done.code == 130
    assert "Stopped. What the ledger was charged stays charged." in done.err
    assert "riata fit study.toml --yes" in done.err
    assert len(charges()) == 1
    monkeypatch.setattr(CsvReader, "chunks", real)
    again = riata_command("fit", "study.toml", "--yes")
    assert again.code == 0, again.err
    assert "was charged when the fit began" in again.err
    assert len(charges()) == 1
    other = riata_command("fit", "study.toml", "--yes", "--steps", "2", "--out", "other")
    assert other.code == 5
    assert "belongs to another run" in other.err


def test_ctrl_c_without_a_checkpoint_says_that_it_cannot_go_on(here, riata_command, monkeypatch):
    def stopped(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(CsvReader, "chunks", stopped)
    (here / "study.toml").write_text(STUDY.replace('checkpoint = "run.checkpoint"\n', ""))
    done = riata_command("fit", "study.toml", "--yes")
    assert done.code == 130
    assert "cannot go on" in done.err


def test_a_model_is_not_replaced_unless_forced(here, riata_command):
    assert riata_command("fit", "study.toml", "--seed", "1", "--yes").code == 2  # and a ledger
    quiet = ["--schema", "claims.toml", "--data", "claims.csv", "--epsilon", "1", "--out", "m"]
    first = riata_command("fit", *quiet, "--seed", "1", "--yes")
    assert first.code == 0, first.err
    assert "NOT PRIVATE" in first.out
    assert "--seed makes the noise known" in first.err
    again = riata_command("fit", *quiet, "--seed", "1", "--yes")
    assert again.code == 2
    assert "--force" in again.err
    assert riata_command("fit", *quiet, "--seed", "1", "--yes", "--force").code == 0


def test_a_folder_that_cannot_be_made_costs_nothing(here, riata_command):
    (here / "file").write_text("")
    done = riata_command("fit", "study.toml", "--out", "file/model", "--yes")
    assert done.code == 4
    assert charges() == []


def test_people_are_what_a_schema_with_a_person_protects(here, riata_command):
    lines = rows().splitlines()
    people = [f"{i // 2},{line}" for i, line in enumerate(lines[1:])]
    (here / "claims.csv").write_text("\n".join([f"who,{lines[0]}", *people]))
    (here / "claims.toml").write_text('person = "who"\nrows_of_a_person = 1\n' + SCHEMA)
    ledger = here / "people.db"
    made = riata_command(
        "ledger", "create", ledger, "--dataset", "d", "--epsilon", "2", "--delta", "1e-6",
        "--adjacency", "replace-person",
    )  # fmt: skip
    assert made.code == 0, made.err
    done = riata_command("fit", "study.toml", "--ledger", ledger, "--yes", "--json")
    assert done.code == 0, done.err
    assert "Counting the people" in done.err
    assert json.loads(done.out)["statement"]["public"]["people"] == 200


def test_predictions_of_a_fitted_model_are_for_files_of_its_schema(here, riata_command):
    assert riata_command("fit", "study.toml", "--yes").code == 0
    done = riata_command("predict", "model/model.riata", "--data", "claims.csv", "--out", "p.csv")
    assert done.code == 0, done.err
    assert len((here / "p.csv").read_text().splitlines()) == 401


def test_classes_are_fitted_by_default_with_logistic_regression(here, riata_command):
    lines = [line.rsplit(",", 1)[0] for line in rows().splitlines()]
    (here / "ill.csv").write_text(
        "\n".join(
            [lines[0] + ",ill", *(f"{line},{'ny'[i % 2]}" for i, line in enumerate(lines[1:]))]
        )
    )
    (here / "ill.toml").write_text(
        SCHEMA.replace("cost", "ill").replace("bounds = [0, 1000]", 'classes = ["n", "y"]')
    )
    done = riata_command(
        "fit", "--schema", "ill.toml", "--data", "ill.csv", "--epsilon", "1", "--out", "m",
        "--set", "penalty=l1", "--yes", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert json.loads(done.out)["statement"]["public"]["classes"] == "n, y"
    assert "No ledger records this fit" in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("estimater = 'lasso'", "estimater is unknown. Did you mean estimator"),
        ("estimator = 'laso'", "did you mean 'lasso'"),
        ("schema = 3", "schema"),
        ("seed = -1", "seed"),
        ("row_length = 'long'", "row_length"),
        ("out = 1", "must be a path"),
        ("ledger = 1", "it must be a path"),
        ("[parameters]\nsolvr = 'greedy'", "parameters.solvr is unknown. Did you mean solver"),
        ("[parameters]\nepsilon = 2", "parameters.epsilon is unknown"),
        ("[budget]\nepsilon = 1\ndelt = 2", "budget.delt is unknown. Did you mean delta"),
        ("[guess]\nrelevent = 2", "guess.relevent is unknown. Did you mean relevant"),
        ("[ledger]\npth = 'x'", "ledger.path is missing"),
        ("[budget]\ndelta = 1e-6", "There is no epsilon"),
    ],
)  # fmt: skip
def test_a_wrong_study_names_the_field(tmp_path, change, message):
    text = change if "[budget]" in change else f"{change}\n[budget]\nepsilon = 1\n"
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises((InvalidArgument, SchemaError), match=r".*") as problem:
        load_study(tmp_path / "s.toml", {}).model(for_source=False)
    assert message in str(problem.value)


def test_an_inline_schema_is_read(tmp_path):
    text = SCHEMA.replace("[[features]]", "[[schema.features]]").replace(
        "[target", "[schema.target"
    )
    (tmp_path / "s.toml").write_text("[budget]\nepsilon = 1\n" + text)
    study = load_study(tmp_path / "s.toml", {})
    assert study.schema.n_features == 2
    assert study.model(for_source=False).bounds.y == 500


def test_paths_in_a_study_are_beside_it(tmp_path, monkeypatch):
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "claims.toml").write_text(SCHEMA)
    (folder / "s.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    study = load_study(folder / "s.toml", {})
    assert study.data == folder / "claims.csv"
    assert study.ledger == {"path": str(folder / "claims.db")}
    assert load_study(folder / "s.toml", {"data": "x.csv"}).data.as_posix() == "x.csv"
