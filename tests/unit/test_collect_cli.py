"""`riata collect`: each command, and errors without tracebacks."""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import riata
from riata.cli.main import app, main
from riata.collect.directory import DirectoryStore, directory_records
from riata.local import Aggregator, Task
from riata.local.collection_result import CollectionResult
from riata.local.randomize import randomize
from riata.mechanisms.noise import Noise

MEAN = """
title = "Sleep"
kind = "mean"
epsilon = 4.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
[[features]]
name = "town[a]"
kind = "choice"
choices = ["[red]", "b"]
"""
LINEAR = """
kind = "linear"
epsilon = 4.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
[target]
name = "mood"
kind = "number"
bounds = [0, 10]
"""


def good(*arguments, answers=()):
    """What a command prints that ends well."""
    done = CliRunner().invoke(app, ["collect", *map(str, arguments)], input="".join(answers))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture
def bad(monkeypatch, capsys):
    """The error of a command, which ends with a status and without a traceback."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["riata", "collect", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in (2, 4)
        told = capsys.readouterr().err
        assert "Traceback" not in told
        return " ".join(told.split())

    return run


@pytest.fixture
def task(tmp_path):
    (tmp_path / "task.toml").write_text(MEAN)
    return tmp_path / "task.toml"


def collected(place, path, first, last):
    """A store with the reports of some of 4,000 people who sleep 8 of 24 hours."""
    task = Task.load(path)
    rows = np.repeat(task.encoding.encode({"hours": 8.0, "town[a]": "b", "mood": 3})[None], 4000, 0)
    targets = None if task.target is None else np.repeat(task.target.encode(3.0), 4000)
    store = DirectoryStore(place, task)
    store.add(randomize(task, rows, targets, Noise(1))[first:last])
    store.close()
    return place


def test_the_wizard_writes_a_task_with_comments(tmp_path):
    path = tmp_path / "new.toml"
    lines = [
        'Sleep "well" 😀\n', "predict a number\n", "nan\n", "99\n", "2\n",
        "How long do you sleep?\n", "\n", "number\n", "9\n", "3\n",  # refused: asked again
        "How long do you sleep?\n", "hours\n", "number\n", "0.5\n", "24\n", "y\n",
        "Again?\n", "hours\n", "yes-no\n",  # the name is taken: asked again
        "Where?\n", "\n", "choice\n", "here, there,,\n", "n\n",
        "Mood?\n", "mood\n", "number\n", "0\n", "10\n",
    ]  # fmt: skip
    output = good("init", path, "--people", "1000", answers=lines)
    assert "Wrote" in output
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# A riata task")
    task = Task.load(path)
    assert task.title == 'Sleep "well" 😀'
    assert (task.kind, task.epsilon) == ("linear", 2.0)
    assert [f.name for f in task.encoding.features] == ["hours", "where"]
    assert task.encoding.features[0].bounds == (0.5, 24.0)
    assert task.encoding.features[1].choices == ("here", "there")
    assert task.target.name == "mood"


def test_the_wizard_for_averages_and_for_classes(tmp_path):
    first = ["T\n", "\n", "\n", "Smoker?\n", "\n", "yes-no\n", "n\n"]
    good("init", tmp_path / "a.toml", answers=first)
    assert Task.load(tmp_path / "a.toml").kind == "mean"
    second = [
        "T\n",
        "predict yes or no\n",
        "\n",
        "Age?\n",
        "\n",
        "\n",
        "0\n",
        "99\n",
        "n\n",
        "Ill?\n",
        "\n",
    ]
    good("init", tmp_path / "b.toml", answers=second)
    assert Task.load(tmp_path / "b.toml").target.kind == "yes-no"


def test_an_aborted_wizard_writes_nothing(tmp_path):
    done = CliRunner().invoke(app, ["collect", "init", str(tmp_path / "a.toml")], input="T\n")
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_init_replaces_nothing_unasked_and_writes_toml_only(bad, task, tmp_path):
    assert "exists" in bad("init", task)
    assert ".toml" in bad("init", tmp_path / "task.json")
    good("init", task, "--force", answers=["T\n", "\n", "\n", "S?\n", "\n", "yes-no\n", "n\n"])
    assert Task.load(task).title == "T"


def test_plan(bad, task):
    assert "people" in good("plan", task, 10_000)
    facts = json.loads(good("plan", task, 10_000, "--json"))
    assert 0 <= facts["share"] <= 1
    assert "Error" in bad("plan", task, 0)


def test_status_counts_several_stores_once(task, tmp_path):
    one = collected(tmp_path / "one", task, 0, 2500)
    two = collected(tmp_path / "two", task, 2000, 4000)
    facts = json.loads(good("status", task, "--store", one, "--store", two, "--json"))
    # one new report in 15,000 may be taken for a repeat
    assert 3990 <= facts["reports"] <= 4000
    assert facts["task"] == Task.load(task).id
    assert "2,500" in good("status", task, "--store", one)


@pytest.mark.parametrize("text", [MEAN, LINEAR])
def test_learning_from_shards_is_learning_from_everything(tmp_path, text):
    task = tmp_path / "task.toml"
    task.write_text(text)
    one = collected(tmp_path / "one", task, 0, 1000)
    two = collected(tmp_path / "two", task, 1000, 4000)
    both = collected(tmp_path / "both", task, 0, 4000)
    for place in (one, two):
        assert "sums" in good("export", task, f"{place}.shard", "--store", place)
    merged = tmp_path / "merged"
    good("learn", task, "--shard", f"{one}.shard", "--shard", f"{two}.shard", "--out", merged)
    output = good("learn", task, "--store", both)
    assert "differentially private" in output
    facts, others = (json.loads((place / "model.json").read_text()) for place in (merged, both))
    assert facts["reports"] == pytest.approx(4000, abs=3)
    assert others["reports"] == pytest.approx(4000, abs=3)
    for a, b in zip(facts["columns"], others["columns"], strict=True):
        assert a["name"] == b["name"]
        assert a["value"] == pytest.approx(b["value"], abs=3 * b["error"] + 1e-9)
    assert facts["privacy"]
    if text == MEAN:
        assert abs(facts["columns"][0]["value"] - 8) <= 5 * facts["columns"][0]["error"]
        assert "town[a]=[red]" in output  # brackets are not marks of style


def test_learning_writes_a_model_and_its_statement(task, tmp_path):
    place = collected(tmp_path / "one", task, 0, 4000)
    output = good("learn", task, "--store", place)
    names = ["model.riata", "model.json", "statement.json", "statement.txt"]
    for name in names:
        assert f"{name}." in output.replace("\n", "")
        assert (place / name).stat().st_size > 0
    model = riata.load(place / "model.riata")
    facts = json.loads((place / "model.json").read_text())
    assert model.task == Task.load(task)
    assert [one["value"] for one in facts["columns"]] == model.mean.tolist()
    assert [one["error"] for one in facts["columns"]] == model.errors.tolist()
    statement = json.loads((place / "statement.json").read_text())
    assert statement == json.loads(json.dumps(model.privacy.to_dict()))
    assert (place / "statement.txt").read_text() == f"{model.privacy}\n"
    assert "local mean, 1 step\n" in (place / "statement.txt").read_text()
    assert not list(place.glob("*.new")) + list(place.glob(".*"))


def test_a_collection_result_is_all_that_a_report_needs(task, tmp_path):
    place = collected(tmp_path / "one", task, 0, 4000)
    aggregator = Aggregator(Task.load(task))
    aggregator.add(directory_records(place, aggregator.task).seeds)
    result = CollectionResult.from_aggregator(aggregator)
    assert result.task is aggregator.task
    assert result.statement.epsilon == 4.0
    assert [one.name for one in result.columns] == result.model.names
    assert result.columns[0].reach == 12.0
    assert result.forecast.people == result.model.reports
    assert result.rejected == {"repeated": 0, "malformed": 0, "wrong task": 0, "late": 0} or (
        result.rejected["repeated"] < 5
    )
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.statement.sentence in str(result)
    nothing = CollectionResult.from_aggregator(Aggregator(aggregator.task))
    assert nothing.forecast is None
    json.dumps(nothing.to_dict(), allow_nan=False)


def test_one_report_is_one_report(task, tmp_path):
    place = collected(tmp_path / "one", task, 0, 1)
    assert "of 1 report to" in good("export", task, tmp_path / "shard", "--store", place)
    assert "from 1 report at" in good("learn", task, "--store", place)
    assert "1 person\n" in good("plan", task, 1)


def test_learning_from_a_store_and_a_shard(task, tmp_path):
    one = collected(tmp_path / "one", task, 0, 1000)
    two = collected(tmp_path / "two", task, 1000, 4000)
    good("export", task, tmp_path / "one.shard", "--store", one)
    good("learn", task, "--store", two, "--shard", tmp_path / "one.shard")
    assert json.loads((two / "model.json").read_text())["reports"] > 3990


def test_invitations_are_links_with_tokens(task, tmp_path):
    lines = good("invite", task, 3, "--tokens", tmp_path / "key", "--url", "https://x/").split()
    assert len(set(lines)) == 3
    assert all(line.startswith("https://x/#") and len(line) == 43 for line in lines)


def test_errors_say_what_to_do(bad, task, tmp_path):
    assert "Cannot read the task file" in bad("plan", tmp_path / "none.toml", 5)
    assert "holds no reports" in bad("status", task, "--store", tmp_path / "none")
    assert "cannot be read as an aggregator" in bad("learn", task, "--shard", tmp_path / "none")
    (tmp_path / "other.toml").write_text(LINEAR)
    place = collected(tmp_path / "one", task, 0, 10)
    assert "another task" in bad("status", tmp_path / "other.toml", "--store", place)
    good("export", task, tmp_path / "shard", "--store", place)
    assert "different tasks" in bad("learn", tmp_path / "other.toml", "--shard", tmp_path / "shard")
    assert "No such file" in bad("export", task, tmp_path / "no" / "where", "--store", place)
    # brackets reach the reader
    assert 'riata[collect,postgres]"' in bad("status", task, "--store", "postgresql+nothing://x/")
    (tmp_path / "task2.toml").write_text("kind = ")
    assert "not TOML" in bad("plan", tmp_path / "task2.toml", 5)


def test_errors_of_serve(bad, task, tmp_path):
    assert "No such" in bad("serve", tmp_path / "no.toml") or "Cannot" in bad(
        "serve", tmp_path / "no.toml"
    )
    store = DirectoryStore(tmp_path / "d", Task.load(task))
    assert "Another process" in bad("serve", task, "--store", tmp_path / "d")
    store.close()
    (tmp_path / "file").write_text("")
    assert "File exists" in bad("serve", task, "--store", tmp_path / "file")
    assert "port" in bad("serve", task, "--port", "99999")
    for proxy, said in (("*", "address or a network"), ("0.0.0.0/0", "everybody")):
        assert said in bad("serve", task, "--store", tmp_path / "p", "--trusted-proxy", proxy)
    assert not (tmp_path / "p").exists()
    assert "greater than or" in bad("serve", task, "--reports-per-address", "-1")
    (tmp_path / "late.toml").write_text('deadline = "2020-01-01"\n' + MEAN)
    assert "2020-01-01" in bad("serve", tmp_path / "late.toml")
    (tmp_path / "key").write_text("short")
    assert "not a key" in bad(
        "serve", task, "--store", tmp_path / "e", "--tokens", tmp_path / "key"
    )
