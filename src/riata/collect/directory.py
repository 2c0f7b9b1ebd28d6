"""Reports in a directory of the local disk."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from riata.collect.segments import Segments, read
from riata.collect.store import Records, accepted_reports
from riata.collect.word_set import WordSet
from riata.errors import CollectError
from riata.files import durable
from riata.local.report_format import first_occurrences
from riata.local.task import Task

#: Reports that came without a token, one word each, and reports with their tokens, two words each.
_REPORTS, _PAIRS = "reports", "pairs"


class DirectoryStore:
    """The reports of one task, and the tokens that they came with. One process writes at a time.

    A report and its token are one row of one frame: no fault can keep the one without the other.
    """

    def __init__(self, path: str | Path, task: Task) -> None:
        self.path = Path(path).resolve()
        _make_folder(self.path)
        self._lock = self._take_lock()
        self._seeds, self._tokens = WordSet(), WordSet()
        self._reports = Segments(self.path, _REPORTS, 1)
        self._pairs = Segments(self.path, _PAIRS, 2)
        try:
            self._claim(task)
            for rows in self._reports.recover():
                self._seeds.update(rows[:, 0])
            for rows in self._pairs.recover():
                self._seeds.update(rows[:, 0])
                self._tokens.update(rows[:, 1])
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> int:
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
        durable.replace(path, task.canonical)

    def __len__(self) -> int:
        return len(self._seeds)

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray:
        """As `Store.add`."""
        if tokens is None:
            new = self._seeds.difference(seeds)
            if len(new):
                self._reports.append(new[:, None])
                self._seeds.update(new)
            return np.ones(len(seeds), dtype=bool)
        unused = first_occurrences(tokens) & ~self._tokens.contains(tokens)
        accepted = accepted_reports(seeds, unused, self._seeds.contains(seeds))
        if unused.any():  # each new report that is accepted is paired with an unused token
            self._pairs.append(np.stack([seeds[unused], tokens[unused]], axis=1))
            self._seeds.update(seeds[unused])
            self._tokens.update(tokens[unused])
        return accepted

    def contains(self, seeds: np.ndarray) -> np.ndarray:
        return self._seeds.contains(seeds)

    def probe(self) -> None:
        self._reports.probe()
        self._pairs.probe()

    def close(self) -> None:
        """Let another process have the directory."""
        self._reports.close()
        self._pairs.close()
        os.close(self._lock)


def directory_records(path: str | Path, task: Task) -> Records:
    """The reports of a directory that another process may be writing to."""
    folder = Path(path).resolve()
    if not (folder / "task.json").exists():
        raise CollectError(f"{path} holds no reports. Name the --store that `serve` writes to.")
    _check_task(folder, task)
    reports = [rows[:, 0] for rows in read(folder, _REPORTS, 1)]
    pairs = np.concatenate([*read(folder, _PAIRS, 2), np.empty((0, 2), np.uint64)])
    return Records(np.concatenate([*reports, np.empty(0, np.uint64)]), pairs[:, 0], pairs[:, 1])


def _make_folder(path: Path) -> None:
    """A folder, and those above it, whose names outlive a crash."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for one in missing:
        durable.sync_directory(one)


def _check_task(path: Path, task: Task) -> None:
    if (path / "task.json").read_bytes() != task.canonical:
        raise CollectError(
            f"{path} holds the reports of another task. Choose another directory, or the task file "
            "that it was served with."
        )
