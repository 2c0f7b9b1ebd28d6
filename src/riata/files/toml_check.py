"""A look at a text in TOML before it is parsed, for what the parser takes too long over."""

from __future__ import annotations

import re

#: No file of riata has a name of more than three parts.
_MOST_PARTS = 32
#: Characters of a name or a number outside of quotes.
_LONGEST = 1024
#: A text in TOML, cut up: what begins no token by itself is of no interest here. Strings come
#: first, so that nothing in them is taken for a name. One that is not closed ends the search, which
#: would otherwise look for its end again and again. Nothing is tried twice, which would need memory
#: for each character.
_TOKEN = re.compile(
    r'''
      (?P<quoted> """(?:[^"\\]|\\.|"(?!""))*+"""(?:""|")? | "(?:[^"\\\n]|\\.)*+"
                | \'\'\'.*?\'\'\'(?:''|')?         | '[^'\n]*+' )
    | (?P<bare> [A-Za-z0-9_-]++ )
    | (?P<open> ["'] )
    | (?P<dot>  \. )
    | (?P<skip> [\ \t]++ )
    | (?P<else> \#[^\n]*+ | . )
    ''',
    re.VERBOSE | re.DOTALL,
)


def check_toml(text: str) -> None:
    """Raise ValueError if a name has many parts, or if a name or a number is long.

    The parser takes the square of the parts of a name, as in a.b.c, and hundreds of bytes for each
    digit of a number.
    """
    parts = 0
    after_dot = False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "skip":
            continue
        if kind == "open":
            raise ValueError("a string is not closed")
        if kind == "bare" and token.end() - token.start() > _LONGEST:
            raise ValueError(f"a name or a number has more than {_LONGEST} characters")
        if kind in ("bare", "quoted"):
            parts = parts + 1 if after_dot else 1
            if parts > _MOST_PARTS:
                raise ValueError(f"a name has more than {_MOST_PARTS} parts")
        after_dot = kind == "dot"
