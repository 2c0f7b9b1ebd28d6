"""Many requests, one write: all reports that wait are written together, then acknowledged."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from riata.collect.store import Store
from riata.local import report_format

#: Bytes of reports that are written together, about.
_AT_ONCE = 1 << 22


class _Waiting(NamedTuple):
    reports: bytes
    token: int | None
    done: asyncio.Future[bool]


class CapReached(Exception):
    """The store has as many reports as it may have."""


class Committer:
    """Hands reports to a store in one thread, as many at a time as have come meanwhile.

    The store may have `most` reports.
    """

    def __init__(self, store: Store, most: int | None = None) -> None:
        self.store = store
        self.counted = len(store)
        self._most = most
        self._queue: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "riata-store")
        self._running: asyncio.Task[None] | None = None
        self._probing: asyncio.Future[None] | None = None
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

    async def probe(self) -> None:
        """Raise what the store raises if it could not keep a report now."""
        if self._closing:
            raise ConnectionAbortedError("The collector stops.")
        # Who asks meanwhile shares the answer: many who ask must not keep others from writing.
        if self._probing is None or self._probing.done():
            loop = asyncio.get_running_loop()
            self._probing = loop.run_in_executor(self._thread, self._probe)
        await asyncio.shield(self._probing)

    def _probe(self) -> None:
        """In the store's thread."""
        self.store.probe()
        self.counted = len(self.store)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closing or self._queue:
            await self._wake.wait()
            queue = self._next_batch()
            if queue:
                results = await loop.run_in_executor(self._thread, self._write, queue)
                for one, result in zip(queue, results, strict=True):
                    if one.done.done():  # its sender has gone
                        continue
                    if isinstance(result, Exception):
                        one.done.set_exception(result)
                    else:
                        one.done.set_result(result)

    def _next_batch(self) -> list[_Waiting]:
        """Those that have waited longest, with tokens or without. The rest waits."""
        size, n = 0, 0
        while n < len(self._queue) and size < _AT_ONCE:
            if (self._queue[n].token is None) != (self._queue[0].token is None):
                break  # what is written together is one call of the store, and one commit
            size += len(self._queue[n].reports)
            n += 1
        batch, self._queue = self._queue[:n], self._queue[n:]
        if not self._queue:
            self._wake.clear()
        return batch

    def _write(self, queue: list[_Waiting]) -> list[bool | Exception]:
        """In the store's thread: whether each was accepted, or why it could not be stored."""
        try:
            size = sum(len(one.reports) for one in queue) // report_format.REPORT_BYTES
            if self._most is None or len(self.store) + size <= self._most:
                return self._store_batch(queue)
            return [self._store_below_cap(one) for one in queue]
        except Exception as problem:
            return [problem] * len(queue)
        finally:
            self.counted = len(self.store)

    def _store_batch(self, queue: list[_Waiting]) -> list[bool | Exception]:
        seeds = report_format.from_bytes(b"".join(one.reports for one in queue))
        if queue[0].token is None:
            self.store.add(seeds)
            return [True] * len(queue)
        tokens = np.array([one.token for one in queue], dtype=np.uint64)
        accepted: list[bool | Exception] = self.store.add(seeds, tokens).tolist()
        return accepted

    def _store_below_cap(self, one: _Waiting) -> bool | Exception:
        """Repeats are accepted at the cap too."""
        assert self._most is not None
        try:
            seeds = report_format.from_bytes(one.reports)
            new = len(np.unique(seeds[~self.store.contains(seeds)]))
            if new and len(self.store) + new > self._most:
                return CapReached()
            return self._store_batch([one])[0]
        except Exception as problem:
            return problem

    async def close(self) -> None:
        """Write what waits, then let go of the store."""
        self._closing = True
        self._wake.set()
        if self._running is not None:
            await self._running
        self._thread.shutdown(wait=True)
        self.store.close()
