"""Reports in a directory of the local disk."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from riata.collect.segments import Segments, frames, segment_paths
from riata.collect.slots import Slots
from riata.collect.tokens import fresh
from riata.errors import CollectError
from riata.local.task import Task
from riata.privacy.chain import sync_directory

_REPORTS, _TOKENS = "reports", "used.tokens"


class Directory:
    """The reports of one task, and the tokens that were used. One process writes at a time.

    Parameters
    ----------
    path : path
        Made if it is not there.
    task : Task
    """

    def __init__(self, path: str | Path, task: Task) -> None:
        self.path = Path(path).resolve()
        _make_folder(self.path)
        self._lock = self._locked()
        try:
            self._claim(task)
            self._reports = Segments(self.path, _REPORTS)
            # Both sets in the order in which they came would pair tokens with reports.
            self._tokens = Slots(self.path / _TOKENS)
        except BaseException:
            os.close(self._lock)
            raise

    def _locked(self) -> int:
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise CollectError(
                f"Another process collects into {self.path}. Stop it, or give this one a "
                "directory of its own and merge them later."
            ) from None
        return handle

    def _claim(self, task: Task) -> None:
        """The directory belongs to one task for ever."""
        path = self.path / "task.json"
        if path.exists():
            _check_task(self.path, task)
            return
        beside = path.with_suffix(".new")
        with open(beside, "wb") as file:
            file.write(task.canonical)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_directory(str(path))

    def __len__(self) -> int:
        return len(self._reports.known)

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray:
        """Keep the reports that are new, durably, and say which were accepted.

        A report that is known already is accepted again and changes nothing. With tokens, a new
        report is accepted only if its token is unused; the token of a known report is used too.
        """
        if tokens is None:
            self._reports.add(seeds)
            return np.ones(len(seeds), dtype=bool)
        unused = fresh(tokens) & ~self._tokens.known.holds(tokens)
        accepted = unused | self._reports.known.holds(seeds)
        accepted |= np.isin(seeds, seeds[accepted])  # the same report twice at once
        # A crash between the two leaves a token that can be used again, never a lost report.
        self._reports.add(seeds[accepted])
        self._tokens.add(tokens[accepted])
        return accepted

    def close(self) -> None:
        """Let another process have the directory."""
        self._reports.close()
        self._tokens.close()
        os.close(self._lock)


class ReadDirectory:
    """The reports of a directory that another process may be writing to."""

    def __init__(self, path: str | Path, task: Task) -> None:
        self.path = Path(path).resolve()
        if not (self.path / "task.json").exists():
            raise CollectError(f"{path} holds no reports. Name the --store that `serve` writes to.")
        _check_task(self.path, task)

    def batches(self) -> Iterator[np.ndarray]:
        """All reports, some at a time."""
        paths = segment_paths(self.path, _REPORTS)
        for path in paths:
            for seeds, _ in frames(path.read_bytes(), path, last=path == paths[-1]):
                yield seeds

    def close(self) -> None:
        """Nothing is held."""


def _make_folder(path: Path) -> None:
    """A folder, and those above it, whose names outlive a crash."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_directory(str(one))


def _check_task(path: Path, task: Task) -> None:
    if (path / "task.json").read_bytes() != task.canonical:
        raise CollectError(
            f"{path} holds the reports of another task. Choose another directory, or the task file "
            "that it was served with."
        )
