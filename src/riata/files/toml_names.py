"""How long the dotted names of a text in TOML are, found in one pass."""

from __future__ import annotations

import re

#: A text in TOML, cut up: what begins no token by itself is of no interest here. Strings come
#: first, so that nothing in them is taken for a name. One that is not closed ends the search, which
#: would otherwise look for its end again and again.
_TOKEN = re.compile(
    r'''
      (?P<part> """(?:[^\\]|\\.)*?"""(?:""|")? | "(?:[^"\\\n]|\\.)*+"
              | \'\'\'.*?\'\'\'(?:''|')?       | '[^'\n]*+'
              | [A-Za-z0-9_-]++ )
    | (?P<open> ["'] )
    | (?P<dot>  \. )
    | (?P<skip> [\ \t]++ )
    | (?P<else> \#[^\n]*+ | . )
    ''',
    re.VERBOSE | re.DOTALL,
)


def most_name_parts(text: str) -> int:
    """The number of parts of the longest name, where "a.b.c" has three."""
    most = parts = 0
    after_dot = False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "skip":
            continue
        if kind == "open":
            raise ValueError("a string is not closed")
        if kind == "part":
            parts = parts + 1 if after_dot else 1
            most = max(most, parts)
        elif kind == "else":
            parts = 0
        after_dot = kind == "dot"
    return most
