"""`riata ledger`: the record of what is spent on a data set: start, show, check and keep it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.bar import Bar
from rich.table import Table
from rich.text import Text

from riata.cli.console import (
    AsJson,
    Force,
    answer,
    answer_json,
    answer_table,
    check_unused,
    note,
    out,
    reply,
)
from riata.errors import InvalidArgument
from riata.wording import number_of

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Charge, Ledger

app = typer.Typer(help="The record of what is spent on a data set.", no_args_is_help=True)

Where = Annotated[str, typer.Argument(help="The ledger: a file, or a database's address.")]
Dataset = Annotated[str | None, typer.Option(help="Which of several data sets.")]
Head = Annotated[Path | None, typer.Option(help="The ledger's head, if it is not beside it.")]

NANO = 1e-9
_COLUMNS = ("number", "charged_at", "estimator", "solver", "rows", "columns", "asked_epsilon",
            "asked_delta", "total_epsilon")  # fmt: skip


@app.command()
def create(
    where: Where,
    dataset: Annotated[str, typer.Option(help="The name of the data set that is protected.")],
    epsilon: Annotated[float, typer.Option(help="The most that all fits together may spend.")],
    delta: Annotated[float, typer.Option(help="The delta at which the total is computed.")],
    adjacency: Annotated[
        str,
        typer.Option(
            help="replace-one, add-remove, replace-label for targets "
            "alone, or replace-person for a person column."
        ),
    ] = "replace-one",
    person: Annotated[
        str, typer.Option(help="The column that identifies people, with replace-person.")
    ] = "",
    head: Head = None,
    as_json: AsJson = False,
) -> None:
    """Start the ledger of a data set, with a ceiling that no fit can exceed."""
    from riata.privacy import Budget, Ledger

    ceiling = Budget(epsilon, delta, adjacency)
    made = Ledger.create(where, dataset=dataset, ceiling=ceiling, person=person, head=head)
    place = head if head is not None else f"{where}.head"
    reply(
        as_json,
        _facts(made),
        f"Started the ledger of {dataset!r} in {where}: {ceiling}{_whose(person)}.",
        f"Its head is {place}. Keep a copy where others cannot write: it shows a rollback.",
    )


@app.command()
def show(where: Where, dataset: Dataset = None, head: Head = None, as_json: AsJson = False) -> None:
    """Print what is spent and left, and every charge with the total up to it."""
    opened = _opened(where, dataset, head)
    facts = _facts(opened)
    if as_json:
        answer_json(facts)
        return
    console, ceiling = out(), opened.ceiling
    whose = _whose(facts["person"])
    console.print(Text(f"Ledger of {opened.dataset!r}, {ceiling.adjacency}{whose}", "bold"))
    charges = opened.charges
    if charges:
        table = Table("", "charged", "what", "asked", "total", "of the ceiling", box=None)
        for charge in charges:
            table.add_row(*_line(charge), _bar(charge.total * NANO, ceiling.epsilon))
        answer_table(table)
    answer(
        f"Spent epsilon {facts['spent']:.9g} of {ceiling.epsilon:g} at delta {ceiling.delta:g}, "
        f"left {facts['left']:.9g}. Charges: {len(charges)}."
    )


@app.command()
def verify(
    where: Where, dataset: Dataset = None, head: Head = None, as_json: AsJson = False
) -> None:
    """Check every line of the ledger against its chain, and the chain against its head."""
    found = _opened(where, dataset, head).verify()
    facts = {"whole": True, **asdict(found), "spent": found.spent.epsilon}
    reply(
        as_json,
        facts | {"delta": found.spent.delta},
        f"The ledger of {found.dataset!r} is whole: {number_of(found.charges, 'charge')}, "
        "each as it was written.",
        f"Its last link is {found.mac}.",
    )


@app.command()
def export(
    where: Where,
    file: Annotated[
        Path | None, typer.Argument(help="Where to write; standard output by default.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--format", help="json or csv. By default the file's ending.")
    ] = None,
    dataset: Dataset = None,
    head: Head = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Write all charges for an archive or an auditor. The key is never among them."""
    ending = "" if file is None else file.suffix.lstrip(".").lower()
    wanted = kind or ending or "json"
    if wanted not in ("json", "csv"):
        raise InvalidArgument(
            f"A ledger is written as json or csv, and not as {wanted!r}. Pass --format json."
        )
    check_unused(file, force)
    opened = _opened(where, dataset, head)
    text = opened.export() + "\n" if wanted == "json" else _csv(opened)
    if file is None:
        typer.echo(text, nl=False)
        return
    file.write_text(text, encoding="utf-8", newline="")
    if as_json:
        answer_json({"out": str(file), "format": wanted, "charges": len(opened.charges)})
    else:
        note(f"Wrote {number_of(len(opened.charges), 'charge')} to {file}.")


