"""Arrow tables and Parquet files, one or a directory of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.data.columns import Column, Dates, Numbers, Texts
from riata.data.readers.base import Reader, TableReader, missing_package, repeated
from riata.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = tuple[int, dict[str, Column]]


def arrow() -> Any:
    """The package pyarrow, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise missing_package("Parquet and Arrow", "pyarrow") from None
    return pyarrow


class ArrowReader(TableReader):
    """A table in memory."""

    title = "The Arrow table"

    def __init__(self, table: Any) -> None:
        pa = arrow()
        self.table = pa.table(table) if isinstance(table, pa.RecordBatch) else table

    def repeated_names(self) -> set[str]:
        return repeated(self.table.schema.names)

    def kinds(self) -> dict[str, str]:
        return _kinds(self.table.schema)

    def count(self) -> int:
        return int(self.table.num_rows)

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[_CHUNK]:
        for start in range(0, self.table.num_rows, rows):
            part = self.table.slice(start, rows)
            yield part.num_rows, {name: _column(part.column(name)) for name in names}


class ArrowCells(Column):
    """Bytes of a text file in an Arrow array. They mean what they mean as `Cells`.

    Arrow reads fewer spellings of numbers than Python, and rounds those to the same floats. So if
    it reads all of a column, that is what Python would read, and otherwise Python reads them.
    """

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> np.ndarray:
        for trim in (False, True):
            found = _floats(self.values, trim)
            if found is not None:
                return found
        return self.texts().numbers()

    def texts(self) -> Texts:
        return _texts(self.values)


def _floats(values: Any, trim: bool) -> np.ndarray | None:
    """The numbers that bytes spell, if Arrow can read all of them.

    If they are to be trimmed, without spaces around them, and NaN where nothing is left.
    """
    pa = arrow()
    compute = pa.compute
    try:
        texts = values.cast(pa.string())
        if trim:
            bare = compute.ascii_trim_whitespace(texts)
            texts = compute.if_else(compute.equal(compute.binary_length(bare), 0), "nan", bare)
        found = np.array(texts.cast(pa.float64()))
    except pa.ArrowException:
        return None
    found[np.isnan(found)] = np.nan
    return found


def plain_fields(
    text: bytes, n_rows: int, separator: str, width: int, places: list[int]
) -> list[ArrowCells] | None:
    """The fields at some places in the lines of a text without quotes and carriage returns.

    None if it does not have so many lines of `width` fields each, if Arrow knows no such separator,
    or if it is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    names = [str(place) for place in range(width)]
    wanted = [names[place] for place in places]
    try:
        table = csv.read_csv(
            pa.BufferReader(text),
            read_options=csv.ReadOptions(
                use_threads=False, block_size=len(text) + 1, column_names=names
            ),
            parse_options=csv.ParseOptions(
                delimiter=separator, quote_char=False, escape_char=False, ignore_empty_lines=False
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.binary()), include_columns=wanted,
                check_utf8=False, null_values=[], strings_can_be_null=False,
            ),
        )  # fmt: skip
    except (pa.ArrowException, ValueError):  # the latter of a separator that is not one ASCII sign
        return None
    if table.num_rows != n_rows:
        return None
    return [ArrowCells(table.column(name).combine_chunks()) for name in wanted]


class ParquetReader(TableReader):
    """A Parquet file, or some of its row groups."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.title = str(path)
        with self.open_file() as file:
            meta = file.metadata
            self._kinds = _kinds(file.schema_arrow)
            self._repeated = repeated(file.schema_arrow.names)
            self._sizes = [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]
        self.groups = list(range(len(self._sizes)))

    def open_file(self) -> Any:
        pa = arrow()
        with self.guarded(pa.ArrowException):
            return pa.parquet.ParquetFile(self.path)

    def kinds(self) -> dict[str, str]:
        return self._kinds

    def repeated_names(self) -> set[str]:
        return self._repeated

    def count(self) -> int:
        return sum(self._sizes[group] for group in self.groups)

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[_CHUNK]:
        damage = arrow().ArrowException
        with self.open_file() as file:
            batches = file.iter_batches(rows, row_groups=self.groups, columns=list(names))
            while True:
                with self.guarded(damage):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    columns = {name: _column(batch.column(name)) for name in names}
                yield batch.num_rows, columns

    def pieces(self) -> list[Reader]:
        found: list[Reader] = []
        for group in self.groups:
            part = copy.copy(self)
            part.groups = [group]
            found.append(part)
        return found

    parts = pieces


class ParquetDirectory(TableReader):
    """Parquet files of one schema, in the order of their rows."""

    def __init__(self, path: Path, files: list[Path]) -> None:
        self.title = str(path)
        self.files = [ParquetReader(file) for file in files]
        for file in self.files:
            if file.kinds() != self.files[0].kinds():
                raise DataError(
                    f"{file.title} has other columns or types than {self.files[0].title}: the "
                    "files of a directory must agree. Write them again with one schema, or read "
                    "them one by one."
                )

    def kinds(self) -> dict[str, str]:
        return self.files[0].kinds()

    def repeated_names(self) -> set[str]:
        return set().union(*(file.repeated_names() for file in self.files))

    def count(self) -> int:
        return sum(file.count() for file in self.files)

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[_CHUNK]:
        for file in self.files:
            yield from file.chunks(names, rows)

    def pieces(self) -> list[Reader]:
        return list(self.files) if len(self.files) > 1 else self.files[0].pieces()

    parts = pieces


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
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    texts = (types.is_string, types.is_large_string, types.is_string_view, types.is_null)
    return "text" if any(is_kind(kind) for is_kind in texts) else str(kind)


def _texts(values: Any) -> Texts:
    """From an Arrow array of bytes."""
    encoded = values.dictionary_encode()
    words = Texts.of(encoded.dictionary.to_pylist()).words
    return Texts([*words, None], np.asarray(encoded.indices.fill_null(len(words))))


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
        return _texts(values.cast(pa.large_binary()))
    if kind == "date":
        return Dates(values.to_numpy(zero_copy_only=False))
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    missing = np.asarray(values.is_null()) if values.null_count else None
    if missing is not None:
        values = values.fill_null(False if kind == "yes-no" else 0)
    return Numbers(values.to_numpy(zero_copy_only=False), missing)
