"""`riata predict`: predictions of a model file for rows in a file."""

from __future__ import annotations

import csv
import sys
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from riata.cli.console import AsJson, reply
from riata.cli.options import MaxBytes, ModelFile
from riata.errors import InvalidArgument
from riata.files.limit import MAX_BYTES

if TYPE_CHECKING:
    from riata.data import Schema, Source
    from riata.data.columns import Column
    from riata.estimators.description import ModelDescription

READABLE, WRITABLE = (".csv", ".npy", ".npz"), (".csv", ".npy")


def predict(
    model: ModelFile,
    data: Annotated[
        Path, typer.Option(help="Rows: .csv with a header, .npy or .npz, or as in the fit.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Predictions: .csv or .npy. By default, or for -, standard output."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="A column of the data to write beside the predictions, such as an id."),
    ] = None,
    max_bytes: MaxBytes = MAX_BYTES,
    as_json: AsJson = False,
) -> None:
    """Predict for each row of a file. Missing values count as 0, as in the fit."""
    from riata.estimators.description import describe  # with scikit-learn, slow to import
    from riata.model_file import load
    from riata.report.facts import statement_of

    out = None if out is not None and str(out) == "-" else out
    names = list(keep or [])
    _check_out(out, names, as_json)
    found = load(model, max_bytes=max_bytes)
    about = describe(found)
    rows, kept = read_rows(data, about, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about names: columns have been matched
        columns = kept | predictions(found, about, rows)
    number, private = len(columns["prediction"]), statement_of(found).private
    if out is None:
        _write_csv(sys.stdout, columns)
        return
    if out.suffix == ".npy":
        np.save(out, np.array(columns["prediction"].tolist()), allow_pickle=False)
    else:
        with out.open("w", newline="", encoding="utf-8") as file:
            _write_csv(file, columns)
    reply(
        as_json,
        {"out": str(out), "rows": number, "columns": list(columns), "private": private},
        f"Wrote {number:,} predictions to {out}.",
        "They follow from the rows in the data: the guarantee is about the model.",
    )


def _check_out(out: Path | None, keep: list[str], as_json: bool) -> None:
    if out is not None and out.suffix not in WRITABLE:
        raise InvalidArgument(f"{out} must end in .csv or .npy, which say how to write it.")
    if out is not None and out.suffix == ".npy" and keep:
        raise InvalidArgument(
            "--keep writes columns beside the predictions, and .npy holds one. Write a .csv."
        )
    if "prediction" in keep:
        raise InvalidArgument("--keep prediction would name two columns alike. Rename the column.")
    if out is None and as_json:
        raise InvalidArgument(
            "--json prints one value on standard output, and so do predictions without --out. "
            "Pass --out."
        )


def _write_csv(file: Any, columns: dict[str, np.ndarray]) -> None:
    lines = csv.writer(file, lineterminator="\n" if file is sys.stdout else "\r\n")
    lines.writerow(columns)
    lines.writerows(zip(*(each.tolist() for each in columns.values()), strict=True))


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


def read_rows(
    path: Path, about: ModelDescription, keep: list[str]
) -> tuple[Any, dict[str, np.ndarray]]:
    """The rows of a file as the model wants them, and columns that are kept as they are."""
    if about.schema is not None:
        return _by_schema(path, about.schema, keep)
    if path.suffix not in READABLE:
        raise InvalidArgument(f"{path} must be one of {', '.join(READABLE)}.")
    if path.suffix == ".csv":
        return _csv(path, about, keep)
    if keep:
        raise InvalidArgument(f"{path} has no named columns, so there is none to --keep.")
    return _array(path, about), {}


def _by_schema(path: Path, schema: Schema, keep: list[str]) -> tuple[Source, dict[str, np.ndarray]]:
    from riata.data import read
    from riata.data.formats import open_reader
    from riata.data.readers.base import TableReader
    from riata.data.split import check_column

    known = replace(schema, ignore=tuple(dict.fromkeys([*schema.ignore, *keep])))
    source = read(path, known, target=False)
    reader, kept = open_reader(path, known), {}
    if keep and not isinstance(reader, TableReader):
        raise InvalidArgument(f"{path} has no named columns, so there is none to --keep.")
    if keep:
        assert isinstance(reader, TableReader)
        for name in keep:
            check_column(reader, name)
        parts = [columns for _, columns in reader.chunks(keep, 65_536)]
        kept = {name: np.concatenate([_texts(part[name]) for part in parts]) for name in keep}
    return source, kept


def _texts(column: Column) -> np.ndarray:
    """Each value as text, "" where it is missing."""
    texts = column.texts()
    words = np.array([word or "" for word in texts.words], dtype=object)
    found: np.ndarray = words[texts.codes]
    return found


def _array(path: Path, about: ModelDescription) -> Any:
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


def _csv(path: Path, about: ModelDescription, keep: list[str]) -> tuple[Any, dict[str, np.ndarray]]:
    """Columns by name if the model knows names, and in order otherwise; and the kept ones."""
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
    absent = next((name for name in keep if name not in head), None)
    if absent is not None:
        raise InvalidArgument(f"{path} has no column {absent!r} to keep.")
    kept = {name: _column_of(rows, head.index(name)) for name in keep}
    if about.collected:
        return [dict(zip(head, row, strict=False)) for row in rows], kept
    return _numbers_by_name(path, about, head, rows, keep), kept


def _column_of(rows: list[list[str]], place: int) -> np.ndarray:
    return np.array([row[place] if place < len(row) else "" for row in rows], dtype=object)


def _numbers_by_name(
    path: Path, about: ModelDescription, head: list[str], rows: list[list[str]], keep: list[str]
) -> np.ndarray:
    names = about.names
    others = [name for name in head if name not in keep]
    wanted = others if names is None else list(names)
    missing = [name for name in wanted if name not in head]
    if missing:
        raise InvalidArgument(
            f"{path} has no column {missing[0]!r}, which the model was fitted to "
            f"({len(missing)} such columns). Its first line must name them."
        )
    if names is None and len(others) != about.n_columns:
        raise InvalidArgument(
            f"{path} has {len(others)} columns, and the model {about.n_columns} without names. "
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
