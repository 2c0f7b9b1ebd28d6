"""Arrow tables and Parquet files, one or a directory of them."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.data.columns import Column, Numbers, Texts
from riata.data.reader import ColumnReader, Reader, repeated
from riata.errors import DataError, InvalidArgument

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = tuple[int, dict[str, Column]]


def arrow() -> Any:
    """The package pyarrow, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InvalidArgument(
            "Parquet and Arrow need the package pyarrow, which is not installed. Install it with "
            'pip install "riata[files]".'
        ) from None
    return pyarrow


class TableReader(ColumnReader):
    """A table in memory."""

    def __init__(self, table: Any) -> None:
        pa = arrow()
        self.table = pa.table(table) if isinstance(table, pa.RecordBatch) else table
        self.title = "The Arrow table"

    def twice(self) -> set[str]:
        return repeated(self.table.schema.names)

    def kinds(self) -> dict[str, str]:
        return _kinds(self.table.schema)

    def count(self) -> int:
        return self.table.num_rows

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[_CHUNK]:
        for start in range(0, self.table.num_rows, rows):
            part = self.table.slice(start, rows)
            found = {name: _column(part.column(name).combine_chunks()) for name in names}
            yield part.num_rows, found


class ParquetReader(ColumnReader):
    """Parquet files, in the order of their rows, or some row groups of one."""

    def __init__(self, paths: list[Path], title: str) -> None:
        self.paths = paths
        self.title = title
        self.groups: list[int] | None = None
        first: dict[str, str] | None = None
        self._sizes: list[list[int]] = []
        self._twice: set[str] = set()
        for path in paths:
            found = self._careful(path, self._facts, path)
            first = found if first is None else first
            if found != first:
                raise DataError(
                    f"{path} has other columns or types than {paths[0]}: the files of a directory "
                    "must agree. Write them again with one schema, or read them one by one."
                )
        self._kinds = first or {}

    def _facts(self, path: Path) -> dict[str, str]:
        """What the footer says about the columns."""
        with arrow().parquet.ParquetFile(path) as file:
            self._twice |= repeated(file.schema_arrow.names)
            meta = file.metadata
            self._sizes.append([meta.row_group(i).num_rows for i in range(meta.num_row_groups)])
            return _kinds(file.schema_arrow)

    def kinds(self) -> dict[str, str]:
        return self._kinds

    def twice(self) -> set[str]:
        return self._twice

    def count(self) -> int:
        if self.groups is not None:
            return sum(self._sizes[0][group] for group in self.groups)
        return sum(map(sum, self._sizes))

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[_CHUNK]:
        for path in self.paths:
            yield from self._file_chunks(path, names, rows)

    def _file_chunks(self, path: Path, names: Sequence[str], rows: int) -> Iterator[_CHUNK]:
        file = self._careful(path, arrow().parquet.ParquetFile, path)
        with file:
            batches = file.iter_batches(rows, row_groups=self.groups, columns=list(names))
            while True:
                batch = self._careful(path, functools.partial(next, batches, None))
                if batch is None:
                    return
                found = {name: self._careful(path, _column, batch.column(name)) for name in names}
                yield batch.num_rows, found

    def _careful(self, path: Path, read: Callable[..., Any], *arguments: Any) -> Any:
        """`read(*arguments)`, with errors that quote nothing of the file."""
        pa = arrow()
        try:
            return read(*arguments)
        except FileNotFoundError:
            raise DataError(f"There is no file {path}. Check the path.") from None
        except (pa.ArrowException, OSError, ValueError):
            raise DataError(
                f"{path} is damaged, cut off, or no Parquet file. Copy it again from where it "
                "came from."
            ) from None

    def pieces(self) -> list[Reader]:
        if len(self.paths) > 1:
            return [ParquetReader([path], str(path)) for path in self.paths]
        groups = range(len(self._sizes[0])) if self.groups is None else self.groups
        return [self._of_groups([group]) for group in groups]

    def parts(self) -> list[Reader] | None:
        return self.pieces()

    def _of_groups(self, groups: list[int]) -> ParquetReader:
        """Some row groups of the only file, whose footer has been read."""
        part = copy.copy(self)
        part.groups = groups
        return part


def _kinds(schema: pa.Schema) -> dict[str, str]:
    return {field.name: _kind(field.type) for field in schema}


def _kind(kind: pa.DataType) -> str:
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "yes-no"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return "text" if any(is_kind(kind) for is_kind in texts) else str(kind)


def _column(values: Any) -> Column:
    """An Arrow array of a kind that can be read."""
    pa = arrow()
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = _kind(values.type)
    if pa.types.is_null(values.type):
        return Texts.blank(len(values))
    if kind == "text":
        # As bytes: what is no UTF-8 would raise.
        encoded = values.cast(pa.large_binary()).dictionary_encode()
        words = Texts.of(encoded.dictionary.to_pylist()).words
        return Texts([*words, None], np.asarray(encoded.indices.fill_null(len(words))))
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    missing = np.asarray(values.is_null()) if values.null_count else None
    if missing is not None:
        values = values.fill_null(False if kind == "yes-no" else 0)
    return Numbers(values.to_numpy(zero_copy_only=False), missing)
