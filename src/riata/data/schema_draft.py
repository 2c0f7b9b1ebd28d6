"""A first schema from rows that are public: a proposal that a person has to check."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from riata.data.columns import Column, Numbers, as_number
from riata.data.formats import open_reader
from riata.data.readers.array_files import ArrayFileReader
from riata.data.readers.base import Reader, TableReader
from riata.data.readers.svmlight import SvmlightReader
from riata.data.schema import Schema
from riata.data.schema.dates import read_time
from riata.data.schema.features import MISSING, YES
from riata.data.schema.hashed import BUCKETS_OF_IDS
from riata.data.schema.numeric_block import NumericBlock
from riata.data.source import BLOCK_ROWS
from riata.errors import DataError, InvalidArgument

#: Columns with more different texts are hashed: ids whole, texts word by word.
MOST_CHOICES = 60
#: Columns with a different text in more than this part of the rows are taken for identifiers.
_DIFFERENT = 0.9

#: A column with one number in more than this part of its rows has its centre there.
_MOSTLY = 0.5
#: What the names of ids and of codes have among their words.
_ID_WORDS = frozenset({"id", "key", "nbr", "no", "nr", "uuid"})
_CODE_WORDS = frozenset({"id", "code"})
#: The words of a name, such as "patient_nbr" or "orderId".
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
#: Whole numbers from 0 on are counts if the largest is so large, and so many times the median.
_LARGE, _SKEWED = 100, 20

#: How dates may be written, besides ISO 8601.
_FORMS = ("", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")

HEAD = """\
# Drafted from {title}, which was declared public.
# CHECK EVERY LINE before you use it for private rows: bounds and choices must be what could occur,
# and not what happened to occur.
# A number with few values may be a code: then kind = "choice" is right."""


class Draft(NamedTuple):
    """A proposal: the schema, its file with comments, and what to know about its columns."""

    schema: Schema
    text: str
    remarks: tuple[str, ...]


class ColumnSummary:
    """What the public rows show of one column."""

    def __init__(self, name: str = "") -> None:
        self.words = frozenset(word.lower() for word in _WORDS.findall(name))
        self.counts: Counter[str] = Counter()
        self.boolean = False
        self.missing: set[str] = set()
        self.rows = 0

    def add(self, column: Column) -> None:
        """Some more rows."""
        self.boolean |= isinstance(column, Numbers) and column.values.dtype.kind == "b"
        texts = column.texts()
        times = np.bincount(texts.codes, minlength=len(texts.words))
        for word, count in zip(texts.words, times.tolist(), strict=True):
            if word is not None and count and word.lower() in MISSING:
                self.missing.add(word)
            elif word is not None and count:
                self.counts[word] += count
        self.rows += len(column)

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """The different numbers in order, and how often each is there; none if texts are."""
        found = Counter[float]()
        for word, count in self.counts.items():
            number = as_number(word)
            if math.isnan(number):
                return np.empty(0), np.empty(0)
            if math.isfinite(number):
                found[number] += count
        values = sorted(found)
        return np.array(values), np.array([found[value] for value in values])

    @property
    def is_number(self) -> bool:
        return len(self._numbers[0]) > 0

    @property
    def _whole(self) -> bool:
        """Whether it has numbers, and all are whole."""
        values = self._numbers[0]
        return self.is_number and bool(np.all(values == np.floor(values)))

    @property
    def _own(self) -> bool:
        """Whether nearly every row has a value of its own."""
        return len(self.counts) > max(MOST_CHOICES, _DIFFERENT * self.rows)

    @property
    def reason(self) -> str:
        """Why the column is not used; "" if it is."""
        different = len(self.counts)
        if different == 0:
            return "it has no value"
        if different == 1:
            return "it has one value alone"
        if different <= MOST_CHOICES or self._form is not None:
            return ""
        if self._own and not self.is_number:
            return "" if self._has_words else "nearly every row has a text of its own, as an id has"
        if not self._whole:
            return ""
        values = self._numbers[0]
        if self._own and values[-1] - values[0] < 2 * different:
            return "its numbers are those of a running number"
        if self.words & _ID_WORDS and 2 * different > self.rows:
            return "it has the name and the numbers of an id"
        return ""

    @property
    def doubt(self) -> str:
        """What to look at before the column is used; "" if nothing is special."""
        if self._own and self._whole:
            return "nearly every row has a whole number of its own. If it is an id, ignore it"
        return ""

    @property
    def _has_words(self) -> bool:
        """Whether most of its texts have several words."""
        return 2 * sum(" " in word for word in self.counts) >= len(self.counts)

    @cached_property
    def _form(self) -> str | None:
        """How its dates are written; None if they are none."""
        if self.is_number or not self.counts:
            return None
        for form in _FORMS:
            if all(read_time(word, form) is not None for word in self.counts):
                return form
        return None

    def feature(self) -> dict[str, Any]:
        """The fields of a feature, without its name."""
        few = len(self.counts) <= MOST_CHOICES
        if self.boolean or {word.lower() for word in self.counts} <= YES.keys():
            return {"kind": "yes-no"}
        if self._whole and self.words & _CODE_WORDS:
            return self._choice() if few else self._hash()
        if self.is_number:
            return self._number()
        if self._form is not None:
            return self._date(self._form)
        if few:
            return self._choice()
        return {"kind": "text"} if self._has_words else self._hash()

    def _choice(self) -> dict[str, Any]:
        order = as_number if self.is_number else str
        return {"kind": "choice", "choices": sorted(self.counts, key=order)}

    def _hash(self) -> dict[str, Any]:
        """Twice as many buckets as there are values, so that few of them share one."""
        buckets = 2 ** math.ceil(math.log2(2 * len(self.counts)))
        return {"kind": "hash", "buckets": min(buckets, BUCKETS_OF_IDS)}

    def _number(self) -> dict[str, Any]:
        values, times = self._numbers
        low, high = round_bounds(values[0], values[-1])
        middle = values[np.searchsorted(np.cumsum(times), times.sum() / 2)]
        if self._whole and low == 0 and high >= max(_LARGE, _SKEWED * middle):
            return {"kind": "count", "most": high}
        usual = float(values[np.argmax(times)])
        mostly = times.max() > _MOSTLY * times.sum()
        return {"kind": "number", "bounds": [low, high]} | ({"center": usual} if mostly else {})

    def _date(self, form: str) -> dict[str, Any]:
        times = [time for word in self.counts if (time := read_time(word, form)) is not None]
        ends = [f"{min(times).year:04}-01-01", f"{max(times).year:04}-12-31"]
        hours = ["hour"] if any(time.hour or time.minute for time in times) else []
        parts = ["trend", "weekday", *hours]
        return {"kind": "date", "bounds": ends, "parts": parts} | ({"format": form} if form else {})

    def target(self) -> dict[str, Any]:
        """The fields of a target, without its name."""
        if self.boolean:
            return {"classes": [False, True]}
        values = self._numbers[0]
        if len(values) > 2:
            return {"bounds": round_bounds(values[0], values[-1])}
        if self.is_number:
            return {"classes": [int(n) if n.is_integer() else n for n in values.tolist()]}
        return {"classes": sorted(self.counts)}


