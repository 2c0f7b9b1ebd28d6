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

import numpy as np

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

    def first_line(self) -> bytes:
        with self._opened() as file:
            return file.readline()

    def count(self) -> int:
        if self._span is not None:
            return sum(map(lines_in, self.texts(_LINES_AT_ONCE)))
        return max(0, self._lines - self.header)

    def batches(self, rows: int) -> Iterator[list[bytes]]:
        """At most `rows` lines at a time, without their ends."""
        return map(split_lines, self.texts(rows))

    def texts(self, rows: int) -> Iterator[bytes]:
        """The same as one text with the ends of its lines; all have `rows` lines but the last."""
        held: list[bytes] = []
        lines = 0
        with self._opened() as file:
            for piece in self._bytes_of_span(file):
                found = piece.count(b"\n")
                if lines + found < rows:
                    held.append(piece)
                    lines += found
                    continue
                ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == ord("\n")) + 1
                start = 0
                for end in ends[rows - lines - 1 :: rows].tolist():
                    yield b"".join([*held, piece[start:end]])
                    held, start = [], end
                held, lines = [piece[start:]], int(np.count_nonzero(ends > start))
            if rest := b"".join(held):
                yield rest

    def _bytes_of_span(self, file: BinaryIO) -> Iterator[bytes]:
        """The bytes of the lines of rows that begin in the span, or of all."""
        start, end = self._span or (0, None)
        if start:
            at = file.seek(start - 1)  # a line that begins at `start` has its end before it
            at += len(file.readline())
        else:
            at = sum(len(file.readline()) for _ in range(self.header))
        if end is None:
            while piece := file.read(_BYTES_AT_ONCE):
                yield piece
            return
        if at >= end:
            return
        left = end - 1 - at
        while left and (piece := file.read(min(left, _BYTES_AT_ONCE))):
            left -= len(piece)
            yield piece
        yield file.readline()  # to the end of the line that the last byte of the span is in

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        with self.guarded(), open(self.path, "rb") as file:
            if self.path.suffix != ".gz":
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield cast(BinaryIO, unpacked)


def split_lines(text: bytes) -> list[bytes]:
    """The lines of a text, without their ends."""
    lines = text.split(b"\n")
    if text.endswith(b"\n"):
        lines.pop()
    return [line.rstrip(b"\r") for line in lines]


def lines_in(text: bytes) -> int:
    """How many lines a text has, which is not empty."""
    return text.count(b"\n") + (not text.endswith(b"\n"))
