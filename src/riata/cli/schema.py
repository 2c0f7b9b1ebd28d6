"""`riata schema`: draft a schema from public rows, and check one against a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from riata.cli.console import AsJson, Force, check_unused, note, reply
from riata.errors import InvalidArgument
from riata.wording import number_of

if TYPE_CHECKING:  # scikit-learn is slow to import
    from riata.data import Schema

app = typer.Typer(help="Say what the columns of private files are.", no_args_is_help=True)


@app.command()
def draft(
    file: Annotated[Path, typer.Argument(help="A file whose rows are all public.")],
    public: Annotated[
        bool, typer.Option("--public", help="I declare that every row of this file is public.")
    ] = False,
    target: Annotated[str, typer.Option(help="The column to predict.")] = "",
    person: Annotated[str, typer.Option(help="The column that says whose row it is.")] = "",
    rows_of_a_person: Annotated[
        int, typer.Option(help="As how many rows each person counts.", min=1)
    ] = 1,
    out: Annotated[Path | None, typer.Option(help="Write the schema here.")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Draft a schema from a public file: last year's release, a sample for tests, made-up rows."""
    if not public:
        raise InvalidArgument(
            f"A draft takes bounds and categories from the rows of {file}, and a schema is public: "
            "whoever reads it would learn the largest value, or a category that one person has. "
            "Pass --public if every row of the file is public. Otherwise write the schema by hand, "
            "from what could occur."
        )
    check_unused(out, force)
    from riata.data.schema_draft import draft as drafted

    schema, text, remarks = drafted(
        file, target=target, person=person, rows_of_a_person=rows_of_a_person
    )
    if out is not None or as_json:
        for remark in remarks:
            note(remark)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if out is None and not as_json:
        typer.echo(text, nl=False)
    else:
        wrote = f"Wrote {out}, with {_counted(schema)}. Check every line of it."
        reply(as_json, schema.table(), wrote)


@app.command()
def check(
    schema: Annotated[Path, typer.Argument(help="The schema (TOML).")],
    file: Annotated[Path | None, typer.Argument(help="A file to compare names and types.")] = None,
    to_predict: Annotated[
        bool, typer.Option(help="The file has rows to predict, and needs no target.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a schema, and whether a file has its columns. Reads no row."""
    from riata.data import Schema, read

    found = Schema.load(schema)
    if file is not None:
        read(file, found, target=not to_predict)
    lines = [f"{schema} is a schema with {_counted(found)}, {found.bounds!r}."]
    lines += [f"  {name}: {fact}" for name, fact in found.derived]
    if file is not None:
        lines.append(f"{file} has the columns that it names. No row was read.")
    reply(as_json, _facts(found, file), *lines)


def _counted(schema: Schema) -> str:
    columns = "a block of columns" if schema.unnamed else number_of(len(schema.columns), "column")
    return f"{columns}, encoded as {schema.n_features}"


def _facts(schema: Schema, file: Path | None) -> dict[str, Any]:
    classes = schema.classes
    return {
        "columns": schema.columns,
        "n_features": schema.n_features,
        "bounds": {
            "x": schema.bounds.x,
            "y": schema.bounds.y,
            "nonnegative": schema.bounds.nonnegative,
            "length": schema.bounds.max_length,
        },
        "derived": dict(schema.derived),
        "target": None if schema.target is None else schema.target.name,
        "classes": None if classes is None else classes.tolist(),
        "person": schema.person or None,
        "rows_of_a_person": schema.rows_of_a_person,
        "file": None if file is None else str(file),
    }
