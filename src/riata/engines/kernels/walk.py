"""Many selections along a Frank-Wolfe walk, compiled.

The walk's model is scale * w, and a selection adds a multiple of one column to the margins X w,
so a step touches the rows of one column only. Scores are known from a snapshot and from bounds on
how far they moved since; candidates are proposed from an envelope and accepted or rejected exactly
as `mechanisms/rejection.py` does. docs/privacy/compiled_walk.md has the proofs. In short:

    score_k = <x_k, slopes>,     log-weight = strength * score_k / (largest slope)

Since the snapshot at margins m0, with the scale then `scale0` and `kept` = scale / scale0,

    slopes = s0 + omega (m - m0) + second order,     m - m0 = (kept - 1) m0 + scale (v - v0) .

`SCORE` and `SHRINKING` are <x_k, s0> and <x_k, omega m0>. What (v - v0) adds is bounded for most
columns, and computed for the `hot` ones from inner products of columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from riata.engines.kernels.losses import derivative, slope, slope_bound

#: Why a call came back.
DONE, WORDS, SNAPSHOT, REGROUP, DECIDE_COLUMN, DECIDE_SIGN, FOUND = range(7)

#: What a step still needs.
NOTHING, SIGN, MOVE = range(3)

#: An entry and a slope are whole numbers of steps.
STEPS = 65536.0

#: Stands for the lowest entry where all entries are known to be on the grid.
READY = 1.0

#: Groups: score bins of this width in log-weights, and lengths in quarters of a power of two.
WIDTH, BINS, LENGTHS = 0.5, 120, 80

#: So many columns, of at least so many entries, may be hot. Classes of theirs begin here.
MOST_HOT, LARGE, HOT = 512, 64, 128

TOTAL_BITS = 61
SLACK = 2.0**-38
BAND = 2.0**-36

#: The envelope is kept while the logarithms of weights stay within this much of its own.
ROOM = 0.05

#: What is read to learn about hot columns is not in vain, but for one part in so many.
LEARNING = 16

#: What float32 and sums of it may take from a score, relative to size of column * largest slope.
ROUNDING = 2.0**-20

#: A snapshot is due after this part of a pass was read in vain. Groups are made anew after as many
#: proposals in vain as would take as long; a proposal costs so many entries, and a column so many.
WASTE, PROPOSAL, GROUPING = 0.5, 32, 2

#: Where the walk is, and what it waits for.
STATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "t", "idle", "regroupings", "n_hot", "n_groups", "next_word", "wasted", "read",
            "proposals", "snapshots", "pending", "column", "group", "place", "coin", "total",
            "height", "bits", "sign", "exact", "envelope", "rebuilt",
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "top", "kept_grouped", "scale0", "offset0", "largest0", "m0_length", "m0_largest",
            "longest", "way", "v_square", "v_turnover", "v_largest", "w_sum", "offset", "low",
            "high",
            "allowed2", "allowed_max", "allowed_rest", "allowed_rest_max", "allowed_rounding",
            "allowed_strength",
        )
    ]
)  # fmt: skip


class Columns(NamedTuple):
    """The entries by columns, as they came; `units` and `lowest` put them on the grid.

    `relative` is the bound of each column over the largest. Both may have one number for all.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    units: np.ndarray
    relative: np.ndarray
    lowest: float


class Rows(NamedTuple):
    """Of each row: its product with w, how much of that was added since the snapshot, its target,

    and the derivative of its slope at the snapshot.
    """

    v: np.ndarray
    moved: np.ndarray
    y: np.ndarray
    omega: np.ndarray


#: What is known of a column, in one line of the cache: its score and its product with omega m0 at
#: the snapshot, its length and the sum of the sizes of its entries.
SCORE, SHRINKING, LENGTH, SIZE = range(4)


class Groups(NamedTuple):
    order: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    score: np.ndarray
    length: np.ndarray
    size: np.ndarray
    heights: np.ndarray
    ends: np.ndarray
    logs: np.ndarray


