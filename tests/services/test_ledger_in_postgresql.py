"""A team's ledger on a real PostgreSQL server, which each session of tests starts for itself."""

import getpass
import itertools
import json
import os
import pickle
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from riata import Bounds, Budget, BudgetExceeded, Ledger, PrivateLasso
from riata.errors import InvalidArgument, LedgerError
from riata.privacy.events import Pure

from helpers import processes
from races import in_processes, in_threads

pytestmark = pytest.mark.services

PLAIN = Budget(2.0, 0.0)


def run(*command):
    # PostgreSQL refuses to run as root; Debian's package brings a user for it
    whom = {"user": "postgres", "group": "postgres", "extra_groups": []}
    subprocess.run(
        [str(part) for part in command],
        check=True,
        capture_output=True,
        timeout=3600,
        cwd="/",
        **(whom if os.getuid() == 0 else {}),
    )


@pytest.fixture(scope="session")
def server():
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    assert programs, "tests/services/install.sh installs it"
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        user = "postgres" if os.getuid() == 0 else getpass.getuser()
        cluster = Path(folder, "cluster")
        run(programs[-1] / "initdb", "-D", cluster, "-U", user, "--auth=trust", "--no-sync")
        options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c max_connections=50"
        run(
            *(programs[-1] / "pg_ctl", "-D", cluster, "-w"),
            *("-l", Path(folder, "log"), "-o", options, "start"),
        )
        try:
            yield f"postgresql+psycopg://{user}@127.0.0.1:{port}/"
        finally:
            run(programs[-1] / "pg_ctl", "-D", cluster, "-m", "immediate", "stop")


def execute(url, *statements):
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as db:
        for statement in statements:
            found = db.execute(text(statement))
        return found.fetchall() if found.returns_rows else found.rowcount


NUMBERS = itertools.count()


@pytest.fixture
def url(server):
    """A new database."""
    name = f"study{next(NUMBERS)}"
    execute(server + "postgres", f"CREATE DATABASE {name}")
    return server + name


def make(url, head, dataset="claims", ceiling=PLAIN):
    return Ledger.create(url, dataset=dataset, ceiling=ceiling, head=head)


def charge(ledger, epsilon=0.25, **summary):
    return ledger.charge(Pure(epsilon), adjacency="replace-one", summary=summary)


def test_create_charge_verify_export_and_open_again(url, tmp_path):
    head = tmp_path / "claims.head"
    ledger = make(url, head)
    assert [charge(ledger, 0.5, note="a"), charge(ledger, 0.75)] == [1, 2]
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        charge(ledger, 1.0)
    again = Ledger.open(url, head=head)
    assert (again.dataset, again.ceiling) == ("claims", PLAIN)
    assert again.verify() == ledger.verify()
    assert again.spent.epsilon == 1.25
    assert again.charges == ledger.charges
    exported = json.loads(again.export())
    assert [c["total"] for c in exported["entries"]] == [500_000_000, 1_250_000_000]
    assert json.loads(head.read_text())["key"] not in again.export()
    assert "left     epsilon 0.75" in again.show()
    assert pickle.loads(pickle.dumps(ledger)).charges == ledger.charges


def test_fits_are_charged(url, tmp_path):
    ledger = make(url, tmp_path / "head", ceiling=Budget(1.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 1.0), steps=2, ledger=ledger)
    model.fit([[0.5], [0.25], [1.0]], [0.5, 0.25, 1.0])
    with pytest.raises(BudgetExceeded):
        model.fit([[0.5], [0.25], [1.0]], [0.5, 0.25, 1.0])
    assert [c.summary["estimator"] for c in ledger.charges] == ["PrivateLasso"]


def test_a_second_ledger_of_a_data_set_is_refused(url, tmp_path):
    charge(make(url, tmp_path / "one"))
    with pytest.raises(LedgerError, match="would forget"):
        make(url, tmp_path / "two")
    assert not (tmp_path / "two").exists()
    assert Ledger.open(url, head=tmp_path / "one").verify().charges == 1


