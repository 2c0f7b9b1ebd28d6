"""What every kind of file and frame offers: public facts first, then raw rows in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from riata.data.columns import Column
from riata.errors import DataError

if TYPE_CHECKING:
    from riata.data.schema import Schema


class Reader(ABC):
    """Where rows come from. Neither the order of the rows nor their number depends on a schema."""

    #: How errors call it: the name of the file, or the kind of frame.
    title: str

    @abstractmethod
    def check(self, schema: Schema, target: bool) -> None:
        """Raise `DataError` unless names and types are what the schema says. Reads no row."""

    @abstractmethod
    def count(self) -> int:
        """The number of rows."""

    def pieces(self) -> list[Reader]:
        """Readers of disjoint parts, which together are all rows, in order."""
        return [self]

    def parts(self) -> list[Reader] | None:
        """The same for other processes; None for rows in the memory of this one.

        How many rows a part has need not be known before it is read.
        """
        return None

    def damaged(self) -> DataError:
        """The error for a file that cannot be read to its end."""
        return DataError(
            f"{self.title} is damaged or cut off, and cannot be read to its end. Copy it again "
            "from where it came from."
        )


class ColumnReader(Reader):
    """A reader of named columns."""

    #: What to look for where the names of columns are wrong.
    hint = "Correct the schema or the names of the columns."

    @abstractmethod
    def kinds(self) -> dict[str, str]:
        """The kind of each column: "number", "yes-no", "text", or another name of a type."""

    def twice(self) -> set[str]:
        """Names that several columns have."""
        return set()

    @abstractmethod
    def chunks(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, Mapping[str, Column]]]:
        """At most `rows` rows at a time: their number, and these columns of them."""

    def check(self, schema: Schema, target: bool) -> None:
        if schema.wide:
            raise DataError(
                f"{self.title} has named columns, and the schema has a block of columns without "
                "names. Name the columns in the schema: [[features]] with name and kind."
            )
        kinds, twice = self.kinds(), self.twice()
        wanted: dict[str, str] = {feature.name: feature.kind for feature in schema.features}
        if schema.person and target:
            wanted[schema.person] = "person"
        if schema.target is not None and target:
            wanted[schema.target.name] = "number" if schema.target.bounds else "classes"
        missing = [name for name in wanted if name not in kinds]
        if missing:  # what the file has instead may be a row, if it has no header
            raise DataError(
                f"{self.title} has no column {_listed(missing)}, which the schema names. "
                f"{self.hint}"
            )
        for name, kind in wanted.items():
            if name in twice:
                raise DataError(
                    f"{self.title} has several columns called {name!r}, and the schema cannot tell "
                    "them apart. Rename them."
                )
            if kinds[name] not in _FIT[kind]:
                raise DataError(
                    f"The column {name!r} of {self.title} has the type {kinds[name]!r}, which "
                    f"cannot be read as {kind!r}. {_ADVICE.get(kinds[name], _ELSE)}"
                )
        named = {*wanted, *schema.ignore, schema.person}
        if schema.target is not None:
            named.add(schema.target.name)
        others = [name for name in kinds if name not in named]
        if others and not schema.ignore_others:
            raise DataError(
                f"{self.title} has the columns {_listed(others)}, which the schema does not name. "
                "Add them to the schema, or to its list ignore = [...], or set ignore_others = "
                "true."
            )


#: The kinds of columns that can be read as what the schema says.
_FIT = {
    "number": ("number", "text", "yes-no"),
    "yes-no": ("number", "text", "yes-no"),
    "choice": ("number", "text"),
    "text": ("text",),
    "person": ("number", "text"),
    "classes": ("number", "text", "yes-no"),
}
_ADVICE = {"yes-no": 'Use kind = "yes-no".', "number": 'Use kind = "number" or "choice".'}
_ELSE = "Turn it into numbers or texts first, or leave the column out."


def _listed(names: Iterable[Any], most: int = 20) -> str:
    """Names of columns, which are public."""
    names = list(names)
    said = ", ".join(repr(name) for name in names[:most])
    return f"{said} and {len(names) - most} others" if len(names) > most else said


def repeated(names: Sequence[str]) -> set[str]:
    """The names that stand there more than once."""
    return {name for name in names if names.count(name) > 1}
