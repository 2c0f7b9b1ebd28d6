"""A ledger that was edited, shortened, swapped or rolled back: nothing more can be spent."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from riata import Budget, Ledger
from riata.errors import LedgerError
from riata.privacy.ledger import database, entries
from riata.privacy.ledger.entries import RECENT
from riata.privacy.ledger.hash_chain import skip_link

from helpers import charge, make

pytestmark = pytest.mark.matrix(one_in=11)


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
    "a higher number": "UPDATE charge SET seq = 99 WHERE seq = 4",
    "one added": "INSERT INTO charge SELECT dataset, 5, charged_at, 'r', unit, event, summary, "
    "sums, total, mac FROM charge WHERE seq = 4",
    "smaller sums": "UPDATE charge SET sums = (SELECT sums FROM charge WHERE seq = 1) "
    "WHERE seq = 4",
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
    check_refused(ledger, path, "Entry 1 .* was edited")


def test_a_missing_gap_closed_by_renumbering_is_refused(ledger, path):
    edit(path, "DELETE FROM charge WHERE seq = 3", "UPDATE charge SET seq = 3 WHERE seq = 4")
    check_refused(ledger, path, "Entry 3 .* was edited")


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """A ledger with more lines than a charge looks at, to be copied."""
    path = tmp_path_factory.mktemp("long") / "study.db"
    ledger = make(path, Budget(9.0, 0.0))
    for number in range(RECENT + 15):
        charge(ledger, 0.0625, number=number, run=f"run {number + 1}")
    return path


@pytest.fixture
def copied(long, path):
    for end in ("", ".head"):
        shutil.copy(f"{long}{end}", f"{path}{end}")
    return Ledger.open(path)


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_an_old_line_that_was_edited_is_found_by_whatever_reads_it(copied, path, statement):
    number = RECENT + 15
    statement = statement.replace("0.25", "0.0625").replace(
        "dataset, 5,", f"dataset, {number + 1},"
    )
    for old, new in ((4, number), (3, number - 1)):
        statement = statement.replace(f"seq = {old}", f"seq = {new}")
    edit(path, statement)
    for use in (copied.verify, copied.export, copied.show, lambda: copied.charges):
        with pytest.raises(LedgerError, match="was edited"):
            use()


@pytest.mark.parametrize("seq", [1, 2, 5, 13])
def test_what_an_old_line_says_does_not_change_what_is_spent(copied, path, seq):
    before = copied.spent
    edit(path, f"UPDATE charge SET event = '[]', total = 0, sums = '[]' WHERE seq = {seq}")
    assert copied.spent == before
    number = charge(copied, 0.0625)
    assert copied.spent.epsilon == before.epsilon + 0.0625
    with pytest.raises(LedgerError, match=f"Entry {seq} .* was edited"):
        copied.verify()
    with pytest.raises(LedgerError, match="no links lead to it"):
        copied.charge_of(f"run {seq}")
    assert number == RECENT + 16


@pytest.mark.parametrize("column", ["event", "summary", "sums", "total", "unit", "run", "mac"])
def test_an_edit_of_one_of_the_last_lines_stops_all_spending(copied, path, column):
    edit(path, f"UPDATE charge SET {column} = '[]' WHERE seq = {RECENT + 14}")
    check_refused(copied, path, "was edited")


def test_lines_that_belong_to_another_history_pay_for_no_run(tmp_path, long):
    """Two colleagues were shown different histories; lines of one are put into the other."""
    paths = [tmp_path / name for name in ("one.db", "two.db")]
    for path in paths:
        for end in ("", ".head"):
            shutil.copy(f"{long}{end}", f"{path}{end}")
    one, two = map(Ledger.open, paths)
    for number in range(2 * RECENT):
        charge(one, 0.001)
        charge(two, 0.001, run=f"other {number}")
    number = RECENT + 18
    with closing(sqlite3.connect(paths[0])) as db:
        db.execute("ATTACH ? AS two", (str(paths[1]),))
        for kept in (1, 10):  # lines that are genuine where they are, but the one after them is not
            db.execute(f"DELETE FROM charge WHERE seq BETWEEN {number} AND {number + kept}")
            db.execute(
                "INSERT INTO charge SELECT * FROM two.charge "
                f"WHERE seq BETWEEN {number} AND {number + kept}"
            )
            db.commit()
            for run in ("other 2", "other 3"):
                with pytest.raises(LedgerError, match="no links lead to it"):
                    one.charge_of(run)
    assert two.charge_of("other 2").seq == number


# a database that answers as somebody else wants


def ignoring(when):
    return f"CREATE TRIGGER t BEFORE INSERT ON charge {when} BEGIN SELECT RAISE(IGNORE); END"


def test_an_entry_that_the_database_drops_is_noticed(ledger, path):
    """Nothing may be released for a charge that is not there."""
    edit(path, ignoring(""))
    with pytest.raises(LedgerError, match=r"Entry 5 was written to the ledger .* and is not there"):
        charge(ledger)
    edit(path, "DROP TRIGGER t", ignoring("WHEN new.run LIKE 'rows%'"))
    charge(ledger, run="a")
    with pytest.raises(LedgerError, match="is not there"):
        ledger.bind_rows("a", "code")


def test_a_ledger_that_is_put_back_before_its_head_moves_is_noticed(ledger, path, monkeypatch):
    old, move = path.read_bytes(), Ledger._move_head

    def put_back(self, written):
        path.write_bytes(old)
        move(self, written)

    monkeypatch.setattr(Ledger, "_move_head", put_back)
    with pytest.raises(LedgerError, match="is not there"):
        charge(ledger)


def with_indexes(path, *indexes, forged=()):
    """The table of charges anew, with indexes whose text says something else than they are."""
    with closing(sqlite3.connect(path)) as db, db:
        rows = db.execute("SELECT * FROM charge ORDER BY seq").fetchall()
        names = [column[1] for column in db.execute("PRAGMA table_info(charge)")]
        db.execute("DROP TABLE charge")
        db.execute(f"CREATE TABLE charge ({', '.join(names)})")
        for place, (index, _) in enumerate(indexes):
            db.execute(f"CREATE INDEX i{place} ON charge {index}")
        db.executemany(
            f"INSERT INTO charge VALUES ({','.join('?' * len(names))})", [*rows, *forged]
        )
        db.execute("PRAGMA writable_schema = ON")
        for place, (_, said) in enumerate(indexes):
            wanted = (f"CREATE INDEX i{place} ON charge {said}", f"i{place}")
            db.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", wanted)


def test_a_charge_that_only_one_index_has_pays_for_no_run(ledger, path):
    """It is found by its run, and is not among the entries that are verified by their numbers."""
    charge(ledger, run="a")
    with closing(sqlite3.connect(path)) as db:
        real = db.execute("SELECT * FROM charge WHERE seq = 5").fetchone()
    forged = (real[0], 1, real[2], "b", *real[4:-1], "forged")
    by_number = ("(dataset, seq) WHERE mac <> 'forged'", "(dataset, seq)")
    with_indexes(path, by_number, ("(dataset, run)",) * 2, forged=[forged])
    for ask in (lambda: ledger.charge_of("b"), lambda: ledger.bind_rows("b", "code")):
        with pytest.raises(LedgerError, match=r"that of another one|no links lead"):
            ask()


def test_a_charge_that_an_index_has_under_another_name_pays_for_no_run(ledger, path):
    charge(ledger, run="a")
    by_run = ("(dataset, (CASE run WHEN 'a' THEN 'b' ELSE run END))", "(dataset, run)")
    with_indexes(path, ("(dataset, seq)",) * 2, by_run)
    for ask in (lambda: ledger.charge_of("b"), lambda: ledger.bind_rows("b", "code")):
        with pytest.raises(LedgerError, match="that of another one"):
            ask()


def test_a_far_link_that_was_edited_is_not_signed(ledger, path, monkeypatch):
    """Or a passing edit would stay in the chain for good."""
    monkeypatch.setattr(entries, "RECENT", 2)
    for _ in range(4, 23):
        charge(ledger, 0.001)
    far = skip_link(24)
    with closing(sqlite3.connect(path)) as db:
        (mac,) = db.execute("SELECT mac FROM charge WHERE seq = ?", (far,)).fetchone()
    edit(path, f"UPDATE charge SET mac = '{'0' * 64}' WHERE seq = {far}")
    with pytest.raises(LedgerError, match="no links lead to it"):
        charge(ledger, 0.001)
    edit(path, f"UPDATE charge SET mac = '{mac}' WHERE seq = {far}")
    assert charge(ledger, 0.001) == 24
    ledger.verify()


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_truncated_chain_is_refused(ledger, path, kept):
    edit(path, f"DELETE FROM charge WHERE seq > {kept}")
    check_refused(ledger, path, f"rolled back: it has {kept} entries, and its head has seen 4")


def test_a_raised_ceiling_is_refused(ledger, path):
    edit(path, "UPDATE ledger SET ceiling = 10 * ceiling")
    check_refused(ledger, path, "header .* was edited")


def test_an_older_copy_of_the_file_is_refused(ledger, path, tmp_path):
    shutil.copy(path, tmp_path / "copy.db")
    charge(ledger)
    shutil.copy(tmp_path / "copy.db", path)
    check_refused(ledger, path, "rolled back")


def hot_journal(path):
    """A journal that undoes everything since now: it was kept back from a big transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA cache_size = 1")
        db.execute("BEGIN IMMEDIATE")
        lines = db.execute("SELECT * FROM charge").fetchall()
        db.execute("DELETE FROM charge")
        for line in lines:
            db.execute(f"INSERT INTO charge VALUES ({','.join('?' * len(line))})", line)
        db.execute("CREATE TABLE more (x)")
        db.executemany("INSERT INTO more VALUES (?)", [(bytes(4000),)] * 50)
        journal = path.with_name("study.db-journal").read_bytes()
        db.execute("ROLLBACK")
    return journal


def test_a_journal_that_was_put_back_undoes_nothing_that_was_seen(ledger, path):
    journal = hot_journal(path)
    charge(ledger)
    path.with_name("study.db-journal").write_bytes(journal)
    check_refused(ledger, path, "rolled back: it has 4 entries, and its head has seen 5")


def test_a_ledger_that_was_put_into_wal_mode_comes_back_from_it(ledger, path):
    edit(path, "PRAGMA journal_mode = WAL")
    assert charge(ledger) == 5
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert ledger.verify().charges == 5


def test_a_ledger_that_is_in_use_in_wal_mode_is_refused(ledger, path):
    with closing(sqlite3.connect(path)) as reader:
        reader.execute("PRAGMA journal_mode = WAL")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM charge").fetchall()
        database.PATIENCE, patience = 1, database.PATIENCE
        try:
            with pytest.raises(LedgerError, match=r"WAL|locked"):
                charge(ledger)
        finally:
            database.PATIENCE = patience
    assert charge(ledger) == 5


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
    check_refused(ledger, path, "entry 5 is not the one that its head has seen")


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