def test_several_data_sets_in_one_database(url, tmp_path):
    claims = make(url, tmp_path / "claims")
    trips = make(url, tmp_path / "trips", "trips", Budget(1.0, 0.0))
    charge(claims, 2.0)
    assert charge(trips, 0.5) == 1
    assert (claims.spent.epsilon, trips.spent.epsilon) == (2.0, 0.5)
    with pytest.raises(LedgerError, match="say which with dataset="):
        Ledger.open(url, head=tmp_path / "trips")
    assert Ledger.open(url, dataset="trips", head=tmp_path / "trips").verify().charges == 1
    with pytest.raises(LedgerError, match="head of the ledger of 'claims'"):
        Ledger.open(url, dataset="trips", head=tmp_path / "claims")
    with pytest.raises(LedgerError, match="no ledger of 'other'"):
        Ledger.open(url, dataset="other", head=tmp_path / "claims")
    execute(
        url,
        "INSERT INTO charge SELECT 'trips', 2, charged_at, run, unit, event, summary, sums, total, "
        "mac FROM charge WHERE dataset = 'claims'",
    )
    with pytest.raises(LedgerError, match=r"Entry 2 .* was edited"):
        charge(trips)
    assert claims.verify().charges == 1


def created_at_once(url, folder, number, name=None):
    """How many entries each of so many new ledgers has, or why it was refused."""
    prepare = """
    import os
    from riata import Budget, Ledger
    from riata.errors import LedgerError
    url, folder, name = sys.argv[1:]
    """
    work = """
    try:
        made = Ledger.create(
            url, dataset=name or f"d{os.getpid()}", ceiling=Budget(1.0, 0.0),
            head=f"{folder}/{os.getpid()}",
        )
    except LedgerError as error:
        print(json.dumps(str(error)))
    else:
        print(json.dumps(made.verify().charges))
    """
    return in_processes(number, prepare, work, url, folder, name or "")


def test_ledgers_of_different_data_sets_may_be_created_at_once(server, tmp_path):
    for attempt in range(3):  # each in a database without tables
        name = f"fresh{next(NUMBERS)}"
        execute(server + "postgres", f"CREATE DATABASE {name}")
        folder = tmp_path / str(attempt)
        folder.mkdir()
        assert created_at_once(server + name, folder, 6) == [0] * 6
        found = execute(server + name, "SELECT dataset FROM ledger")
        assert {f"d{head.name}" for head in folder.iterdir()} == {dataset for (dataset,) in found}
        assert len(found) == 6


def test_threads_create_ledgers_of_different_data_sets_at_once(url, tmp_path):
    made = []

    def create(number):
        made.append(make(url, tmp_path / f"head{number}", f"d{number}"))

    in_threads(create, range(8))
    assert sorted(ledger.dataset for ledger in made) == [f"d{n}" for n in range(8)]


def test_of_ledgers_of_one_data_set_that_are_created_at_once_one_is(url, tmp_path):
    found = created_at_once(url, tmp_path, 5, "claims")
    assert found.count(0) == 1
    assert all("would forget" in each for each in found if each != 0)
    assert len(list(tmp_path.iterdir())) == 1  # of the others no head is left


def copies(url, folder, number):
    """The ledger of `folder`/head0, opened so many times, each with a copy of the head."""
    found = []
    for each in range(1, number + 1):
        shutil.copy(folder / "head0", folder / f"head{each}")
        found.append(Ledger.open(url, head=folder / f"head{each}"))
    return found


def test_of_threads_that_charge_one_run_one_does(url, tmp_path):
    make(url, tmp_path / "head0")
    ledgers = copies(url, tmp_path, 5)
    won, lost = [], []

    def spend(ledger):
        try:
            won.append(charge(ledger, 0.01, run="a"))
        except LedgerError:
            lost.append(ledger.charge_of("a").seq)

    in_threads(spend, ledgers)
    assert (won, lost) == ([1], [1] * 4)
    assert Ledger.open(url, head=tmp_path / "head0").verify().charges == 1