class Hot(NamedTuple):
    """Columns with the effect of the moves since the snapshot, up to `open`.

    `bound` is the part of `open` that comes from rounding, and `errors` how wrong a learned inner
    product may be. `beyond` is what the second order was when a column was evaluated, up to
    `doubt`, `far` how far the margins were from the snapshot then, and `way` how far they had gone.
    """

    columns: np.ndarray
    effect: np.ndarray
    open: np.ndarray
    beyond: np.ndarray
    doubt: np.ndarray
    far: np.ndarray
    way: np.ndarray
    unknown: np.ndarray
    amount: np.ndarray
    bound: np.ndarray
    products: np.ndarray
    errors: np.ndarray


class Walk(NamedTuple):
    """The public way: scales and gains of all steps, what was picked, and w as a hash table."""

    scales: np.ndarray
    gains: np.ndarray
    picked: np.ndarray
    keys: np.ndarray
    weights: np.ndarray


class Facts(NamedTuple):
    loss: int
    parameter: float
    smooth: bool
    mirrored: bool
    reach: float
    y_bound: float
    strength: float
    steep: float
    bend: float
    root_n: float


class Now(NamedTuple):
    """The numbers of one step."""

    largest: float
    strength: float
    factor: float
    kept: float
    shifted: float
    moved2: float
    moved_max: float
    drift2: float
    drift_max: float
    rest: float
    rest_max: float
    rounding: float
    far2: float
    way: float


@njit(cache=True, nogil=True, inline="always")
def on_grid(value, unit, lowest):
    z = value * unit
    if lowest == READY:
        return z
    if z != z:
        return 0.0
    return np.rint(min(max(z, lowest), STEPS))


@njit(cache=True, nogil=True, inline="always")
def of(values, k):
    """The number of a column, in an array that may have one for all."""
    return values[k] if len(values) > 1 else values[0]


@njit(cache=True, nogil=True, inline="always")
def entries_of(columns, k):
    """How many entries a column has."""
    return np.int64(columns.indptr[k + 1]) - np.int64(columns.indptr[k])


@njit(cache=True, nogil=True)
def look_at_rows(rows, facts, factor, offset, pairs, begin, end):
    """Slopes, and derivative * shrinking margin, of some rows; with the lengths of the latter."""
    square, most, largest = 0.0, 0.0, 0.0
    for i in range(begin, end):
        inner = rows.v[i] * factor
        s = slope(facts.loss, facts.parameter, inner + offset, rows.y[i])
        pairs[i, 0] = s
        largest = max(largest, abs(s))
        square += inner * inner
        most = max(most, abs(inner))
        if facts.smooth:
            omega = np.float32(derivative(facts.loss, inner + offset, rows.y[i]))
            rows.omega[i] = omega
            pairs[i, 1] = omega * inner
    return square, most, largest


@njit(cache=True, nogil=True)
def look_at_columns(columns, known, shrinking, pairs, begin, end):
    """<x_k, s0> and <x_k, omega m0> of some columns, in two sums that do not wait for another."""
    indptr, indices, data, lowest = columns.indptr, columns.indices, columns.data, columns.lowest
    for k in range(begin, end):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        unit, weight = of(columns.units, k), of(columns.relative, k) / STEPS
        e, stop = indptr[k], indptr[k + 1]
        if (stop - e) % np.uint64(2) == 1:
            x = on_grid(data[e], unit, lowest)
            a = x * pairs[indices[e], 0]
            if shrinking:
                b = x * pairs[indices[e], 1]
            e += np.uint64(1)
        while e < stop:
            i, j = indices[e], indices[e + np.uint64(1)]
            x, z = on_grid(data[e], unit, lowest), on_grid(data[e + np.uint64(1)], unit, lowest)
            a += x * pairs[i, 0]
            c += z * pairs[j, 0]
            if shrinking:
                b += x * pairs[i, 1]
                d += z * pairs[j, 1]
            e += np.uint64(2)
        known[k, SCORE] = (a + c) * weight
        known[k, SHRINKING] = (b + d) * weight


@njit(cache=True, nogil=True)
def all_on_grid(columns):
    """Whether every entry is a whole number of steps inside the bounds."""
    for k in range(len(columns.indptr) - 1):
        unit = of(columns.units, k)
        for e in range(columns.indptr[k], columns.indptr[k + 1]):
            if on_grid(columns.data[e], unit, columns.lowest) != columns.data[e] * unit:
                return False
    return True


