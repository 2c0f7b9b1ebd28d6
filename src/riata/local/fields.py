"""Reading a table of a task file: every mistake is an error with the field's name."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any

from riata.errors import TaskError


class Fields:
    """The fields of one table, taken one by one; what is left at the end is unknown.

    Parameters
    ----------
    table : mapping
    where : str
        How a person would call the table: "features[2]".
    """

    def __init__(self, table: Any, where: str = "") -> None:
        if not isinstance(table, Mapping):
            raise TaskError(f"{where or 'The task'} must be a table of named fields.")
        self._left = dict(table)
        self._where = where
        self._known: list[str] = []

    def path(self, name: str) -> str:
        """The field's full name."""
        return f"{self._where}.{name}" if self._where else name

    def wrong(self, name: str, value: object, why: str) -> TaskError:
        """An error about one field."""
        return TaskError(f"The field {self.path(name)} is {value!r}: {why}. Correct the task file.")

    def take(self, name: str, default: Any = ...) -> Any:
        """The raw value of a field; without a default it has to be there."""
        self._known.append(name)
        if name in self._left:
            return self._left.pop(name)
        if default is ...:
            raise TaskError(f"The field {self.path(name)} is missing. Add it to the task file.")
        return default

    def number(
        self, name: str, default: Any = ..., *, above: float = -math.inf, most: float = math.inf
    ) -> float:
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, value, "it must be a number")
        if not math.isfinite(value) or not above < value <= most:
            upper = f" and at most {most:g}" if math.isfinite(most) else ""
            lower = f" above {above:g}" if math.isfinite(above) else ""
            raise self.wrong(name, value, f"it must be a finite number{lower}{upper}")
        return float(value)

    def whole(self, name: str, default: Any = ..., *, least: int = 0, most: int = 2**31) -> int:
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(name, value, f"it must be a whole number from {least} to {most}")
        return value

    def text(self, name: str, default: Any = ...) -> str:
        value = self.take(name, default)
        if not isinstance(value, str) or (default is ... and not value):
            raise self.wrong(name, value, "it must be text")
        return value

    def flag(self, name: str, default: Any = ...) -> bool:
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, value, "it must be true or false")
        return value

    def one_of(self, name: str, known: tuple[str, ...], default: Any = ...) -> str:
        value = self.take(name, default)
        if value not in known:
            near = difflib.get_close_matches(str(value), known, n=1)
            hint = f"; did you mean {near[0]!r}" if near else ""
            raise self.wrong(name, value, f"it must be one of {', '.join(known)}{hint}")
        return str(value)

    def texts(self, name: str) -> tuple[str, ...]:
        value = self.take(name)
        good = isinstance(value, list | tuple) and value and all(isinstance(v, str) for v in value)
        if not good or len(set(value)) != len(value):
            raise self.wrong(name, value, "it must be a list of different texts")
        return tuple(value)

    def pair(self, name: str) -> tuple[float, float]:
        value = self.take(name)
        good = isinstance(value, list | tuple) and len(value) == 2
        if not good or any(isinstance(v, bool) or not isinstance(v, int | float) for v in value):
            raise self.wrong(name, value, "it must be two numbers, the smallest and the largest")
        low, high = map(float, value)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise self.wrong(name, value, "the first number must be below the second")
        return low, high

    def table(self, name: str, default: Any = ...) -> Fields:
        return Fields(self.take(name, default), self.path(name))

    def tables(self, name: str) -> list[Fields]:
        value = self.take(name)
        if not isinstance(value, list | tuple) or not value:
            raise self.wrong(name, value, "it must be a list of tables, at least one")
        return [Fields(table, f"{self.path(name)}[{i}]") for i, table in enumerate(value)]

    def rest(self) -> dict[str, Any]:
        """All fields that were not taken."""
        left, self._left = self._left, {}
        return left

    def end(self) -> None:
        """Nothing may be left."""
        for name in self._left:
            near = difflib.get_close_matches(name, self._known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise TaskError(f"The field {self.path(name)} is unknown.{hint} Remove it.")