def draft(
    where: str | Path, *, target: str = "", person: str = "", rows_of_a_person: int = 1
) -> Draft:
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
    summaries = {name: ColumnSummary(name) for name in names}
    for _, columns in reader.chunks(names, BLOCK_ROWS):
        for name, column in columns.items():
            summaries[name].add(column)
    table: dict[str, Any] = {}
    if person:
        table |= {"person": person, "rows_of_a_person": rows_of_a_person}
    others = [name for name in names if name not in (target, person)]
    reasons = {name: reason for name in others if (reason := summaries[name].reason)}
    if others and len(reasons) == len(others):
        raise DataError(
            f"No column of {reader.title} can be a feature: {others[0]!r} is not used because "
            f"{reasons[others[0]]}. Write the schema by hand."
        )
    table["ignore"] = list(reasons)
    used = [name for name in others if name not in reasons]
    table["features"] = [{"name": name, **summaries[name].feature()} for name in used]
    if target:
        table["target"] = {"name": target, **summaries[target].target()}
    remarks = [*_remarks(summaries, reasons, used), *_open_questions(summaries, target, person)]
    return _checked(table, reader.title, tuple(remarks))


def _remarks(
    summaries: dict[str, ColumnSummary], reasons: dict[str, str], used: list[str]
) -> Iterator[str]:
    """What was made of columns that are no plain case."""
    for name, why in reasons.items():
        yield f"Not used: {_quoted(name)}, because {why}."
    for name in used:
        if summaries[name].doubt:
            yield f"Check {_quoted(name)}: {summaries[name].doubt}."
    for name, summary in summaries.items():
        if summary.missing:
            words = ", ".join(map(_quoted, sorted(summary.missing)))
            yield f"Taken for missing in {_quoted(name)}: {words}."


def _open_questions(summaries: dict[str, ColumnSummary], target: str, person: str) -> Iterator[str]:
    """What nobody said, and the rows cannot say."""
    ids = [name for name in summaries if summaries[name].words & _ID_WORDS and name != target]
    if ids and not person:
        yield f"If a column such as {_quoted(ids[0])} says whose row it is, name it with --person."
    if not target:
        yield "There is no target, which a fit needs: name it with --target."


def _matrix_draft(reader: Reader, target: str, person: str) -> Draft:
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


def _checked(table: dict[str, Any], title: str, remarks: tuple[str, ...] = ()) -> Draft:
    from riata.data.schema.toml_text import schema_text

    schema = Schema.from_table(table)
    head = [HEAD.format(title=_quoted(Path(title).name)[1:-1]), *(f"# {each}" for each in remarks)]
    return Draft(schema, schema_text(schema, "\n".join(head)), remarks)


def _quoted(text: str) -> str:
    """Any text on one line of a comment."""
    return json.dumps(text, ensure_ascii=True)


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