@njit(cache=True, nogil=True)
def measure_columns(columns, known, begin, end):
    """The length and the sum of sizes of some columns, or a little more."""
    for k in range(begin, end):
        a, b = 0.0, 0.0
        unit = of(columns.units, k)
        weight = of(columns.relative, k) / STEPS * (1 + 2.0**-20)
        for e in range(columns.indptr[k], columns.indptr[k + 1]):
            x = on_grid(columns.data[e], unit, columns.lowest)
            a += x * x
            b += abs(x)
        known[k, LENGTH] = math.sqrt(a) * weight
        known[k, SIZE] = b * weight


@njit(cache=True, nogil=True)
def classify_lengths(known, classes):
    """The class of each column's length. Returns the largest length."""
    longest = 0.0
    for k in range(len(known)):
        longest = max(longest, known[k, LENGTH])
    for k in range(len(known)):
        classes[k] = LENGTHS - 1
        if known[k, LENGTH] > 0:
            octaves = 4.0 * math.log2(longest / known[k, LENGTH])
            classes[k] = np.uint8(min(octaves, LENGTHS - 1.0))
    return longest


@njit(cache=True, nogil=True, inline="always")
def rank_of(k, known, less, mirrored):
    """What a column is ranked by: its score at the snapshot, after shrinking."""
    score = known[k, SCORE] + less * known[k, SHRINKING]
    return abs(score) if mirrored else -score


@njit(cache=True, nogil=True)
def group_columns(known, classes, groups, strength, kept, mirrored, state):
    """Sort the columns by score, after shrinking, and by length, and bound each group."""
    p = len(known)
    top, less = -math.inf, kept - 1.0
    for k in range(p):
        top = max(top, rank_of(k, known, less, mirrored))
    keys = np.empty(p, np.uint16)
    tally = np.zeros(BINS * LENGTHS, np.int64)
    for k in range(p):
        if classes[k] >= HOT:
            continue
        score = rank_of(k, known, less, mirrored)
        b = int(min(strength * (top - score) / WIDTH, BINS - 1.0))
        keys[k] = b * LENGTHS + classes[k]
        tally[keys[k]] += 1
    place = np.empty(BINS * LENGTHS, np.int64)
    group_of = np.empty(BINS * LENGTHS, np.int64)
    before, g = 0, 0
    for key in range(BINS * LENGTHS):
        place[key] = before
        if tally[key] > 0:
            groups.starts[g], groups.counts[g] = before, tally[key]
            groups.score[g], groups.length[g], groups.size[g] = -math.inf, 0.0, 0.0
            group_of[key] = g
            g += 1
        before += tally[key]
    for k in range(p):
        if classes[k] >= HOT:
            continue
        key = keys[k]
        groups.order[place[key]] = k
        place[key] += 1
        at = group_of[key]
        score = rank_of(k, known, less, mirrored)
        groups.score[at] = max(groups.score[at], score)
        groups.length[at] = max(groups.length[at], known[k, LENGTH])
        groups.size[at] = max(groups.size[at], known[k, SIZE])
    state[0].n_groups = g
    state[0].envelope = 0
    state[0].idle = 0
    state[0].kept_grouped = kept


@njit(cache=True, nogil=True, inline="always")
def log_weight(value, mirrored):
    if not mirrored:
        return value
    size = abs(value)
    return size + math.log1p(math.exp(-2.0 * size))


