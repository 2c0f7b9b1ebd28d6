"""Files of lines, perhaps compressed, in which every line is a row whatever is in it."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO

from riata.data.reader import Reader
from riata.errors import DataError

_BYTES_AT_ONCE = 1 << 20


class LineReader(Reader):
    """A file of lines. Only a line feed ends one, so that no line can swallow another.

    Parameters
    ----------
    path : Path
        With the ending .gz if it is compressed.
    header : int
        How many lines at the beginning are no rows.
    """

    def __init__(self, path: Path, header: int = 0) -> None:
        self.path = path
        self.header = header
        self.title = str(path)

    @cached_property
    def _lines(self) -> int:
        lines, last = 0, b"\n"
        with self._opened() as file:
            while read := file.read(_BYTES_AT_ONCE):
                lines += read.count(b"\n")
                last = read[-1:]
        return lines + (last != b"\n")

    def count(self) -> int:
        return max(0, self._lines - self.header)

    def batches(self, rows: int) -> Iterator[list[bytes]]:
        """At most `rows` lines at a time, without their ends."""
        with self._opened() as file:
            for _ in range(self.header):
                file.readline()
            batch: list[bytes] = []
            for line in file:
                batch.append(line.rstrip(b"\r\n"))
                if len(batch) == rows:
                    yield batch
                    batch = []
            if batch:
                yield batch

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """The file; whatever goes wrong while it is read is one error, without any of its bytes."""
        opener = gzip.open if self.path.suffix == ".gz" else open
        try:
            with opener(self.path, "rb") as file:
                yield file
        except FileNotFoundError:
            raise DataError(f"There is no file {self.path}. Check the path.") from None
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise self.damaged() from None
        except OSError as problem:
            raise DataError(f"Cannot read {self.path}: {problem.strerror}.") from None
