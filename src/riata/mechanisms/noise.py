"""The only source of randomness that touches private data."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
import weakref

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

#: All generators of this process, so that a fork can give each of them new keys.
_LIVING: weakref.WeakSet[Noise] = weakref.WeakSet()

#: What is encrypted, a piece at a time, and the bytes that the cipher asks for beyond it.
_ZEROS, _SLACK = memoryview(bytes(1 << 16)), 16


class Noise:
    """Independent random words from AES-256-CTR key streams, keyed by the operating system.

    Each thread that draws gets a key of its own, and so does each process that a fork makes, so
    that no two threads and no two processes ever use the same noise.

    Parameters
    ----------
    seed : int, optional
        For tests only: public keys, which make the draws reproducible and protect nobody.
    key : bytes, optional
        A secret from which the keys follow, for a release that may have to be made again.
    """

    def __init__(self, seed: int | None = None, *, key: bytes | None = None) -> None:
        self.seeded = seed is not None
        self._text = key
        if key is None and seed is not None:
            self._text = f"riata test seed {seed}".encode()
        self._forget_keys()
        _LIVING.add(self)

    def _forget_keys(self) -> None:
        """At the beginning, and in each process that a fork makes."""
        self._threads = threading.local()
        self._ordinals = itertools.count()

    def _stream(self) -> CipherContext:
        try:
            return self._threads.stream
        except AttributeError:
            key = os.urandom(32)
            if self._text is not None:
                text = self._text + f", thread {next(self._ordinals)}".encode()
                key = hashlib.sha256(text).digest()
            self._threads.stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
            return self._threads.stream

    def words(self, n: int) -> np.ndarray:
        """`n` independent words of 64 random bits."""
        stream, size = self._stream(), 8 * n
        found = np.empty(size + _SLACK, dtype=np.uint8)
        for start in range(0, size, len(_ZEROS)):
            stream.update_into(_ZEROS[: size - start], found[start:])  # type: ignore[arg-type]
        return found[:size].view("<u8")

    def coins(self) -> Coins:
        """Words for rows by their number, keyed by this generator."""
        return Coins(self.words(4).tobytes())

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("A noise generator cannot be pickled: two copies would share its noise.")

    def __repr__(self) -> str:
        return f"<Noise {'SEEDED: NOT PRIVATE' if self.seeded else 'keyed by the system'}>"


class Coins:
    """One random word for each row: the same wherever the row is, and however often it is asked.

    May travel to where the rows are, for one release: a piece of the rows that is summed twice
    because a machine was lost then has the same sample. The key of 32 bytes is secret, and for
    this release alone.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def words(self, start: int, n: int) -> np.ndarray:
        """The words of `n` rows from number `start` on."""
        block, odd = divmod(start, 2)  # a block of the cipher is two words
        counter = modes.CTR(block.to_bytes(16, "big"))
        stream = Cipher(algorithms.AES256(self._key), counter).encryptor()
        return np.frombuffer(stream.update(bytes(8 * (n + odd))), dtype="<u8")[odd:]

    def __repr__(self) -> str:
        return "<Coins>"


def _after_fork() -> None:
    for noise in list(_LIVING):
        if not noise.seeded:
            noise._text = None
        noise._forget_keys()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)
