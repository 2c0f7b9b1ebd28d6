"""`riata report` and `riata predict`: what they write, and errors without tracebacks."""

import csv
import json
import sys
import webbrowser

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner

import riata
from riata import (
    Bounds,
    Budget,
    Ledger,
    LocalSparseMean,
    PrivateLasso,
    PrivateLogisticRegression,
)
from riata.cli.main import app, main
from riata.collect.directory import DirectoryStore
from riata.local import Aggregator, Task
from riata.local.randomize import randomize
from riata.mechanisms.noise import Noise

NAMES = ["age", "weight [kg]", "height"]
SURVEY = """
kind = "logistic"
epsilon = 4.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
[[features]]
name = "town"
kind = "choice"
choices = ["a", "b"]
[target]
name = "happy"
kind = "yes-no"
"""


def rows():
    x = np.random.default_rng(1).uniform(-1, 1, (200, 3))
    return pd.DataFrame(x, columns=NAMES)


@pytest.fixture
def lasso(tmp_path):
    """A model of named columns, its file and its ledger."""
    ledger = Ledger.create(tmp_path / "study.db", dataset="claims", ceiling=Budget(2.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), ledger=ledger)
    model.fit(rows(), rows()["age"])
    model.coef_ = np.array([1.0, 10.0, 100.0])
    riata.save(model, tmp_path / "model.riata")
    return model


def good(*arguments):
    """What a command prints that ends well."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture
def bad(monkeypatch, capsys):
    """The error of a command, which ends with a status and without a traceback."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["riata", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code in (2, 4, 5)
        told = capsys.readouterr().err
        assert "Traceback" not in told
        return " ".join(told.split())

    return run


def written(path):
    with path.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    return head, lines


# riata report


def test_a_page_is_written_with_the_ledger(lasso, tmp_path):
    out = tmp_path / "page.html"
    told = good(
        "report", tmp_path / "model.riata", "--out", out, "--ledger", tmp_path / "study.db",
        "--title", "A <study>",
    )  # fmt: skip
    assert lasso.privacy_.sentence in told
    text = out.read_text(encoding="utf-8")
    assert "Budget of “claims”" in text
    assert "weight [kg]" in text
    assert "A &lt;study&gt;" in text
    assert "\x1b" not in told


def test_a_report_in_json_is_for_programs(lasso, tmp_path):
    out = tmp_path / "page.html"
    told = json.loads(good("report", tmp_path / "model.riata", "--out", out, "--json"))
    assert told["statement"]["private"] is True
    assert told["statement"]["epsilon"] == lasso.privacy_.epsilon
    assert told["model"] == "PrivateLasso"
    assert told["out"] == str(out)


