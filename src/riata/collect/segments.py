"""A set of 64-bit words on a local disk: files that only grow.

A file is a row of frames. A frame is written in one go and counts only if it is whole:

    4 bytes   how many words follow
    4 bytes   the CRC-32 of the words
    4 bytes   the CRC-32 of the eight bytes before
    8 bytes   for each word

Each frame is durable before the next is written, so a crash can leave only the last one broken: cut
short, or followed by nothing. That is cut off when the file is opened again; it was never
acknowledged. Anything else that is broken is damage, and an error.
The words of a frame are sorted, so their order tells nothing of the order in which they came.
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

from riata.collect.known import Known
from riata.errors import CollectError
from riata.local import wire
from riata.privacy.chain import sync_directory

#: A file that has grown this large is closed, and a new one begun.
SEGMENT_BYTES = 1 << 28
_COUNTS = struct.Struct(">II")
_HEAD = struct.Struct(">III")
_LARGEST_FRAME = 1 << 20


class Segments:
    """Words in the files `00000001.<name>`, `00000002.<name>`, ... of a directory.

    Parameters
    ----------
    directory : path
    name : str
        What the words are.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, name
        self.known = Known()
        paths = segment_paths(directory, name)
        for path in paths:
            self._recover(path, last=path == paths[-1])
        self._number = int(paths[-1].stem) if paths else 1
        self._open()

    def _recover(self, path: Path, last: bool) -> None:
        """Learn what a file holds, and cut off a last frame that is not whole."""
        with open(path, "r+b") as file:
            data, good = file.read(), 0
            for words, end in frames(data, path, last):
                self.known.add(self.known.new(words))
                good = end
            if good < len(data):
                file.truncate(good)
                os.fsync(file.fileno())

    def _open(self) -> None:
        path = self._path(self._number)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._size = os.fstat(self._file).st_size
        sync_directory(str(path))

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:08d}.{self._name}"

    def add(self, words: np.ndarray) -> None:
        """Add those of the words that are new. They are on the disk when this returns.

        Raises
        ------
        OSError
            With ENOSPC if the disk is full. What was not written is not in the set.
        """
        new = self.known.new(words)
        for start in range(0, len(new), _LARGEST_FRAME):
            part = new[start : start + _LARGEST_FRAME]
            self._write(wire.to_bytes(part))
            self.known.add(part)

    def _write(self, words: bytes) -> None:
        """One frame, whole or not at all."""
        if self._size >= SEGMENT_BYTES:
            full, self._number = self._file, self._number + 1
            try:
                self._open()
            except OSError:
                self._number -= 1
                raise
            os.close(full)
        data = frame(words)
        try:
            # What an earlier failure left behind and could not take back goes first.
            if os.fstat(self._file).st_size != self._size:
                os.ftruncate(self._file, self._size)
            if os.write(self._file, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        os.close(self._file)


def segment_paths(directory: Path, name: str) -> list[Path]:
    """The files of a set, in their order."""
    return sorted(directory.glob(f"[0-9]*.{name}"))


def frame(words: bytes) -> bytes:
    """The bytes of a frame."""
    counts = _COUNTS.pack(len(words) // wire.REPORT_BYTES, zlib.crc32(words))
    return counts + struct.pack(">I", zlib.crc32(counts)) + words


def frames(data: bytes, path: Path, last: bool) -> Iterator[tuple[np.ndarray, int]]:
    """The words of each whole frame, and where it ends.

    Raises
    ------
    CollectError
        If something is broken that a crash cannot have broken.
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
        end = at + _HEAD.size + wire.REPORT_BYTES * count
        words = data[at + _HEAD.size : end]
        if end > len(data):
            break
        if zlib.crc32(words) != check:
            if end < len(data):
                raise _damaged(path, at, len(data))
            break
        yield wire.from_bytes(words), end
        at = end
    if at < len(data) and not last:
        raise _damaged(path, at, len(data))


def _damaged(path: Path, at: int, size: int) -> CollectError:
    return CollectError(
        f"{path} is damaged after {at} of {size} bytes, as no crash does it. Restore it from a "
        "copy; cutting it off would lose reports."
    )
