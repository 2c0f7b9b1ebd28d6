"""What workers answer, as plain arrays, and what is checked before an answer is used.

A worker that fails must not stop a fit with an error that quotes rows, and a sum that cannot be
one, because memory or a version is not what it should be, must not be added to the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from riata.errors import RiataError
from riata.grid import BLOCK_ROWS
from riata.queries import Block, Query

#: The sum of a block is exact in float64, so it is no larger than this.
_LARGEST_OF_BLOCK = 2**53

_NOTHING, _SUM, _FAULT = range(3)

#: What is sent: numbers about the answer first, then the answer.
Frames = list[np.ndarray]


class WrongReply(Exception):
    """An answer that cannot be right. Says why, and quotes none of it."""


@dataclass(frozen=True)
class Expected:
    """The shape of every sum of a query, and the largest integer that one row can add to it.

    One for all coordinates or one for each; 0 if the query does not say.
    """

    shape: tuple[int, ...]
    summand: Any

    @classmethod
    def of(cls, query: Query, n_columns: int) -> Expected:
        nothing = query.block_sum(Block(sparse.csr_array((0, n_columns)), np.zeros(0)))
        return cls(nothing.shape, _summand(query))

    def limit(self, n_rows: int) -> Any:
        """The largest number in a sum over so many rows."""
        if np.ndim(self.summand) == 0 and not self.summand:
            return float(_LARGEST_OF_BLOCK * (1 + n_rows // BLOCK_ROWS))
        return np.ceil(self.summand * n_rows)


def _summand(query: Query) -> Any:
    """From what is proven about one row, with room for roundings in the division."""
    source = query.summed
    try:
        bound = source.row_bound("linf")
    except ValueError:  # the query is not for release by itself
        return 0.0
    with np.errstate(all="ignore"):
        found = np.asarray(bound / (source.unit * source.n_rows) * (1 + 2.0**-20))
    return float(found) if found.ndim == 0 else found


@dataclass
class Reply:
    """A sum over the rows of several actors, and the numbers of those that are missing in it.

    Of these some are lost, and of the others nothing was heard because their question went through
    an actor that is lost. With a fault there is no sum.
    """

    total: np.ndarray | None
    lost: list[int]
    unheard: list[int]
    fault: str = ""

    def frames(self) -> Frames:
        """To be sent. Arrays alone, so that Dask has nothing to pickle."""
        numbers = [len(self.lost), len(self.unheard), *self.lost, *self.unheard]
        if self.fault:
            text = np.frombuffer(self.fault.encode(), dtype=np.uint8)
            return [np.array([_FAULT, *numbers], dtype=np.int64), text]
        if self.total is None:
            return [np.array([_NOTHING, *numbers], dtype=np.int64)]
        return [np.array([_SUM, *numbers, *self.total.shape], dtype=np.int64), self.total]

    @classmethod
    def of(cls, frames: Any, expected: Expected) -> Reply:
        """From what was heard, if its form is right."""
        arrays = isinstance(frames, list | tuple) and all(type(a) is np.ndarray for a in frames)
        if not arrays or not 1 <= len(frames) <= 2:
            raise WrongReply("an answer that is no list of arrays")
        head, *payload = frames
        if head.dtype != np.int64 or head.ndim != 1 or len(head) < 3 or head[1:3].min() < 0:
            raise WrongReply("an answer without its beginning")
        kind, lost, unheard = (int(number) for number in head[:3])
        missing, shape = head[3 : 3 + lost + unheard].tolist(), tuple(head[3 + lost + unheard :])
        if len(missing) != lost + unheard:
            raise WrongReply("an answer without its beginning")
        found = cls(None, missing[:lost], missing[lost:])
        kinds = [each.dtype for each in payload]
        if kind == _FAULT and kinds == [np.uint8]:
            return cls(None, [], [], payload[0].tobytes().decode("utf-8", "replace") or "?")
        if kind == _NOTHING and not payload:
            return found
        if kind != _SUM or shape != expected.shape:
            raise WrongReply(f"a sum of another shape than {expected.shape}")
        if kinds != [np.int64] or payload[0].shape != expected.shape:
            raise WrongReply("a sum whose numbers are no whole numbers of 64 bits")
        found.total = payload[0]
        return found

    def add(self, other: Reply, limit: Any) -> None:
        """Add a reply that was heard, whose numbers may be so large, to one that was made here."""
        if other.total is not None:
            if np.any(other.total > limit) or np.any(other.total < -limit):
                raise WrongReply("a sum that is larger than its rows can make it")
            self.total = other.total if self.total is None else self.total + other.total
        self.lost += other.lost
        self.unheard += other.unheard
        self.fault = self.fault or other.fault


def fault_of(error: Exception) -> str:
    """What may be told of an error at a worker: riata's own messages quote no row."""
    if isinstance(error, RiataError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory for the rows and a copy of them on the grid."
    return f"There was a {type(error).__name__}, whose text may quote rows and is left out."
