"""`riata`: the commands, and errors without tracebacks."""

from __future__ import annotations

import sys

import typer
from rich.console import Console
from rich.text import Text

from riata.cli import collect, predict, report, schema
from riata.errors import RiataError

app = typer.Typer(
    name="riata",
    help="Sparse models from sensitive data, with a differential-privacy guarantee.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(collect.app, name="collect")
app.add_typer(schema.app, name="schema")
app.command()(report.report)
app.command()(predict.predict)


def main() -> None:
    """Run a command. What riata or the system says is wrong ends it with status 2."""
    try:
        app()
    except RiataError as problem:
        _end(str(problem))
    except OSError as problem:
        where = f"{problem.filename}: " if problem.filename is not None else ""
        _end(f"{where}{problem.strerror or type(problem).__name__}.")


def _end(message: str) -> None:
    # As plain text: brackets in it are not marks of style.
    console = Console(stderr=True, soft_wrap=True)
    console.print(Text("Error: ", "bold red").append(message, "not bold default"))
    sys.exit(2)
