"""`riata ledger backup` and `restore`: the drill of the documentation, and what is refused."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from riata import Ledger
from riata.privacy.events import Pure


@pytest.fixture
def here(tmp_path, monkeypatch, riata_command):
    monkeypatch.chdir(tmp_path)
    made = riata_command(
        "ledger", "create", "study.db", "--dataset", "claims", "--epsilon", "2", "--delta", "1e-6",
        "--head", "safe.head",
    )  # fmt: skip
    assert made.code == 0, made.err
    return tmp_path


def spend(number=1, **places):
    for _ in range(number):
        Ledger.open("study.db", **places).charge(Pure(0.1), adjacency="replace-one", summary={})


HEAD = {"head": "safe.head"}
AT = ("--head", "safe.head")


def damage(statement="UPDATE charge SET event = '[]' WHERE seq = 1"):
    with closing(sqlite3.connect("study.db")) as db, db:
        db.execute(statement)


def test_the_drill(here, riata_command):
    spend(2, **HEAD)
    saved = riata_command("ledger", "backup", "study.db", "monday.db", *AT)
    assert saved.code == 0, saved.err
    assert "2 charges of 'claims' to monday.db" in saved.out
    spend(**HEAD)
    damage()
    assert riata_command("ledger", "verify", "study.db", *AT).code == 5
    done = riata_command("ledger", "restore", "monday.db", "study.db", *AT)
    assert done.code == 0, done.err
    assert "Restored the ledger of 'claims': 3 charges" in done.out
    assert "Kept 1 charge from after the backup" in done.out
    assert "study.db.damaged-1" in done.out
    assert "is whole: 3 charges" in riata_command("ledger", "verify", "study.db", *AT).out
    again = riata_command("ledger", "restore", "monday.db", "study.db", *AT)
    assert again.code == 0
    assert "Nothing had to be restored" in again.out
    spend(**HEAD)


def test_programs_get_json(here, riata_command):
    spend(**HEAD)
    saved = riata_command("ledger", "backup", "study.db", "b.db", *AT, "--json")
    assert json.loads(saved.out) == {"out": "b.db", "dataset": "claims", "charges": 1}
    (here / "study.db").unlink()
    done = json.loads(riata_command("ledger", "restore", "b.db", "study.db", *AT, "--json").out)
    assert done == {"dataset": "claims", "charges": 1, "kept": 0, "changed": True, "aside": ""}


def test_a_backup_is_not_replaced_unless_forced(here, riata_command):
    assert riata_command("ledger", "backup", "study.db", "b.db", *AT).code == 0
    spend(**HEAD)
    refused = riata_command("ledger", "backup", "study.db", "b.db", *AT)
    assert refused.code == 2
    assert "--force" in refused.err
    assert riata_command("ledger", "backup", "study.db", "b.db", *AT, "--force").code == 0
    (here / "study.db").unlink()
    assert riata_command("ledger", "restore", "b.db", "study.db", *AT).code == 0


def test_a_ledger_that_was_lost_with_newer_charges_stays_lost(here, riata_command):
    spend(**HEAD)
    assert riata_command("ledger", "backup", "study.db", "b.db", *AT).code == 0
    spend(2, **HEAD)
    (here / "study.db").unlink()
    done = riata_command("ledger", "restore", "b.db", "study.db", *AT)
    assert (done.code, done.out) == (5, "")
    assert "would forget 2" in done.err
    assert "Find a newer backup" in done.err
    assert not (here / "study.db").exists()


def test_a_lost_head_and_an_old_copy_of_it(here, riata_command):
    shutil.copy("safe.head", "copy.head")  # on the first day
    spend(2, **HEAD)
    assert riata_command("ledger", "backup", "study.db", "b.db", *AT).code == 0
    (here / "safe.head").unlink()
    lost = riata_command("ledger", "restore", "b.db", "study.db", *AT)
    assert lost.code == 5
    assert "missing" in lost.err
    whole = riata_command("ledger", "verify", "study.db", "--head", "copy.head")
    assert "is whole: 2 charges" in whole.out  # the copy follows the ledger


def test_an_old_head_does_not_bring_back_a_lost_ledger(here, riata_command):
    shutil.copy("safe.head", "copy.head")
    spend(2, **HEAD)
    assert riata_command("ledger", "backup", "study.db", "b.db", *AT).code == 0
    (here / "study.db").unlink()
    done = riata_command("ledger", "restore", "b.db", "study.db", "--head", "copy.head")
    assert done.code == 5
    assert "old copy" in done.err


def test_the_backup_of_another_data_set(here, riata_command):
    create = ("--epsilon", "2", "--delta", "1e-6")
    assert riata_command("ledger", "create", "t.db", "--dataset", "trips", *create).code == 0
    assert riata_command("ledger", "backup", "t.db", "b.db").code == 0
    done = riata_command("ledger", "restore", "b.db", "study.db", *AT)
    assert done.code == 5
    assert "'trips'" in done.err
    assert "'claims'" in done.err


def test_two_histories(here, riata_command):
    spend(**HEAD)
    shutil.copy("study.db", "old.db")
    shutil.copy("safe.head", "ben.head")
    spend(**HEAD)
    assert riata_command("ledger", "backup", "study.db", "b.db", *AT).code == 0
    shutil.copy("old.db", "study.db")
    spend(2, head="ben.head")
    done = riata_command("ledger", "restore", "b.db", "study.db", *AT)
    assert done.code == 5
    assert "two histories, and both were spent" in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["backup", "none.db", "b.db"], 5, "does not exist"),
        (["backup", "study.db", "study.db", *AT, "--force"], 2, "ledger itself"),
        (["backup", "study.db", "safe.head", *AT, "--force"], 2, "ledger itself"),
        (["backup", "study.db", "no/b.db", *AT], 5, "cannot be created"),
        (["backup", "study.db"], 2, "{file}"),
        (["restore", "none.db", "study.db", *AT], 5, "does not exist"),
        (["restore", "text.txt", "study.db", *AT], 5, "cannot be used"),
        (["restore", "study.db", "mysql://h/d", *AT], 2, "postgresql"),
        (["restore", "study.db", "postgresql://h/d"], 2, "head="),
    ],
)
def test_what_is_wrong_is_told_and_changes_nothing(here, riata_command, arguments, code, message):
    (here / "text.txt").write_text("nothing\n")
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    done = riata_command("ledger", *arguments)
    assert (done.code, done.out) == (code, "")
    assert message in done.err
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


def test_a_ledger_of_people_says_which_column_identifies_them(here, riata_command):
    create = ("--dataset", "d", "--epsilon", "2", "--delta", "1e-6")
    made = riata_command(
        "ledger", "create", "p.db", *create, "--adjacency", "replace-person", "--person", "patient"
    )
    assert made.code == 0, made.err
    assert "by 'patient'" in made.out
    assert "replace-person by 'patient'" in riata_command("ledger", "show", "p.db").out
    facts = json.loads(riata_command("ledger", "show", "p.db", "--json").out)
    assert (facts["adjacency"], facts["person"]) == ("replace-person", "patient")
    wrong = riata_command("ledger", "create", "q.db", *create, "--person", "patient")
    assert wrong.code == 2
    assert "replace-person" in wrong.err
    assert not (here / "q.db").exists()
