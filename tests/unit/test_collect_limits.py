"""What one address may send, what all may send without tokens, and how refusals are counted."""

import asyncio
import errno
import re

import httpx
import numpy as np
import pytest
from test_collect_service import BINARY, LAST_DAY, TASK, URL, Memory, report, run

from riata.collect import address_limits as module
from riata.collect.address_limits import Limits, Proxies, ReportRate, address_digest
from riata.collect.committer import CapReached, Committer
from riata.collect.directory import DirectoryStore
from riata.collect.service import Collector, application
from riata.collect.sql import DatabaseStore
from riata.collect.tokens import Tokens
from riata.errors import CollectError


class Clock:
    def __init__(self):
        self.now = 1e6

    def __call__(self):
        return self.now


def test_an_address_may_send_so_many_in_an_hour_and_then_as_they_come_free():
    clock = Clock()
    rate = ReportRate(100, clock)
    assert all(rate.take("192.0.2.1", 1) == 0 for _ in range(100))
    assert rate.take("192.0.2.1", 1) == pytest.approx(36)
    assert rate.take("192.0.2.2", 100) == 0  # another address
    clock.now += 36
    assert rate.take("192.0.2.1", 1) == 0
    assert rate.take("192.0.2.1", 2) == pytest.approx(72)
    clock.now += 3600 * 50
    assert rate.take("192.0.2.1", 100) == 0
    assert rate.take("192.0.2.1", 1) > 0
    rate.refund("192.0.2.1", 5)
    assert rate.take("192.0.2.1", 5) == 0


def test_no_sequence_gets_more_than_the_bucket_and_what_flows_in():
    rng, clock = np.random.default_rng(1), Clock()
    rate, begun, granted = ReportRate(500, clock), clock.now, 0
    for _ in range(5000):
        clock.now += rng.exponential(2)
        n = int(rng.integers(1, 60))
        granted += n * (rate.take("192.0.2.1", n) == 0)
        assert granted <= 500 + 500 * (clock.now - begun) / 3600 + 1e-6
    assert granted > 0.9 * 500 * (clock.now - begun) / 3600


def test_addresses_of_one_network_are_one_and_names_are_one():
    assert address_digest("2001:db8:1:2::1") == address_digest("2001:db8:1:2:ffff::9")
    assert address_digest("2001:db8:1:2::1") != address_digest("2001:db8:1:3::1")
    assert address_digest("::ffff:192.0.2.1") == address_digest("192.0.2.1")
    assert address_digest("192.0.2.1") != address_digest("192.0.2.2")
    assert address_digest(None) == address_digest("unknown") == address_digest("_x")


def test_the_memory_of_addresses_has_an_end_and_forgets_who_sent_least(monkeypatch):
    monkeypatch.setattr(module, "_MOST_ADDRESSES", 100)
    clock = Clock()
    rate = ReportRate(10, clock)
    assert rate.take("192.0.2.1", 10) == 0
    for i in range(5000):
        assert rate.take(f"10.{i // 250}.{i % 250}.1", 1) == 0
        assert len(rate._full_at) <= 100
    assert rate.take("192.0.2.1", 1) > 0


def test_defaults_of_limits():
    with_tokens = Limits.with_defaults(tokens=True, people=50)
    assert (with_tokens.reports_per_hour, with_tokens.most_reports) == (0, 0)
    assert with_tokens.connections == 100
    assert Limits.with_defaults(tokens=False) == Limits(100, 10_000, 1_000_000)
    assert Limits.with_defaults(tokens=False, people=50_000).most_reports == 500_000
    assert Limits.with_defaults(tokens=False, people=5).most_reports == 10_000
    asked = {"connections": 0, "reports_per_hour": 7, "most_reports": 0}
    assert Limits.with_defaults(tokens=True, **asked) == Limits(0, 7, 0)
    assert str(Limits(0, 7, 0)) == "7 reports an hour from one address"
    assert "in all" in str(Limits.with_defaults(tokens=False))


