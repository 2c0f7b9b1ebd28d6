"""Columns with bounds of their own, from their inner products with the columns that moved.

An inner product is learned when a hot column is looked at and one other alone has moved since. And
if that is worth it, all inner products with a column are computed at once, from a copy of the hot
columns that is ordered by rows.
"""

from __future__ import annotations

import math

import numpy as np

from riata.engines.kernels.bounds import (
    common_size,
)
from riata.engines.kernels.compiled import compiled
from riata.engines.kernels.snapshot import (
    bound_group,
    entries_of,
    of,
    on_grid,
)
from riata.engines.kernels.state import (
    HOT,
    LARGE,
    SIZE,
    STEPS,
)

#: What is read to learn about hot columns is not in vain, but for one part in so many.
LEARNING = 16

#: So many entries of rows of hot columns are read in the time of one of a column. All inner
#: products with a column are computed if that takes less than is read in so many steps for what is
#: unknown.
QUICKER, AHEAD = 4, 16


@compiled
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


@compiled
def blur(k, columns, known, facts, state):
    """What rounding may make of the effect of moves on a column."""
    most = facts.steep * known[k, SIZE] * state[0].v_largest
    return (entries_of(columns, k) + 16) * 2.0**-52 * most


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
        most = facts.steep * STEPS * common_size(k, hot.columns[j], known)
        error = (hot.bound[h] + rounding) / abs(hot.amount[h]) + 2.0**-50 * most
        if error < 2.0**-12 * most:
            hot.products[h, j] = product
            hot.products[j, h] = product
            hot.errors[h, j] = error
            hot.errors[j, h] = error
    hot.effect[h], hot.open[h], hot.unknown[h], hot.amount[h] = effect, rounding, -1, 0.0
    hot.bound[h] = rounding


@compiled
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
    hot.moves[h], hot.met[h] = 0, 0
    hot.effect[h], hot.open[h], hot.bound[h] = 0.0, 0.0, 0.0


@compiled
def make_hot(columns, rows, known, classes, groups, hot, facts, state):
    """Give the column that was just evaluated bounds of its own."""
    st = state[0]
    k, g = st.column, st.group
    last = groups.starts[g] + groups.counts[g] - 1
    groups.order[st.place], groups.order[last] = groups.order[last], k
    groups.counts[g] -= 1
    if groups.counts[g] <= LARGE:  # it may have been the one that made the group's bounds large
        bound_group(g, known, groups, st.grouped, facts)
    add_hot(k, classes, hot, state)
    if facts.smooth:
        h = st.n_hot - 1
        hot.effect[h] = effect_of_moves(k, columns, rows, facts)
        hot.bound[h] = blur(k, columns, known, facts, state)
        hot.open[h] = hot.bound[h]
        st.read += entries_of(columns, k)
        st.wasted += entries_of(columns, k)


@compiled
def find_levels(columns, hot, n_hot, levels):
    """Whether each hot column has the same entry all over, and which."""
    for h in range(n_hot):
        k = hot[h]
        unit, first = of(columns.units, k), columns.indptr[k]
        for e in range(first, columns.indptr[k + 1]):
            x = on_grid(columns.data[e], unit, columns.lowest)
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
                    values[few[i]] = on_grid(columns.data[e], unit, columns.lowest)
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
        x = on_grid(columns.data[e], unit, columns.lowest)
        if facts.bend > 0:
            x *= rows.omega[i]
        if written:
            for place in range(across.starts[i], across.starts[i + 1]):
                fresh[across.places[place]] += x * across.values[place]
        else:
            for place in range(across.starts[i], across.starts[i + 1]):
                fresh[across.places[place]] += x
    scale = of(columns.relative, k) / STEPS * (1.0 if facts.bend > 0 else facts.steep)
    for h in range(n):
        level = 1.0 if written else across.levels[h]
        fresh[h] *= scale * level * of(columns.relative, hot.columns[h])


@compiled
def look_across(k, here, columns, rows, known, hot, across, facts, state):
    """Compute all inner products with a column that moves, if that is worth it; whether it was."""
    st = state[0]
    n, entries = st.n_across, entries_of(columns, k)
    if n == 0 or (here >= 0 and hot.met[here] == n):
        return False
    moves = 1 if here < 0 else hot.moves[here]
    work = entries * (1 + len(across.places) // (len(across.starts) - 1) // QUICKER)
    if work > AHEAD * moves * st.unknown_rate:
        return False
    products_across(k, columns, rows, hot, across, facts, n)
    st.read += work
    if here >= 0:
        hot.met[here] = n
        for h in range(n):
            own = hot.columns[h]
            most = facts.steep * STEPS * common_size(k, own, known)
            error = (entries + 16) * 2.0**-52 * most
            hot.products[h, here] = hot.fresh[h]
            hot.products[here, h] = hot.fresh[h]
            hot.errors[h, here] = error
            hot.errors[here, h] = error
    return True
