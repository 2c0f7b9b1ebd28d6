"""Starting a collector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from riata.collect.commit import Committer, Store
from riata.collect.directory import Directory, ReadDirectory
from riata.collect.sql import Database
from riata.collect.tokens import Tokens
from riata.errors import CollectError
from riata.local.task import Task


class Reports(Protocol):
    """Reports that can be read."""

    def batches(self) -> Iterator[np.ndarray]: ...

    def close(self) -> None: ...


def to_write(place: str, task: Task) -> Store:
    """The store at a directory or at a database's address."""
    return Database(place, task) if "://" in place else Directory(place, task)


def to_read(place: str, task: Task) -> Reports:
    """The reports at a directory, even while they come in, or at a database's address."""
    if "://" in place:
        return Database(place, task)
    return ReadDirectory(place, task)


def run(
    task: Task, place: str, host: str, port: int, *, people: int = 0, tokens: Path | None = None
) -> None:
    """Serve until the process is told to stop.

    Parameters
    ----------
    task : Task
    place : str
        A directory, or the address of a database.
    host, port : str, int
    people : int, default=0
        How many reports are expected, for the dashboard.
    tokens : path, optional
        The file with the key of one-time tokens. Without it anybody may send.
    """
    try:
        import uvicorn

        from riata.collect.dashboard import Dashboard
        from riata.collect.guard import Guarded
        from riata.collect.service import Collector, application
    except ImportError:
        raise CollectError(
            'The collector needs Starlette and uvicorn. Install them: pip install "riata[collect]".'
        ) from None
    key = None if tokens is None else Tokens.at(tokens, task.id)
    collector = Collector(
        task,
        Committer(to_write(place, task)),
        tokens=key,
        dashboard=Dashboard(people, None if "://" in place else Path(place) / "model.json"),
    )
    assert collector.dashboard is not None
    print(f"Dashboard: http://{host}:{port}/dashboard#{collector.dashboard.key}", flush=True)
    # No access log: it would hold addresses. No warnings: anybody's nonsense would fill the disk.
    uvicorn.run(
        application(collector),
        host=host,
        port=port,
        http=Guarded,
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=False,
    )


def shown(place: str) -> str:
    """A store's address without its password."""
    if "://" not in place:
        return place
    try:
        return make_url(place).render_as_string(hide_password=True)
    except ArgumentError:
        return "a database"
