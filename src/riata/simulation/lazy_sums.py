"""Columns that nobody has asked for by name: only their sums against a few directions are drawn.

A column of independent entries has normal sums, so its sum against a new direction follows from
those against the earlier ones, and what is left over is a new normal number. So p columns of n rows
cost p numbers a question and not p times n, and the answers fit together: a column that looks good
by chance in one step does so in the next, and when it is drawn at last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from riata.grid import X_STEPS
from riata.simulation.guess import Guess

#: Public draws that the moments of an entry are taken from.
_DRAWS = 100_000

#: A direction within this part of the span of the earlier ones is not a new one.
_SAME = 0.03

#: A column's entries are exchanged so many times.
_ROUNDS = 3

#: Directions are remembered up to this many numbers.
_MOST_REMEMBERED = 4e7


@dataclass(frozen=True)
class EntryMoments:
    """The moments of an entry that is clipped at `most` steps, in steps."""

    mean: float
    deviation: float
    together: float  # the correlation of two columns of a group
    levels: np.ndarray  # of the group's factor, and the mean at each where it is known
    mean_at: np.ndarray
    rest: float  # the deviation that remains then


@lru_cache(maxsize=64)
def entry_moments(guess: Guess, most: int) -> EntryMoments:
    rng, r = np.random.default_rng(0), guess.correlation

    def cut(entries: np.ndarray) -> np.ndarray:
        return np.clip(np.rint(entries * X_STEPS), -most, most)

    levels = np.linspace(-5, 5, 101)
    if r == 0:
        entries = cut(guess.draw((_DRAWS,), rng))
        mean, deviation = float(entries.mean()), float(entries.std())
        return EntryMoments(mean, deviation, 0.0, levels, np.full(len(levels), mean), deviation)
    common = rng.standard_normal(_DRAWS)
    a, b = (cut(guess.shared(common, rng)) for _ in range(2))
    own = ndtri((np.arange(1_000) + 0.5) / 1_000)
    at = cut(guess.entries(np.sqrt(r) * levels[:, None] + np.sqrt(1 - r) * own))
    weights = np.exp(-(levels**2) / 2)
    rest = np.sqrt(weights @ at.var(axis=1) / weights.sum())
    return EntryMoments(
        float(a.mean()), float(a.std()), float(np.corrcoef(a, b)[0, 1]), levels,
        at.mean(axis=1), float(rest),
    )  # fmt: skip


class LazyColumnSums:
    """The sums of columns of clipped entries against the directions so far.

    `groups` has the group of each column, and `factors` the known factors of some groups: one
    number a row.
    """

    def __init__(
        self, moments: EntryMoments, groups: np.ndarray, factors: Mapping[int, np.ndarray],
        n_rows: int, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._moments, self._groups, self._rng = moments, groups, rng
        self._places = np.full(int(groups[-1]) + 1, -1)
        self._places[list(factors)] = np.arange(len(factors))
        self._means = np.array(
            [np.interp(c, moments.levels, moments.mean_at) for c in factors.values()]
        )
        known = self._places[groups] >= 0
        r = moments.together
        self._own = np.where(known, moments.rest, moments.deviation * np.sqrt(1 - r))
        self._common = np.where(known, 0.0, moments.deviation * np.sqrt(r))
        self._most = int(max(4, min(256, _MOST_REMEMBERED // n_rows)))
        self._basis = np.empty((min(16, self._most), n_rows), dtype=np.float32)
        self._values = np.empty((min(16, self._most), len(groups)))
        self._known = 0

    def sums(self, direction: np.ndarray) -> np.ndarray:
        """The sum of entry * direction over the rows, of every column."""
        total = self._mean_sums(direction)
        basis, values = self._basis[: self._known], self._values[: self._known]
        thin = direction.astype(np.float32)  # a simulation needs no more digits
        along = basis @ thin
        rest = thin - along @ basis
        total += along @ values
        size = float(np.linalg.norm(rest))
        if size > _SAME * float(np.linalg.norm(direction)):
            fresh = self._coordinates()
            total += size * fresh
            self._remember(rest / size, fresh)
        return total

    def pinned(self, column: int, draw: Callable[[], np.ndarray], most: int) -> np.ndarray:
        """A column whose sums are the ones answered before, up to a small rest.

        Entries are exchanged for other draws where this moves the sums the right way, as often as
        closes the gap on average. So each entry keeps its distribution, tilted a little.
        """
        entries = draw()
        basis, sums = self._basis[: self._known], self._values[: self._known, column]
        place = self._places[self._groups[column]]
        mean = self._moments.mean if place < 0 else self._means[place]
        for _ in range(_ROUNDS if self._known else 0):
            cut = np.clip(entries, -most, most)
            missing = sums - basis @ (cut - mean).astype(np.float32)
            others = draw()
            change = np.clip(others, -most, most) - cut
            size = float(np.square(change).mean()) / 2
            if size == 0:
                break
            wanted = missing.astype(np.float32) @ basis / size
            taken = self._rng.random(len(entries)) < wanted * change
            entries = np.where(taken, others, entries)
        return entries

    def _mean_sums(self, direction: np.ndarray) -> np.ndarray:
        of_groups = np.full(len(self._places), self._moments.mean * direction.sum())
        known = self._places >= 0
        if known.any():
            of_groups[known] = (self._means @ direction)[self._places[known]]
        return of_groups[self._groups]

    def _coordinates(self) -> np.ndarray:
        """The columns' sums against a new direction of length 1, less their means."""
        found = self._own * self._rng.standard_normal(len(self._groups))
        if self._common.any():
            found += self._common * self._rng.standard_normal(len(self._places))[self._groups]
        return found

    def _remember(self, direction: np.ndarray, values: np.ndarray) -> None:
        if self._known == self._most:
            return
        if self._known == len(self._basis):
            more = min(self._known, self._most - self._known)
            self._basis = np.concatenate(
                [self._basis, np.empty((more, len(direction)), np.float32)]
            )
            self._values = np.concatenate([self._values, np.empty((more, len(values)))])
        self._basis[self._known], self._values[self._known] = direction, values
        self._known += 1
