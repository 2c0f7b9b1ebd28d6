"""`riata`: the commands, and errors without tracebacks."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import riata
from riata.cli import (
    audit,
    collect,
    evaluate,
    fit,
    ledger,
    paper,
    plan,
    predict,
    report,
    schema,
    split,
    summary,
    tune,
)
from riata.cli.exits import MEANINGS, STOPPED, show

EPILOG = "Exit status: " + "; ".join(f"{code} {text}" for code, text in MEANINGS.items()) + "."

app = typer.Typer(
    name="riata",
    help="Sparse models from sensitive data, with a differential-privacy guarantee.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"riata {riata.__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Sparse models from sensitive data, with a differential-privacy guarantee."""


app.command()(plan.plan)
app.command()(fit.fit)
app.command()(tune.tune)
app.command()(split.split)
app.command()(predict.predict)
app.command()(evaluate.evaluate)
app.command()(summary.summary)
app.command()(report.report)
app.add_typer(schema.app, name="schema")
app.add_typer(ledger.app, name="ledger")
app.command()(audit.audit)
app.command()(paper.paper)
app.add_typer(collect.app, name="collect")


def main() -> None:
    """Run a command. Whatever goes wrong ends it with a status and a sentence."""
    try:
        app(prog_name="riata")
    except KeyboardInterrupt:
        sys.exit(STOPPED)
    except Exception as problem:
        sys.exit(show(problem))
