"""The endpoints: what is accepted is durable, what is not gets one answer, nothing is told."""

import asyncio
import datetime
import errno
import json
import logging
from contextlib import asynccontextmanager

import httpx
import numpy as np
import pytest

from riata.collect import committer, service
from riata.collect.committer import Committer
from riata.collect.dashboard import Dashboard
from riata.collect.directory import DirectoryStore
from riata.collect.openapi import description
from riata.collect.service import MOST_REPORTS, Collector, application
from riata.collect.tokens import Tokens
from riata.local import Task

TABLE = {
    "kind": "mean",
    "epsilon": 1.0,
    "title": "Sleep",
    "deadline": "2030-06-01",
    "features": [{"name": "hours", "kind": "number", "bounds": [0, 24]}],
}
TASK = Task.from_table(TABLE)
URL = f"/tasks/{TASK.id}/reports"
BINARY = {"content-type": "application/octet-stream"}
LAST_DAY = datetime.date(2030, 6, 1)


class Memory:
    """A store that can be told to fail or to wait."""

    def __init__(self):
        self.seeds, self.batches, self.problem, self.delay = set(), [], None, 0.0

    def __len__(self):
        return len(self.seeds)

    def add(self, seeds, tokens=None):
        if self.problem is not None:
            raise self.problem
        self.batches.append(seeds.tolist())
        self.seeds |= set(seeds.tolist())
        return np.ones(len(seeds), dtype=bool)

    def close(self):
        self.batches.append("closed")


def run(body):
    """Run a coroutine function in an event loop of its own."""
    return asyncio.run(body())


@asynccontextmanager
async def serving(store, day=LAST_DAY, **more):
    collector = Collector(TASK, Committer(store), today=lambda: day, **more)
    app = application(collector)
    collector.committer.start()
    transport = httpx.ASGITransport(app, client=("203.0.113.9", 4242))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client, collector
    await collector.committer.close()


def report(number):
    return number.to_bytes(8, "big")


def test_one_report_and_a_batch_are_durable_before_the_answer(tmp_path):
    async def body():
        store = DirectoryStore(tmp_path, TASK)
        async with serving(store) as (client, collector):
            answer = await client.post(URL, content=report(7), headers=BINARY)
            assert (answer.status_code, answer.content) == (201, b"")
            file = tmp_path / "00000001.reports"
            assert file.read_bytes().endswith(report(7))
            many = b"".join(report(i) for i in range(MOST_REPORTS))
            assert (await client.post(URL, content=many, headers=BINARY)).status_code == 201
            assert collector.committer.counted == len(store) == MOST_REPORTS
            # a replay has no effect, and its sender cannot tell
            replay = await client.post(URL, content=report(7), headers=BINARY)
            assert (replay.status_code, replay.headers) == (answer.status_code, answer.headers)
            assert len(store) == MOST_REPORTS

    run(body)


def refusals():
    good = {"url": URL, "content": report(1), "headers": BINARY}
    length = {**BINARY, "content-length": "8"}

    async def chunked():
        yield report(1)

    return {
        "no bytes": good | {"content": b""},
        "seven bytes": good | {"content": bytes(7)},
        "nine bytes": good | {"content": bytes(9)},
        "too many": good | {"content": bytes(8 * MOST_REPORTS + 8)},
        "another task": good | {"url": f"/tasks/{'0' * 64}/reports"},
        "no task": good | {"url": "/tasks//reports"},
        "a path in between": good | {"url": f"/tasks/{TASK.id}/x/reports"},
        "upper case": good | {"url": f"/tasks/{TASK.id.upper()}/reports"},
        "no host": good | {"headers": {**BINARY, "host": ""}},
        "two hosts": good | {"headers": [*BINARY.items(), ("host", "x"), ("host", "x")]},
        "another type": good | {"headers": {"content-type": "text/plain"}},
        "no type": good | {"headers": {}},
        "a type with more": good | {"headers": {"content-type": "application/octet-stream; a=b"}},
        "chunked": good | {"content": chunked()},
        "length and chunks": good | {"headers": {**length, "transfer-encoding": "chunked"}},
        "longer than said": good | {"headers": length, "content": bytes(16)},
        "shorter than said": good | {"headers": {**BINARY, "content-length": "16"}},
        "a sign": good | {"headers": {**BINARY, "content-length": "+8"}},
        "a blank": good | {"headers": {**BINARY, "content-length": " 8"}},
        "underscores": good | {"headers": {**BINARY, "content-length": "1_6"}},
        "other digits": good | {"headers": [*BINARY.items(), (b"content-length", "٨".encode())]},
        "a huge length": good | {"headers": {**BINARY, "content-length": "9" * 5000}},
        "two lengths": good
        | {"headers": [*BINARY.items(), ("content-length", "8"), ("content-length", "8")]},
    }


