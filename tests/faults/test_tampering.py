"""A ledger that was edited, shortened, swapped or rolled back: nothing more can be spent."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from riata import Ledger
from riata.errors import LedgerError

from helpers import charge, make


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def check_refused(ledger, path, match, **places):
    """The open ledger, and one that is opened now, say what is wrong and charge nothing."""
    with closing(sqlite3.connect(path)) as db:
        before = db.execute("SELECT * FROM charge ORDER BY seq").fetchall()
    for use in (
        lambda: charge(ledger),
        ledger.verify,
        ledger.export,
        ledger.show,
        lambda: ledger.spent,
        lambda: ledger.charges,
        lambda: Ledger.open(path, **places),
    ):
        with pytest.raises(LedgerError, match=match):
            use()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT * FROM charge ORDER BY seq").fetchall() == before


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def ledger(path):
    ledger = make(path)
    for number in range(4):
        charge(ledger, 0.25, number=number)
    return ledger


EDITS = {
    "a smaller event": "UPDATE charge SET event = replace(event, '0.25', '0.01') WHERE seq = 2",
    "a smaller total": "UPDATE charge SET total = 1 WHERE seq = 4",
    "a total as text": "UPDATE charge SET total = 'x' WHERE seq = 4",
    "a total as bytes": "UPDATE charge SET total = x'31' WHERE seq = 4",
    "another time": "UPDATE charge SET charged_at = '2020-01-01' WHERE seq = 1",
    "another summary": "UPDATE charge SET summary = '{}' WHERE seq = 3",
    "another mac": "UPDATE charge SET mac = (SELECT mac FROM charge WHERE seq = 1) WHERE seq = 2",
    "no mac": "UPDATE charge SET mac = '' WHERE seq = 4",
    "a missing first": "DELETE FROM charge WHERE seq = 1",
    "a missing middle": "DELETE FROM charge WHERE seq = 2",
    "a negative number": "UPDATE charge SET seq = -1 WHERE seq = 4",
    "a higher number": "UPDATE charge SET seq = 9 WHERE seq = 4",
    "one added": "INSERT INTO charge SELECT dataset, 5, charged_at, 'r', unit, event, summary, "
    "total, mac FROM charge WHERE seq = 4",
    "another run": "UPDATE charge SET run = 'paid' WHERE seq = 4",
    "another unit": "UPDATE charge SET unit = replace(unit, '1', '9') WHERE seq = 2",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_an_edit_of_the_charges_is_refused(ledger, path, statement):
    edit(path, statement)
    check_refused(ledger, path, "was edited|were edited")


def test_exchanged_charges_are_refused(ledger, path):
    edit(
        path,
        "UPDATE charge SET seq = 99 WHERE seq = 1",
        "UPDATE charge SET seq = 1 WHERE seq = 2",
        "UPDATE charge SET seq = 2 WHERE seq = 99",
    )
    check_refused(ledger, path, "Charge 1 .* was edited")


def test_a_missing_gap_closed_by_renumbering_is_refused(ledger, path):
    edit(path, "DELETE FROM charge WHERE seq = 3", "UPDATE charge SET seq = 3 WHERE seq = 4")
    check_refused(ledger, path, "Charge 3 .* was edited")


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_truncated_chain_is_refused(ledger, path, kept):
    edit(path, f"DELETE FROM charge WHERE seq > {kept}")
    check_refused(ledger, path, f"rolled back: it has {kept} charges, and its head has seen 4")


def test_a_raised_ceiling_is_refused(ledger, path):
    edit(path, "UPDATE ledger SET ceiling = 10 * ceiling")
    check_refused(ledger, path, "header .* was edited")


def test_an_older_copy_of_the_file_is_refused(ledger, path, tmp_path):
    shutil.copy(path, tmp_path / "copy.db")
    charge(ledger)
    shutil.copy(tmp_path / "copy.db", path)
    check_refused(ledger, path, "rolled back")


def test_an_older_copy_with_its_wal_is_refused(ledger, path, tmp_path):
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT * FROM charge").fetchall()  # keeps the WAL file from being merged
        charge(ledger)
        assert path.with_name("study.db-wal").stat().st_size > 0
        for end in ("", "-wal"):
            shutil.copy(f"{path}{end}", tmp_path / f"copy{end}")
        charge(ledger)
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"copy{end}", f"{path}{end}")
    check_refused(ledger, path, "rolled back: it has 5 charges, and its head has seen 6")


def test_a_wal_that_was_removed_is_refused(ledger, path, tmp_path):
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT * FROM charge").fetchall()
        charge(ledger)
        shutil.copy(path, tmp_path / "copy.db")
    shutil.copy(tmp_path / "copy.db", path)
    check_refused(ledger, path, "rolled back: it has 4 charges, and its head has seen 5")


def test_another_history_of_the_same_length_is_refused(ledger, path, tmp_path):
    head, old = tmp_path / "study.db.head", tmp_path / "old.head"
    shutil.copy(path, tmp_path / "copy.db")
    shutil.copy(head, old)
    charge(ledger, 0.25, true=True)
    shutil.copy(head, tmp_path / "newest.head")
    shutil.copy(tmp_path / "copy.db", path)  # a custodian rolls back, and a colleague who has not
    colleague = Ledger.open(path, head=old)  # seen the fifth charge goes on
    charge(colleague, 0.01)
    charge(colleague, 0.01)
    check_refused(ledger, path, "charge 5 is not the one that its head has seen")


def test_what_is_not_promised_old_ledger_and_old_head_together(ledger, path, tmp_path):
    head = tmp_path / "study.db.head"
    shutil.copy(path, tmp_path / "copy.db")
    shutil.copy(head, tmp_path / "copy.head")
    charge(ledger)
    shutil.copy(tmp_path / "copy.db", path)
    shutil.copy(tmp_path / "copy.head", head)
    assert ledger.verify().charges == 4


def test_a_missing_head_is_refused_and_not_made_again(ledger, path, tmp_path):
    (tmp_path / "study.db.head").unlink()
    check_refused(ledger, path, "head .* is missing")
    assert not (tmp_path / "study.db.head").exists()


def test_the_head_of_another_ledger_is_refused(ledger, path, tmp_path):
    other = make(tmp_path / "other.db")
    shutil.copy(other._head.path, ledger._head.path)
    check_refused(ledger, path, "head belongs to another ledger")


def test_the_head_of_another_data_set_is_refused(ledger, path, tmp_path):
    Ledger.create(tmp_path / "other.db", dataset="others", ceiling=ledger.ceiling)
    shutil.copy(tmp_path / "other.db.head", ledger._head.path)
    check_refused(ledger, path, "head of the ledger of 'others'")


def test_another_ledger_in_the_place_of_this_one_is_refused(ledger, path, tmp_path):
    make(tmp_path / "other.db")
    shutil.copy(tmp_path / "other.db", path)
    check_refused(ledger, path, "header .* was edited")


def test_an_older_head_follows_the_ledger_and_never_goes_back(ledger, path, tmp_path):
    head = tmp_path / "study.db.head"
    shutil.copy(head, tmp_path / "old.head")
    charge(ledger)
    newest = head.read_bytes()
    behind = Ledger.open(path, head=tmp_path / "old.head")
    assert behind.verify().charges == 5
    assert (tmp_path / "old.head").read_bytes() == newest
    charge(behind)
    assert head.read_bytes() == newest
    assert ledger.verify().charges == 6
    assert head.read_bytes() == (tmp_path / "old.head").read_bytes()
