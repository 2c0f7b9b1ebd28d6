"""The ledger: one budget for a data set, however the ledger travels and whoever races for it."""

import copy
import json
import pickle
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from riata import Bounds, Budget, BudgetExceeded, Ledger, PrivateLasso
from riata.errors import InvalidArgument, LedgerError, RiataError, UnsupportedEvent
from riata.privacy.accountants import spent
from riata.privacy.calibrate import calibrate
from riata.privacy.events import (
    BoundedRange,
    Gaussian,
    Pure,
    Unprotected,
    compose,
    leaves,
)

from races import in_processes, in_threads

REPLACE_ONE = "replace-one"
CEILING = Budget(2.0, 1e-6)
#: At delta = 0 the cost of pure events is their plain sum.
PLAIN = Budget(2.0, 0.0)


def make(path=":memory:", ceiling=CEILING):
    return Ledger.create(path, dataset="claims", ceiling=ceiling)


def charge(ledger, event, **summary):
    return ledger.charge(event, adjacency=REPLACE_ONE, summary=summary)


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return make(":memory:" if request.param == "memory" else tmp_path / "study.db")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


# charging


def test_a_new_ledger_has_spent_nothing(ledger):
    assert ledger.spent.epsilon == 0.0
    assert ledger.charges == []
    assert (ledger.dataset, ledger.ceiling) == ("claims", CEILING)


def test_a_charge_is_recorded_with_its_event_and_summary(ledger):
    event = compose((BoundedRange(0.05), 40), (Gaussian(30.0), 40))
    first = charge(ledger, event, solver="frank-wolfe", steps=40)
    second = charge(ledger, Pure(0.1))
    assert second > first
    one, two = ledger.charges
    assert (one.seq, two.seq) == (first, second)
    assert leaves(one.event) == leaves(event)
    assert one.summary == {"solver": "frank-wolfe", "steps": 40}
    assert two.summary == {}
    assert one.charged_at <= two.charged_at
    both = compose((event, 1), (Pure(0.1), 1))
    assert ledger.spent == spent(both, 1e-6, adaptive=True)


def test_charges_compose_and_do_not_merely_add_up(ledger):
    single = spent(Gaussian(20.0), 1e-6).epsilon
    for _ in range(16):
        charge(ledger, Gaussian(20.0))
    assert ledger.spent.epsilon < 0.5 * 16 * single
    filtered = spent(Gaussian(5.0), 1e-6, adaptive=True)
    assert ledger.spent.epsilon == pytest.approx(filtered.epsilon, rel=1e-9)


def test_only_privacy_filters_count_once_a_second_charge_could_depend_on_the_first(ledger):
    charge(ledger, Gaussian(5.0))
    assert ledger.spent == spent(Gaussian(5.0), 1e-6)
    charge(ledger, Gaussian(1e6))
    assert ledger.spent.epsilon > 1.05 * spent(Gaussian(5.0), 1e-6).epsilon
    assert ledger.spent.accountant == "zero-concentrated differential privacy"


def test_the_exact_ceiling_can_be_spent_and_then_nothing_more(ledger):
    strength = calibrate(lambda s: compose((BoundedRange(s), 30)), CEILING)
    charge(ledger, compose((BoundedRange(strength), 30)))
    assert CEILING.epsilon * (1 - 1e-9) <= ledger.spent.epsilon <= CEILING.epsilon
    with pytest.raises(BudgetExceeded):
        charge(ledger, Pure(1e-6))
    assert len(ledger.charges) == 1


def test_a_plan_for_the_ceiling_fits_and_a_second_one_does_not(ledger):
    X, y = data()
    estimator = PrivateLasso(2.0, 1e-6, bounds=Bounds(1.0, 1.0), ledger=ledger, steps=5)
    estimator.fit(X, y)
    with pytest.raises(BudgetExceeded):
        estimator.fit(X, y)
    assert len(ledger.charges) == 1


