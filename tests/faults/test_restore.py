"""A restore brings back every charge that anything still knows of, or changes nothing."""

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from riata import Budget, Ledger
from riata.errors import InvalidArgument, LedgerError
from riata.privacy.events import Gaussian, Pure, compose
from riata.privacy.filters import FilterSums
from riata.privacy.ledger.backup import restore
from riata.privacy.ledger.charge import rows_of_run

from helpers import charge, make

WIDE = Budget(100.0, 0.0)


def edit(path, *statements):
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def saved(tmp_path):
    return tmp_path / "backup.db"


@pytest.fixture
def ledger(path):
    ledger = make(path, WIDE)
    for number in range(4):
        charge(ledger, 0.25, number=number, run=f"run {number}")
    return ledger


def check_refused(match, saved, path, **places):
    before = files(path.parent)
    with pytest.raises(LedgerError, match=match):
        Ledger.restore(saved, path, **places)
    assert files(path.parent) == before


# backups


def test_a_backup_has_every_line_and_no_key(ledger, path, saved):
    assert ledger.backup(saved) == 4
    key = ledger._head.read().key
    content = saved.read_bytes()
    assert key not in content
    assert key.hex().encode() not in content
    ledger.bind_rows("run 1", "code")
    ledger.backup(saved, force=True)
    for table in ("ledger", "charge"):
        one, other = (
            sqlite3.connect(each).execute(f"SELECT * FROM {table}").fetchall()
            for each in (path, saved)
        )
        assert one == other
    assert saved.stat().st_mode & 0o077 == 0


def test_a_backup_replaces_nothing_unless_it_must(ledger, path, saved):
    ledger.backup(saved)
    charge(ledger)
    before = saved.read_bytes()
    with pytest.raises(InvalidArgument, match="--force"):
        ledger.backup(saved)
    assert saved.read_bytes() == before
    assert ledger.backup(saved, force=True) == 5
    assert sorted(files(path.parent)) == ["backup.db", "study.db", "study.db.head"]


@pytest.mark.parametrize("name", ["study.db", "study.db.head", "link"])
def test_a_backup_never_replaces_the_ledger_or_its_head(ledger, path, name):
    (path.parent / "link").symlink_to(path)
    before = files(path.parent)
    with pytest.raises(InvalidArgument, match="ledger itself"):
        ledger.backup(path.parent / name, force=True)
    assert files(path.parent) == before


def test_a_ledger_that_was_edited_is_not_backed_up(ledger, path, saved):
    edit(path, "UPDATE charge SET summary = '{}' WHERE seq = 1")
    with pytest.raises(LedgerError, match="was edited"):
        ledger.backup(saved)
    assert not saved.exists()


def test_a_backup_that_cannot_be_written_leaves_nothing(ledger, path):
    with pytest.raises(LedgerError, match="cannot be created"):
        ledger.backup(path.parent / "missing" / "backup.db")
    assert sorted(files(path.parent)) == ["study.db", "study.db.head"]