def test_proxies_are_addresses_and_not_everybody():
    proxies = Proxies(["10.0.0.0/8", "::1"])
    assert "10.9.8.7" in proxies
    assert "::1" in proxies
    assert "11.0.0.1" not in proxies
    assert "unknown" not in proxies
    assert not Proxies()
    for name in ("*", "proxy", "10.0.0.1/8", ""):
        with pytest.raises(CollectError, match="address or a network"):
            Proxies([name])
    for name in ("0.0.0.0/0", "::/0"):
        with pytest.raises(CollectError, match="everybody"):
            Proxies([name])


class Serving:
    """A collector without a network, for senders of many addresses."""

    def __init__(self, store, limits, **more):
        self.collector = Collector(
            TASK, Committer(store, limits.most_reports or None), today=lambda: LAST_DAY,
            limits=limits, **more,
        )  # fmt: skip
        if limits.reports_per_hour:  # a slow machine must not gain time
            self.collector._rate = ReportRate(limits.reports_per_hour, Clock())
        self.app = application(self.collector)

    async def __aenter__(self):
        self.collector.committer.start()
        return self

    async def __aexit__(self, *problem):
        await self.collector.committer.close()

    async def post(self, content, address="203.0.113.9", **headers):
        transport = httpx.ASGITransport(self.app, client=(address, 4242))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.post(URL, content=content, headers=BINARY | headers)

    async def get(self, path):
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get(path)

    async def metrics(self):
        text = (await self.get("/metrics")).text
        return {name: int(n) for name, n in re.findall(r"^(\S+) (\d+)$", text, re.M)}


def test_one_address_is_slowed_down_and_others_are_not():
    async def body():
        async with Serving(Memory(), Limits(reports_per_hour=50)) as serving:
            answers = [await serving.post(report(n)) for n in range(60)]
            assert [one.status_code for one in answers] == [201] * 50 + [429] * 10
            assert 1 <= int(answers[-1].headers["retry-after"]) <= 72
            assert answers[-1].json() == {
                "error": "Too many reports came from this address. Send the same bytes again later."
            }
            assert (await serving.post(report(100), "203.0.113.10")).status_code == 201
            assert (await serving.post(bytes(8 * 51), "203.0.113.11")).status_code == 413
            assert (await serving.post(bytes(8 * 50), "203.0.113.11")).status_code == 201
            assert (await serving.post(report(7), "203.0.113.11")).status_code == 429
            # the header of a stranger is not believed
            forged = {"x-forwarded-for": "198.51.100.1"}
            assert (await serving.post(report(101), **forged)).status_code == 429
            counts = await serving.metrics()
            assert counts['riata_refusals_total{reason="rate"}'] == 12
            assert counts['riata_refusals_total{reason="too_many_at_once"}'] == 1
            assert counts["riata_refused_total"] == 13
            assert counts["riata_reports"] == 51

    run(body)


def test_what_the_collector_could_not_keep_was_not_sent():
    async def body():
        store = Memory()
        async with Serving(store, Limits(reports_per_hour=5)) as serving:
            for problem, status in ((OSError(errno.ENOSPC, ""), 507), (ValueError(), 503)):
                store.problem = problem
                for n in range(20):
                    assert (await serving.post(report(n))).status_code == status
            store.problem = None
            assert [(await serving.post(report(n))).status_code for n in range(6)] == [
                *[201] * 5,
                429,
            ]
            counts = await serving.metrics()
            assert counts['riata_errors_total{reason="no_room"}'] == 20
            assert counts['riata_errors_total{reason="store"}'] == 20
            assert counts["riata_refused_total"] == 1

    run(body)


@pytest.fixture(params=["directory", "sqlite"])
def store(request, tmp_path):
    if request.param == "directory":
        return DirectoryStore(tmp_path / "d", TASK)
    return DatabaseStore(f"sqlite:///{tmp_path}/r.db", TASK)


