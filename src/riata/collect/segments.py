"""A set of 64-bit words on a local disk: files that only grow.

A file is a row of frames. A frame is written in one go and counts only if it is whole:

    4 bytes   how many words follow
    4 bytes   the CRC-32 of the number and of the words
    8 bytes   for each word

What a crash left of a frame is cut off when the file is opened again. It was never acknowledged.
The words of a frame are sorted, so their order tells nothing of the order in which they came.
"""

from __future__ import annotations

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
_HEAD = struct.Struct(">II")
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
        self._file = self._opened()

    def _recover(self, path: Path, last: bool) -> None:
        """Learn what a file holds, and cut off a last frame that is not whole."""
        good = 0
        with open(path, "r+b") as file:
            data = file.read()
            for words, end in frames(data):
                self.known.add(self.known.new(words))
                good = end
            left = len(data) - good
            if left == 0:
                return
            if not last or left > _HEAD.size + wire.REPORT_BYTES * _LARGEST_FRAME:
                raise CollectError(
                    f"{path} is damaged after {good} of {len(data)} bytes: more than a crash can "
                    "do. Restore it from a copy; cutting it off would lose reports."
                )
            file.truncate(good)
            os.fsync(file.fileno())

    def _opened(self) -> int:
        path = self._directory / f"{self._number:08d}.{self._name}"
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        sync_directory(str(path))
        return handle

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
        if os.fstat(self._file).st_size >= SEGMENT_BYTES:
            os.close(self._file)
            self._number += 1
            self._file = self._opened()
        before = os.fstat(self._file).st_size
        count = struct.pack(">I", len(words) // wire.REPORT_BYTES)
        frame = count + struct.pack(">I", zlib.crc32(count + words)) + words
        try:
            if os.write(self._file, frame) != len(frame):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise

    def close(self) -> None:
        os.close(self._file)


def segment_paths(directory: Path, name: str) -> list[Path]:
    """The files of a set, in their order."""
    return sorted(directory.glob(f"[0-9]*.{name}"))


def frames(data: bytes) -> Iterator[tuple[np.ndarray, int]]:
    """The words of each whole frame, and where it ends."""
    at = 0
    while at + _HEAD.size <= len(data):
        count, check = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + wire.REPORT_BYTES * count
        words = data[at + _HEAD.size : end]
        if end > len(data) or count == 0 or zlib.crc32(data[at : at + 4] + words) != check:
            return
        yield wire.from_bytes(words), end
        at = end
