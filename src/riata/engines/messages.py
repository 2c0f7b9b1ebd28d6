"""Queries as bytes, for rows that are elsewhere: what does not change is sent once."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import cloudpickle

from riata.bounds import Bounds
from riata.losses import Loss
from riata.problem import Problem
from riata.projections import Projection
from riata.queries import Query, Scaling
from riata.sets import ConstraintSet

#: What many queries share, and may be as long as a row.
SHARED = (Bounds, ConstraintSet, Loss, Problem, Projection, Scaling)


@dataclass(frozen=True)
class Message:
    """One query, and by number what it shares with others that no message before told of."""

    query: bytes
    shared: dict[int, bytes]


class QueryWriter:
    """Writes messages, and remembers what they told of."""

    def __init__(self) -> None:
        self._kinds: dict[type, bool] = {}  # as a question of kind takes longer than to write
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # or an address could come to mean something else
        self.told: dict[int, bytes] = {}

    def write(self, query: Query) -> Message:
        new: dict[int, bytes] = {}
        return Message(self._dumps(query, new, top=query), new)

    def _dumps(self, what: Any, new: dict[int, bytes], top: Any) -> bytes:
        out = io.BytesIO()
        pickler = _Pickler(out, protocol=pickle.HIGHEST_PROTOCOL)
        pickler.number = lambda each: None if each is top else self._number(each, new)
        pickler.dump(what)
        return out.getvalue()

    def _number(self, each: Any, new: dict[int, bytes]) -> int | None:
        kind = type(each)
        if kind not in self._kinds:
            self._kinds[kind] = issubclass(kind, SHARED)
        if not self._kinds[kind]:
            return None
        if id(each) not in self._numbers:
            self._numbers[id(each)] = number = len(self._kept)
            self._kept.append(each)
            # What it shares itself comes first, so that a reader knows it.
            new[number] = self.told[number] = self._dumps(each, new, top=each)
        return self._numbers[id(each)]


class QueryReader:
    """Reads what a `QueryWriter` wrote."""

    def __init__(self) -> None:
        self._shared: dict[int, Any] = {}

    def learn(self, shared: dict[int, bytes]) -> None:
        """Be told of what queries share."""
        for number, text in shared.items():
            self._shared[number] = self._loads(text)

    def read(self, message: Message) -> Query:
        self.learn(message.shared)
        query: Query = self._loads(message.query)
        return query

    def _loads(self, text: bytes) -> Any:
        unpickler = _Unpickler(io.BytesIO(text))
        unpickler.shared = self._shared
        return unpickler.load()


class _Pickler(cloudpickle.Pickler):
    number: Any

    def persistent_id(self, obj: Any) -> int | None:
        found: int | None = self.number(obj)
        return found


class _Unpickler(pickle.Unpickler):
    shared: dict[int, Any]

    def persistent_load(self, pid: int) -> Any:
        return self.shared[pid]