@njit(cache=True, nogil=True)
def numbers_now(facts, walk, state):
    """What one step goes by: how far margins may have gone since the snapshot, and what it does."""
    st = state[0]
    scale = walk.scales[st.t]
    reach = scale * facts.reach * st.w_sum + abs(st.offset)
    largest = slope_bound(facts.loss, facts.parameter, reach, facts.y_bound)
    factor = scale * facts.reach / STEPS
    kept = scale / st.scale0
    shrunk, shifted = abs(kept - 1.0), abs(st.offset - st.offset0)
    moved2 = factor * math.sqrt(max(st.v_square, 0.0) + st.v_turnover * 2.0**-52)
    moved_max = factor * st.v_largest
    far2 = (moved2 + shrunk * st.m0_length + shifted * facts.root_n) * (1 + 2.0**-30)
    far_max = (moved_max + shrunk * st.m0_largest + shifted) * (1 + 2.0**-30)
    rest, rest_max = 0.0, 0.0
    drift2, drift_max = facts.steep * far2, facts.steep * far_max
    if facts.smooth:
        rest, rest_max = facts.bend / 2 * far2 * far2, facts.bend / 2 * far_max * far_max
        less = abs(kept - st.kept_grouped)
        drift2 = facts.steep * (moved2 + less * st.m0_length + shifted * facts.root_n)
        drift_max = facts.steep * (moved_max + less * st.m0_largest + shifted)
        drift2, drift_max = drift2 * (1 + 2.0**-30), drift_max * (1 + 2.0**-30)
    rounding = largest * 2.0**-16.9
    rounding += (st.largest0 + facts.steep * (st.m0_largest + moved_max + far_max)) * ROUNDING
    return Now(
        largest, facts.strength / largest, factor, kept, shifted, moved2, moved_max,
        drift2, drift_max, rest, rest_max, rounding, far2, st.way,
    )  # fmt: skip


@njit(cache=True, nogil=True, inline="always")
def between(k, now, known, facts):
    """Bounds on the score of another column."""
    size, length = known[k, SIZE], known[k, LENGTH]
    centre = float(known[k, SCORE])
    half = size * now.rounding
    if facts.smooth:
        centre += (now.kept - 1.0) * known[k, SHRINKING]
        half += facts.steep * min(length * now.moved2, size * now.moved_max)
        half += min(now.rest, size * now.rest_max)
        half += facts.steep * now.shifted * min(size, length * facts.root_n)
    else:
        half += min(length * now.drift2, size * now.drift_max)
    return centre - half, centre + half


@njit(cache=True, nogil=True, inline="always")
def hot_between(h, now, known, hot, facts):
    """Bounds on the score of a hot column."""
    k = hot.columns[h]
    if not facts.smooth:
        return between(k, now, known, facts)
    size = known[k, SIZE]
    centre = known[k, SCORE] + (now.kept - 1.0) * known[k, SHRINKING] + now.factor * hot.effect[h]
    half = min(now.rest, size * now.rest_max)
    gone = now.way - hot.way[h]
    nearer = facts.bend * (hot.far[h] + gone) * gone + hot.doubt[h]
    if nearer < half:
        half = nearer
        centre += hot.beyond[h]
    half += now.factor * hot.open[h] + size * now.rounding
    half += facts.steep * now.shifted * min(size, known[k, LENGTH] * facts.root_n)
    return centre - half, centre + half


@njit(cache=True, nogil=True)
def set_envelope(now, known, groups, hot, facts, state):
    """Whole numbers that are at least 2^bits * weight / e^top, for groups and hot columns.

    Where all is quiet they are made a little larger, to hold for later steps as well.
    """
    st = state[0]
    room = 0.0 if st.n_hot > 0 or not facts.mirrored else ROOM
    highest = 0.0
    for g in range(st.n_groups):
        highest = max(highest, groups.score[g])
    longest = now.strength * max(st.longest, 2.0**-150)  # all columns may be empty
    largest = longest * facts.root_n
    st.allowed2 = now.drift2 + room / longest
    st.allowed_max = now.drift_max + room / largest
    st.allowed_rest = now.rest + room / now.strength
    st.allowed_rest_max = now.rest_max + room / largest
    st.allowed_rounding = now.rounding + room / largest
    st.allowed_strength = now.strength * (1 + room / (1.0 + now.strength * highest))
    top, n = -math.inf, st.n_groups + st.n_hot
    for g in range(n):
        if g < st.n_groups:
            groups.logs[g] = -math.inf
            if groups.counts[g] == 0:
                continue
            bound = min(groups.length[g] * st.allowed2, groups.size[g] * st.allowed_max)
            bound += groups.score[g] + groups.size[g] * st.allowed_rounding
            bound += min(st.allowed_rest, groups.size[g] * st.allowed_rest_max)
        else:
            low, high = hot_between(g - st.n_groups, now, known, hot, facts)
            bound = max(abs(low), abs(high)) if facts.mirrored else -low
        value = st.allowed_strength * bound
        groups.logs[g] = log_weight(value, facts.mirrored) + SLACK * (1.0 + abs(value))
        top = max(top, groups.logs[g])
    mass = 0.0
    for g in range(n):
        if groups.logs[g] > -math.inf:
            count = groups.counts[g] if g < st.n_groups else 1
            mass += count * (math.exp(groups.logs[g] - top) + 2.0**-TOTAL_BITS)
    bits = TOTAL_BITS - math.ceil(math.log2(mass) + 0.01)
    before = np.int64(0)
    for g in range(n):
        groups.heights[g] = 0
        if groups.logs[g] > -math.inf:
            share = math.exp(groups.logs[g] - top) * (1 + SLACK)
            height = np.int64(math.floor(math.ldexp(share, bits))) + 1
            groups.heights[g] = height
            before += height * (groups.counts[g] if g < st.n_groups else 1)
            # From here on, the factor that makes e^(log-weight - top) a probability.
            groups.logs[g] = math.ldexp(1.0, bits) / float(height)
        groups.ends[g] = before
    st.bits, st.top, st.envelope = bits, top, 1
    st.rebuilt += 1


