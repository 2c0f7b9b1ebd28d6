"""Rows at the workers of a Dask cluster: each step is one question to all of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol
from uuid import uuid4

import numpy as np
from distributed import Client, get_client, get_worker

from riata.engines.choice import numbers
from riata.engines.cluster import has_worker, workers_of
from riata.engines.messages import Message, Reader, Writer
from riata.engines.packing import Packed, packed
from riata.engines.shard import Shard
from riata.errors import ClusterLost
from riata.preparation import Preparation
from riata.queries import Query

#: A worker that says nothing for so many seconds is looked after.
_PATIENCE = 2.0

#: So many seconds a cluster without workers may take to get one, and so often workers may be lost
#: in one sum.
_WAIT, _MOST_LOSSES = 60.0, 20

#: So many keepers are asked from here, and each asks so many others: what comes in at one place is
#: so many sums, however many workers there are.
_FAN = 16

#: Fewer cells than this are summed sooner than a thread is told to.
_SHORT = 2**16

#: Sums of so many numbers are packed before they are sent. For shorter ones Dask's own time for a
#: question is longer than what a network of 10 Gbit/s would save.
_LONG = 10**6

#: A keeper waits so many seconds for those that it asked.
_LONGEST = 600.0

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
        self,
        rows: list[tuple[Any, Any, int]],
        preparation: Preparation,
        told: dict[int, bytes],
        topic: str = "",
    ) -> None:
        self._reader = Reader()
        self._reader.learn(told)
        self._shards = [_shard(x, y, start, preparation, topic) for x, y, start in rows]
        self._parts: dict[tuple[int, int], list[Shard]] = {(0, 1): self._shards}
        short = sum(shard.size for shard in self._shards) < _SHORT
        self._thread = None if short else ThreadPoolExecutor(1)

    async def total(self, question: Question) -> Reply:
        """The answer of the rows here and at the keepers below.

        One sum at a time, and long ones beside the worker's own affairs.
        """
        below = asyncio.gather(*(_heard_by_keeper(each, question) for each in question.below))
        if self._thread is None:
            found = self._summed(question)
        else:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._thread, self._summed, question)
        reply = Reply(found, [], [])
        for each in await below:
            reply.add(each)
        return reply.packed()

    def _summed(self, question: Question) -> np.ndarray:
        query, of = self._reader.read(question.message), (question.part, question.parts)
        if of not in self._parts:
            self._parts[of] = [shard.part(*of) for shard in self._shards]
        found = [shard.total(query) for shard in self._parts[of]]
        return sum(found[1:], found[0])


async def _heard_by_keeper(branch: Branch, question: Question) -> Reply:
    try:
        return await asyncio.wait_for(branch.ask(question), _LONGEST)
    except (OSError, RuntimeError):
        return branch.silence()


@dataclass
class Reply:
    """A sum over the rows of several keepers, and the numbers of those that are missing in it.

    Of these some are lost, and of the others nothing was heard because their question went through
    a keeper that is lost.
    """

    total: np.ndarray | Packed | None
    lost: list[int]
    unheard: list[int]

    def packed(self) -> Reply:
        """To be sent."""
        if isinstance(self.total, np.ndarray) and self.total.size >= _LONG:
            return replace(self, total=packed(self.total))
        return self

    def add(self, other: Reply) -> None:
        """Add a reply that was heard to one that was made here."""
        if isinstance(other.total, Packed):
            assert not isinstance(self.total, Packed)
            self.total = other.total.added_to(self.total)
        elif other.total is not None:
            self.total = other.total if self.total is None else self.total + other.total
        self.lost += other.lost
        self.unheard += other.unheard


@dataclass(frozen=True)
class Branch:
    """A keeper by its number, and those whose sums it adds to its own."""

    number: int
    keeper: Any
    below: tuple[Branch, ...]

    @property
    def numbers(self) -> list[int]:
        """Of all keepers of the branch."""
        return [self.number, *(number for each in self.below for number in each.numbers)]

    def silence(self) -> Reply:
        """What is known if the keeper does not answer."""
        return Reply(None, [self.number], self.numbers[1:])

    def ask(self, question: Question) -> Any:
        """An answer on its way. A keeper that is known to be lost is a RuntimeError."""
        if self.keeper is None:
            raise RuntimeError("lost")
        return self.keeper.total(replace(question, below=self.below))


@dataclass(frozen=True)
class Question:
    """A message, over the rows of which part it is asked, and whom it is passed on to."""

    message: Message
    part: int
    parts: int
    below: tuple[Branch, ...] = ()


def _shard(x: Any, y: Any, start: int, preparation: Preparation, topic: str) -> Shard:
    x, y = x.load() if y is None else (x, y)
    x = x if hasattr(x, "nnz") else numbers(x)
    found = Shard(*preparation(x, numbers(y).astype(np.float64)), start)
    if topic:
        get_worker().log_event(topic, len(y))
    return found


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
    advance : callable, optional
        Told, while workers read, how many more rows they have.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        preparation: Preparation,
        client: Client | None = None,
        advance: Callable[[int], None] | None = None,
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
        with self._client.as_current(), self._heard(advance, int(starts[-1])) as topic:
            self._man(self._posts, topic)

    def total(self, query: Query) -> np.ndarray:
        """The exact sum of the query's integers over all rows."""
        return self.total_of(query, 0, 1)

    def part(self, part: int, parts: int) -> Part:
        """The same for every row whose number leaves the rest `part` when divided by `parts`."""
        return Part(self, part, parts)

    def total_of(self, query: Query, part: int, parts: int) -> np.ndarray:
        """The same over the rows of a part."""
        question = Question(self._writer.write(query), part, parts)
        with self._client.as_current():
            return self._summed(question)

    def _summed(self, question: Question) -> np.ndarray:
        self._spread()
        whole = Reply(None, [], [])
        missing, losses = list(range(len(self._posts))), 0
        while missing:
            for reply in self._client.sync(self._replies, self._branches(missing), question):
                whole.add(reply)
            missing = whole.lost + whole.unheard
            if whole.lost:
                losses += 1
                if losses > _MOST_LOSSES:
                    raise ClusterLost(
                        f"Workers were lost {losses} times while one sum was made. What was "
                        "charged stays charged. Look after the cluster, then go on from the "
                        "checkpoint."
                    )
                self._replace([self._posts[number] for number in whole.lost])
            whole.lost, whole.unheard = [], []
        assert isinstance(whole.total, np.ndarray)
        return whole.total

    def _branches(self, numbers: list[int]) -> list[Branch]:
        """A tree over keepers: so few are asked from here, and each asks so few others.

        A worker has one place in it, as it answers one question at a time.
        """
        first: dict[str, int] = {}
        for number in numbers:
            first.setdefault(self._posts[number].worker, number)
        inside = list(first.values())
        others = [number for number in numbers if number not in first.values()]

        def branch(place: int) -> Branch:
            below = range(_FAN * (place + 1), min(_FAN * (place + 2), len(inside)))
            keeper = self._posts[inside[place]].keeper
            return Branch(inside[place], keeper, tuple(branch(each) for each in below))

        roots = [branch(place) for place in range(min(_FAN, len(inside)))]
        return roots + [Branch(number, self._posts[number].keeper, ()) for number in others]

    async def _replies(self, branches: list[Branch], question: Question) -> list[Reply]:
        return await asyncio.gather(*(self._reply(branch, question) for branch in branches))

    async def _reply(self, branch: Branch, question: Question) -> Reply:
        """What a keeper answers, or its silence if it is lost."""
        try:
            answer = branch.ask(question)
        except (OSError, RuntimeError):
            return branch.silence()
        while True:
            try:
                reply: Reply = await asyncio.wait_for(answer, _PATIENCE)
                return reply
            except TimeoutError:
                if not await has_worker(self._client, self._posts[branch.number].worker):
                    return branch.silence()
            except OSError:
                return branch.silence()

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
        idle = [worker for worker in workers_of(self._client) if worker not in busy]
        if not idle:
            return
        post = next((post for post in self._posts if busy[post.worker] > 1), None)
        if post is None:
            self._look_again = None
            return
        post.worker = idle[0]
        self._man([post])

    @contextmanager
    def _heard(self, advance: Callable[[int], None] | None, n_rows: int) -> Iterator[str]:
        """The topic under which workers tell of rows, if somebody wants to hear of it."""
        if advance is None:
            yield ""
            return
        topic, left = f"riata-{uuid4().hex}", [n_rows]

        def heard(event: tuple[float, int]) -> None:
            rows = min(event[1], left[0])  # those of a worker that is replaced are read twice
            left[0] -= rows
            advance(rows)

        self._client.subscribe_topic(topic, heard)
        try:
            yield topic
        finally:
            self._client.unsubscribe_topic(topic)
        heard((0.0, left[0]))  # what is still on its way

    def _man(self, posts: list[_Post], topic: str = "") -> None:
        """A keeper for each post. One that cannot be made is found lost when it is asked."""
        made = []
        for post in posts:
            rows = [(*piece.given(self._client, post.worker), at) for piece, at in post.pieces]
            how = {"actor": True, "workers": [post.worker], "allow_other_workers": True}
            told = (self._preparation, self._writer.told, topic)
            made.append(self._client.submit(Keeper, rows, *told, pure=False, **how))
        for post, future in zip(posts, made, strict=True):
            try:
                post.keeper = future.result()
                post.worker = post.keeper._address
            except (OSError, RuntimeError):
                post.keeper = None

    def _workers(self) -> list[str]:
        """The addresses of the workers. Waits for one if there is none."""
        end = time.monotonic() + _WAIT
        while True:
            if found := workers_of(self._client):
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
