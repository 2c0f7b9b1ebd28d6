"""The correlations of all columns, known exactly while slopes change on some rows.

A step of the greedy search moves one coefficient, so that slopes change on the rows that have an
entry in its column, and the sums of entry * slope of all columns follow by those rows alone. They
are whole numbers, the same as if they were summed anew. Columns with so few entries that they all
weigh about the same are one group, whose sums nobody asks for before one of them is proposed.
Proofs are in docs/privacy/rejection.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.engines.columns import SparseColumns
from riata.grid import BLOCK_ROWS, slices, some_rows, transposed
from riata.mechanisms.engine import Scores

#: The largest logarithm of a weight in the group of columns with few entries, when it is made, ...
_SMALL = 0.25

#: ... and when it is made anew: a selection that is paid more has larger ones.
_MOST_SMALL = 1.0

#: The other columns are grouped by bins of this width, in units of the logarithm of a weight.
_WIDTH, _BINS = 0.5, 120

#: With more changed rows than this part, all are summed.
_MOST_CHANGED = 0.5

#: Rows are summed with about so many entries at a time, to stay in the cache, and so many for each
#: column. SciPy makes 64 bits of them on the way.
_ENTRIES_AT_ONCE, _SUMS_A_COLUMN = 2**18, 8

#: More than what float64 makes of a utility, relative to it.
_ROUNDED_UP = 1 + 2.0**-44


class FollowedScores(Scores):
    """The sums of entry * slope, exactly, for a query whose columns all have one weight."""

    symmetric = True

    _query: Any
    _clipped: SparseColumns
    _rare: np.ndarray
    _large: np.ndarray
    _totals: np.ndarray
    _utilities: np.ndarray
    _groups: tuple[np.ndarray, np.ndarray]
    _starts: np.ndarray
    _order: np.ndarray
    _place: int

    def __init__(self, columns: SparseColumns) -> None:
        self._columns = columns
        self._steps: np.ndarray | None = None
        self._most, self._few = 0, 0

    def at(self, query: Any, steps: np.ndarray, factor: float) -> None:
        """Go on to other slopes, in whole steps, of which the query makes utilities.

        `factor` times a utility is the logarithm of a weight.
        """
        self._query = query
        # The logarithm of a weight that one entry makes, at most.
        each = factor * query.utility(0, query.most * query.source.slope_steps)
        if query.most != self._most or self._few * each > _MOST_SMALL:
            most = self._columns.shape[0]
            self._split(query.most, int(_SMALL / each) if each * most > _SMALL else most)
        self._follow(steps)
        self._group(factor)
        self.version += 1

    def _split(self, most: int, few: int) -> None:
        """Keep the rows without the columns that have few entries, clipped at `most` steps."""
        self._steps, self._most = None, 0  # until all of it is done
        rare = self._columns.counts <= few
        self._rare, self._large = np.flatnonzero(rare), np.flatnonzero(~rare)
        self._x = self._columns.rows_of(self._large, most)
        self._clipped = self._columns.clipped(most)
        self._few, self._most = few, most  # in this order: it counts from the last of them on

    def _follow(self, steps: np.ndarray) -> None:
        """Bring the sums of the other columns up to date."""
        before, self._steps = self._steps, None  # not known while they are half changed
        changed = None if before is None else np.flatnonzero(steps != before)
        if before is None or changed is None or len(changed) > _MOST_CHANGED * len(steps):
            self._totals = np.zeros(len(self._large), dtype=np.int64)
            for few in slices(len(steps), self._rows_at_once):
                self._add(some_rows(self._x, few.start, few.stop), steps[few])
        else:
            for few in slices(len(changed), self._rows_at_once):
                rows = changed[few]
                self._add(self._x[rows], steps[rows] - before[rows])
        self._steps = steps

    def _add(self, x: Any, slopes: np.ndarray) -> None:
        """Add entry * slope of some rows, so few that their sums are exact in float64."""
        self._totals += (transposed(x) @ slopes).astype(np.int64)

    @property
    def _rows_at_once(self) -> int:
        """So many rows have sums that float64 holds, and entries that need little memory.

        A slope changes by up to twice the largest.
        """
        entries = max(_ENTRIES_AT_ONCE, _SUMS_A_COLUMN * len(self._large))
        few = entries * self._x.shape[0] // max(self._x.nnz, 1)
        return int(min(max(few, 1), BLOCK_ROWS // 2))

    def _group(self, factor: float) -> None:
        """Columns in groups of similar utilities, with the largest size in each."""
        self._utilities = self._query.from_total(self._totals)
        sizes = np.abs(self._utilities)
        below = (sizes.max(initial=0.0) - sizes) * (factor / _WIDTH)
        bins = np.minimum(below, _BINS - 1).astype(np.uint8)
        self._order = np.argsort(bins, kind="stable")
        self._starts = np.flatnonzero(np.diff(bins[self._order].astype(np.int16), prepend=-1))
        counts = np.diff(self._starts, append=len(bins))
        largest = np.maximum.reduceat(sizes[self._order], self._starts) if len(bins) else sizes
        few = self._largest(self._few)
        self._groups = np.append(counts, len(self._rare)), np.append(largest, few)

    # What a draw asks for.

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        return self._groups

    def candidate(self, group: int, place: int) -> int:
        if group == len(self._starts):
            return int(self._rare[place])
        self._place = self._order[self._starts[group] + place]
        return int(self._large[self._place])

    def between(self, group: int, candidate: int) -> tuple[float, float]:
        if group < len(self._starts):
            value = float(self._utilities[self._place])
            return value, value
        most = self._largest(self._columns.work(candidate))
        return -most, most

    def exactly(self, group: int, candidate: int) -> float:
        if group < len(self._starts):
            return float(self._utilities[self._place])
        assert self._steps is not None
        return float(self._query.utility(candidate, self._clipped.sum(candidate, self._steps)))

    def _largest(self, entries: int) -> float:
        """The largest size of the utility of a column with so many entries, or a little more."""
        whole = entries * self._most * self._query.source.slope_steps
        return float(self._query.utility(0, whole)) * _ROUNDED_UP
