"""The scores of all columns, known up to bounds while slopes change little by little.

A snapshot computes all scores in one pass over the entries. Later slopes are a multiple of those of
the snapshot and a rest, and the rest moves the score of a column by at most

    min(length of the column * length of the rest, size of the column * largest of the rest).

So nothing has to be computed for most columns, and single ones can be evaluated. A column that is
evaluated gets bounds of its own. When more entries were read in vain than half of all, there is a
new snapshot. Proofs are in docs/privacy/rejection.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.engines.columns import Columns
from riata.grid import BLOCK_ROWS

#: Scores are grouped by bins of this width, in units of the logarithm of a weight, ...
_WIDTH, _BINS = 0.5, 120

#: ... and by the length of the column, in powers of the root of two.
_LENGTHS = 40

#: What float64 makes of a score, relative to the largest that a column's size allows.
_ROUNDING = 2.0**-44

#: What one operation on each of so many numbers may round.
_EACH = 2.0**-51

#: After as much work in vain as to read this part of all entries there is a snapshot. A candidate
#: that is proposed in vain takes as long as to read so many entries.
_WASTE, _PROPOSAL = 0.5, 4_000

#: An evaluated column gets bounds of its own if this much better ones than before, ...
_LOOSE = 0.5

#: ... and so many columns may have them.
_MOST_SINGLES = 512

#: Bounds may be this much worse, in the same units, if that makes a snapshot quicker.
_SLIGHT = 2.0**-6

#: Squares of slopes between these neither vanish nor overflow, ...
_SMALLEST, _LARGEST = 1e-100, 1e100

#: ... and float64 knows logarithms of weights up to this size well enough.
_LARGEST_LOG = 2.0**40

_SINGLE = np.dtype(
    [
        ("column", np.int64),
        ("score", np.float64),
        ("length", np.float64),
        ("size", np.float64),
        ("length_before", np.float64),
        ("largest_before", np.float64),
    ]
)


def ordinary(query: Any, factor: float) -> bool:
    """Whether the bounds below are good for a query: a question of public numbers."""
    slope = query.source.slope_bound()
    return _SMALLEST <= slope <= _LARGEST and factor * query.row_bound("linf") <= _LARGEST_LOG


class DriftingScores:
    """The sums of entry * slope * weight over the rows, for every column.

    Parameters
    ----------
    columns : Columns
    """

    _query: Any
    _slopes: np.ndarray
    _largest: float
    _way_length: float
    _way_largest: float
    _counts: np.ndarray
    _starts: np.ndarray
    _order: np.ndarray
    _singles: np.ndarray
    _n_singles: int
    _rough: float

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        n_rows = columns.shape[0]
        # Sums of more rows than are exact may round at every addition.
        self._rounding = _ROUNDING + (n_rows * _EACH if n_rows > BLOCK_ROWS else 0.0)
        self._root = n_rows**0.5
        self._sum_rounding = 1 + _ROUNDING + n_rows * _EACH
        self._steps: np.ndarray | None = None
        self._buffer = np.empty(n_rows)
        self._whole = False  # not while what is known is half changed, as by an interrupt
        self.version = 0
        self.passes = 0.0

    def forget(self) -> None:
        """Begin with a snapshot: the next slopes have nothing to do with the last ones."""
        self._steps = None

    def at(self, query: Any, steps: np.ndarray, factor: float) -> None:
        """Go on to other slopes.

        Parameters
        ----------
        query : VertexUtilities or Correlations
            What makes utilities of the scores.
        steps : ndarray of shape (n_rows,)
            The slopes, in whole steps.
        factor : float
            What a utility is multiplied by, to be the logarithm of a weight.
        """
        slopes, largest = steps * query.source.slope_unit, query.source.slope_bound()
        fresh = self._steps is None or not (self._whole and query.same_units(self._query))
        if not fresh and self._n_singles:
            np.subtract(slopes, self._slopes, out=self._buffer)
            moved_length, moved_largest = self._norms(_EACH * (largest + self._largest))
            # Rounded up, so that later differences are at least the sum of the moves.
            self._way_length = (self._way_length + moved_length) * (1 + _EACH)
            self._way_largest = (self._way_largest + moved_largest) * (1 + _EACH)
        self._query, self.mirrored, self._factor = query, query.mirrored, factor
        self._steps, self._slopes, self._largest = steps, slopes, largest
        if fresh:
            self._snapshot()
        else:
            self._set_rest()
            self.version += 1

    # What a draw asks for.

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        drift = np.minimum(
            self._group_length * self._rest_length, self._group_size * self._rest_largest
        )
        drift += self._multiple * (self._group_score + self._rough)
        singles = self._singles[: self._n_singles]
        if not len(singles):
            return self._counts, drift
        own = np.abs(singles["score"]) if self.mirrored else singles["score"]
        bounds = np.concatenate([drift, own + self._single_drift(singles)])
        return np.concatenate([self._counts, np.ones(len(own), dtype=np.int64)]), bounds

    def rejected(self) -> None:
        """A candidate was proposed in vain."""
        self._wasted += _PROPOSAL
        if self._wasted > _WASTE * self._columns.size:
            self._snapshot()

    def candidate(self, group: int, place: int) -> int:
        if group >= len(self._counts):
            return int(self._singles["column"][group - len(self._counts)])
        self._at = int(self._starts[group]) + place
        return int(self._order[self._at])

    def between(self, group: int, candidate: int) -> tuple[float, float]:
        if group >= len(self._counts):
            single = self._singles[group - len(self._counts)]
            centre, drift = float(single["score"]), float(self._single_drift(single))
        else:
            centre = self._multiple * float(self._known[candidate])
            drift = min(
                float(self._lengths[candidate]) * self._rest_length,
                float(self._sizes[candidate]) * self._rest_largest,
            )
            drift += self._multiple * self._rough
        return centre - drift, centre + drift

    def exactly(self, group: int, candidate: int) -> float:
        assert self._steps is not None
        value = self._query.utility(candidate, self._columns.sum(candidate, self._steps))
        self._learn(group, candidate, value)
        return float(value)

    # What is known.

    def _snapshot(self) -> None:
        """All scores at the present slopes, and the columns in groups of similar bounds."""
        assert self._steps is not None
        self._whole = False
        weights = self._query.column_weights
        self._base, self._base_largest = self._slopes, self._largest
        self._base_square = float(np.einsum("i,i->", self._base, self._base))
        self._known = self._sums() * (self._query.source.slope_unit * weights)
        self._lengths = self._columns.lengths * np.abs(weights)
        self._sizes = self._columns.sizes * np.abs(weights)
        self._group()
        self._way_length = self._way_largest = 0.0
        self._singles, self._n_singles = np.empty(_MOST_SINGLES, dtype=_SINGLE), 0
        self._wasted = 0
        self.passes += 1.0
        self._set_rest()
        self.version += 1
        self._whole = True

    def _sums(self) -> np.ndarray:
        """All sums, roughly if no score is then off by much: by `_rough`."""
        assert self._steps is not None
        weight = float(np.max(np.abs(self._query.column_weights)))
        self._rough = self._columns.roughness * len(self._steps) * self._largest * weight
        if self._factor * self._rough < _SLIGHT:
            return self._columns.rough_sums(self._steps)
        self._rough = 0.0
        return self._columns.sums(self._steps)

    def _group(self) -> None:
        logs = self._factor * (np.abs(self._known) if self.mirrored else self._known)
        bins = np.minimum((logs.max() - logs) / _WIDTH, _BINS - 1).astype(np.int64)
        with np.errstate(divide="ignore"):  # a column of zeros has the length 0
            octaves = 2 * np.log2(self._lengths.max(initial=1e-300) / self._lengths)
        keys = bins * _LENGTHS + np.minimum(octaves, _LENGTHS - 1).astype(np.int64)
        self._order = np.argsort(keys.astype(np.uint16), kind="stable").astype(np.int32)
        found = keys[self._order]
        self._starts = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]]))
        self._counts = np.diff(np.append(self._starts, len(found)))

        def largest(values: np.ndarray) -> np.ndarray:
            return np.maximum.reduceat(values[self._order], self._starts)

        self._group_score = largest(np.abs(self._known) if self.mirrored else self._known)
        self._group_length, self._group_size = largest(self._lengths), largest(self._sizes)

    def _set_rest(self) -> None:
        """The present slopes as a multiple of the snapshot's, and how large the rest is."""
        # Not by BLAS: for vectors of this size its threads cost more than they gain.
        product = float(np.einsum("i,i->", self._slopes, self._base))
        multiple = product / self._base_square if self._base_square > 0 else 0.0
        self._multiple = max(multiple, 0.0)
        np.multiply(self._base, self._multiple, out=self._buffer)
        np.subtract(self._slopes, self._buffer, out=self._buffer)
        room = self._rounding * (self._largest + self._multiple * self._base_largest)
        self._rest_length, self._rest_largest = self._norms(room)

    def _norms(self, room: float) -> tuple[float, float]:
        """The length and the largest size of what is in the buffer, with room for each entry."""
        v = self._buffer
        square = float(np.einsum("i,i->", v, v))
        largest = max(float(v.max()), -float(v.min()))
        return square**0.5 * self._sum_rounding + room * self._root, largest + room

    def _single_drift(self, singles: np.ndarray) -> Any:
        """By how much the scores of some singles may have changed since they were evaluated."""
        drift = np.minimum(
            singles["length"] * (self._way_length - singles["length_before"]),
            singles["size"] * (self._way_largest - singles["largest_before"]),
        )
        return drift * (1 + _ROUNDING) + singles["size"] * (
            _ROUNDING * (self._way_largest + self._largest)
        )

    def _learn(self, group: int, candidate: int, value: float) -> None:
        """Keep an evaluated score if the bound that was known before was much worse."""
        work = self._columns.work(candidate)
        self._wasted += work
        self.passes += work / max(self._columns.size, 1)
        low, high = self.between(group, candidate)
        centre, high = (abs(value), max(-low, high)) if self.mirrored else (value, high)
        if self._factor * (high - centre) < _LOOSE:
            return
        i = group - len(self._counts)
        if i < 0 and self._n_singles == _MOST_SINGLES:
            return
        self._whole = False
        if i < 0:
            i, last = self._n_singles, int(self._starts[group] + self._counts[group]) - 1
            self._order[self._at], self._order[last] = self._order[last], candidate
            self._counts[group] -= 1
            self._n_singles += 1
        self._singles[i] = (
            candidate, value, self._lengths[candidate], self._sizes[candidate],
            self._way_length, self._way_largest,
        )  # fmt: skip
        self.version += 1
        self._whole = True
