"""`riata audit`: run the audits that riata runs on itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from riata.cli.console import AsJson, answer, answer_json, err, note, out
from riata.cli.exits import OK, UNSOUND

#: Neighbours and searched pairs per estimator, fits of one step and of several on each side.
FULL, QUICK = (10_000, 60, 100_000, 4_000), (100, 10, 2_000, 200)


def audit(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer runs: minutes, and weaker evidence.")
    ] = False,
    pairs: Annotated[int | None, typer.Option(help="Neighbours per estimator.", min=1)] = None,
    tries: Annotated[int | None, typer.Option(help="Searched pairs per estimator.", min=1)] = None,
    draws: Annotated[
        int | None, typer.Option(help="Fits of one step, on each side.", min=10)
    ] = None,
    fits: Annotated[
        int | None, typer.Option(help="Fits of several steps, on each side.", min=10)
    ] = None,
    page: Annotated[Path | None, typer.Option("--out", help="Where the report is written.")] = Path(
        "audit.html"
    ),
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail also if an attack shows less than it should.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Attack riata's own claims on made-up neighbours, and say whether one was exceeded."""
    from riata.audit import report, standard
    from riata.audit.run import audited

    usual = QUICK if quick else FULL
    pairs, tries, draws, fits = (
        given or default for given, default in zip((pairs, tries, draws, fits), usual, strict=True)
    )
    console = out()
    found = audited(
        pairs, tries, draws, fits, err(), lambda table: None if as_json else console.print(table)
    )
    sound = standard.all_sound(*found)
    if page is not None:
        page.write_text(report.page(*found), encoding="utf-8")
        note(f"The report is in {page}.")
    if as_json:
        answer_json(
            {
                "sound": sound,
                "out": None if page is None else str(page),
                "replays": [
                    {"name": e.name, "pairs": e.pairs, "exceeded": e.exceeded,
                     "largest": e.largest, "worst_pair": e.worst_pair, "sound": e.sound}
                    for e in found[0]
                ],
                "searches": [
                    {"name": name, "first_share": p.first_share, "share": p.share,
                     "background": p.background, "sound": p.sound}
                    for name, p in found[1].items()
                ],
                "attacks": [
                    {"name": name, "ratio": curve.ratio, "sound": curve.sound}
                    for few in found[2:]
                    for name, curve in few.items()
                ],
            }
        )  # fmt: skip
    else:
        answer("No claim was exceeded." if sound else "A claim was exceeded.", "bold")
    if strict and not standard.all_sharp(*found):
        note("An attack shows less of its claim than it should.")
        raise typer.Exit(UNSOUND)
    raise typer.Exit(OK if sound else UNSOUND)
