"""The server: adds reports up, and knows nothing else."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.errors import InvalidArgument
from riata.local import wire
from riata.local.play import choose_arms
from riata.local.seen import Seen
from riata.local.tally import Honesty, Tally
from riata.local.task import MOST_COLUMNS, Task

if TYPE_CHECKING:
    from riata.local.learners import LocalModel

#: Reports that are looked at together.
_BATCH = 1 << 16
REJECTIONS = ("repeated", "malformed", "wrong task", "late")


class Aggregator:
    """Streams reports into sums whose size does not depend on how many there are.

    Bad reports are counted by kind and otherwise ignored; nothing that a device sends can stop the
    aggregator.

    Parameters
    ----------
    task : Task
    expected : int, default=1_000_000
        About how many reports will come: sizes the memory against repeats (2.5 bytes for each).
    """

    def __init__(self, task: Task, *, expected: int = 1_000_000) -> None:
        self.task = task
        wide = task.vector_size > MOST_COLUMNS
        self.tallies = {
            arm.name: Tally(arm, task.generator, wide and arm.channel.degree == 2)
            for arm in task.arms
        }
        self.rejected = dict.fromkeys(REJECTIONS, 0)
        self._seen = [Seen(expected)]

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
            Reports one after another, their seeds, or one `bytes` for each.
        task : str, optional
            The id of the task that they claim to answer.
        today : date, optional
            To refuse what comes after the task's deadline.
        """
        seeds = self._read(reports)
        if task is not None and task != self.task.id:
            self.rejected["wrong task"] += len(seeds)
        elif today is not None and not self.task.open_on(today):
            self.rejected["late"] += len(seeds)
        else:
            for start in range(0, len(seeds), _BATCH):
                self._add(seeds[start : start + _BATCH])
        return self

    def _read(self, reports: bytes | np.ndarray | Iterable[bytes]) -> np.ndarray:
        if isinstance(reports, np.ndarray) and reports.dtype == np.uint64:
            return reports.ravel()
        if isinstance(reports, bytes | bytearray | memoryview):
            data = bytes(reports)
            self.rejected["malformed"] += len(data) % wire.REPORT_BYTES > 0
            return wire.from_bytes(data)
        good = []
        for report in reports:
            if isinstance(report, bytes | bytearray) and len(report) == wire.REPORT_BYTES:
                good.append(bytes(report))
            else:
                self.rejected["malformed"] += 1
        return wire.from_bytes(b"".join(good))

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
        """Write the sums, the counts and the memory of repeats to one file."""
        arrays: dict[str, np.ndarray] = {
            "task": np.frombuffer(self.task.canonical, dtype=np.uint8),
            "rejected": np.frombuffer(json.dumps(self.rejected).encode(), dtype=np.uint8),
            "expected": np.array([seen.expected for seen in self._seen]),
        }
        for i, seen in enumerate(self._seen):
            arrays |= {f"seen/{i}": seen.words, f"seen_keys/{i}": seen.keys}
        for name, tally in self.tallies.items():
            arrays |= {f"{name}/{key}": np.asarray(v) for key, v in tally.state().items()}
        with open(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | Path) -> Aggregator:
        """Read what `save` wrote. Nothing in the file is executed."""
        try:
            with np.load(path, allow_pickle=False) as file:
                held = {key: file[key] for key in file.files}
            aggregator = cls(Task.read(held["task"].tobytes()))
            for name, tally in aggregator.tallies.items():
                prefix = f"{name}/"
                state = {k.removeprefix(prefix): v for k, v in held.items() if k.startswith(prefix)}
                tally.restore(state)
            aggregator.rejected |= json.loads(held["rejected"].tobytes())
            aggregator._seen = [Seen(int(expected)) for expected in held["expected"]]
            for i, seen in enumerate(aggregator._seen):
                seen.restore(held[f"seen/{i}"], held[f"seen_keys/{i}"])
        except (OSError, ValueError, KeyError, EOFError) as problem:
            raise InvalidArgument(
                f"{path} cannot be read as an aggregator's file ({type(problem).__name__}). It may "
                "be damaged; use a copy."
            ) from None
        return aggregator

    def __repr__(self) -> str:
        return f"<Aggregator of task {self.task.id[:12]}: {self.count:,} reports>"
