"""Columns that nobody has asked for by name: only their sums against a few directions are drawn.

A column of independent entries has normal sums, so its sum against a new direction follows from
those against the earlier ones, and what is left over is a new normal number. So p columns of n rows
cost p numbers a question and not p times n, and the answers fit together: a column that looks good
by chance in one step does so in the next, and when it is drawn at last.
"""

from __future__ import annotations

from collections.abc import Callable
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
class Law:
    """The moments of an entry that is cut at `most` steps, in steps.

    `mean_at` and `levels` say how its mean follows the group's factor, and `deviation` is what
    remains of it if that is known; `together` is the correlation inside a group if it is not.
    """

    mean: float
    deviation: float
    together: float
    levels: np.ndarray
    mean_at: np.ndarray


@lru_cache(maxsize=64)
def law_of(guess: Guess, most: int, known_factor: bool) -> Law:
    rng = np.random.default_rng(0)

    def cut(entries: np.ndarray) -> np.ndarray:
        return np.clip(np.rint(entries * X_STEPS), -most, most)

    levels = np.linspace(-5, 5, 101)
    if guess.correlation == 0:
        entries = cut(guess.draw((_DRAWS,), rng))
        mean = float(entries.mean())
        return Law(mean, float(entries.std()), 0.0, levels, np.full(len(levels), mean))
    if not known_factor:
        common = rng.standard_normal(_DRAWS)
        a, b = (cut(guess.shared(common, rng)) for _ in range(2))
        together = float(np.corrcoef(a, b)[0, 1])
        return Law(float(a.mean()), float(a.std()), together, levels, np.zeros(len(levels)))
    own = ndtri((np.arange(1_000) + 0.5) / 1_000)
    r = guess.correlation
    at = cut(guess.entries(np.sqrt(r) * levels[:, None] + np.sqrt(1 - r) * own))
    weights = np.exp(-(levels**2) / 2)
    weights /= weights.sum()
    return Law(
        float(weights @ at.mean(axis=1)), float(np.sqrt(weights @ at.var(axis=1))), 0.0,
        levels, at.mean(axis=1),
    )  # fmt: skip


class Unseen:
    """The sums of `n_columns` columns of cut entries against the directions so far."""

    def __init__(
        self, law: Law, groups: np.ndarray, factors: np.ndarray | None, n_rows: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._law, self._groups, self._rng = law, groups, rng
        self._means = None
        if factors is not None:
            self._means = np.interp(factors, law.levels, law.mean_at)
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
        """A column whose sums are those that were told, up to a small rest.

        Entries are exchanged for other draws where this moves the sums the right way, as often as
        closes the gap on average. So each entry keeps to its law, tilted a little.
        """
        entries = draw()
        basis, told = self._basis[: self._known], self._values[: self._known, column]
        mean = self._law.mean if self._means is None else self._means[self._groups[column]]
        for _ in range(_ROUNDS if self._known else 0):
            cut = np.clip(entries, -most, most)
            missing = told - basis @ (cut - mean).astype(np.float32)
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
        if self._means is None:
            return np.full(len(self._groups), self._law.mean * direction.sum())
        return (self._means @ direction)[self._groups]

    def _coordinates(self) -> np.ndarray:
        """The columns' sums against a new direction of length 1, less their means."""
        own = self._rng.standard_normal(len(self._groups))
        r = self._law.together
        if r > 0:
            common = self._rng.standard_normal(int(self._groups[-1]) + 1)[self._groups]
            own = np.sqrt(r) * common + np.sqrt(1 - r) * own
        return self._law.deviation * own

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
