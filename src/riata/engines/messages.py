"""Queries as bytes, for rows that are elsewhere: what does not change is sent once."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np

from riata.bounds import Bounds
from riata.losses import Loss
from riata.problem import Problem
from riata.projections import Projection
from riata.queries import Query, Scaling
from riata.sets import ConstraintSet

#: What many queries share, and may be as long as a row.
SHARED = (Bounds, ConstraintSet, Loss, Problem, Projection, Scaling)

#: An array of at least so many bytes is sent once, as long as every message or every other one has
#: it: a model about which a step asks twice, or a matrix of all steps.
LONG = 2**12


@dataclass(frozen=True)
class Message:
    """One query, and by number what it shares with others that no message before had.

    The numbers in `unused` are not used again.
    """

    query: bytes
    shared: dict[int, bytes]
    unused: tuple[int, ...] = ()


class QueryWriter:
    """Writes messages, and remembers what they shared."""

    def __init__(self) -> None:
        self._kinds: dict[type, bool] = {}  # as a question of kind takes longer than to write
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # or an address could come to mean something else
        self._next = 0
        # Arrays by their bytes, since one that is the same object may have changed.
        self._before: dict[bytes, int] = {}
        self._arrays: dict[bytes, int] = {}
        self.shared: dict[int, bytes] = {}

    def write(self, query: Query) -> Message:
        new: dict[int, bytes] = {}
        self._before, self._arrays, before = self._arrays, {}, self._before
        text = self._dumps(query, new, top=query)
        used = {*self._before.values(), *self._arrays.values()}
        unused = tuple(number for number in before.values() if number not in used)
        for number in unused:
            del self.shared[number]
        return Message(text, new, unused)

    def _dumps(self, what: Any, new: dict[int, bytes], top: Any) -> bytes:
        out = io.BytesIO()
        pickler = _Pickler(out, protocol=pickle.HIGHEST_PROTOCOL)
        of_query = isinstance(top, Query)

        def number(each: Any) -> int | None:
            if each is top:
                return None
            if type(each) is np.ndarray and each.nbytes >= LONG:
                return self._number_of_array(each, new) if of_query else None
            return self._number(each, new)

        pickler.number = number
        pickler.dump(what)
        return out.getvalue()

    def _number(self, each: Any, new: dict[int, bytes]) -> int | None:
        kind = type(each)
        if kind not in self._kinds:
            self._kinds[kind] = issubclass(kind, SHARED)
        if not self._kinds[kind]:
            return None
        if id(each) not in self._numbers:
            self._kept.append(each)
            # What it shares itself comes first, so that a reader knows it.
            self._numbers[id(each)] = self._tell(self._dumps(each, new, top=each), new)
        return self._numbers[id(each)]

    def _number_of_array(self, each: np.ndarray, new: dict[int, bytes]) -> int:
        text = pickle.dumps(each, pickle.HIGHEST_PROTOCOL)
        if text not in self._arrays:
            known = self._before.get(text)
            self._arrays[text] = self._tell(text, new) if known is None else known
        return self._arrays[text]

    def _tell(self, text: bytes, new: dict[int, bytes]) -> int:
        number, self._next = self._next, self._next + 1
        new[number] = self.shared[number] = text
        return number


class QueryReader:
    """Reads what a `QueryWriter` wrote."""

    def __init__(self) -> None:
        self._shared: dict[int, Any] = {}

    def learn(self, shared: dict[int, bytes]) -> None:
        """Take what queries share."""
        for number, text in shared.items():
            self._shared[number] = self._loads(text)

    def read(self, message: Message) -> Query:
        self.learn(message.shared)
        query: Query = self._loads(message.query)
        for number in message.unused:
            self._shared.pop(number, None)
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
