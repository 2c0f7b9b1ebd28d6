"""What a store of reports does, and what it holds."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np


class Records(NamedTuple):
    """What a store holds: words of 64 bits."""

    #: Those that came without a token.
    reports: np.ndarray
    #: Those that came with one, and its number as `Tokens.read` makes it. Several tokens may have
    #: come with one report.
    paired: np.ndarray
    tokens: np.ndarray

    @property
    def seeds(self) -> np.ndarray:
        """All reports, whether they came with a token, without one, or both."""
        return np.concatenate([self.reports, np.setdiff1d(self.paired, self.reports)])


class Store(Protocol):
    """Where the reports of one task are written."""

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray:
        """Store the reports that are new, durably, and return which were accepted.

        A report that is there already is accepted again and changes nothing. With tokens, a new
        report is accepted only if its token is unused; a token that comes with a report that is
        there already is used too. Raises OSError with ENOSPC if there is no room: then no report is
        stored and no token is used.
        """

    def contains(self, seeds: np.ndarray) -> np.ndarray:
        """Which of the reports are there."""

    def probe(self) -> None:
        """Raise an error if a report could not be stored now."""

    def __len__(self) -> int: ...

    def close(self) -> None: ...


def accepted_reports(seeds: np.ndarray, unused: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """Which reports are accepted, where some have an unused token and some are stored already.

    The same report twice in one call is accepted twice if it is once.
    """
    accepted: np.ndarray = unused | stored
    accepted |= np.isin(seeds, seeds[accepted])
    return accepted
