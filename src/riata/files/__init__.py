"""Reading files that somebody else made: within a limit of memory, and without running them."""

from riata.files.archive import Archive
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import json_size, parse_json, parse_toml, read_bytes

__all__ = [
    "MAX_BYTES",
    "Archive",
    "ReadLimit",
    "json_size",
    "parse_json",
    "parse_toml",
    "read_bytes",
]
