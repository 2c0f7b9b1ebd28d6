"""`riata split`, `riata evaluate`, and `riata predict --keep`."""

import csv
import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import riata
from riata import Bounds, Budget, Ledger, PrivateLasso, PrivateLogisticRegression, Schema
from riata.data.split import Rule, split
from riata.errors import InvalidArgument

SCHEMA = """
ignore = ["id"]
features = [
    {name = "age", kind = "number", bounds = [0, 100]},
    {name = "smoker", kind = "yes-no"},
]
target = {name = "ill", classes = ["no", "yes"]}
"""
SECRET = "73571"


def rows(n=1200):
    rng = np.random.default_rng(0)
    age, smokes = rng.integers(0, 100, n), rng.integers(0, 2, n)
    ill = rng.random(n) < 1 / (1 + np.exp(-0.1 * (age - 50) - 2 * smokes + 1))
    return pd.DataFrame(
        {
            "id": [f"p{k // 2}" for k in range(n)], "age": age,
            "smoker": np.where(smokes, "yes", "no"), "ill": np.where(ill, "yes", "no"),
        }
    )  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA)
    rows().to_csv("d.csv", index=False)
    return tmp_path


SPLIT = ["split", "d.csv", "--train", "train.csv", "--held-out", "held.csv"]


def test_rows_are_divided_and_none_is_lost(here, riata_command):
    done = riata_command(*SPLIT, "--json")
    assert done.code == 0, done.err
    train, held = pd.read_csv("train.csv"), pd.read_csv("held.csv")
    assert json.loads(done.out)["rows"] == [len(train), len(held)]
    assert len(train) + len(held) == 1200
    # Four standard deviations of a public hash: the salt is fixed, so this cannot change.
    assert abs(len(train) / 1200 - 0.75) < 0.05
    both = pd.concat([train, held]).sort_values(list(train.columns)).reset_index(drop=True)
    pd.testing.assert_frame_equal(
        both, rows().sort_values(list(train.columns)).reset_index(drop=True)
    )


def test_a_key_keeps_rows_of_a_person_together_in_every_format(here, riata_command):
    rows().to_parquet("d.parquet")
    done = riata_command(*SPLIT, "--key", "id", "--share", "0.5", "--salt", "study 7")
    assert done.code == 0
    assert "take that for public only if these ids are" in done.err
    train, held = pd.read_csv("train.csv"), pd.read_csv("held.csv")
    assert not set(train["id"]) & set(held["id"])
    split(Path("d.parquet"), *map(Path, ("t.parquet", "h.parquet")), key="id", share=0.5,
          salt="study 7")  # fmt: skip
    assert pq.read_table("t.parquet").to_pandas()["id"].tolist() == train["id"].tolist()
    rows().to_csv("d.csv.gz", index=False)
    split(Path("d.csv.gz"), *map(Path, ("t.csv.gz", "h.csv.gz")), key="id", share=0.5,
          salt="study 7")  # fmt: skip
    found = gzip.decompress((here / "t.csv.gz").read_bytes())
    assert found == (here / "train.csv").read_bytes()


def test_the_rule_is_public_and_does_not_change():
    """These are part of the interface: a split can be made again years later."""
    numbers = "".join("01"[Rule(0.5, "riata")(str(k))] for k in range(12))
    assert numbers == "010001101111"
    assert numbers != "".join("01"[Rule(0.5, "other")(str(k))] for k in range(12))


def test_rows_are_copied_as_they_are_and_hostile_lines_stay_one_row(here):
    lines = ["id,text", '1,"a, b"', '2,"open', "3,x,y,z", "", "5,\u00e9"]
    (here / "h.csv").write_text("\n".join(lines), encoding="utf-8")
    split(Path("h.csv"), Path("t.csv"), Path("o.csv"), key="id", share=0.5)
    found = [(here / name).read_text(encoding="utf-8").splitlines() for name in ("t.csv", "o.csv")]
    assert found[0][0] == found[1][0] == "id,text"
    assert sorted(found[0][1:] + found[1][1:]) == sorted(lines[1:])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--share", "1"], "share"),
        (["--share", "-2"], "share"),
        (["--key", "name"], "no single column 'name'"),
        (["--salt", ""], "salt"),
        (["--held-out", "held.parquet"], "same ending"),
        (["--held-out", "d.csv", "--force"], "different"),
        (["--held-out", "held.npy"], "must end in"),
        (["--train", "d.csv"], "exists"),
    ],
)
def test_mistakes_of_a_split(here, riata_command, more, said):
    done = riata_command(*SPLIT, *more)
    assert done.code == 2
    assert said in done.err
    assert (here / "d.csv").read_text().count("\n") == 1201


