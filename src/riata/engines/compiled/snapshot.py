"""Entries on the grid, all scores in one pass, and columns in groups of similar bounds."""

from __future__ import annotations

import math

import numpy as np

from riata.engines.compiled.jit import compiled, inlined, without_nan
from riata.engines.compiled.losses import derivative, slope
from riata.engines.compiled.state import (
    HOT,
    INSIDE,
    LENGTH,
    READY,
    SCORE,
    SIZE,
    STEPS,
)

#: Groups: score bins of this width in log-weights, and so many classes of lengths.
WIDTH, BINS, LENGTHS = 0.5, 120, 80


@inlined
def on_grid(value, unit, lowest):
    z = value * unit
    if lowest == READY:
        return z
    if lowest == INSIDE:
        return np.rint(z)
    if z != z:
        return 0.0
    return np.rint(min(max(z, lowest), STEPS))


@inlined
def of(values, k):
    """The number of a column, in an array that may have one for all."""
    return values[k] if len(values) > 1 else values[0]


@inlined
def entries_of(columns, k):
    """How many entries a column has."""
    return np.int64(columns.indptr[k + 1]) - np.int64(columns.indptr[k])


@inlined
def entry(columns, e, unit):
    """An entry on the grid."""
    return on_grid(columns.data[e * columns.stride], unit, columns.lowest)


#: What was seen of entries: whether rows are in order, each once; whether all entries are on the
#: grid, and inside the bounds; the smallest and the largest of them.
IN_ORDER, ON_GRID, IN_BOUNDS, LEAST, LARGEST = range(5)


@compiled
def measure_columns(columns, n, known, seen, begin, end):
    """The length and the sum of sizes of some columns, or a little more, and what was seen."""
    on_steps, inside = True, True
    least, largest = np.int64(STEPS), np.int64(-STEPS)
    for k in range(begin, end):
        square, size = np.int64(0), np.int64(0)
        unit, first, stop = of(columns.units, k), columns.indptr[k], columns.indptr[k + 1]
        for e in range(first, stop):  # in whole numbers, so that it is done for several at once
            given = float(columns.data[e]) * unit
            z = given if given == given else 0.0
            z = z if z < STEPS else STEPS
            x = np.int64(np.rint(z if z > columns.lowest else columns.lowest))
            on_steps &= given == x
            inside &= (given >= columns.lowest) & (given <= STEPS)  # not if NaN
            least, largest = min(least, x), max(largest, x)
            square += x * x
            size += abs(x)
        weight = of(columns.relative, k) / STEPS * (1 + 2.0**-20)
        known[k, LENGTH] = math.sqrt(square) * weight
        known[k, SIZE] = size * weight
    seen[IN_ORDER] = rows_in_order(columns.indptr, columns.indices, n, begin, end)
    seen[ON_GRID], seen[IN_BOUNDS] = on_steps, inside
    seen[LEAST], seen[LARGEST] = least, largest


@compiled
def rows_in_order(indptr, indices, n, begin, end):
    """Whether some columns have their rows in order, each once, and below n.

    A row that is not after the one before it must be the first of its column.
    """
    first, stop, one = indptr[begin], indptr[end], np.uint64(1)
    if first == stop:
        return True
    back, largest = 0, indices[first]
    for e in range(first + one, stop):  # for several at once
        back += indices[e] <= indices[e - one]
        largest = max(largest, indices[e])
    for k in range(begin + 1, end):
        e = indptr[k]
        if first < e < stop and e > indptr[k - 1]:
            back -= indices[e] <= indices[e - one]
    return back == 0 and largest < n


@compiled
def classify_lengths(known, bits, classes):
    """The class of each column's length. Returns the largest length.

    `bits` are those of `known`: an exponent, and two more for quarters of a power of two.
    """
    longest = 0.0
    top = np.uint32(0)
    for k in range(len(known)):
        top = max(top, bits[k, LENGTH])
    for k in range(len(known)):
        of_k = np.int64((top >> np.uint32(21)) - (bits[k, LENGTH] >> np.uint32(21)))
        classes[k] = min(of_k, LENGTHS - 1)
        longest = max(longest, known[k, LENGTH])
    return longest