def test_a_refused_charge_leaves_nothing(path):
    ledger = make(path, PLAIN)
    charge(ledger, Pure(1.5))
    before = (ledger.charges, ledger.spent)
    with pytest.raises(BudgetExceeded, match=r"Nothing was charged"):
        charge(ledger, Pure(0.6))
    assert (ledger.charges, ledger.spent) == before
    charge(ledger, Pure(0.5))  # and what is left can still be spent
    assert ledger.spent.epsilon == 2.0


def test_the_refusal_says_what_is_spent_and_what_the_ceiling_is(path):
    ledger = make(path, PLAIN)
    charge(ledger, Pure(1.5))
    with pytest.raises(BudgetExceeded) as caught:
        charge(ledger, Pure(0.75))
    for fact in ("claims", "2.25", "delta 0", "ceiling is 2", "1.5 is spent"):
        assert fact in str(caught.value)


def test_another_adjacency_is_refused(ledger):
    with pytest.raises(BudgetExceeded, match="replace-one"):
        ledger.charge(Pure(0.1), adjacency="add-remove", summary={})
    assert ledger.charges == []


def test_an_unprotected_release_is_refused(ledger):
    with pytest.raises(BudgetExceeded):
        charge(ledger, Unprotected())
    with pytest.raises(BudgetExceeded):
        charge(ledger, compose((Pure(1e-9), 1), (Unprotected(), 1)))
    assert ledger.charges == []


def test_an_unprotected_release_is_refused_by_every_ledger_even_one_without_a_limit():
    with pytest.raises(RiataError):
        charge(make(ceiling=Budget(float("inf"), 1e-6)), Unprotected())


@pytest.mark.parametrize("bad", [float("nan"), -1.0])
def test_an_event_without_a_meaningful_cost_is_refused(bad):
    ledger = make(ceiling=PLAIN)
    charge(ledger, Pure(1.0))
    with pytest.raises(RiataError):
        charge(ledger, Pure(bad))
    assert len(ledger.charges) == 1
    assert ledger.spent.epsilon == 1.0


def test_an_event_that_the_ceilings_delta_cannot_cover_is_refused(path):
    ledger = make(path, Budget(1.0, 0.0))
    with pytest.raises(UnsupportedEvent):
        charge(ledger, Gaussian(100.0))
    assert ledger.charges == []
    charge(ledger, Pure(1.0))
    assert ledger.spent.epsilon == 1.0


def test_a_summary_that_is_no_json_charges_nothing(ledger):
    with pytest.raises(TypeError):
        charge(ledger, Pure(0.1), secret=object())
    assert ledger.charges == []


def test_repr_says_what_is_spent(path):
    ledger = make(path, PLAIN)
    charge(ledger, Pure(0.5))
    for fact in ("claims", "0.5 of 2", "delta 0", "replace-one"):
        assert fact in repr(ledger)


# creating and opening


def test_an_opened_ledger_knows_what_was_spent_before(path):
    charge(make(path, PLAIN), Pure(0.75), note="first")
    again = Ledger.open(path)
    assert again.spent.epsilon == 0.75
    assert again.ceiling == PLAIN
    assert again.dataset == "claims"
    assert again.charges[0].summary == {"note": "first"}
    with pytest.raises(BudgetExceeded):
        charge(again, Pure(1.5))


def test_create_never_replaces_a_file(path):
    charge(make(path, PLAIN), Pure(0.75))
    with pytest.raises(LedgerError, match="Go on with that one"):
        make(path, Budget(100.0, 1e-6))
    assert Ledger.open(path).spent.epsilon == 0.75
    other = path.with_name("notes.txt")
    other.write_text("mine")
    with pytest.raises(LedgerError):
        make(other)
    assert other.read_text() == "mine"


def test_create_where_nothing_can_be_written_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="cannot be created"):
        make(tmp_path / "missing" / "study.db")


def test_open_of_a_missing_file_is_refused_and_creates_none(path):
    with pytest.raises(LedgerError, match="riata ledger create"):
        Ledger.open(path)
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"", b"not a database at all " * 50, b"SQLite format 3\x00" + bytes(500)]
)
def test_a_file_that_is_no_ledger_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger.open(path)
    assert path.read_bytes() == content


