"""A schema as a file that explains itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from riata.data.schema.numeric_block import NumericBlock

if TYPE_CHECKING:
    from riata.data.schema import Schema

_HEAD = """\
# A riata schema: what each column is, from public knowledge alone. Every number in it is public,
# and none may be taken from the private rows: noise is scaled to them."""
#: Where comments begin, if the line is shorter.
_COMMENTS_AT = 36
#: Fields whose numbers mean the same as floats and as whole numbers.
_NUMBERS = frozenset({"bounds", "center", "most", "knots", "bins", "bound"})


def schema_text(schema: Schema, head: str = _HEAD) -> str:
    """The TOML of a schema, each line with its meaning."""
    parts = [head, _lines(_top(schema))]
    if isinstance(schema.features, NumericBlock):
        parts.append("[features]\n" + _lines(schema.features.lines()))
    else:
        for feature in schema.features:
            lines = [("name", feature.name, ""), ("kind", feature.kind, ""), *feature.lines()]
            parts.append("[[features]]\n" + _lines(lines))
    if schema.target is not None:
        parts.append("[target]\n" + _lines(schema.target.lines()))
    return "\n\n".join(part for part in parts if part) + "\n"


def _top(schema: Schema) -> list[tuple[str, Any, str]]:
    lines: list[tuple[str, Any, str]] = []
    if schema.person:
        k = schema.rows_of_a_person
        lines.append(("person", schema.person, "the column that says whose row it is"))
        lines.append(("rows_of_a_person", k, "each person counts as so many rows"))
    if schema.people is not None:
        lines.append(("people", schema.people, "extra ones are dropped at random"))
    if schema.rows is not None:
        lines.append(("rows", schema.rows, "extra rows are dropped, missing ones are blank"))
    if schema.unpenalized:
        lines.append(("unpenalized", list(schema.unpenalized), "always in the model as they are"))
    if schema.ignore:
        lines.append(("ignore", list(schema.ignore), "columns that are not used"))
    if schema.ignore_others:
        lines.append(("ignore_others", True, "columns that are not named here are not used"))
    if schema.separator != ",":
        lines.append(("separator", schema.separator, "between the fields of a CSV file"))
    return lines


def _lines(lines: list[tuple[str, Any, str]]) -> str:
    written = []
    for name, value, meaning in lines:
        line = f"{name} = {_value(_plain(value) if name in _NUMBERS else value)}"
        written.append(f"{line:<{_COMMENTS_AT}} # {meaning}" if meaning else line)
    return "\n".join(written)


def _plain(value: Any) -> Any:
    """Whole numbers without a decimal point."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)
