"""Numbers with their nouns, values as an error quotes them, and facts as a notebook shows them."""

from __future__ import annotations

import difflib
import html
import re
import reprlib
from collections.abc import Iterable

#: Characters of a wrong value that an error quotes.
_QUOTED = 80

#: A number with more digits than a person reads.
_LONG = re.compile(r"(?<![\w.])(?:\d+\.\d{4,}|\d{8,}\.\d+)(?:e[-+]?\d+)?")


def number_of(n: int, one: str, many: str | None = None) -> str:
    """Such as "1 report" or "2,000 reports"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def shape_of(n_rows: int, n_columns: int) -> str:
    """Such as "20,000 rows, 1 column"."""
    return f"{number_of(n_rows, 'row')}, {number_of(n_columns, 'column')}"


def rounded(text: str) -> str:
    """The text, with numbers of many decimals to six digits: for people, and not to be read."""
    return _LONG.sub(lambda found: f"{float(found[0]):.6g}", text)


def near_word(value: object, known: Iterable[str]) -> str:
    """The known word that was perhaps meant, or ""."""
    near = difflib.get_close_matches(value, list(known), n=1) if isinstance(value, str) else []
    return near[0] if near else ""


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """A question to put after an error about a word, with a space before it; or ""."""
    near = near_word(value, known)
    return f" Did you mean {near!r}?" if near else ""


def facts_html(sentence: str, rows: Iterable[tuple[str, str]], edge: str, colour: str) -> str:
    """A sentence in a colour, and facts by name, beside an edge in a colour."""
    cells = "".join(
        f'<tr><th style="text-align:left;padding:2px 12px 2px 0">{html.escape(key)}</th>'
        f'<td style="text-align:left">{html.escape(value)}</td></tr>'
        for key, value in rows
    )
    return (
        f'<div style="border-left:4px solid {edge};padding-left:12px">'
        f'<p style="color:{colour};font-weight:600">{html.escape(sentence)}</p>'
        f"<table>{cells}</table></div>"
    )


def shown(value: object) -> str:
    """A value of any size for an error: its beginning, made without making the whole."""
    try:
        text = _Short().repr(value)
    except (ValueError, RecursionError):  # too many digits, too deep
        return "not printable"
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


class _Short(reprlib.Repr):
    """Python's `repr`, cut off only where `shown` would cut it off."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 8
        self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = _QUOTED
        self.maxlong = self.maxother = 8 * _QUOTED

    def repr_str(self, x: str, level: int) -> str:
        return repr(x[: 2 * _QUOTED])


def listed(names: list[str], most: int = 10) -> str:
    """Names in a row, the first ones of many."""
    return ", ".join(names[:most]) + f" and {len(names) - most:,} more" * (len(names) > most)
