"""The server: adds reports up, and knows nothing else."""

from __future__ import annotations

import datetime
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.errors import InvalidArgument
from riata.files.archive import Archive
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import json_size
from riata.local import wire
from riata.local.arms import Arm
from riata.local.play import choose_arms
from riata.local.seen import MOST_EXPECTED, Seen
from riata.local.tally import Honesty, Tally, sums_shape
from riata.local.task import MOST_COLUMNS, Task
from riata.wording import number_of

if TYPE_CHECKING:
    from riata.local.learners import LocalModel

#: Reports that are looked at together.
_BATCH = 1 << 16
#: Arrays in a file: some for the sums, and two for each aggregator that was merged.
_MOST_MEMBERS = 1 << 16
#: Characters of another error that an error quotes.
_QUOTED = 500
REJECTIONS = ("repeated", "malformed", "wrong task", "late")


class Aggregator:
    """Streams reports into sums whose size does not depend on how many there are.

    Bad reports are counted by kind and otherwise ignored; nothing that a device sends can stop the
    aggregator.

    Parameters
    ----------
    task : Task
    expected : int, default=1_000_000
        About how many reports will come: sizes the memory against repeats (2.5 to 5 bytes each).
    """

    def __init__(self, task: Task, *, expected: int = 1_000_000) -> None:
        if isinstance(expected, bool) or not isinstance(expected, int | np.integer):
            raise InvalidArgument(f"expected is {expected!r}. It must be a whole number.")
        if not 1 <= expected <= MOST_EXPECTED:
            raise InvalidArgument(f"expected is {expected}. It must be from 1 to {MOST_EXPECTED}.")
        self.task = task
        self.tallies = {
            arm.name: Tally(arm, task.generator, _keeps_seeds(task, arm)) for arm in task.arms
        }
        self.rejected = dict.fromkeys(REJECTIONS, 0)
        self._seen = [Seen(int(expected))]
        #: Numbers of the one-time tokens whose reports were counted, in order, if there were any.
        self.tokens = np.empty(0, dtype=np.uint64)

    @property
    def count(self) -> int:
        """Reports counted so far."""
        return sum(tally.count for tally in self.tallies.values())

    def add(
        self,
        reports: bytes | np.ndarray | Iterable[bytes],
        *,
        task: str | None = None,
        today: datetime.date | None = None,
    ) -> Aggregator:
        """Count reports.

        Parameters
        ----------
        reports : bytes, array of uint64, or iterable of bytes
            Reports one after another, their seeds, or one `bytes` for each. Anything else is
            counted as malformed.
        task : str, optional
            The id of the task that they claim to answer.
        today : date, optional
            To refuse what comes after the task's deadline.
        """
        for seeds in self._read(reports):
            if task is not None and not (isinstance(task, str) and task == self.task.id):
                self.rejected["wrong task"] += len(seeds)
            elif today is not None and not self.task.open_on(today):
                self.rejected["late"] += len(seeds)
            else:
                self._add(seeds)
        return self

    def _read(self, reports: Any) -> Iterator[np.ndarray]:
        """Batches of seeds. What is not a report is counted."""
        if isinstance(reports, np.ndarray):
            if reports.dtype.kind == "u" and reports.dtype.itemsize == wire.REPORT_BYTES:
                yield from _batches(reports.ravel().astype(np.uint64, copy=False))
                return
            # An array of objects may hold reports, but one of bytes has lost their last zeros.
            reports = reports.ravel().tolist() if reports.dtype == object else [None] * reports.size
        if isinstance(reports, bytes | bytearray | memoryview):
            data = bytes(reports)
            self.rejected["malformed"] += len(data) % wire.REPORT_BYTES > 0
            yield from _batches(wire.from_bytes(data))
            return
        if isinstance(reports, str | Mapping) or not isinstance(reports, Iterable):
            reports = [reports]
        one_by_one = iter(reports)
        while some := list(itertools.islice(one_by_one, _BATCH)):
            good = [bytes(report) for report in some if _is_report(report)]
            self.rejected["malformed"] += len(some) - len(good)
            yield from _batches(wire.from_bytes(b"".join(good)))

    def _add(self, seeds: np.ndarray) -> None:
        new = self._seen[0].add(seeds)
        for merged in self._seen[1:]:
            new &= ~merged.holds(seeds)
        self.rejected["repeated"] += int(len(seeds) - new.sum())
        seeds = seeds[new]
        asked = choose_arms(self.task, seeds)
        for number, tally in enumerate(self.tallies.values()):
            tally.add(seeds[asked == number])

    def merge(self, other: Aggregator) -> Aggregator:
        """Count the reports of another aggregator of the same task too.

        Reports that both of them counted are counted twice: let each report go to one place, for
        example by its first byte.
        """
        if other.task != self.task:
            raise InvalidArgument(
                f"The aggregators belong to different tasks, {self.task.id[:12]} and "
                f"{other.task.id[:12]}. Only sums of the same task can be added."
            )
        mine = {seen.keys.tobytes() for seen in self._seen}
        if any(seen.keys.tobytes() in mine for seen in other._seen):
            raise InvalidArgument(
                "One of the aggregators holds the other's reports already, and they would count "
                "twice. Merge each aggregator once."
            )
        both = np.intersect1d(self.tokens, other.tokens)
        if len(both):
            raise InvalidArgument(
                f"{number_of(len(both), 'token')} counted in both of the aggregators, and a report "
                "cannot be taken out of sums. Read their stores together instead: `riata collect "
                "learn` with several --store counts one report for each token."
            )
        self.tokens = np.union1d(self.tokens, other.tokens)
        for name, tally in self.tallies.items():
            tally.merge(other.tallies[name])
        for kind in REJECTIONS:
            self.rejected[kind] += other.rejected[kind]
        self._seen += other._seen
        return self

    def honesty(self) -> dict[str, Honesty]:
        """What the reports' lengths say, for each arm that keeps sums."""
        checks = {name: tally.honest() for name, tally in self.tallies.items()}
        return {name: check for name, check in checks.items() if check is not None}

    def solve(self, **how: Any) -> LocalModel:
        """Learn from what was counted. `how` is passed to `riata.local.learners.learn`."""
        from riata.local.learners import learn

        return learn(self, **how)

    def save(self, path: str | Path) -> None:
        """Write the sums, the counts and the memory of repeats to one file, whole or not at all."""
        arrays: dict[str, np.ndarray] = {
            "task": np.frombuffer(self.task.canonical, dtype=np.uint8),
            "rejected": np.array([self.rejected[kind] for kind in REJECTIONS]),
            "expected": np.array([seen.expected for seen in self._seen]),
            "tokens": self.tokens,
        }
        for i, seen in enumerate(self._seen):
            arrays |= {f"seen/{i}": seen.words, f"seen_keys/{i}": seen.keys}
        for name, tally in self.tallies.items():
            arrays |= {f"{name}/{key}": np.asarray(v) for key, v in tally.state().items()}
        beside = f"{os.fspath(path)}.new"
        with open(beside, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int = MAX_BYTES) -> Aggregator:
        """Read what `save` wrote. Nothing in the file is executed.

        Parameters
        ----------
        path : path
        max_bytes : int, default=2**30
            The most memory that the sums, and the reading of them, may take, whoever made the file.
        """
        limit = ReadLimit(max_bytes, InvalidArgument)
        try:
            with open(path, "rb") as stream:
                return cls._restored(Archive(stream, limit, "one", _MOST_MEMBERS), limit)
        except MemoryError:
            raise
        except InvalidArgument as problem:
            why = str(problem)[:_QUOTED]
        except Exception as problem:  # a damaged archive fails in a dozen ways
            why = f"It may be damaged ({type(problem).__name__}); use a copy."
        raise InvalidArgument(f"{path} cannot be read as an aggregator's file. {why}")

    @classmethod
    def _restored(cls, archive: Archive, limit: ReadLimit) -> Aggregator:
        text = archive.array("task").tobytes()
        task = Task.read_within(text, limit)
        limit.take(json_size(text), "Its task, written again,")
        sums = sum(8 * math.prod(sums_shape(arm, _keeps_seeds(task, arm))) for arm in task.arms)
        limit.take(sums, "The sums of its task")
        aggregator = cls(task, expected=1)
        for name, tally in aggregator.tallies.items():
            tally.restore({key: archive.array(f"{name}/{key}") for key in tally.state_names})
        rejected = archive.array("rejected")
        if rejected.shape != (len(REJECTIONS),) or rejected.dtype.kind != "i" or min(rejected) < 0:
            raise ValueError("rejected")
        aggregator.rejected = dict(zip(REJECTIONS, map(int, rejected), strict=True))
        expected = archive.array("expected")
        if expected.ndim != 1 or expected.dtype.kind != "i" or expected.size == 0:
            raise ValueError("expected")
        aggregator._seen = [
            Seen.restored(int(one), archive.array(f"seen/{i}"), archive.array(f"seen_keys/{i}"))
            for i, one in enumerate(expected)
        ]
        if "tokens.npy" in archive:
            aggregator.tokens = archive.array("tokens")
        tokens = aggregator.tokens
        if tokens.dtype != np.uint64 or tokens.ndim != 1:
            raise ValueError("tokens")
        if np.any(tokens[1:] <= tokens[:-1]):
            raise ValueError("tokens")
        archive.end()
        return aggregator

    def __repr__(self) -> str:
        return f"<Aggregator of task {self.task.id[:12]}: {number_of(self.count, 'report')}>"


def _keeps_seeds(task: Task, arm: Arm) -> bool:
    """Whether the sums of an arm would be too large, and its reports are kept instead."""
    return task.vector_size > MOST_COLUMNS and arm.channel.degree == 2


def _is_report(report: object) -> bool:
    return isinstance(report, bytes | bytearray) and len(report) == wire.REPORT_BYTES


def _batches(seeds: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(seeds), _BATCH):
        yield seeds[start : start + _BATCH]
