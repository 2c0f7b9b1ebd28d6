"""JSON and TOML from strangers: what parsing may take is known before it begins."""

from __future__ import annotations

import json
import os
import tomllib
from collections import Counter
from typing import Any

from riata.files.limit import ReadLimit
from riata.files.toml_check import check_toml

#: Bytes that a byte of text may become: read, decoded with four bytes for each character, cut out
#: as a string, and once more on the way.
_BYTES_OF_TEXT = 16
#: What each sign of JSON can bring into being at most: a list, a table, an item, a name.
_JSON = {"[": 128, "{": 256, ",": 128, ":": 128}
#: The same for TOML, whose parser keeps a kilobyte of its own for each part of each name.
_TOML = {"[": 1024, "{": 512, ",": 128, "=": 1024, ".": 1536}
_AT_ONCE = 2**20


def read_bytes(path: str | os.PathLike[str], limit: ReadLimit, what: str) -> bytes:
    """All of a file, if it may be so large. `what` is such as "the task file"."""
    parts = []
    try:
        with open(path, "rb") as file:
            while part := file.read(_AT_ONCE):
                limit.take(2 * len(part), f"The file {os.fspath(path)!r}")
                parts.append(part)
    except OSError as problem:
        raise limit.error(f"Cannot read {what} {path}: {problem.strerror}.") from None
    return b"".join(parts)


def parse_json(text: bytes | str, limit: ReadLimit, what: str) -> Any:
    """The value of a text in JSON, in which no name may stand twice. `what` begins a sentence."""

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
            raise limit.error(
                f"{what}: the field {twice[:80]} stands twice in one table. Remove one."
            )
        return found

    limit.take(json_size(text), what)
    try:
        return json.loads(_decoded(text), object_pairs_hook=table)
    except limit.error:
        raise
    except (ValueError, RecursionError) as problem:
        raise limit.error(f"{what} is not JSON: {problem}.") from None


def parse_toml(text: bytes | str, limit: ReadLimit, what: str) -> dict[str, Any]:
    """The table of a text in TOML. `what` begins a sentence."""
    limit.take(_size(text, _TOML), what)
    try:
        decoded = _decoded(text)
        check_toml(decoded)
        return tomllib.loads(decoded)
    except (ValueError, RecursionError) as problem:
        raise limit.error(f"{what} is not TOML: {problem}.") from None


def json_size(text: bytes | str) -> int:
    """The most memory that this text in JSON can take, and what it describes."""
    return _size(text, _JSON)


def _size(text: bytes | str, signs: dict[str, int]) -> int:
    if isinstance(text, str):
        return _BYTES_OF_TEXT * len(text) + sum(text.count(s) * n for s, n in signs.items())
    counts = (text.count(sign.encode()) * n for sign, n in signs.items())
    return _BYTES_OF_TEXT * len(text) + sum(counts)


def _decoded(text: bytes | str) -> str:
    return text.decode() if isinstance(text, bytes) else text
