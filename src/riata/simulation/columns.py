"""A table of made-up rows whose columns are drawn when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.grid import X_STEPS
from riata.simulation.guess import Guess
from riata.simulation.lazy_sums import LazyColumnSums, entry_moments

#: Groups of correlated columns that are larger than this have a known factor from the beginning.
SMALL_GROUP = 50

#: A table with at most so many columns is drawn at once.
FEW_COLUMNS = 50

#: A simulation holds at most so many entries.
MOST_ENTRIES = 4e7


class SimulatedColumns:
    """Rows on the grid, as queries see them: a matrix whose columns come into being on demand."""

    ndim = 2

    def __init__(self, guess: Guess, n_rows: int, n_columns: int, rng: np.random.Generator) -> None:
        self.shape = (n_rows, n_columns)
        self._guess, self._rng = guess, rng
        self._slots = np.full(n_columns, -1)
        self._store = np.empty((16, n_rows))
        self._drawn: list[int] = []
        self._lazy_sums: dict[int, LazyColumnSums] = {}
        self._cut_at, self._cut_store = 0, np.empty((0, n_rows))
        self._last: tuple[bytes, np.ndarray] = (b"", np.empty(0))
        size = n_columns if guess.group is None else min(guess.group, n_columns)
        self._groups = np.arange(n_columns) // (size if guess.correlation > 0 else n_columns)
        self._factors: dict[int, np.ndarray] = {}
        if guess.correlation > 0 and size > SMALL_GROUP:
            for group in range(int(self._groups[-1]) + 1):
                self._factors[group] = rng.standard_normal(n_rows)
        if n_columns <= FEW_COLUMNS:
            self._draw(np.arange(n_columns))

    # What queries do with rows.

    def __matmul__(self, dense: np.ndarray) -> np.ndarray:
        key = dense.tobytes()
        if self._last[0] != key:  # several queries are about the same model
            self._last = key, self._product(dense)
        return self._last[1].copy()

    def _product(self, dense: np.ndarray) -> np.ndarray:
        columns = np.flatnonzero(dense)
        if not len(columns):
            return np.zeros(self.shape[0])
        slots = self._slots_of(columns)
        if 3 * len(columns) < len(self._drawn):
            return dense[columns] @ self._store[slots]
        weights = np.zeros(len(self._drawn))
        weights[slots] = dense[columns]
        return weights @ self._store[: len(self._drawn)]

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key
        if isinstance(columns, slice):
            columns = np.arange(self.shape[1])[columns]
        slots = self._slots_of(np.atleast_1d(columns))  # first: it may make the store larger
        return self._store[slots, rows].T

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        whole = self[:, :]
        return whole if dtype is None else whole.astype(dtype)

    def sums(self, direction: np.ndarray, most: int) -> np.ndarray:
        """The sum of entry * direction for every column, with entries clipped at `most` steps."""
        total = np.empty(self.shape[1])
        if len(self._drawn) < self.shape[1]:
            if most not in self._lazy_sums:
                self._lazy_sums[most] = LazyColumnSums(
                    entry_moments(self._guess, most),
                    self._groups,
                    self._factors,
                    self.shape[0],
                    self._rng,
                )
            total = np.rint(self._lazy_sums[most].sums(direction))
        total[self._drawn] = self._cut(most) @ direction
        return total

    def _cut(self, most: int) -> np.ndarray:
        """The columns that were drawn, with entries clipped at `most` steps."""
        drawn = self._store[: len(self._drawn)]
        if most >= X_STEPS:
            return drawn
        if self._cut_at != most or len(self._cut_store) < len(drawn):
            same = self._cut_store if self._cut_at == most else self._cut_store[:0]
            new = np.clip(drawn[len(same) :], -most, most)
            self._cut_at, self._cut_store = most, np.concatenate([same, new])
        return self._cut_store

    def sample(self, n_rows: int, n_columns: int) -> np.ndarray:
        """Other rows of the same kind, on the grid, that are forgotten at once."""
        shape = (min(n_rows, self.shape[0]), min(n_columns, self.shape[1]))
        return np.rint(self._guess.draw(shape, self._rng) * X_STEPS)

    # Drawing.

    def _slots_of(self, columns: np.ndarray) -> np.ndarray:
        missing = columns[self._slots[columns] < 0]
        if len(missing):
            self._draw(np.unique(missing))
        return self._slots[columns]

    def _draw(self, columns: np.ndarray) -> None:
        n = self.shape[0]
        if n * (len(self._drawn) + len(columns)) > MOST_ENTRIES:
            raise InvalidArgument(
                f"A forecast of this solver would need more than {MOST_ENTRIES:,.0f} made-up "
                "entries, because it reads too many columns at once. Forecast fewer rows or "
                'columns, or a solver that selects columns, such as solver="greedy".'
            )
        need = len(self._drawn) + len(columns)
        if need > len(self._store):
            more = max(need, 2 * len(self._store)) - len(self._store)
            self._store = np.concatenate([self._store, np.empty((more, n))])
        for column in columns:
            slot = len(self._drawn)
            self._store[slot] = self._consistent(int(column))
            self._slots[column] = slot
            self._drawn.append(int(column))

    def _consistent(self, column: int) -> np.ndarray:
        """A column on the grid that agrees with its sums that were answered before."""

        def draw() -> np.ndarray:
            return np.rint(self._entries(int(self._groups[column])) * X_STEPS)

        if not self._lazy_sums:
            return draw()
        most = next(reversed(self._lazy_sums))  # the cut that was asked about last
        return self._lazy_sums[most].pinned(column, draw, most)

    def _entries(self, group: int) -> np.ndarray:
        """Entries of a column of a group, in units of its bound.

        A group's factor is drawn with its first column. After sums of its columns were answered
        it is too late for that, and a column stands by itself.
        """
        n = self.shape[0]
        if self._guess.correlation == 0 or (self._lazy_sums and group not in self._factors):
            return self._guess.draw((n,), self._rng)
        if group not in self._factors:
            self._factors[group] = self._rng.standard_normal(n)
        return self._guess.shared(self._factors[group], self._rng)
