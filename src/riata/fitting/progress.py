"""A progress bar for people who ask for one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from riata.solvers import Callback, Step


@contextmanager
def progress_bar(title: str, steps: int, verbose: bool) -> Iterator[Callback | None]:
    """A callback that draws steps and time left on standard error, or None if not `verbose`."""
    if not verbose:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=steps)

        def advance(step: Step) -> None:
            progress.advance(task)

        yield advance
        progress.update(task, completed=steps)
