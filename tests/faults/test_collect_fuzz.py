"""Fuzzed requests against `riata collect serve`: it neither falls nor miscounts nor grows."""

import asyncio
import urllib.request

import numpy as np
import pytest

from riata.collect.directory import DirectoryStore, directory_records
from riata.local import Aggregator, Task

from collecting import UNLIMITED, Person, Server
from fuzzing import Fuzzer, memory

pytestmark = pytest.mark.long

TEXT = """
kind = "mean"
epsilon = 1.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
"""
#: Megabytes by which the collector may grow after the first tenth of all requests.
MARGIN = 16.0


@pytest.fixture
def server(tmp_path):
    (tmp_path / "task.toml").write_text(TEXT)
    server = Server(tmp_path / "task.toml", tmp_path / "store", *UNLIMITED)
    server.task = Task.load(tmp_path / "task.toml")
    server.store = tmp_path / "store"
    yield server
    if server.process.poll() is None:
        server.kill()


def stored(server):
    return directory_records(server.store, server.task).seeds


def check(server, fuzzer):
    """It runs, said nothing, and holds what it acknowledged and nothing else, each once."""
    with Person(server.port, server.task.id) as person:
        assert person.send(b"the last") == 201
    fuzzer.sent.add(int.from_bytes(b"the last", "big"))
    metrics = urllib.request.urlopen(f"{server.url}/metrics").read().decode()
    assert server.stop() == ""
    found = stored(server)
    assert fuzzer.acknowledged <= set(found.tolist()), "an acknowledged report is lost"
    assert set(found.tolist()) <= fuzzer.sent, "a report that nobody sent"
    assert len(np.unique(found)) == len(found), "a report counts twice"
    assert f"riata_reports {len(found)}\n" in metrics
    again = DirectoryStore(server.store, server.task)
    assert len(again) == len(found)
    again.close()
    model = Aggregator(server.task, expected=2 * len(found)).add(found).solve()
    assert np.isfinite(model.mean).all()
    assert np.isfinite(model.errors).all()
    return found


def fuzz(server, requests, seed):
    """Send so many requests in ten parts, and say what the collector's memory was after each."""
    fuzzer, memories = Fuzzer(server.task.id, seed), []
    for _ in range(10):
        asyncio.run(fuzzer.run(server.port, requests // 10))
        assert server.process.poll() is None
        memories.append(memory(server.process.pid))
    found = check(server, fuzzer)
    print(
        f"{fuzzer.requests:,} requests on {fuzzer.connections:,} connections, "
        f"{len(fuzzer.acknowledged):,} reports acknowledged, {len(found):,} counted, "
        f"answers {dict(sorted(fuzzer.statuses.items()))}, "
        f"megabytes after each tenth {[round(one, 1) for one in memories]}"
    )
    assert len(fuzzer.acknowledged) > requests / 10
    assert set(fuzzer.statuses) <= {100, 200, 201, 400, 404, 405}
    assert memories[-1] <= memories[0] + MARGIN


def test_twenty_thousand_fuzzed_requests(server):
    fuzz(server, 20_000, 1)


@pytest.mark.slow
def test_a_million_fuzzed_requests(server):
    fuzz(server, 1_000_000, 2)