@compiled
def look_at_rows(rows, facts, grid, slopes, begin, end):
    """Slopes of some rows; of v, which is kept, the square and the largest; the largest slope."""
    for i in range(begin, end):
        rows.v0[i] = rows.v[i]
        margin = rows.v[i] * facts.level * grid
        slopes[i] = slope(facts.loss, facts.parameter, margin, rows.y[i])
    if facts.slope_curvature > 0:
        for i in range(begin, end):
            margin = rows.v[i] * facts.level * grid
            rows.omega[i] = derivative(facts.loss, margin, rows.y[i])
    square, most, largest = 0.0, 0.0, 0.0
    for i in range(begin, end):
        v = float(rows.v[i])
        square += v * v
        most = max(most, abs(v))
        largest = max(largest, abs(slopes[i]))
    return square, most, largest * (1 + 2.0**-20)


@compiled
def look_at_columns(columns, known, slopes, begin, end):
    """The scores of some columns, each in two sums that do not wait for another."""
    indptr, indices, one, two = columns.indptr, columns.indices, np.uint64(1), np.uint64(2)
    for k in range(begin, end):
        a, b = 0.0, 0.0
        unit, weight = of(columns.units, k), of(columns.relative, k) / STEPS
        e, stop = indptr[k], indptr[k + 1]
        while e + one < stop:
            a += entry(columns, e, unit) * slopes[indices[e]]
            b += entry(columns, e + one, unit) * slopes[indices[e + one]]
            e += two
        if e < stop:
            a += entry(columns, e, unit) * slopes[indices[e]]
        known[k, SCORE] = (a + b) * weight


@without_nan
def largest_move(v, v0, factor, factor0):
    """The largest size of factor * v - factor0 * v0."""
    largest = 0.0
    for i in range(len(v)):
        largest = max(largest, abs(v[i] * factor - v0[i] * factor0))
    return largest


@compiled
def sweep(rows, now, path, state):
    """Find how far the margins of all rows are from the snapshot."""
    st = state[0]
    st.swept_largest = largest_move(rows.v, rows.v0, now.factor, now.factor0) * (1 + 2.0**-30)
    st.swept_scale = path.scales[st.t]
    st.up = st.down = 0.0
    st.strayed = 0
    st.sweeps += 1


@inlined
def rank_of(k, known, turn):
    """What a column is ranked by: the larger of -score and `turn` times the score."""
    score = float(known[k, SCORE])
    return max(turn * score, -score)


@inlined
def turn_of(facts):
    """1 if both signs of a column compete, and else -1."""
    return 1.0 if facts.symmetric else -1.0


@compiled
def group_columns(known, classes, groups, keys, tally, most, strength, facts, state):
    """Sort the columns by score and by length, and bound each group.

    `keys` has room for one number of each column, `tally` for one of each group, and `most` for
    three.
    """
    p, n_keys, top, turn = len(known), len(tally), -math.inf, turn_of(facts)
    for k in range(p):
        rank = rank_of(k, known, turn)
        top = rank if rank > top else top
    tally[:] = 0
    most[:] = -math.inf
    finer = strength / WIDTH
    for k in range(p):
        if classes[k] >= HOT:
            continue
        rank = rank_of(k, known, turn)
        below = finer * (top - rank)
        key = np.int64(below if below < BINS - 1.0 else BINS - 1.0) * LENGTHS + classes[k]
        keys[k] = key
        tally[key] += 1
        if rank > most[key, SCORE]:  # no store for most, so that none waits for the last
            most[key, SCORE] = rank
        if known[k, LENGTH] > most[key, LENGTH]:
            most[key, LENGTH] = known[k, LENGTH]
        if known[k, SIZE] > most[key, SIZE]:
            most[key, SIZE] = known[k, SIZE]
    before, g = 0, 0
    for key in range(n_keys):
        count = tally[key]
        if count > 0:
            groups.starts[g], groups.counts[g] = before, count
            groups.score[g], groups.length[g] = most[key, SCORE], most[key, LENGTH]
            groups.size[g] = most[key, SIZE]
            g += 1
        tally[key] = before  # from here on, where the next column of the group goes
        before += count
    for k in range(p):
        if classes[k] < HOT:
            groups.order[tally[keys[k]]] = k
            tally[keys[k]] += 1
    state[0].n_groups = g
    state[0].envelope = 0


@compiled
def bound_group(g, known, groups, facts):
    """The largest score, length and size in a group."""
    turn = turn_of(facts)
    groups.score[g], groups.length[g], groups.size[g] = -math.inf, 0.0, 0.0
    for place in range(groups.starts[g], groups.starts[g] + groups.counts[g]):
        k = groups.order[place]
        groups.score[g] = max(groups.score[g], rank_of(k, known, turn))
        groups.length[g] = max(groups.length[g], known[k, LENGTH])
        groups.size[g] = max(groups.size[g], known[k, SIZE])
