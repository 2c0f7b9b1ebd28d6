"""Many requests, one write: all reports that wait are written together, then acknowledged."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from riata.local import wire

#: Bytes of reports that are written together, about.
_AT_ONCE = 1 << 22


class Store(Protocol):
    """Where reports are kept."""

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray: ...

    def __len__(self) -> int: ...

    def close(self) -> None: ...


class _Waiting(NamedTuple):
    reports: bytes
    token: int | None
    done: asyncio.Future[bool]


class Committer:
    """Hands reports to a store in one thread, as many at a time as have come meanwhile.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.counted = len(store)
        self._queue: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "riata-store")
        self._running: asyncio.Task[None] | None = None
        self._closing = False

    def start(self) -> None:
        """Begin to write, in the running event loop."""
        self._running = asyncio.create_task(self._run())

    def add(self, reports: bytes, token: int | None = None) -> asyncio.Future[bool]:
        """Whether the reports were accepted, when they are durable; raise what the store raises.

        With a token, it is one report.
        """
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self._closing:
            done.set_exception(ConnectionAbortedError("The collector stops."))
            return done
        self._queue.append(_Waiting(reports, token, done))
        self._wake.set()
        return done

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closing or self._queue:
            await self._wake.wait()
            queue = self._taken()
            try:
                results = await loop.run_in_executor(self._thread, self._write, queue)
                self.counted = len(self.store)
            except Exception as problem:
                for one in queue:
                    if not one.done.done():
                        one.done.set_exception(problem)
            else:
                for one, accepted in zip(queue, results, strict=True):
                    if not one.done.done():
                        one.done.set_result(accepted)

    def _taken(self) -> list[_Waiting]:
        """Those that have waited longest. The rest waits for the next write."""
        size, n = 0, 0
        while n < len(self._queue) and size < _AT_ONCE:
            size += len(self._queue[n].reports)
            n += 1
        taken, self._queue = self._queue[:n], self._queue[n:]
        if not self._queue:
            self._wake.clear()
        return taken

    def _write(self, queue: list[_Waiting]) -> list[bool]:
        """In the store's thread."""
        free = [one.reports for one in queue if one.token is None]
        if free:
            self.store.add(wire.from_bytes(b"".join(free)))
        bound = [one for one in queue if one.token is not None]
        if not bound:
            return [True] * len(queue)
        tokens = np.array([one.token for one in bound], dtype=np.uint64)
        found = self.store.add(wire.from_bytes(b"".join(one.reports for one in bound)), tokens)
        accepted = iter(found.tolist())
        return [True if one.token is None else next(accepted) for one in queue]

    async def close(self) -> None:
        """Write what waits, then let go of the store."""
        self._closing = True
        self._wake.set()
        if self._running is not None:
            await self._running
        self._thread.shutdown(wait=True)
        self.store.close()
