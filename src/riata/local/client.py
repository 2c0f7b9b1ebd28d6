"""What runs on a person's own device."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from riata.errors import AlreadyAnswered, InvalidArgument
from riata.local import report_format
from riata.local.randomize import randomize
from riata.local.report_journal import FileJournal, MemoryJournal
from riata.local.task import Task
from riata.mechanisms.noise import Noise


class Client:
    """Turns one person's row into one report, once.

    A report is drawn once for each occasion, remembered, and sent again as the same bytes: drawing
    a second one would spend epsilon a second time.

    Parameters
    ----------
    task : Task
    ledger : path, optional
        A small file on the device that remembers the reports. Without it they are remembered as
        long as the client lives.
    random_state : int, optional
        For tests only: the randomness is then known, and nobody is protected.

    Examples
    --------
    >>> from riata.local import Client, Task
    >>> task = Task.from_table({
    ...     "kind": "mean", "epsilon": 1.0,
    ...     "features": [{"name": "hours", "kind": "number", "bounds": [0, 24]}],
    ... })
    >>> client = Client(task)
    >>> len(client.report({"hours": 7.5}))
    8
    >>> client.report({"hours": 7.5}) == client.report({"hours": 9.0})   # the same bytes again
    True
    """

    def __init__(
        self, task: Task, *, ledger: str | Path | None = None, random_state: int | None = None
    ) -> None:
        if random_state is not None and ledger is not None:
            raise InvalidArgument(
                "random_state makes reports that protect nobody, and a ledger remembers reports "
                "that do. Pass only one of them."
            )
        self.task = task
        self._noise = Noise(random_state)
        self._journal = MemoryJournal() if ledger is None else FileJournal(ledger)
        self._journal.read(task.id, 1)  # a damaged ledger shows at once

    def report(self, row: Any, target: Any = None, *, occasion: int = 1) -> bytes:
        """The eight bytes that leave the device.

        Parameters
        ----------
        row : mapping or sequence
            The answers. A mapping may hold the target under its name.
        target : optional
            The target's value, where the row does not hold it.
        occasion : int, default=1
            Which of the `cap` reports of this person it is.
        """
        if not 1 <= (occasion := _whole(occasion)) <= self.task.cap:
            raise AlreadyAnswered(
                f"Occasion {occasion} was asked for, and the task's cap is {self.task.cap}. A "
                "further report would cost the person more than the task promises."
            )
        report = self._journal.read(self.task.id, occasion)
        if report is None:
            # Nothing leaves before it is in the journal, and what was there first is what leaves.
            report = self._journal.record(self.task.id, occasion, self._draw(row, target))
        return report

    def _draw(self, row: Any, target: Any) -> bytes:
        encoded = self.task.encoding.encode(row)[None]
        targets = None
        if self.task.target is not None:
            if target is None and isinstance(row, Mapping):
                target = row.get(self.task.target.name)
            targets = self.task.target.encode(target)
        return report_format.to_bytes(randomize(self.task, encoded, targets, self._noise))


def _whole(occasion: Any) -> int:
    """An occasion between two others would be one more than the cap."""
    try:
        return operator.index(occasion)
    except TypeError:
        raise InvalidArgument(f"occasion is {occasion!r}. It must be a whole number.") from None
