"""Reports of several stores together: one report for each token.

A token that was used at two collectors has a report at each of them. Of these one is kept. Which
one follows from the token and the reports alone, as by a fair coin: not from the order of the
stores, nor from the time, nor from anything that a sender could choose without the key of the
tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from riata.collect.store import Records
from riata.local import report_format
from riata.wording import number_of


class MergedReports(NamedTuple):
    """The reports of several stores, one for each token."""

    #: Each once for each store that has it; aggregators count it once.
    reports: np.ndarray
    #: Each once, in order.
    tokens: np.ndarray
    #: Tokens that came with several reports.
    doubled: int
    #: For each store, how many of its reports do not count: another one of their tokens does.
    left_out: tuple[int, ...]

    def warning(self, names: Sequence[str]) -> str | None:
        """A sentence about doubled tokens, if there are any."""
        if not self.doubled:
            return None
        counts = (f"{n:,} in {name}" for n, name in zip(self.left_out, names, strict=True) if n)
        return (
            f"{number_of(self.doubled, 'token')} came with different reports to several stores. "
            f"One report of each counts; left out: {', '.join(counts)}."
        )


def merge(stores: Sequence[Records]) -> MergedReports:
    """Keep one report of each token."""
    paired = np.concatenate([*(one.paired for one in stores), np.empty(0, np.uint64)])
    tokens = np.concatenate([*(one.tokens for one in stores), np.empty(0, np.uint64)])
    order = np.lexsort((paired, tokens))
    paired, tokens = paired[order], tokens[order]
    first = np.ones(len(tokens), dtype=bool)
    first[1:] = tokens[1:] != tokens[:-1]
    repeat = ~first  # the same report at another collector is a retry
    repeat[1:] &= paired[1:] == paired[:-1]
    paired, tokens, first = paired[~repeat], tokens[~repeat], first[~repeat]
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(tokens))
    several = np.flatnonzero(ends - starts > 1)
    kept = np.ones(len(tokens), dtype=bool)
    for start, end in zip(starts[several].tolist(), ends[several].tolist(), strict=True):
        kept[start:end] = False
        kept[start + _choose(int(tokens[start]), paired[start:end])] = True
    dropped = np.setdiff1d(paired[~kept], paired[kept])
    seeds = [one.seeds for one in stores]
    counted = [part[~np.isin(part, dropped)] for part in seeds]
    return MergedReports(
        np.concatenate([*counted, np.empty(0, np.uint64)]),
        tokens[starts],
        len(several),
        tuple(len(one) - len(part) for one, part in zip(seeds, counted, strict=True)),
    )


def _choose(token: int, reports: np.ndarray) -> int:
    """Which of the reports of one token counts."""
    first = token.to_bytes(8, "big")
    digests = [hashlib.sha256(first + report_format.to_bytes(one)).digest() for one in reports]
    return min(range(len(digests)), key=digests.__getitem__)
