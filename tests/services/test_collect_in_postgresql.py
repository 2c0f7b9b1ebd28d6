"""Several collectors on one PostgreSQL server: each report and each token once."""

import threading

import numpy as np
import pytest
from sqlalchemy.exc import DBAPIError
from test_ledger_in_postgresql import execute, server  # noqa: F401

from riata.collect.sql import DatabaseStore
from riata.collect.stores import merge_stores, open_store, records_at
from riata.collect.tokens import Tokens
from riata.local import Task

from collecting import killed
from database_faults import every_statement

pytestmark = pytest.mark.services

TASK = Task.from_table(
    {
        "kind": "mean",
        "epsilon": 1.0,
        "features": [{"name": "hours", "kind": "number", "bounds": [0, 24]}],
    }
)


@pytest.fixture
def url(server):  # noqa: F811
    name = f"collect_{np.random.default_rng().integers(2**60)}"
    execute(server + "postgres", f"CREATE DATABASE {name}")
    return server + name


def words(*numbers):
    return np.array(numbers, dtype=np.uint64)


def held(url):
    return sorted(records_at(url, TASK).seeds.tolist())


def together(*functions):
    """Run functions at once; raise what one of them raises."""
    problems, gate = [], threading.Barrier(len(functions))

    def run(function):
        try:
            gate.wait()
            function()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


def test_reports_and_tokens_count_once(url):
    store = DatabaseStore(url, TASK)
    assert store.add(words(5, 3, 5, 2**64 - 1)).all()
    assert store.add(words(3, 7)).all()
    assert len(store) == 4
    found = store.add(words(10, 11, 10, 20, 10), words(1, 1, 1, 2, 3))
    assert found.tolist() == [True, False, True, True, True]
    assert store.add(words(12), words(2)).tolist() == [False]
    store.close()
    assert held(url) == [3, 5, 7, 10, 20, 2**64 - 1]
    again = DatabaseStore(url, TASK)
    assert len(again) == 6
    again.close()


def test_collectors_that_begin_at_once(url):
    stores = []
    together(*[lambda: stores.append(DatabaseStore(url, TASK)) for _ in range(4)])
    assert len(stores) == 4
    for store in stores:
        store.close()


def test_collectors_that_meet_the_same_reports_at_once(url):
    rng = np.random.default_rng(1)
    stores = [DatabaseStore(url, TASK) for _ in range(3)]
    batches = [[rng.integers(0, 20_000, 3000).astype(np.uint64) for _ in range(8)] for _ in stores]

    def load(store, own):
        for batch in own:
            assert store.add(batch).all()

    together(*[lambda s=s, b=b: load(s, b) for s, b in zip(stores, batches, strict=True)])
    everything = set(np.concatenate([one for own in batches for one in own]).tolist())
    assert held(url) == sorted(everything)
    assert sum(len(store) for store in stores) == len(everything)
    for store in stores:
        store.close()


def test_a_token_is_good_at_one_of_several_collectors(url):
    stores = [DatabaseStore(url, TASK) for _ in range(3)]
    results = {}
    orders = [np.random.default_rng(i).permutation(400).astype(np.uint64) for i in range(3)]

    def load(i):
        for part in np.array_split(orders[i], 8):
            seeds = part + np.uint64(1000 * (i + 1))  # another report at each collector
            for token, good in zip(part.tolist(), stores[i].add(seeds, part).tolist(), strict=True):
                results.setdefault(token, []).append(good)

    together(*[lambda i=i: load(i) for i in range(3)])
    assert len(results) == 400
    assert all(sum(good) == 1 for good in results.values())
    assert len(held(url)) == 400
    for store in stores:
        store.close()


def test_a_retry_at_another_collector_is_accepted(url):
    one, two = DatabaseStore(url, TASK), DatabaseStore(url, TASK)
    seeds = np.arange(500, dtype=np.uint64)
    found = []
    together(
        lambda: found.append(one.add(seeds, seeds)), lambda: found.append(two.add(seeds, seeds))
    )
    assert all(part.all() for part in found)
    assert len(held(url)) == 500
    one.close()
    two.close()


def test_no_acknowledged_report_is_lost_and_no_token_is_good_twice_when_collectors_die(
    url, tmp_path
):
    TASK.save(tmp_path / "task.json")
    makes, used = Tokens.at(tmp_path / "key", TASK.id), {}

    def remember(body, token):
        used[int.from_bytes(body, "big")] = makes.read(token)

    tokens = tmp_path / "key", lambda: makes.make(1)[0], remember
    for seed, how in ((1, {}), (2, {"tokens": tokens})):
        before = set(held(url)) if seed > 1 else set()
        acknowledged, sent = killed(TASK, tmp_path / "task.json", url, 8, seed, **how)
        found = held(url)
        assert acknowledged <= set(found) <= sent | before
        assert len(found) == len(set(found))
        assert len(acknowledged) > 80
    store = DatabaseStore(url, TASK)
    spent = np.array(list(used.values()), dtype=np.uint64)
    assert not store.add(~np.array(list(used), dtype=np.uint64), spent).any()
    store.close()


@pytest.mark.parametrize("with_tokens", [True, False])
def test_each_failing_statement_and_commit(url, with_tokens):
    def emptied():
        execute(url, "DROP TABLE IF EXISTS riata_pair, riata_report, riata_task, riata_probe")
        return url

    assert every_statement(emptied, with_tokens) > 40


def test_a_server_that_ends_connections_is_not_ready_and_then_is_again(url, server):  # noqa: F811
    store = DatabaseStore(url, TASK)
    store.add(words(1), words(1))
    store.probe()
    name = url.rsplit("/", 1)[1]
    execute(server + "postgres", f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store._engine.dispose()
    for call in (store.probe, lambda: store.add(words(2), words(2))):
        with pytest.raises(DBAPIError):
            call()
    assert len(store) == 1
    execute(server + "postgres", f"ALTER DATABASE {name} RESET default_transaction_read_only")
    store._engine.dispose()
    store.probe()
    assert store.add(words(2, 3), words(2, 1)).tolist() == [True, False]
    assert len(store) == 2
    store.close()


def test_stores_are_merged_with_directories(url, tmp_path):
    for place, report in ((url, 10), (str(tmp_path / "d"), 11)):
        store = open_store(place, TASK)
        store.add(words(report, 20), words(1, 2))
        store.close()
    found = merge_stores([url, str(tmp_path / "d")], TASK)
    assert (found.doubled, sum(found.left_out)) == (1, 1)
    assert len(np.unique(found.reports)) == 2


def test_a_database_that_went_away_says_nothing_of_reports(url, server):  # noqa: F811
    store = DatabaseStore(url, TASK)
    name = url.rsplit("/", 1)[1]
    execute(server + "postgres", f"DROP DATABASE {name} WITH (FORCE)")
    with pytest.raises(DBAPIError) as problem:
        store.add(words(123456789))
    assert "123456789" not in str(problem.value)
    store.close()
