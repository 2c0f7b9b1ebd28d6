"""Reading a table of a public file: every mistake is an error with the field's name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np

from riata.errors import InvalidArgument
from riata.wording import near_word, shown

#: Scales are no smaller and numbers no larger than this: then nothing that is computed from them
#: overflows or vanishes.
SMALLEST, LARGEST = 1e-60, 1e60
#: What a table of a file takes while it is read, besides its texts and numbers.
TABLE_BYTES = 4096


class Fields:
    """The fields of one table, taken one by one; what is left at the end is unknown.

    Subclasses say which file it is, and with which error its mistakes are told. `where` is how a
    person would call the table: "features[2]"; `called` is the name that it gives itself.
    """

    file = "file"
    error: type[InvalidArgument] = InvalidArgument

    def __init__(self, table: Any, where: str = "", called: str = "") -> None:
        if not isinstance(table, Mapping):
            raise self.error(f"{where or f'The {self.file}'} must be a table of named fields.")
        self._left = dict(table)
        self._where, self._called = where, called
        self._known: list[str] = []

    def path(self, name: str) -> str:
        """The field's full name."""
        return f"{self._where}.{name}" if self._where else name

    def _field(self, name: str) -> str:
        """The beginning of a sentence about a field: which column or question it is about."""
        about = f"In {self._called}, the" if self._called and name != "name" else "The"
        return f"{about} field {self.path(name)}"

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def wrong(
        self, name: str, value: object, why: str, known: Iterable[str] = ()
    ) -> InvalidArgument:
        """An error about one field, which may be a misspelt one of the known words."""
        hint = f"; did you mean {near!r}" if (near := near_word(value, known)) else ""
        return self.error(
            f"{self._field(name)} is {shown(value)}: {why}{hint}. Correct the {self.file}."
        )

    def take(self, name: str, default: Any = ...) -> Any:
        """The raw value of a field; without a default it has to be there."""
        self._known.append(name)
        if name in self._left:
            value = self._left.pop(name)
            return value.item() if isinstance(value, np.generic) else value
        if default is ...:
            near = near_word(name, (key for key in self._left if isinstance(key, str)))
            rename = f", or rename {near!r} if that is it" if near else ""
            raise self.error(f"{self._field(name)} is missing. Add it to the {self.file}{rename}.")
        return default

    def number(
        self,
        name: str,
        default: Any = ...,
        *,
        above: float = -math.inf,
        least: float = -LARGEST,
        most: float = LARGEST,
    ) -> float:
        value = self.take(name, default)
        if not _is_number(value):
            raise self.wrong(name, value, "it must be a number")
        number = _float(value)
        if not (least <= number <= most and number > above):
            lower = f"above {above:g}" if above >= least else f"at least {least:g}"
            raise self.wrong(name, value, f"it must be a number {lower} and at most {most:g}")
        return number

    def scale(self, name: str, default: Any = ...) -> float:
        """A positive number that other numbers are multiplied with or divided by."""
        return self.number(name, default, least=SMALLEST)

    def whole(self, name: str, default: Any = ..., *, least: int = 0, most: int = 2**31) -> int:
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(name, value, f"it must be a whole number from {least} to {most}")
        return value

    def text(self, name: str, default: Any = ...) -> str:
        value = self.take(name, default)
        if not is_text(value) or (default is ... and not value):
            raise self.wrong(name, value, "it must be text")
        return str(value)

    def flag(self, name: str, default: Any = ...) -> bool:
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, value, "it must be true or false")
        return value

    def one_of(self, name: str, known: tuple[str, ...], default: Any = ...) -> str:
        value = self.take(name, default)
        if not isinstance(value, str) or value not in known:
            raise self.wrong(name, value, f"it must be one of {', '.join(known)}", known)
        return str(value)

    def texts(
        self, name: str, default: Any = ..., why: str = "it must be a list of different texts"
    ) -> tuple[str, ...]:
        """Different texts: at least one, if there is no default."""
        value = self.take(name, default)
        good = isinstance(value, list | tuple) and all(map(is_text, value))
        if not good or len(set(value)) != len(value) or (default is ... and not value):
            raise self.wrong(name, value, why)
        return tuple(value)

    def center(self, low: float, high: float) -> float:
        """The field "center": a number between two others, and by default in their middle."""
        center = self.number("center", default=(low + high) / 2)
        if not low <= center <= high:
            raise self.wrong("center", center, f"it must lie between the bounds {low} and {high}")
        return center

    def pair(self, name: str) -> tuple[float, float]:
        value = self.take(name)
        if not (
            isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_number, value))
        ):
            raise self.wrong(name, value, "it must be two numbers, the smallest and the largest")
        low, high = map(_float, value)
        if not all(-LARGEST <= v <= LARGEST for v in (low, high)):
            raise self.wrong(name, value, f"numbers must lie between {-LARGEST:g} and {LARGEST:g}")
        if not high - low >= 2.0 * SMALLEST:
            raise self.wrong(name, value, "the first number must be below the second")
        return low, high

    def table(self, name: str, default: Any = ...) -> Self:
        return type(self)(self.take(name, default), self.path(name))

    def tables(self, name: str) -> list[Self]:
        value = self.take(name)
        if not isinstance(value, list | tuple) or not value:
            raise self.wrong(name, value, "it must be a list of tables, at least one")
        return [
            type(self)(table, f"{self.path(name)}[{i}]", _name_of(table))
            for i, table in enumerate(value)
        ]

    def alone(self, name: str, value: Any) -> Self:
        """A table of one field, which is told as one of this table."""
        return type(self)({name: value}, self._where)

    def rest(self) -> dict[str, Any]:
        """All fields that were not taken."""
        left, self._left = self._left, {}
        return left

    def end(self) -> None:
        """Nothing may be left."""
        for name in self._left:
            hint = f" Did you mean {near}?" if (near := near_word(name, self._known)) else ""
            raise self.error(f"{self._field(str(name))} is unknown.{hint or ' Remove it.'}")


def _name_of(table: Any) -> str:
    name = table.get("name") if isinstance(table, Mapping) else None
    return shown(name) if isinstance(name, str) and name else ""


def size_of(table: Any, name: str) -> int:
    """How many items a field of a table has, as far as that can be said before it is checked."""
    value = table.get(name) if isinstance(table, Mapping) else None
    return len(value) if isinstance(value, list | tuple) else 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _float(value: int | float) -> float:
    """The number as every language reads it: rounded before it is compared, and -0 is 0."""
    try:
        return float(value) + 0.0
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_text(value: object) -> bool:
    """Text that has a byte form: a lone surrogate, which JSON can spell, has none."""
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
