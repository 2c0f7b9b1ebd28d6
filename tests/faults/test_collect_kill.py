"""Collectors that are killed under load, or run out of disk: nothing acknowledged is lost."""

import itertools
import os
import resource
import shutil
import subprocess

import numpy as np
import pytest

from riata.collect.stores import open_store, records_at
from riata.collect.tokens import Tokens
from riata.local import Aggregator, Task

from collecting import BROKEN, DOUBLE, UNLIMITED, Person, Server, killed

pytestmark = pytest.mark.long

TEXT = """
kind = "mean"
epsilon = 1.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
"""


@pytest.fixture
def task_file(tmp_path):
    (tmp_path / "task.toml").write_text(TEXT)
    return tmp_path / "task.toml"


def stored(task_file, store):
    """All words in the store, repeats and all."""
    return records_at(str(store), Task.load(task_file)).seeds.tolist()


def check(task_file, store, acknowledged, sent):
    found = stored(task_file, store)
    assert acknowledged <= set(found), "an acknowledged report is lost"
    assert len(found) == len(set(found)), "a report counts twice"
    assert set(found) <= sent, "a report that nobody sent"
    recovered = open_store(str(store), Task.load(task_file))
    assert len(recovered) == len(found)
    recovered.close()


def kill_and_check(task_file, tmp_path, kills, seed, sql=False, **how):
    task = Task.load(task_file)
    store = f"sqlite:///{tmp_path}/reports.db" if sql else tmp_path / "store"
    acknowledged, sent = killed(task, task_file, store, kills, seed, **how)
    assert len(acknowledged) > 10 * kills
    check(task_file, store, acknowledged, sent)


def test_no_acknowledged_report_is_lost_and_none_counts_twice(task_file, tmp_path):
    kill_and_check(task_file, tmp_path, 4, 1)


@pytest.mark.slow
def test_no_acknowledged_report_is_lost_in_a_hundred_kills(task_file, tmp_path):
    kill_and_check(task_file, tmp_path, 100, 2)


def test_none_is_lost_in_a_database_either(task_file, tmp_path):
    kill_and_check(task_file, tmp_path, 3, 7, sql=True)


@pytest.mark.slow
def test_none_is_lost_in_a_database_in_a_hundred_kills(task_file, tmp_path):
    kill_and_check(task_file, tmp_path, 100, 8, sql=True)


@pytest.mark.parametrize("sql", [False, True])
def test_with_tokens_too(task_file, tmp_path, sql):
    spent = kill_with_tokens(task_file, tmp_path, 3, 3, sql)
    assert len(spent) > 30


@pytest.mark.slow
@pytest.mark.parametrize("sql", [False, True])
def test_with_tokens_too_in_a_hundred_kills(task_file, tmp_path, sql):
    kill_with_tokens(task_file, tmp_path, 100, 9, sql)


def kill_with_tokens(task_file, tmp_path, kills, seed, sql):
    """Kill, and try each token whose report was acknowledged for another report."""
    key, task = tmp_path / "key", Task.load(task_file)
    makes, used = Tokens.at(key, task.id), {}

    def remember(body, token):
        used[int.from_bytes(body, "big")] = makes.read(token)

    tokens = key, lambda: makes.make(1)[0], remember
    kill_and_check(task_file, tmp_path, kills, seed, sql=sql, tokens=tokens)
    store = open_store(f"sqlite:///{tmp_path}/reports.db" if sql else str(tmp_path / "store"), task)
    spent = np.array(list(used.values()), dtype=np.uint64)
    assert not store.add(~np.array(list(used), dtype=np.uint64), spent).any(), "a token twice"
    store.close()
    return used


@pytest.mark.slow
def test_the_kills_would_find_a_report_that_is_acknowledged_too_soon(task_file, tmp_path):
    with pytest.raises(AssertionError, match="lost"):
        kill_and_check(task_file, tmp_path, 4, 4, code=BROKEN)


@pytest.mark.slow
def test_the_kills_would_find_a_report_that_counts_twice(task_file, tmp_path):
    with pytest.raises(AssertionError, match="twice"):
        kill_and_check(task_file, tmp_path, 6, 5, code=DOUBLE)


def fill(task_file, server):
    """Send until there is no room, and a little longer."""
    acknowledged, refused = set(), []
    person = Person(server.port, Task.load(task_file).id)
    rng = np.random.default_rng(6)
    for attempt in itertools.count():
        body = rng.bytes(8 * 500)
        status = person.send(body)
        assert status in (201, 507)
        if status == 201:
            acknowledged.update(np.frombuffer(body, ">u8").tolist())
        else:
            refused.append(body)
            # what is known already is durable, room or not
            known = np.array(sorted(acknowledged)[:9], ">u8")
            assert person.send(known.tobytes()) == 201
        assert attempt < 5000
        if len(refused) == 20:
            return acknowledged, refused, person


def test_a_file_that_may_not_grow_is_a_full_disk(task_file, tmp_path):
    store = tmp_path / "store"

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    server = Server(task_file, store, *UNLIMITED, before=limited)
    person = Person(server.port, Task.load(task_file).id)
    acknowledged = set()
    for i in range(60):
        body = np.arange(500 * i, 500 * i + 500, dtype=">u8").tobytes()
        if person.send(body) == 201:
            acknowledged.update(range(500 * i, 500 * i + 500))
    assert 0 < len(acknowledged) < 13_000
    person.close()
    assert server.stop() == ""
    assert set(stored(task_file, store)) == acknowledged


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("mount"), reason="mounts a small disk")
def test_a_full_disk_answers_507_and_stays_consistent(task_file, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        (disk / "ballast").write_bytes(bytes(100_000))
        server = Server(task_file, disk / "store", *UNLIMITED)
        acknowledged, refused, person = fill(task_file, server)
        assert len(acknowledged) > 10_000
        assert set(stored(task_file, disk / "store")) == acknowledged
        (disk / "ballast").unlink()
        for body in refused[:10]:  # there is room again: the same bytes are accepted
            assert person.send(body) == 201
            acknowledged.update(np.frombuffer(body, ">u8").tolist())
        person.close()
        server.kill()
        found = stored(task_file, disk / "store")
        assert set(found) == acknowledged
        assert len(found) == len(acknowledged)
        sums = Aggregator(Task.load(task_file)).add(np.array(found, dtype=np.uint64))
        assert np.isfinite(sums.solve().mean).all()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
