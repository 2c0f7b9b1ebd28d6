"""Compiled code against plain sums, at random steps: for tests, audits and the careful.

With the environment variable `RIATA_SELF_CHECK=1` every release of compiled selections stops at one
random step. All columns are evaluated there by compiled code and by the engine's plain sums, and
the bounds that selections rest on are compared with them.

*Privacy.* A check draws no noise and changes no state, so releases are the same with and without
it. It says nothing unless the code is wrong, and then not by how much.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from riata.engines.compiled.bounds import between, hot_between
from riata.engines.compiled.jit import compiled
from riata.engines.compiled.selection import total_of
from riata.engines.compiled.state import SIZE, STEPS
from riata.errors import InternalError
from riata.queries import FrankWolfePath, Query

VARIABLE = "RIATA_SELF_CHECK"

#: What float64 may make of a score, relative to the largest that the size of its column allows.
_ROUNDING = 2.0**-40


class Evaluated(NamedTuple):
    """Of every column: its sum in whole steps, its score, and bounds on that."""

    totals: np.ndarray
    scores: np.ndarray
    lows: np.ndarray
    highs: np.ndarray


@compiled
def evaluate_all(columns, rows, known, hot, facts, now, n_hot, totals, lows, highs):
    for k in range(len(known)):
        totals[k] = total_of(k, columns, rows, now, facts)
        lows[k], highs[k] = between(k, now, known)
    for h in range(n_hot):
        lows[hot.columns[h]], highs[hot.columns[h]] = hot_between(h, now, known, hot, facts)


def evaluated(
    columns: Any, rows: Any, known: np.ndarray, hot: Any, facts: Any, now: Any, n_hot: int
) -> Evaluated:
    """What compiled code makes of all columns."""
    p = len(known)
    totals, (lows, highs) = np.empty(p, np.int64), np.empty((2, p))
    evaluate_all(columns, rows, known, hot, facts, now, n_hot, totals, lows, highs)
    scores = totals * (columns.relative / (STEPS * facts.slope_steps)) * now.largest
    room = _ROUNDING * now.largest * known[:, SIZE].astype(np.float64)
    return Evaluated(totals, scores, lows - room, highs + room)


class SelfCheck:
    """Stops at one random step of each release, and compares with the plain sums of an engine."""

    def __init__(self, total: Callable[[Query], np.ndarray]) -> None:
        self._total = total
        self._until = self._at = -1

    @classmethod
    def if_wanted(cls, total: Callable[[Query], np.ndarray]) -> SelfCheck | None:
        """A check if the environment asks for one."""
        return cls(total) if os.environ.get(VARIABLE, "") not in ("", "0") else None

    def stop(self, step: int, until: int) -> int:
        """Up to which step to go, on the way to another."""
        if until != self._until and step < until:
            # Not by the noise, which must not change.
            self._until, self._at = until, step + secrets.randbelow(until - step)
        return self._at if step <= self._at < until else until

    def compare(self, found: Evaluated, path: FrankWolfePath, vertices: np.ndarray) -> None:
        """Raise unless compiled code is right about all columns."""
        self._at = -1
        expected = self._total(path.utilities(path.theta(vertices)))
        inside = (found.lows <= found.scores) & (found.scores <= found.highs)
        if not (np.array_equal(found.totals, expected) and inside.all()):
            raise InternalError(
                "Compiled selections do not agree with plain sums: the code, or what it was "
                'compiled to, is wrong. Use engine="numpy", and please report this with the '
                "versions of riata, NumPy and numba."
            )
