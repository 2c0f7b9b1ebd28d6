"""The endpoints: the task, one for reports, and nothing that tells of a report."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import errno
import logging
import math
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from riata.collect import metrics
from riata.collect.address_limits import Limits, ReportRate
from riata.collect.committer import CapReached, Committer
from riata.collect.dashboard import Dashboard
from riata.collect.openapi import MOST_REPORTS, description
from riata.collect.refusals import (
    CAPPED,
    FULL,
    MEMORY,
    STORE,
    TOO_LARGE,
    TOO_MANY,
    Refusal,
    bad_request,
)
from riata.collect.tokens import Tokens
from riata.local import report_format
from riata.local.task import Task

_log = logging.getLogger(__name__)
#: Bytes of large bodies that are held at once, and from where on a body is large.
MOST_HELD, LARGE = 1 << 26, 1 << 12
#: Bytes on the disk below which the collector is not ready: a database may need a few pages more
#: for a report than it needed for the last one.
LEAST_ROOM = 1 << 16
#: How long the rest of a body may take.
BODY_SECONDS = 30.0
#: Nothing that a browser shows here may load anything from elsewhere, be shown elsewhere, or send
#: answers as a form does.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_NO_BODY = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
_ANSWERS = [*_NO_BODY, (b"content-type", b"application/json")]


class Collector:
    """One task, one store, and what was refused.

    With `tokens` a report has to come with an unused one. `today` says which day it is (UTC),
    `disk` where the store is, if that is on a disk of this machine.
    """

    def __init__(
        self,
        task: Task,
        committer: Committer,
        tokens: Tokens | None = None,
        dashboard: Dashboard | None = None,
        today: Callable[[], datetime.date] = lambda: datetime.datetime.now(datetime.UTC).date(),
        limits: Limits | None = None,
        disk: Path | None = None,
    ) -> None:
        self.task = task
        self.committer = committer
        self.tokens = tokens
        self.dashboard = dashboard
        self.today = today
        self.disk = disk
        #: By reason: requests and connections that were refused, and what the store could not do.
        self.refusals: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        per_hour = limits.reports_per_hour if limits is not None else 0
        self._rate = ReportRate(per_hour) if per_hour else None
        self._held = 0
        self._broken = False
        self._path = f"/tasks/{task.id}/reports"

    @property
    def refused(self) -> int:
        """How many requests and connections were refused since the start."""
        return self.refusals.total()

    async def upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept reports: 201 when they are durable. A repeat changes nothing and is accepted.

        A bare ASGI endpoint, because everything that is sent goes through it.
        """
        refusal, wait = await self._refusal(scope, receive)
        if refusal is None:
            self._broken = False
            await _send(send, 201, b"")
            return
        (self.errors if refusal.server_error else self.refusals)[refusal.reason] += 1
        await _send(send, refusal.status, refusal.body, wait)

    async def _refusal(self, scope: Scope, receive: Receive) -> tuple[Refusal | None, int]:
        """None when the reports are durable; else why not, and the seconds to wait."""
        headers = _single(scope["headers"])
        reason = self._request_error(scope, headers)
        if reason:
            return bad_request(reason), 0
        size = int(headers[b"content-length"])
        reports, host = size // report_format.REPORT_BYTES, (scope.get("client") or (None,))[0]
        if self._rate is not None:
            if reports > self._rate.per_hour:
                return TOO_LARGE, 0
            wait = self._rate.take(host, reports)
            if wait > 0:
                return TOO_MANY, math.ceil(wait)
        refusal = await self._held_refusal(receive, size, headers)
        if self._rate is not None and refusal is not None and refusal.server_error:
            self._rate.refund(host, reports)
        return refusal, 0

    async def _held_refusal(
        self, receive: Receive, size: int, headers: dict[bytes, bytes]
    ) -> Refusal | None:
        """Keep large bodies within the memory that they may take."""
        if size <= LARGE:
            return await self._store_refusal(receive, size, headers)
        if self._held + size > MOST_HELD:
            return MEMORY
        self._held += size
        try:
            return await self._store_refusal(receive, size, headers)
        finally:
            self._held -= size

    async def _store_refusal(
        self, receive: Receive, size: int, headers: dict[bytes, bytes]
    ) -> Refusal | None:
        body = await _read(receive, size)
        if body is None:
            return bad_request("body")
        token = None
        if self.tokens is not None:
            token = self.tokens.read(headers.get(b"riata-token", b"").decode("latin-1"))
            if token is None:
                return bad_request("token")
        try:
            accepted = await self.committer.add(body, token)
        except CapReached:
            return CAPPED
        except Exception as problem:  # of the store: the disk, the database
            if getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                return FULL
            if not self._broken:
                # Its name only: a text might hold what was sent. Once: many may send.
                _log.error("Reports could not be kept: %s.", type(problem).__name__)
            self._broken = True
            return STORE
        return None if accepted else bad_request("used_token")

    def _request_error(self, scope: Scope, headers: dict[bytes, bytes]) -> str:
        """What shows to be wrong with a request before its body, or nothing."""
        length = headers.get(b"content-length", b"")
        if not (length.isdigit() and len(length) <= 7) or b"transfer-encoding" in headers:
            return "form"
        size = int(length)
        most = report_format.REPORT_BYTES * (MOST_REPORTS if self.tokens is None else 1)
        if not 0 < size <= most or size % report_format.REPORT_BYTES:
            return "form"
        if (
            headers.get(b"host", b"") == b""
            or scope["http_version"] not in ("1.0", "1.1")
            or headers.get(b"content-type") != b"application/octet-stream"
        ):
            return "form"
        if scope["path"] != self._path:
            return "task"
        return "" if self.task.open_on(self.today()) else "deadline"

    async def task_file(self, request: Request) -> Response:
        """The bytes whose SHA-256 is the task's id."""
        return Response(self.task.canonical, media_type="application/json", headers=_HEADERS)

    async def health(self, request: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_HEADERS)

    async def ready(self, request: Request) -> Response:
        """Whether reports could be kept now: the store is asked to write."""
        room = metrics.free_bytes(self.disk)
        try:
            if room is not None and room < LEAST_ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            await self.committer.probe()
        except Exception:  # as for reports, its text might say too much
            return PlainTextResponse("the store cannot be written\n", 503, headers=_HEADERS)
        return PlainTextResponse("ready\n", headers=_HEADERS)

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus, nothing about any report or sender."""
        text = metrics.text(self.committer.counted, self.refusals, self.errors, self.disk)
        return Response(text, media_type="text/plain; version=0.0.4", headers=_HEADERS)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(description(self.task), headers=_HEADERS)

    async def facts(self, request: Request) -> Response:
        """What the dashboard shows, for who sends its key in a header: logs keep paths."""
        board = self.dashboard
        authorization = _single(request.scope["headers"]).get(b"authorization", b"")
        if board is None or not board.authorizes(authorization):
            headers = {**_HEADERS, "WWW-Authenticate": "Bearer"}
            return PlainTextResponse("The key is wrong.\n", 401, headers=headers)
        facts = await board.facts(self.task, self.committer.counted, self.refused)
        return JSONResponse(facts, headers=_HEADERS)


def _single(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name; one that stands twice says nothing."""
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        found[name] = b"" if name in found else value
    return found


