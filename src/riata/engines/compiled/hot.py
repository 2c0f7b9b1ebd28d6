"""Columns with bounds of their own, from their inner products with the columns that moved.

An inner product is learned when a hot column is looked at and one other alone has moved since. And
if that is worth it, all inner products with a column are computed at once, from a copy of the hot
columns that is ordered by rows.
"""

from __future__ import annotations

import math

import numpy as np

from riata.engines.compiled.bounds import ROUNDING, common_size
from riata.engines.compiled.jit import compiled, inlined
from riata.engines.compiled.snapshot import (
    bound_group,
    entries_of,
    entry,
    of,
)
from riata.engines.compiled.state import (
    HOT,
    LARGE,
    MOST_MOVED,
    SCORE,
    SIZE,
    STEPS,
)

#: What is read to learn about hot columns is not in vain, but for one part in so many.
LEARNING = 16

#: So many entries of rows of hot columns are read in the time of one of a column. All inner
#: products with a column are computed if that takes less than is read in so many steps for what is
#: unknown.
QUICKER, AHEAD = 4, 16


@inlined
def turned(i, v, rows, facts):
    """omega v of a row. It is the same for all rows if the slope is straight."""
    return (facts.steep if facts.slope_curvature == 0 else float(rows.omega[i])) * float(v[i])


@compiled
def effect_of_moves(k, columns, rows, facts):
    """<x_k, omega v>."""
    total, unit = 0.0, of(columns.units, k)
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        total += entry(columns, e, unit) * turned(columns.indices[e], rows.v, rows, facts)
    return total * (of(columns.relative, k) / STEPS)


@compiled
def begin_hot(h, columns, known, hot, facts, state):
    """What is known of a hot column at the snapshot, when `start` and `effect` were computed."""
    st, k = state[0], hot.columns[h]
    rounding = blur(k, columns, known, facts, state)
    hot.score[h], hot.bound[h], hot.open[h] = float(known[k, SCORE]), rounding, rounding
    factor0 = st.margin_unit0 * facts.level
    hot.start[h] *= factor0
    hot.doubt[h] = ROUNDING * known[k, SIZE] * st.largest0 + factor0 * rounding
    hot.unknown[h], hot.amount[h] = -1, 0.0
    hot.beyond[h], hot.unsure[h], hot.far[h], hot.way[h] = 0.0, 0.0, math.inf, 0.0


@compiled
def look_at_hot(h, columns, rows, known, hot, facts, state):
    """The products of a hot column with omega v, now and at the snapshot."""
    k = hot.columns[h]
    start, effect, unit = 0.0, 0.0, of(columns.units, k)
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        i, x = columns.indices[e], entry(columns, e, unit)
        start += x * turned(i, rows.v0, rows, facts)
        effect += x * turned(i, rows.v, rows, facts)
    weight = of(columns.relative, k) / STEPS
    hot.start[h], hot.effect[h] = start * weight, effect * weight
    begin_hot(h, columns, known, hot, facts, state)


@compiled
def look_at_all_hot(first, columns, rows, known, hot, across, facts, state):
    """The same for all hot columns from one on, row by row where they are copied."""
    st, written = state[0], len(across.values) > 0
    hot.start[first : st.n_across] = 0.0
    hot.effect[first : st.n_across] = 0.0
    for i in range(len(across.starts) - 1):
        start, effect = turned(i, rows.v0, rows, facts), turned(i, rows.v, rows, facts)
        if start == 0.0 and effect == 0.0:
            continue
        for place in range(across.starts[i], across.starts[i + 1]):
            h = across.places[place]
            if h >= first:
                x = float(across.values[place]) if written else 1.0
                hot.start[h] += x * start
                hot.effect[h] += x * effect
    for h in range(first, st.n_hot):
        if h >= st.n_across:
            look_at_hot(h, columns, rows, known, hot, facts, state)
            continue
        weight = of(columns.relative, hot.columns[h]) / STEPS
        weight *= 1.0 if written else across.levels[h]
        hot.start[h] *= weight
        hot.effect[h] *= weight
        begin_hot(h, columns, known, hot, facts, state)


@compiled
def blur(k, columns, known, facts, state):
    """What rounding may make of the product of a column with omega v, now or before."""
    steps = state[0].t + 2.0
    most = facts.steep * known[k, SIZE] * facts.span * steps * steps
    return (entries_of(columns, k) + 16) * 2.0**-52 * most


@inlined
def keep_product(h, j, product, error, hot):
    """Keep an inner product of two hot columns, for when one of them moves again."""
    if hot.slot[j] >= 0:
        hot.products[hot.slot[j], h], hot.errors[hot.slot[j], h] = product, error
    if hot.slot[h] >= 0:
        hot.products[hot.slot[h], j], hot.errors[hot.slot[h], j] = product, error


@compiled
def count_move(h, hot, state):
    """A hot column moves: from the first time on its inner products are kept."""
    st = state[0]
    hot.moves[h] += 1
    if hot.slot[h] < 0 and st.n_moved < MOST_MOVED:
        hot.slot[h] = st.n_moved
        hot.products[st.n_moved, :] = math.nan
        st.n_moved += 1


