"""Rows at the workers of a Dask cluster: each step is one question to all of them."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Client, KilledWorker, get_client

from riata.engines.actor import Branch, Question, ReadPiece, RowActor
from riata.engines.cluster import has_worker, workers_of
from riata.engines.messages import QueryWriter
from riata.engines.replies import Expected, Reply, WrongReply
from riata.errors import ClusterError, ClusterLost
from riata.mechanisms.engine import Engine
from riata.preparation import Preparation
from riata.queries import Query

#: A worker that says nothing for so many seconds is looked after.
_PATIENCE = 2.0

#: So many seconds a cluster without workers may take to get one, and so often workers may be lost
#: in one sum.
_WAIT, _MOST_LOSSES = 60.0, 20

#: So many actors are asked from here, and each asks so many others: what comes in at one place is
#: so many sums, however many workers there are.
_FAN = 16

#: After a loss, so often it is looked whether a new worker came.
_SPREAD = 5.0

_STAYS_CHARGED = "What was charged stays charged."

#: What every actor says about its rows: how many there are, and how many columns.
_FACTS = Expected((2,), 0.0)


class InMemory:
    """Rows in the memory of this process, which are sent."""

    def __init__(self, x: Any, y: np.ndarray) -> None:
        self._x, self._y, self.n_rows = x, y, len(y)

    def assign(self, client: Client, worker: str) -> tuple[Any, Any, ReadPiece | None]:
        """What a worker is given, and how it makes rows and targets of it: None if it has them."""
        x, y = client.scatter([self._x, self._y], workers=[worker], hash=False)
        return x, y, None


class Partition:
    """Rows of a Dask collection. `read`, which can be pickled, makes rows of what is computed."""

    def __init__(self, x: Any, y: Any, n_rows: int, read: ReadPiece) -> None:
        self._x, self._y, self.n_rows, self._read = x, y, n_rows, read

    def assign(self, client: Client, worker: str) -> tuple[Any, Any, ReadPiece | None]:
        x, y = client.compute([self._x, self._y], workers=[worker], allow_other_workers=True)
        return x, y, self._read


class InFile:
    """Rows that a worker can read itself: by the `load` of a source that can be pickled."""

    def __init__(self, source: Any) -> None:
        self._source, self.n_rows = source, source.n_rows

    def assign(self, client: Client, worker: str) -> tuple[Any, Any, ReadPiece | None]:
        return self._source, None, _load


def _load(source: Any, nothing: None) -> tuple[Any, np.ndarray]:
    found: tuple[Any, np.ndarray] = source.load()
    return found


#: Some consecutive rows, wherever they are kept.
Piece = InMemory | Partition | InFile


class _Assignment:
    """Some pieces, and the actor that has them now."""

    def __init__(self, pieces: list[tuple[Piece, int]]) -> None:
        self.pieces = pieces
        self.worker = ""
        self.actor: Any = None

    def describe(self) -> Any:
        """What the actor says about its rows, on its way. One that is lost is a RuntimeError."""
        return self.actor.describe()

    def n_rows(self, parts: int = 1) -> int:
        """How many rows they have at most in one of so many parts."""
        return sum(-(-piece.n_rows // parts) for piece, _ in self.pieces)


class DaskEngine(Engine):
    """Sums queries over rows at the workers of a cluster.

    Only queries go to the workers and only sums come back: noise, selection and ledger stay here.
    Sums are exact, so they are the same bits as in one process. A worker that is lost is replaced:
    another one reads its rows again, and is asked the same question. No noise is drawn for it, as
    noise is drawn when the sum is there.

    `pieces` have all rows, in order. Without a client the current one is used. `advance` is told
    once, when workers have all rows, how many these are: when each of them has its own would tell
    how many each has, which need not be public.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        preparation: Preparation,
        client: Client | None = None,
        advance: Callable[[int], None] | None = None,
    ) -> None:
        self._client = get_client() if client is None else client
        self._preparation, self._writer = preparation, QueryWriter()
        workers = self._workers()
        self._look_again: float | None = None
        self._n_columns: int | None = None
        self._readings = 0
        starts = np.cumsum([0, *(piece.n_rows for piece in pieces)])
        each = list(zip(pieces, map(int, starts), strict=False))
        ends = [len(each) * i // len(workers) for i in range(len(workers) + 1)]
        self._assignments = [_Assignment(each[a:b]) for a, b in pairwise(ends) if a < b]
        for assignment, worker in zip(self._assignments, workers, strict=False):
            assignment.worker = worker
        with self._client.as_current():
            self._start_actors(self._assignments)
        if advance is not None:
            advance(int(starts[-1]))

    def total(self, query: Query) -> np.ndarray:
        """The exact sum of the query's integers over all rows."""
        return self.total_of(query, 0, 1)

    @property
    def readings(self) -> int:
        return self._readings

    def part(self, part: int, parts: int) -> Part:
        """The same for every row whose number leaves the rest `part` when divided by `parts`."""
        return Part(self, part, parts)

    def total_of(self, query: Query, part: int, parts: int) -> np.ndarray:
        """The same over the rows of a part."""
        question = Question(self._writer.write(query), part, parts)
        with self._client.as_current():
            self._spread()
            return self._summed(question, Expected.of(query, self._known_columns()))

    def _known_columns(self) -> int:
        """How many columns the rows have, which an actor must have said."""
        for _ in range(_MOST_LOSSES):
            if self._n_columns is not None:
                return self._n_columns
            self._replace(self._assignments)
        raise _lost("before one had its rows")

    def _summed(self, question: Question, expected: Expected) -> np.ndarray:
        whole = Reply(None, [], [])
        missing, losses = list(range(len(self._assignments))), 0
        while missing:
            branches = self._branches(missing)
            asked = [
                (self._assignments[branch.number], partial(branch.ask, question))
                for branch in branches
            ]
            replies = self._client.sync(self._replies, asked)
            for branch, frames in zip(branches, replies, strict=True):
                self._add(whole, branch, frames, expected, question.parts)
            missing = whole.lost + whole.unheard
            if whole.lost:
                losses += 1
                if losses > _MOST_LOSSES:
                    raise _lost("while one sum was made")
                self._replace([self._assignments[number] for number in whole.lost])
            whole.lost, whole.unheard = [], []
        assert whole.total is not None
        return whole.total

    def _add(
        self, whole: Reply, branch: Branch, frames: Any, expected: Expected, parts: int
    ) -> None:
        """Add what a branch answered, if rows can have that sum."""
        try:
            reply = branch.heard(frames, expected)
            there = set(branch.numbers) - {*reply.lost, *reply.unheard}
            n_rows = sum(self._assignments[number].n_rows(parts) for number in there)
            whole.add(reply, expected.limit(n_rows))
            fault = reply.fault
        except WrongReply as problem:
            fault = f"It sent {problem}: its memory, or its version of riata, may not be right."
        if fault:
            raise ClusterError(
                f"A worker cannot sum its rows. {fault} {_STAYS_CHARGED} Look after the cluster, "
                "then go on from the checkpoint."
            )

    def _branches(self, numbers: list[int]) -> list[Branch]:
        """A tree over actors: so few are asked from here, and each asks so few others.

        A worker has one place in it, as it answers one question at a time.
        """
        first: dict[str, int] = {}
        for number in numbers:
            first.setdefault(self._assignments[number].worker, number)
        inside = list(first.values())
        others = [number for number in numbers if number not in first.values()]

        def branch(place: int) -> Branch:
            below = range(_FAN * (place + 1), min(_FAN * (place + 2), len(inside)))
            actor = self._assignments[inside[place]].actor
            return Branch(inside[place], actor, tuple(branch(each) for each in below))

        roots = [branch(place) for place in range(min(_FAN, len(inside)))]
        return roots + [Branch(number, self._assignments[number].actor, ()) for number in others]

    async def _replies(self, asked: list[tuple[_Assignment, Callable[[], Any]]]) -> list[Any]:
        """What each actor answers when it is asked."""
        return await asyncio.gather(*(self._reply(each.worker, ask) for each, ask in asked))

    async def _reply(self, worker: str, ask: Callable[[], Any]) -> Any:
        """What an actor answers, None if it is lost, and text if it raised, which none should."""
        try:
            answer = ask()
        except (OSError, RuntimeError):
            return None
        while True:
            try:
                return await asyncio.wait_for(answer, _PATIENCE)
            except TimeoutError:
                if not await has_worker(self._client, worker):
                    return None
            except OSError:
                return None
            except Exception as error:
                return type(error).__name__

    # Who keeps what

    def _replace(self, lost: list[_Assignment]) -> None:
        """Other workers for what lost ones had: those with the least to do."""
        gone = {assignment.worker for assignment in lost}
        workers = [worker for worker in self._workers() if worker not in gone] or self._workers()
        load = dict.fromkeys(workers, 0)
        for assignment in self._assignments:
            if assignment not in lost and assignment.worker in load:
                load[assignment.worker] += len(assignment.pieces)
        for assignment in lost:
            assignment.worker = min(load, key=load.__getitem__)
            load[assignment.worker] += len(assignment.pieces)
        self._start_actors(lost)
        self._look_again = time.monotonic() + _SPREAD

    def _spread(self) -> None:
        """After a loss: something for a new worker, if another worker has several assignments."""
        if self._look_again is None or time.monotonic() < self._look_again:
            return
        self._look_again = time.monotonic() + _SPREAD
        busy = Counter(each.worker for each in self._assignments)
        idle = [worker for worker in workers_of(self._client) if worker not in busy]
        if not idle:
            return
        assignment = next((each for each in self._assignments if busy[each.worker] > 1), None)
        if assignment is None:
            self._look_again = None
            return
        assignment.worker = idle[0]
        self._start_actors([assignment])

    def _start_actors(self, assignments: list[_Assignment]) -> None:
        """An actor for each. One that cannot be reached is found lost when it is asked."""
        self._readings += 1
        futures = []
        for each in assignments:
            rows = [(*piece.assign(self._client, each.worker), at) for piece, at in each.pieces]
            how = {"actor": True, "workers": [each.worker], "allow_other_workers": True}
            public = (self._preparation, self._writer.shared)
            futures.append(self._client.submit(RowActor, rows, *public, pure=False, **how))
        for each, future in zip(assignments, futures, strict=True):
            each.actor = _actor(future)
            if each.actor is not None:
                each.worker = each.actor._address
        asked = [(each, each.describe) for each in assignments if each.actor is not None]
        for (each, _), frames in zip(asked, self._client.sync(self._replies, asked), strict=True):
            if frames is None:
                each.actor = None
            else:
                self._check_facts(each, frames)

    def _check_facts(self, assignment: _Assignment, frames: Any) -> None:
        """Raise unless an actor has the rows that it should have."""
        try:
            reply = Reply.of(frames, _FACTS)
            fault = reply.fault
        except WrongReply as problem:
            reply, fault = Reply(None, [], []), f"It sent {problem}."
        if not fault:
            shape = (-1, -1) if reply.total is None else reply.total.tolist()
            n_rows, n_columns = shape
            known = self._n_columns is None or n_columns == self._n_columns
            if n_rows != assignment.n_rows() or n_columns < 1 or not known:
                fault = (
                    "Its rows are not as many, or have not as many columns, as the collection or "
                    "the files say."
                )
            self._n_columns = n_columns
        if fault:
            raise ClusterError(
                f"A worker cannot keep its rows. {fault} {_STAYS_CHARGED} Go on from the "
                "checkpoint once that is put right."
            )

    def _workers(self) -> list[str]:
        """The addresses of the workers. Waits for one if there is none."""
        end = time.monotonic() + _WAIT
        while True:
            if found := workers_of(self._client):
                return found
            if time.monotonic() > end:
                raise ClusterLost(
                    f"The cluster has had no worker for {_WAIT:.0f} seconds, so the rows cannot be "
                    f"summed. {_STAYS_CHARGED} Start workers, then go on from the checkpoint."
                )
            time.sleep(0.1)

    def __repr__(self) -> str:
        return f"<DaskEngine with rows at {len(self._assignments)} workers>"


def _lost(when: str) -> ClusterLost:
    return ClusterLost(
        f"Workers were lost at least {_MOST_LOSSES} times {when}. {_STAYS_CHARGED} Look after the "
        "cluster, then go on from the checkpoint."
    )


def _actor(future: Any) -> Any:
    """The actor that a future stands for, None if its worker was lost.

    Actors do not raise, so that an error is one of the collection whose rows it was to have. Its
    text may quote them.
    """
    try:
        return future.result()
    except Exception as error:
        failed = future.status == "error" and not isinstance(error, KilledWorker)
    if failed:  # outside of the handler, or the error would go along
        raise ClusterError(
            "A partition of the Dask collection cannot be computed. What Dask says about it may "
            "quote rows, and is left out here: compute the collection with Dask to see it. "
            f"{_STAYS_CHARGED}"
        )
    return None


class Part(Engine):
    """Some of the rows of a Dask engine."""

    def __init__(self, engine: DaskEngine, part: int, parts: int) -> None:
        self._engine, self._part, self._parts = engine, part, parts

    def total(self, query: Query) -> np.ndarray:
        return self._engine.total_of(query, self._part, self._parts)
