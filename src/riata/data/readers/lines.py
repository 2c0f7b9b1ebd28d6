"""Files of lines, perhaps compressed, in which every line is a row whatever is in it."""

from __future__ import annotations

import copy
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast

from riata.data.readers.base import Reader

_BYTES_AT_ONCE = 1 << 20

#: Bytes of a part that another process reads.
_PART_BYTES = 1 << 26

#: Lines of a part that are counted at a time.
_LINES_AT_ONCE = 1 << 16


class LineReader(Reader):
    """A file of lines. Only a line feed ends one, so that no line can swallow another.

    With the ending .gz it is compressed. `header` lines at the beginning are no rows.
    """

    def __init__(self, path: Path, header: int = 0) -> None:
        self.path = path
        self.header = header
        self.title = str(path)
        self._span: tuple[int, int] | None = None

    def parts(self) -> list[Reader] | None:
        """Readers of the lines that begin in so many bytes; one of all if it is compressed."""
        if self._span is not None or self.path.suffix == ".gz":
            return [self]
        with self._opened() as file:
            size = file.seek(0, os.SEEK_END)
        parts: list[Reader] = []
        for start in range(0, size, _PART_BYTES):
            part = copy.copy(self)
            part._span = (start, min(start + _PART_BYTES, size))
            parts.append(part)
        return parts

    @cached_property
    def _lines(self) -> int:
        lines, last = 0, b"\n"
        with self._opened() as file:
            while read := file.read(_BYTES_AT_ONCE):
                lines += read.count(b"\n")
                last = read[-1:]
        return lines + (last != b"\n")

    def count(self) -> int:
        if self._span is not None:
            return sum(map(len, self.batches(_LINES_AT_ONCE)))
        return max(0, self._lines - self.header)

    def batches(self, rows: int) -> Iterator[list[bytes]]:
        """At most `rows` lines at a time, without their ends."""
        with self._opened() as file:
            batch: list[bytes] = []
            for line in self._lines_of_span(file):
                batch.append(line.rstrip(b"\r\n"))
                if len(batch) == rows:
                    yield batch
                    batch = []
            if batch:
                yield batch

    def _lines_of_span(self, file: BinaryIO) -> Iterator[bytes]:
        """The lines of rows that begin in the span, or all of them."""
        start, end = self._span or (0, None)
        if start:
            at = file.seek(start - 1)  # a line that begins at `start` has its end before it
            at += len(file.readline())
        else:
            at = sum(len(file.readline()) for _ in range(self.header))
        if end is None:
            yield from file
            return
        for line in file:
            if at >= end:
                return
            at += len(line)
            yield line

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        with self.guarded(), open(self.path, "rb") as file:
            if self.path.suffix != ".gz":
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast(BinaryIO, unpacked)
