"""CSV, read so that no line can stop a fit or move another row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from riata.data.columns import Cells
from riata.data.readers.base import TableReader, repeated
from riata.data.readers.lines import LineReader
from riata.errors import DataError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CsvReader(LineReader, TableReader):
    """A CSV file with a header. Each line after it is one row.

    A quoted field cannot go on in the next line: if it could, one open quote would swallow the
    rows of others. A line with too few or too many fields is a row in which everything is missing.
    """

    def __init__(self, path: Path, separator: str = ",") -> None:
        super().__init__(path, header=1)
        self.separator = separator

    @property
    def hint(self) -> str:  # type: ignore[override]
        """What to look for: a header that is one field often has another separator."""
        said = "Its first line must name the columns. Correct the schema or that line."
        if len(self.names) > 1:
            return said
        return (
            f"Its first line is one field: if another sign than {self.separator!r} is between "
            'the fields, write it into the schema, as in separator = ";". Otherwise it must '
            "name the columns."
        )

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

    def repeated_names(self) -> set[str]:
        return repeated(self.names)

    def kinds(self) -> dict[str, str]:
        return dict.fromkeys(self.names, "text")

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, dict[str, Cells]]]:
        places = {name: self.names.index(name) for name in names}
        width = len(self.names)
        for lines in self.batches(rows):
            cells = self._cells(lines)
            yield (
                len(lines),
                {name: Cells(cells[place::width]) for name, place in places.items()},
            )

    def _cells(self, lines: list[bytes]) -> list[bytes]:
        """The fields of all lines in one list, which is quicker than a list for each line."""
        separator, width = self.separator.encode(), len(self.names)
        blank, inside = separator * (width - 1), width - 1
        plain = [
            line if b'"' not in line and line.count(separator) == inside else blank
            for line in lines
        ]
        cells = separator.join(plain).split(separator)
        for row, line in enumerate(lines):
            if b'"' in line and len(fields := self._fields(line)) == width:
                cells[row * width : (row + 1) * width] = fields
        return cells

    def _fields(self, line: bytes) -> list[bytes]:
        """The fields of one line; none if it cannot be split."""
        if b'"' not in line:
            return line.split(self.separator.encode())
        try:
            said = line.decode("utf-8", "surrogateescape")
            fields = next(csv.reader((said,), delimiter=self.separator), [])
            return [field.encode("utf-8", "surrogateescape") for field in fields]
        except csv.Error:
            return []