@compiled
def resolve(h, columns, rows, known, hot, facts, gain, state):
    """Find out what the moves did to a hot column, and learn an inner product if that shows one."""
    k = hot.columns[h]
    effect = effect_of_moves(k, columns, rows, facts)
    rounding = blur(k, columns, known, facts, state)
    entries = entries_of(columns, k)
    state[0].read += entries
    state[0].unknown_read += entries
    state[0].unknown_rate += entries / 16.0
    state[0].wasted += entries // LEARNING
    j = hot.unknown[h]
    if j >= 0 and abs(hot.amount[h]) > 0.4 * gain:
        product = (effect - hot.effect[h]) / hot.amount[h]
        most = facts.steep * (STEPS / facts.level) * common_size(k, hot.columns[j], known)
        error = (hot.bound[h] + rounding) / abs(hot.amount[h]) + 2.0**-50 * most
        if error < 2.0**-12 * most:
            keep_product(h, j, product, error, hot)
    hot.effect[h], hot.open[h], hot.unknown[h], hot.amount[h] = effect, rounding, -1, 0.0
    hot.bound[h] = rounding


@compiled
def add_hot(k, classes, hot, state):
    """A column that gets bounds of its own: `look_at_hot` must follow."""
    st = state[0]
    h = st.n_hot
    st.n_hot += 1
    st.envelope = 0
    classes[k] += HOT
    hot.columns[h] = k
    hot.products[: st.n_moved, h] = math.nan
    hot.moves[h], hot.met[h], hot.slot[h] = 0, 0, -1


@compiled
def add_several_hot(chosen, classes, hot, state):
    for k in chosen:
        add_hot(k, classes, hot, state)


@compiled
def make_hot(columns, rows, known, classes, groups, hot, facts, state):
    """Give the column that was just evaluated bounds of its own."""
    st = state[0]
    k, g = st.column, st.group
    last = groups.starts[g] + groups.counts[g] - 1
    groups.order[st.place], groups.order[last] = groups.order[last], k
    groups.counts[g] -= 1
    if groups.counts[g] <= LARGE:  # it may have been the one that made the group's bounds large
        bound_group(g, known, groups, facts)
    add_hot(k, classes, hot, state)
    if facts.smooth:
        look_at_hot(st.n_hot - 1, columns, rows, known, hot, facts, state)
        st.read += entries_of(columns, k)
        st.wasted += entries_of(columns, k)


@compiled
def find_levels(columns, hot, n_hot, levels):
    """Whether each hot column has the same entry all over, and which."""
    for h in range(n_hot):
        k = hot[h]
        unit, first = of(columns.units, k), columns.indptr[k]
        for e in range(first, columns.indptr[k + 1]):
            x = entry(columns, e, unit)
            if e == first:
                levels[h] = x
            if x != levels[h]:
                return False
    return True


@compiled
def copy_across(columns, hot, n_hot, reached, few, starts, places, values):
    """Put the entries of hot columns into their rows, some rows at a time.

    `reached` is where each column begins. `few` has room for the rows of one turn.
    """
    n, before = len(starts) - 1, np.uint32(0)
    for begin in range(0, n, len(few)):
        end = min(begin + len(few), n)
        few[:] = 0
        for h in range(n_hot):
            e, stop = reached[h], columns.indptr[hot[h] + 1]
            while e < stop and columns.indices[e] < end:
                few[columns.indices[e] - begin] += 1
                e += np.uint64(1)
        for i in range(begin, end):
            starts[i] = before
            before += few[i - begin]
            few[i - begin] = starts[i]
        for h in range(n_hot):
            k = hot[h]
            unit = of(columns.units, k)
            e, stop = reached[h], columns.indptr[k + 1]
            while e < stop and columns.indices[e] < end:
                i = columns.indices[e] - begin
                places[few[i]] = h
                if len(values) > 0:
                    values[few[i]] = entry(columns, e, unit)
                few[i] += 1
                e += np.uint64(1)
            reached[h] = e
    starts[n] = before


@compiled
def products_across(k, columns, rows, hot, across, facts, n):
    """<x_k, omega x_h> for the first n hot columns, in `hot.fresh`."""
    fresh = hot.fresh
    fresh[:n] = 0.0
    unit, written = of(columns.units, k), len(across.values) > 0
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        i = columns.indices[e]
        x = entry(columns, e, unit)
        if facts.slope_curvature > 0:
            x *= rows.omega[i]
        if written:
            for place in range(across.starts[i], across.starts[i + 1]):
                fresh[across.places[place]] += x * across.values[place]
        else:
            for place in range(across.starts[i], across.starts[i + 1]):
                fresh[across.places[place]] += x
    scale = of(columns.relative, k) / STEPS / facts.level
    scale *= 1.0 if facts.slope_curvature > 0 else facts.steep
    for h in range(n):
        level = 1.0 if written else across.levels[h]
        fresh[h] *= scale * level * of(columns.relative, hot.columns[h])


@compiled
def look_across(k, here, columns, rows, known, hot, across, facts, state):
    """Compute all inner products with a column that moves, if that is worth it; whether it was."""
    st = state[0]
    n, entries = st.n_across, entries_of(columns, k)
    if n == 0 or (here >= 0 and hot.slot[here] >= 0 and hot.met[here] == n):
        return False
    moves = 1 if here < 0 else hot.moves[here]
    work = entries * (1 + len(across.places) // (len(across.starts) - 1) // QUICKER)
    if work > AHEAD * moves * st.unknown_rate:
        return False
    products_across(k, columns, rows, hot, across, facts, n)
    st.read += work
    if here >= 0 and hot.slot[here] >= 0:
        hot.met[here] = n
        for h in range(n):
            own = hot.columns[h]
            most = facts.steep * (STEPS / facts.level) * common_size(k, own, known)
            error = (entries + 16) * 2.0**-52 * most
            keep_product(h, here, hot.fresh[h], error, hot)
    return True
