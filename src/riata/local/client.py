"""What runs on a person's own device."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from riata.errors import AlreadyAnswered, InvalidArgument
from riata.local import wire
from riata.local.play import play
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
        self.task = task
        self._ledger = None if ledger is None else Path(ledger)
        self._noise = Noise(random_state)
        self._sent: dict[str, bytes] = self._read()

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
        if not 1 <= occasion <= self.task.cap:
            raise AlreadyAnswered(
                f"Occasion {occasion} was asked for, and the task's cap is {self.task.cap}. A "
                "further report would cost the person more than the task promises."
            )
        if str(occasion) not in self._sent:
            seed = self._draw(row, target)
            self._sent[str(occasion)] = wire.to_bytes(seed)
            self._write()
        return self._sent[str(occasion)]

    def _draw(self, row: Any, target: Any) -> np.ndarray:
        encoded = self.task.encoding.encode(row)[None]
        targets = None
        if self.task.target is not None:
            if target is None and isinstance(row, dict):
                target = row.get(self.task.target.name)
            targets = self.task.target.encode(target)
        return play(self.task, encoded, targets, self._noise)

    def _read(self) -> dict[str, bytes]:
        """The reports of this task that the ledger remembers."""
        if self._ledger is None or not self._ledger.exists():
            return {}
        try:
            known = json.loads(self._ledger.read_text())[self.task.id]
            return {occasion: bytes.fromhex(report) for occasion, report in known.items()}
        except KeyError:
            return {}
        except (ValueError, TypeError, AttributeError):
            raise InvalidArgument(
                f"The ledger {self._ledger} cannot be read. It may have been damaged; without it "
                "the device cannot know what it sent. Do not report again for this person."
            ) from None

    def _write(self) -> None:
        """On disk before anything is sent, in one step."""
        if self._ledger is None:
            return
        known = json.loads(self._ledger.read_text()) if self._ledger.exists() else {}
        known[self.task.id] = {occasion: sent.hex() for occasion, sent in self._sent.items()}
        beside = self._ledger.with_suffix(".new")
        with open(beside, "w") as file:
            json.dump(known, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._ledger)
