"""How large slopes, entries and rows are: counts in public bins.

A bin holds the sizes from one power of two to the next, or a part of them, so that a private scale
needs no guess of it. Each row adds to its bins at most 1 in all, so the noise of a count does not
depend on any bound. Proofs are in docs/privacy/scales.md.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from riata.grid import X_STEPS, slices, some_rows
from riata.queries.base import Counts, ProblemQuery
from riata.queries.block import Block, Reads
from riata.queries.gradient import MeanSlope
from riata.queries.support import Support
from riata.vectors import Vector

#: Bin 0 is for size 0. The sizes from one power of two to the next are cut into so many bins.
PARTS = 2
N_BINS = PARTS * X_STEPS.bit_length() + 1

#: A row's share of a bin is a whole number of steps, at most this many.
SHARE_STEPS = 2**16

#: Of a row with more entries than this, about so many are looked at.
ENTRIES_LOOKED_AT = 64

#: Multiples of this odd number, modulo 2^32, put the columns into an order in which the first ones
#: are evenly spread: 2^32 over the golden ratio.
_SPREAD = 2654435769

#: Rows are looked at so many at a time, and so many entries, to stay in the cache.
_ROWS_AT_ONCE, _ENTRIES_AT_ONCE = 2**14, 2**17


def upper_edges(parts: int = PARTS) -> np.ndarray:
    """Where each bin ends, as a part of the largest size; each power of two is cut into `parts`."""
    octave, part = np.divmod(np.arange(X_STEPS.bit_length() * parts), parts)
    ends = np.ldexp(1 + (part + 1) / parts, octave) / X_STEPS
    return np.concatenate([[0.0], np.minimum(ends, 1.0)])


def bins_of(steps: np.ndarray, parts: int = PARTS) -> np.ndarray:
    """The bin of each size, in whole steps up to `X_STEPS`."""
    if parts & (parts - 1) == 0:  # the exponent and the first bits after it, in 32 bits
        bits = np.abs(np.asarray(steps, dtype=np.float32)).view(np.int32)
        places = (bits >> (24 - parts.bit_length())) - (127 * parts - 1)
        return np.maximum(places, 0)
    mantissa, exponent = np.frexp(np.abs(steps))
    part = ((2 * mantissa - 1) * parts).astype(np.int64)
    return np.where(exponent > 0, (exponent - 1) * parts + part + 1, 0)


class Sizes(ProblemQuery, Counts):
    """The part of the rows in each bin of sizes."""

    @property
    @abstractmethod
    def top(self) -> float:
        """The largest possible size."""

    @property
    def edges(self) -> np.ndarray:
        """Where each bin ends, as a part of the largest size."""
        return upper_edges()


@dataclass(frozen=True, eq=False)
class SlopeSizes(Sizes):
    """The sizes of the slopes at theta."""

    theta: Vector

    reads: ClassVar[Reads] = Reads.COLUMNS

    @cached_property
    def slope(self) -> MeanSlope:
        return MeanSlope(self.problem, self.theta)

    @property
    def model(self) -> Vector:
        return self.theta

    @property
    def top(self) -> float:
        return self.slope.slope_bound()

    def block_sum(self, block: Block) -> np.ndarray:
        coarse = self.slope.slope_steps / X_STEPS
        found = bins_of(np.rint(self.slope.slopes(block) / coarse))
        return np.bincount(found, minlength=N_BINS).astype(np.float64)


@dataclass(frozen=True, eq=False)
class EntrySizes(Sizes):
    """The sizes of a row's entries that are not 0, in units of their columns' bounds.

    Each row has one vote, divided among its entries. Each power of two is cut into `parts` bins.
    Of a row with many entries only some count: those whose columns come first in a public order,
    up to a rank that the number of the row's entries decides. So what a row adds depends on the row
    alone, in whatever form it is kept.
    """

    parts: int = PARTS

    asked_once: ClassVar[bool] = True

    top: ClassVar[float] = 1.0

    @property
    def edges(self) -> np.ndarray:
        return upper_edges(self.parts)

    @property
    def unit(self) -> Any:
        return 1 / (self.n_rows * SHARE_STEPS)

    def block_sum(self, block: Block) -> np.ndarray:
        x, total = block.rows, np.zeros(len(self.edges))
        ranks = column_ranks(x.shape[1])
        rows = _ROWS_AT_ONCE
        if sparse.issparse(x):
            rows = min(rows, _ENTRIES_AT_ONCE * x.shape[0] // max(x.size, 1))
        for few in slices(x.shape[0], max(1, rows // self.parts)):
            places, counts = _bins_of_rows(some_rows(x, few.start, few.stop), self.parts, ranks)
            entries = np.maximum(counts.sum(axis=1, keepdims=True), 1)
            # Rounded down: at most 1 vote. A quotient that is no whole number is far from one.
            shares = np.floor(counts * float(SHARE_STEPS) / entries)
            total[places] += shares.sum(axis=0)
        return total


@dataclass(frozen=True, eq=False)
class LengthSizes(Sizes):
    """The lengths of the rows on some columns, in units of the columns' bounds."""

    support: Support

    reads: ClassVar[Reads] = Reads.COLUMNS

    @property
    def top(self) -> float:
        return self.support.longest

    def block_sum(self, block: Block) -> np.ndarray:
        total = np.zeros(N_BINS)
        for _, rows in block.some_columns(self.support.columns):
            steps = np.ceil(self.support.lengths(rows) / self.top)
            found = bins_of(np.minimum(steps, X_STEPS))
            total += np.bincount(found, minlength=N_BINS)
        return total


