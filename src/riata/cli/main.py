"""`riata`: the commands, and errors without tracebacks."""

from __future__ import annotations

import sys

import typer
from rich.console import Console

from riata.cli import collect
from riata.errors import RiataError

app = typer.Typer(
    name="riata",
    help="Sparse models from sensitive data, with a differential-privacy guarantee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(collect.app, name="collect")


def main() -> None:
    """Run a command. What riata says is wrong ends it with status 2, without a traceback."""
    try:
        app()
    except RiataError as problem:
        Console(stderr=True).print(f"[bold red]Error:[/] {problem}", highlight=False)
        sys.exit(2)
