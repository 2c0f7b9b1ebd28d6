"""How a column becomes numbers in [-1, 1]: what every kind of column has, and the simple ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np

from riata.data.columns import Column, Numbers, as_number

#: Words for yes and no, as in the local model. What is not understood is missing.
YES = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0}
MOST_COLUMNS = 2**31 - 1

#: Texts that stand for a missing value, in lower case, where they are no choice.
MISSING = frozenset({"na", "n/a", "#n/a", "nan", "null", "none", "nil", "?", "-", ".", "missing"})


class Nonzeros(NamedTuple):
    """The entries of some rows that are not 0."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class Cell(IntEnum):
    """What may be wrong with a cell."""

    GOOD, MISSING, OUTSIDE = 0, 1, 2


@dataclass(frozen=True)
class Feature(ABC):
    """One column of a file, or several, and how they are encoded."""

    name: str

    kind: ClassVar[str]

    #: Whether its columns are numbered buckets, which may be too many to be listed.
    hashed: ClassVar[bool] = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file that are for it alone."""
        return (self.name,)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that the names of its columns are made of, where it has any."""
        return ()

    @property
    def names(self) -> list[str]:
        """A name for each column of numbers that it becomes."""
        return [self.name]

    @property
    def n_columns(self) -> int:
        return 1

    @property
    def nonnegative(self) -> bool:
        """Whether no entry is below 0."""
        return True

    @property
    def likely_entries(self) -> int:
        """About how many of its entries are not 0."""
        return 1

    @property
    def squared_length(self) -> int:
        """The largest sum of the squares of its entries in a row."""
        return 1

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each column, how many units of the file an encoded 1 is, and which value became 0.

        1 and 0 for what is no number of the file: choices, flags, words.
        """
        return np.ones(self.n_columns), np.zeros(self.n_columns)

    @property
    def meanings(self) -> tuple[str, ...]:
        """What coefficients of its columns say, in these units."""
        return ()

    @abstractmethod
    def encode(self, column: Column) -> Nonzeros:
        """The numbers of some rows. No value raises: that would say something about it."""

    def encode_rows(self, columns: Mapping[str, Column]) -> Nonzeros:
        """The same from all columns of the rows."""
        return self.encode(columns[self.name])

    def cells(self, column: Column) -> np.ndarray:
        """A `Cell` for each row."""
        return column.texts().encode(lambda word: Cell.GOOD, Cell.MISSING)

    def lines(self) -> list[tuple[str, Any, str]]:
        """Its own fields in a schema, each with its meaning."""
        return []


@dataclass(frozen=True)
class YesNo(Feature):
    """1 for yes, true and 1; 0 for everything else."""

    kind = "yes-no"

    @property
    def meanings(self) -> tuple[str, ...]:
        return ("of a yes, the change against everything else",)

    def encode(self, column: Column) -> Nonzeros:
        return ones(np.where(flags(column) == 1, 0, -1))

    def cells(self, column: Column) -> np.ndarray:
        return np.where(flags(column) < 0, Cell.MISSING, Cell.GOOD)


@dataclass(frozen=True)
class Choice(Feature):
    """Categorical, one-hot encoded; a last column for what is not listed, missing included.

    Ordered choices have a column for each step from one to the next, with equal entries in those
    that lead to the row's choice; together they have at most length 1.
    """

    choices: tuple[str, ...]
    other: bool = True
    ordered: bool = False

    kind = "choice"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.choices

    @property
    def names(self) -> list[str]:
        sign, named = (">=", self.choices[1:]) if self.ordered else ("=", self.choices)
        other = [f"{self.name}=(other)"] * self.other
        return [f"{self.name}{sign}{choice}" for choice in named] + other

    @property
    def n_columns(self) -> int:
        return len(self.choices) + self.other - self.ordered

    @property
    def likely_entries(self) -> int:
        return len(self.choices) - 1 if self.ordered else 1

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """A step of an ordered choice is encoded as less than 1, and its unit is the whole step."""
        scales, centres = super().units
        if self.ordered:
            scales[: len(self.choices) - 1] = math.sqrt(len(self.choices) - 1)
        return scales, centres

    @property
    def meanings(self) -> tuple[str, ...]:
        if self.ordered:
            return ("of an ordered category (>=), the step to it from the one before",)
        if self.other:
            return (
                "of a category of a choice with (other), the change against 0 for all: compare two "
                "of them by the difference",
            )
        return (
            "of a category of a choice without (other), the difference from the reference, which "
            "is every value that the schema does not list",
        )

    def _places(self, column: Column) -> np.ndarray:
        """The place of each row's choice, -1 for what is missing and -2 for what is not listed."""
        table = {choice: place for place, choice in enumerate(self.choices)}

        def place(word: str) -> int:
            return table.get(word, -1 if word.lower() in MISSING else -2)

        return column.texts().encode(place, -1)

    def encode(self, column: Column) -> Nonzeros:
        places = self._places(column)
        if not self.ordered:
            return ones(np.where(places < 0, len(self.choices) if self.other else -1, places))
        steps = len(self.choices) - 1
        rows, which = np.nonzero(np.arange(steps) < places[:, None])
        values = np.full(len(rows), 1 / math.sqrt(steps))
        if not self.other:
            return Nonzeros(rows, which, values)
        others = np.flatnonzero(places < 0)
        return Nonzeros(
            np.concatenate([rows, others]),
            np.concatenate([which, np.full_like(others, steps)]),
            np.concatenate([values, np.ones(len(others))]),
        )

    def cells(self, column: Column) -> np.ndarray:
        found: np.ndarray = np.maximum(-self._places(column), 0)
        return found

    def lines(self) -> list[tuple[str, Any, str]]:
        meaning = "from the least to the most" if self.ordered else "each has a column"
        order = [("ordered", True, "neighbours are alike: a column for each step")]
        return [
            ("choices", list(self.choices), f"categories, {meaning}"),
            *(order if self.ordered else []),
            ("other", self.other, "a column for all others, missing included"),
        ]


def ones(places: np.ndarray) -> Nonzeros:
    """A 1 in the column that is named for each row, and none where that is below 0."""
    rows = np.flatnonzero(places >= 0)
    return Nonzeros(rows, places[rows], np.ones(len(rows)))


def flags(column: Column) -> np.ndarray:
    """1 for yes, 0 for no, -1 for what is neither."""
    if isinstance(column, Numbers):
        numbers = column.numbers()
        return np.where(numbers == 1, 1, np.where(numbers == 0, 0, -1))
    return column.texts().encode(_flag, -1)


def _flag(word: str) -> int:
    number = as_number(word)
    return int(number) if number in (0.0, 1.0) else YES.get(word.lower(), -1)
