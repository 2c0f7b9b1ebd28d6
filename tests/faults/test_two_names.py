"""One ledger under two names: refused where a crash could hurt, and one budget in any case."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from contextlib import closing
from pathlib import Path

import pytest

from riata import Budget, Ledger
from riata.errors import LedgerError
from riata.privacy.ledger import database

from helpers import PLAIN, charge, make

pytestmark = pytest.mark.matrix(one_in=11)

RACE = textwrap.dedent(
    """
    import json, os, sys
    from riata import BudgetExceeded, Ledger
    from riata.errors import LedgerError
    from riata.privacy.ledger import database
    from riata.privacy.events import Pure
    path, head, checked = sys.argv[1:]
    if checked == "unchecked":  # as if nothing could tell that the file has two names
        database.only_name = lambda path: None
    charged, error, ledger = 0, "", None
    try:
        ledger = Ledger.open(path, head=head)
    except LedgerError as problem:
        error = str(problem)
    print("ready", flush=True)
    sys.stdin.readline()
    while ledger is not None:
        summary = {"pid": os.getpid(), "number": charged}
        try:
            ledger.charge(Pure(0.0625), adjacency="replace-one", summary=summary)
            charged += 1
        except BudgetExceeded:
            break
        except LedgerError as problem:
            error = str(problem)
            break
    print(json.dumps({"pid": os.getpid(), "charged": charged, "error": error}))
    """
)


def raced(*names, head, checked="checked"):
    """Let one process for each name charge as much as it can; returns what each says."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(name), str(head), checked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    return [json.loads(racer.communicate(timeout=3600)[0]) for racer in racers]


def recorded(path):
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        lines = db.execute("SELECT summary FROM charge ORDER BY seq").fetchall()
    return [json.loads(text).get("pid") for (text,) in lines]


def check_nothing_lost(path, found):
    pids = recorded(path)
    for each in found:
        assert pids.count(each["pid"]) == each["charged"], each
    assert len(pids) == sum(each["charged"] for each in found)


