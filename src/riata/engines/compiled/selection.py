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

import numpy as np

from riata.engines.compiled.bounds import (
    between,
    hot_between,
    numbers_now,
)
from riata.engines.compiled.heights import lower, positive_probability, set_envelope, settled
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
from riata.mechanisms.envelope import CELL
from riata.mechanisms.envelope import COMPILED_BAND as BAND

#: Why a call came back.
DONE, WORDS, SNAPSHOT, CHOOSE, SWEEP, ACROSS, DECIDE_COLUMN, DECIDE_SIGN, FOUND = range(9)

#: What is known of the value of a column that was accepted.
AT_MOST, BETWEEN, EXACTLY = range(3)

#: What a step still needs.
NOTHING, SIGN, MOVE = range(3)


#: A snapshot is due after this part of a pass was read in vain, and hot columns are chosen after a
#: smaller one. A proposal costs as many entries, and a column at a snapshot as many.
WASTE, CHOICE, PROPOSAL, GROUPING = 0.5, 0.05, 32, 2

#: A sweep is due after as many entries in vain for each row, if the largest move may have become so
#: many times that of the last one.
SWEEPING, SWEPT = 0.25, 1.25

#: Hot columns are copied after this part of a pass was read for what is unknown.
UNKNOWN = 0.25


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


@inlined
def needed_first(now, n_rows, n_columns, entries, n_words, state):
    """What is needed from outside before a column is proposed, or FOUND if nothing is."""
    st = state[0]
    if st.wasted > WASTE * entries + GROUPING * n_columns:
        return SNAPSHOT
    if st.chosen == 0 and st.wasted > CHOICE * entries:
        return CHOOSE
    if st.strayed > SWEEPING * n_rows and now.far_max > SWEPT * st.swept_largest:
        return SWEEP
    if st.unknown_read > UNKNOWN * entries and 4 * st.n_hot > 5 * st.n_across:
        return ACROSS
    if st.next_word + 2 > n_words:
        return WORDS
    return FOUND


@inlined
def group_of(number, last, groups):
    """The first group that ends after a number."""
    g, beyond = 0, last
    while g < beyond:
        middle = (g + beyond) // 2
        if groups.ends[middle] > number:
            beyond = middle
        else:
            g = middle + 1
    return g


@inlined
def set_column(g, number, groups, hot, state):
    """The column of a group that a number stands for."""
    st = state[0]
    st.group = g
    if g >= st.n_groups:
        st.column = hot.columns[g - st.n_groups]
    else:
        before = groups.ends[g] - groups.heights[g] * groups.counts[g]
        st.place = groups.starts[g] + (number - before) // groups.heights[g]
        st.column = groups.order[st.place]


@inlined
def keep_second_order(h, now, known, hot, state):
    """Of a hot column that was evaluated: the second order changes slowly from here on."""
    st = state[0]
    centre = hot.score[h] + now.factor * hot.effect[h] - hot.start[h]
    hot.beyond[h] = -st.low / now.strength - centre
    hot.unsure[h] = known[st.column, SIZE] * now.fine
    hot.unsure[h] += now.factor * hot.open[h] + hot.doubt[h]
    hot.far[h], hot.way[h] = now.far2, now.way


@part_of_step
def select_column(columns, rows, known, classes, groups, hot, path, facts, words, now, state):
    """Propose columns until one is accepted: leaves it in the state, with bounds on its value."""
    st, n = state[0], len(rows.v)
    entries = np.int64(columns.indptr[len(columns.indptr) - 1])
    while True:
        asked = needed_first(now, n, len(known), entries, len(words), state)
        if asked != FOUND:
            return asked
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
        g = group_of(number, last, groups)
        coin = np.int64(words[st.next_word] >> np.uint64(12))
        st.next_word += 1
        st.proposals += 1
        h = g - st.n_groups
        set_column(g, number, groups, hot, state)
        st.coin, st.known = coin, AT_MOST
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
            if h >= 0 and facts.slope_curvature > 0:
                keep_second_order(h, now, known, hot, state)
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
            elif outcome < 0 and facts.slope_curvature > 0:  # else a snapshot would change nothing
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
