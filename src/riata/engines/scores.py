"""The scores of all columns, known up to bounds while slopes change little by little.

A snapshot computes all scores in one pass over the entries. Later slopes are a combination of those
of a few snapshots and a rest, and the rest moves the score of a column by at most

    min(length of the column * length of the rest, size of the column * largest of the rest).

So nothing has to be computed for most columns, and single ones can be evaluated. A column that is
evaluated again gets bounds of its own. There is a new snapshot when a step wastes more time than an
average one, the last snapshot counted. Proofs are in docs/privacy/rejection.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.engines.columns import SparseColumns
from riata.engines.score_snapshots import SMALLEST, Look, Snapshot, dot, least_squares
from riata.grid import BLOCK_ROWS, X_STEPS
from riata.mechanisms.engine import Scores

#: Scores are grouped by bins of this width, in units of the logarithm of a weight, ...
_WIDTH, _BINS = 0.5, 120

#: ... and by the length of the column, in powers of the root of two.
_LENGTHS = 40

#: What float64 makes of a score, relative to the largest that a column's size allows.
_ROUNDING = 2.0**-44

#: More than what float64 makes of a slope and of sums of it, relative to the largest.
_SLOPE_ROUNDING = 2.0**-36

#: What one operation on each of so many numbers may round.
_EACH = 2.0**-51

#: A snapshot is due when a step does more in vain than this part of what a step took since the last
#: one, with it; of steps, the mean of so many. A candidate that is proposed in vain takes as long
#: as to read so many entries.
_WASTE, _RECENT, _PROPOSAL = 0.7, 8, 4_000

#: Groups are made anew if their bounds are this much too large, in units of log-weights, and since
#: the last time so many entries were read in vain for each column.
_UNEVEN, _GROUPING = 0.1, 40

#: An evaluated column gets bounds of its own if this much better ones than before, when it was
#: evaluated so often, ...
_LOOSE, _LOOKS = 0.5, 3

#: ... and so many columns may have them.
_MOST_SINGLES = 512

#: Bounds may be this much worse, in the same units, if that makes a snapshot quicker.
_SLIGHT = 2.0**-6

#: Squares of slopes that are no larger do not overflow, ...
_LARGEST = 1e100

#: ... and float64 knows logarithms of weights up to this size well enough.
_LARGEST_LOG = 2.0**40

_NUMBERS = ("score", "length", "size", "length_before", "largest_before", "off")
_SINGLE = np.dtype([("column", np.int64), *((name, np.float64) for name in _NUMBERS)])


def ordinary(query: Any, factor: float) -> bool:
    """Whether the bounds below are good for a query: a question of public numbers."""
    slope = query.source.slope_bound()
    return SMALLEST <= slope <= _LARGEST and factor * query.row_bound("linf") <= _LARGEST_LOG


class LazyScores(Scores):
    """The sums of entry * slope * weight over the rows, for every column."""

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

    def __init__(self, columns: SparseColumns) -> None:
        self._columns = columns
        n_rows = columns.shape[0]
        # Sums of more rows than are exact may round at every addition.
        self._rounding = _ROUNDING + (n_rows * _EACH if n_rows > BLOCK_ROWS else 0.0)
        self._root = n_rows**0.5
        self._sum_rounding = 1 + _ROUNDING + n_rows * _EACH
        self._steps: np.ndarray | None = None
        self._look: Look | None = None
        self._buffer, self._part = np.empty(n_rows), np.empty(n_rows)
        self._snapshots: list[Snapshot] = []
        self._whole = False  # not while what is known is half changed, as by an interrupt
        self.version = 0
        self.passes = 0.0

    def forget(self) -> None:
        """Begin with a snapshot: the next slopes have nothing to do with the last ones."""
        self._steps = None

    def at(
        self, query: Any, steps: np.ndarray, factor: float, known: np.ndarray | None = None
    ) -> None:
        """Go on to other slopes, in whole steps, of which the query makes utilities.

        `factor` times a utility is the logarithm of a weight. `known` are the sums of entry *
        slope, in steps of entries, for slopes that are not rounded to whole steps.
        """
        slopes, largest = steps * query.source.slope_unit, query.source.slope_bound()
        if self._whole:
            self._learn_look()
        fresh = self._steps is None or not (self._whole and query.same_units(self._query))
        if not fresh and self._n_singles:
            np.subtract(slopes, self._slopes, out=self._buffer)
            moved_length, moved_largest = self._norms(_EACH * (largest + self._largest))
            # Rounded up, so that later differences are at least the sum of the moves.
            self._way_length = (self._way_length + moved_length) * (1 + _EACH)
            self._way_largest = (self._way_largest + moved_largest) * (1 + _EACH)
        self._query, self.symmetric, self._factor = query, query.symmetric, factor
        self._steps, self._slopes, self._largest = steps, slopes, largest
        weight = float(np.max(np.abs(query.column_weights)))
        self._rough_now = self._columns.roughness * len(steps) * largest * weight
        if fresh or known is not None:
            self._snapshots = []
            self._take_snapshot(known)
        else:
            self._end_step()
            self._set_rest()
            self.version += 1

    # What a draw asks for.

    def groups(self) -> tuple[np.ndarray, np.ndarray]:
        if self._uneven() > _UNEVEN and self._idle > _GROUPING * len(self._order):
            self._whole = False
            self._group()
            self._whole = True
        bounds = np.minimum(
            self._group_length * self._rest_length, self._group_size * self._rest_largest
        )
        bounds += self._kept * self._group_score + self._rough
        bounds += self._other @ self._group_sizes
        singles = self._singles[: self._n_singles]
        if not len(singles):
            return self._counts, bounds
        own = np.abs(singles["score"]) if self.symmetric else singles["score"]
        bounds = np.concatenate([bounds, own + self._single_drift(singles)])
        return np.concatenate([self._counts, np.ones(len(own), dtype=np.int64)]), bounds

    def rejected(self) -> None:
        """A candidate was proposed in vain."""
        self._learn_look()
        self._in_vain += _PROPOSAL + self._looked
        self._idle += _PROPOSAL + self._looked
        rate = self._rate + (self._in_vain - self._rate) / min(self._age, _RECENT)
        if rate * self._age > _WASTE * (self._columns.size + self._wasted):
            self._take_snapshot()

    def candidate(self, group: int, place: int) -> int:
        if group >= len(self._counts):
            return int(self._singles["column"][group - len(self._counts)])
        self._at = int(self._starts[group]) + place
        return int(self._order[self._at])

    def between(self, group: int, candidate: int) -> tuple[float, float]:
        self._looked, self._look = 0, None
        return self._bounds_of(group, candidate)

    def _bounds_of(self, group: int, candidate: int) -> tuple[float, float]:
        if group >= len(self._counts):
            single = self._singles[group - len(self._counts)]
            centre, drift = float(single["score"]), float(self._single_drift(single))
        else:
            centre = sum(
                c * float(known.scores[candidate])
                for c, known in zip(self._multiples, self._snapshots, strict=True)
            )
            drift = min(
                float(self._lengths[candidate]) * self._rest_length,
                float(self._sizes[candidate]) * self._rest_largest,
            )
            drift += self._rough
        return centre - drift, centre + drift

    def closely(self, group: int, candidate: int) -> tuple[float, float] | None:
        """Better bounds, if there is a quick look at one column that is good enough."""
        assert self._steps is not None
        if self._factor * self._rough_now >= _SLIGHT:
            return None
        found = self._columns.rough_sum(candidate, self._steps)
        if found is None:
            return None
        self._count_look(candidate)
        centre = float(self._query.utility(candidate, found))
        off = self._rough_now + float(self._sizes[candidate]) * (_ROUNDING * self._largest)
        self._look = Look(group, candidate, centre, off)
        return centre - off, centre + off

    def exactly(self, group: int, candidate: int) -> float:
        assert self._steps is not None
        value = self._query.utility(candidate, self._columns.sum(candidate, self._steps))
        self._count_look(candidate)
        self._look = Look(group, candidate, float(value), 0.0)
        return float(value)

    # What is known.

    def _take_snapshot(self, known: np.ndarray | None = None) -> None:
        """All scores at the present slopes, and the columns in groups of similar bounds."""
        assert self._steps is not None
        self._whole, self._look = False, None
        weights = self._query.column_weights
        if known is None:
            quick = self._factor * self._rough_now < _SLIGHT
            sums = (self._columns.rough_sums if quick else self._columns.sums)(self._steps)
            sums *= self._query.source.slope_unit * weights
            rough = self._rough_now if quick else 0.0
            self.passes += 1.0
        else:  # no row is off by more than half a step, and what float64 makes of it
            most = float(np.max(np.abs(weights))) * X_STEPS
            half_a_step = 0.5 / self._query.source.slope_steps + _SLOPE_ROUNDING
            sums, rough = known * weights, len(self._steps) * most * self._largest * half_a_step
        # The first and the last are kept: between them they know a model that shrinks towards 0.
        last = Snapshot(self._slopes, self._largest, sums, rough)
        self._snapshots = [*self._snapshots[:1], last]
        slopes = [each.slopes for each in self._snapshots]
        self._products = np.array([[dot(a, b) for b in slopes] for a in slopes])
        self._lengths = self._columns.lengths * np.abs(weights)
        self._sizes = self._columns.sizes * np.abs(weights)
        self._way_length = self._way_largest = 0.0
        self._singles, self._n_singles = np.empty(_MOST_SINGLES, dtype=_SINGLE), 0
        self._grouped = np.append(np.zeros(len(slopes) - 1), 1.0)
        self._set_rest(self._grouped)
        self._group()
        self._looks: dict[int, int] = {}
        self._age, self._wasted, self._in_vain, self._rate = 1, 0.0, 0.0, 0.0
        self._looked = 0
        self.version += 1
        self._whole = True

    def _count_look(self, candidate: int) -> None:
        work = self._columns.work(candidate)
        self._looked += work
        self.passes += work / max(self._columns.size, 1)

    def _end_step(self) -> None:
        """Keep count of what the last step did in vain."""
        self._rate += (self._in_vain - self._rate) / min(self._age, _RECENT)
        self._wasted += self._in_vain
        self._in_vain = 0.0
        self._age += 1

    def _group(self) -> None:
        """Columns in groups of similar scores and lengths, at the present slopes."""
        known: Any = sum(
            c * each.scores for c, each in zip(self._multiples, self._snapshots, strict=True)
        )
        ranks = np.abs(known) if self.symmetric else known
        logs = self._factor * ranks
        bins = np.minimum((logs.max() - logs) / _WIDTH, _BINS - 1).astype(np.int64)
        with np.errstate(divide="ignore"):  # a column of zeros has the length 0
            octaves = 2 * np.log2(self._lengths.max(initial=1e-300) / self._lengths)
        keys = bins * _LENGTHS + np.minimum(octaves, _LENGTHS - 1).astype(np.int64)
        self._order = np.argsort(keys.astype(np.uint16), kind="stable").astype(np.int32)
        if self._n_singles:
            alone = np.isin(self._order, self._singles["column"][: self._n_singles])
            self._order = self._order[~alone]
        found = keys[self._order]
        self._starts = np.flatnonzero(np.concatenate([[True], found[1:] != found[:-1]]))
        self._counts = np.diff(np.append(self._starts, len(found)))

        def largest(values: np.ndarray) -> np.ndarray:
            return np.maximum.reduceat(values[self._order], self._starts)

        self._group_score = largest(ranks)
        self._group_length, self._group_size = largest(self._lengths), largest(self._sizes)
        self._group_sizes = np.array([largest(np.abs(each.scores)) for each in self._snapshots])
        self._idle, self._grouped = 0.0, self._multiples
        self._set_parts()

    def _set_rest(self, multiples: np.ndarray | None = None) -> None:
        """The present slopes as a combination of the snapshots', and how large the rest is."""
        if multiples is None:
            right = np.array([dot(each.slopes, self._slopes) for each in self._snapshots])
            multiples = least_squares(self._products, right)
        self._multiples = multiples
        np.copyto(self._buffer, self._slopes)
        for c, each in zip(self._multiples, self._snapshots, strict=True):
            np.multiply(each.slopes, c, out=self._part)
            np.subtract(self._buffer, self._part, out=self._buffer)
        self._set_parts()
        kept = np.abs(self._multiples) + 2 * self._kept * np.abs(self._grouped)
        before = sum(c * each.largest for c, each in zip(kept, self._snapshots, strict=True))
        self._rest_length, self._rest_largest = self._norms(
            self._rounding * (self._largest + before)
        )

    def _set_parts(self) -> None:
        """The combination as a multiple of that at the grouping, and other parts."""
        last = self._grouped[-1]
        self._kept = max(float(self._multiples[-1] / last), 0.0) if last != 0 else 0.0
        self._other = np.abs(self._multiples - self._kept * self._grouped)
        self._rough = sum(
            abs(c) * each.rough for c, each in zip(self._multiples, self._snapshots, strict=True)
        )

    def _uneven(self) -> float:
        """By how much groups' bounds are too large because the parts changed, at the top."""
        if not self._counts.any():  # all columns have bounds of their own
            return 0.0
        top = int(np.argmax(self._group_score))
        return self._factor * float(self._other @ self._group_sizes[:, top])

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
        room = singles["size"] * (_ROUNDING * (self._way_largest + self._largest))
        return drift * (1 + _ROUNDING) + room + singles["off"]

    def _learn_look(self) -> None:
        """Make something of the last look at a column. Not in the midst of a round."""
        look, self._look = self._look, None
        if look is None:
            return
        self._looks[look.candidate] = self._looks.get(look.candidate, 0) + 1
        if look.group >= len(self._counts) or self._looks[look.candidate] >= _LOOKS:
            self._learn(look)

    def _learn(self, look: Look) -> None:
        """Keep a score that was looked at if the bound that was known before was much worse."""
        group, candidate, value, off = look
        low, high = self._bounds_of(group, candidate)
        centre, high = (abs(value), max(-low, high)) if self.symmetric else (value, high)
        if self._factor * (high - centre - off) < _LOOSE:
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
            self._way_length, self._way_largest, off,
        )  # fmt: skip
        self.version += 1
        self._whole = True
