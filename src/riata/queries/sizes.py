"""How large slopes, entries and rows are: counts in public bins.

A bin holds the sizes from one power of two to the next, or a part of them, so that a private scale
needs no guess of it. Each row adds to its bins at most 1 in all, so the noise of a count does not
depend on any bound. Proofs are in docs/privacy/scales.md.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
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

_ROWS_AT_ONCE = 2**14


def upper_edges(parts: int = PARTS) -> np.ndarray:
    """Where each bin ends, as a part of the largest size; each power of two is cut into `parts`."""
    octave, part = np.divmod(np.arange(X_STEPS.bit_length() * parts), parts)
    ends = np.ldexp(1 + (part + 1) / parts, octave) / X_STEPS
    return np.concatenate([[0.0], np.minimum(ends, 1.0)])


def bins_of(steps: np.ndarray, parts: int = PARTS) -> np.ndarray:
    """The bin of each size, in whole steps up to `X_STEPS`."""
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

    top: ClassVar[float] = 1.0

    @property
    def edges(self) -> np.ndarray:
        return upper_edges(self.parts)

    @property
    def unit(self) -> Any:
        return 1 / (self.n_rows * SHARE_STEPS)

    def block_sum(self, block: Block) -> np.ndarray:
        x, bins = block.rows, len(self.edges)
        total, ranks = np.zeros(bins), column_ranks(x.shape[1])
        for few in slices(x.shape[0], max(1, _ROWS_AT_ONCE // self.parts)):
            counts = _bins_of_rows(some_rows(x, few.start, few.stop), self.parts, ranks)
            row, place = np.nonzero(counts)
            entries = counts.sum(axis=1)[row]
            shares = counts[row, place] * SHARE_STEPS // entries  # rounded down: at most 1 vote
            total += np.bincount(place, shares, minlength=bins)
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


def column_ranks(n_features: int) -> np.ndarray:
    """The place of each column in the order in which columns are looked at."""
    order = np.argsort(np.arange(n_features) * _SPREAD % 2**32, kind="stable")
    ranks = np.empty(n_features, dtype=np.int64)
    ranks[order] = np.arange(n_features)
    return ranks


def _bins_of_rows(x: Any, parts: int, ranks: np.ndarray) -> np.ndarray:
    """How many entries of each row lie in each bin, of those that are looked at; none in bin 0."""
    n, bins = x.shape[0], len(upper_edges(parts))
    row, steps = _entries_looked_at(x, ranks)
    counts = np.bincount(row * bins + bins_of(steps, parts), minlength=n * bins)
    return counts.reshape(n, bins)


def _entries_looked_at(x: Any, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row and the size of each entry that is looked at; none of them is 0."""
    n, p = x.shape
    if sparse.issparse(x):
        row = np.repeat(np.arange(n), np.diff(x.indptr))
        filled = x.data != 0
        row, column, steps = row[filled], x.indices[filled], x.data[filled]
        seen = ranks[column] < _most_rank(np.bincount(row, minlength=n), p)[row]
        return row[seen], steps[seen]
    most = _most_rank(np.count_nonzero(x, axis=1), p)
    found = []
    # Full rows, of which a few columns are read, and the others, of which all are.
    for limit, of in (
        (2 * ENTRIES_LOOKED_AT, most <= 2 * ENTRIES_LOOKED_AT),
        (p, most > 2 * ENTRIES_LOOKED_AT),
    ):
        rows, columns = np.flatnonzero(of), np.flatnonzero(ranks < limit)
        if len(rows):
            some = x[np.ix_(rows, columns)]
            seen = (some != 0) & (ranks[columns] < most[rows, None])
            found.append((np.repeat(rows, seen.sum(axis=1)), some[seen]))
    row, steps = (np.concatenate(each) for each in zip(*found, strict=True))
    return row, steps


def _most_rank(entries: np.ndarray, n_features: int) -> np.ndarray:
    """Below which rank columns are looked at, in rows with so many entries that are not 0."""
    return -(-ENTRIES_LOOKED_AT * n_features // np.maximum(entries, ENTRIES_LOOKED_AT))
