"""`riata report`: a page about a model file."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from riata.cli.console import AsJson, answer_json
from riata.cli.fit import show_files
from riata.cli.ledger import Dataset, Head
from riata.cli.options import MaxBytes, ModelFile
from riata.files.limit import MAX_BYTES


def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option(help="Where the page is written.")] = Path("report.html"),
    ledger: Annotated[str | None, typer.Option(help="A ledger whose charges are shown.")] = None,
    head: Head = None,
    dataset: Dataset = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    max_bytes: MaxBytes = MAX_BYTES,
    as_json: AsJson = False,
) -> None:
    """Write a page about a model: its guarantee in plain words, its coefficients, its budget."""
    from riata.model_file import load  # with scikit-learn, which is slow to import
    from riata.privacy.ledger import Ledger
    from riata.report import write
    from riata.report.facts import statement_of

    found = load(model, max_bytes=max_bytes)
    opened = None if ledger is None else Ledger.open(ledger, dataset=dataset, head=head)
    write(found, out, ledger=opened, title=title)
    statement = statement_of(found)
    facts = {"out": str(out), "model": type(found).__name__, "statement": statement.to_dict()}
    answer_json(facts) if as_json else show_files(statement, [out])
    if show:
        webbrowser.open(out.absolute().as_uri())
