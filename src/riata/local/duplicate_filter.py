"""Which reports were counted already, in memory that does not grow."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from riata.local.report_format import first_occurrences
from riata.mechanisms.noise import Noise

#: Bits and probes for each expected report: one new report in 15,000 is taken for a repeat.
_BITS, _PROBES = 20, 13
MOST_EXPECTED = 1 << 36


class DuplicateFilter:
    """A Bloom filter of seeds with secret hash functions.

    A repeat is always noticed. A new report is taken for a repeat with small probability, which
    depends on nothing but chance, so leaving it out biases nothing.

    Parameters
    ----------
    expected : int
        How many reports will come. With more of them, more new ones are taken for repeats.
    """

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self._log_bits = _log_bits(expected)
        self.keys = Noise().words(2).astype(np.uint64)
        self.words = np.zeros(1 << (self._log_bits - 6), dtype=np.uint64)

    def add(self, seeds: np.ndarray) -> np.ndarray:
        """Remember the seeds, and say which of them are new. Repeats within the call count too."""
        new = first_occurrences(seeds) & ~self.contains(seeds)
        for word, bit in self._places(seeds):
            np.bitwise_or.at(self.words, word, bit)
        return new

    def contains(self, seeds: np.ndarray) -> np.ndarray:
        """Which of the seeds are remembered."""
        found = np.ones(len(seeds), dtype=bool)
        for word, bit in self._places(seeds):
            found &= (self.words[word] & bit) != 0
        return found

    def _places(self, seeds: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Double hashing: two secret multiplications give all probes."""
        place = _mixed(seeds, self.keys[0])
        stride = _mixed(seeds, self.keys[1]) | np.uint64(1)
        for _ in range(_PROBES):
            bits = place >> np.uint64(64 - self._log_bits)
            yield bits >> np.uint64(6), np.uint64(1) << (bits & np.uint64(63))
            place += stride

    @classmethod
    def from_saved(cls, expected: int, words: np.ndarray, keys: np.ndarray) -> DuplicateFilter:
        """A filter that was saved."""
        if words.dtype != np.uint64 or keys.dtype != np.uint64 or keys.shape != (2,):
            raise ValueError("the saved filter has another form")
        if not 1 <= expected <= MOST_EXPECTED or words.shape != (1 << (_log_bits(expected) - 6),):
            raise ValueError("the saved filter has another size")
        made = cls(1)
        made.expected, made._log_bits = expected, _log_bits(expected)
        made.words, made.keys = words, keys
        return made


def _log_bits(expected: int) -> int:
    return max(10, math.ceil(math.log2(_BITS * expected)))


def _mixed(seeds: np.ndarray, key: np.uint64) -> np.ndarray:
    mixed = (seeds ^ key) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= key | np.uint64(1)
    return mixed ^ (mixed >> np.uint64(32))