def test_another_database_is_refused(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE ledger (name TEXT)")
    db.close()
    with pytest.raises(LedgerError):
        Ledger.open(path)


def edit(path, statement, *values):
    db = sqlite3.connect(path)
    with db:
        db.execute(statement, values)
    db.close()


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "",
        "[]]",
        "{}",
        '[{"event":"free","count":1}]',
        '[{"event":"pure","count":0,"epsilon":1.0}]',
        '[{"event":"pure","count":1,"epsilon":-1.0}]',
        '[{"event":"pure","count":1,"epsilon":NaN}]',
        '[{"event":"pure","count":1,"epsilon":"1"}]',
        '[{"event":"gaussian","count":1,"noise_multiplier":0.0}]',
    ],
)
def test_an_edited_event_stops_all_spending(path, text):
    ledger = make(path)
    charge(ledger, Pure(1.0))
    edit(path, "UPDATE charge SET event = ?", text)
    with pytest.raises(LedgerError):
        _ = ledger.spent
    with pytest.raises(LedgerError):
        charge(ledger, Pure(0.1))
    with pytest.raises(LedgerError):
        _ = Ledger.open(path).spent


def test_an_edited_summary_is_a_ledger_error(path):
    ledger = make(path)
    charge(ledger, Pure(1.0))
    edit(path, "UPDATE charge SET summary = 'garbage'")
    with pytest.raises(LedgerError):
        _ = ledger.charges


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("version", 1),
        ("ceiling", "much"),
        ("ceiling", -1),
        ("ceiling", 99 * 10**9),
        ("ceiling", b"2"),
        ("delta", "0.5"),
        ("adjacency", "add-remove"),
        ("dataset", "other"),
        ("mac", "0" * 64),
        ("mac", b"\xff"),
    ],
)
def test_an_edited_header_is_a_ledger_error(path, column, value):
    make(path)
    edit(path, f"UPDATE ledger SET {column} = ?", value)
    with pytest.raises(LedgerError):
        Ledger.open(path)


def test_a_second_header_is_a_ledger_error(path):
    make(path)
    edit(
        path,
        "INSERT INTO ledger SELECT 'more', version, 9 * ceiling, delta, adjacency, person, mac "
        "FROM ledger",
    )
    with pytest.raises(LedgerError, match="2 data sets"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="not of 'more'"):
        Ledger.open(path, dataset="more")
    assert Ledger.open(path, dataset="claims").ceiling == CEILING


def test_a_raised_ceiling_in_the_file_does_not_reach_an_open_ledger(path):
    ledger = make(path)
    edit(path, "UPDATE ledger SET ceiling = 99 * ceiling")
    with pytest.raises(LedgerError, match="was edited"):
        charge(ledger, Pure(0.1))


def test_a_deleted_file_stops_all_spending_and_is_not_made_again(path):
    ledger = make(path)
    charge(ledger, Pure(1.0))
    path.unlink()
    with pytest.raises(LedgerError):
        charge(ledger, Pure(0.1))
    with pytest.raises(LedgerError):
        _ = ledger.spent
    assert not path.exists()


def test_a_ceiling_must_be_a_budget(path):
    with pytest.raises(InvalidArgument, match="Budget"):
        Ledger.create(path, dataset="claims", ceiling=2.0)
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_ledger_file_is_readable_by_its_owner_only(path):
    make(path)
    assert path.stat().st_mode & 0o077 == 0


# travelling


@pytest.mark.parametrize("travel", [copy.copy, copy.deepcopy, clone], ids=lambda f: f.__name__)
def test_a_copied_ledger_is_the_same_ledger(ledger, travel):
    assert travel(ledger) is ledger


def test_a_cloned_estimator_spends_from_the_same_ledger(ledger):
    estimator = PrivateLasso(0.5, 1e-6, bounds=Bounds(1.0, 1.0), ledger=ledger)
    assert clone(estimator).ledger is ledger
    assert copy.deepcopy(estimator).ledger is ledger
    assert clone(clone(estimator), safe=False).ledger is ledger