@pytest.fixture(scope="module")
def fitted():
    return PrivateLogisticRegression(4.0, 1e-7).fit(riata.read(rows(), Schema.read(SCHEMA)))


@pytest.fixture
def model(here, fitted):
    (here / "m").mkdir()
    riata.save(fitted, "m/model.riata")
    return fitted


@pytest.mark.not_quick
def test_a_public_evaluation(here, model, riata_command):
    command = ["evaluate", "m/model.riata", "--data", "d.csv"]
    done = riata_command(*command, "--public", "--out", "e.html")
    assert done.code == 0, done.err
    assert "PrivateLogisticRegression on 1,200 rows" in done.out
    assert "AUC" in done.out
    page = (here / "e.html").read_text()
    assert "false positive rate" in page
    assert "Calibration" in page
    again = [*command, "--public", "--out", "e.html"]
    (here / "e.html").write_text("kept")
    refused = riata_command(*again)
    assert refused.code == 2
    assert "e.html exists. Choose another name, or pass --force." in refused.err
    assert (here / "e.html").read_text() == "kept"
    assert riata_command(*again, "--force").code == 0
    assert (here / "e.html").read_text() == page
    facts = json.loads(riata_command(*command, "--public", "--json").out)
    assert facts["scores"]["accuracy"] == pytest.approx(model.score(rows()))
    assert facts["private"] is False


def test_a_private_evaluation_is_charged(here, model, riata_command):
    Ledger.create("held.db", dataset="held", ceiling=Budget(1.0, 1e-6))
    command = ["evaluate", "m/model.riata", "--data", "d.csv", "--ledger", "held.db", "--epsilon"]
    refused = riata_command(*command, "0.6")
    assert refused.code == 2
    assert "no terminal to ask" in refused.err
    declined = riata_command(*command, "0.6", said="n\n")
    assert declined.code == 0
    assert "Nothing was charged" in declined.err
    (here / "e.html").write_text("kept")
    assert riata_command(*command, "0.6", "--yes", "--out", "e.html").code == 2
    assert not Ledger.open("held.db").charges
    done = riata_command(*command, "0.6", "--yes", "--json")
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["value"] == pytest.approx(model.score(rows()), abs=8 * facts["noise"])
    assert facts["epsilon"] == pytest.approx(0.6, rel=1e-6)
    assert facts["ledger"]["charges"] == 1
    beyond = riata_command(*command, "0.95", "--yes")
    assert beyond.code == 3
    assert "more than the ceiling" in beyond.err
    assert len(Ledger.open("held.db").charges) == 1
    without = riata_command(
        "evaluate", "m/model.riata", "--data", "d.csv", "--epsilon", "1", "--yes"
    )
    assert "No ledger records this score" in without.err
    assert "differentially private" in without.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "both missing"),
        (["--public", "--epsilon", "1"], "both there"),
        (["--public", "--ledger", "x.db"], "nothing for --ledger"),
        (["--epsilon", "-1", "--yes"], "epsilon"),
        (["--epsilon", "1", "--scoring", "R2", "--yes"], "scoring"),
        (["--public", "--rows", "5"], "Leave --rows out"),
        (["--public", "--people", "5"], "Leave --people out"),
        (["--epsilon", "1", "--people", "5", "--yes"], "Pass --rows"),
        (["--epsilon", "1", "--rows", "0", "--yes"], "--rows"),
    ],
)
def test_mistakes_of_an_evaluation(here, model, riata_command, more, said):
    done = riata_command("evaluate", "m/model.riata", "--data", "d.csv", *more)
    assert done.code == 2
    assert done.out == ""
    assert said in done.err


