"""The only source of randomness that touches private data."""

from __future__ import annotations

import hashlib
import os
import threading
import weakref

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import ndtri

#: The width of the cells whose midpoints uniform draws are.
_CELL = 2.0**-52

#: All generators of this process, so that a fork can give each of them a new key.
_LIVING: weakref.WeakSet[Noise] = weakref.WeakSet()


class Noise:
    """Independent draws from an AES-256-CTR key stream, keyed by the operating system.

    A generator that wakes up in another process (after a fork) takes a new key, so that no two
    processes ever use the same noise. Draws from several threads are serialised.

    Parameters
    ----------
    seed : int, optional
        For tests only: a public key, which makes the draws reproducible and protects nobody.
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seeded = seed is not None
        self._seed = seed
        self._start()
        _LIVING.add(self)

    def _start(self) -> None:
        """A new lock and a new key: at the beginning, and in each process that a fork makes."""
        self._lock = threading.Lock()
        key = os.urandom(32)
        if self._seed is not None:
            key = hashlib.sha256(f"riata test seed {self._seed}".encode()).digest()
        self._stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def _words(self, n: int) -> np.ndarray:
        with self._lock:
            return np.frombuffer(self._stream.update(bytes(8 * n)), dtype="<u8")

    def uniform(self, n: int) -> np.ndarray:
        """Uniform on the open interval (0, 1): the midpoints of 2^52 cells, all exact floats."""
        return _midpoints(self._words(n))

    def normal(self, n: int) -> np.ndarray:
        return ndtri(self.uniform(n))

    def exponential(self, n: int) -> np.ndarray:
        return self._exponential_at(self.uniform(n))

    def _exponential_at(self, u: np.ndarray) -> np.ndarray:
        """-log(u), with both outermost cells drawn again: the tails are right to 72 scales."""
        out = -np.log(u)
        first, last = np.flatnonzero(u < _CELL), np.flatnonzero(u > 1 - _CELL)
        out[first] = -np.log(_CELL) - np.log(self.uniform(len(first)))
        out[last] = _CELL * self.uniform(len(last))
        return out

    def gumbel(self, n: int) -> np.ndarray:
        return -np.log(self.exponential(n))

    def laplace(self, n: int) -> np.ndarray:
        words = self._words(n)  # the first bit is the sign, the next 52 the size
        sign = np.where(words >> np.uint64(63), 1.0, -1.0)
        return sign * self._exponential_at(_midpoints(words << np.uint64(1)))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A noise generator cannot be pickled: two copies would share its noise.")

    def __repr__(self) -> str:
        return f"<Noise {'SEEDED: NOT PRIVATE' if self.seeded else 'keyed by the system'}>"


def _midpoints(words: np.ndarray) -> np.ndarray:
    return ((words >> np.uint64(12)) + 0.5) * _CELL


def _after_fork() -> None:
    for noise in list(_LIVING):
        noise._start()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)
