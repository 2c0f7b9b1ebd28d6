"""Audit riata itself, print what was found and write a report: `python -m riata.audit`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn
from rich.table import Table

from riata.audit import report, standard, witness

Found = TypeVar("Found")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m riata.audit", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000, help="neighbours an estimator")
    parser.add_argument("--draws", type=int, default=100_000, help="fits of one step, a side")
    parser.add_argument("--fits", type=int, default=4_000, help="fits of several steps, a side")
    parser.add_argument("--out", type=Path, default=Path("audit.html"), help="the report")
    parser.add_argument(
        "--strict", action="store_true", help="fail also if an attack shows less than it should"
    )
    wanted = parser.parse_args(arguments)

    console = Console()
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:

        def run(
            names: Iterable[str],
            total: int,
            audit: Callable[[str, int, witness.Progress], Found],
        ) -> dict[str, Found]:
            found = {}
            for name in names:
                task = progress.add_task(name, total=total)
                found[name] = audit(name, total, partial(_advance, progress, task))
                progress.remove_task(task)
            return found

        replayed = run(standard.ESTIMATORS, wanted.pairs, standard.replay_estimator)
        _show(console, report.REPLAY_HEAD, report.replay_rows(replayed.values()))
        attacks = run(standard.ONE_STEP, wanted.draws, standard.attack_one_step)
        _show(console, report.ATTACK_HEAD, report.attack_rows(attacks))
        curves = run(standard.CURVES, wanted.fits, standard.attack_steps)
        _show(console, report.CURVE_HEAD, report.curve_rows(curves))

    wanted.out.write_text(report.page(list(replayed.values()), attacks, curves), encoding="utf-8")
    console.print(f"The report is in {wanted.out}.")
    found = replayed.values(), attacks, curves
    if wanted.strict and not standard.all_sharp(*found):
        console.print("An attack shows less of its claim than it should.")
        return 1
    return 0 if standard.all_sound(*found) else 1


def _advance(progress: Progress, task: TaskID, done: int) -> None:
    progress.update(task, completed=done)


def _show(console: Console, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(*head)
    for row in rows:
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