def test_a_pickled_file_ledger_opens_the_same_file(path):
    ledger = make(path, PLAIN)
    other = pickle.loads(pickle.dumps(ledger))
    assert other is not ledger
    charge(other, Pure(1.5))
    assert ledger.spent.epsilon == 1.5
    with pytest.raises(BudgetExceeded):
        charge(ledger, Pure(1.0))


def test_a_pickled_file_ledger_finds_its_file_from_another_directory(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = pickle.dumps(make("study.db"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(text).path == str(path)


def test_a_ledger_in_memory_cannot_be_pickled():
    with pytest.raises(LedgerError, match="in a file"):
        pickle.dumps(make())


def run_python(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_ledger_in_memory_refuses_to_work_in_a_forked_process():
    # In an interpreter of its own: this one has threads, which fork does not like.
    result = run_python(
        """
        import os, sys
        from riata import Budget, Ledger
        from riata.errors import LedgerError
        from riata.privacy.events import Pure
        ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(1.0))
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (
                lambda: ledger.charge(Pure(0.1), adjacency="replace-one", summary={}),
                lambda: ledger.spent,
            ):
                try:
                    use()
                except LedgerError:
                    refused += 1
            os._exit(refused)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        ledger.charge(Pure(1.0), adjacency="replace-one", summary={})
        print(code, ledger.spent.epsilon)
        """
    )
    assert result.stdout.split() == ["2", "1.0"], result.stderr


# racing


@pytest.mark.parametrize("where", [":memory:", "study.db"])
def test_eight_threads_overspend_nothing(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = make(where, PLAIN)
    granted, refused = [], []

    def spend(times):
        for _ in range(times):
            try:
                granted.append(charge(ledger, Pure(0.125)))
            except BudgetExceeded:
                refused.append(1)

    in_threads(spend, [6] * 8)
    assert len(granted) == 16  # 2.0 / 0.125, to the last one
    assert len(refused) == 8 * 6 - 16
    assert sorted(granted) == [c.seq for c in ledger.charges]
    assert ledger.spent.epsilon == 2.0


def test_four_processes_overspend_nothing(path):
    make(path, PLAIN)
    prepare = """
        from riata import BudgetExceeded, Ledger
        from riata.privacy.events import Pure
        ledger = Ledger.open(sys.argv[1])
    """
    spend = """
        granted = 0
        for _ in range(12):
            try:
                ledger.charge(Pure(0.125), adjacency="replace-one", summary={})
                granted += 1
            except BudgetExceeded:
                pass
        print(granted)
    """
    granted = in_processes(4, prepare, spend, path)
    assert sum(granted) == 16
    ledger = Ledger.open(path)
    assert ledger.spent.epsilon == 2.0
    assert len(ledger.charges) == 16


# scikit-learn's tools


def data(n=120, p=4):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, p))
    return X, 0.5 * X[:, 0]


def lasso(ledger, epsilon=0.05):
    return PrivateLasso(epsilon, 1e-6, bounds=Bounds(1.0, 1.0), steps=3, ledger=ledger)


def test_cross_validation_charges_every_fit(ledger):
    X, y = data()
    scores = cross_val_score(lasso(ledger), X, y, cv=4, error_score="raise")
    assert len(scores) == 4
    assert len(ledger.charges) == 4
    assert all(c.summary["estimator"] == "PrivateLasso" for c in ledger.charges)
    assert all(c.summary["n_rows"] == 90 for c in ledger.charges)
    assert 0.05 < ledger.spent.epsilon <= 4 * 0.05


def test_cross_validation_stops_when_the_ledger_is_full(ledger):
    X, y = data()
    with pytest.raises(BudgetExceeded):
        cross_val_score(lasso(ledger, 1.5), X, y, cv=4, error_score="raise")
    assert ledger.spent.epsilon <= CEILING.epsilon


@pytest.mark.long
def test_a_grid_search_in_two_processes_charges_every_fit_and_the_refit(path):
    ledger = make(path)
    X, y = data()
    search = GridSearchCV(
        lasso(ledger), {"radius": [0.5, 1.0]}, cv=2, n_jobs=2, error_score="raise"
    ).fit(X, y)
    assert len(ledger.charges) == 2 * 2 + 1
    assert search.best_estimator_.ledger is ledger
    total = compose(*((c.event, 1) for c in ledger.charges))
    assert ledger.spent == spent(total, 1e-6, adaptive=True)
    assert ledger.spent.epsilon <= CEILING.epsilon


def test_a_grid_search_with_a_ledger_in_memory_stays_in_this_process():
    ledger = make()
    X, y = data()
    GridSearchCV(lasso(ledger), {"radius": [0.5, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert len(ledger.charges) == 5


def test_a_fitted_model_can_be_pickled_only_with_a_ledger_in_a_file(path):
    X, y = data()
    fitted = lasso(make(path)).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.coef_, fitted.coef_)
    assert len(again.ledger.charges) == 1
    with pytest.raises(LedgerError):
        pickle.dumps(lasso(make()).fit(X, y))


def test_the_charge_is_durable_before_a_row_is_read(path):
    ledger = make(path)

    X, y = data()
    estimator = lasso(ledger)
    seen = []

    def crash(self, *rows):
        seen.append(len(Ledger.open(path).charges))
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        for name in ("clip_x", "grid_x", "grid_rows", "grid_entries"):
            patch.setattr(Bounds, name, crash)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(X, y)
    assert seen == [1]
    assert len(ledger.charges) == 1  # a crash refunds nothing


def test_the_file_holds_the_event_as_plain_json(path):
    charge(make(path), compose((BoundedRange(0.5), 2)), solver="x")
    db = sqlite3.connect(path)
    event, summary = db.execute("SELECT event, summary FROM charge").fetchone()
    db.close()
    assert json.loads(event) == [{"event": "bounded-range", "count": 2, "epsilon": 0.5}]
    assert json.loads(summary) == {"solver": "x"}


# whole nano-units


@pytest.mark.parametrize(
    "epsilon", [1e-9, 1e-6, 0.1, 0.3, 0.7, 1.1, 2.675, 0.123456789, 1000.1, 123456.789]
)
def test_a_charge_of_the_whole_ceiling_fits_and_a_nano_unit_more_does_not(epsilon):
    ledger = make(ceiling=Budget(epsilon, 0.0))
    assert ledger.ceiling.epsilon == epsilon
    with pytest.raises(BudgetExceeded):
        charge(ledger, compose((Pure(epsilon), 1), (Pure(1e-9), 1)))
    charge(ledger, Pure(epsilon))
    assert ledger.charges[0].total == round(epsilon * 1e9)
    with pytest.raises(BudgetExceeded):
        charge(ledger, Pure(1e-9))


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_calibrated_fit_fits_a_ceiling_of_its_own_epsilon(epsilon, delta):
    X, y = data()
    ledger = make(ceiling=Budget(epsilon, delta))
    PrivateLasso(epsilon, delta, bounds=Bounds(1.0, 1.0), steps=3, ledger=ledger).fit(X, y)
    assert ledger.spent.epsilon <= epsilon
    assert ledger.charges[0].total <= round(epsilon * 1e9)


def test_a_ceiling_is_rounded_down_and_what_it_says_then_can_be_spent():
    ledger = make(ceiling=Budget(1 / 3, 0.0))
    assert ledger.ceiling.epsilon == 0.333333333
    with pytest.raises(BudgetExceeded, match=r"0\.333333334 .* ceiling is 0\.333333333\."):
        charge(ledger, Pure(1 / 3))
    charge(ledger, Pure(ledger.ceiling.epsilon))


def test_totals_are_rounded_up():
    ledger = make(ceiling=PLAIN)
    charge(ledger, Pure(1e-12))
    charge(ledger, Pure(1e-12))
    assert [c.total for c in ledger.charges] == [1, 1]
    charge(ledger, Pure(0.1000000001))
    assert ledger.charges[-1].total == 100_000_001


@pytest.mark.parametrize("epsilon", [1.1e9, 1e12, float("inf")])
def test_a_ceiling_that_is_no_limit_is_refused(path, epsilon):
    with pytest.raises(InvalidArgument, match="no limit"):
        make(path, Budget(epsilon, 1e-6))
    assert not path.exists()


# the head


def test_the_head_lies_beside_the_file_or_where_one_says(path, tmp_path):
    make(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["study.db", "study.db.head"]
    (tmp_path / "elsewhere").mkdir()
    head = tmp_path / "elsewhere" / "head"
    other = tmp_path / "other.db"
    ledger = Ledger.create(other, dataset="claims", ceiling=PLAIN, head=head)
    charge(ledger, Pure(0.5))
    with pytest.raises(LedgerError, match="missing"):
        Ledger.open(other)
    assert Ledger.open(other, head=head).spent.epsilon == 0.5
    assert pickle.loads(pickle.dumps(ledger)).spent.epsilon == 0.5


def test_a_ledger_that_cannot_be_created_leaves_nothing(path, tmp_path):
    (tmp_path / "study.db.head").write_text("mine")
    with pytest.raises(LedgerError, match="head of another ledger"):
        make(path)
    assert not path.exists()
    assert (tmp_path / "study.db.head").read_text() == "mine"


def test_a_ledger_in_memory_has_no_head_file(tmp_path):
    with pytest.raises(InvalidArgument, match="in memory"):
        Ledger.create(":memory:", dataset="d", ceiling=PLAIN, head=tmp_path / "head")


@pytest.mark.parametrize("name", ["", 3, None, "two\nlines", "nul\0", "\ud800"])
def test_a_data_set_needs_a_printable_name(path, name):
    with pytest.raises(InvalidArgument, match="printable"):
        Ledger.create(path, dataset=name, ceiling=PLAIN)
    assert not path.exists()


@pytest.mark.parametrize("where", ["mysql://h/d", "sqlite:///x.db", "://", "nonsense://"])
def test_other_urls_are_refused(where, tmp_path):
    for use in (
        lambda: Ledger.create(where, dataset="d", ceiling=PLAIN, head=tmp_path / "head"),
        lambda: Ledger.open(where, head=tmp_path / "head"),
    ):
        with pytest.raises(InvalidArgument, match="postgresql"):
            use()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a b%20?c#d.db", "ünï & ;.db", "100%.db"])
def test_a_path_may_have_any_letters(tmp_path, name):
    charge(make(tmp_path / name), Pure(0.5))
    assert len(Ledger.open(tmp_path / name).charges) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == [name, f"{name}.head"]


# reading


def test_show_has_the_ceiling_what_is_left_and_a_line_for_each_charge(ledger):
    X, y = data()
    lasso(ledger).fit(X, y)
    charge(ledger, Pure(0.05))
    head, ceiling, used, left, one, two = ledger.show().splitlines()
    assert "claims" in head
    assert "epsilon 2 at delta 1e-06" in ceiling
    total = float(used.split()[2])
    assert total == pytest.approx(ledger.spent.epsilon, abs=1e-9)
    assert float(left.split()[2]) == pytest.approx(2.0 - total, abs=1e-9)
    assert f"PrivateLasso, {ledger.charges[0].summary['solver']}" in one
    assert two.split()[0] == "2"
    assert two.endswith(f"total {total:.9g}")


def test_verify_says_what_it_verified(ledger):
    empty = ledger.verify()
    assert (empty.dataset, empty.charges, empty.spent.epsilon) == ("claims", 0, 0.0)
    charge(ledger, Pure(0.5))
    assert ledger.verify().charges == 1
    assert ledger.verify().spent == ledger.spent
    assert ledger.verify().mac != empty.mac


def test_export_is_json_with_every_mac_and_no_key(ledger):
    charge(ledger, compose((BoundedRange(0.5), 2)), solver="x")
    charge(ledger, Pure(0.25))
    text = ledger.export()
    content = json.loads(text)
    assert content["header"]["dataset"] == "claims"
    assert content["header"]["ceiling"] == 2 * 10**9
    one, two = content["entries"]
    assert one["event"] == [{"event": "bounded-range", "count": 2, "epsilon": 0.5}]
    assert one["summary"] == {"solver": "x"}
    assert two["mac"] == ledger.verify().mac
    assert ledger._head.read().key.hex() not in text
