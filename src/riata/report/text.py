"""Names from outside as text that every page and every drawing can show, and tables of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: Control characters, halves of characters, and marks that turn the direction of a line.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028-\u202e\u2066-\u2069\ufffe\uffff]")


@dataclass(frozen=True)
class Table:
    """Cells of the columns in `numbers` are aligned as numbers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: frozenset[int] = frozenset()


def plain(text: object) -> str:
    """A text without characters that steer what is around it."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", str(text))


def shortened(text: object, most: int) -> str:
    """A text of at most so many characters."""
    text = plain(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def both_ends(text: object, most: int) -> str:
    """The beginning and the end: names of one feature's columns differ in their ends."""
    text = plain(text)
    if len(text) <= most:
        return text
    last = (most - 1) // 2
    return f"{text[: most - 1 - last]}…{text[-last:]}"


def capital(text: str) -> str:
    """The text with a capital first letter; all others stay as they are."""
    return text[:1].upper() + text[1:]
