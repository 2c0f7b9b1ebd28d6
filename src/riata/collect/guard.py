"""What a stranger's connection may take: memory, time, and one of so many places.

uvicorn reads heads of any length, waits for them for ever, and takes as many requests at once from
one connection as it sends. Here none of that grows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Connections at once. Each may hold a body, and together they must fit into the memory.
MOST_CONNECTIONS = 1000
#: Bytes of a request before its body.
MOST_HEAD = 1 << 16
#: Requests of one connection that wait for the answers to those before.
MOST_WAITING = 100
#: From a new connection, or from the last answer, to the end of the next head.
HEAD_SECONDS = 20.0
#: From the end of a head to the end of the answer.
ANSWER_SECONDS = 60.0


class Guarded(HttpToolsProtocol):
    """uvicorn's protocol, with ends to what it waits for."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._unread, self._deadline = 0, 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unanswered: deque[Any] = deque()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
            return
        self._wait(HEAD_SECONDS)
        self._look()

    def _wait(self, seconds: float) -> None:
        self._deadline = self.loop.time() + seconds

    def _look(self) -> None:
        """End what has waited for too long, or look again when it may have."""
        if self.loop.time() >= self._deadline:
            self.transport.abort()  # who does not read would not hear the rest
        else:
            soon = min(self._deadline, self.loop.time() + HEAD_SECONDS)
            self._timer = self.loop.call_at(soon, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for cycle in self._unanswered:  # uvicorn tells only the last, and the others would complain
            cycle.disconnected = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        super().data_received(data)
        if self._unread > MOST_HEAD:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        if len(self._unanswered) > MOST_WAITING:
            raise OverflowError("requests that wait")  # the parser stops, and the connection ends
        self._unread = 0
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self._wait(ANSWER_SECONDS)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        self._wait(ANSWER_SECONDS if self._unanswered else HEAD_SECONDS)
        super().on_response_complete()