@dataclass(frozen=True, eq=False)
class RowLengths(Sizes):
    """The Euclidean lengths of whole rows. Each power of two is cut into `parts` bins."""

    parts: int = PARTS

    @property
    def edges(self) -> np.ndarray:
        return upper_edges(self.parts)

    @property
    def top(self) -> float:
        return self.bounds.row_norm("l2", self.problem.n_features)

    def block_sum(self, block: Block) -> np.ndarray:
        steps = np.ceil(block.row_lengths(self.bounds) / self.top * X_STEPS)
        found = bins_of(np.minimum(steps, X_STEPS), self.parts)
        return np.bincount(found, minlength=len(self.edges)).astype(np.float64)


@lru_cache(maxsize=1)  # each block asks
def column_ranks(n_features: int) -> np.ndarray:
    """The place of each column in the order in which columns are looked at."""
    order = np.argsort(np.arange(n_features) * _SPREAD % 2**32, kind="stable")
    ranks = np.empty(n_features, dtype=np.int32)
    ranks[order] = np.arange(n_features)
    return ranks


@lru_cache(maxsize=4)
def _table_of_bins(parts: int) -> np.ndarray:
    """The bin of each size from 0 to `X_STEPS`: to look it up is quicker."""
    return bins_of(np.arange(X_STEPS + 1), parts)


def _bins_of_rows(x: Any, parts: int, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Some bins, and how many entries of each row lie in each, of those that are looked at.

    None lies in a bin that is left out, as bin 0 is. Where all are in one bin they count as one.
    """
    if not sparse.issparse(x):
        counts = _bins_of_dense_rows(x, parts, ranks)
        return np.arange(counts.shape[1]), counts
    n, table = x.shape[0], _table_of_bins(parts)
    if x.data.min(initial=X_STEPS) >= 1:
        entries, sizes = np.diff(x.indptr), [x.data.min(initial=X_STEPS), x.data.max(initial=1)]
        ends = table[np.array(sizes, dtype=np.intp)]
        if ends[0] == ends[1] and entries.max(initial=0) <= ENTRIES_LOOKED_AT:  # as of flags
            return ends[:1], np.minimum(entries, 1)[:, None]
    row, steps = _entries_looked_at(x, ranks)
    sizes = np.abs(steps).astype(np.intp)
    # The bins grow with the sizes: rows of flags have entries in one of them.
    first, last = table[sizes.min(initial=X_STEPS)], table[sizes.max(initial=1)]
    bins = np.arange(first, last + 1)
    if len(bins) > 1:
        row = row * len(bins) + (table[sizes] - first)
    return bins, np.bincount(row, minlength=n * len(bins)).reshape(n, len(bins))


def _entries_looked_at(x: Any, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row and the size of each entry of sparse rows that is looked at; none of them is 0."""
    n, p = x.shape
    entries = np.diff(x.indptr).astype(np.int64)
    row, column, steps = np.repeat(np.arange(n), entries), x.indices, x.data
    filled = steps != 0
    if not filled.all():
        row, column, steps = row[filled], column[filled], steps[filled]
        entries = np.bincount(row, minlength=n)
    if entries.max(initial=0) <= ENTRIES_LOOKED_AT:  # all of them
        return row, steps
    seen = ranks[column] < np.repeat(_most_rank(entries, p), entries)
    return row[seen], steps[seen]


def _bins_of_dense_rows(x: np.ndarray, parts: int, ranks: np.ndarray) -> np.ndarray:
    """`_bins_of_rows` of dense rows, so few at a time that they stay in the cache."""
    (n, p), bins = x.shape, len(upper_edges(parts))
    counts = np.zeros((n, bins), dtype=np.int64)
    for few in slices(n, max(1, _ENTRIES_AT_ONCE // max(p, 1))):
        most = _most_rank(np.add.reduce(x[few] != 0, axis=1, dtype=np.int64), p)
        full = most <= 2 * ENTRIES_LOOKED_AT
        # Full rows, of which a few columns are read, and the others, of which all are.
        for of in (full, ~full):
            rows = np.flatnonzero(of) + few.start
            if len(rows):
                columns = np.flatnonzero(ranks < most[of].max())
                together = x[few] if len(rows) == len(most) else x[rows]
                found = bins_of(together[:, columns], parts)
                found[ranks[columns] >= most[of, None]] = 0
                found = found + np.arange(len(rows))[:, None] * bins
                counted = np.bincount(found.ravel(), minlength=len(rows) * bins)
                counts[rows] = counted.reshape(len(rows), bins)
    counts[:, 0] = 0
    return counts


def _most_rank(entries: np.ndarray, n_features: int) -> np.ndarray:
    """Below which rank columns are looked at, in rows with so many entries that are not 0."""
    most = -(-ENTRIES_LOOKED_AT * n_features // np.maximum(entries, ENTRIES_LOOKED_AT))
    return most.astype(np.int32)  # at most the number of columns
