"""Many selections along a Frank-Wolfe path, compiled.

The path's model is scale * w, and a selection adds a multiple of one column to the margins X w,
so a step touches the rows of one column only. Scores are known from a snapshot and from bounds on
how far they moved since; candidates are proposed from an envelope and accepted or rejected exactly
as `mechanisms/rejection.py` does. docs/privacy/compiled_selection.md has the proofs. In short:

    score_k = <x_k, slopes>,     log-weight = strength * score_k / (largest slope)

A score has moved by at most the length of its column times the length of m - m0, the move of all
margins since the snapshot, or by the sum of its entries times the largest entry of m - m0, which a
sweep over the rows finds now and then. For the `hot` columns and smooth losses

    slopes = s0 + omega (m - m0) + second order,     omega the derivative at m0,

and <x_k, omega (m - m0)> follows from inner products of columns.
"""

from __future__ import annotations

import math

import numpy as np

from riata.engines.compiled.bounds import (
    between,
    hot_between,
    numbers_now,
)
from riata.engines.compiled.hot import make_hot, resolve
from riata.engines.compiled.jit import compiled, inlined, part_of_step
from riata.engines.compiled.losses import slope
from riata.engines.compiled.moves import move
from riata.engines.compiled.snapshot import (
    entries_of,
    entry,
    of,
    sweep,
)
from riata.engines.compiled.state import LARGE, SIZE, STEPS
from riata.mechanisms import envelope
from riata.mechanisms.envelope import CELL, TOTAL_BITS
from riata.mechanisms.envelope import COMPILED_BAND as BAND
from riata.mechanisms.envelope import COMPILED_ROUNDING as ROUNDING
from riata.mechanisms.envelope import COMPILED_SLACK as SLACK

#: Why a call came back.
DONE, WORDS, SNAPSHOT, CHOOSE, SWEEP, ACROSS, DECIDE_COLUMN, DECIDE_SIGN, FOUND = range(9)

#: What is known of the value of a column that was accepted.
AT_MOST, BETWEEN, EXACTLY = range(3)

#: What a step still needs.
NOTHING, SIGN, MOVE = range(3)

#: Heights that add up to less than this are rounded up by too much.
FEW = 2**50
LOG_2 = math.log(2.0)

#: The envelope is kept while the logarithms of weights stay within this much of its own.
ROOM = 0.05

#: A snapshot is due after this part of a pass was read in vain, and hot columns are chosen after a
#: smaller one. A proposal costs as many entries, and a column at a snapshot as many.
WASTE, CHOICE, PROPOSAL, GROUPING = 0.5, 0.05, 32, 2

#: A sweep is due after as many entries in vain for each row, if the largest move may have become so
#: many times that of the last one.
SWEEPING, SWEPT = 0.25, 1.25

#: Hot columns are copied after this part of a pass was read for what is unknown.
UNKNOWN = 0.25


log_weight = inlined(envelope.log_weight)
extremes = inlined(envelope.extremes)
positive_probability = inlined(envelope.positive_probability)


@inlined
def set_log(g, now, known, groups, hot, facts, state):
    """The logarithm of a weight that no column of a group has more than."""
    st = state[0]
    if g < st.n_groups:
        bound = min(groups.length[g] * st.allowed2, groups.size[g] * st.allowed_max)
        bound += groups.score[g] + groups.size[g] * st.allowed_rounding
    else:
        low, high = hot_between(g - st.n_groups, now, known, hot, facts)
        bound = max(abs(low), abs(high)) if facts.symmetric else -low
    value = st.allowed_strength * bound
    groups.logs[g] = log_weight(value, facts.symmetric) + SLACK * (1.0 + abs(value))
    groups.most[g] = value


@inlined
def set_height(g, groups, facts, state):
    """From the logarithm of the largest weight to a whole number, and what goes with it."""
    st = state[0]
    share = 0.0
    if groups.logs[g] - st.top > -64.0:
        share = math.exp(groups.logs[g] - st.top) * (1 + SLACK)
    height = np.int64(math.floor(math.ldexp(share, st.bits))) + 1
    groups.heights[g] = height
    # From here on, the factor that makes e^(log-weight - top) a probability.
    groups.logs[g] = math.ldexp(1.0, st.bits) / float(height)
    groups.surely[g] = -1.0
    if facts.symmetric:  # e^v + e^-v is at least 2
        chance = groups.logs[g] * math.exp(LOG_2 - st.top)
        groups.surely[g] = chance - BAND - ROUNDING * abs(st.top)


@inlined
def set_ends(first, groups, state):
    """The sums of heights up to each group, from one on."""
    st = state[0]
    before = groups.ends[first - 1] if first > 0 else np.int64(0)
    for g in range(first, st.n_groups + st.n_hot):
        before += groups.heights[g] * (groups.counts[g] if g < st.n_groups else 1)
        groups.ends[g] = before


