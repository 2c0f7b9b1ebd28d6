"""A step along a column: what it does to the rows, and to the hot columns."""

from __future__ import annotations

import math

from riata.engines.kernels.bounds import common_size
from riata.engines.kernels.compiled import compiled
from riata.engines.kernels.hot import look_across
from riata.engines.kernels.snapshot import entries_of, of, on_grid
from riata.engines.kernels.state import LENGTH, STEPS


@compiled
def move(columns, rows, known, hot, across, walk, facts, now, state):
    """Add the chosen column to the walk."""
    st = state[0]
    k, t = st.column, st.t
    gain, weight = walk.gains[t], of(columns.relative, k)
    walk.picked[t] = k if st.sign > 0 else -k - 1
    amount, here = st.sign * gain, -1
    for h in range(st.n_hot):
        if hot.columns[h] == k:
            here = h
    move_rows(k, amount, weight, columns, rows, state)
    add_weight(k, amount, weight, walk, state)
    if not facts.smooth:
        return
    scale = walk.scales[t + 1]
    shrunk = abs(scale / walk.scales[t] - 1.0) * (now.kept * st.m0_length + now.moved2)
    gone = (shrunk + scale * facts.reach * gain * known[k, LENGTH]) * (1 + 2.0**-30)
    st.way += gone + st.way * 2.0**-52  # so that differences are not less than the moves
    move_hot(k, here, amount, columns, rows, known, hot, across, facts, state)


@compiled
def move_rows(k, amount, weight, columns, rows, state):
    """Move the rows of a column, and what is known of all rows."""
    st = state[0]
    unit, gain = of(columns.units, k), abs(amount)
    square, cross, largest = 0.0, 0.0, st.v_largest
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        i = columns.indices[e]
        by = amount * weight * on_grid(columns.data[e], unit, columns.lowest)
        before, v = rows.moved[i], rows.v[i]
        after = before + by
        rows.moved[i] = after
        rows.v[i] = v + by
        cross += by * (v - before)
        square += (after - before) * (after + before)
        largest = max(largest, abs(after))
    st.v_square += square
    st.v_cross += cross
    # What the sums above may have lost to rounding, in units of 2^-52: no entry of v is larger than
    # the sum of the sizes of w, nor was it at the snapshot.
    entries = float(entries_of(columns, k))
    st.v_turnover += 2.0 * entries * (entries + 16) * largest * largest + abs(st.v_square)
    most = 2.0 * STEPS * (st.w_sum + 2.0 * gain) * gain * STEPS
    # A row's v was rounded once a step: its difference to `moved` is off by that much.
    st.cross_turnover += 2.0 * entries * (entries + st.t + 16) * most + abs(st.v_cross)
    st.v_largest = largest


@compiled
def move_hot(k, here, amount, columns, rows, known, hot, across, facts, state):
    """What a move along a column does to the hot ones. It is the hot column `here`, or -1."""
    st = state[0]
    gain = abs(amount)
    if here >= 0:
        hot.moves[here] += 1
    st.unknown_rate *= 15.0 / 16.0
    looked = look_across(k, here, columns, rows, known, hot, across, facts, state)
    for h in range(st.n_hot):
        own = hot.columns[h]
        if looked and here < 0 and h < st.n_across:
            hot.effect[h] += amount * hot.fresh[h]
            most = facts.steep * STEPS * common_size(own, k, known)
            error = gain * (entries_of(columns, k) + 16) * 2.0**-52 * most
            error += 2.0**-52 * abs(hot.effect[h])
            hot.bound[h] += error
            hot.open[h] += error
            continue
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


@compiled
def add_weight(k, amount, weight, walk, state):
    """Change an entry of w, and the sum of the sizes of all entries."""
    i = (k * 0x9E3779B1) & (len(walk.keys) - 1)
    while walk.keys[i] >= 0 and walk.keys[i] != k:
        i = (i + 1) & (len(walk.keys) - 1)
    walk.keys[i] = k
    before = abs(walk.weights[i])
    walk.weights[i] += amount
    state[0].w_sum += (abs(walk.weights[i]) - before) * weight


@compiled
def begin(k, amount, columns, rows, walk, state):
    """Start at a multiple of one column."""
    unit, weight = of(columns.units, k), of(columns.relative, k)
    for e in range(columns.indptr[k], columns.indptr[k + 1]):
        x = on_grid(columns.data[e], unit, columns.lowest)
        rows.v[columns.indices[e]] += amount * weight * x
    add_weight(k, amount, weight, walk, state)