def test_the_page_is_opened_on_demand(lasso, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    out = tmp_path / "page.html"
    good("report", tmp_path / "model.riata", "--out", out)
    assert opened == []
    good("report", tmp_path / "model.riata", "--out", out, "--open")
    assert opened == [out.as_uri()]


def test_errors_of_report_have_no_traceback(lasso, tmp_path, bad):
    model = tmp_path / "model.riata"
    assert "There is no file" in bad("report", tmp_path / "none.riata")
    assert "does not exist" in bad("report", model, "--ledger", tmp_path / "none.db")
    nowhere = tmp_path / "nowhere" / "page.html"
    assert "No such file or directory" in bad("report", model, "--out", nowhere)


def test_what_a_survey_learned_gets_a_page(tmp_path):
    (tmp_path / "task.toml").write_text(SURVEY)
    task = Task.load(tmp_path / "task.toml")
    encoded = np.array([task.encoding.encode({"hours": 24.0 * (k % 2)}) for k in range(1000)])
    store = DirectoryStore(tmp_path / "store", task)
    store.add(randomize(task, encoded, np.sign(encoded[:, 0]), Noise(1)))
    store.close()
    out = tmp_path / "page.html"
    good("collect", "learn", tmp_path / "task.toml", "--store", tmp_path / "store", "--report", out)
    text = out.read_text(encoding="utf-8")
    assert "Every report protects the person who sent it" in text
    assert task.id in text


# riata predict


def test_columns_of_a_csv_are_found_by_their_names(lasso, tmp_path):
    (tmp_path / "data.csv").write_text(
        "height,who,age,weight [kg]\n0.5,ann,0.25,\n,bob,9,-0.5\n", encoding="utf-8"
    )
    out = tmp_path / "out.csv"
    told = good(
        "predict", tmp_path / "model.riata", "--data", tmp_path / "data.csv", "--out", out
    )  # fmt: skip
    assert "2 predictions" in told
    head, lines = written(out)
    assert head == ["prediction"]
    found = [float(line[0]) for line in lines]
    b = lasso.intercept_
    # a missing value counts as 0, and 9 is clipped to 1
    np.testing.assert_allclose(found, [0.25 + 50.0 + b, 1.0 - 5.0 + b], rtol=1e-12)


@pytest.mark.parametrize("name", ["rows.npy", "X.npz", "one.npz", "sparse.npz"])
def test_arrays_are_read_in_order(lasso, tmp_path, name):
    x, path = rows().to_numpy(), tmp_path / name
    if name == "rows.npy":
        np.save(path, x)
    elif name == "X.npz":
        np.savez(path, y=x[:, 0], X=x)
    elif name == "one.npz":
        np.savez(path, table=x)
    else:
        sparse.save_npz(path, sparse.csr_array(x))
    out = tmp_path / "out.npy"
    facts = json.loads(
        good("predict", tmp_path / "model.riata", "--data", path, "--out", out, "--json")
    )
    assert facts == {"out": str(out), "rows": 200, "columns": ["prediction"], "private": True}
    np.testing.assert_allclose(np.load(out), lasso.predict(rows()), rtol=1e-12)


def test_classes_have_probabilities(tmp_path):
    model = PrivateLogisticRegression(1.0, bounds=Bounds(1.0), classes=["no", "yes"])
    model.fit(rows().to_numpy(), np.full(200, "no"))
    riata.save(model, tmp_path / "model.riata")
    rows().to_csv(tmp_path / "data.csv", index=False)
    out = tmp_path / "out.csv"
    good("predict", tmp_path / "model.riata", "--data", tmp_path / "data.csv", "--out", out)
    head, lines = written(out)
    assert head == ["prediction", "probability of no", "probability of yes"]
    assert [line[0] for line in lines] == model.predict(rows().to_numpy()).tolist()
    chances = np.array([line[1:] for line in lines], dtype=float)
    np.testing.assert_array_equal(chances, model.predict_proba(rows().to_numpy()))


def test_labels_are_written_as_an_array(tmp_path):
    model = PrivateLogisticRegression(1.0, bounds=Bounds(1.0), classes=["no", "yes"])
    model.fit(rows().to_numpy(), np.full(200, "no", dtype=object))
    model.classes_ = model.classes_.astype(object)
    riata.save(model, tmp_path / "model.riata")
    np.save(tmp_path / "x.npy", rows().to_numpy())
    out = tmp_path / "out.npy"
    good("predict", tmp_path / "model.riata", "--data", tmp_path / "x.npy", "--out", out)
    assert np.load(out, allow_pickle=False).tolist() == model.predict(rows().to_numpy()).tolist()


def test_a_survey_predicts_from_answers(tmp_path):
    task = Task.read(SURVEY, toml=True)
    answers = [{"hours": str(3 * k), "town": "ab"[k % 2]} for k in range(8)]
    encoded = np.array([task.encoding.encode(row) for row in answers] * 500)
    reports = randomize(task, encoded, np.sign(encoded[:, 0] + 0.01), Noise(1))
    model = Aggregator(task, expected=4000).add(reports).solve()
    riata.save(model, tmp_path / "model.riata")
    pd.DataFrame(answers).to_csv(tmp_path / "data.csv", index=False)
    out = tmp_path / "out.csv"
    good("predict", tmp_path / "model.riata", "--data", tmp_path / "data.csv", "--out", out)
    head, lines = written(out)
    assert head == ["prediction", "probability of yes"]
    assert [line[0] for line in lines] == [str(one) for one in model.predict(answers)]
    good("report", tmp_path / "model.riata", "--out", tmp_path / "page.html")
    assert task.id in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_errors_of_predict_have_no_traceback_and_no_value(lasso, tmp_path, bad):
    def fails(name, content, out="out.csv"):
        path = tmp_path / name
        path.write_bytes(content)
        return bad(
            "predict", tmp_path / "model.riata", "--data", path, "--out", tmp_path / out
        )  # fmt: skip

    assert "has no column 'weight [kg]'" in fails("a.csv", b"age,height\n1,2\n")
    told = fails("b.csv", b"age,height,weight [kg]\n1,secret,3\n")
    assert "column 'height' has text that is not a number" in told
    assert "secret" not in told
    assert "is empty" in fails("c.csv", b"")
    assert "have the same name" in fails("h.csv", b"age,age\n1,2\n")
    assert "not a CSV file in UTF-8" in fails("i.csv", b"age\n\xff\n")
    assert "not an array of numbers" in fails("j.npz", b"")
    np.save(tmp_path / "k.npy", np.zeros((5, 2)))
    assert "the shape (5, 2)" in fails("l.npy", (tmp_path / "k.npy").read_bytes())
    np.savez(tmp_path / "m.npz", a=np.zeros((5, 3)), b=np.zeros(5))
    assert "not an array of numbers" in fails("n.npz", (tmp_path / "m.npz").read_bytes())
    assert "not an array of numbers" in fails("d.npy", b"\x93NUMPY")
    assert "must end in .csv or .npy" in fails("e.csv", b"age\n1\n", out="out.xlsx")
    assert "must be one of" in fails("f.xlsx", b"")
    pickled = tmp_path / "p.npy"
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "not an array of numbers" in fails("g.npy", pickled.read_bytes())
    assert not (tmp_path / "out.csv").exists()


def test_a_mean_predicts_nothing(tmp_path, bad):
    model = LocalSparseMean(1.0, bounds=Bounds(1.0, norm="l2")).fit(rows().to_numpy())
    riata.save(model, tmp_path / "mean.riata")
    np.save(tmp_path / "x.npy", rows().to_numpy())
    told = bad(
        "predict", tmp_path / "mean.riata", "--data", tmp_path / "x.npy",
        "--out", tmp_path / "out.csv",
    )  # fmt: skip
    assert "predicts nothing: it is a mean" in told
