"""How far scores may have moved since the snapshot: docs/privacy/compiled_selection.md, Lemma 3."""

from __future__ import annotations

import math

from riata.engines.compiled.jit import inlined, part_of_step
from riata.engines.compiled.losses import slope_bound
from riata.engines.compiled.state import LENGTH, SCORE, SIZE, STEPS, Now

#: What float32 and sums of it may take from a score, relative to size of column * largest slope.
ROUNDING = 2.0**-20

#: A little more than half a step.
HALF = 0.536


@inlined
def far_from_snapshot(factor, factor0, state):
    """The length of m - m0, or a little more, from running sums: m0 + moves, less what shrank."""
    st = state[0]
    less, square = factor0 - factor, max(st.v_square, 0.0)
    moved, crossed = factor * factor, 2.0 * factor * less
    found = moved * square - crossed * st.v_cross + less * less * st.v0_square
    # What rounding may have made of the three, which nearly cancel.
    found += 2.0**-52 * (moved * st.v_turnover + abs(crossed) * st.cross_turnover)
    found += 2.0**-48 * (moved * square + abs(crossed * st.v_cross) + less * less * st.v0_square)
    return math.sqrt(max(found, 0.0)) * (1 + 2.0**-30)


@part_of_step
def numbers_now(facts, path, state):
    """What one step goes by: how far margins may have gone since the snapshot, and what it does."""
    st = state[0]
    scale, grid = path.scales[st.t], path.margin_units[st.t]
    largest = slope_bound(facts.loss, facts.parameter, st.w_sum * (grid * STEPS), facts.y_bound)
    factor, factor0 = grid * facts.level, st.margin_unit0 * facts.level
    far2 = far_from_snapshot(factor, factor0, state)
    # By the largest move since the snapshot, and by the last sweep and all moves since.
    kept, swept = scale / st.scale0, scale / st.swept_scale
    far_max = factor * st.v_largest + abs(kept - 1.0) * st.m0_largest
    since = abs(swept - 1.0) * st.m0_largest + factor * max(st.up, st.down)
    far_max = min(far_max, swept * st.swept_largest + since) * (1 + 2.0**-30)
    most = st.m0_largest + far_max
    fine = largest / facts.slope_steps * HALF + (largest + st.largest0) * 2.0**-36
    fine += facts.steep * most * (st.t + 16) * 2.0**-50
    fine += facts.steep * far_max * 2.0**-23  # omega is kept in 32 bits
    rounding = fine + st.largest0 * ROUNDING
    half = facts.slope_curvature / 2
    rest, rest_max = half * far2 * far2, half * far_max * far_max
    return Now(
        largest, facts.strength / largest, grid, factor, factor0, far2, far_max,
        facts.steep * far2, facts.steep * far_max, rest, rest_max, rounding, fine, st.way,
    )  # fmt: skip


@inlined
def common_size(k, l, known):
    """At least the sum of the products of the entries of two columns."""
    return min(known[k, SIZE], known[l, SIZE], known[k, LENGTH] * known[l, LENGTH])


@inlined
def between(k, now, known):
    """Bounds on the score of a column."""
    size, centre = known[k, SIZE], float(known[k, SCORE])
    half = min(known[k, LENGTH] * now.drift2, size * now.drift_max) + size * now.rounding
    return centre - half, centre + half


@inlined
def hot_between(h, now, known, hot, facts):
    """Bounds on the score of a hot column."""
    k = hot.columns[h]
    if not facts.smooth:
        return between(k, now, known)
    size = known[k, SIZE]
    centre = hot.score[h] + now.factor * hot.effect[h] - hot.start[h]
    half = min(now.rest, size * now.rest_max)
    gone = now.way - hot.way[h]
    nearer = facts.slope_curvature * (hot.far[h] + gone) * gone + hot.unsure[h]
    if nearer < half:
        half = nearer
        centre += hot.beyond[h]
    half += now.factor * hot.open[h] + hot.doubt[h] + size * now.fine
    return centre - half, centre + half
