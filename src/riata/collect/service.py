"""The endpoints: the task, one for reports, and nothing that tells of a report."""

from __future__ import annotations

import contextlib
import datetime
import errno
import hmac
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from riata.collect.commit import Committer
from riata.collect.dashboard import Dashboard
from riata.collect.openapi import description
from riata.collect.tokens import Tokens
from riata.local import wire
from riata.local.task import Task

#: Reports in one request, at most.
MOST_REPORTS = 1 << 16
#: Nothing that a browser shows here may load anything from elsewhere, or be shown elsewhere.
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
#: Whatever was wrong with a request, this is all that its sender hears.
_REFUSED = b'{"error": "The reports were not accepted."}'
_FULL = b'{"error": "The collector has no room. Send the same bytes again later."}'


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

    async def reports(self, request: Request) -> Response:
        """Accept reports: 201 when they are durable. A repeat changes nothing and is accepted."""
        try:
            accepted = await self._accepted(request)
        except OSError as problem:
            if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            return _answer(_FULL, 507)
        if not accepted:
            self.refused += 1
            return _answer(_REFUSED, 400)
        return Response(status_code=201, headers=_HEADERS)

    async def _accepted(self, request: Request) -> bool:
        body = await self._body(request)
        if body is None:
            return False
        if self.tokens is None:
            return await self.committer.add(wire.from_bytes(body))
        token = self.tokens.read(request.headers.get("riata-token", ""))
        if token is None or len(body) != wire.REPORT_BYTES:
            return False
        return await self.committer.add(wire.from_bytes(body), token)

    async def _body(self, request: Request) -> bytes | None:
        """The bytes of a request that is right in every way, else None."""
        said = request.headers.get("content-length", "")
        good = (
            said.isascii()
            and said.isdigit()
            and len(said) <= 7
            and 0 < int(said) <= MOST_REPORTS * wire.REPORT_BYTES
            and int(said) % wire.REPORT_BYTES == 0
            and request.path_params["task"] == self.task.id
            and request.headers.get("content-type") == "application/octet-stream"
            and self.task.open_on(self.today())
        )
        if not good:
            return None
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > int(said):
                    return None
        except ClientDisconnect:
            return None
        return bytes(body) if len(body) == int(said) else None

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
        """What the dashboard shows, for who knows its key."""
        board = self.dashboard
        if board is None or not hmac.compare_digest(request.path_params["key"], board.key):
            return PlainTextResponse("Not found\n", 404, headers=_HEADERS)
        facts = await board.facts(self.task, self.committer.counted, self.refused)
        return JSONResponse(facts, headers=_HEADERS)


def _answer(body: bytes, status: int) -> Response:
    return Response(body, status, headers=_HEADERS, media_type="application/json")


def _page(name: str, kind: str) -> Any:
    content = (files("riata.collect") / "static" / name).read_bytes()

    async def page(request: Request) -> Response:
        return Response(content, media_type=kind, headers=_HEADERS)

    return page


def application(collector: Collector) -> Starlette:
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
        Route("/riata.js", _page("riata.js", "text/javascript; charset=utf-8")),
        Route("/task", collector.task_file),
        Route("/tasks/{task}/reports", collector.reports, methods=["POST"]),
        Route("/dashboard", _page("dashboard.html", "text/html; charset=utf-8")),
        Route("/dashboard.js", _page("dashboard.js", "text/javascript; charset=utf-8")),
        Route("/dashboard/{key}", collector.facts),
        Route("/health", collector.health),
        Route("/metrics", collector.metrics),
        Route("/openapi.json", collector.openapi),
    ]
    return Starlette(routes=routes, lifespan=lifespan)
