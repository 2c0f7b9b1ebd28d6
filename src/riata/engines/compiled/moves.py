"""A step along a column: what it does to the rows, and to the hot columns."""

from __future__ import annotations

import math

import numpy as np

from riata.engines.compiled.bounds import common_size
from riata.engines.compiled.hot import count_move, look_across
from riata.engines.compiled.jit import compiled, inlined, part_of_step
from riata.engines.compiled.snapshot import entries_of, entry, of
from riata.engines.compiled.state import HOT, LENGTH, STEPS


@part_of_step
def move(columns, rows, known, classes, hot, across, path, facts, now, state):
    """Add the chosen column to the path."""
    st = state[0]
    k, t = st.column, st.t
    gain, weight = path.gains[t], of(columns.relative, k)
    path.picked[t] = k if st.sign > 0 else -k - 1
    here = -1
    if classes[k] >= HOT:
        here = 0
        while hot.columns[here] != k:
            here += 1
    added = add_weight(k, st.sign * gain, weight, facts, path, state)
    # What the column moves by, which is its gain where its bound is the largest.
    amount = added / weight
    gain = abs(amount)
    move_rows(k, added, columns, rows, facts, state)
    if facts.slope_curvature > 0:
        scale = path.scales[t + 1]
        length = now.far2 + now.factor0 * math.sqrt(st.v0_square)
        gone = abs(scale / path.scales[t] - 1.0) * length
        gone += scale * facts.reach * gain * known[k, LENGTH]
        # So that differences of ways are not less than the moves.
        st.way += gone * (1 + 2.0**-30) + st.way * 2.0**-52
    if facts.smooth and st.n_hot > 0:
        move_hot(k, here, amount, columns, rows, known, hot, across, facts, state)


@inlined
def in_levels(amount, columns, e, unit):
    """A multiple of an entry, in steps of `level`: of an entry that all others are like, itself."""
    return amount * entry(columns, e, unit) if columns.stride == 1 else amount


@part_of_step
def move_rows(k, added, columns, rows, facts, state):
    """Move the rows of a column, and what is known of all rows."""
    st = state[0]
    unit, gain = of(columns.units, k), abs(added)
    square, cross, largest = 0.0, 0.0, st.v_largest
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        i = columns.indices[e]
        v, v0 = float(rows.v[i]), float(rows.v0[i])
        moved = v + in_levels(added, columns, e, unit)
        rows.v[i] = moved
        before, after = v - v0, moved - v0
        cross += (moved - v) * v0
        square += (after - before) * (after + before)
        largest = max(largest, abs(after))
    st.v_square += square
    st.v_cross += cross
    # What the sums above may have lost to rounding, in units of 2^-52: for each addition one of the
    # sum of the sizes of what was added, which Cauchy and Schwarz bound for the second.
    entries = float(entries_of(columns, k))
    st.v_turnover += 2.0 * entries * (entries + 16) * largest * largest + abs(st.v_square)
    most = facts.span * gain * math.sqrt(entries * st.v0_square)
    st.cross_turnover += 2.0 * (entries + 16) * most + abs(st.v_cross)
    st.v_largest = largest
    way = gain * facts.span
    if added > 0 or facts.signed:
        st.up += way
    if added < 0 or facts.signed:
        st.down += way


@compiled
def move_hot(k, here, amount, columns, rows, known, hot, across, facts, state):
    """What a move along a column does to the hot ones. It is the hot column `here`, or -1."""
    st = state[0]
    gain = abs(amount)
    slot = -1
    if here >= 0:
        count_move(here, hot, state)
        slot = hot.slot[here]
    st.unknown_rate *= 15.0 / 16.0
    looked = look_across(k, here, columns, rows, known, hot, across, facts, state)
    for h in range(st.n_hot):
        own = hot.columns[h]
        if looked and slot < 0 and h < st.n_across:
            hot.effect[h] += amount * hot.fresh[h]
            most = facts.steep * (STEPS / facts.level) * common_size(own, k, known)
            error = gain * (entries_of(columns, k) + 16) * 2.0**-52 * most
            error += 2.0**-52 * abs(hot.effect[h])
            hot.bound[h] += error
            hot.open[h] += error
            continue
        if slot >= 0 and not math.isnan(hot.products[slot, h]):
            hot.effect[h] += amount * hot.products[slot, h]
            error = gain * hot.errors[slot, h] + 2.0**-52 * abs(hot.effect[h])
            hot.bound[h] += error
            hot.open[h] += error
            continue
        hot.open[h] += gain * facts.steep * (STEPS / facts.level) * common_size(own, k, known)
        if here >= 0 and (hot.unknown[h] == here or hot.unknown[h] == -1):
            hot.unknown[h] = here
            hot.amount[h] += amount
        else:
            hot.unknown[h] = -2  # several: nothing can be learned from their sum


@inlined
def on_weight_grid(w, weight, facts):
    """An entry of w in units of the largest bound, as `queries/coefficients.py` rounds it."""
    return np.rint(w * weight / facts.weight_step) * facts.weight_step


@part_of_step
def add_weight(k, amount, weight, facts, path, state):
    """Change an entry of w, and the sum of the sizes of all; by how much it moves on its grid."""
    i = (k * 0x9E3779B1) & (len(path.keys) - 1)
    while path.keys[i] >= 0 and path.keys[i] != k:
        i = (i + 1) & (len(path.keys) - 1)
    path.keys[i] = k
    before = on_weight_grid(path.weights[i], weight, facts)
    path.weights[i] += amount
    after = on_weight_grid(path.weights[i], weight, facts)
    state[0].w_sum += abs(after) - abs(before)
    return after - before


@compiled
def begin(k, amount, columns, rows, facts, path, state):
    """Start at a multiple of one column."""
    unit = of(columns.units, k)
    added = add_weight(k, amount, of(columns.relative, k), facts, path, state)
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        i = columns.indices[e]
        rows.v[i] = float(rows.v[i]) + in_levels(added, columns, e, unit)
