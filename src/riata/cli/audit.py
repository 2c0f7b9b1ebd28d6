"""`riata audit`: run the audits that riata runs on itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from riata.cli.console import AsJson, answer, answer_json, answer_table, err, note
from riata.cli.exits import OK, UNSOUND

#: Neighbours and searched pairs per estimator, fits of one step and of several on each side. The
#: full audit replays some 60,000 pairs in all.
FULL, QUICK = (3_000, 60, 100_000, 4_000), (100, 10, 2_000, 200)


def audit(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs: minutes, and weaker evidence.")
    ] = False,
    page: Annotated[Path | None, typer.Option("--out", help="Where the report is written.")] = Path(
        "audit.html"
    ),
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail also if an attack shows less than it should.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Attack riata's own claims on made-up neighbours, and say whether one was exceeded."""
    from riata.audit import report
    from riata.audit.run import run_audits

    how_long = "some minutes" if quick else "an hour or two"
    note(f"Attacking for {how_long}: each estimator in turn.")
    numbers = QUICK if quick else FULL
    result = run_audits(*numbers, err(), lambda table: None if as_json else answer_table(table))
    if page is not None:
        page.write_text(report.page(result), encoding="utf-8")
        note(f"The report is in {page}.")
    if as_json:
        answer_json({"out": None if page is None else str(page), **result.to_dict()})
    else:
        answer("No claim was exceeded." if result.sound else "A claim was exceeded.", "bold")
    if strict and not result.sharp:
        note("An attack shows less of its claim than it should.")
        raise typer.Exit(UNSOUND)
    raise typer.Exit(OK if result.sound else UNSOUND)
