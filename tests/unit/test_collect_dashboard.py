"""The organiser's key opens the dashboard from a header alone, and stands in no address or log."""

import asyncio
import hmac
import logging
from contextlib import asynccontextmanager
from importlib.resources import files

import httpx
import numpy as np
import pytest

from riata.collect.committer import Committer
from riata.collect.dashboard import Dashboard
from riata.collect.service import Collector, application
from riata.local import Task

TASK = Task.from_table(
    {
        "kind": "mean",
        "epsilon": 1.0,
        "features": [{"name": "hours", "kind": "number", "bounds": [0, 24]}],
    }
)


class NoStore:
    """Holds nothing."""

    def __len__(self):
        return 0

    def add(self, seeds, tokens=None):
        return np.ones(len(seeds), dtype=bool)

    def close(self):
        pass


@asynccontextmanager
async def serving(board):
    collector = Collector(TASK, Committer(NoStore()), dashboard=board)
    collector.committer.start()
    transport = httpx.ASGITransport(application(collector), client=("203.0.113.9", 4242))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client
    await collector.committer.close()


def status(board, path, headers=()):
    async def body():
        async with serving(board) as client:
            return (await client.get(path, headers=list(headers))).status_code

    return asyncio.run(body())


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER  "])
def test_the_key_in_a_header_opens(scheme):
    board = Dashboard(0, None)
    assert status(board, "/dashboard/facts", [("Authorization", f"{scheme}{board.key}")]) == 200


@pytest.mark.parametrize(
    "said",
    [
        "", "Bearer", "Bearer ", "Bearer x", "{key}", "Basic {key}", "Bearer{key}", "Bearer {less}",
        "Bearer {key}x", "Bearer x{key}", "Bearer {key} {key}", "Bearer {key},", 'Bearer "{key}"',
        "Bearer {swapped}", "Bearer \u00fc", "Bearer " + "x" * 10_000,
    ],
)  # fmt: skip
def test_everything_else_is_refused(said):
    board = Dashboard(0, None)
    key = board.key
    said = said.format(key=key, less=key[:-1], swapped=key.swapcase())
    headers = [(b"Authorization", said.encode())]
    assert status(board, "/dashboard/facts", headers) == 401


def test_the_key_twice_or_elsewhere_opens_nothing():
    board = Dashboard(0, None)
    right = ("Authorization", f"Bearer {board.key}")
    assert status(board, "/dashboard/facts", [right, right]) == 401
    assert status(board, "/dashboard/facts", [right, ("authorization", "Bearer x")]) == 401
    for other in ("Cookie", "X-Key", "Proxy-Authorization", "Riata-Token"):
        assert status(board, "/dashboard/facts", [(other, f"Bearer {board.key}")]) == 401
    for query in (f"?key={board.key}", f"?{board.key}", f"?access_token={board.key}"):
        assert status(board, f"/dashboard/facts{query}") == 401


def test_no_address_holds_the_key():
    board = Dashboard(0, None)
    right = [("Authorization", f"Bearer {board.key}")]
    for path in (f"/dashboard/{board.key}", f"/dashboard/facts/{board.key}", "/dashboard/"):
        assert status(board, path) == 404
        assert status(board, path, right) == 404
    script = (files("riata.collect") / "static" / "dashboard.js").read_text(encoding="utf-8")
    assert "Authorization" in script
    assert script.count("location.hash") == 1


def test_without_a_dashboard_nothing_opens():
    assert status(None, "/dashboard/facts") == 401
    assert status(None, "/dashboard/facts", [("Authorization", "Bearer ")]) == 401
    assert status(None, "/dashboard/facts", [("Authorization", "Bearer None")]) == 401


def test_keys_differ_and_are_long():
    keys = {Dashboard(0, None).key for _ in range(100)}
    assert len(keys) == 100
    assert all(len(key) >= 24 for key in keys)


def test_keys_are_compared_in_constant_time(monkeypatch):
    board, compared = Dashboard(0, None), []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    for said in (b"", b"Bearer wrong", b"Basic wrong", b"Bearer " + board.key.encode()):
        board.authorizes(said)
    assert [b for _, b in compared] == [board.key.encode()] * 4


def test_the_key_is_not_logged(caplog):
    board = Dashboard(0, None)
    with caplog.at_level(logging.DEBUG):
        status(board, "/dashboard/facts", [("Authorization", f"Bearer {board.key}")])
        status(board, "/dashboard/facts", [("Authorization", f"Basic {board.key}")])
    assert board.key not in caplog.text
