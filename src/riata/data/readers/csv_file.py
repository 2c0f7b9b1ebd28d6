"""CSV, read so that no line can stop a fit or move another row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from riata.data.columns import Cells, Column
from riata.data.readers.arrow import plain_fields
from riata.data.readers.base import TableReader, repeated
from riata.data.readers.lines import LineReader, lines_in, split_lines
from riata.errors import DataError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: What a file begins with that a spreadsheet saves as "Unicode text".
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
#: How files of gzip and of zip begin.
_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04")

#: Longer texts are split by Python: Arrow counts bytes in 31 bits.
_MOST_BYTES = 1 << 30


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
        hint = "Its first line must name the columns. Correct the schema or that line."
        if len(self.names) > 1:
            return hint
        return (
            f"Its first line is one field: if another sign than {self.separator!r} is between "
            'the fields, write it into the schema, as in separator = ";" or "\\t" for tabs. '
            "Otherwise it must name the columns."
        )

    @cached_property
    def names(self) -> list[str]:
        """The header."""
        with self._opened() as file:
            line = file.readline()
        if line.startswith(_UTF_16):
            raise DataError(
                f"{self.title} begins as a text in UTF-16 does, and riata reads UTF-8. Save it as "
                "CSV in UTF-8."
            )
        if line.startswith(_COMPRESSED):
            raise DataError(
                f"{self.title} begins as a compressed file does. Name it .csv.gz if gzip made it; "
                "otherwise unpack it."
            )
        line = line.removeprefix(_BYTE_ORDER_MARK).rstrip(b"\r\n")
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

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[tuple[int, dict[str, Column]]]:
        places = {name: self.names.index(name) for name in names}
        for text in self.texts(rows):
            n_rows = lines_in(text)
            fields = self._plain_fields(text, n_rows, list(places.values()))
            if fields is None:
                cells, width = self._cells(split_lines(text)), len(self.names)
                fields = [Cells(cells[place::width]) for place in places.values()]
            yield n_rows, dict(zip(places, fields, strict=True))

    def _plain_fields(self, text: bytes, n_rows: int, places: list[int]) -> Sequence[Column] | None:
        """Some columns of a text without quotes whose lines all have as many fields as the header.

        Arrow splits it, a whole text at a time. None for every other text, and without Arrow.
        Which of the two ways a row is read may depend on other rows, and what it means does not.
        """
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        marked = b'"' in text or b"\r" in text or text.startswith(_BYTE_ORDER_MARK)
        if marked or len(text) > _MOST_BYTES:
            return None
        return plain_fields(text, n_rows, self.separator, len(self.names), places)

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
            text = line.decode("utf-8", "surrogateescape")
            fields = next(csv.reader((text,), delimiter=self.separator), [])
            return [field.encode("utf-8", "surrogateescape") for field in fields]
        except csv.Error:
            return []