def test_the_store_has_an_end_and_repeats_are_still_accepted(store):
    async def body():
        async with Serving(store, Limits(most_reports=10)) as serving:
            many = b"".join(report(n) for n in range(8))
            assert (await serving.post(many)).status_code == 201
            assert (await serving.post(b"".join(map(report, (8, 9, 10))))).status_code == 507
            assert len(store) == 8
            assert (await serving.post(many + report(8))).status_code == 201
            assert (await serving.post(report(9))).status_code == 201
            statuses = [
                (await serving.post(report(n), f"203.0.113.{n}")).status_code for n in range(15)
            ]
            assert statuses == [201] * 10 + [507] * 5
            counts = await serving.metrics()
            assert counts["riata_reports"] == len(store) == 10
            assert counts['riata_refusals_total{reason="cap"}'] == 6

    run(body)


def test_the_cap_holds_for_requests_that_come_at_once(store):
    async def body():
        committer = Committer(store, 25)
        committer.start()
        waiting = [committer.add(report(n // 2)) for n in range(100)]
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert len(store) == committer.counted == 25
        accepted = {n // 2 for n, one in enumerate(found) if one is True}
        assert len(accepted) == 25
        assert all(isinstance(one, CapReached) for one in found if one is not True)
        assert all((n // 2 in accepted) == (one is True) for n, one in enumerate(found))
        await committer.close()

    run(body)


def test_refusals_are_counted_by_reason(tmp_path):
    async def body():
        tokens = Tokens(bytes(32), TASK.id)
        made = tokens.make(2)
        async with Serving(DirectoryStore(tmp_path, TASK), Limits(), tokens=tokens) as serving:
            assert (await serving.post(b"x")).status_code == 400
            assert (await serving.post(bytes(16), **{"riata-token": made[0]})).status_code == 400
            assert (await serving.post(report(1))).status_code == 400
            assert (await serving.post(report(1), **{"riata-token": made[0]})).status_code == 201
            assert (await serving.post(report(2), **{"riata-token": made[0]})).status_code == 400
            counts = await serving.metrics()
        reasons = {
            name.split('"')[1]: n for name, n in counts.items() if "refusals_total{" in name and n
        }
        assert reasons == {"form": 2, "token": 1, "used_token": 1}
        assert counts["riata_refused_total"] == 4
        assert counts["riata_reports"] == 1

    run(body)


def test_counts_are_right_after_each_fault_and_after_opening_again(tmp_path, monkeypatch):
    async def body():
        store = DirectoryStore(tmp_path, TASK)
        async with Serving(store, Limits(), disk=tmp_path) as serving:
            assert (await serving.post(report(1))).status_code == 201
            with monkeypatch.context() as patch:
                patch.setattr("os.fsync", lambda file: (_ for _ in ()).throw(OSError(5, "no")))
                assert (await serving.post(report(2))).status_code == 503
                assert (await serving.get("/ready")).status_code == 503
                assert (await serving.get("/health")).status_code == 200
            counts = await serving.metrics()
            assert counts["riata_reports"] == 1
            assert counts['riata_errors_total{reason="store"}'] == 1
            assert counts["riata_disk_free_bytes"] > 0
            assert (await serving.get("/ready")).text == "ready\n"
            assert (await serving.post(report(2))).status_code == 201
        async with Serving(DirectoryStore(tmp_path, TASK), Limits()) as serving:
            counts = await serving.metrics()
            assert counts["riata_reports"] == 2
            assert "riata_disk_free_bytes" not in counts

    run(body)


def test_many_who_ask_whether_it_is_ready_share_one_answer(tmp_path):
    async def body():
        store, asked = DirectoryStore(tmp_path, TASK), []
        real = store.probe
        store.probe = lambda: (asked.append(1), real())[1]
        async with Serving(store, Limits()) as serving:
            answers = await asyncio.gather(*(serving.get("/ready") for _ in range(50)))
            assert {one.status_code for one in answers} == {200}
            assert len(asked) < 25
        assert (await serving.get("/ready")).status_code == 503  # it has stopped

    run(body)
