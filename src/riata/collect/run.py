"""Starting a collector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from riata.collect.commit import Committer, Store
from riata.collect.segments import Reading, Segments
from riata.collect.sql import Database
from riata.errors import CollectError
from riata.local.task import Task


class Reports(Protocol):
    """Reports that can be read."""

    def batches(self) -> Iterator[np.ndarray]: ...

    def close(self) -> None: ...


def to_write(place: str, task: Task) -> Store:
    """The store at a directory or at a database's address."""
    return Database(place, task) if "://" in place else Segments(place, task)


def to_read(place: str, task: Task) -> Reports:
    """The reports at a directory, even while they come in, or at a database's address."""
    if "://" in place:
        return Database(place, task)
    if not (Path(place) / "task.json").exists():
        raise CollectError(f"{place} holds no reports. Name the --store that `serve` writes to.")
    return Reading(Path(place), task)


def run(task: Task, place: str, host: str, port: int, people: int = 0) -> None:
    """Serve until the process is told to stop."""
    try:
        import uvicorn

        from riata.collect.service import Collector, application
    except ImportError:
        raise CollectError(
            'The collector needs Starlette and uvicorn. Install them: pip install "riata[collect]".'
        ) from None
    collector = Collector(task, Committer(to_write(place, task)), people=people)
    # No access log: it would hold addresses.
    uvicorn.run(application(collector), host=host, port=port, access_log=False, log_level="warning")