@pytest.mark.parametrize(
    ("more", "name", "size"),
    [
        ({"rows": 1500}, "rows", 1),
        ({"person": "id", "rows_of_a_person": 2, "people": 700}, "people", 2),
    ],
)
def test_a_number_that_the_schema_fixes_is_not_counted_in_the_file(
    here, riata_command, more, name, size
):
    """Two files that differ in how many rows or people they have look the same."""
    table = Schema.read(SCHEMA).table()
    table = {key: value for key, value in table.items() if key != "ignore"} | more
    table |= {} if "person" in more else {"ignore": ["id"]}
    model = PrivateLogisticRegression(4.0, 1e-7).fit(riata.read(rows(), table))
    riata.save(model, "fixed.riata")
    fixed = more[name]
    said = []
    for n in (1200, 1100):
        rows(n).to_csv("some.csv", index=False)
        command = ["evaluate", "fixed.riata", "--data", "some.csv", "--epsilon", "1", "--yes"]
        done = riata_command(*command)
        assert done.code == 0, done.err
        assert f"on {fixed * size:,} rows" in done.out
        assert f"The schema says {name} = {fixed}" in done.err
        said.append(done.err)
        other = riata_command(*command, f"--{name}", "600", "--json")
        assert json.loads(other.out)["n_rows"] == 600 * size
        assert "The schema says" not in other.err
    assert said[0] == said[1]
    wrong = riata_command(*command, "--rows" if name == "people" else "--people", "600")
    assert wrong.code == 2
    exact = riata_command(*command[:4], "--public")
    assert "on 1,100 rows" in exact.out


def test_a_model_without_a_schema_is_evaluated_in_python(here, riata_command):
    x = np.zeros((20, 1))
    riata.save(PrivateLasso(1.0, bounds=Bounds(1.0, 1.0)).fit(x, x[:, 0]), "a.riata")
    done = riata_command("evaluate", "a.riata", "--data", "d.csv", "--public")
    assert done.code == 2
    assert "without a schema" in done.err


def test_labels_that_are_no_class_are_told_of_public_rows(here, model, riata_command):
    rows(100).replace("yes", "YES").to_csv("other.csv", index=False)
    done = riata_command("evaluate", "m/model.riata", "--data", "other.csv", "--public")
    assert "labels are none of the classes" in done.out


def test_predictions_go_to_standard_output_beside_kept_columns(here, model, riata_command):
    rows(50).assign(town="Ulm").to_csv("new.csv", index=False)
    done = riata_command(
        "predict", "m/model.riata", "--data", "new.csv", "--keep", "id", "--keep", "town"
    )
    assert done.code == 0, done.err
    lines = list(csv.DictReader(io.StringIO(done.out)))
    assert list(lines[0]) == ["id", "town", "prediction", "probability of no", "probability of yes"]
    assert [line["id"] for line in lines] == rows(50)["id"].tolist()
    assert [line["prediction"] for line in lines] == model.predict(rows(50)).tolist()
    same = riata_command(
        "predict", "m/model.riata", "--data", "new.csv", "--keep", "id", "--keep", "town",
        "--out", "-",
    )  # fmt: skip
    assert same.out == done.out
    rows(50).assign(town="Ulm", number=np.arange(50)).to_parquet("new.parquet")
    kept = riata_command(
        "predict", "m/model.riata", "--data", "new.parquet", "--keep", "number", "--keep", "town",
        "--out", "p.csv",
    )  # fmt: skip
    assert kept.code == 0, kept.err
    assert pd.read_csv("p.csv")["number"].tolist() == list(range(50))


def test_kept_columns_of_a_model_of_named_columns(here, riata_command):
    x = pd.DataFrame({"age": [0.1, 0.2, 0.3]})
    riata.save(PrivateLasso(1.0, bounds=Bounds(1.0, 1.0)).fit(x, x["age"]), "a.riata")
    (here / "x.csv").write_text("id,age\np,0.1\nq,0.2\n")
    done = riata_command("predict", "a.riata", "--data", "x.csv", "--keep", "id")
    assert [line.split(",")[0] for line in done.out.splitlines()] == ["id", "p", "q"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--keep", "none"], "no single column 'none'"),
        (["--json"], "--out"),
        (["--keep", "id", "--out", "p.npy"], "Write a .csv"),
        (["--keep", "prediction"], "alike"),
    ],
)
def test_mistakes_of_keeping(here, model, riata_command, more, said):
    done = riata_command("predict", "m/model.riata", "--data", "d.csv", *more)
    assert done.code == 2
    assert said in done.err


def test_a_column_with_its_own_name_is_not_quoted_by_errors(here, model, riata_command):
    (here / "bad.csv").write_text(f"id,age,ill\n{SECRET},{SECRET},{SECRET}\n")
    done = riata_command("predict", "m/model.riata", "--data", "bad.csv", "--keep", "id")
    assert done.code == 4
    assert SECRET not in done.err


def test_rule_arguments():
    with pytest.raises(InvalidArgument, match="share"):
        Rule(True)