@njit(cache=True, nogil=True, inline="always")
def settled(u, low, high, top, factor, mirrored):
    """1 if a candidate with such bounds is surely accepted, -1 if surely not, else 0."""
    most, least = high, low
    if mirrored:
        most = max(abs(low), abs(high))
        least = 0.0 if low < 0.0 < high else min(abs(low), abs(high))
    band = BAND + 2.0**-46 * abs(top)
    if u > factor * math.exp(min(log_weight(most, mirrored) - top, 1.0)) + band:
        return -1
    if u < factor * math.exp(min(log_weight(least, mirrored) - top, 1.0)) - band:
        return 1
    return 0


@njit(cache=True, nogil=True)
def total_of(k, columns, rows, now, facts, offset):
    """The sum of entry * slope of a column, in whole steps: exactly."""
    total = np.int64(0)
    unit, to_steps = of(columns.units, k), STEPS / now.largest
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        i = columns.indices[e]
        margin = rows.v[i] * now.factor + offset
        s = slope(facts.loss, facts.parameter, margin, rows.y[i]) * to_steps
        if s != s:
            s = STEPS
        s = np.rint(min(max(s, -STEPS), STEPS))
        total += np.int64(on_grid(columns.data[e], unit, columns.lowest) * s)
    return total


@njit(cache=True, nogil=True)
def effect_of_moves(k, columns, rows, facts):
    """<x_k, omega (v - v0)>."""
    total, unit = 0.0, of(columns.units, k)
    if facts.bend == 0:  # omega is the same for all rows
        for e in range(columns.indptr[k], columns.indptr[k + 1]):
            x = on_grid(columns.data[e], unit, columns.lowest)
            total += x * rows.moved[columns.indices[e]]
        total *= facts.steep
    else:
        for e in range(columns.indptr[k], columns.indptr[k + 1]):
            i = columns.indices[e]
            x = on_grid(columns.data[e], unit, columns.lowest)
            total += x * (rows.omega[i] * rows.moved[i])
    return total * (of(columns.relative, k) / STEPS)


@njit(cache=True, nogil=True)
def blur(k, columns, known, facts, state):
    """What rounding may make of the effect of moves on a column."""
    most = facts.steep * known[k, SIZE] * state[0].v_largest
    return (entries_of(columns, k) + 16) * 2.0**-52 * most