async def _read(receive: Receive, size: int) -> bytes | None:
    """A body of exactly this size, else None."""
    message = await receive()
    body = message.get("body", b"")
    if message.get("more_body", False):
        try:
            async with asyncio.timeout(BODY_SECONDS):
                grown = bytearray(body)
                while message.get("more_body", False) and len(grown) <= size:
                    message = await receive()
                    grown += message.get("body", b"")
                body = bytes(grown)
        except TimeoutError:
            return None
    # Who has gone before the end has sent nothing.
    return body if message["type"] == "http.request" and len(body) == size else None


async def _send(send: Send, status: int, body: bytes, wait: int = 0) -> None:
    headers = _ANSWERS if body else _NO_BODY
    if wait:
        headers = [*headers, (b"retry-after", b"%d" % wait)]
    length = (b"content-length", b"%d" % len(body))
    with contextlib.suppress(RuntimeError, OSError):  # who has gone hears nothing
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": body})


def _page(name: str, kind: str) -> Any:
    content = (files("riata.collect") / "static" / name).read_bytes()

    async def page(request: Request) -> Response:
        return Response(content, media_type=kind, headers=_HEADERS)

    return page


def application(collector: Collector) -> ASGIApp:
    """The service as an ASGI application."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        collector.committer.start()
        yield
        await collector.committer.close()

    routes = [
        Route("/", _page("survey.html", "text/html; charset=utf-8")),
        Route("/survey.js", _page("survey.js", "text/javascript; charset=utf-8")),
        Route("/survey.css", _page("survey.css", "text/css; charset=utf-8")),
        Route("/icon.svg", _page("icon.svg", "image/svg+xml")),
        Route("/riata.js", _page("riata.js", "text/javascript; charset=utf-8")),
        Route("/task", collector.task_file),
        Route("/dashboard", _page("dashboard.html", "text/html; charset=utf-8")),
        Route("/dashboard.js", _page("dashboard.js", "text/javascript; charset=utf-8")),
        Route("/dashboard/facts", collector.facts),
        Route("/health", collector.health),
        Route("/metrics", collector.metrics),
        Route("/ready", collector.ready),
        Route("/openapi.json", collector.openapi),
    ]
    pages = Starlette(routes=routes, lifespan=lifespan)
    pages.router.redirect_slashes = False

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST" and _for_reports(scope["path"]):
            await collector.upload(scope, receive, send)
        else:
            await pages(scope, receive, send)

    return serve


def _for_reports(path: str) -> bool:
    return path.startswith("/tasks/") and path.endswith("/reports")