def test_every_refusal_has_the_same_answer():
    async def body():
        store, answers = Memory(), {}
        async with serving(store) as (client, collector):
            for name, request in refusals().items():
                answers[name] = await client.post(**request)
            assert collector.refused == len(answers)
        async with serving(store, day=LAST_DAY + datetime.timedelta(1)) as (client, _):
            answers["late"] = await client.post(URL, content=report(1), headers=BINARY)
        tokens = Tokens(bytes(32), TASK.id)
        async with serving(store, tokens=tokens) as (client, _):
            answers["no token"] = await client.post(URL, content=report(1), headers=BINARY)
            for name, token in {
                "bad": "x" * 32,
                "other": Tokens(b"1" * 32, TASK.id).make(1)[0],
            }.items():
                headers = BINARY | {"riata-token": token}
                answers[name] = await client.post(URL, content=report(1), headers=headers)
            headers = BINARY | {"riata-token": tokens.make(1)[0]}
            answers["two for one"] = await client.post(URL, content=bytes(16), headers=headers)
        for name, answer in answers.items():
            assert answer.status_code == 400, name
            assert answer.content == b'{"error": "The reports were not accepted."}', name
            assert answer.headers == answers["late"].headers, name
        assert store.seeds == set()

    run(body)


def test_a_token_counts_once_and_a_retry_is_accepted(tmp_path):
    async def body():
        tokens = Tokens(bytes(32), TASK.id)
        async with serving(DirectoryStore(tmp_path, TASK), tokens=tokens) as (client, collector):
            headers = BINARY | {"riata-token": tokens.make(1)[0]}
            sent = [client.post(URL, content=report(n), headers=headers) for n in (1, 1, 2, 1)]
            found = await asyncio.gather(*sent)
            assert sorted(a.status_code for a in found) in (
                [201, 201, 201, 400],
                [201, 400, 400, 400],
            )
            first = 1 if found[0].status_code == 201 else 2
            again = await client.post(URL, content=report(first), headers=headers)
            assert again.status_code == 201
            other = await client.post(URL, content=report(3 - first), headers=headers)
            assert other.status_code == 400
            assert collector.committer.counted == 1

    run(body)


def test_the_rest_of_a_body_may_come_late_but_not_never(monkeypatch):
    monkeypatch.setattr(service, "BODY_SECONDS", 0.05)

    async def body():
        collector = Collector(TASK, Committer(Memory()), today=lambda: LAST_DAY)
        collector.committer.start()
        scope = {
            "type": "http",
            "path": URL,
            "http_version": "1.1",
            "headers": [(b"host", b"x"), *((k.encode(), v.encode()) for k, v in BINARY.items())],
        }
        scope["headers"].append((b"content-length", b"16"))

        async def status(*messages):
            queue, sent = list(messages), []

            async def receive():
                if not queue:
                    await asyncio.sleep(60)
                return queue.pop(0)

            async def send(message):
                sent.append(message)

            await collector.upload(scope, receive, send)
            return sent[0]["status"]

        def part(data, more):
            return {"type": "http.request", "body": data, "more_body": more}

        gone = {"type": "http.disconnect"}
        assert await status(part(bytes(9), True), part(bytes(7), False)) == 201
        assert await status(part(bytes(9), True), part(b"", True), part(bytes(7), False)) == 201
        assert await status(part(bytes(9), True)) == 400  # and then nothing
        assert await status(part(bytes(9), True), gone) == 400
        assert await status(part(bytes(16), True), gone) == 400
        assert await status(gone) == 400
        assert await status(part(bytes(9), True), part(bytes(8), True)) == 400
        await collector.committer.close()

    run(body)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_507_and_the_same_bytes_are_accepted_later(number):
    async def body():
        store = Memory()
        async with serving(store) as (client, collector):
            store.problem = OSError(number, "full")
            sent = [client.post(URL, content=report(n), headers=BINARY) for n in range(20)]
            assert {answer.status_code for answer in await asyncio.gather(*sent)} == {507}
            assert collector.committer.counted == 0
            assert collector.refused == 0
            store.problem = None
            assert (await client.post(URL, content=report(3), headers=BINARY)).status_code == 201
            assert collector.committer.counted == 1

    run(body)


