"""Many selections along a Frank-Wolfe walk, compiled.

The walk's model is scale * w, and a selection adds a multiple of one column to the margins X w,
so a step touches the rows of one column only. Scores are known from a snapshot and from bounds on
how far they moved since; candidates are proposed from an envelope and accepted or rejected exactly
as `mechanisms/rejection.py` does. docs/privacy/compiled_walk.md has the proofs. In short:

    score_k = <x_k, slopes>,     log-weight = strength * score_k / (largest slope)

Since the snapshot at margins m0, with the scale then `scale0` and `kept` = scale / scale0,

    slopes = s0 + omega (m - m0) + second order,     m - m0 = (kept - 1) m0 + scale (v - v0) .

<x_k, s0> and <x_k, omega m0> are known. What (v - v0) adds is computed for the
`hot` columns from inner products of columns. For others its part along m0 is, as m - m0 is also
(multiple - 1) m0 and a shortest rest, and the rest is bounded.
"""

from __future__ import annotations

import math

import numpy as np

from riata.engines.kernels.bounds import (
    between,
    hot_between,
    numbers_now,
)
from riata.engines.kernels.compiled import compiled, inlined
from riata.engines.kernels.hot import make_hot, resolve
from riata.engines.kernels.losses import slope
from riata.engines.kernels.moves import move
from riata.engines.kernels.snapshot import (
    entries_of,
    of,
    on_grid,
    score_at,
)
from riata.engines.kernels.state import (
    LARGE,
    MOST_HOT,
    SIZE,
    STEPS,
)

#: Why a call came back.
DONE, WORDS, SNAPSHOT, REGROUP, ACROSS, DECIDE_COLUMN, DECIDE_SIGN, FOUND = range(8)

#: What a step still needs.
NOTHING, SIGN, MOVE = range(3)
TOTAL_BITS = 61
SLACK = 2.0**-38
BAND = 2.0**-36

#: The envelope is kept while the logarithms of weights stay within this much of its own.
ROOM = 0.05

#: A snapshot is due after this part of a pass was read in vain. Groups are made anew after as many
#: proposals in vain as would take as long; a proposal costs so many entries, and a column so many.
#: Hot columns are copied after the last part of a pass was read for what is unknown.
WASTE, PROPOSAL, GROUPING, UNKNOWN = 0.5, 32, 2, 0.25


@inlined
def log_weight(value, mirrored):
    if not mirrored:
        return value
    size = abs(value)
    return size + math.log1p(math.exp(-2.0 * size))


@compiled
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


@inlined
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


@compiled
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


@compiled
def set_exact(columns, facts, state):
    """The value of the column in the state, from its total."""
    st = state[0]
    weight = of(columns.relative, st.column) / (STEPS * STEPS)
    st.low = -facts.strength * (float(st.total) * weight)
    st.high = st.low
    st.exact = 1


@compiled
def select_column(columns, rows, known, classes, groups, hot, walk, facts, words, now, state):
    """Propose columns until one is accepted: leaves it in the state, with bounds on its value."""
    st = state[0]
    entries = np.int64(columns.indptr[len(columns.indptr) - 1])
    while True:
        if st.wasted > WASTE * entries:
            return SNAPSHOT
        if st.idle > GROUPING * len(known):
            st.wasted += GROUPING * len(known)
            return REGROUP if facts.smooth and now.multiple != st.grouped else SNAPSHOT
        if st.unknown_read > UNKNOWN * entries and 4 * st.n_hot > 5 * st.n_across:
            return ACROSS
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
                centre = score_at(k, known, now.kept, facts) + now.factor * hot.effect[h]
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
            if outcome < 0 and (h < 0 or facts.bend > 0):  # else a snapshot would change nothing
                st.wasted += entries_of(columns, k)
        if outcome > 0:
            return FOUND
        st.idle += PROPOSAL


@compiled
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


@compiled
def advance(until, columns, rows, known, classes, groups, hot, across, walk, facts, words, state):
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
        move(columns, rows, known, hot, across, walk, facts, now, state)
        st.pending = NOTHING
        st.t += 1
    return DONE
