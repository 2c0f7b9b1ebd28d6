"""Which reports are held already, exactly, in eight bytes each."""

from __future__ import annotations

import numpy as np


class WordSet:
    """A set of seeds as a few sorted arrays, each at least twice as long as the next.

    New seeds come in batches: a batch becomes an array of its own, and arrays of similar length
    are merged, so that a seed is moved only a logarithmic number of times.
    """

    def __init__(self) -> None:
        self._levels: list[np.ndarray] = []

    def __len__(self) -> int:
        return sum(len(level) for level in self._levels)

    def contains(self, seeds: np.ndarray) -> np.ndarray:
        """Which of the seeds are in the set."""
        found = np.zeros(len(seeds), dtype=bool)
        for level in self._levels:
            places = np.searchsorted(level, seeds)
            places[places == len(level)] = 0
            found |= level[places] == seeds
        return found

    def new(self, seeds: np.ndarray) -> np.ndarray:
        """The seeds that are not in the set, each once, sorted."""
        once = np.unique(seeds)
        return once[~self.contains(once)]

    def add(self, seeds: np.ndarray) -> None:
        """Add sorted seeds, none of which is in the set."""
        if len(seeds) == 0:
            return
        self._levels.append(seeds)
        while len(self._levels) > 1 and len(self._levels[-2]) < 2 * len(self._levels[-1]):
            last = self._levels.pop()
            self._levels[-1] = np.sort(np.concatenate([self._levels[-1], last]), kind="stable")

    def everything(self) -> np.ndarray:
        """All seeds, sorted."""
        return np.sort(np.concatenate([*self._levels, np.empty(0, np.uint64)]), kind="stable")
