"""The charge of a run: found by its id, and made once whoever races for it."""

import sqlite3
from contextlib import closing

import pytest

from riata import Budget, BudgetExceeded, Ledger
from riata.errors import InvalidArgument, LedgerError
from riata.privacy.events import BoundedRange, Gaussian, Pure, compose, leaves
from riata.privacy.unit import PrivacyUnit

from races import in_processes, in_threads

PLAIN = Budget(2.0, 0.0)
LITTLE = Pure(0.01)


def make(path=":memory:", ceiling=PLAIN, **options):
    return Ledger.create(path, dataset="claims", ceiling=ceiling, **options)


def charge(ledger, event=LITTLE, **summary):
    return ledger.charge(event, adjacency="replace-one", summary=summary)


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return make(":memory:" if request.param == "memory" else tmp_path / "study.db")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


def test_the_charge_of_a_run_has_its_event_its_unit_and_its_summary(tmp_path):
    ledger = make(tmp_path / "study.db", Budget(5.0, 1e-6))
    event = compose((BoundedRange(0.05), 40), (Gaussian(30.0), 2))
    charge(ledger, run="a", request="00ff")
    charge(ledger, event, run="b", request="11ee", solver="x")
    charge(ledger)
    found = Ledger.open(tmp_path / "study.db").charge_of("b")
    assert (found.seq, found.run) == (2, "b")
    assert leaves(found.event) == leaves(event)
    assert found.adjacency == "replace-one"
    assert found.unit == PrivacyUnit()
    assert found.summary == {"run": "b", "request": "11ee", "solver": "x"}
    assert found == ledger.charges[1]


def test_the_charge_of_a_persons_run_says_whose(path):
    ledger = make(path, Budget(1.0, 0.0, "replace-person"))
    unit = PrivacyUnit("replace-person", "patient", 3)
    ledger.charge(Pure(0.5), adjacency="replace-person", unit=unit, summary={"run": "r"})
    found = Ledger.open(path).charge_of("r")
    assert (found.adjacency, found.unit) == ("replace-person", unit)


def test_a_run_that_was_not_charged_has_no_charge(ledger):
    assert ledger.charge_of("a") is None
    charge(ledger)
    charge(ledger, note="a", request="a")
    assert ledger.charge_of("a") is None
    charge(ledger, run="ab")
    assert [ledger.charge_of(text) for text in ("a", "b", "A", "AB", "", "ab ", "a%")] == [None] * 7


def test_a_run_is_charged_once(ledger):
    charge(ledger, run="a")
    before = ledger.charges
    for cost in (0.01, 0.5, 1e-9):  # the same plan, or another one under the same name
        with pytest.raises(LedgerError, match="'a' was charged before, as charge 1"):
            charge(ledger, Pure(cost), run="a")
    assert ledger.charges == before
    assert charge(ledger, run="b") == 2


def test_charges_without_a_run_are_as_many_as_one_likes(ledger):
    assert [charge(ledger), charge(ledger, run=None), charge(ledger)] == [1, 2, 3]


@pytest.mark.parametrize("run", ["", 7, True, ["a"], {"a": 1}, "a\0b", "two\nlines", "x" * 201])
def test_an_id_that_is_no_printable_text_charges_nothing(ledger, run):
    with pytest.raises(InvalidArgument, match="id of a run"):
        charge(ledger, run=run)
    assert ledger.charges == []


@pytest.mark.parametrize("run", ["'; DROP TABLE charge; --", "ünï", "x" * 200, " "])
def test_an_id_may_be_any_text(ledger, run):
    charge(ledger, run=run)
    assert ledger.charge_of(run).run == run


def test_a_refused_charge_leaves_its_run_free(ledger):
    with pytest.raises(BudgetExceeded):
        charge(ledger, Pure(9.0), run="a")
    assert ledger.charge_of("a") is None
    assert charge(ledger, run="a") == 1


def test_two_data_sets_of_one_database_may_have_runs_of_one_name(path):
    # Two SQLite ledgers never share a file; the table allows it, as in PostgreSQL.
    charge(make(path), run="a")
    rest = "charged_at, run, unit, event, summary, sums, total, mac"
    others = f"seq, {rest}"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"INSERT INTO charge (dataset, {others}) SELECT 'other', {others} FROM charge")
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            db.execute(
                f"INSERT INTO charge (seq, dataset, {rest}) SELECT 2, dataset, {rest} FROM charge "
                "WHERE dataset = 'claims'"
            )


EDITS = {
    "a forged id": "UPDATE charge SET run = 'forged' WHERE seq = 1",
    "an exchanged id": "UPDATE charge SET run = 'forged' WHERE seq = 2",
    "a larger event": "UPDATE charge SET event = replace(event, '0.01', '0.5') WHERE run = 'paid'",
    "another request": "UPDATE charge SET summary = replace(summary, 'q1', 'q2') WHERE seq = 2",
    "another unit": "UPDATE charge SET unit = replace(unit, 'one', 'two') WHERE run = 'paid'",
}


@pytest.mark.parametrize("statement", EDITS.values(), ids=EDITS.keys())
def test_an_edited_charge_pays_for_no_run(path, statement):
    ledger = make(path)
    charge(ledger)
    charge(ledger, run="paid", request="q1")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)
    for run in ("paid", "forged"):
        with pytest.raises(LedgerError, match="was edited"):
            ledger.charge_of(run)
        with pytest.raises(LedgerError, match="was edited"):
            charge(ledger, run=run)


def test_of_threads_that_charge_one_run_one_does(path):
    ledgers = [make(path)] + [Ledger.open(path) for _ in range(5)]
    granted, refused = [], []

    def spend(ledger):
        try:
            granted.append(charge(ledger, run="a"))
        except LedgerError:
            refused.append(ledger.charge_of("a").seq)

    in_threads(spend, ledgers)
    assert (granted, refused) == ([1], [1] * 5)


@pytest.mark.long
def test_of_processes_that_charge_the_same_runs_each_run_is_charged_once(path):
    make(path)
    prepare = """
        from riata import Ledger
        from riata.errors import LedgerError
        from riata.privacy.events import Pure
        ledger = Ledger.open(sys.argv[1])
    """
    spend = """
        won = []
        for number in range(8):
            run = f"run {number}"
            try:
                ledger.charge(Pure(0.01), adjacency="replace-one", summary={"run": run})
                won.append(run)
            except LedgerError:
                assert ledger.charge_of(run) is not None
        print(json.dumps(won))
    """
    won = in_processes(3, prepare, spend, path)
    runs = sorted(run for some in won for run in some)
    assert runs == [f"run {number}" for number in range(8)]
    ledger = Ledger.open(path)
    assert sorted(c.run for c in ledger.charges) == runs
    assert ledger.spent.epsilon == pytest.approx(0.08)