def test_a_long_ledger_is_verified_by_its_last_lines_and_by_links(url, tmp_path):
    ledger = make(url, tmp_path / "head", ceiling=Budget(9.0, 1e-6))
    for number in range(50):
        charge(ledger, 0.001, run=f"run {number + 1}")
    assert [ledger.charge_of(f"run {n}").seq for n in (1, 17, 32, 50)] == [1, 17, 32, 50]
    execute(url, "UPDATE charge SET summary = '{}' WHERE seq = 3")
    charge(ledger, 0.001)
    with pytest.raises(LedgerError, match=r"Entry 3 .* was edited"):
        ledger.verify()
    with pytest.raises(LedgerError, match="no links lead to it"):
        ledger.charge_of("run 3")


def test_a_backup_comes_back_to_a_new_server_and_to_a_file(url, server, tmp_path):
    head = tmp_path / "head"
    ledger, other = make(url, head), make(url, tmp_path / "trips", "trips")
    charge(ledger, 0.5, run="a")
    charge(other, 0.25)
    assert ledger.backup(tmp_path / "backup.db") == 1
    expected = ledger.charges
    name = f"fresh{next(NUMBERS)}"
    execute(server + "postgres", f"CREATE DATABASE {name}")
    done = Ledger.restore(tmp_path / "backup.db", server + name, head=head)
    assert (done.charges, done.changed) == (1, True)
    again = Ledger.open(server + name, head=head)
    assert again.charges == expected
    assert charge(again, 0.5) == 2
    with pytest.raises(LedgerError, match="rolled back"):  # the old one is behind now
        charge(ledger)
    with pytest.raises(LedgerError, match="would forget 1"):
        Ledger.restore(tmp_path / "backup.db", tmp_path / "study.db", head=head)
    again.backup(tmp_path / "newer.db")
    assert Ledger.restore(tmp_path / "newer.db", tmp_path / "study.db", head=head).charges == 2
    assert other.verify().charges == 1


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charge SET event = '[]' WHERE dataset = 'claims' AND seq = 1",
        "DELETE FROM charge WHERE dataset = 'claims' AND seq <= 2",
        "UPDATE ledger SET ceiling = 9 * ceiling",
        "DELETE FROM ledger WHERE dataset = 'claims'",
    ],
)
def test_a_damaged_ledger_keeps_what_was_charged_since_its_backup(url, tmp_path, statement):
    head = tmp_path / "head"
    ledger = make(url, head)
    other = make(url, tmp_path / "trips", "trips")
    charge(other)
    charge(ledger)
    charge(ledger)
    ledger.backup(tmp_path / "backup.db")
    charge(ledger)
    expected = ledger.charges
    execute(url, statement)
    done = Ledger.restore(tmp_path / "backup.db", url, head=head)
    assert (done.charges, done.kept, done.changed) == (3, 1, True)
    assert ledger.charges == expected
    if "ceiling" not in statement:
        assert other.verify().charges == 1


def test_a_rolled_back_server_does_not_forget(url, tmp_path):
    head = tmp_path / "head"
    ledger = make(url, head)
    charge(ledger)
    ledger.backup(tmp_path / "backup.db")
    charge(ledger)
    execute(url, "DELETE FROM charge WHERE seq = 2")
    with pytest.raises(LedgerError, match="would forget 1"):
        Ledger.restore(tmp_path / "backup.db", url, head=head)
    shutil.copy(head, tmp_path / "ben")
    with pytest.raises(LedgerError, match="rolled back"):
        charge(ledger)


