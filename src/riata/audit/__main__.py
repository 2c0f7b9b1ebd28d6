"""Audit riata itself, print what was found and write a report: `python -m riata.audit`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from riata.audit import report, standard
from riata.audit.run import audited


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m riata.audit", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000, help="neighbours an estimator")
    parser.add_argument("--tries", type=int, default=60, help="searched pairs, an estimator")
    parser.add_argument("--draws", type=int, default=100_000, help="fits of one step, a side")
    parser.add_argument("--fits", type=int, default=4_000, help="fits of several steps, a side")
    parser.add_argument("--out", type=Path, default=Path("audit.html"), help="the report")
    parser.add_argument(
        "--strict", action="store_true", help="fail also if an attack shows less than it should"
    )
    wanted = parser.parse_args(arguments)

    console = Console()
    found = audited(wanted.pairs, wanted.tries, wanted.draws, wanted.fits, console, console.print)
    wanted.out.write_text(report.page(*found), encoding="utf-8")
    console.print(f"The report is in {wanted.out}.")
    if wanted.strict and not standard.all_sharp(*found):
        console.print("An attack shows less of its claim than it should.")
        return 1
    return 0 if standard.all_sound(*found) else 1


if __name__ == "__main__":
    sys.exit(main())
