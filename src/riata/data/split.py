"""A file in two parts by a public rule, row by row, whatever its size."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from riata.data.columns import Column
from riata.data.readers.arrow import ParquetReader, arrow
from riata.data.readers.base import TableReader
from riata.data.readers.csv_file import CsvReader
from riata.errors import InvalidArgument
from riata.privacy.budget import check_open_unit

#: What the hash is keyed by, unless somebody chooses another word. Public.
SALT = "riata"
_ROWS = 65_536
_BYTES = 8
_LARGEST_SALT = 64


class Rule:
    """Which rows are trained on: those whose keyed hash is in the first `share` of its range.

    The hash is BLAKE2b of the text of the key, or of the number of the row from 0, keyed by the
    salt. Equal keys go the same way in every file.
    """

    def __init__(self, share: float, salt: str = SALT) -> None:
        check_open_unit("share", share, "it is the part of the rows to train on")
        self._key = salt.encode()
        if not 0 < len(self._key) <= _LARGEST_SALT:
            raise InvalidArgument(f"The salt must have 1 to {_LARGEST_SALT} bytes. Choose a word.")
        self._end = int(share * 2 ** (8 * _BYTES))

    def __call__(self, text: str) -> bool:
        found = hashlib.blake2b(text.encode(), digest_size=_BYTES, key=self._key).digest()
        return int.from_bytes(found, "big") < self._end

    def of_keys(self, column: Column) -> np.ndarray:
        """For each row; a missing key is the same key as any other."""
        texts = column.texts()
        words = np.array([self(word or "") for word in texts.words], dtype=bool)
        trained: np.ndarray = words[texts.codes]
        return trained

    def of_numbers(self, first: int, rows: int) -> np.ndarray:
        return np.array([self(str(first + k)) for k in range(rows)], dtype=bool)


def split(
    path: Path,
    train: Path,
    held_out: Path,
    *,
    key: str | None = None,
    share: float = 0.75,
    salt: str = SALT,
    separator: str = ",",
) -> tuple[int, int]:
    """Write the rows of a file to two others. Returns the numbers of rows in each.

    Parameters
    ----------
    path : Path
        A CSV or Parquet file.
    train, held_out : Path
        Files of the same format.
    key : str, optional
        The column by whose hash rows are divided, so that all rows of a person stay together. By
        default the number of the row decides.
    share : float, default=0.75
        The part that goes to `train`.
    salt : str, default="riata"
        Public. Another word gives another division.
    separator : str, default=","
        Between the fields of a CSV file.
    """
    rule = Rule(share, salt)
    kinds = [_format(each) for each in (path, train, held_out)]
    if len(set(kinds)) > 1:
        raise InvalidArgument(
            f"{train} and {held_out} must have the format of {path}: a split copies rows as they "
            "are. Choose the same ending."
        )
    if len({each.resolve() for each in (path, train, held_out)}) < 3:
        raise InvalidArgument("The three files must be different. Choose other names.")
    how = _split_csv if kinds[0] == ".csv" else _split_parquet
    return how(path, (train, held_out), key, rule, separator)


def _format(path: Path) -> str:
    ending = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    if ending in (".csv", ".tsv", ".txt"):
        return ".csv"
    if ending in (".parquet", ".pq") and path.suffix != ".gz":
        return ".parquet"
    raise InvalidArgument(f"{path} must end in .csv, .csv.gz, .tsv or .parquet to be split.")


def _masks(
    reader: TableReader, key: str | None, rule: Rule
) -> Callable[[int, int], Iterator[np.ndarray]]:
    if key is None:
        return lambda first, rows: iter([rule.of_numbers(first, rows)])
    check_column(reader, key)
    found = (rule.of_keys(columns[key]) for _, columns in reader.chunks([key], _ROWS))
    return lambda first, rows: found


def check_column(reader: TableReader, key: str) -> None:
    """Raise unless the file has exactly one column of this name."""
    if key not in reader.kinds() or key in reader.repeated_names():
        known = ", ".join(list(reader.kinds())[:20])
        raise InvalidArgument(
            f"{reader.title} has no single column {key!r}. Its columns are {known}."
        )


def _split_csv(
    path: Path, parts: tuple[Path, Path], key: str | None, rule: Rule, separator: str
) -> tuple[int, int]:
    reader = CsvReader(path, "\t" if path.suffix == ".tsv" else separator)
    masks, first, counts = _masks(reader, key, rule), 0, [0, 0]
    with ExitStack() as stack:
        header = reader.first_line().rstrip(b"\r\n")
        files = [stack.enter_context(_created(part)) for part in parts]
        for file in files:
            file.write(header + b"\n")
        for lines in reader.batches(_ROWS):
            for line, trained in zip(lines, next(masks(first, len(lines))), strict=True):
                files[not trained].write(line + b"\n")
                counts[not trained] += 1
            first += len(lines)
    return counts[0], counts[1]


def _created(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb"))


def _split_parquet(
    path: Path, parts: tuple[Path, Path], key: str | None, rule: Rule, separator: str
) -> tuple[int, int]:
    pa, reader = arrow(), ParquetReader(path)
    masks, first, counts = _masks(reader, key, rule), 0, [0, 0]
    with ExitStack() as stack:
        source: Any = stack.enter_context(reader.open_file())
        files = [
            stack.enter_context(pa.parquet.ParquetWriter(part, source.schema_arrow))
            for part in parts
        ]
        for batch in source.iter_batches(_ROWS):
            trained = next(masks(first, batch.num_rows))
            for number, mask in enumerate((trained, ~trained)):
                files[number].write_batch(batch.filter(pa.array(mask)))
                counts[number] += int(mask.sum())
            first += batch.num_rows
    return counts[0], counts[1]
