"""`riata.read`: from whatever rows are in to a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from riata.data.people import PeopleSource
from riata.data.readers.array_files import MappedArraysReader, NumpyReader
from riata.data.readers.arrow import ArrowReader, ParquetDirectory, ParquetReader, arrow
from riata.data.readers.base import Reader
from riata.data.readers.csv_file import CsvReader
from riata.data.readers.frames import FrameReader, is_frame, refuse_lazy
from riata.data.readers.svmlight import SvmlightReader
from riata.data.schema import Schema
from riata.data.source import Source
from riata.errors import DataError, InvalidArgument

#: Each looks at what was given and at the schema, and makes a reader, or says None if it is not
#: concerned. The first that makes one wins.
Opener = Callable[[Any, Schema], Reader | None]


def read(
    where: Any,
    schema: Schema | str | Path | Mapping[str, Any],
    *,
    target: bool = True,
    random_state: int | None = None,
) -> Source:
    """Rows of a file or a frame, typed by a public schema.

    Only names, types and sizes are looked at. Rows are read by a fit, after it was charged.

    Parameters
    ----------
    where : path or frame
        A file: Parquet (.parquet, or a directory of them), CSV (.csv, .tsv), svmlight (.svmlight,
        .libsvm, .svm), NumPy or SciPy (.npy, .npz); text files also as .gz. A directory with
        data.npy, indices.npy, indptr.npy and perhaps y.npy, which is mapped into memory. A frame
        of pandas, polars, Arrow or any other that narwhals knows.
    schema : Schema, path or dict
    target : bool, default=True
        Whether the target is read too. False for rows to predict.
    random_state : int, optional
        For tests: a public draw of the rows of people, which protects nobody. A fit from such a
        source needs a random_state too.

    Returns
    -------
    Source

    Notes
    -----
    *Privacy.* The number of rows, or of people, is public, and so are names and types of columns.
    What a row contains never raises and never moves another row.
    """
    schema = as_schema(schema)
    reader = open_reader(where, schema)
    if schema.person and schema.target is not None and target:
        return PeopleSource(schema, reader, target, random_state)
    return Source(schema, reader, target)


def as_schema(schema: Schema | str | Path | Mapping[str, Any]) -> Schema:
    """The schema in a file or a table, or one that is made already."""
    if isinstance(schema, str | Path):
        return Schema.load(schema)
    if isinstance(schema, Mapping):
        return Schema.from_table(schema)
    if not isinstance(schema, Schema):
        raise InvalidArgument(
            f"schema must be a Schema, got {type(schema).__name__}. Load one with Schema.load, or "
            "draft one from public rows with `riata schema draft`."
        )
    return schema


def open_reader(where: Any, schema: Schema) -> Reader:
    """What reads rows of this kind. Looks at names, types and sizes alone."""
    for opener in OPENERS:
        reader = opener(where, schema)
        if reader is not None:
            return reader
    raise InvalidArgument(
        f"Cannot read rows from a {type(where).__name__}. Pass a path, or a frame of pandas, "
        "polars or Arrow."
    )


def _open_frame(where: Any, schema: Schema) -> Reader | None:
    refuse_lazy(where)
    if type(where).__module__.split(".")[0] == "pyarrow":
        pa = arrow()
        return ArrowReader(where) if isinstance(where, pa.Table | pa.RecordBatch) else None
    return FrameReader(where) if is_frame(where) else None


def _open_path(where: Any, schema: Schema) -> Reader | None:
    if not isinstance(where, str | Path):
        return None
    path = Path(where)
    if not path.exists():
        raise DataError(f"There is no file {path}. Check the path.")
    if path.is_dir():
        return _open_directory(path)
    ending = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if ending in (".csv", ".tsv", ".txt"):
        return CsvReader(path, "\t" if ending == ".tsv" else schema.separator)
    if ending in (".svmlight", ".libsvm", ".svm"):
        return SvmlightReader(path)
    if ending in (".json", ".jsonl", ".ndjson"):
        raise DataError(
            f"{path} is JSON, which has no header that names its columns. Write it as Parquet or "
            "CSV, as with pandas: read_json(..., lines=True).to_parquet(...)."
        )
    if path.suffix == ".gz":
        raise DataError(f"{path} is compressed, which only CSV and svmlight may be. Unpack it.")
    if ending in (".parquet", ".pq"):
        return ParquetReader(path)
    if ending in (".npy", ".npz"):
        return NumpyReader(path)
    raise DataError(
        f"{path} has the ending {ending!r}, and riata reads .parquet, .csv, .tsv, .txt, .svmlight, "
        ".npz and .npy. Save it as one of these, from a spreadsheet as CSV in UTF-8; or rename it "
        "if only its name is another."
    )


def _open_directory(path: Path) -> Reader:
    if (path / "indptr.npy").exists():
        return MappedArraysReader(path)
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise DataError(
            f"The directory {path} holds neither Parquet files nor indptr.npy. Name a file in it."
        )
    return ParquetDirectory(path, files)


OPENERS: list[Opener] = [_open_frame, _open_path]
