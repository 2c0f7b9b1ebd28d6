"""What every kind of file and frame offers: public facts first, then rows in order."""

from __future__ import annotations

import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from riata.data.columns import Column
from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.numeric_block import NumericBlock
from riata.errors import DataError, InvalidArgument

if TYPE_CHECKING:
    from riata.data.schema import Schema

#: What damaged files make their libraries raise.
_DAMAGE: tuple[type[Exception], ...] = (
    ValueError,
    EOFError,
    KeyError,
    zlib.error,
    zipfile.BadZipFile,
)

#: Encoded rows, and their targets if they are read.
Block = tuple[sparse.csr_array, np.ndarray | None]


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

    @abstractmethod
    def blocks(self, schema: Schema, rows: int, target: bool) -> Iterator[Block]:
        """All rows in order, encoded, at most `rows` at a time. No value raises."""

    def pieces(self) -> list[Reader]:
        """Readers of disjoint parts, which together are all rows, in order."""
        return [self]

    def parts(self) -> list[Reader] | None:
        """The same for other processes; None for rows in the memory of this one.

        How many rows a part has need not be known before it is read.
        """
        return None

    @contextmanager
    def guarded(self, *others: type[Exception]) -> Iterator[None]:
        """Whatever goes wrong while a file is read is one error, without any of its bytes."""
        try:
            yield
        except FileNotFoundError as problem:
            where = problem.filename or self.title
            raise DataError(f"There is no file {where}. Check the path.") from None
        except OSError as problem:
            if problem.errno is None:
                raise self.damaged() from None
            raise DataError(f"Cannot read {self.title}: {os.strerror(problem.errno)}.") from None
        except (*_DAMAGE, *others):
            raise self.damaged() from None

    def damaged(self) -> DataError:
        """The error for a file that cannot be read to its end."""
        return DataError(
            f"{self.title} is damaged, truncated, or in another format than its name says, and "
            "cannot be read to its end. Copy it again from where it came from."
        )


class TableReader(Reader):
    """A reader of named columns."""

    #: What to look for where the names of columns are wrong.
    hint = "Correct the schema or the names of the columns."

    @abstractmethod
    def kinds(self) -> dict[str, str]:
        """The kind of each column: "number", "yes-no", "text", "date", or the name of a type."""

    def repeated_names(self) -> set[str]:
        """Names that several columns have."""
        return set()

    @abstractmethod
    def chunks(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, Mapping[str, Column]]]:
        """At most `rows` rows at a time: their number, and these columns of them."""

    def blocks(self, schema: Schema, rows: int, target: bool) -> Iterator[Block]:
        assert isinstance(schema.features, NamedFeatures)
        wanted = schema.target if target else None
        names = list(dict.fromkeys([*schema.columns, *(wanted.columns if wanted else ())]))
        for n_rows, columns in self.chunks(names, rows):
            y = None if wanted is None else wanted.encode(*(columns[k] for k in wanted.columns))
            yield schema.features.encode(columns, n_rows), y

    def check(self, schema: Schema, target: bool) -> None:
        if not isinstance(schema.features, NamedFeatures):
            raise DataError(
                f"{self.title} has named columns, and the schema has a block of columns without "
                "names. Name the columns in the schema: [[features]] with name and kind."
            )
        kinds, repeated = self.kinds(), self.repeated_names()
        wanted = {name: each.kind for each in schema.features for name in each.columns}
        if schema.person and target:
            wanted[schema.person] = "person"
        if schema.target is not None and target:
            wanted[schema.target.name] = "number" if schema.target.bounds else "classes"
            wanted |= {schema.target.event: "yes-no"} if schema.target.event else {}
        missing = [name for name in wanted if name not in kinds]
        if missing:  # what the file has instead may be a row, if it has no header
            raise DataError(
                f"{self.title} has no column {_listed(missing)}, which the schema names. "
                f"{_respelt(missing, kinds)}{self.hint}"
            )
        for name, kind in wanted.items():
            if name in repeated:
                raise DataError(
                    f"{self.title} has several columns called {name!r}, and the schema cannot tell "
                    "them apart. Rename them."
                )
            if kinds[name] not in _READABLE_AS[kind]:
                raise DataError(
                    f"The column {name!r} of {self.title} has the type {kinds[name]!r}, which "
                    f"cannot be read as {kind!r}. {_ADVICE.get(kinds[name], _ELSE)}"
                )
        named = {*wanted, *schema.ignore, schema.person}
        if schema.target is not None:
            named.update(schema.target.columns)
        others = [name for name in kinds if name not in named]
        if others and not schema.ignore_others:
            raise DataError(
                f"{self.title} has the columns {_listed(others)}, which the schema does not name. "
                "Add them to the schema, or to its list ignore = [...], or set ignore_others = "
                "true."
            )


class MatrixReader(Reader):
    """A reader of numeric columns without names."""

    @abstractmethod
    def chunks(
        self, block: NumericBlock, rows: int, target: bool
    ) -> Iterator[tuple[sparse.csr_array, Column | None]]:
        """At most `rows` raw rows at a time, and their targets. Indices are in range."""

    def check_sizes(self, block: NumericBlock, target: bool) -> None:
        """Raise `DataError` unless sizes and types are what the schema says. Reads no row."""

    def blocks(self, schema: Schema, rows: int, target: bool) -> Iterator[Block]:
        assert isinstance(schema.features, NumericBlock)
        for x, column in self.chunks(schema.features, rows, target):
            y = None if column is None or schema.target is None else schema.target.encode(column)
            yield schema.features.encode(x), y

    def check(self, schema: Schema, target: bool) -> None:
        if not isinstance(schema.features, NumericBlock):
            raise DataError(
                f"{self.title} has no named columns, and the schema names some. Describe it with "
                "[features] and count = ..., bound = ... in the schema."
            )
        self.check_sizes(schema.features, target)


#: The kinds of columns that can be read as what the schema says.
_READABLE_AS = {
    "number": ("number", "text", "yes-no"),
    "yes-no": ("number", "text", "yes-no"),
    "choice": ("number", "text"),
    "count": ("number", "text", "yes-no"),
    "text": ("text",),
    "hash": ("number", "text"),
    "date": ("date", "text"),
    "person": ("number", "text"),
    "classes": ("number", "text", "yes-no"),
}
_ADVICE = {
    "yes-no": 'Use kind = "yes-no".',
    "number": 'Use kind = "number" or "choice".',
    "date": 'Use kind = "date".',
}
_ELSE = "Turn it into numbers or texts first, or leave the column out."


def _listed(names: Iterable[Any], most: int = 20) -> str:
    """Names of columns, which are public."""
    names = list(names)
    listed = ", ".join(repr(name) for name in names[:most])
    return f"{listed} and {len(names) - most} others" if len(names) > most else listed


def _respelt(missing: Sequence[str], names: Iterable[str]) -> str:
    """Which of the missing columns are there but for capitals, spaces and other signs."""
    there = {_letters(name) for name in names}
    found = [name for name in missing if _letters(name) and _letters(name) in there]
    if not found:
        return ""
    return f"Capitals, spaces and signs count, and only they differ in {_listed(found)}. "


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def repeated(names: Sequence[str]) -> set[str]:
    """The names that stand there more than once."""
    return {name for name, times in Counter(names).items() if times > 1}


def missing_package(what: str, package: str) -> InvalidArgument:
    """The error for a package that is needed and not installed."""
    return InvalidArgument(
        f"{what} need the package {package}, which is not installed. Install it with "
        'pip install "riata[files]".'
    )
