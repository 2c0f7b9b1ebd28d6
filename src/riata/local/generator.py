"""A public function from 64-bit seeds to normal vectors, so that a report is a seed."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from riata.numeric import row_slices

#: Seeds are unsigned words of this many bits.
SEED_BITS = 64
#: The largest length of a pair of coordinates that the generator can make.
LONGEST_PAIR = math.sqrt(66 * math.log(2))
#: Words of a block of normal numbers that stays in the cache.
_BLOCK = 1 << 16
#: After so many numbers (about a second) compiled code is worth its start.
PATIENCE = 1 << 25


class Generator:
    """Standard normal vectors, one for each seed, the same on every device and server.

    The words of seed `s` are the AES-256 blocks of `(s, 0), (s, 1), ...` under the key, and
    each two words make two coordinates by the method of Box and Muller. So any coordinate of any
    vector can be made alone.

    Parameters
    ----------
    key : bytes
        The 32 bytes of the task's id. They are public: the generator hides nothing, it only has
        to be evenly spread over all seeds.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._made = 0
        self._transform = _box_muller

    def words(self, seeds: np.ndarray, first: int, last: int) -> np.ndarray:
        """The 32-bit words of the blocks from `first` up to `last`, one row for each seed."""
        if len(seeds) == 0 or first == last:
            return np.zeros((len(seeds), 4 * (last - first)), dtype="<u4")
        places = np.empty((len(seeds), last - first, 2), dtype=">u8")
        places[:, :, 0] = seeds[:, None]
        places[:, :, 1] = np.arange(first, last, dtype=np.uint64)
        # Counter blocks under the block cipher are AES in counter mode with the seed as its nonce.
        cipher = Cipher(algorithms.AES256(self._key), modes.ECB()).encryptor()
        words = cipher.update(places.data.cast("B"))
        return np.frombuffer(words, dtype="<u4").reshape(len(seeds), -1)

    def normals(self, seeds: np.ndarray, size: int, first: int = 0) -> np.ndarray:
        """`size` coordinates of the vector of each seed from block `first` on, a row for each."""
        blocks = -(-size // 4)
        self._made += 4 * blocks * len(seeds)
        if self._made > PATIENCE and self._transform is _box_muller and find_spec("numba"):
            from riata.local.compiled_normals import box_muller

            self._transform = box_muller
        rows = np.empty((len(seeds), 4 * blocks))
        for part in row_slices(len(seeds), 4 * blocks, _BLOCK):
            self._transform(self.words(seeds[part], first, first + blocks), rows[part])
        return rows[:, :size]

    def coordinates(self, seeds: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Only the coordinates at `places`, for each seed."""
        rows = np.empty((len(seeds), len(places)))
        blocks, which = np.unique(places // 4, return_inverse=True)
        for number, block in enumerate(blocks):
            four = np.empty((len(seeds), 4))
            _box_muller(self.words(seeds, int(block), int(block) + 1), four)
            wanted = which == number
            rows[:, wanted] = four[:, places[wanted] % 4]
        return rows


def _box_muller(words: np.ndarray, out: np.ndarray) -> None:
    """Two independent normal numbers from each two words: length, then angle."""
    length = words[:, 0::2] + 0.5
    length *= 2.0**-32
    np.log(length, out=length)
    length *= -2.0
    np.sqrt(length, out=length)
    angle = words[:, 1::2] * (2.0 * math.pi * 2.0**-32)
    np.multiply(length, np.cos(angle), out=out[:, 0::2])
    np.multiply(length, np.sin(angle), out=out[:, 1::2])