@pytest.fixture
def ledger(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    return make(tmp_path / "a" / "study.db")


# hard links


def test_a_second_hard_link_stops_all_spending_under_both_names(ledger, tmp_path):
    charge(ledger)
    head, other = ledger._head.path, tmp_path / "b" / "other.db"
    os.link(ledger.path, other)
    for use in (
        lambda: charge(ledger),
        lambda: ledger.spent,
        ledger.verify,
        lambda: Ledger.open(ledger.path),
        lambda: Ledger.open(other, head=head),
    ):
        with pytest.raises(LedgerError, match="2 names"):
            use()
    other.unlink()
    assert charge(ledger) == 2


@pytest.mark.parametrize("name", ["a/again.db", "b/study.db"])
def test_two_processes_under_two_hard_links_lose_no_charge(ledger, tmp_path, name):
    other = tmp_path / name
    os.link(ledger.path, other)
    found = raced(ledger.path, other, head=ledger._head.path)
    check_nothing_lost(ledger.path, found)
    assert all("2 names" in each["error"] for each in found)
    assert sorted(os.listdir(tmp_path / "b")) == ([] if name.startswith("a") else ["study.db"])


@pytest.mark.long
@pytest.mark.parametrize("heads", ["one head", "two heads"])
def test_even_unnoticed_two_names_have_one_lock_and_one_budget(ledger, tmp_path, heads):
    """What remains if nothing can tell: locks are on the file, so nobody works at the same time."""
    other, head = tmp_path / "b" / "study.db", ledger._head.path
    os.link(ledger.path, other)
    if heads == "one head":
        found = raced(ledger.path, other, ledger.path, other, head=head, checked="unchecked")
    else:
        shutil.copy(head, tmp_path / "b" / "head")
        names = (ledger.path, other)
        with closing(sqlite3.connect(ledger.path)):
            found = raced(*names, head=head, checked="unchecked")
            found += raced(*names, head=tmp_path / "b" / "head", checked="unchecked")
    assert [each["error"] for each in found] == [""] * 4
    assert sum(each["charged"] for each in found) == 32  # 2.0 / 0.0625, to the last one
    check_nothing_lost(ledger.path, found)
    other.unlink()
    assert ledger.verify().spent.epsilon == PLAIN.epsilon


def test_a_link_that_comes_during_a_charge_stops_it(ledger, tmp_path, monkeypatch):
    charge(ledger)
    real, calls = database.only_name, []

    def linked_then(path):
        calls.append(path)
        if len(calls) == 2:  # under the lock
            os.link(path, tmp_path / "b" / "study.db")
        return real(path)

    charged = ledger.charges
    monkeypatch.setattr(database, "only_name", linked_then)
    ledger = Ledger.__new__(Ledger)  # one whose storage looks at the new function
    with pytest.raises(LedgerError, match="2 names"):
        ledger.__init__(*storage_of(tmp_path), "claims")
    (tmp_path / "b" / "study.db").unlink()
    monkeypatch.undo()
    assert Ledger.open(tmp_path / "a" / "study.db").charges == charged


def storage_of(tmp_path):
    from riata.privacy.ledger.location import locate

    return locate(tmp_path / "a" / "study.db", None)


def test_a_file_that_is_exchanged_while_one_waits_for_it_is_charged_nothing(
    ledger, tmp_path, monkeypatch
):
    charge(ledger)
    copy = tmp_path / "copy.db"
    shutil.copy(ledger.path, copy)
    real, calls = database.only_name, []

    def exchanged_then(path):
        found = real(path)
        calls.append(path)
        if len(calls) == 1:
            os.replace(copy, path)
        return found

    monkeypatch.setattr(database, "only_name", exchanged_then)
    with pytest.raises(LedgerError, match="exchanged for another file"):
        Ledger.open(ledger.path)
    monkeypatch.undo()
    assert Ledger.open(ledger.path).verify().charges == 1


# symbolic links


def test_a_symbolic_link_is_the_ledger(ledger, tmp_path):
    link, folder = tmp_path / "b" / "link.db", tmp_path / "folder"
    link.symlink_to(ledger.path)
    folder.symlink_to(tmp_path / "a")
    found = [Ledger.open(link), Ledger.open(folder / "study.db")]
    assert {each.path for each in found} == {ledger.path}
    assert {each._head.path for each in found} == {ledger._head.path}
    assert [charge(each) for each in (*found, ledger)] == [1, 2, 3]
    assert sorted(os.listdir(tmp_path / "b")) == ["link.db"]


@pytest.mark.long
def test_processes_under_symbolic_links_lose_no_charge(ledger, tmp_path):
    link, folder = tmp_path / "b" / "link.db", tmp_path / "folder"
    link.symlink_to(ledger.path)
    folder.symlink_to(tmp_path / "a")
    found = raced(ledger.path, link, folder / "study.db", head=ledger._head.path)
    assert [each["error"] for each in found] == [""] * 3
    assert sum(each["charged"] for each in found) == 32
    check_nothing_lost(ledger.path, found)


# bind mounts


def in_own_mounts(script, *arguments):
    """Run a shell script with mounts of its own, or skip where nobody may make any."""
    command = ["unshare", "--mount", "--map-root-user", "sh", "-euc", script, "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("needs Linux and unshare")
    with tempfile.TemporaryDirectory() as folder:
        probe = [*command[:5], 'mount --bind "$1" "$1"', "sh", folder]
        if subprocess.run(probe, capture_output=True, check=False, timeout=3600).returncode:
            pytest.skip("bind mounts are not allowed here")
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=3600
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bind mounts are Linux's")
@pytest.mark.parametrize("name", ["other.db", "with a space.db"])
def test_a_file_that_is_mounted_by_itself_is_refused(ledger, tmp_path, name):
    charge(ledger)
    other = tmp_path / "b" / name
    other.touch()
    use = "import sys; from riata import Ledger; Ledger.open(sys.argv[1], head=sys.argv[2]).spent"
    done = in_own_mounts(
        'mount --bind "$1" "$2"; exec "$3" -c "$4" "$2" "$5"',
        ledger.path, other, sys.executable, use, ledger._head.path,
    )  # fmt: skip
    assert done.returncode == 1
    assert "is mounted by itself" in done.stderr
    assert "Mount the directory" in done.stderr
    assert charge(ledger) == 2


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bind mounts are Linux's")
def test_a_directory_that_is_mounted_twice_has_one_budget(ledger, tmp_path):
    race = tmp_path / "race.py"
    race.write_text(
        textwrap.dedent(
            """
            import subprocess, sys
            run, head, *names = sys.argv[1:]
            racers = [
                subprocess.Popen(
                    [sys.executable, "-c", run, name, head, "checked"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                )
                for name in names
            ]
            for racer in racers:
                racer.stdout.readline()
            for racer in racers:
                racer.stdin.write("go\\n")
                racer.stdin.flush()
            for racer in racers:
                print(racer.communicate(timeout=3600)[0].strip())
            """
        )
    )
    done = in_own_mounts(
        'mount --bind "$1" "$2"; exec "$3" "$4" "$5" "$6" "$1/study.db" "$2/study.db"',
        tmp_path / "a", tmp_path / "b", sys.executable, race, RACE, ledger._head.path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["error"] for each in found] == ["", ""]
    assert sum(each["charged"] for each in found) == 32
    check_nothing_lost(ledger.path, found)


def test_a_ledger_leaves_no_files_whose_names_follow_its_own(tmp_path):
    ledger = make(tmp_path / "study.db", Budget(1.0, 0.0))
    charge(ledger)
    with closing(sqlite3.connect(ledger.path)) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        charge(ledger)
        assert sorted(p.name for p in Path(tmp_path).iterdir()) == ["study.db", "study.db.head"]
