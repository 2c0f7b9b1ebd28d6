"""The kinds of features by name, and how each is read from a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from riata.data.schema.dates import CYCLES, PARTS, Date, read_time
from riata.data.schema.features import MOST_COLUMNS, Choice, Feature, YesNo
from riata.data.schema.hashed import (
    BUCKETS_OF_IDS,
    BUCKETS_OF_TEXT,
    MOST_NGRAMS,
    Hash,
    Text,
)
from riata.data.schema.interaction import Interaction
from riata.data.schema.number import MOST_PIECES, Count, Number, in_order
from riata.data.schema.schema_fields import SchemaFields
from riata.errors import SchemaError
from riata.files.fields import SMALLEST

#: What a date is taken apart into, where the schema does not say.
_USUAL_PARTS, _USUAL_CYCLES = ["trend", "weekday"], ["year"]


def read_features(tables: list[SchemaFields]) -> tuple[Feature, ...]:
    """From the tables of a schema. Interactions are read last: they name the others."""
    kinds = [fields.one_of("kind", tuple(KINDS)) for fields in tables]
    found: dict[int, Feature] = {}
    for place, (fields, kind) in enumerate(zip(tables, kinds, strict=True)):
        if kind != Interaction.kind:
            found[place] = KINDS[kind](fields, fields.name("name"))
            fields.end()
    named = {feature.name: feature for feature in found.values()}
    for place, (fields, kind) in enumerate(zip(tables, kinds, strict=True)):
        if kind == Interaction.kind:
            found[place] = _interaction(fields, named)
            fields.end()
    return tuple(found[place] for place in range(len(tables)))


def _number(fields: SchemaFields, name: str) -> Number:
    low, high = fields.pair("bounds")
    return _with_pieces(fields, Number(name, (low, high), fields.center(low, high)))


def _count(fields: SchemaFields, name: str) -> Count:
    found = _with_pieces(fields, Count(name, (0.0, fields.scale("most")), 0.0))
    assert isinstance(found, Count)
    return found


def _with_pieces(fields: SchemaFields, number: Number) -> Number:
    """The number with its knots or bins, if the schema says which."""
    knots, bins = fields.take("knots", None), fields.take("bins", None)
    if knots is not None and bins is not None:
        raise fields.wrong("bins", bins, "a number has knots or bins, and not both")
    given, name = (knots, "knots") if bins is None else (bins, "bins")
    if given is None:
        return number
    made = type(number)
    low, high = number.bounds
    if isinstance(given, list | tuple):
        points = _points(fields, name, given, low, high)
    else:
        count = fields.alone(name, given).whole(name, least=0, most=MOST_PIECES)
        if count == 0 or (name == "bins" and count == 1):
            return made(number.name, number.bounds, number.center, knots=())
        if name == "knots" and count < 2:
            raise fields.wrong(name, given, "a curve has at least 2 knots; 0 stands for a line")
        points = number.points(count + (name == "bins"))
        points = points if name == "knots" else points[1:-1]
    if name == "knots" and not in_order(number.scaled(np.array(points)).tolist()):
        raise fields.wrong(name, given, "two of them are too near to each other on its scale")
    how: Mapping[str, Any] = {name: points}
    return made(number.name, number.bounds, number.center, **how)


def _points(
    fields: SchemaFields, name: str, given: Any, low: float, high: float
) -> tuple[float, ...]:
    """Points that a schema lists."""
    again = [fields.alone(name, each).number(name) for each in given]
    least = 2 if name == "knots" else 1
    inside = all(low <= x <= high if name == "knots" else low < x < high for x in again)
    if len(again) < least or not in_order(again) or not inside:
        where = "from one bound to the other" if name == "knots" else "between the bounds"
        raise fields.wrong(name, given, f"it must be numbers in order, at least {least}, {where}")
    if any(b - a < 2.0 * SMALLEST for a, b in pairwise(again)):
        raise fields.wrong(name, given, "two of them are too near to each other")
    return tuple(again)


def _choice(fields: SchemaFields, name: str) -> Choice:
    choices = fields.labels("choices")
    ordered = fields.flag("ordered", default=False)
    if ordered and len(choices) < 2:
        raise fields.wrong("ordered", True, "one choice has no order; list at least two")
    return Choice(name, choices, fields.flag("other", default=True), ordered)


def _text(fields: SchemaFields, name: str) -> Text:
    buckets = fields.whole("buckets", BUCKETS_OF_TEXT, least=1, most=MOST_COLUMNS)
    return Text(name, buckets, fields.whole("ngrams", 1, least=1, most=MOST_NGRAMS))


def _hash(fields: SchemaFields, name: str) -> Hash:
    return Hash(name, fields.whole("buckets", BUCKETS_OF_IDS, least=1, most=MOST_COLUMNS))


def _date(fields: SchemaFields, name: str) -> Date:
    given = fields.take("bounds")
    pair = list(given) if isinstance(given, list | tuple) else []
    ends = tuple(end.isoformat() if isinstance(end, date) else end for end in pair)
    times = [read_time(end) if isinstance(end, str) else None for end in ends]
    if len(times) != 2 or times[0] is None or times[1] is None or not times[0] < times[1]:
        why = 'it must be the first and the last date, such as ["2013-01-01", "2013-12-31"]'
        raise fields.wrong("bounds", given, why)
    parts, cycles = (
        _words(fields, "parts", tuple(PARTS), _USUAL_PARTS),
        _words(fields, "cycles", CYCLES, _USUAL_CYCLES),
    )
    if not parts and not cycles:
        raise fields.wrong("parts", [], "without parts and cycles nothing is left of a date")
    form = fields.text("format", "")
    if form and not _is_form(form, times[0]):
        raise fields.wrong("format", form, 'it must be a form of strptime, such as "%d/%m/%Y"')
    return Date(name, (ends[0], ends[1]), parts, cycles, form)


def _is_form(form: str, time: datetime) -> bool:
    """Whether dates that are written in this form can be read again."""
    try:
        return form.isascii() and read_time(time.strftime(form), form) is not None
    except ValueError:
        return False


def _words(
    fields: SchemaFields, name: str, known: tuple[str, ...], usual: list[str]
) -> tuple[str, ...]:
    """Some of the known words, each once."""
    why = f"it must be a list of some of {', '.join(known)}"
    words = fields.texts(name, usual, why)
    if not set(words) <= set(known):
        raise fields.wrong(name, list(words), why)
    return words


def _interaction(fields: SchemaFields, named: Mapping[str, Feature]) -> Interaction:
    parts = fields.names("of")
    if len(parts) != 2:
        raise fields.wrong("of", list(parts), "it must name two features")
    known = [name for name, feature in named.items() if not feature.hashed]
    for part in parts:
        if part not in known:
            why = "it must name two features of the schema that are not hashed"
            raise fields.wrong("of", part, why, known)
    first, second = named[parts[0]], named[parts[1]]
    name = fields.text("name", "") or f"{first.name} * {second.name}"
    made = Interaction(name, first, second)
    if made.n_columns > MOST_COLUMNS:
        raise SchemaError(f"The interaction {name!r} has {made.n_columns} columns: too many.")
    return made


KINDS: dict[str, Callable[[SchemaFields, str], Feature]] = {
    Number.kind: _number,
    Count.kind: _count,
    YesNo.kind: lambda fields, name: YesNo(name),
    Choice.kind: _choice,
    Text.kind: _text,
    Hash.kind: _hash,
    Date.kind: _date,
    Interaction.kind: lambda fields, name: _interaction(fields, {}),
}
