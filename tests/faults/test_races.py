"""Whoever races for the last budget, one wins."""

import threading

import pytest

from riata import Budget, BudgetExceeded
from riata.privacy.accountants import spent
from riata.privacy.events import compose

from helpers import charge, data, lasso, make, processes


@pytest.mark.long
def test_of_eight_processes_that_race_for_the_last_budget_one_wins(tmp_path):
    assert processes("race", tmp_path, 8, 6)["wins"] == [1] * 6


@pytest.mark.slow
def test_of_four_processes_one_wins_a_thousand_times(tmp_path):
    assert processes("race", tmp_path, 4, 1000)["wins"] == [1] * 1000


def run_threads(work, n):
    start, results = threading.Barrier(n), []

    def run():
        start.wait()
        try:
            results.append(work())
        except BudgetExceeded:
            results.append(None)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == n
    return [result for result in results if result is not None]


@pytest.mark.parametrize("where", [":memory:", "study.db"])
def test_of_eight_threads_that_race_for_the_last_budget_one_wins(where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = make(where)
    charge(ledger, 1.5)
    assert run_threads(lambda: charge(ledger, 0.5), 8) == [2]
    assert ledger.verify().charges == 2
    assert ledger.spent.epsilon == 2.0


def test_of_four_threads_that_fit_for_the_last_budget_one_gets_a_model(tmp_path):
    ledger = make(tmp_path / "study.db", Budget(1.0, 1e-6))
    X, y = data()
    (model,) = run_threads(lambda: lasso(ledger, 1.0).fit(X, y), 4)
    assert len(ledger.charges) == 1
    assert ledger.spent == spent(compose(*((c.event, 1) for c in ledger.charges)), 1e-6)
    assert model.ledger is ledger
