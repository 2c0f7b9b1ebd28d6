"""The only source of randomness that touches private data."""

from __future__ import annotations

import hashlib
import os
import threading

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import ndtri


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
        self._lock = threading.Lock()
        self._rekey()

    def _rekey(self) -> None:
        self._pid = os.getpid()
        key = os.urandom(32)
        if self._seed is not None:
            key = hashlib.sha256(f"riata test seed {self._seed}".encode()).digest()
        self._stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def _words(self, n: int) -> np.ndarray:
        with self._lock:
            if not self.seeded and os.getpid() != self._pid:
                self._rekey()
            return np.frombuffer(self._stream.update(bytes(8 * n)), dtype="<u8")

    def uniform(self, n: int) -> np.ndarray:
        """Uniform on the open interval (0, 1): the midpoints of 2^52 cells, all exact floats."""
        return ((self._words(n) >> np.uint64(12)) + 0.5) * 2.0**-52

    def normal(self, n: int) -> np.ndarray:
        return ndtri(self.uniform(n))

    def exponential(self, n: int) -> np.ndarray:
        return -np.log(self.uniform(n))

    def gumbel(self, n: int) -> np.ndarray:
        return -np.log(self.exponential(n))

    def laplace(self, n: int) -> np.ndarray:
        u = self.uniform(n) - 0.5
        return -np.sign(u) * np.log1p(-2 * np.abs(u))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A noise generator cannot be pickled: two copies would share its noise.")

    def __repr__(self) -> str:
        return f"<Noise {'SEEDED: NOT PRIVATE' if self.seeded else 'keyed by the system'}>"
