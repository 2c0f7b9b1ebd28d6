"""A set of 64-bit words, such as reports and tokens, in eight bytes each."""

from __future__ import annotations

import numpy as np


class WordSet:
    """A set of words as a few sorted arrays, each at least twice as long as the next.

    New words come in batches: a batch becomes an array of its own, and arrays of similar length
    are merged, so that a word is moved only a logarithmic number of times.
    """

    def __init__(self) -> None:
        self._levels: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(len(level) for level in self._levels)

    def contains(self, words: np.ndarray) -> np.ndarray:
        """Which of the words are in the set."""
        found = np.zeros(len(words), dtype=bool)
        for level in self._levels:
            places = np.searchsorted(level, words)
            places[places == len(level)] = 0
            found |= level[places] == words
        return found

    def difference(self, words: np.ndarray) -> np.ndarray:
        """The words that are not in the set, each once, sorted."""
        once = np.unique(words)
        new: np.ndarray = once[~self.contains(once)]
        return new

    def update(self, words: np.ndarray) -> None:
        """Add words."""
        new = self.difference(words)
        if len(new) == 0:
            return
        self._levels.append(new)
        while len(self._levels) > 1 and len(self._levels[-2]) < 2 * len(self._levels[-1]):
            last = self._levels.pop()
            self._levels[-1] = np.sort(np.concatenate([self._levels[-1], last]), kind="stable")