def test_a_team_with_two_heads_sees_each_others_charges(url, tmp_path):
    ana = make(url, tmp_path / "ana.head")
    shutil.copy(tmp_path / "ana.head", tmp_path / "ben.head")
    ben = Ledger.open(url, head=tmp_path / "ben.head")
    assert [charge(ana), charge(ben), charge(ana)] == [1, 2, 3]
    assert ana.verify() == ben.verify()
    assert (tmp_path / "ana.head").read_text() == (tmp_path / "ben.head").read_text()


def test_a_rolled_back_database_is_refused_by_whoever_saw_more(url, tmp_path):
    ana = make(url, tmp_path / "ana.head")
    charge(ana)
    shutil.copy(tmp_path / "ana.head", tmp_path / "ben.head")
    charge(ana)
    assert execute(url, "DELETE FROM charge WHERE seq = 2") == 1
    with pytest.raises(LedgerError, match="rolled back: it has 1 entries"):
        charge(ana)
    ben = Ledger.open(url, head=tmp_path / "ben.head")  # has seen only the first
    charge(ben, 0.125)
    with pytest.raises(LedgerError, match="entry 2 is not the one"):
        charge(ana)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charge SET event = replace(event, '0.25', '0.01') WHERE seq = 1",
        "UPDATE charge SET total = 1",
        "DELETE FROM charge WHERE seq = 1",
        "UPDATE ledger SET ceiling = 99 * ceiling",
        "DELETE FROM ledger",
        "DROP TABLE charge",
    ],
)
def test_an_edit_is_refused(url, tmp_path, statement):
    head = tmp_path / "head"
    ledger = make(url, head)
    charge(ledger)
    charge(ledger)
    assert Ledger.open(url, head=head).verify().charges == 2
    execute(url, statement)
    for use in (lambda: charge(ledger), ledger.verify, lambda: Ledger.open(url, head=head)):
        with pytest.raises(LedgerError):
            use()


def test_of_eight_processes_that_race_for_the_last_budget_one_wins(url, tmp_path):
    assert processes("race", tmp_path, 8, 10, url)["wins"] == [1] * 10


def test_eight_threads_overspend_nothing(url, tmp_path):
    make(url, tmp_path / "head0")
    granted, refused = [], []

    def spend(ledger):
        for _ in range(3):
            try:
                granted.append(charge(ledger))
            except BudgetExceeded:
                refused.append(1)

    in_threads(spend, copies(url, tmp_path, 8))
    assert (sorted(granted), len(refused)) == (list(range(1, 9)), 16)
    assert Ledger.open(url, head=tmp_path / "head0").spent.epsilon == 2.0


def test_no_release_outlives_its_charge_when_processes_are_killed(url, tmp_path):
    found = processes("kill", tmp_path, 150, 5, "sound", url)
    assert found["lost"] == 0
    assert found["charged"] >= found["released"] > 0


def test_a_lock_that_is_never_released_ends_in_an_error(url, tmp_path, monkeypatch):
    make(url, tmp_path / "head")
    monkeypatch.setattr("riata.privacy.ledger.database.PATIENCE", 1)
    ledger = Ledger.open(url, head=tmp_path / "head")
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as db:
        db.execute(text("SELECT * FROM ledger FOR UPDATE"))
        with pytest.raises(LedgerError, match="lock timeout"):
            charge(ledger)
    charge(ledger)


def test_a_server_that_is_not_there_is_a_ledger_error(server, tmp_path):
    head = tmp_path / "head"
    with pytest.raises(LedgerError, match="cannot be used"):
        make(make_url(server).set(port=1).render_as_string() + "none", head)
    assert not head.exists()


def test_a_url_needs_a_head_and_no_password(server, tmp_path):
    with pytest.raises(InvalidArgument, match="needs head="):
        Ledger.create(server + "postgres", dataset="d", ceiling=PLAIN)
    secret = server.replace("@", ":hunter2@") + "postgres"
    for use in (make, lambda url, head: Ledger.open(url, head=head)):
        with pytest.raises(InvalidArgument, match="password") as caught:
            use(secret, tmp_path / "head")
        assert "hunter2" not in str(caught.value)
