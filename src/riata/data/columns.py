"""One column of a block of rows, before it is encoded: numbers, or texts with few different ones.

Nothing here raises for a value, whatever it is: what cannot be read is missing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from riata.numeric import number, number_in_text

#: A whole number up to here is the same as a float.
_WHOLE = 2.0**53
#: Digits that Python turns into text without complaint.
_MOST_BITS = 4096


class Column(ABC):
    """The values of one column in some rows."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def numbers(self) -> np.ndarray:
        """Each value as float64, NaN where it is missing or no number."""

    @abstractmethod
    def texts(self) -> Texts:
        """Each value as text."""


class Numbers(Column):
    """Numbers or truth values of one type. `missing` says where there is none, besides NaN."""

    def __init__(self, values: np.ndarray, missing: np.ndarray | None = None) -> None:
        self.values = values
        self.missing = missing

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = self.values.astype(np.float64)
        if self.missing is not None:
            found[self.missing] = math.nan
        found[np.isnan(found)] = math.nan  # of NaN there is a kind that warns in sums
        return found

    def texts(self) -> Texts:
        different, codes = np.unique(self.values, return_inverse=True)
        words: list[str | None] = [as_text(value) for value in different.tolist()]
        codes = codes.reshape(-1)
        if self.missing is not None:
            codes = np.where(self.missing, len(words), codes)
            words.append(None)
        return Texts(words, codes)


class Texts(Column):
    """Texts: the `words`, None for missing, and the place in them of each row's text.

    They need not all be different.
    """

    def __init__(self, words: list[str | None], codes: np.ndarray) -> None:
        self.words = words
        self.codes = codes

    @classmethod
    def of(cls, values: Iterable[Any]) -> Texts:
        """From values that can be keys of a table and do not equal others of other types."""
        values = values if isinstance(values, list) else list(values)
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
        codes = np.fromiter(map(places.__getitem__, values), np.int64, len(values))
        return cls([as_text(value) for value in places], codes)

    @classmethod
    def blank(cls, n_rows: int) -> Texts:
        """All missing."""
        return cls([None], np.zeros(n_rows, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.codes)

    def numbers(self) -> np.ndarray:
        return self._of_rows([as_number(word) for word in self.words], np.float64)

    def texts(self) -> Texts:
        return self

    def encode(self, code: Callable[[str], int], default: int) -> np.ndarray:
        """The number that a function gives to each row's text; the default where it is missing."""
        found = [default if word is None else code(word) for word in self.words]
        return self._of_rows(found, np.int64)

    def _of_rows(self, found: list[Any], kind: type) -> np.ndarray:
        """What was found for each of the different texts, for each row."""
        each: np.ndarray = np.array(found, dtype=kind)[self.codes]
        return each


class Dates(Column):
    """Dates and times of a type for them, as NumPy has it: NaT where there is none."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> np.ndarray:
        return np.full(len(self.values), math.nan)

    def texts(self) -> Texts:
        times, codes = self.different()
        return Texts([None if time is None else time.isoformat() for time in times], codes)

    def different(self) -> tuple[list[datetime | None], np.ndarray]:
        """The different times, None for what is missing, and the place of each row's."""
        seconds = self.values.astype("datetime64[s]")
        seen, codes = np.unique(seconds, return_inverse=True)
        times = [time if isinstance(time, datetime) else None for time in seen.tolist()]
        return times, codes.reshape(-1)


class Cells(Column):
    """Bytes of a text file, which are looked at when it is known what they should be."""

    def __init__(self, values: list[bytes]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> np.ndarray:
        if b"_" not in b" ".join(self.values):
            try:  # all at once, if all of them are numbers
                return np.array(list(map(float, self.values)), dtype=np.float64)
            except ValueError:
                pass
        return self.texts().numbers()

    def texts(self) -> Texts:
        return Texts.of(self.values)


def as_number(word: str | None) -> float:
    """The number that a text spells, NaN for all others."""
    return math.nan if word is None else number_in_text(word)


def as_text(value: Any) -> str | None:
    """A value of any type as text without spaces around it, None where there is none.

    A whole number is the same text whatever its type is: 6 and 6.0 are "6".
    """
    if isinstance(value, np.floating | Fraction):
        value = number(value)
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip() or None
    if isinstance(value, str):
        lone = not value.isascii()  # perhaps a half of a pair, which has no byte form
        value = value.encode("utf-8", "replace").decode("utf-8") if lone else value
        return value.strip() or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        far = value.bit_length() > _MOST_BITS
        return ("-inf" if value < 0 else "inf") if far else str(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isnan(value):
        return str(int(value)) if value.is_integer() and abs(value) <= _WHOLE else repr(value)
    return None


def from_objects(values: Iterable[Any]) -> Texts:
    """A column of objects of any types."""
    with np.errstate(all="ignore"):
        return Texts.of([as_text(value) for value in values])
