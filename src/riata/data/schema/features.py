"""How a column becomes numbers in [-1, 1]: one class for each kind of column."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from riata.data.columns import Column, Numbers, as_number
from riata.data.schema.schema_fields import SchemaFields

#: Words for yes and no, as in the local model. What is not understood is missing.
YES = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0}
MOST_COLUMNS = 2**31 - 1

#: So many different words a text is taken to have.
_WORDS_OF_TEXT = 64


class Nonzeros(NamedTuple):
    """The entries of some rows that are not 0."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Feature(ABC):
    """One column of a file and how it is encoded."""

    name: str

    kind: ClassVar[str]

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
        """About how many of its entries are not 0. Together they have at most length 1."""
        return 1

    @abstractmethod
    def encode(self, column: Column) -> Nonzeros:
        """The numbers of some rows. No value raises: that would say something about it."""

    def lines(self) -> list[tuple[str, Any, str]]:
        """Its own fields in a schema, each with its meaning."""
        return []


@dataclass(frozen=True)
class Number(Feature):
    """A number: clipped into `bounds`, moved by `center` and divided by the reach around it.

    Missing and unreadable numbers count as the centre, which becomes 0.
    """

    bounds: tuple[float, float]
    center: float

    kind = "number"

    @property
    def nonnegative(self) -> bool:
        return self.center == self.bounds[0]

    @property
    def reach(self) -> float:
        """The largest distance of a number from the centre."""
        return max(self.bounds[1] - self.center, self.center - self.bounds[0])

    def encode(self, column: Column) -> Nonzeros:
        away = np.clip(column.numbers(), *self.bounds) - self.center
        scaled = np.clip(np.where(np.isnan(away), 0.0, away) / self.reach, -1.0, 1.0)
        rows = np.flatnonzero(scaled)
        return Nonzeros(rows, np.zeros_like(rows), scaled[rows])

    def lines(self) -> list[tuple[str, Any, str]]:
        low, high = self.bounds
        middle = ", the middle" if self.center == (low + high) / 2 else ""
        return [
            ("bounds", list(self.bounds), "values outside are clipped"),
            ("center", self.center, f"missing values count as this{middle}"),
        ]


@dataclass(frozen=True)
class YesNo(Feature):
    """1 for yes, true and 1; 0 for everything else."""

    kind = "yes-no"

    def encode(self, column: Column) -> Nonzeros:
        rows = np.flatnonzero(flags(column) == 1)
        return Nonzeros(rows, np.zeros_like(rows), np.ones(len(rows)))


@dataclass(frozen=True)
class Choice(Feature):
    """Categorical, one-hot encoded; a last column for what is not listed, missing included."""

    choices: tuple[str, ...]
    other: bool = True

    kind = "choice"

    @property
    def labels(self) -> tuple[str, ...]:
        return self.choices

    @property
    def names(self) -> list[str]:
        return [f"{self.name}={choice}" for choice in (*self.choices, *["(other)"] * self.other)]

    @property
    def n_columns(self) -> int:
        return len(self.choices) + self.other

    def encode(self, column: Column) -> Nonzeros:
        table = {choice: place for place, choice in enumerate(self.choices)}
        other = len(table) if self.other else -1
        places = column.texts().encode(lambda word: table.get(word, other), other)
        rows = np.flatnonzero(places >= 0)
        return Nonzeros(rows, places[rows], np.ones(len(rows)))

    def lines(self) -> list[tuple[str, Any, str]]:
        return [
            ("choices", list(self.choices), "categories, from public knowledge"),
            ("other", self.other, "a column for all others, missing included"),
        ]


@dataclass(frozen=True)
class Text(Feature):
    """Words, hashed into buckets: 1 + log of the count of each, brought to length 1."""

    buckets: int

    kind = "text"

    @property
    def names(self) -> list[str]:
        return [f"{self.name}[{bucket}]" for bucket in range(self.buckets)]

    @property
    def n_columns(self) -> int:
        return self.buckets

    @property
    def likely_entries(self) -> int:
        return min(self.buckets, _WORDS_OF_TEXT)

    def encode(self, column: Column) -> Nonzeros:
        from sklearn.feature_extraction.text import HashingVectorizer  # slow to import

        texts = column.texts()
        hashing = HashingVectorizer(n_features=self.buckets, alternate_sign=False, norm=None)
        found = hashing.transform([word or "" for word in texts.words]).tocsr()
        found.data = _unit_rows(found.data, found.indptr)
        found = found[texts.codes].tocoo()
        return Nonzeros(found.row, found.col, found.data)

    def lines(self) -> list[tuple[str, Any, str]]:
        return [("buckets", self.buckets, "words are hashed into this many columns")]


def _unit_rows(counts: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """1 + log of each count, with each row brought to length 1.

    A row's numbers must not depend on other rows, not even in their last bit: logarithms come from
    `math`, one for each count, and `bincount` adds the entries of a row one by one.
    """
    seen, places = np.unique(counts, return_inverse=True)
    entries = np.array([1 + math.log(count) for count in seen])[places]
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return entries / np.sqrt(np.bincount(row, np.square(entries), len(indptr) - 1))[row]


def flags(column: Column) -> np.ndarray:
    """1 for yes, 0 for no, -1 for what is neither."""
    if isinstance(column, Numbers):
        numbers = column.numbers()
        return np.where(numbers == 1, 1, np.where(numbers == 0, 0, -1))
    return column.texts().encode(_flag, -1)


def _flag(word: str) -> int:
    number = as_number(word)
    return int(number) if number in (0.0, 1.0) else YES.get(word.lower(), -1)


def read_feature(fields: SchemaFields) -> Feature:
    """From a table of a schema."""
    name = fields.name("name")
    kind = fields.one_of("kind", tuple(KINDS))
    made: Feature
    if kind == Number.kind:
        low, high = fields.pair("bounds")
        center = fields.number("center", default=(low + high) / 2)
        if not low <= center <= high:
            raise fields.wrong("center", center, f"it must lie between the bounds {low} and {high}")
        made = Number(name, (low, high), center)
    elif kind == Choice.kind:
        made = Choice(name, fields.labels("choices"), fields.flag("other", default=True))
    elif kind == Text.kind:
        made = Text(name, fields.whole("buckets", least=1, most=MOST_COLUMNS))
    else:
        made = YesNo(name)
    fields.end()
    return made


KINDS = {made.kind: made for made in (Number, YesNo, Choice, Text)}
