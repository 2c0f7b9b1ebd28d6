"""A report as it is sent: the eight bytes of its seed, most significant byte first."""

from __future__ import annotations

import numpy as np

REPORT_BYTES = 8


def to_bytes(seeds: np.ndarray) -> bytes:
    """Reports one after another."""
    return seeds.astype(">u8").tobytes()


def from_bytes(data: bytes | bytearray | memoryview) -> np.ndarray:
    """The seeds of reports that stand one after another; an incomplete last one is left out."""
    whole = len(data) // REPORT_BYTES
    return np.frombuffer(data, dtype=">u8", count=whole).astype(np.uint64)


def first_occurrences(words: np.ndarray) -> np.ndarray:
    """Which words occur in an array for the first time."""
    first = np.zeros(len(words), dtype=bool)
    first[np.unique(words, return_index=True)[1]] = True
    return first
