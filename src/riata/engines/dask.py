"""Rows at the workers of a Dask cluster: each step is one question to all of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from distributed import Client, get_client

from riata.engines.messages import Message, Reader, Writer
from riata.engines.shard import Shard
from riata.errors import ClusterLost
from riata.preparation import Preparation
from riata.queries import Query

#: A worker that says nothing for so many seconds is looked after.
_PATIENCE = 2.0

#: So many seconds a cluster without workers may take to get one, and so often workers may be lost
#: in one sum.
_WAIT, _MOST_LOSSES = 60.0, 20

#: After a loss, so often it is looked whether a new worker came.
_SPREAD = 5.0


class Piece(Protocol):
    """Some consecutive rows, wherever they are kept."""

    n_rows: int

    def given(self, client: Client, worker: str) -> tuple[Any, Any]:
        """What a worker is told to have the rows: itself and None if it can `read` them there."""
        ...


class InMemory:
    """Rows in the memory of this process."""

    def __init__(self, x: Any, y: np.ndarray) -> None:
        self._x, self._y, self.n_rows = x, y, len(y)

    def given(self, client: Client, worker: str) -> tuple[Any, Any]:
        x, y = client.scatter([self._x, self._y], workers=[worker], hash=False)
        return x, y


class Partition:
    """Rows of a Dask collection."""

    def __init__(self, x: Any, y: Any, n_rows: int) -> None:
        self._x, self._y, self.n_rows = x, y, n_rows

    def given(self, client: Client, worker: str) -> tuple[Any, Any]:
        x, y = client.compute([self._x, self._y], workers=[worker], allow_other_workers=True)
        return x, y


class InFile:
    """Rows that a worker can read itself.

    Parameters
    ----------
    source
        Something with `n_rows` and `load`, that can be pickled.
    """

    def __init__(self, source: Any) -> None:
        self._source, self.n_rows = source, source.n_rows

    def given(self, client: Client, worker: str) -> tuple[Any, Any]:
        return self._source, None


class Keeper:
    """Keeps rows at a worker and sums queries over them. Rows leave it in no other way."""

    def __init__(
        self, rows: list[tuple[Any, Any, int]], preparation: Preparation, told: dict[int, bytes]
    ) -> None:
        self._reader = Reader()
        self._reader.learn(told)
        self._shards = [_shard(x, y, start, preparation) for x, y, start in rows]
        self._parts: dict[tuple[int, int], list[Shard]] = {(0, 1): self._shards}

    def total(self, message: Message, part: int, parts: int) -> np.ndarray:
        """The sum of the message's query over the rows of a part."""
        query = self._reader.read(message)
        if (part, parts) not in self._parts:
            self._parts[part, parts] = [shard.part(part, parts) for shard in self._shards]
        found = [shard.total(query) for shard in self._parts[part, parts]]
        return sum(found[1:], found[0])


def _shard(x: Any, y: Any, start: int, preparation: Preparation) -> Shard:
    x, y = x.load() if y is None else (x, y)
    x = x if hasattr(x, "nnz") else np.asarray(x)
    return Shard(*preparation(x, np.asarray(y, dtype=np.float64)), start)


class _Post:
    """Some pieces, and the keeper that has them now."""

    def __init__(self, pieces: list[tuple[Piece, int]]) -> None:
        self.pieces = pieces
        self.worker = ""
        self.keeper: Any = None


