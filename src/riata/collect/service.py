"""The endpoints: the task, one for reports, and nothing that tells of a report."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import errno
import logging
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from riata.collect.commit import Committer
from riata.collect.dashboard import Dashboard
from riata.collect.openapi import MOST_REPORTS, description
from riata.collect.tokens import Tokens
from riata.local import wire
from riata.local.task import Task

_log = logging.getLogger(__name__)
#: Bytes of large bodies that are held at once, and from where on a body is large.
MOST_HELD, LARGE = 1 << 26, 1 << 12
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
#: Whatever was wrong with a request, this is all that its sender hears.
_REFUSED = b'{"error": "The reports were not accepted."}'
_FULL = b'{"error": "The collector has no room. Send the same bytes again later."}'
_BROKEN = b'{"error": "The collector cannot keep reports now. Send the same bytes again later."}'


class Collector:
    """One task, one store, and what was refused.

    Parameters
    ----------
    task : Task
    committer : Committer
    tokens : Tokens, optional
        If a report has to come with an unused token.
    dashboard : Dashboard, optional
        The organiser's page.
    today : callable, optional
        For tests: says which day it is (UTC).
    """

    def __init__(
        self,
        task: Task,
        committer: Committer,
        tokens: Tokens | None = None,
        dashboard: Dashboard | None = None,
        today: Callable[[], datetime.date] = lambda: datetime.datetime.now(datetime.UTC).date(),
    ) -> None:
        self.task = task
        self.committer = committer
        self.tokens = tokens
        self.dashboard = dashboard
        self.today = today
        self.refused = 0
        self._held = 0
        self._broken = False
        self._path = f"/tasks/{task.id}/reports"

    async def upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Accept reports: 201 when they are durable. A repeat changes nothing and is accepted.

        A bare ASGI endpoint, because everything that is sent goes through it.
        """
        try:
            accepted = await self._accepted(scope, receive)
        except Exception as problem:  # of the store: the disk, the database
            if getattr(problem, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                await _send(send, 507, _FULL)
                return
            if not self._broken:
                # Its name only: a text might hold what was sent. Once: many may send.
                _log.error("Reports could not be kept: %s.", type(problem).__name__)
            self._broken = True
            await _send(send, 503, _BROKEN)
            return
        if accepted:
            self._broken = False
            await _send(send, 201, b"")
        else:
            self.refused += 1
            await _send(send, 400, _REFUSED)

    async def _accepted(self, scope: Scope, receive: Receive) -> bool:
        headers = _single(scope["headers"])
        size = self._size(scope, headers)
        if size <= LARGE:
            return size > 0 and await self._kept(receive, size, headers)
        if self._held + size > MOST_HELD:
            raise OSError(errno.ENOSPC, "memory")
        self._held += size
        try:
            return await self._kept(receive, size, headers)
        finally:
            self._held -= size

    async def _kept(self, receive: Receive, size: int, headers: dict[bytes, bytes]) -> bool:
        body = await _read(receive, size)
        if body is None:
            return False
        if self.tokens is None:
            return await self.committer.add(body)
        token = self.tokens.read(headers.get(b"riata-token", b"").decode("latin-1"))
        if token is None or len(body) != wire.REPORT_BYTES:
            return False
        return await self.committer.add(body, token)

    def _size(self, scope: Scope, headers: dict[bytes, bytes]) -> int:
        """The bytes that a request announces, if it is right in every way that shows so far."""
        said = headers.get(b"content-length", b"")
        good = (
            said.isdigit()
            and len(said) <= 7
            and int(said) <= MOST_REPORTS * wire.REPORT_BYTES
            and int(said) % wire.REPORT_BYTES == 0
            and b"transfer-encoding" not in headers
            and headers.get(b"host", b"") != b""
            and scope["http_version"] in ("1.0", "1.1")
            and scope["path"] == self._path
            and headers.get(b"content-type") == b"application/octet-stream"
            and self.task.open_on(self.today())
        )
        return int(said) if good else 0

    async def task_file(self, request: Request) -> Response:
        """The bytes whose SHA-256 is the task's id."""
        return Response(self.task.canonical, media_type="application/json", headers=_HEADERS)

    async def health(self, request: Request) -> Response:
        return PlainTextResponse("ok\n", headers=_HEADERS)

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus: reports and refusals, nothing about any of them."""
        lines = [
            "# HELP riata_reports Reports that are durable, each once.",
            "# TYPE riata_reports gauge",
            f"riata_reports {self.committer.counted}",
            "# HELP riata_refused_total Requests that were refused since the start.",
            "# TYPE riata_refused_total counter",
            f"riata_refused_total {self.refused}",
        ]
        kind = "text/plain; version=0.0.4"
        return Response("\n".join(lines) + "\n", media_type=kind, headers=_HEADERS)

    async def openapi(self, request: Request) -> Response:
        return JSONResponse(description(self.task), headers=_HEADERS)

    async def facts(self, request: Request) -> Response:
        """What the dashboard shows, for who sends its key in a header: logs keep paths."""
        board = self.dashboard
        said = _single(request.scope["headers"]).get(b"authorization", b"")
        if board is None or not board.opens_with(said):
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


async def _send(send: Send, status: int, body: bytes) -> None:
    headers = _ANSWERS if body else _NO_BODY
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
