"""Reports on a local disk: files that only grow.

A file is a row of frames. A frame is written in one go and counts only if it is whole:

    4 bytes   how many reports follow
    4 bytes   the CRC-32 of the number and of the reports
    8 bytes   for each report

What a crash left of a frame is cut off when the file is opened again. It was never acknowledged.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from riata.collect.known import Known
from riata.errors import CollectError
from riata.local import wire
from riata.local.task import Task
from riata.privacy.chain import sync_directory

#: A file that has grown this large is closed, and a new one begun.
SEGMENT_BYTES = 1 << 28
_HEAD = struct.Struct(">II")
_LARGEST_FRAME = 1 << 20


class Segments:
    """The reports of one task in a directory of their own. One process writes at a time.

    Parameters
    ----------
    directory : path
        Made if it is not there. It holds the task file and the segments.
    task : Task
    """

    def __init__(self, directory: str | Path, task: Task) -> None:
        self.directory = Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()
        self._claim(task)
        self._known = Known()
        numbers = sorted(int(path.stem) for path in self.directory.glob("*.reports"))
        for number in numbers:
            self._recover(self._path(number), last=number == numbers[-1])
        self._number = numbers[-1] if numbers else 1
        self._file = self._opened()

    def _path(self, number: int) -> Path:
        return self.directory / f"{number:08d}.reports"

    def _locked(self) -> int:
        handle = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise CollectError(
                f"Another process collects into {self.directory}. Stop it, or give this one a "
                "directory of its own and merge them later."
            ) from None
        return handle

    def _claim(self, task: Task) -> None:
        """The directory belongs to one task for ever."""
        path = self.directory / "task.json"
        if not path.exists():
            beside = path.with_suffix(".new")
            with open(beside, "wb") as file:
                file.write(task.canonical)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
            sync_directory(str(path))
        elif path.read_bytes() != task.canonical:
            raise CollectError(
                f"{self.directory} holds the reports of another task. Choose another directory."
            )

    def _recover(self, path: Path, last: bool) -> None:
        """Learn what a segment holds, and cut off a last frame that is not whole."""
        good = 0
        with open(path, "r+b") as file:
            data = file.read()
            for seeds, end in _frames(data):
                self._known.add(self._known.new(seeds))
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
        path = self._path(self._number)
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        sync_directory(str(path))
        return handle

    def __len__(self) -> int:
        return len(self._known)

    def add(self, seeds: np.ndarray) -> int:
        """Keep those of the reports that are new. They are on the disk when this returns.

        Returns
        -------
        new : int
            How many of them were new.

        Raises
        ------
        OSError
            With ENOSPC if the disk is full. Nothing was kept then.
        """
        new = self._known.new(seeds)
        for start in range(0, len(new), _LARGEST_FRAME):
            part = new[start : start + _LARGEST_FRAME]
            self._write(wire.to_bytes(part))
            self._known.add(part)
        return len(new)

    def _write(self, reports: bytes) -> None:
        """One frame, whole or not at all."""
        if os.fstat(self._file).st_size >= SEGMENT_BYTES:
            os.close(self._file)
            self._number += 1
            self._file = self._opened()
        before = os.fstat(self._file).st_size
        count = struct.pack(">I", len(reports) // wire.REPORT_BYTES)
        frame = count + struct.pack(">I", zlib.crc32(count + reports)) + reports
        try:
            if os.write(self._file, frame) != len(frame):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, before)
            raise

    def close(self) -> None:
        """Let another process have the directory."""
        os.close(self._file)
        os.close(self._lock)


def _frames(data: bytes) -> Iterator[tuple[np.ndarray, int]]:
    """The reports of each whole frame, and where it ends."""
    at = 0
    while at + _HEAD.size <= len(data):
        count, check = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + wire.REPORT_BYTES * count
        reports = data[at + _HEAD.size : end]
        if end > len(data) or count == 0 or zlib.crc32(data[at : at + 4] + reports) != check:
            return
        yield wire.from_bytes(reports), end
        at = end


class Reading:
    """The whole frames of a directory that another process may be writing to."""

    def __init__(self, directory: Path, task: Task) -> None:
        if (directory / "task.json").read_bytes() != task.canonical:
            raise CollectError(
                f"{directory} holds the reports of another task. Name the task file that it was "
                "served with."
            )
        self._directory = directory

    def batches(self) -> Iterator[np.ndarray]:
        """All reports, some at a time."""
        for path in sorted(self._directory.glob("*.reports")):
            for seeds, _ in _frames(path.read_bytes()):
                yield seeds

    def close(self) -> None:
        """Nothing is held."""
