"""Rows of 64-bit words on a local disk: files that only grow, and one commit point for each write.

A file is a row of frames. A frame is written in one go and counts only if it is whole:

    4 bytes   how many rows follow
    4 bytes   the CRC-32 of the rows
    4 bytes   the CRC-32 of the eight bytes before
    8 bytes   for each word of each row

Whatever is written together stands in one frame, so it is there or it is not: there is nothing that
a fault could leave half done. Each frame is durable before the next is written, so a crash can
leave only the last one broken: cut short, or followed by nothing. That is cut off when the file is
opened again; it was never acknowledged. Anything else that is broken is damage, and an error.
The rows of a frame are sorted, so their order tells nothing of the order in which they came.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from riata.errors import CollectError
from riata.files.durable import BINARY, sync_directory
from riata.local import report_format

#: A file that has grown this large is closed, and a new one begun.
SEGMENT_BYTES = 1 << 28
#: What must fit onto the disk for `Segments.probe` to pass.
PROBE_BYTES = 1 << 12
_COUNTS = struct.Struct(">II")
_HEAD = struct.Struct(">III")


class Segments:
    """Rows of `width` words in the files `00000001.<name>`, `00000002.<name>`, ... of a folder."""

    def __init__(self, directory: Path, name: str, width: int) -> None:
        self._directory, self._name, self._width = directory, name, width
        paths = segment_paths(directory, name)
        self._number = int(paths[-1].stem) if paths else 1
        self._file, self._size = -1, 0

    def recover(self) -> Iterator[np.ndarray]:
        """The rows of each frame; a last frame that is not whole is cut off."""
        for path, last in _with_last(segment_paths(self._directory, self._name)):
            with open(path, "r+b") as file:
                data, good = file.read(), 0
                for rows, end in frames(data, path, last, self._width):
                    yield rows
                    good = end
                if good < len(data):
                    file.truncate(good)
                if last:
                    # A killed process may have left a frame that is whole but not yet durable.
                    os.fsync(file.fileno())
        self._file, self._size = self._opened(self._number)

    def _opened(self, number: int) -> tuple[int, int]:
        """A file for writing, whose name outlives a crash, and its size."""
        path = self._directory / f"{number:08d}.{self._name}"
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | BINARY, 0o600)
        try:
            size = os.fstat(file).st_size
            sync_directory(str(path))
        except OSError:
            os.close(file)
            raise
        return file, size

    def append(self, rows: np.ndarray) -> None:
        """Write rows as one frame. They are on the disk when this returns.

        Raises OSError with ENOSPC if the disk is full. Then none of the rows is there.
        """
        data = frame(rows[np.lexsort(rows.T[::-1])])
        self._extend(data)
        self._size += len(data)

    def probe(self) -> None:
        """Raise OSError if nothing could be written now."""
        self._extend(bytes(PROBE_BYTES))  # zeros are what a crash may leave at the end
        self._cut()

    def _extend(self, data: bytes) -> None:
        """Write bytes after the last frame, all or none."""
        if self._size >= SEGMENT_BYTES:
            file, size = self._opened(self._number + 1)
            os.close(self._file)
            self._file, self._size, self._number = file, size, self._number + 1
        self._cut()  # what an earlier failure left behind and could not take back
        try:
            if os.write(self._file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except BaseException:
            with contextlib.suppress(OSError):
                self._cut()
            raise

    def _cut(self) -> None:
        if os.fstat(self._file).st_size != self._size:
            os.ftruncate(self._file, self._size)

    def close(self) -> None:
        if self._file < 0:
            return
        with contextlib.suppress(OSError):
            self._cut()
        os.close(self._file)
        self._file = -1


def segment_paths(directory: Path, name: str) -> list[Path]:
    """The files of a set, in their order."""
    return sorted(directory.glob(f"[0-9]*.{name}"))


def read(directory: Path, name: str, width: int) -> Iterator[np.ndarray]:
    """The rows of each frame, while another process may be writing."""
    for path, last in _with_last(segment_paths(directory, name)):
        try:
            found = [rows for rows, _ in frames(path.read_bytes(), path, last, width)]
        except CollectError:
            if not last:
                raise
            # The other process may have taken back a failed write while this one was reading.
            found = [rows for rows, _ in frames(path.read_bytes(), path, last, width)]
        yield from found


def _with_last(paths: list[Path]) -> list[tuple[Path, bool]]:
    """Whether a crash can have left its traces in a file: only empty ones come after it."""
    empty = [path.stat().st_size == 0 for path in paths]
    return [(path, all(empty[i + 1 :])) for i, path in enumerate(paths)]


def frame(rows: np.ndarray) -> bytes:
    """The bytes of a frame."""
    words = report_format.to_bytes(rows)
    counts = _COUNTS.pack(len(rows), zlib.crc32(words))
    return counts + struct.pack(">I", zlib.crc32(counts)) + words


def frames(data: bytes, path: Path, last: bool, width: int) -> Iterator[tuple[np.ndarray, int]]:
    """The rows of each whole frame, and where it ends.

    Raises CollectError if something is broken that a crash cannot have broken.
    """
    at = 0
    while at < len(data):
        left = len(data) - at
        if left < _HEAD.size:
            break
        count, check, head = _HEAD.unpack_from(data, at)
        if zlib.crc32(data[at : at + _COUNTS.size]) != head:
            if any(data[at:]):  # a crash can leave zeros where a frame was to be
                raise _damaged(path, at, len(data))
            break
        end = at + _HEAD.size + report_format.REPORT_BYTES * width * count
        words = data[at + _HEAD.size : end]
        if end > len(data):
            break
        if zlib.crc32(words) != check:
            if end < len(data):
                raise _damaged(path, at, len(data))
            break
        yield report_format.from_bytes(words).reshape(-1, width), end
        at = end
    if at < len(data) and not last:
        raise _damaged(path, at, len(data))


def _damaged(path: Path, at: int, size: int) -> CollectError:
    return CollectError(
        f"{path} is damaged after {at} of {size} bytes, as no crash does it. Restore it from a "
        "copy; cutting it off would lose reports."
    )
