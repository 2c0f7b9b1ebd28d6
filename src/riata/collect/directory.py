"""Reports in a directory of the local disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from riata.collect.known import Known
from riata.collect.records import Records, earlier_version
from riata.collect.segments import Segments, read
from riata.collect.tokens import fresh
from riata.errors import CollectError
from riata.files import durable
from riata.files.durable import sync_directory
from riata.local.task import Task

#: Reports that came without a token, one word each, and reports with their tokens, two words each.
_REPORTS, _PAIRS = "reports", "pairs"
#: Where earlier versions kept used tokens, without their reports.
_OLD_TOKENS = "used.tokens"


class Directory:
    """The reports of one task, and the tokens that they came with. One process writes at a time.

    A report and its token are one row of one frame: no fault can keep the one without the other.

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
        self._known, self._used = Known(), Known()
        self._reports = Segments(self.path, _REPORTS, 1)
        self._pairs = Segments(self.path, _PAIRS, 2)
        try:
            self._claim(task)
            if _old_tokens(self.path):
                raise earlier_version(str(self.path))
            for rows in self._reports.recover():
                self._known.add(self._known.new(rows[:, 0]))
            for rows in self._pairs.recover():
                self._known.add(self._known.new(rows[:, 0]))
                self._used.add(self._used.new(rows[:, 1]))
        except BaseException:
            self.close()
            raise

    def _locked(self) -> int:
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            alone = durable.lock(handle)
        except OSError:
            alone = False
        if not alone:
            os.close(handle)
            raise CollectError(
                f"Another process collects into {self.path}. Stop it, or give this one a "
                "directory of its own and merge them later."
            )
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
        return len(self._known)

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray:
        """Keep the reports that are new, durably, and say which were accepted.

        A report that is known already is accepted again and changes nothing. With tokens, a new
        report is accepted only if its token is unused; the token of a known report is used too.

        Raises
        ------
        OSError
            With ENOSPC if the disk is full. Then no report is kept and no token is used.
        """
        if tokens is None:
            new = self._known.new(seeds)
            if len(new):
                self._reports.append(new[:, None])
                self._known.add(new)
            return np.ones(len(seeds), dtype=bool)
        unused = fresh(tokens) & ~self._used.holds(tokens)
        accepted = unused | self._known.holds(seeds)
        accepted |= np.isin(seeds, seeds[accepted])  # the same report twice at once
        if unused.any():  # each new report that is accepted stands beside an unused token
            self._pairs.append(np.stack([seeds[unused], tokens[unused]], axis=1))
            self._known.add(self._known.new(seeds[unused]))
            self._used.add(self._used.new(tokens[unused]))
        return accepted

    def holds(self, seeds: np.ndarray) -> np.ndarray:
        """Which of the reports are there."""
        return self._known.holds(seeds)

    def probe(self) -> None:
        """Raise OSError if a report could not be kept now."""
        self._reports.probe()
        self._pairs.probe()

    def close(self) -> None:
        """Let another process have the directory."""
        self._reports.close()
        self._pairs.close()
        os.close(self._lock)


class ReadDirectory:
    """The reports of a directory that another process may be writing to."""

    def __init__(self, path: str | Path, task: Task) -> None:
        self.path = Path(path).resolve()
        if not (self.path / "task.json").exists():
            raise CollectError(f"{path} holds no reports. Name the --store that `serve` writes to.")
        _check_task(self.path, task)
        self.tokens_without_reports = _old_tokens(self.path)

    def records(self) -> Records:
        """All reports, and the tokens that they came with."""
        reports = [rows[:, 0] for rows in read(self.path, _REPORTS, 1)]
        pairs = np.concatenate([*read(self.path, _PAIRS, 2), np.empty((0, 2), np.uint64)])
        return Records(np.concatenate([*reports, np.empty(0, np.uint64)]), pairs[:, 0], pairs[:, 1])

    def batches(self) -> Iterator[np.ndarray]:
        """All reports, each once, some at a time."""
        known = Known()
        for name, width in ((_REPORTS, 1), (_PAIRS, 2)):
            for rows in read(self.path, name, width):
                new = known.new(rows[:, 0])  # several tokens may have come with one report
                known.add(new)
                yield new

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


def _old_tokens(path: Path) -> bool:
    """Whether an earlier version kept used tokens here. It made the file for every directory."""
    file = path / _OLD_TOKENS
    return file.exists() and any(file.read_bytes())
