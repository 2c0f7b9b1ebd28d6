"""A keyed digest of all rows, as a sum: it tells whether rows are the same as before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.queries.base import Query
from riata.queries.block import Block

#: Arithmetic is modulo this prime, in so many independent lanes.
_PRIME, _LANES = 2**31 - 1, 4

#: Factors of columns have so many bits, and so many columns are multiplied at a time: inner
#: products of rows on the grid are below 2^53, and exact.
_COLUMN_BITS, _COLUMNS = 17, 2**20

#: The 64 bits of a target are cut into pieces of so many: each is smaller than the prime.
_PIECES = (22, 21, 21)

#: Factors of rows are made for so many of them at a time.
_ROWS = 2**10


@dataclass(frozen=True, eq=False)
class RowDigest(Query):
    """Sums of random multiples of every entry and target, modulo a prime.

    Rows that differ anywhere have the same digest with a probability below 2^-67 over the key: the
    proof is in docs/privacy/checkpoint.md. It is kept inside a checkpoint, under a code with a
    secret key, and never released.

    Parameters
    ----------
    key : bytes
        Secret, and always of the same length.
    n_rows : int
        Of all rows, or more.
    adjacency : str
    """

    key: bytes
    n_rows: int
    adjacency: str

    @property
    def unit(self) -> Any:
        return 1 / self.n_rows

    def row_bound(self, norm: str) -> float:
        return float(_PRIME)

    def block_sum(self, block: Block) -> np.ndarray:
        targets = pieces_of(block.y)
        found = targets @ self._factors("targets", 0, targets.shape[1])
        for inner in self._inner(block.rows):
            found += inner % _PRIME
        mixed = found % _PRIME * self._of_rows(block.start, len(block.y)) % _PRIME
        return mixed.sum(axis=0).astype(np.float64)

    def _inner(self, x: Any) -> Iterator[np.ndarray]:
        """Inner products of rows with the factors of some columns after the other."""
        for number, start in enumerate(range(0, x.shape[1], _COLUMNS)):
            some = x if x.shape[1] <= _COLUMNS else x[:, start : start + _COLUMNS]
            factors = self._factors("columns", number, some.shape[1]) >> (31 - _COLUMN_BITS)
            yield np.asarray(some @ factors.astype(np.float64)).astype(np.int64)

    def _of_rows(self, start: int, n_rows: int) -> np.ndarray:
        """The factors of rows, by their numbers among all rows."""
        first, last = start // _ROWS, -(-(start + n_rows) // _ROWS)
        numbers = range(first, max(last, first + 1))
        each = [self._factors("rows", number, _ROWS) for number in numbers]
        begin = start - first * _ROWS
        return np.concatenate(each)[begin : begin + n_rows]

    def _factors(self, of: str, number: int, size: int) -> np.ndarray:
        """Random numbers below 2^31 that follow from the key, in each lane."""
        name = self.key + f" {of} {number}".encode()
        stream = hashlib.shake_256(name).digest(4 * size * _LANES)
        words = np.frombuffer(stream, dtype="<u4").reshape(size, _LANES)
        return (words >> 1).astype(np.int64)


def pieces_of(y: np.ndarray) -> np.ndarray:
    """A one and the bits of each target, as numbers below 2^22: other bits are other pieces."""
    bits = np.ascontiguousarray(y, dtype=np.float64).view(np.uint64)
    found = [np.ones(len(bits), dtype=np.int64)]
    for width in _PIECES:
        found.append((bits & np.uint64(2**width - 1)).astype(np.int64))
        bits = bits >> np.uint64(width)
    return np.column_stack(found)
