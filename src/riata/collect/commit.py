"""Many requests, one write: all reports that wait are written together, then acknowledged."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np


class Store(Protocol):
    """Where reports are kept."""

    def add(self, seeds: np.ndarray) -> int: ...

    def __len__(self) -> int: ...

    def close(self) -> None: ...


class Committer:
    """Hands reports to a store in one thread, as many at a time as have come meanwhile.

    Parameters
    ----------
    store : Store
    waiting : int, default=1 << 22
        Reports that may wait at most; what comes beyond waits outside.
    """

    def __init__(self, store: Store, waiting: int = 1 << 22) -> None:
        self.store = store
        self.counted = len(store)
        self._room = waiting
        self._queue: list[tuple[np.ndarray, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "riata-store")
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write, in the running event loop."""
        self._running = asyncio.create_task(self._run())

    async def add(self, seeds: np.ndarray) -> None:
        """Return when the reports are durable; raise what the store raises."""
        if self._running is None:
            self.start()
        done = asyncio.get_running_loop().create_future()
        self._queue.append((seeds, done))
        self._wake.set()
        await done

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            queue, self._queue = self._queue, []
            try:
                seeds = np.concatenate([part for part, _ in queue])
                self.counted += await loop.run_in_executor(self._thread, self.store.add, seeds)
            except Exception as problem:
                for _, done in queue:
                    if not done.done():
                        done.set_exception(problem)
            else:
                for _, done in queue:
                    if not done.done():
                        done.set_result(None)

    async def close(self) -> None:
        """Write what waits, then let go of the store."""
        while self._queue:
            await asyncio.sleep(0.01)
        if self._running is not None:
            self._running.cancel()
        self._thread.shutdown(wait=True)
        self.store.close()