class DaskEngine:
    """Sums queries over rows at the workers of a cluster.

    Only queries go to the workers and only sums come back: noise, selection and ledger stay here.
    Sums are exact, so they are the same bits as in one process. A worker that is lost is replaced:
    another one reads its rows again, and is asked the same question. No noise is drawn for it, as
    noise is drawn when the sum is there.

    Parameters
    ----------
    pieces : sequence of Piece
        All rows, in order.
    preparation : Preparation
    client : distributed.Client, optional
        The current one if left out.
    """

    def __init__(
        self, pieces: Sequence[Piece], preparation: Preparation, client: Client | None = None
    ) -> None:
        self._client = get_client() if client is None else client
        self._preparation, self._writer = preparation, Writer()
        workers = self._workers()
        self._look_again: float | None = None
        starts = np.cumsum([0, *(piece.n_rows for piece in pieces)])
        each = list(zip(pieces, map(int, starts), strict=False))
        ends = [len(each) * i // len(workers) for i in range(len(workers) + 1)]
        self._posts = [_Post(each[a:b]) for a, b in pairwise(ends) if a < b]
        for post, worker in zip(self._posts, workers, strict=False):
            post.worker = worker
        with self._client.as_current():
            self._man(self._posts)

    def total(self, query: Query) -> np.ndarray:
        """The exact sum of the query's integers over all rows."""
        return self.total_of(query, 0, 1)

    def part(self, part: int, parts: int) -> Part:
        """The same for every row whose number leaves the rest `part` when divided by `parts`."""
        return Part(self, part, parts)

    def total_of(self, query: Query, part: int, parts: int) -> np.ndarray:
        """The same over the rows of a part."""
        message = self._writer.write(query)
        with self._client.as_current():
            return self._summed(message, part, parts)

    def _summed(self, message: Message, part: int, parts: int) -> np.ndarray:
        self._spread()
        found: np.ndarray | None = None
        open_posts, losses = self._posts, 0
        while open_posts:
            lost = []
            asked = [(post, _asked(post, message, part, parts)) for post in open_posts]
            for post, answer in asked:
                reply = self._reply(post, answer)
                if reply is None:
                    lost.append(post)
                else:
                    found = reply if found is None else np.add(found, reply, out=found)
            if lost:
                losses += 1
                if losses > _MOST_LOSSES:
                    raise ClusterLost(
                        f"Workers were lost {losses} times while one sum was made. What was "
                        "charged stays charged. Look after the cluster, then go on from the "
                        "checkpoint."
                    )
                self._replace(lost)
            open_posts = lost
        assert found is not None
        return found

    def _reply(self, post: _Post, answer: Any) -> np.ndarray | None:
        """What a keeper answers, or None if it is lost."""
        while answer is not None:
            try:
                reply: np.ndarray = answer.result(timeout=_PATIENCE)
                return reply if reply.flags.writeable else reply.copy()
            except TimeoutError:
                if post.worker not in self._living():
                    return None
            except OSError:
                return None
        return None

    # Who keeps what

    def _replace(self, lost: list[_Post]) -> None:
        """Other workers for posts whose workers are lost: those with the least to do."""
        gone = {post.worker for post in lost}
        workers = [worker for worker in self._workers() if worker not in gone] or self._workers()
        load = dict.fromkeys(workers, 0)
        for post in self._posts:
            if post not in lost and post.worker in load:
                load[post.worker] += len(post.pieces)
        for post in lost:
            post.worker = min(load, key=load.__getitem__)
            load[post.worker] += len(post.pieces)
        self._man(lost)
        self._look_again = time.monotonic() + _SPREAD

    def _spread(self) -> None:
        """After a loss: a post for a new worker, if another worker has several."""
        if self._look_again is None or time.monotonic() < self._look_again:
            return
        self._look_again = time.monotonic() + _SPREAD
        busy = Counter(post.worker for post in self._posts)
        idle = [worker for worker in self._living() if worker not in busy]
        if not idle:
            return
        post = next((post for post in self._posts if busy[post.worker] > 1), None)
        if post is None:
            self._look_again = None
            return
        post.worker = idle[0]
        self._man([post])

    def _man(self, posts: list[_Post]) -> None:
        """A keeper for each post. One that cannot be made is found lost when it is asked."""
        made = []
        for post in posts:
            rows = [(*piece.given(self._client, post.worker), at) for piece, at in post.pieces]
            how = {"actor": True, "workers": [post.worker], "allow_other_workers": True}
            told = self._writer.told
            made.append(
                self._client.submit(Keeper, rows, self._preparation, told, pure=False, **how)
            )
        for post, future in zip(posts, made, strict=True):
            try:
                post.keeper = future.result()
                post.worker = post.keeper._address
            except (OSError, RuntimeError):
                post.keeper = None

    def _living(self) -> list[str]:
        return list(self._client.scheduler_info(n_workers=-1)["workers"])

    def _workers(self) -> list[str]:
        """The addresses of the workers. Waits for one if there is none."""
        end = time.monotonic() + _WAIT
        while True:
            if found := self._living():
                return found
            if time.monotonic() > end:
                raise ClusterLost(
                    f"The cluster has had no worker for {_WAIT:.0f} seconds, so the rows cannot be "
                    "summed. What was charged stays charged. Start workers, then go on from the "
                    "checkpoint."
                )
            time.sleep(0.1)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("An engine knows where private rows are and cannot be pickled.")

    def __repr__(self) -> str:
        return f"<DaskEngine with rows at {len(self._posts)} posts>"


class Part:
    """Some of the rows of a Dask engine."""

    def __init__(self, engine: DaskEngine, part: int, parts: int) -> None:
        self._engine, self._part, self._parts = engine, part, parts

    def total(self, query: Query) -> np.ndarray:
        return self._engine.total_of(query, self._part, self._parts)

    def part(self, part: int, parts: int) -> Part:
        raise ValueError("A part of the rows is not divided again.")


def _asked(post: _Post, message: Message, part: int, parts: int) -> Any:
    """A question on its way, or None if the keeper is known to be lost."""
    if post.keeper is None:
        return None
    try:
        return post.keeper.total(message, part, parts)
    except (OSError, RuntimeError):
        return None
