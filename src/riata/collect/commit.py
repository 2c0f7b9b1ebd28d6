"""Many requests, one write: all reports that wait are written together, then acknowledged."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np


class Store(Protocol):
    """Where reports are kept."""

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray: ...

    def __len__(self) -> int: ...

    def close(self) -> None: ...


class _Waiting(NamedTuple):
    seeds: np.ndarray
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

    def start(self) -> None:
        """Begin to write, in the running event loop."""
        self._running = asyncio.create_task(self._run())

    async def add(self, seeds: np.ndarray, token: int | None = None) -> bool:
        """Whether the reports were accepted, when they are durable; raise what the store raises."""
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(seeds, token, done))
        self._wake.set()
        return await done

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            queue, self._queue = self._queue, []
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

    def _write(self, queue: list[_Waiting]) -> list[bool]:
        """In the store's thread: with tokens each request is one report."""
        free = [one for one in queue if one.token is None]
        if free:
            self.store.add(np.concatenate([one.seeds for one in free]))
        bound = [one for one in queue if one.token is not None]
        accepted: dict[int, bool] = {}
        if bound:
            seeds = np.concatenate([one.seeds for one in bound])
            tokens = np.array([one.token for one in bound], dtype=np.uint64)
            found = self.store.add(seeds, tokens)
            accepted = {id(one): bool(good) for one, good in zip(bound, found, strict=True)}
        return [accepted.get(id(one), True) for one in queue]

    async def close(self) -> None:
        """Write what waits, then let go of the store."""
        while self._queue:
            await asyncio.sleep(0.01)
        if self._running is not None:
            self._running.cancel()
        self._thread.shutdown(wait=True)
        self.store.close()
