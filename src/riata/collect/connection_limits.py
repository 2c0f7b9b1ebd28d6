"""What a stranger's connection may take: memory, time, and one of so many places.

uvicorn reads heads of any length, waits for them for ever, and takes as many requests at once from
one connection as it sends. Here none of that grows. Nor can one address, or many, keep others out
by holding places: where there is none left, the connection goes that has kept the collector waiting
for longest, of the address that has the most.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from riata.collect.address_limits import Limits, Proxies, address_digest

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
_REFUSED = b"HTTP/1.1 %s\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with ends to what it waits for. `guarded` makes one for some limits."""

    limits: ClassVar[Limits] = Limits()
    proxies: ClassVar[Proxies] = Proxies()
    refusals: ClassVar[Counter[str]] = Counter()

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._unread, self._deadline = 0, 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unanswered: deque[Any] = deque()
        self._since = 0.0
        self.address: int | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        host = self.client[0] if self.client else None
        # What comes from a proxy comes from many; it limits them itself.
        self.address = None if host and host in self.proxies else address_digest(host)
        if not self._has_place():
            return
        self._set_deadline(HEAD_SECONDS)
        self._check_deadline()

    def _has_place(self) -> bool:
        """Whether there is a place, if need be that of another connection; else refuse."""
        others = [
            one for one in self.connections if isinstance(one, LimitedProtocol) and one is not self
        ]
        own = [one for one in others if one.address == self.address]
        most = self.limits.connections
        candidates, status, reason = others, b"503 Service Unavailable", "places"
        if self.address is not None and most and len(own) >= most:
            candidates, status, reason = own, b"429 Too Many Requests", "connections"
        elif len(others) < MOST_CONNECTIONS:
            return True
        idle = [one for one in candidates if one.idle]
        if idle:
            sizes = Counter(one.address for one in candidates)
            oldest = max(idle, key=lambda one: (sizes[one.address], -one._since))
            oldest.give_up_place()
            return True
        self.refusals[reason] += 1
        self.transport.write(_REFUSED % status)
        self.give_up_place()
        return False

    def give_up_place(self) -> None:
        """Give the place to another connection, at once."""
        self.connections.discard(self)
        if self.flow.write_paused:
            self.transport.abort()
        else:
            self.transport.close()  # what was answered can still be read

    @property
    def idle(self) -> bool:
        """Whether the collector waits for the other side, and not the other side for it."""
        return not self._unanswered or self._unanswered[0].more_body or self.flow.write_paused

    def _set_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.time() + seconds

    def _check_deadline(self) -> None:
        """End what has waited for too long, or look again when it may have."""
        if self.loop.time() >= self._deadline:
            self.transport.abort()  # who does not read would not hear the rest
        else:
            soon = min(self._deadline, self.loop.time() + HEAD_SECONDS)
            self._timer = self.loop.call_at(soon, self._check_deadline)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for cycle in self._unanswered:  # uvicorn tells only the last, and the others would complain
            cycle.disconnected = True
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():  # refused
            return
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
        self._set_deadline(ANSWER_SECONDS)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        self._unanswered.popleft()
        self._since = self.loop.time()
        self._set_deadline(ANSWER_SECONDS if self._unanswered else HEAD_SECONDS)
        super().on_response_complete()


def limited_protocol(
    limits: Limits, proxies: Proxies, refusals: Counter[str]
) -> type[LimitedProtocol]:
    """The protocol for these limits, which counts whom it refuses."""

    class WithLimits(LimitedProtocol):
        pass

    WithLimits.limits, WithLimits.proxies, WithLimits.refusals = limits, proxies, refusals
    return WithLimits
