"""`riata ledger`: create, show, verify and export."""

import csv
import io
import json
import sqlite3

import numpy as np
import pytest

from riata import Bounds, Ledger, PrivateLasso


@pytest.fixture
def ledger(tmp_path, riata_command):
    path = tmp_path / "study.db"
    made = riata_command(
        "ledger", "create", path, "--dataset", "claims [2026]", "--epsilon", "2", "--delta", "1e-6"
    )
    assert made.code == 0, made.err
    assert "study.db.head" in made.out
    return path


def spend(path, epsilon=0.5):
    model = PrivateLasso(
        epsilon,
        1e-7,
        bounds=Bounds(1.0, 1.0),
        ledger=Ledger.open(path),
        solver="frank-wolfe",
        steps=2,
    )
    model.fit(np.zeros((50, 2)), np.zeros(50))


def test_every_charge_is_shown_with_the_total_up_to_it(ledger, riata_command):
    spend(ledger)
    spend(ledger)
    shown = riata_command("ledger", "show", ledger).out
    assert "claims [2026]" in shown
    assert shown.count("PrivateLasso, frank-wolfe") == 2
    assert "of 2 at delta 1e-06" in shown
    facts = json.loads(riata_command("ledger", "show", ledger, "--json").out)
    first, second = (each["total_epsilon"] for each in facts["charges"])
    assert 0.4 < first < second == facts["spent"] < 1.01
    assert facts["left"] == pytest.approx(2 - second)
    assert facts["charges"][0]["asked_epsilon"] == 0.5


def test_a_new_ledger_has_spent_nothing(ledger, riata_command):
    facts = json.loads(riata_command("ledger", "show", ledger, "--json").out)
    assert (facts["spent"], facts["left"], facts["charges"]) == (0.0, 2.0, [])
    assert "Charges: 0" in riata_command("ledger", "show", ledger).out


def test_it_is_verified(ledger, riata_command):
    spend(ledger)
    assert "is whole: 1 charge, " in riata_command("ledger", "verify", ledger).out
    facts = json.loads(riata_command("ledger", "verify", ledger, "--json").out)
    assert facts["whole"] is True
    assert len(facts["mac"]) == 64


def test_a_ledger_that_was_edited_is_refused(ledger, riata_command):
    spend(ledger)
    with sqlite3.connect(ledger) as db:
        (table,) = (
            name for (name,) in db.execute("select name from sqlite_master where type='table'")
            if "total" in [column[1] for column in db.execute(f"pragma table_info({name})")]
        )  # fmt: skip
        db.execute(f"update {table} set total = 1")
    db.close()
    for command in ("verify", "show", "export"):
        done = riata_command("ledger", command, ledger, "--json")
        assert done.code == 5
        assert done.out == ""


def test_it_is_exported_for_programs_and_for_tables(ledger, tmp_path, riata_command):
    spend(ledger)
    facts = json.loads(riata_command("ledger", "export", ledger).out)
    assert facts["header"]["dataset"] == "claims [2026]"
    assert len(facts["entries"]) == 1
    key = json.loads((tmp_path / "study.db.head").read_text()).get("key")
    assert key is None or key not in json.dumps(facts)
    table = riata_command("ledger", "export", ledger, "--format", "csv").out
    (row,) = csv.DictReader(io.StringIO(table))
    assert row["solver"] == "frank-wolfe"
    assert json.loads(row["summary"])["steps"] == 2
    done = riata_command("ledger", "export", ledger, tmp_path / "out.csv", "--json")
    assert json.loads(done.out)["format"] == "csv"
    assert (tmp_path / "out.csv").read_text().startswith("number,charged_at")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "none.db"], 5, "does not exist"),
        (["verify", "claims.csv"], 5, ""),
        (["create", "claims.csv", "--dataset", "d", "--epsilon", "1", "--delta", "0"], 5, ""),
        (["create", "a.db", "--dataset", "d", "--epsilon", "-1", "--delta", "0"], 2, "positive"),
        (["create", "a.db", "--dataset", "", "--epsilon", "1", "--delta", "0"], 2, "dataset"),
        (["create", "a.db", "--dataset", "d", "--epsilon", "1"], 2, "delta"),
        (["create", "no/a.db", "--dataset", "d", "--epsilon", "1", "--delta", "0"], 5, ""),
        (["export", "study.db", "--format", "xml"], 2, "json or csv"),
        (["export", "study.db", "claims.csv"], 2, "--force"),
        (["shew", "study.db"], 2, "show"),
    ],
)
def test_what_is_wrong_is_told_and_has_its_status(
    ledger, tmp_path, monkeypatch, riata_command, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.csv").write_text("a,b\n1,2\n")
    done = riata_command("ledger", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert not (tmp_path / "a.db").exists()