@njit(cache=True, nogil=True)
def resolve(h, columns, rows, known, hot, facts, gain, state):
    """Find out what the moves did to a hot column, and learn an inner product if that shows one."""
    k = hot.columns[h]
    effect = effect_of_moves(k, columns, rows, facts)
    rounding = blur(k, columns, known, facts, state)
    entries = entries_of(columns, k)
    state[0].read += entries
    state[0].wasted += entries // LEARNING
    j = hot.unknown[h]
    if j >= 0 and abs(hot.amount[h]) > 0.4 * gain:
        product = (effect - hot.effect[h]) / hot.amount[h]
        most = facts.steep * STEPS * common_size(k, hot.columns[j], known)
        error = (hot.bound[h] + rounding) / abs(hot.amount[h]) + 2.0**-50 * most
        if error < 2.0**-12 * most:
            hot.products[h, j] = product
            hot.products[j, h] = product
            hot.errors[h, j] = error
            hot.errors[j, h] = error
    hot.effect[h], hot.open[h], hot.unknown[h], hot.amount[h] = effect, rounding, -1, 0.0
    hot.bound[h] = rounding


@njit(cache=True, nogil=True, inline="always")
def common_size(k, l, known):
    """At least the sum of the products of the entries of two columns."""
    return min(known[k, SIZE], known[l, SIZE], known[k, LENGTH] * known[l, LENGTH])


@njit(cache=True, nogil=True)
def make_hot(columns, rows, known, classes, groups, hot, facts, state):
    """Give the column that was just evaluated bounds of its own."""
    st = state[0]
    k, g = st.column, st.group
    last = groups.starts[g] + groups.counts[g] - 1
    groups.order[st.place], groups.order[last] = groups.order[last], k
    groups.counts[g] -= 1
    if groups.counts[g] <= LARGE:  # it may have been the one that made the group's bounds large
        bound_group(g, known, groups, st.kept_grouped, facts.mirrored)
    add_hot(k, classes, hot, state)
    if facts.smooth:
        h = st.n_hot - 1
        hot.effect[h] = effect_of_moves(k, columns, rows, facts)
        hot.bound[h] = blur(k, columns, known, facts, state)
        hot.open[h] = hot.bound[h]
        st.read += entries_of(columns, k)
        st.wasted += entries_of(columns, k)


@njit(cache=True, nogil=True)
def add_hot(k, classes, hot, state):
    """A column with bounds of its own, that no move has touched since the snapshot."""
    st = state[0]
    h = st.n_hot
    st.n_hot += 1
    st.envelope = 0
    classes[k] += HOT
    hot.columns[h] = k
    hot.unknown[h], hot.amount[h] = -1, 0.0
    hot.beyond[h], hot.doubt[h], hot.far[h], hot.way[h] = 0.0, 0.0, math.inf, 0.0
    hot.products[h, :] = math.nan
    hot.products[:, h] = math.nan
    hot.effect[h], hot.open[h], hot.bound[h] = 0.0, 0.0, 0.0


@njit(cache=True, nogil=True)
def bound_group(g, known, groups, kept, mirrored):
    """The largest score, length and size in a group."""
    groups.score[g], groups.length[g], groups.size[g] = -math.inf, 0.0, 0.0
    for place in range(groups.starts[g], groups.starts[g] + groups.counts[g]):
        k = groups.order[place]
        groups.score[g] = max(groups.score[g], rank_of(k, known, kept - 1.0, mirrored))
        groups.length[g] = max(groups.length[g], known[k, LENGTH])
        groups.size[g] = max(groups.size[g], known[k, SIZE])