def test_backups_that_are_made_while_others_charge_are_whole(tmp_path):
    path = tmp_path / "study.db"
    ledger = make(path, WIDE)
    code = textwrap.dedent(
        """
        import sys
        from riata import Ledger
        from riata.privacy.events import Pure
        ledger = Ledger.open(sys.argv[1])
        print("ready", flush=True)
        for _ in range(25):
            ledger.charge(Pure(0.01), adjacency="replace-one", summary={})
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "ready\n"
        counts = []
        while other.poll() is None:
            counts.append(ledger.backup(tmp_path / f"backup{len(counts)}.db"))
    assert counts == sorted(counts)
    path.unlink()
    for number, count in enumerate(counts):
        saved, head = tmp_path / f"backup{number}.db", tmp_path / "study.db.head"
        with closing(sqlite3.connect(saved)) as db:
            assert db.execute("SELECT count(*) FROM charge").fetchone() == (count,)
        if count == 25:
            assert Ledger.restore(saved, tmp_path / f"new{number}.db", head=head).charges == 25
        else:
            check_refused(f"would forget {25 - count}", saved, path, head=head)


# restores that work


def test_a_lost_ledger_comes_back(ledger, path, saved):
    expected = ledger.charges
    ledger.backup(saved)
    path.unlink()
    done = Ledger.restore(saved, path)
    assert (done.dataset, done.charges, done.kept, done.changed) == ("claims", 4, 0, True)
    assert ledger.charges == expected  # the ledger that was open, too
    assert ledger.charge_of("run 2").seq == 3
    assert charge(ledger) == 5
    assert path.stat().st_mode & 0o077 == 0


def test_a_ledger_may_come_back_in_another_place(ledger, path, saved, tmp_path):
    expected, head = ledger.charges, ledger._head.path
    ledger.backup(saved)
    path.unlink()
    other = tmp_path / "disk" / "other.db"
    other.parent.mkdir()
    Ledger.restore(saved, other, head=head)
    assert Ledger.open(other, head=head).charges == expected


def test_what_is_whole_stays_as_it_is(ledger, path, saved):
    ledger.backup(saved)
    charge(ledger)
    charge(ledger)
    before = files(path.parent)
    done = Ledger.restore(saved, path)
    assert (done.charges, done.kept, done.changed) == (6, 2, False)
    assert files(path.parent) == before


DAMAGE = {
    "an edited line": "UPDATE charge SET event = '[]' WHERE seq = 2",
    "a missing line": "DELETE FROM charge WHERE seq = 1",
    "missing lines": "DELETE FROM charge WHERE seq <= 4",
    "a raised ceiling": "UPDATE ledger SET ceiling = 9 * ceiling",
    "no header": "DELETE FROM ledger",
    "a line that riata never wrote": "UPDATE charge SET sums = x'00' WHERE seq = 3",
    "a line with another number": "UPDATE charge SET seq = -1 WHERE seq = 2",
    "a number as text": "UPDATE charge SET seq = 'two' WHERE seq = 2",
    "one line more": "INSERT INTO charge SELECT dataset, 'x', charged_at, "
    "'x', unit, event, summary, sums, total, mac FROM charge WHERE seq = 1",
}


@pytest.mark.parametrize("later", [0, 3])
@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_ledger_keeps_what_was_charged_since(ledger, path, saved, statement, later):
    ledger.backup(saved)
    for _ in range(later):
        charge(ledger)
    expected = ledger.charges
    edit(path, statement)
    damaged = path.read_bytes()
    with pytest.raises(LedgerError):
        ledger.verify()
    done = Ledger.restore(saved, path)
    assert (done.charges, done.kept, done.changed) == (4 + later, later, True)
    assert ledger.charges == expected
    assert Path(done.aside).read_bytes() == damaged
    assert charge(ledger) == 5 + later


@pytest.mark.parametrize("content", [b"", b"nonsense " * 1000, b"SQLite format 3\0" + bytes(9000)])
def test_a_file_that_is_no_database_any_more_comes_back(ledger, path, saved, content):
    expected = ledger.charges
    ledger.backup(saved)
    path.write_bytes(content)
    Path(f"{path}-journal").write_bytes(b"left by a crash")
    done = Ledger.restore(saved, path)
    assert Path(done.aside).read_bytes() == content
    assert ledger.charges == expected
    assert not Path(f"{path}-journal").exists()


def test_damaged_bytes_forget_nothing(ledger, path, saved):
    """Whatever is damaged, a restore finds every charge or changes nothing."""
    for _ in range(6):
        charge(ledger, note="x" * 2000)
    ledger.backup(saved)
    for _ in range(3):
        charge(ledger)
    expected, whole = ledger.charges, path.read_bytes()
    rng, outcomes = random.Random(7), {"restored": 0, "refused": 0, "whole": 0}
    for _ in range(120):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 1, 8))):
            at = rng.randrange(len(whole) - 64)
            damaged[at : at + 64] = rng.randbytes(64)
        path.write_bytes(damaged)
        try:
            done = Ledger.restore(saved, path)
        except LedgerError:
            outcomes["refused"] += 1
            assert path.read_bytes() == damaged
        else:
            outcomes["restored" if done.changed else "whole"] += 1
            assert Ledger.open(path).charges == expected
        for leftover in path.parent.glob("study.db.damaged*"):
            leftover.unlink()
        Path(f"{path}-journal").unlink(missing_ok=True)
    assert min(outcomes.values()) > 5, outcomes


def test_a_ledger_that_was_rolled_back_gets_its_charges_back(ledger, path, saved, tmp_path):
    shutil.copy(path, tmp_path / "old.db")
    charge(ledger)
    expected = ledger.charges
    ledger.backup(saved)
    shutil.copy(tmp_path / "old.db", path)
    assert Ledger.restore(saved, path).charges == 5
    assert ledger.charges == expected


# restores that would forget


@pytest.mark.parametrize("later", [1, 3])
def test_a_lost_ledger_does_not_come_back_without_what_its_head_has_seen(
    ledger, path, saved, later
):
    ledger.backup(saved)
    for _ in range(later):
        charge(ledger)
    path.unlink()
    check_refused(f"would forget {later}. .* Find a newer backup", saved, path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charge SET event = '[]' WHERE seq = 6",
        "DELETE FROM charge WHERE seq = 5",
        "UPDATE charge SET mac = '' WHERE seq = 5",
        "DELETE FROM charge WHERE seq = 7",
        "DELETE FROM charge",
        "DROP TABLE charge",
    ],
)
def test_charges_since_the_backup_that_are_damaged_are_not_forgotten(
    ledger, path, saved, statement
):
    ledger.backup(saved)
    for _ in range(3):
        charge(ledger)
    edit(path, statement)
    check_refused(r"would forget|two histories", saved, path)


def test_a_lost_head_stops_a_restore(ledger, path, saved):
    ledger.backup(saved)
    Path(ledger._head.path).unlink()
    check_refused("head .* is missing", saved, path)
    path.unlink()
    check_refused("head .* is missing", saved, path)


def test_an_old_copy_of_the_head_is_enough_for_a_whole_ledger(ledger, path, saved, tmp_path):
    head = Path(ledger._head.path)
    shutil.copy(head, tmp_path / "copy.head")
    charge(ledger)
    ledger.backup(saved)
    charge(ledger)
    shutil.copy(tmp_path / "copy.head", head)
    done = Ledger.restore(saved, path)
    assert (done.charges, done.kept, done.changed) == (6, 1, False)


def test_an_old_copy_of_the_head_cannot_tell_what_a_lost_ledger_had(ledger, path, saved, tmp_path):
    head = Path(ledger._head.path)
    shutil.copy(head, tmp_path / "copy.head")
    charge(ledger)
    ledger.backup(saved)
    charge(ledger)  # which the backup does not have, nor the old head
    shutil.copy(tmp_path / "copy.head", head)
    path.unlink()
    check_refused("is an old copy", saved, path)


def test_a_backup_of_another_data_set_is_refused(ledger, path, tmp_path):
    other = Ledger.create(tmp_path / "other.db", dataset="trips", ceiling=WIDE)
    other.backup(tmp_path / "trips.db")
    check_refused(r"backup of the ledger of \['trips'\]", tmp_path / "trips.db", path)


def test_a_backup_of_another_ledger_of_the_same_name_is_refused(ledger, path, tmp_path):
    other = make(tmp_path / "other.db", WIDE)
    for _ in range(9):
        charge(other)
    other.backup(tmp_path / "others.db")
    check_refused("head belongs to another ledger", tmp_path / "others.db", path)


def test_a_backup_that_was_edited_is_refused(ledger, path, saved):
    ledger.backup(saved)
    edit(saved, "UPDATE charge SET event = '[]' WHERE seq = 2")
    path.unlink()
    check_refused("Entry 2 .* was edited", saved, path)


def test_a_backup_that_is_none_is_refused(ledger, path, saved):
    check_refused("does not exist", saved, path)
    saved.write_bytes(b"nothing")
    check_refused("cannot be used", saved, path)
    os.unlink(saved)
    sqlite3.connect(saved).close()
    check_refused("cannot be used|does not exist|no such table", saved, path)


@pytest.fixture
def forked(ledger, path, saved, tmp_path):
    """A custodian rolled the ledger back, and a colleague with an older head went on from there."""
    head = Path(ledger._head.path)
    shutil.copy(path, tmp_path / "old.db")
    shutil.copy(head, tmp_path / "colleague.head")
    charge(ledger, 0.5)
    charge(ledger, 0.5)
    ledger.backup(saved)
    shutil.copy(tmp_path / "old.db", path)
    colleague = Ledger.open(path, head=tmp_path / "colleague.head")
    charge(colleague, 0.125)
    return colleague


def test_of_two_histories_none_is_forgotten(forked, path, saved, tmp_path):
    check_refused("two histories, and both were spent", saved, path)
    check_refused("two histories", saved, path, head=tmp_path / "colleague.head")
    charge(forked, 0.125)
    charge(forked, 0.125)  # longer than the backup now
    check_refused("two histories", saved, path)
    edit(path, "UPDATE charge SET event = '[]' WHERE seq = 1")  # and damaged, too
    check_refused("two histories", saved, path)


def test_a_backup_of_the_other_history_is_refused(forked, path, tmp_path):
    forked.backup(tmp_path / "colleague.db")
    path.unlink()
    check_refused(r"two histories|would forget", tmp_path / "colleague.db", path)
    new, head = tmp_path / "new.db", tmp_path / "colleague.head"
    assert Ledger.restore(tmp_path / "colleague.db", new, head=head).charges == 5


# crashes


@pytest.mark.parametrize("call", range(1, 5))
def test_a_restore_that_dies_can_be_repeated(ledger, path, saved, monkeypatch, call):
    ledger.backup(saved)
    charge(ledger)
    expected = ledger.charges
    edit(path, "DELETE FROM charge WHERE seq = 2")
    real, calls = os.replace, []

    class Died(BaseException):
        pass

    def deadly(*names):
        calls.append(names)
        if len(calls) == call:
            raise Died
        real(*names)

    Path(f"{path}-wal").write_bytes(b"")
    monkeypatch.setattr(os, "replace", deadly)
    died = False
    try:
        Ledger.restore(saved, path)
    except Died:
        died = True
    monkeypatch.undo()
    assert died == (call <= 3)
    if not path.exists():  # it was set aside: what was charged since is there
        (aside,) = path.parent.glob("study.db.damaged-?")
        check_refused("would forget 1", saved, path)
        os.rename(aside, path)
    Ledger.restore(saved, path)
    assert ledger.charges == expected


# the rows of runs: entries of the chain as charges are

CODE_OF_ROWS = "run LIKE 'rows%'"


def test_the_rows_of_a_run_are_an_entry_that_costs_nothing(ledger):
    before, charges = ledger.spent, ledger.charges
    assert ledger.bind_rows("run 1", "one") == "one"
    assert ledger.bind_rows("run 1", "another") == "one"
    assert (ledger.spent, ledger.charges, ledger.verify().charges) == (before, charges, 4)
    assert ledger._head.read().seq == 5
    assert charge(ledger, 0.25, run="run 4") == 6
    assert len(ledger.charges) == 5


def test_a_single_charge_keeps_its_accountant_when_its_rows_are_read(path):
    """It may be accounted by any accountant, and two charges by privacy filters alone."""
    ledger = Ledger.create(path, dataset="claims", ceiling=Budget(2.0, 1e-6))
    event = compose((Gaussian(4.0), 1), (Pure(0.1), 1))
    ledger.charge(event, adjacency="replace-one", summary={"run": "only"})
    before = ledger.spent
    ledger.bind_rows("only", "code")
    assert ledger.spent == Ledger.open(path).spent == before
    assert before.epsilon < FilterSums.before(ledger.ceiling).plus(event).spent(1e-6).epsilon


def test_a_run_that_was_not_charged_reads_no_rows(ledger, path):
    with pytest.raises(LedgerError, match="'run 9' was not charged"):
        ledger.bind_rows("run 9", "code")
    empty = make(path.with_name("empty.db"), WIDE)
    with pytest.raises(LedgerError, match="was not charged"):
        empty.bind_rows("run 0", "code")


def test_no_run_has_the_name_of_the_rows_of_another(ledger):
    name = rows_of_run("run 1")
    with pytest.raises(InvalidArgument, match="printable"):
        charge(ledger, 0.25, run=name)
    ledger.bind_rows("run 1", "one")
    for ask in (lambda: ledger.charge_of(name), lambda: ledger.bind_rows(name, "two")):
        with pytest.raises(LedgerError, match="that of another one"):
            ask()


def test_a_trigger_in_a_backup_does_not_come_back(ledger, path, saved):
    ledger.backup(saved)
    edit(saved, "CREATE TRIGGER t BEFORE INSERT ON charge BEGIN SELECT RAISE(IGNORE); END")
    path.unlink()
    assert Ledger.restore(saved, path).charges == 4
    assert charge(ledger) == 5


def test_a_restore_that_the_database_drops_is_noticed(ledger, path, saved, monkeypatch):
    """By a trigger in PostgreSQL, say, where entries go into the tables that are there."""
    ledger.backup(saved)

    def believing(*given, **places):
        return replace(restore(*given, **places), charges=5)

    monkeypatch.setattr("riata.privacy.ledger.ledger.restore", believing)
    with pytest.raises(LedgerError, match=r"5 charges were written to .*, and it has 4"):
        Ledger.restore(saved, path)


def test_a_restored_ledger_knows_over_which_rows_runs_are(ledger, path, saved):
    ledger.bind_rows("run 1", "one")
    ledger.backup(saved)
    path.unlink()
    assert Ledger.restore(saved, path).charges == 4
    assert Ledger.open(path).bind_rows("run 1", "another") == "one"


def test_rows_that_were_read_since_the_backup_are_kept(ledger, path, saved):
    ledger.backup(saved)
    ledger.bind_rows("run 1", "one")
    edit(path, "UPDATE charge SET event = '[]' WHERE seq = 1")
    found = Ledger.restore(saved, path)
    assert (found.charges, found.kept, found.changed) == (4, 0, True)
    assert Ledger.open(path).bind_rows("run 1", "another") == "one"


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM charge WHERE {CODE_OF_ROWS}",
        f"UPDATE charge SET summary = replace(summary, 'one', 'two') WHERE {CODE_OF_ROWS}",
        f"UPDATE charge SET summary = x'ff' WHERE {CODE_OF_ROWS}",
        f"UPDATE charge SET run = replace(run, 'run 1', 'run 2') WHERE {CODE_OF_ROWS}",
        f"UPDATE charge SET run = NULL WHERE {CODE_OF_ROWS}",
    ],
    ids=["removed", "edited", "bytes", "another run", "no name"],
)
def test_rows_of_a_run_that_were_edited_stop_the_ledger(statement, ledger, path, saved):
    """Also behind later charges; and a backup from before them does not bring them back."""
    ledger.backup(saved)
    ledger.bind_rows("run 1", "one")
    whole = path.read_bytes()
    edit(path, statement)
    for ask in (lambda: ledger.bind_rows("run 1", "another"), lambda: charge(ledger, 0.25)):
        with pytest.raises(LedgerError, match=r"edited|rolled back"):
            ask()
    check_refused("would forget 1", saved, path)
    path.write_bytes(whole)
    for number in range(40):  # more than a transaction reads
        charge(ledger, 0.01, number=number)
    edit(path, statement)
    charge(ledger, 0.01)
    for ask in (ledger.verify, lambda: ledger.bind_rows("run 1", "another")):
        with pytest.raises(LedgerError, match="edited"):
            ask()


def test_a_ledger_from_before_rows_were_read_is_noticed(ledger, path):
    """A copy with all charges, put back together with a checkpoint of that moment."""
    old = path.read_bytes()
    ledger.bind_rows("run 1", "one")
    path.write_bytes(old)
    with pytest.raises(LedgerError, match="rolled back: it has 4 entries, and its head has seen 5"):
        Ledger.open(path).bind_rows("run 1", "another")


def test_an_old_ledger_and_an_old_head_are_not_continued_by_a_newer_backup(
    ledger, path, saved, tmp_path
):
    """They prove that something is missing, and not that it is all in the backup."""
    head = Path(f"{path}.head")
    for each in (path, head):
        shutil.copy(each, tmp_path / f"{each.name}.old")
    charge(ledger, 0.25, run="run 4")
    ledger.backup(saved)
    ledger.bind_rows("run 1", "one")
    shutil.copy(head, tmp_path / "newest.head")
    for each in (path, head):
        shutil.copy(tmp_path / f"{each.name}.old", each)
    check_refused("an old copy", saved, path)
    shutil.copy(tmp_path / "newest.head", head)
    check_refused("would forget 1", saved, path)


def test_a_backup_of_another_version_changes_nothing(ledger, path, saved):
    ledger.backup(saved)
    edit(saved, "UPDATE ledger SET version = 1")
    path.unlink()
    check_refused("another version of riata", saved, path)