def test_a_broken_store_is_503_and_its_words_are_not_told(caplog):
    async def body():
        store = Memory()
        async with serving(store) as (client, _):
            store.problem = RuntimeError("report 00000000075bcd15 of 203.0.113.9")
            answer = await client.post(URL, content=report(123456789), headers=BINARY)
            assert answer.status_code == 503
            store.problem = None
            assert (await client.post(URL, content=report(3), headers=BINARY)).status_code == 201
            return answer.text

    with caplog.at_level(logging.DEBUG):
        text = run(body)
    ours = [record for record in caplog.records if record.name.startswith("riata")]
    assert [record.getMessage() for record in ours] == ["Reports could not be kept: RuntimeError."]
    for told in (text, *(record.getMessage() for record in ours)):
        assert "75bcd15" not in told
        assert "203.0.113.9" not in told


def test_a_store_that_stays_broken_is_told_once_and_again_after_it_worked(caplog):
    async def body():
        store = Memory()
        async with serving(store) as (client, _):
            for _ in range(2):
                store.problem = RuntimeError("no")
                for n in range(5):
                    answer = await client.post(URL, content=report(n), headers=BINARY)
                    assert answer.status_code == 503
                store.problem = None
                answer = await client.post(URL, content=report(9), headers=BINARY)
                assert answer.status_code == 201

    with caplog.at_level(logging.DEBUG):
        run(body)
    assert len([record for record in caplog.records if record.name.startswith("riata")]) == 2


def test_large_bodies_do_not_fill_the_memory_and_small_ones_pass(monkeypatch):
    monkeypatch.setattr(service, "MOST_HELD", 20_000)

    async def body():
        store, gate = Memory(), asyncio.Event()
        async with serving(store) as (client, collector):

            async def slow():
                yield bytes(9_600)
                await gate.wait()

            length = BINARY | {"content-length": "9608"}
            held = [
                asyncio.ensure_future(client.post(URL, content=slow(), headers=length))
                for _ in range(2)
            ]
            while collector._held < 2 * 9608:
                await asyncio.sleep(0.001)
            large = await client.post(URL, content=bytes(9_600), headers=BINARY)
            assert large.status_code == 507
            small = await client.post(URL, content=report(1), headers=BINARY)
            assert small.status_code == 201
            gate.set()
            assert [one.status_code for one in await asyncio.gather(*held)] == [400, 400]
            large = await client.post(URL, content=bytes(9_600), headers=BINARY)
            assert large.status_code == 201
            assert collector._held == 0

    run(body)


def test_what_is_written_together_has_an_end(monkeypatch):
    monkeypatch.setattr(committer, "_AT_ONCE", 40)

    async def body():
        store = Memory()
        committer = Committer(store)
        committer.start()
        assert all(await asyncio.gather(*(committer.add(report(n)) for n in range(23))))
        assert [len(batch) for batch in store.batches] == [5, 5, 5, 5, 3]
        assert committer.counted == 23
        more = [committer.add(report(n)) for n in range(30, 37)]
        await committer.close()
        assert all(one.result() for one in more)
        assert store.batches[5:] == [[30, 31, 32, 33, 34], [35, 36], "closed"]

    run(body)


def test_nothing_that_is_kept_or_logged_tells_who_sent_it(tmp_path, caplog):
    async def body():
        headers = BINARY | {"user-agent": "Netscape/4.0", "x-forwarded-for": "198.51.100.77"}
        async with serving(DirectoryStore(tmp_path, TASK)) as (client, _):
            for content in (report(1), b"wrong"):
                answer = await client.post(URL, content=content, headers=headers)
                for told in (str(answer.headers), answer.text):
                    assert "203.0.113" not in told
                    assert "198.51" not in told
            return [(await client.get(path)).text for path in ("/metrics", "/health", "/task")]

    with caplog.at_level(logging.DEBUG, logger="riata"):
        texts = run(body)
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    texts += [
        kept.decode("latin-1"),
        *(r.getMessage() for r in caplog.records if "httpx" not in r.name),
    ]
    for text in texts:
        for trace in ("203.0.113", "198.51", "Netscape", "4242"):
            assert trace not in text