@njit(cache=True, nogil=True)
def select_column(columns, rows, known, classes, groups, hot, walk, facts, words, now, state):
    """Propose columns until one is accepted: leaves it in the state, with bounds on its value."""
    st = state[0]
    entries = np.int64(columns.indptr[len(columns.indptr) - 1])
    while True:
        if st.wasted > WASTE * entries:
            return SNAPSHOT
        if st.idle > GROUPING * len(known):
            st.wasted += GROUPING * len(known)
            return REGROUP if facts.smooth and now.kept != st.kept_grouped else SNAPSHOT
        if st.next_word + 2 > len(words):
            return WORDS
        if st.envelope == 0:
            set_envelope(now, known, groups, hot, facts, state)
        n = st.n_groups + st.n_hot
        total = np.uint64(groups.ends[n - 1])
        word = words[st.next_word]
        most = np.uint64(0xFFFFFFFFFFFFFFFF)
        st.next_word += 1
        if word >= most - most % total:  # what is below is a multiple of the total
            continue
        number = np.int64(word % total)
        g, beyond = 0, n - 1
        while g < beyond:  # the first group that ends after the number
            middle = (g + beyond) // 2
            if groups.ends[middle] > number:
                beyond = middle
            else:
                g = middle + 1
        coin = np.int64(words[st.next_word] >> np.uint64(12))
        st.next_word += 1
        st.proposals += 1
        h = g - st.n_groups
        if h < 0:
            before = groups.ends[g] - groups.heights[g] * groups.counts[g]
            st.place = groups.starts[g] + (number - before) // groups.heights[g]
            k = np.int64(groups.order[st.place])
            low, high = between(k, now, known, facts)
        else:
            k = hot.columns[h]
            low, high = hot_between(h, now, known, hot, facts)
        st.column, st.group, st.coin, st.exact = k, g, coin, 0
        u = (coin + 0.5) * 2.0**-52
        top, factor = st.top, groups.logs[g]
        st.low, st.high = -now.strength * high, -now.strength * low
        outcome = settled(u, st.low, st.high, top, factor, facts.mirrored)
        if outcome == 0 and h >= 0 and facts.smooth and now.factor * hot.open[h] > (high - low) / 4:
            resolve(h, columns, rows, known, hot, facts, walk.gains[st.t], state)
            st.envelope = 0
            low, high = hot_between(h, now, known, hot, facts)
            st.low, st.high = -now.strength * high, -now.strength * low
            outcome = settled(u, st.low, st.high, top, factor, facts.mirrored)
        if outcome == 0:
            st.total = total_of(k, columns, rows, now, facts, st.offset)
            st.read += entries_of(columns, k)
            set_exact(columns, facts, state)
            if h >= 0 and facts.bend > 0:
                # Keep what the second order is now: it changes slowly from here on.
                centre = known[k, SCORE] + (now.kept - 1.0) * known[k, SHRINKING]
                centre += now.factor * hot.effect[h]
                hot.beyond[h] = -st.low / now.strength - centre
                hot.doubt[h] = known[k, SIZE] * now.rounding + now.factor * hot.open[h]
                hot.far[h], hot.way[h] = now.far2, now.way
                st.envelope = 0
            outcome = settled(u, st.low, st.high, top, factor, facts.mirrored)
            if outcome == 0:
                st.height = groups.heights[g]
                return DECIDE_COLUMN
            large = entries_of(columns, k) >= LARGE
            if h < 0 and large and st.n_hot < MOST_HOT:
                share = groups.heights[g] / float(total)
                if outcome < 0 or share > 0.05:
                    make_hot(columns, rows, known, classes, groups, hot, facts, state)
            if outcome < 0:
                st.wasted += entries_of(columns, k)
        if outcome > 0:
            return FOUND
        st.idle += PROPOSAL


@njit(cache=True, nogil=True)
def set_exact(columns, facts, state):
    """The value of the column in the state, from its total."""
    st = state[0]
    weight = of(columns.relative, st.column) / (STEPS * STEPS)
    st.low = -facts.strength * (float(st.total) * weight)
    st.high = st.low
    st.exact = 1


@njit(cache=True, nogil=True)
def select_sign(columns, rows, facts, words, now, state):
    """The sign of an accepted column: positive with probability 1 / (1 + e^(-2 value))."""
    st = state[0]
    if not facts.mirrored:
        st.sign = 1
        return FOUND
    if st.next_word + 1 > len(words):
        return WORDS
    st.coin = np.int64(words[st.next_word] >> np.uint64(12))
    st.next_word += 1
    u = (st.coin + 0.5) * 2.0**-52
    while True:
        if u < 1.0 / (1.0 + math.exp(min(-2.0 * st.low, 700.0))) - BAND:
            st.sign = 1
            return FOUND
        if u > 1.0 / (1.0 + math.exp(min(-2.0 * st.high, 700.0))) + BAND:
            st.sign = -1
            return FOUND
        if st.exact == 1:
            return DECIDE_SIGN
        k = st.column
        st.total = total_of(k, columns, rows, now, facts, st.offset)
        st.read += entries_of(columns, k)
        set_exact(columns, facts, state)


