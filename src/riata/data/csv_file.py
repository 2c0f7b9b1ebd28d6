"""CSV, read so that no line can stop a fit or move another row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from riata.data.columns import Texts
from riata.data.lines import LineReader
from riata.data.reader import ColumnReader, repeated
from riata.errors import DataError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CsvReader(LineReader, ColumnReader):
    """A CSV file with a header. Each line after it is one row.

    A quoted field cannot go on in the next line: if it could, one open quote would swallow the
    rows of others. A line with too few or too many fields is a row in which everything is missing.
    """

    hint = "Its first line must name the columns. Correct the schema or that line."

    def __init__(self, path: Path, separator: str = ",") -> None:
        super().__init__(path, header=1)
        self.separator = separator

    @cached_property
    def names(self) -> list[str]:
        """The header."""
        with self._opened() as file:
            line = file.readline().removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r\n")
        names = [name.decode("utf-8", "replace").strip() for name in self._fields(line)]
        if not any(names):
            raise DataError(
                f"{self.title} has no header: its first line must name the columns. Add one."
            )
        return names

    def twice(self) -> set[str]:
        return repeated(self.names)

    def kinds(self) -> dict[str, str]:
        return dict.fromkeys(self.names, "text")

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, dict[str, Texts]]]:
        places = [self.names.index(name) for name in names]
        width = len(self.names)
        nothing = [b""] * width
        for lines in self.batches(rows):
            found = map(self._fields, lines)
            table = [fields if len(fields) == width else nothing for fields in found]
            yield (
                len(table),
                {
                    name: Texts.of([fields[place] for fields in table])
                    for name, place in zip(names, places, strict=True)
                },
            )

    def _fields(self, line: bytes) -> list[bytes]:
        """The fields of a line; none if it cannot be split."""
        if b'"' not in line:
            return line.split(self.separator.encode())
        try:
            said = line.decode("utf-8", "surrogateescape")
            fields = next(csv.reader((said,), delimiter=self.separator))
            return [field.encode("utf-8", "surrogateescape") for field in fields]
        except csv.Error:
            return []
