"""A keyed digest of all rows, as a sum: it tells whether rows are the same as before."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from riata.queries.base import Query
from riata.queries.block import Block

#: Arithmetic is modulo this prime, in so many independent lanes.
_PRIME, _LANES = 2**31 - 1, 4

#: Columns are multiplied by whole numbers below this: inner products of rows are exact.
_MOST = 2**13


@dataclass(frozen=True, eq=False)
class RowDigest(Query):
    """Sums of random multiples of every entry and target, modulo a prime.

    Rows that differ anywhere have the same digest with a probability of about 2^-50. It is kept
    inside a checkpoint, under a code with a secret key, and never released.

    Parameters
    ----------
    key : bytes
        Secret.
    n_rows : int
    adjacency : str
    """

    key: bytes
    n_rows: int
    adjacency: str

    unit = 1

    def _of_columns(self, n: int) -> np.ndarray:
        stream = hashlib.shake_256(self.key + b" columns").digest(2 * n * _LANES)
        return 1.0 + np.frombuffer(stream, dtype="<u2").reshape(n, _LANES) % (_MOST - 1)

    def _of_rows(self, block: Block, lane: int, what: int) -> np.ndarray:
        """Random factors of rows, from 1 to the prime less 1: a mixing of their numbers."""
        seed = hashlib.sha256(self.key + bytes([lane, what])).digest()[:8]
        with np.errstate(over="ignore"):
            z = np.arange(block.start, block.start + len(block.y), dtype=np.uint64)
            z = (z + np.uint64(int.from_bytes(seed, "little"))) * np.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) % np.uint64(_PRIME - 1)).astype(np.int64) + 1

    def block_sum(self, block: Block) -> np.ndarray:
        x, y = block.rows, block.y
        inner = np.asarray(x @ self._of_columns(x.shape[1])).astype(np.int64)
        bits = (np.asarray(y, dtype=np.float64) + 0.0).view(np.uint64)  # which makes -0 to 0
        low = (bits & np.uint64(0xFFFFFFFF)).astype(np.int64)
        high = (bits >> np.uint64(32)).astype(np.int64)
        found = np.zeros(_LANES)
        for lane in range(_LANES):
            parts = (inner[:, lane], low, high)
            mixed = [part % _PRIME * self._of_rows(block, lane, k) % _PRIME
                     for k, part in enumerate(parts)]  # fmt: skip
            found[lane] = (sum(mixed) % _PRIME).sum()
        return found

    def row_bound(self, norm: str) -> float:
        return float(_PRIME)