@app.command()
def backup(
    where: Where,
    file: Annotated[Path, typer.Argument(help="Where to write the backup.")],
    dataset: Dataset = None,
    head: Head = None,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Write all charges to one file, while the ledger is in use. The key is not among them."""
    opened = _opened(where, dataset, head)
    charges = opened.backup(file, force=force)
    reply(
        as_json,
        {"out": str(file), "dataset": opened.dataset, "charges": charges},
        f"Wrote the {number_of(charges, 'charge')} of {opened.dataset!r} to {file}.",
        "To restore them you need the newest head, too: keep it in another place.",
    )


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="What riata ledger backup wrote.")],
    where: Where,
    head: Head = None,
    as_json: AsJson = False,
) -> None:
    """Bring a ledger back from a backup, or refuse if a charge would be forgotten."""
    from riata.privacy.ledger import Ledger

    done = Ledger.restore(file, where, head=head)
    charges = number_of(done.charges, "charge")
    lines = [f"Restored the ledger of {done.dataset!r}: {charges}."]
    if not done.changed:
        lines = [f"Nothing had to be restored: the ledger of {done.dataset!r} is whole, {charges}."]
    if done.kept:
        lines.append(f"Kept {number_of(done.kept, 'charge')} from after the backup.")
    if done.aside:
        lines.append(f"The damaged file is now {done.aside}.")
    reply(as_json, asdict(done), *lines)


def _whose(person: str) -> str:
    return f" by {person!r}" if person else ""


def _opened(where: str, dataset: str | None, head: Path | None) -> Ledger:
    from riata.privacy.ledger import Ledger

    return Ledger.open(where, dataset=dataset, head=head)


def _facts(ledger: Ledger) -> dict[str, Any]:
    charges, spent, ceiling = ledger.charges, ledger.spent, ledger.ceiling
    total = charges[-1].total * NANO if charges else 0.0
    return {
        "dataset": ledger.dataset,
        "adjacency": ceiling.adjacency,
        "person": ledger.person,
        "ceiling": ceiling.epsilon,
        "delta": ceiling.delta,
        "spent": total,
        "left": max(0.0, ceiling.epsilon - total),
        "accountant": spent.accountant,
        "charges": [dict(zip(_COLUMNS, _cells(charge), strict=True)) for charge in charges],
    }


def _cells(charge: Charge) -> list[Any]:
    facts = charge.summary
    names = ("estimator", "solver", "n_rows", "n_features", "epsilon", "delta")
    return [charge.seq, charge.charged_at, *map(facts.get, names), charge.total * NANO]


def _line(charge: Charge) -> tuple[str, str, Text, str, str]:
    facts = charge.summary
    what = ", ".join(str(facts[name]) for name in ("estimator", "solver") if name in facts)
    asked = f"{facts['epsilon']:g}" if "epsilon" in facts else ""
    return (
        str(charge.seq), f"{charge.charged_at[:16].replace('T', ' ')}", Text(what or "-"), asked,
        f"{charge.total * NANO:.6g}",
    )  # fmt: skip


def _bar(total: float, ceiling: float) -> Bar:
    colour = "green" if total < 0.8 * ceiling else "yellow" if total < ceiling else "red"
    return Bar(ceiling, 0, min(total, ceiling), width=24, color=colour, bgcolor="bright_black")


def _csv(ledger: Ledger) -> str:
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow([*_COLUMNS, "summary"])
    for charge in ledger.charges:
        lines.writerow([*_cells(charge), json.dumps(charge.summary, sort_keys=True)])
    return text.getvalue()
