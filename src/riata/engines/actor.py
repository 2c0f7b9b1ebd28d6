"""What keeps rows at a worker of a Dask cluster, and how it is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riata.engines.messages import Message, QueryReader
from riata.engines.replies import Expected, Frames, Reply, WrongReply, fault_of
from riata.engines.shard import Shard
from riata.preparation import Preparation

#: Fewer cells than this are summed sooner than a thread is told to.
_SHORT = 2**16

#: An actor waits so many seconds for those that it asked.
_LONGEST = 600.0

#: From what a worker was given to rows and targets.
ReadPiece = Callable[[Any, Any], tuple[Any, np.ndarray]]

#: What a worker was given, how it makes rows and targets of it, and the number of the first row.
GivenRows = tuple[Any, Any, ReadPiece | None, int]


class RowActor:
    """Keeps rows at a worker and sums queries over them. Rows leave it in no other way.

    Nothing raises here: Dask writes the arguments of a task that fails into its log, and they are
    rows. What went wrong is an answer like any other.
    """

    def __init__(
        self, rows: list[GivenRows], preparation: Preparation, shared: dict[int, bytes]
    ) -> None:
        self._reader = QueryReader()
        self._shards: list[Shard] = []
        self._facts, self._fault = (0, 0), ""
        try:
            self._reader.learn(shared)
            self._facts = self._read(rows, preparation)
        except Exception as error:
            self._shards, self._fault = [], fault_of(error)
        self._parts: dict[tuple[int, int], list[Shard]] = {(0, 1): self._shards}
        short = sum(shard.size for shard in self._shards) < _SHORT
        self._thread = None if short else ThreadPoolExecutor(1)

    def _read(self, rows: list[GivenRows], preparation: Preparation) -> tuple[int, int]:
        n_rows, n_columns = 0, set[int]()
        for x, y, read, start in rows:
            if read is not None:
                x, y = read(x, y)
            steps, targets = preparation(x, y)
            n_rows, n_columns = n_rows + len(targets), n_columns | {steps.shape[1]}
            self._shards.append(Shard(steps, targets, start))
        return n_rows, n_columns.pop() if len(n_columns) == 1 else -1

    async def describe(self) -> Frames:
        """The number of rows, and of columns that queries are about; -1 if pieces disagree."""
        return Reply(np.array(self._facts, dtype=np.int64), [], [], self._fault).frames()

    async def total(self, question: Question) -> Frames:
        """The answer of the rows here and at the actors below.

        One sum at a time, and long ones beside the worker's own affairs.
        """
        below = asyncio.gather(*(_ask(each, question) for each in question.below))
        try:
            if self._thread is None:
                reply, expected, limit = self._summed(question)
            else:
                loop = asyncio.get_running_loop()
                reply, expected, limit = await loop.run_in_executor(
                    self._thread, self._summed, question
                )
            for branch, heard in zip(question.below, await below, strict=True):
                reply.add(branch.heard(heard, expected), limit)
        except WrongReply as problem:
            return Reply(None, [], [], f"Another worker sent it {problem}.").frames()
        except Exception as error:
            return Reply(None, [], [], fault_of(error)).frames()
        return reply.frames()

    def _summed(self, question: Question) -> tuple[Reply, Expected, Any]:
        query, of = self._reader.read(question.message), (question.part, question.parts)
        if of not in self._parts:
            self._parts[of] = [shard.part(*of) for shard in self._shards]
        found = [shard.total(query) for shard in self._parts[of]]
        reply = Reply(sum(found[1:], found[0]), [], [])
        if not question.below:
            return reply, Expected(found[0].shape, 0.0), 0.0
        expected = Expected.of(query, self._facts[1])
        return reply, expected, expected.limit(query.n_rows)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("An actor holds private rows and cannot be pickled.")

    def __repr__(self) -> str:
        return "<RowActor>"


async def _ask(branch: Branch, question: Question) -> Frames | None:
    try:
        found: Frames = await asyncio.wait_for(branch.ask(question), _LONGEST)
        return found
    except (OSError, RuntimeError):
        return None


@dataclass(frozen=True)
class Branch:
    """An actor by its number, and those whose sums it adds to its own."""

    number: int
    actor: Any
    below: tuple[Branch, ...]

    @property
    def numbers(self) -> list[int]:
        """Of all actors of the branch."""
        return [self.number, *(number for each in self.below for number in each.numbers)]

    def heard(self, frames: Frames | None, expected: Expected) -> Reply:
        """The reply that was heard; None is that of a lost actor."""
        if frames is None:
            return Reply(None, [self.number], self.numbers[1:])
        reply = Reply.of(frames, expected)
        missing = reply.lost + reply.unheard
        if len(set(missing)) != len(missing) or not set(missing) <= set(self.numbers[1:]):
            raise WrongReply("an answer that misses workers which were not asked")
        if reply.total is None and not reply.fault:
            raise WrongReply("an answer without a sum")
        return reply

    def ask(self, question: Question) -> Any:
        """An answer on its way. An actor that is known to be lost is a RuntimeError."""
        if self.actor is None:
            raise RuntimeError("lost")
        return self.actor.total(replace(question, below=self.below))


@dataclass(frozen=True)
class Question:
    """A message, over the rows of which part it is asked, and whom it is passed on to."""

    message: Message
    part: int
    parts: int
    below: tuple[Branch, ...] = ()
