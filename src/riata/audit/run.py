"""The standard audits one after the other, with progress and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn
from rich.table import Table

from riata.audit import report, standard, witness

Found = TypeVar("Found")


def run_audits(
    pairs: int, tries: int, draws: int, fits: int, console: Console, show: Callable[[Table], None]
) -> standard.AuditResult:
    """Replays, searches for worst pairs, attacks on one step, and attacks on several steps.

    There are so many neighbours and tried pairs for each estimator, and so many fits of one step,
    and of several, on each side. Progress is drawn on `console`; `show` is given a table of each
    part.
    """
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:

        def run(
            names: Iterable[str], total: int, audit: Callable[[str, int, witness.Progress], Found]
        ) -> dict[str, Found]:
            found = {}
            for name in names:
                task = progress.add_task(name, total=total)
                found[name] = audit(name, total, partial(_advance, progress, task))
                progress.remove_task(task)
                if not console.is_terminal:  # nobody sees the bar
                    console.print(f"{name}: done", markup=False)
            return found

        replayed = run(standard.ESTIMATORS, pairs, standard.replay_estimator)
        show(_table(report.REPLAY_HEAD, report.replay_rows(replayed.values())))
        searched = run(standard.ESTIMATORS, tries, standard.search_estimator)
        show(_table(report.SEARCH_HEAD, report.search_rows(searched)))
        attacks = run(standard.ONE_STEP, draws, standard.attack_one_step)
        show(_table(report.ATTACK_HEAD, report.attack_rows(attacks)))
        curves = run(standard.CURVES, fits, standard.attack_steps)
        show(_table(report.CURVE_HEAD, report.curve_rows(curves)))
    return standard.AuditResult(tuple(replayed.values()), searched, attacks, curves)


def _advance(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    return table
