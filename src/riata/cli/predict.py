"""`riata predict`: predictions of a model file for rows in a file."""

from __future__ import annotations

import csv
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from riata.cli.console import AsJson, reply
from riata.cli.options import MaxBytes
from riata.cli.report import ModelFile
from riata.errors import InvalidArgument
from riata.files.limit import MAX_BYTES

if TYPE_CHECKING:
    from riata.estimators.description import ModelDescription

READABLE, WRITABLE = (".csv", ".npy", ".npz"), (".csv", ".npy")


def predict(
    model: ModelFile,
    data: Annotated[
        Path, typer.Option(help="Rows: .csv with a header, .npy or .npz, or as in the fit.")
    ],
    out: Annotated[Path, typer.Option(help="Predictions: .csv or .npy.")],
    max_bytes: MaxBytes = MAX_BYTES,
    as_json: AsJson = False,
) -> None:
    """Predict for each row of a file. Missing values count as 0, as in the fit."""
    from riata.estimators.description import describe  # with scikit-learn, slow to import
    from riata.model_file import load
    from riata.report.facts import statement_of

    if out.suffix not in WRITABLE:
        raise InvalidArgument(f"{out} must end in .csv or .npy, which say how to write it.")
    found = load(model, max_bytes=max_bytes)
    about = describe(found)
    rows = read_rows(data, about)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about names: columns have been matched
        columns = predictions(found, about, rows)
    if out.suffix == ".npy":
        np.save(out, np.array(columns["prediction"].tolist()), allow_pickle=False)
    else:
        with out.open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(columns)
            lines.writerows(zip(*(each.tolist() for each in columns.values()), strict=True))
    number = len(columns["prediction"])
    private = statement_of(found).private
    reply(
        as_json,
        {"out": str(out), "rows": number, "columns": list(columns), "private": private},
        f"Wrote {number:,} predictions to {out}.",
        "They follow from the rows in the data: the guarantee is about the model.",
    )


def predictions(model: Any, about: ModelDescription, rows: Any) -> dict[str, np.ndarray]:
    """What a model says about rows, by the name of the column that it becomes."""
    if about.output == "mean":
        raise InvalidArgument(f"A {about.name} predicts nothing: it is a mean. See riata report.")
    columns = {"prediction": model.predict(rows)}
    if about.collected and about.probabilities:
        columns["probability of yes"] = model.predict_probability(rows)
    elif about.probabilities:
        each = zip(about.labels, model.predict_proba(rows).T, strict=True)
        columns |= {f"probability of {label}": chances for label, chances in each}
    return columns


def read_rows(path: Path, about: ModelDescription) -> Any:
    """The rows of a file, with the columns that the model wants, or by the model's schema."""
    if about.schema is not None:
        from riata.data import read

        return read(path, about.schema, target=False)
    if path.suffix not in READABLE:
        raise InvalidArgument(f"{path} must be one of {', '.join(READABLE)}.")
    if path.suffix == ".csv":
        return _csv(path, about)
    try:
        rows = np.load(path, allow_pickle=False) if path.suffix == ".npy" else _npz(path)
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile):
        raise InvalidArgument(f"{path} is not an array of numbers that NumPy can read.") from None
    columns = about.n_columns
    if rows.ndim != 2 or rows.shape[1] != columns or rows.dtype.kind not in "biuf":
        raise InvalidArgument(
            f"{path} holds an array of {rows.dtype} with the shape {rows.shape}. The model wants "
            f"numbers, with one row for each person and {columns} columns."
        )
    return rows


def _npz(path: Path) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        names = archive.files
        if "format" not in names:
            wanted = next((name for name in ("X", "x", *names[:1]) if name in names), None)
            if wanted is None or (len(names) > 1 and wanted not in ("X", "x")):
                raise KeyError("X")
            return archive[wanted]
    from scipy import sparse  # slow to import

    return sparse.load_npz(path)


def _csv(path: Path, about: ModelDescription) -> Any:
    """Columns by name if the model knows names, and in order otherwise."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file)
            head, rows = next(lines, []), [line for line in lines if line]
    except (UnicodeDecodeError, csv.Error):
        raise InvalidArgument(f"{path} is not a CSV file in UTF-8. Write it as one.") from None
    if not head:
        raise InvalidArgument(f"{path} is empty. Its first line names the columns.")
    if len(set(head)) < len(head):
        raise InvalidArgument(f"Two columns of {path} have the same name. Rename one.")
    if about.collected:
        return [dict(zip(head, row, strict=False)) for row in rows]
    names = about.names
    wanted = list(head) if names is None else list(names)
    missing = [name for name in wanted if name not in head]
    if missing:
        raise InvalidArgument(
            f"{path} has no column {missing[0]!r}, which the model was fitted to "
            f"({len(missing)} such columns). Its first line must name them."
        )
    if names is None and len(head) != about.n_columns:
        raise InvalidArgument(
            f"{path} has {len(head)} columns, and the model {about.n_columns} without names. "
            "Leave out the others."
        )
    table = np.full((len(rows), len(wanted)), np.nan)
    for k, name in enumerate(wanted):
        table[:, k] = _numbers(rows, head.index(name), f"{path}, column {name!r}")
    return table


def _numbers(rows: list[list[str]], place: int, where: str) -> list[float]:
    try:
        cells = (row[place].strip() if place < len(row) else "" for row in rows)
        return [float(cell) if cell else np.nan for cell in cells]
    except ValueError:
        raise InvalidArgument(
            f"{where} has text that is not a number. Leave missing values empty, and write "
            "numbers with a point."
        ) from None