@compiled
def set_envelope(now, known, groups, hot, facts, state):
    """Whole numbers that are at least 2^bits * weight / e^top, for groups and hot columns.

    Where all is quiet they are made a little larger, to hold for later steps as well.
    """
    st = state[0]
    room = 0.0 if st.n_hot > 0 or not facts.symmetric else ROOM
    highest = 0.0
    for g in range(st.n_groups):
        highest = max(highest, groups.score[g])
    longest = now.strength * max(st.longest, 2.0**-150)  # all columns may be empty
    largest = longest * facts.root_n
    st.allowed2 = now.drift2 + room / longest
    st.allowed_max = now.drift_max + room / largest
    st.allowed_rounding = now.rounding + room / largest
    st.allowed_strength = now.strength * (1 + room / (1.0 + now.strength * highest))
    top, n = -math.inf, st.n_groups + st.n_hot
    for g in range(n):
        groups.logs[g] = -math.inf
        if g >= st.n_groups or groups.counts[g] > 0:
            set_log(g, now, known, groups, hot, facts, state)
            top = max(top, groups.logs[g])
    mass = 0.0
    for g in range(n):
        count = groups.counts[g] if g < st.n_groups else 1
        mass += count * 2.0**-TOTAL_BITS
        if groups.logs[g] - top > -64.0:
            mass += count * math.exp(groups.logs[g] - top)
    st.top, st.bits = top, TOTAL_BITS - math.ceil(math.log2(mass) + 0.01)
    for g in range(n):
        groups.heights[g] = 0
        if groups.logs[g] > -math.inf:
            set_height(g, groups, facts, state)
    set_ends(0, groups, state)
    st.envelope = 1
    st.rebuilt += 1


@compiled
def lower(g, now, known, groups, hot, facts, state):
    """Let one hot column, of which more is known now, have less of the envelope."""
    st = state[0]
    set_log(g, now, known, groups, hot, facts, state)
    set_height(g, groups, facts, state)
    set_ends(g, groups, state)
    if groups.ends[st.n_groups + st.n_hot - 1] < FEW:
        st.envelope = 0


@inlined
def settled(u, low, high, top, factor, symmetric):
    """1 if a candidate with such bounds is surely accepted, -1 if surely not, else 0."""
    least, most = extremes(low, high, symmetric)
    band = BAND + ROUNDING * abs(top)
    if u > factor * math.exp(min(log_weight(most, symmetric) - top, 1.0)) + band:
        return -1
    if u < factor * math.exp(min(log_weight(least, symmetric) - top, 1.0)) - band:
        return 1
    return 0


@compiled
def total_of(k, columns, rows, now, facts):
    """The sum of entry * slope of a column, in whole steps: exactly."""
    total, few = np.int64(0), rows.few
    unit, most = of(columns.units, k), facts.slope_steps
    to_steps = most / now.largest
    first, stop = np.int64(columns.indptr[k]), np.int64(columns.indptr[k + 1])
    while first < stop:  # some at a time, so that slopes are computed for several at once
        size = min(few.shape[1], stop - first)
        for j in range(size):
            e = np.uint64(first + j)
            i = columns.indices[e]
            few[0, j] = rows.v[i] * facts.level * now.grid
            few[1, j] = rows.y[i]
            few[2, j] = entry(columns, e, unit)
        for j in range(size):
            s = slope(facts.loss, facts.parameter, few[0, j], few[1, j]) * to_steps
            s = s if s < most else most  # and if it is NaN
            few[2, j] *= np.rint(s if s > -most else -most)
        for j in range(size):
            total += np.int64(few[2, j])
        first += size
    return total


@compiled
def set_exact(columns, rows, now, facts, state):
    """Evaluate the column in the state."""
    st = state[0]
    st.total = total_of(st.column, columns, rows, now, facts)
    st.read += entries_of(columns, st.column)
    weight = of(columns.relative, st.column) / (STEPS * facts.slope_steps)
    st.low = -facts.strength * (float(st.total) * weight)
    st.high, st.known = st.low, EXACTLY


@part_of_step
def set_between(now, known, hot, facts, state):
    """Bounds on the value of the column in the state."""
    st = state[0]
    h = st.group - st.n_groups
    if h < 0:
        low, high = between(st.column, now, known)
    else:
        low, high = hot_between(h, now, known, hot, facts)
    st.low, st.high, st.known = -now.strength * high, -now.strength * low, BETWEEN


@inlined
def much_open(h, now, hot, state):
    """Whether much of what is not known of a hot column is what moves did to it."""
    return now.strength * now.factor * hot.open[h] > (state[0].high - state[0].low) / 4


