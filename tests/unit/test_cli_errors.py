"""Hostile and mistaken input: a status, a sentence, no traceback, nothing on standard output."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import riata
from riata.cli import exits
from riata.errors import (
    BudgetExceeded,
    CheckpointError,
    DataError,
    InvalidArgument,
    LedgerError,
    ModelFileError,
    SchemaError,
)

pytestmark = pytest.mark.matrix(one_in=11)

SCHEMA = """
features = [{name = "age", kind = "number", bounds = [0, 100]}]
target = {name = "cost", bounds = [0, 10]}
"""
FIT = ["fit", "--schema", "s.toml", "--data", "d.csv", "--epsilon", "1", "--out", "m", "--yes"]
SECRET = "48151623"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA)
    (tmp_path / "d.csv").write_text(f"age,cost\n{SECRET},{SECRET}\n" + "3,4\n" * 50)
    return tmp_path


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (InvalidArgument("x"), 2), (BudgetExceeded("x"), 3), (SchemaError("x"), 4),
        (DataError("x"), 4), (ModelFileError("x"), 4), (OSError(2, "no", "f"), 4),
        (LedgerError("x"), 5), (CheckpointError("x"), 5), (KeyboardInterrupt(), 130),
        (ValueError(SECRET), 1), (MemoryError(), 1),
    ],
)  # fmt: skip
def test_each_kind_of_problem_has_its_status(problem, status):
    assert exits.status_of(problem) == status
    assert status in exits.MEANINGS
    assert SECRET not in exits.message_of(problem)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["ift"], 2, "Did you mean 'fit'"),
        (["ledger", "verfy", "x"], 2, "'verify'"),
        (["fit", "--epsilom", "1"], 2, "--epsilon"),
        (["fit", "--epsilon", "much"], 2, "--epsilon"),
        (["fit", "none.toml"], 4, "No such file"),
        (["fit", "d.csv"], 2, "is not TOML"),
        (["plan", "s.toml"], 2, "Pass it with --schema"),
        (["fit", "binary.toml"], 2, "is not TOML"),
        (["fit", "--epsilon", "1"], 2, "--schema claims.toml"),
        ([*FIT, "--data", "none.csv"], 4, "There is no file"),
        ([*FIT, "--data", "."], 4, "holds neither"),
        ([*FIT, "--schema", "none.toml"], 4, "Cannot read the schema"),
        ([*FIT, "--schema", "d.csv"], 4, "The schema d.csv is not TOML"),
        ([*FIT, "--ledger", "none.db"], 5, "does not exist"),
        ([*FIT, "--ledger", "d.csv"], 5, "d.csv"),
        ([*FIT, "--estimator", "logistic"], 2, "predicts classes"),
        ([*FIT, "--estimator", "lassso"], 2, "did you mean 'lasso'"),
        ([*FIT, "--solver", "peeling"], 2, "Cannot use"),
        ([*FIT, "--solver", "nothing"], 2, "is not known"),
        ([*FIT, "--steps", "0"], 2, "steps"),
        ([*FIT, "--steps", "[1]"], 2, "steps"),
        ([*FIT, "--radius", "-1"], 2, "radius"),
        ([*FIT, "--sparsity", "3"], 2, "parameters.sparsity is unknown"),
        ([*FIT, "--engine", "gpu"], 2, "engine"),
        ([*FIT, "--epsilon", "nan"], 2, "epsilon"),
        ([*FIT, "--delta", "2"], 2, "delta"),
        ([*FIT, "--adjacency", "add"], 2, "adjacency"),
        ([*FIT, "--checkpoint", "none/run"], 5, "cannot be opened"),
        ([*FIT, "--checkpoint", "d.csv"], 5, "is damaged"),
        ([*FIT, "--out", "d.csv"], 2, "not a folder"),
        (["predict", "d.csv", "--data", "d.csv", "--out", "p.csv"], 4, "Cannot load"),
        (["report", "none.riata"], 4, "There is no file"),
    ],
)
def test_mistakes_are_told_in_a_sentence(here, riata_command, arguments, code, message):
    (here / "binary.toml").write_bytes(bytes(range(256)))
    done = riata_command(*arguments)
    assert done.code == code, done.err
    assert done.out == ""
    said = " ".join(done.err.replace("│", " ").split())
    assert message in said
    assert SECRET not in said
    assert "--help" in said or "-h" in said or said.rstrip("╯─╰ ").endswith((".", "?"))


def test_an_unforeseen_error_quotes_nothing(here, riata_command, monkeypatch):
    def broken(*arguments, **options):
        raise ValueError(f"could not read {SECRET}")

    monkeypatch.setattr("riata.data.source.Source.blocks", broken)
    done = riata_command(*FIT)
    assert done.code == 1
    assert "mistake in riata" in done.err
    assert "ValueError" in done.err
    assert SECRET not in done.err


def test_help_names_every_command_and_every_status(riata_command):
    said = riata_command("--help").out
    for word in ("fit", "plan", "ledger", "audit", "schema", "report", "predict", "collect"):
        assert word in said
    for meaning in exits.MEANINGS.values():
        assert meaning.split(",")[0] in " ".join(said.split())
    assert riata_command("--version").out.startswith("riata ")


CODE = "from riata.cli import main; main()"
#: The riata that is tested, also from another folder, and no wish about colours.
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {
    "PYTHONPATH": str(Path(riata.__file__).parents[1]),
    "TERM": "xterm-256color",
}


def command(*arguments, **more):
    return subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, timeout=3600,
        env=ENVIRONMENT | more, check=False,
    )  # fmt: skip


def on_terminal(*arguments, **more):
    """What a command tells a person, with its marks of style."""
    parent, child = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", CODE, *arguments], stderr=child, stdout=subprocess.DEVNULL,
        env=ENVIRONMENT | more, timeout=3600, check=False,
    )  # fmt: skip
    os.close(child)
    told = os.read(parent, 10_000)
    os.close(parent)
    return told


@pytest.mark.long
def test_colour_is_for_terminals_that_want_it(here):
    show = ("ledger", "show", "none.db")
    assert b"\x1b[1;31mError" in on_terminal(*show)
    assert b"31m" not in on_terminal(*show, NO_COLOR="1")
    assert b"\x1b" not in command(*show).stderr


def test_completion_knows_the_commands():
    done = command(_RIATA_COMPLETE="complete_bash", COMP_WORDS="riata le", COMP_CWORD="1")
    assert b"ledger" in done.stdout


@pytest.mark.long
def test_an_audit_says_what_it_found(riata_command, tmp_path, monkeypatch):
    from riata.audit import standard
    from riata.cli import audit

    for table in ("ESTIMATORS", "ONE_STEP", "CURVES"):
        known = getattr(standard, table)
        monkeypatch.setattr(standard, table, dict([next(iter(known.items()))]))
    monkeypatch.setattr(audit, "QUICK", (2, 2, 200, 50))
    few = ["--quick", "--out", tmp_path / "audit.html"]
    done = riata_command("audit", *few)
    assert done.code == 0, done.err
    assert "No claim was exceeded." in done.out
    assert (tmp_path / "audit.html").exists()
    monkeypatch.setattr(standard.AuditResult, "sound", False)
    done = riata_command("audit", *few, "--json")
    assert done.code == 6
    assert '"sound": false' in done.out


def test_help_and_completion_import_nothing_slow():
    code = "import sys, riata.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT)
    assert not {b"scipy", b"sklearn", b"sqlalchemy", b"matplotlib"} & set(done.stdout.split())