@njit(cache=True, nogil=True)
def move(columns, rows, known, hot, walk, facts, now, state):
    """Add the chosen column to the walk."""
    st = state[0]
    k, t = st.column, st.t
    gain = walk.gains[t]
    walk.picked[t] = k if st.sign > 0 else -k - 1
    amount = st.sign * gain
    unit, weight = of(columns.units, k), of(columns.relative, k)
    square, turnover, largest = 0.0, 0.0, st.v_largest
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        i = columns.indices[e]
        by = amount * weight * on_grid(columns.data[e], unit, columns.lowest)
        before = rows.moved[i]
        after = before + by
        rows.moved[i] = after
        rows.v[i] += by
        square += (after - before) * (after + before)
        turnover += after * after + before * before
        largest = max(largest, abs(after))
    st.v_square += square
    # What the sums above may have lost to rounding, in units of 2^-52.
    st.v_turnover += turnover * (entries_of(columns, k) + 16) + abs(st.v_square)
    st.v_largest = largest
    add_weight(k, amount, weight, walk, state)
    if not facts.smooth:
        return
    later = walk.scales[t + 1]
    shrunk = abs(later / walk.scales[t] - 1.0) * (now.kept * st.m0_length + now.moved2)
    gone = (shrunk + later * facts.reach * gain * known[k, LENGTH]) * (1 + 2.0**-30)
    st.way += gone + st.way * 2.0**-52  # so that differences are not less than the moves
    here = -1
    for h in range(st.n_hot):
        if hot.columns[h] == k:
            here = h
    for h in range(st.n_hot):
        own = hot.columns[h]
        if here >= 0 and not math.isnan(hot.products[h, here]):
            hot.effect[h] += amount * hot.products[h, here]
            error = gain * hot.errors[h, here] + 2.0**-52 * abs(hot.effect[h])
            hot.bound[h] += error
            hot.open[h] += error
            continue
        hot.open[h] += gain * facts.steep * STEPS * common_size(own, k, known)
        if here >= 0 and (hot.unknown[h] == here or hot.unknown[h] == -1):
            hot.unknown[h] = here
            hot.amount[h] += amount
        else:
            hot.unknown[h] = -2  # several: nothing can be learned from their sum


@njit(cache=True, nogil=True)
def add_weight(k, amount, weight, walk, state):
    """Change an entry of w, and the sum of the sizes of all entries."""
    i = (k * 0x9E3779B1) & (len(walk.keys) - 1)
    while walk.keys[i] >= 0 and walk.keys[i] != k:
        i = (i + 1) & (len(walk.keys) - 1)
    walk.keys[i] = k
    before = abs(walk.weights[i])
    walk.weights[i] += amount
    state[0].w_sum += (abs(walk.weights[i]) - before) * weight


@njit(cache=True, nogil=True)
def begin(k, amount, columns, rows, walk, state):
    """Start at a multiple of one column."""
    unit, weight = of(columns.units, k), of(columns.relative, k)
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        x = on_grid(columns.data[e], unit, columns.lowest)
        rows.v[columns.indices[e]] += amount * weight * x
    add_weight(k, amount, weight, walk, state)


@njit(cache=True, nogil=True)
def advance(until, columns, rows, known, classes, groups, hot, walk, facts, words, state):
    """Select until step `until`, or until something is needed from outside; says what."""
    st = state[0]
    while st.t < until:
        now = numbers_now(facts, walk, state)
        if (
            st.n_hot > 0
            or not facts.mirrored
            or now.drift2 > st.allowed2
            or now.drift_max > st.allowed_max
            or now.rest > st.allowed_rest
            or now.rest_max > st.allowed_rest_max
            or now.rounding > st.allowed_rounding
            or now.strength > st.allowed_strength
        ):
            st.envelope = 0
        if st.pending == NOTHING:
            asked = select_column(
                columns, rows, known, classes, groups, hot, walk, facts, words, now, state
            )
            if asked != FOUND:
                return asked
            st.pending = SIGN
        if st.pending == SIGN:
            asked = select_sign(columns, rows, facts, words, now, state)
            if asked != FOUND:
                return asked
        move(columns, rows, known, hot, walk, facts, now, state)
        st.pending = NOTHING
        st.t += 1
    return DONE