def test_requests_that_wait_are_written_together_and_after_a_stop_none_is():
    async def body():
        store, gate = Memory(), asyncio.Event()
        loop = asyncio.get_running_loop()
        real = store.add

        def slow(seeds, tokens=None):
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result(10)
            return real(seeds, tokens)

        store.add = slow
        committer = Committer(store)
        committer.start()
        first = asyncio.ensure_future(committer.add(report(0)))
        await asyncio.sleep(0.05)
        others = [asyncio.ensure_future(committer.add(report(n))) for n in range(1, 6)]
        others[2].cancel()  # its sender has gone; what it sent may be kept or not
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(committer.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        gate.set()
        await closing
        assert first.result() is True
        assert [one.result() for i, one in enumerate(others) if i != 2] == [True] * 4
        assert store.batches == [[0], [1, 2, 3, 4, 5], "closed"]
        with pytest.raises(ConnectionAbortedError):
            await committer.add(report(9))

    run(body)


def test_an_error_reaches_everyone_who_waits_and_the_next_are_written():
    async def body():
        store = Memory()
        committer = Committer(store)
        committer.start()
        store.problem = ValueError("no")
        waiting = [committer.add(report(n)) for n in range(3)]
        waiting.append(committer.add(report(3), 5))
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in found] == [ValueError] * 4
        store.problem = None
        assert await committer.add(report(8))
        assert committer.counted == 1
        await committer.close()

    run(body)


def test_pages_task_and_counts():
    async def body():
        async with serving(Memory(), dashboard=Dashboard(100, None)) as (client, collector):
            assert (await client.get("/task")).content == TASK.canonical
            await client.post(URL, content=report(1), headers=BINARY)
            await client.post(URL, content=b"x", headers=BINARY)
            metrics = (await client.get("/metrics")).text
            assert "riata_reports 1\n" in metrics
            assert "riata_refused_total 1\n" in metrics
            for path in (
                "/",
                "/survey.js",
                "/survey.css",
                "/riata.js",
                "/dashboard",
                "/dashboard.js",
                "/health",
            ):
                answer = await client.get(path)
                assert answer.status_code == 200, path
                policy = answer.headers["content-security-policy"].split("; ")
                assert {"default-src 'self'", "form-action 'none'"} <= set(policy)
                assert {"frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
                assert answer.headers["x-frame-options"] == "DENY"
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert "set-cookie" not in answer.headers
            assert (await client.get(URL)).status_code in (404, 405)
            assert (await client.get("/openapi.json")).json() == description(TASK)
            key = {"authorization": f"Bearer {collector.dashboard.key}"}
            facts = (await client.get("/dashboard/facts", headers=key)).json()
            assert (facts["reports"], facts["refused"], facts["expected"]) == (1, 1, 100)
            assert facts["now"]["people"] == 1
            assert facts["then"]["people"] == 100
            assert facts["model"] is None
        async with serving(Memory()) as (client, _):
            assert (await client.get("/dashboard/")).status_code == 404
            assert (await client.get("/dashboard/x")).status_code == 404

    run(body)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"columns": NaN}', '{"reports": 1}'])
def test_a_model_file_that_is_not_whole_breaks_no_dashboard(tmp_path, text):
    (tmp_path / "model.json").write_text(text)
    board = Dashboard(0, tmp_path / "model.json")

    async def body():
        return await board.facts(TASK, 0, 0)

    facts = run(body)
    assert facts["model"] in (None, {}, {"reports": 1})
    json.dumps(facts, allow_nan=False)


def test_the_devices_module_is_small():
    from importlib.resources import files

    text = (files("riata.collect") / "static" / "riata.js").read_text(encoding="utf-8")
    assert len(text.encode()) <= 18_000
    assert "import " not in text.replace("importKey", "")
    assert "Math.random" not in text
