"""`riata paper`: where a statement of a paper is, and whether it holds."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from riata.cli.console import AsJson
from riata.papers import find

Statement = Annotated[
    list[str],
    typer.Argument(
        help='A paper (000 to 004, T, W, K, Z or an author) and a label: "003 Alg 4", "K 3.11".'
    ),
]


def paper(statement: Statement, as_json: AsJson = False) -> None:
    """Print where an algorithm, theorem or definition of the papers is, and whether it holds."""
    found = find(" ".join(statement))
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in found]))
    else:
        typer.echo("\n\n".join(map(str, found)))