@part_of_step
def select_column(columns, rows, known, classes, groups, hot, path, facts, words, now, state):
    """Propose columns until one is accepted: leaves it in the state, with bounds on its value."""
    st, n = state[0], len(rows.v)
    entries = np.int64(columns.indptr[len(columns.indptr) - 1])
    while True:
        if st.wasted > WASTE * entries + GROUPING * len(known):
            return SNAPSHOT
        if st.chosen == 0 and st.wasted > CHOICE * entries:
            return CHOOSE
        if st.strayed > SWEEPING * n and now.far_max > SWEPT * st.swept_largest:
            return SWEEP
        if st.unknown_read > UNKNOWN * entries and 4 * st.n_hot > 5 * st.n_across:
            return ACROSS
        if st.next_word + 2 > len(words):
            return WORDS
        if st.envelope == 0:
            set_envelope(now, known, groups, hot, facts, state)
        last = st.n_groups + st.n_hot - 1
        total = np.uint64(groups.ends[last])
        word = words[st.next_word]
        most = np.uint64(0xFFFFFFFFFFFFFFFF)
        st.next_word += 1
        if word >= most - most % total:  # what is below is a multiple of the total
            continue
        number = np.int64(word % total)
        g, beyond = 0, last
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
            st.column = groups.order[st.place]
        else:
            st.column = hot.columns[h]
        st.group, st.coin, st.known = g, coin, AT_MOST
        u = (coin + 0.5) * CELL
        if u < groups.surely[g]:
            return FOUND
        # Of the envelope that proposes, whatever is learned from here on.
        top, factor, st.height = st.top, groups.logs[g], groups.heights[g]
        set_between(now, known, hot, facts, state)
        outcome = settled(u, st.low, st.high, top, factor, facts.symmetric)
        if outcome == 0 and h >= 0 and facts.smooth and much_open(h, now, hot, state):
            resolve(h, columns, rows, known, hot, facts, path.gains[st.t], state)
            lower(g, now, known, groups, hot, facts, state)
            set_between(now, known, hot, facts, state)
            outcome = settled(u, st.low, st.high, top, factor, facts.symmetric)
        size = entries_of(columns, st.column)
        if outcome == 0:
            set_exact(columns, rows, now, facts, state)
            if h >= 0 and facts.bend > 0:
                # Keep what the second order is now: it changes slowly from here on.
                centre = hot.score[h] + now.factor * hot.effect[h] - hot.start[h]
                hot.beyond[h] = -st.low / now.strength - centre
                hot.unsure[h] = known[st.column, SIZE] * now.fine
                hot.unsure[h] += now.factor * hot.open[h] + hot.doubt[h]
                hot.far[h], hot.way[h] = now.far2, now.way
                lower(g, now, known, groups, hot, facts, state)
            outcome = settled(u, st.low, st.high, top, factor, facts.symmetric)
            if outcome == 0:
                return DECIDE_COLUMN
            if h < 0 and size >= LARGE and st.n_hot < len(hot.columns):
                share = st.height / float(total)
                if outcome < 0 or share > 0.05:
                    make_hot(columns, rows, known, classes, groups, hot, facts, state)
            if outcome < 0 and h < 0:
                st.wasted += size
                st.strayed += size
            elif outcome < 0 and facts.bend > 0:  # else a snapshot would change nothing
                st.wasted += size // 2
        if outcome > 0:
            return FOUND
        st.wasted += PROPOSAL
        st.strayed += PROPOSAL


@part_of_step
def select_sign(columns, rows, known, groups, hot, facts, words, now, state):
    """The sign of an accepted column: positive with probability 1 / (1 + e^(-2 value))."""
    st = state[0]
    if not facts.symmetric:
        st.sign = 1
        return FOUND
    if st.next_word + 1 > len(words):
        return WORDS
    st.coin = np.int64(words[st.next_word] >> np.uint64(12))
    st.next_word += 1
    u = (st.coin + 0.5) * CELL
    if st.known == AT_MOST:  # the probability is within half of the value of 1/2
        if abs(u - 0.5) > groups.most[st.group] / 2 + BAND:
            st.sign = 1 if u < 0.5 else -1
            return FOUND
        set_between(now, known, hot, facts, state)
    while True:
        if u < positive_probability(st.low) - BAND:
            st.sign = 1
            return FOUND
        if u > positive_probability(st.high) + BAND:
            st.sign = -1
            return FOUND
        if st.known == EXACTLY:
            return DECIDE_SIGN
        set_exact(columns, rows, now, facts, state)


@compiled
def advance(until, columns, rows, known, classes, groups, hot, across, path, facts, words, state):
    """Select until step `until`, or until something is needed from outside; says what."""
    st = state[0]
    while st.t < until:
        now = numbers_now(facts, path, state)
        if st.begun == 0 and (
            st.n_hot > 0
            or not facts.symmetric
            or now.drift2 > st.allowed2
            or now.drift_max > st.allowed_max
            or now.rounding > st.allowed_rounding
            or now.strength > st.allowed_strength
        ):
            st.envelope = 0
        st.begun = 1
        if st.pending == NOTHING:
            asked = select_column(
                columns, rows, known, classes, groups, hot, path, facts, words, now, state
            )
            if asked == SWEEP:
                sweep(rows, now, path, state)
                st.envelope = 0
                continue
            if asked != FOUND:
                return asked
            st.pending = SIGN
        if st.pending == SIGN:
            asked = select_sign(columns, rows, known, groups, hot, facts, words, now, state)
            if asked != FOUND:
                return asked
        move(columns, rows, known, classes, hot, across, path, facts, now, state)
        st.pending, st.begun = NOTHING, 0
        st.t += 1
    return DONE
