"""`riata split`: rows to train on, and rows to hold out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from riata.cli.console import AsJson, Force, check_unused, note, reply
from riata.wording import number_of


def split(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file.")],
    train: Annotated[Path, typer.Option(help="Where the rows to train on are written.")],
    held_out: Annotated[Path, typer.Option(help="Where the others are written.")],
    key: Annotated[
        str | None, typer.Option(help="Split by this column: equal values stay together.")
    ] = None,
    share: Annotated[float, typer.Option(help="The part of the rows to train on.")] = 0.75,
    salt: Annotated[str, typer.Option(help="A public word. Another one splits otherwise.")] = (
        "riata"
    ),
    separator: Annotated[str, typer.Option(help="Between the fields of a CSV file.")] = ",",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Divide a file by a public hash of a column or of the row number. Spends nothing."""
    from riata.data.split import split as divide

    for place in (train, held_out):
        check_unused(place, force)
    rows = divide(data, train, held_out, key=key, share=share, salt=salt, separator=separator)
    if key is not None:
        note(
            f"How many rows each file has follows from the values of {key!r}: take that for public "
            "only if these ids are."
        )
    reply(
        as_json,
        {"train": str(train), "held_out": str(held_out), "rows": list(rows)},
        f"Wrote {number_of(rows[0], 'row')} to {train} and {number_of(rows[1], 'row')} to "
        f"{held_out}.",
    )
