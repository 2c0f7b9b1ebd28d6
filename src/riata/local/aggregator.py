"""The server: adds reports up, and knows nothing else."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from riata.arguments import check_whole
from riata.errors import InvalidArgument
from riata.files import durable
from riata.files.archive import Archive
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import json_size
from riata.local import report_format
from riata.local.duplicate_filter import MOST_EXPECTED, DuplicateFilter
from riata.local.kinds import MOST_COLUMNS
from riata.local.learners import LocalModel, learn
from riata.local.question_sums import Honesty, PooledSums, QuestionSums, total_shape
from riata.local.questions import Question
from riata.local.randomize import choose_questions
from riata.local.task import Task
from riata.wording import number_of

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
        About how many reports will come: sizes the filter of duplicates (2.5 to 5 bytes each).
    """

    def __init__(self, task: Task, *, expected: int = 1_000_000) -> None:
        check_whole("expected", expected, "it is about the number of reports")
        if expected > MOST_EXPECTED:
            raise InvalidArgument(
                f"expected={expected} is too large. Pass at most {MOST_EXPECTED}."
            )
        self.task = task
        self.sums = {
            question.name: QuestionSums(question, task.generator, _stores_seeds(question))
            for question in task.questions
        }
        self.rejected = dict.fromkeys(REJECTIONS, 0)
        self._filters = [DuplicateFilter(int(expected))]
        #: Numbers of the one-time tokens whose reports were counted, in order, if there were any.
        self.tokens = np.empty(0, dtype=np.uint64)

    @property
    def count(self) -> int:
        """Reports counted so far."""
        return sum(sums.count for sums in self.sums.values())

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
            if reports.dtype.kind == "u" and reports.dtype.itemsize == report_format.REPORT_BYTES:
                yield from _batches(reports.ravel().astype(np.uint64, copy=False))
                return
            # An array of objects may hold reports, but one of bytes has lost their last zeros.
            reports = reports.ravel().tolist() if reports.dtype == object else [None] * reports.size
        if isinstance(reports, bytes | bytearray | memoryview):
            data = bytes(reports)
            self.rejected["malformed"] += len(data) % report_format.REPORT_BYTES > 0
            yield from _batches(report_format.from_bytes(data))
            return
        if isinstance(reports, str | Mapping) or not isinstance(reports, Iterable):
            reports = [reports]
        one_by_one = iter(reports)
        while some := list(itertools.islice(one_by_one, _BATCH)):
            good = [bytes(report) for report in some if _is_report(report)]
            self.rejected["malformed"] += len(some) - len(good)
            yield from _batches(report_format.from_bytes(b"".join(good)))

    def _add(self, seeds: np.ndarray) -> None:
        new = self._filters[0].add(seeds)
        for merged in self._filters[1:]:
            new &= ~merged.contains(seeds)
        self.rejected["repeated"] += int(len(seeds) - new.sum())
        seeds = seeds[new]
        asked = choose_questions(self.task, seeds)
        for number, sums in enumerate(self.sums.values()):
            sums.add(seeds[asked == number])

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
        mine = {one.keys.tobytes() for one in self._filters}
        if any(one.keys.tobytes() in mine for one in other._filters):
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
        for name, sums in self.sums.items():
            sums.merge(other.sums[name])
        for kind in REJECTIONS:
            self.rejected[kind] += other.rejected[kind]
        self._filters += other._filters
        return self

    def honesty(self) -> dict[str, Honesty]:
        """What the reports' lengths say, for each question that keeps sums."""
        checks = {name: sums.honesty() for name, sums in self.sums.items()}
        return {name: check for name, check in checks.items() if check is not None}

    def solve(self, *, threshold: str = "hard", radius: float = math.inf) -> LocalModel:
        """Learn from what was counted.

        Parameters
        ----------
        threshold : {"hard", "soft"}, default="hard"
            For sparse means: what happens to the other coordinates where those that could be noise
            are set to 0. "soft" also pulls them towards 0.
        radius : float, default=inf
            For sparse regression: the largest l1 norm of the coefficients in their own units.
        """
        return learn(self.task, self.sums, threshold=threshold, radius=radius)

    def save(self, path: str | Path) -> None:
        """Write sums, counts and the filter of duplicates to one file, whole or not at all."""
        arrays: dict[str, np.ndarray] = {
            "task": np.frombuffer(self.task.canonical, dtype=np.uint8),
            "rejected": np.array([self.rejected[kind] for kind in REJECTIONS]),
            "expected": np.array([one.expected for one in self._filters]),
            "tokens": self.tokens,
        }
        for i, one in enumerate(self._filters):
            arrays |= {f"seen/{i}": one.words, f"seen_keys/{i}": one.keys}
        for name, sums in self.sums.items():
            arrays |= {f"{name}/{key}": array for key, array in sums.state().items()}
        with durable.replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

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
                return cls._from_archive(Archive(stream, limit, "one", _MOST_MEMBERS), limit)
        except MemoryError:
            raise
        except InvalidArgument as problem:
            why = str(problem)[:_QUOTED]
        except Exception as problem:  # a damaged archive fails in a dozen ways
            why = f"It may be damaged ({type(problem).__name__}); use a copy."
        raise InvalidArgument(f"{path} cannot be read as an aggregator's file. {why}")

    @classmethod
    def _from_archive(cls, archive: Archive, limit: ReadLimit) -> Aggregator:
        text = archive.array("task").tobytes()
        task = Task.read_within(text, limit)
        limit.take(json_size(text), "Its task, written again,")
        shapes = (total_shape(one, _stores_seeds(one)) for one in task.questions)
        limit.take(sum(8 * math.prod(shape) for shape in shapes), "The sums of its task")
        aggregator = cls(task, expected=1)
        for name, sums in aggregator.sums.items():
            sums.restore({key: archive.array(f"{name}/{key}") for key in sums.state()})
        rejected = archive.array("rejected")
        if rejected.shape != (len(REJECTIONS),) or rejected.dtype.kind != "i" or min(rejected) < 0:
            raise ValueError("rejected")
        aggregator.rejected = dict(zip(REJECTIONS, map(int, rejected), strict=True))
        expected = archive.array("expected")
        if expected.ndim != 1 or expected.dtype.kind != "i" or expected.size == 0:
            raise ValueError("expected")
        aggregator._filters = [
            DuplicateFilter.from_saved(
                int(one), archive.array(f"seen/{i}"), archive.array(f"seen_keys/{i}")
            )
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


def solve_together(
    aggregators: Iterable[Aggregator], *, threshold: str = "hard", radius: float = math.inf
) -> LocalModel:
    """One model from people who chose an epsilon of their own: `Task.with_epsilons`.

    Each estimate counts in proportion to the inverse of its variance. The model's Statement is that
    of the largest epsilon; what a report cost its sender is the epsilon of the task it answers.

    Parameters
    ----------
    aggregators : iterable of Aggregator
        Of tasks that are the same but for epsilon. One person answers one of them.
    threshold, radius
        As for `Aggregator.solve`.
    """
    several = sorted(aggregators, key=lambda one: one.task.epsilon)
    if not several:
        raise InvalidArgument("There are no aggregators. Pass one for each epsilon.")
    task = several[-1].task
    for one in several[:-1]:
        if one.task == task or one.task.variant(epsilon=task.epsilon) != task:
            raise InvalidArgument(
                f"The tasks {one.task.id[:12]} and {task.id[:12]} differ in more than epsilon, or "
                "in nothing. Make them with Task.with_epsilons, and merge aggregators of one task."
            )
    if task.spec.kernel and len(several) > 1:
        raise InvalidArgument(
            "Kernels have random features of their own in each task, and their sums cannot be "
            "added. Choose another kind, or one epsilon."
        )
    sums = {name: PooledSums(tuple(one.sums[name] for one in several)) for name in task.shares}
    return learn(task, sums, threshold=threshold, radius=radius)


def _stores_seeds(question: Question) -> bool:
    """Whether the sums of a question would be too large, and its reports are stored instead."""
    return question.channel.degree == 2 and question.channel.size > MOST_COLUMNS + 2


def _is_report(report: object) -> bool:
    return isinstance(report, bytes | bytearray) and len(report) == report_format.REPORT_BYTES


def _batches(seeds: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(seeds), _BATCH):
        yield seeds[start : start + _BATCH]
