"""Stores that are read together: one report for each token, whichever way they are read."""

import itertools
import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from riata.cli.main import app, main
from riata.collect.directory import DirectoryStore
from riata.collect.merging import merge
from riata.collect.store import Records
from riata.collect.stores import merge_stores, open_store, records_at
from riata.collect.tokens import Tokens
from riata.errors import InvalidArgument
from riata.local import Aggregator, Task

TEXT = """
kind = "mean"
epsilon = 4.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
"""
TASK = Task.read(TEXT, toml=True)


def words(*numbers):
    return np.array(numbers, dtype=np.uint64)


def records(pairs, reports=()):
    """From a token to its report, and reports without tokens."""
    return Records(words(*reports), words(*(r for _, r in pairs)), words(*(t for t, _ in pairs)))


def spread(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def places(folder, kinds):
    """A store of each kind: a directory, a database, or a database with others."""
    for i, kind in enumerate(kinds):
        yield str(folder / f"d{i}") if kind == "directory" else f"sqlite:///{folder}/{i}.db"


def test_one_report_of_each_token_counts():
    found = merge([records([(1, 10), (2, 20)]), records([(1, 11), (3, 30)]), records([(1, 12)])])
    assert found.doubled == 1
    assert found.tokens.tolist() == [1, 2, 3]
    assert sum(found.left_out) == 2
    assert set(found.reports.tolist()) - {10, 11, 12} == {20, 30}
    assert len({10, 11, 12} & set(found.reports.tolist())) == 1


def test_a_retry_at_another_collector_is_no_double():
    found = merge([records([(1, 10)]), records([(1, 10)]), records([(2, 20), (1, 10)])])
    assert (found.doubled, found.left_out) == (0, (0, 0, 0))
    assert set(found.reports.tolist()) == {10, 20}


def test_a_report_stays_that_another_token_came_with():
    for report in range(20, 60):  # whichever of the two is chosen
        found = merge([records([(1, 10), (2, report)]), records([(1, report)])])
        assert found.doubled == 1
        assert report in found.reports
        assert len(set(found.reports.tolist())) <= 2


def test_nothing_and_reports_without_tokens():
    nothing = merge([])
    assert len(nothing.reports) == len(nothing.tokens) == nothing.doubled == 0
    assert nothing.warning([]) is None
    found = merge([records([], [5, 6]), records([(1, 7)], [6])])
    assert sorted(found.reports.tolist()) == [5, 6, 6, 7]
    assert found.doubled == 0


def test_which_report_counts_depends_neither_on_order_nor_on_what_a_sender_chooses():
    tokens = spread(2000)
    stores = [
        records(list(zip(tokens.tolist(), reports.tolist(), strict=True)))
        for reports in (np.sort(spread(2000, 1)), np.arange(2000, dtype=np.uint64), spread(2000, 3))
    ]
    results = [set(merge(list(order)).reports.tolist()) for order in itertools.permutations(stores)]
    assert all(one == results[0] for one in results)
    assert len(results[0]) == 2000
    # of two stores each is chosen about as often: 1,000 of 2,000, standard deviation 22
    both = merge(stores[:2])
    assert both.doubled == 2000
    assert min(both.left_out) > 1000 - 7 * 23


def test_random_stores_against_a_plain_loop():
    rng = np.random.default_rng(5)
    for _ in range(60):
        stores, held = [], {}
        for _ in range(rng.integers(1, 5)):
            pairs = {int(t): int(rng.integers(0, 40)) for t in rng.integers(0, 15, 8)}
            stores.append(records(list(pairs.items()), rng.integers(100, 110, 3).tolist()))
            for token, report in pairs.items():
                held.setdefault(token, set()).add(report)
        found = merge(stores)
        counted = {r for r in found.reports.tolist() if r < 100}
        assert found.doubled == sum(len(reports) > 1 for reports in held.values())
        assert found.tokens.tolist() == sorted(held)
        assert all(counted & reports for reports in held.values())
        assert counted <= set().union(*held.values())
        assert len(counted) <= len(held)
        assert {r for s in stores for r in s.reports.tolist()} <= set(found.reports.tolist())


@pytest.mark.parametrize("kinds", [["directory"] * 3, ["sqlite"] * 2, ["directory", "sqlite"]])
def test_stores_of_each_kind_are_read_together(tmp_path, kinds):
    tokens = Tokens(bytes(32), TASK.id)
    shared = words(*(tokens.read(one) for one in tokens.make(30)))
    where = list(places(tmp_path, kinds))
    for i, place in enumerate(where):
        store = open_store(place, TASK)
        assert store.add(spread(30, i), shared).all()
        assert store.add(spread(5, 50 + i), spread(5, 90 + i)).all()
        assert store.add(spread(7, 7)).all()  # without tokens, the same everywhere
        store.close()
    found = merge_stores(where, TASK)
    assert found.doubled == 30
    assert sum(found.left_out) == 30 * (len(where) - 1)
    assert len(np.unique(found.reports)) == 30 + 5 * len(where) + 7
    assert "30 tokens" in found.warning(where)
    assert where[0] in found.warning(where)


def served(folder, name, pairs):
    store = DirectoryStore(folder / name, TASK)
    for token, report in pairs:
        assert store.add(words(report), words(token)).all()
    store.close()
    return folder / name


@pytest.fixture
def task_file(tmp_path):
    (tmp_path / "task.toml").write_text(TEXT)
    return tmp_path / "task.toml"


def good(*arguments):
    done = CliRunner().invoke(app, ["collect", *map(str, arguments)])
    assert done.exit_code == 0, (done.output, done.exception)
    return " ".join(done.output.split())


def test_every_command_that_reads_several_stores_counts_a_token_once(tmp_path, task_file):
    one = served(tmp_path, "one", [(1, 10**18), (2, 2 * 10**18)])
    two = served(tmp_path, "two", [(1, 3 * 10**18)])
    both = ("--store", one, "--store", two)
    facts = json.loads(good("status", task_file, *both, "--json"))
    assert (facts["reports"], facts["doubled_tokens"], facts["left_out"]) == (2, 1, 1)
    for output in (
        good("status", task_file, *both),
        good("export", task_file, tmp_path / "shard", *both),
        good("learn", task_file, *both, "--out", tmp_path / "out"),
    ):
        assert "1 token came with different reports" in output
    assert Aggregator.load(tmp_path / "shard").count == 2
    assert json.loads((tmp_path / "out" / "model.json").read_text())["reports"] == 2
    assert "token" not in good("status", task_file, "--store", one)


def test_sums_of_the_same_token_are_not_added(tmp_path, task_file, monkeypatch, capsys):
    one = served(tmp_path, "one", [(1, 10**18), (2, 2 * 10**18)])
    two = served(tmp_path, "two", [(1, 3 * 10**18)])
    three = served(tmp_path, "three", [(3, 4 * 10**18)])
    for place in (one, two, three):
        good("export", task_file, f"{place}.shard", "--store", place)
    out = tmp_path / "out"
    apart = ("--shard", f"{one}.shard", "--shard", f"{three}.shard", "--out", out)
    assert "3 reports" in good("learn", task_file, *apart)
    for wrong in (
        ["--shard", f"{one}.shard", "--shard", f"{two}.shard"],
        ["--store", str(two), "--shard", f"{one}.shard"],
    ):
        monkeypatch.setattr(sys, "argv", ["riata", "collect", "learn", str(task_file), *wrong])
        with pytest.raises(SystemExit):
            main()
        assert "--store" in capsys.readouterr().err


def test_merged_sums_know_all_their_tokens(tmp_path):
    sums = [Aggregator(TASK, expected=10).add(words(10**18 + i)) for i in range(3)]
    for i, one in enumerate(sums):
        one.tokens = words(i, 7 + i)
    merged = sums[0].merge(sums[1])
    merged.save(tmp_path / "sums")
    again = Aggregator.load(tmp_path / "sums")
    assert again.tokens.tolist() == [0, 1, 7, 8]
    sums[2].tokens = words(8, 9)
    with pytest.raises(InvalidArgument, match="1 token"):
        again.merge(sums[2])
    assert again.count == 2


def test_tokens_are_kept_as_numbers_that_nobody_knows_without_the_key(tmp_path):
    tokens = Tokens(b"k" * 32, TASK.id)
    made = tokens.make(20)
    numbers = words(*(tokens.read(one) for one in made))
    assert len(np.unique(numbers)) == 20
    for place in places(tmp_path, ["directory", "sqlite"]):
        store = open_store(place, TASK)
        store.add(spread(20), numbers)
        store.close()
    import base64

    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for one in made:
        data = base64.urlsafe_b64decode(one)
        assert data[:8] not in kept
        assert data[8:] not in kept
    again = Tokens(b"k" * 32, TASK.id)
    assert [again.read(one) for one in made] == numbers.tolist()
    assert Tokens(b"l" * 32, TASK.id).read(made[0]) is None


def test_reports_of_one_store_are_read_while_they_come(tmp_path):
    store = DirectoryStore(tmp_path, TASK)
    store.add(words(1), words(1))
    assert records_at(str(tmp_path), TASK).tokens.tolist() == [1]
    store.add(words(2), words(2))
    assert records_at(str(tmp_path), TASK).tokens.tolist() == [1, 2]
    store.close()
