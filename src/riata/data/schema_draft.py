"""A first schema from rows that are public: a proposal that a person has to check."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from riata.data.columns import Column, Numbers, as_number
from riata.data.formats import open_reader
from riata.data.readers.array_files import ArrayFileReader
from riata.data.readers.base import Reader, TableReader
from riata.data.readers.svmlight import SvmlightReader
from riata.data.schema import Schema
from riata.data.schema.features import YES
from riata.data.schema.numeric_block import NumericBlock
from riata.data.source import BLOCK_ROWS
from riata.errors import DataError, InvalidArgument

#: Columns with more different texts are read as words.
MOST_CHOICES = 60
BUCKETS = 1024
#: Columns with a different text in more than this part of the rows are taken for identifiers.
_DIFFERENT = 0.9

HEAD = """\
# Drafted from {title}, which was declared public. CHECK EVERY LINE before you use it for
# private rows: bounds and choices must be what could occur, and not what happened to occur.
# A number with few values may be a code: then kind = "choice" is right."""


class ColumnSummary:
    """What the public rows show of one column."""

    def __init__(self) -> None:
        self.words: set[str] = set()
        self.low, self.high = math.inf, -math.inf
        self.numeric, self.boolean = True, False
        self.rows, self.whole, self.spaces = 0, 0, 0

    def add(self, column: Column) -> None:
        """Some more rows."""
        self.boolean |= isinstance(column, Numbers) and column.values.dtype.kind == "b"
        texts = column.texts()
        used = np.bincount(texts.codes, minlength=len(texts.words)) > 0
        for word, is_used in zip(texts.words, used, strict=True):
            if word is not None and is_used and word not in self.words:
                self._add_word(word)
        self.rows += len(column)

    def _add_word(self, word: str) -> None:
        self.words.add(word)
        number = as_number(word)
        if math.isnan(number):
            self.numeric &= word.lower() == "nan"
            self.spaces += " " in word
        elif math.isfinite(number):
            self.whole += number.is_integer()
            self.low, self.high = min(self.low, number), max(self.high, number)

    @property
    def is_number(self) -> bool:
        return self.numeric and self.low <= self.high

    @property
    def is_identifier(self) -> bool:
        """Whether nearly every row has a word or a whole number of its own."""
        if len(self.words) <= max(MOST_CHOICES, _DIFFERENT * self.rows):
            return False
        return self.whole == len(self.words) if self.numeric else 2 * self.spaces < len(self.words)

    def feature(self) -> dict[str, Any]:
        """The fields of a feature, without its name."""
        lower = {word.lower() for word in self.words}
        if self.boolean or (lower and lower <= YES.keys()):
            return {"kind": "yes-no"}
        if self.is_number:
            return {"kind": "number", "bounds": round_bounds(self.low, self.high)}
        if 0 < len(self.words) <= MOST_CHOICES:
            return {"kind": "choice", "choices": sorted(self.words)}
        return {"kind": "text", "buckets": BUCKETS}

    def target(self) -> dict[str, Any]:
        """The fields of a target, without its name."""
        if self.boolean:
            return {"classes": [False, True]}
        if self.is_number and len(self.words) > 2:
            return {"bounds": round_bounds(self.low, self.high)}
        if self.is_number:
            numbers = [as_number(word) for word in sorted(self.words)]
            return {"classes": [int(n) if n.is_integer() else n for n in numbers]}
        return {"classes": sorted(self.words)}


def draft(
    where: str | Path, *, target: str = "", person: str = "", rows_of_a_person: int = 1
) -> tuple[Schema, str]:
    """A schema for a public file, and its text with comments. `target` and `person` are columns.

    *Privacy.* The schema is made from the rows. Never draft one from rows that are not public.
    """
    reader = open_reader(where, Schema.from_table({"features": {"count": 1}}))
    if not isinstance(reader, TableReader):
        return _matrix_draft(reader, target, person)
    names = list(reader.kinds())
    for name in filter(None, (target, person)):
        if name not in names:
            raise InvalidArgument(
                f"{reader.title} has no column {name!r}. Its columns are {', '.join(names)}."
            )
    summaries = {name: ColumnSummary() for name in names}
    for _, columns in reader.chunks(names, BLOCK_ROWS):
        for name, column in columns.items():
            summaries[name].add(column)
    table: dict[str, Any] = {}
    if person:
        table |= {"person": person, "rows_of_a_person": rows_of_a_person}
    others = [name for name in names if name not in (target, person)]
    used = [name for name in others if not summaries[name].is_identifier]
    table["ignore"] = [name for name in others if name not in used]
    table["features"] = [{"name": name, **summaries[name].feature()} for name in used]
    if target:
        table["target"] = {"name": target, **summaries[target].target()}
    return _checked(table, reader.title)


def _matrix_draft(reader: Reader, target: str, person: str) -> tuple[Schema, str]:
    """A block of columns without names: how many, and how far they reach."""
    if target or person:
        raise InvalidArgument(
            f"{reader.title} has no named columns, so none can be the target or the person. Leave "
            "them out."
        )
    if isinstance(reader, SvmlightReader):
        raise DataError(
            f"{reader.title} does not say how many columns there are. Write the schema by hand: "
            "[features] with count and bound, and [target]."
        )
    assert isinstance(reader, ArrayFileReader)
    block, with_target = NumericBlock(reader.n_columns()), reader.has_y
    summary, largest = ColumnSummary(), 0.0
    for x, y in reader.chunks(block, BLOCK_ROWS, with_target):
        finite = np.abs(x.data[np.isfinite(x.data)])
        largest = max(largest, finite.max(initial=0.0))
        if y is not None:
            summary.add(y)
    bound = round_bounds(0.0, largest)[1] if largest else 1.0
    table: dict[str, Any] = {"features": {"count": block.count, "bound": bound}}
    if with_target:
        table["target"] = summary.target()
    return _checked(table, reader.title)


def _checked(table: dict[str, Any], title: str) -> tuple[Schema, str]:
    from riata.data.schema.toml_text import schema_text

    schema = Schema.from_table(table)
    return schema, schema_text(schema, HEAD.format(title=Path(title).name))


def round_bounds(low: float, high: float) -> list[float]:
    """Bounds around two numbers, rounded outwards to 1, 2 or 5 times a power of ten."""
    width = high - low or max(abs(high), 1.0)
    rough = width / 10
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    return [_rounded(first * step), _rounded(last * step)]


def _rounded(value: float) -> float:
    """Without the dust of floating point."""
    return float(f"{value:.12g}") + 0.0
