"""Requests that no browser sends, and what a collector must do with each of them."""

import asyncio
import contextlib
import os
import random
import struct
from collections import Counter
from pathlib import Path

import h11

REFUSED = 400
PAGES = ["/", "/survey.js", "/survey.css", "/riata.js", "/icon.svg", "/dashboard", "/dashboard.js",
         "/task", "/health", "/ready", "/metrics", "/openapi.json"]  # fmt: skip
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND"]
KIND = "application/octet-stream"
STORIES = [
    "Content-Length: 8",
    "Content-Length: 16",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: x",
    "Upgrade: websocket\r\nConnection: Upgrade",
    "Connection: Upgrade\r\nUpgrade: h2c",
    "Expect: 100-continue",
]


def seeds_in(body):
    return struct.unpack(f">{len(body) // 8}Q", body[: len(body) // 8 * 8])


def memory(process):
    """Megabytes that a process holds."""
    pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Fuzzer:
    """Makes requests and remembers which reports may be counted and which must be.

    Parameters
    ----------
    task : str
        The id of the collector's task.
    seed : int
    """

    def __init__(self, task, seed):
        self.rng = random.Random(seed)
        self.path = f"/tasks/{task}/reports"
        self.sent, self.acknowledged, self.statuses = set(), set(), Counter()
        self.requests = self.connections = 0
        self._kept = [b"\x01" * 8]

    # Requests whose answer is known.

    def good(self):
        """Reports that must be counted, some of them again."""
        body = self._body()
        extra = self._header() if self.rng.randrange(3) == 0 else ""
        path = self.path + self.rng.choice(["", "", "", "?x=1", "?", "#x"])
        return self._post(body, path=path, extra=extra), body, {201}

    def _body(self):
        if self.rng.randrange(3) == 0:
            return self.rng.choice(self._kept)
        body = self.rng.randbytes(8 * self.rng.choice([1] * 60 + [2] * 6 + [9]))
        if len(self._kept) < 500 or self.rng.randrange(100) == 0:
            self._kept.append(body)
        return body

    def _header(self):
        name = self.rng.choice(["Riata-Token", "X-Forwarded-For", "Cookie", "Range", "Origin", "X"])
        value = "".join(chr(self.rng.randrange(33, 127)) for _ in range(self.rng.randrange(60)))
        return f"{name}: {value}\r\n"

    def _post(self, body, path=None, kind=KIND, length=None, extra=""):
        length = len(body) if length is None else length
        head = f"POST {path or self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n{extra}"
        return f"{head}Content-Length: {length}\r\n\r\n".encode() + body

    def wrong(self):
        """An upload that is wrong in one place."""
        rng, body = self.rng, self.rng.randbytes(8)
        choice = rng.randrange(7)
        if choice == 0:
            data = self._post(body, path=f"/tasks/{rng.randbytes(32).hex()}/reports")
        elif choice == 1:
            kind = rng.choice(["text/plain", "", "application/json", KIND + ";q=1", KIND.upper()])
            data = self._post(body, kind=kind)
        elif choice == 2:
            data = self._post(rng.randbytes(8 * rng.randrange(9) + rng.randrange(1, 8)))
        elif choice == 3:
            data = self._post(b"")
        elif choice == 4:
            path = self.path.replace(
                "/reports", rng.choice(["x/reports", "/x/reports", "//reports"])
            )
            data = self._post(body, path=path)
        elif choice == 5:
            extra = f"Content-Type: {KIND}\r\n" * rng.randrange(1, 4)
            data = self._post(body, extra=extra)
        else:
            data = self._chunked(body)
        return data, b"", {REFUSED}

    def _chunked(self, body):
        parts = b"".join(
            b"%x;e=1\r\n%s\r\n" % (n, body[:n]) for n in self.rng.choices([1, 7, 8], k=3)
        )
        head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: {KIND}\r\n"
        return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + parts + b"0\r\nT: 1\r\n\r\n"

    def page(self):
        """Anything but an upload: pages, wrong methods, paths that nobody has."""
        rng = self.rng
        known = rng.randrange(2)
        path = rng.choice(PAGES) if known else "/" + self._junk(rng.randrange(1, 40))
        if rng.randrange(4) == 0:
            path += rng.choice(
                ["/", "/..", "/../../etc/passwd", "%2e%2e/", "%00", "%ff", "//", "?a"]
            )
        method = "GET" if known and rng.randrange(3) else rng.choice(METHODS)
        data = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{self._header()}\r\n".encode()
        return data, b"", {200, 404, 405}

    def _junk(self, n):
        return "".join(self.rng.choices("abcdefghij0123456789/.%~-_", k=n)).replace("%", "%41")

    # What comes last on a connection, because nobody knows how much of it is a request.

    def last(self):
        """Damage of many kinds, and the reports in it that h11 finds in whole requests."""
        rng = self.rng
        choice = rng.randrange(9)
        if choice == 0:
            data = rng.randbytes(rng.randrange(1, 400))
        elif choice < 4:
            data = self._mutated(choice)
        elif choice == 4:  # a length that is not the body's
            body = rng.randbytes(8 * rng.randrange(1, 4))
            length = rng.choice(
                [8, 16, 24, 32, 7, 10**6, 10**20, -8, "+8", "8, 8", "0x8", "8 8", ""]
            )
            data = self._post(body, length=length)
        elif choice == 5:  # half a request
            whole = self.good()[0] if rng.randrange(2) else self.page()[0]
            data = whole[: rng.randrange(1, len(whole))]
        elif choice == 6:  # a large head
            extra = f"X: {'y' * rng.choice([100, 5_000, 40_000, 70_000, 200_000])}\r\n"
            data = self._post(rng.randbytes(8), extra=extra * rng.randrange(1, 3))
        elif choice == 7:  # two stories about the length
            extra = rng.choice(STORIES)
            data = self._post(rng.randbytes(8 * rng.randrange(1, 3)), extra=f"{extra}\r\n")
        elif rng.randrange(20) == 0:  # more requests than may wait
            data = self.page()[0] * rng.randrange(50, 400)
        else:
            data = b"\r\n" * rng.randrange(9) + self.page()[0].replace(b"\r\n", b"\n")
        return data

    def _mutated(self, choice):
        data = bytearray(self.good()[0] if self.rng.randrange(4) else self.page()[0])
        for _ in range(self.rng.randrange(1, 6)):
            at = self.rng.randrange(len(data) + 1)
            if choice == 1:
                data[at : at + 1] = self.rng.randbytes(1)
            elif choice == 2:
                data[at:at] = self.rng.randbytes(self.rng.randrange(1, 9))
            else:
                del data[at : at + self.rng.randrange(1, 9)]
        return bytes(data)

    # A connection.

    async def connection(self, port):
        """A few requests whose answers are checked, and damage at the end or nothing."""
        rng = self.rng
        kinds = rng.choices([self.good, self.wrong, self.page], [5, 3, 2], k=rng.randrange(0, 16))
        made = [kind() for kind in kinds]
        for _, body, _ in made:
            self.sent.update(seeds_in(body))
        last = self.last() if rng.randrange(8) else b""
        if b"POST" in last and self.path.encode() in last:
            self.sent.update(reports_in(last, self.path))
        self.requests += len(made) + bool(last)
        self.connections += 1
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        together = bool(last) and rng.randrange(4) == 0
        writer.write(b"".join(data for data, _, _ in made) + (last if together else b""))
        try:
            for data, body, allowed in made:
                status = await one_answer(reader, data.startswith(b"HEAD"))
                self.statuses[status] += 1
                if status == REFUSED and together:
                    break  # perhaps of what came last: its answer does not wait for the others
                assert status in allowed, (status, data[:300])
                if status == 201:
                    self.acknowledged.update(seeds_in(body))
        except (ConnectionError, asyncio.IncompleteReadError):
            assert together, "closed in the middle of good requests"
        with contextlib.suppress(OSError):
            await self._leave(reader, writer, b"" if together else last)
        writer.transport.abort()

    async def _leave(self, reader, writer, last):
        """Send the rest, and go at once or hear what comes."""
        if last:
            writer.write(last)
        if self.rng.randrange(3) == 0:
            return
        writer.write_eof()
        for status in statuses(await reader.read(-1)):
            self.statuses[status] += 1
            assert status < 500, status

    async def run(self, port, requests, at_once=12):
        """Send about so many more requests."""
        end = self.requests + requests

        async def one_after_another():
            while self.requests < end:
                await asyncio.wait_for(self.connection(port), 60)

        await asyncio.gather(*(one_after_another() for _ in range(at_once)))


def reports_in(data, path):
    """The reports of all whole uploads that h11 finds in a stream of bytes."""
    parser, found = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20), []
    try:
        parser.receive_data(data)
        while isinstance(event := parser.next_event(), h11.Request):
            target = event.target.split(b"?")[0].split(b"#")[0]
            body = b""
            while isinstance(part := parser.next_event(), h11.Data):
                body += part.data
            if not isinstance(part, h11.EndOfMessage):
                break
            if event.method == b"POST" and target.endswith(path.encode()):
                found += seeds_in(body)
            parser.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            parser.send(h11.EndOfMessage())
            parser.start_next_cycle()
    except h11.ProtocolError:
        pass
    return found


async def one_answer(reader, without_body):
    """The status of the next answer that is not a mere 100."""
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        if status >= 200:
            break
    size = 0 if without_body else int(head.split(b"content-length:")[1].split(b"\r\n")[0])
    await reader.readexactly(size)
    return status


def statuses(stream):
    """The status of each answer in a stream, as well as can be told."""
    return [int(part[:3]) for part in stream.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]
