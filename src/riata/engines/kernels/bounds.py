"""How far scores may have moved since the snapshot: docs/privacy/compiled_walk.md, Lemma 3."""

from __future__ import annotations

import math

from riata.engines.kernels.compiled import compiled, inlined
from riata.engines.kernels.losses import slope_bound
from riata.engines.kernels.snapshot import (
    score_at,
)
from riata.engines.kernels.state import (
    LENGTH,
    SCORE,
    SIZE,
    STEPS,
    Now,
)

#: What float32 and sums of it may take from a score, relative to size of column * largest slope.
ROUNDING = 2.0**-20


@inlined
def nearest_multiple(kept, factor, moved2, facts, state):
    """The margins as a multiple of those of the snapshot and a rest; the length of the rest."""
    st = state[0]
    if not facts.smooth or st.m0_length == 0.0:
        return kept, moved2
    length = st.m0_length / (st.scale0 * facts.reach / STEPS)  # of v0, or a little more
    part = -st.v_cross / (length * length)
    if not abs(kept * (1.0 - part) - 1.0) <= 1.0:
        return kept, moved2
    along, square = part * length, max(st.v_square, 0.0)
    rest = square + 2.0 * part * st.v_cross + along * along
    # What rounding may have made of the three, which nearly cancel.
    rest += 2.0**-52 * (st.v_turnover + 2.0 * abs(part) * st.cross_turnover)
    rest += 2.0**-48 * (square + 2.0 * abs(part * st.v_cross) + along * along)
    left2 = factor * math.sqrt(max(rest, 0.0))
    return (kept * (1.0 - part), left2) if left2 < moved2 else (kept, moved2)


@compiled
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
    multiple, left2 = nearest_multiple(kept, factor, moved2, facts, state)
    far2 = min(moved2 + shrunk * st.m0_length, left2 + abs(multiple - 1.0) * st.m0_length)
    far2 = (far2 + shifted * facts.root_n) * (1 + 2.0**-30)
    far_max = (moved_max + shrunk * st.m0_largest + shifted) * (1 + 2.0**-30)
    rest, rest_max = 0.0, 0.0
    drift2, drift_max = facts.steep * far2, facts.steep * far_max
    if facts.smooth:
        rest, rest_max = facts.bend / 2 * far2 * far2, facts.bend / 2 * far_max * far_max
        less = min(
            moved2 + abs(kept - st.grouped) * st.m0_length,
            left2 + abs(multiple - st.grouped) * st.m0_length,
        )
        drift2 = facts.steep * (less + shifted * facts.root_n)
        less_max = moved_max + abs(kept - st.grouped) * st.m0_largest
        drift_max = facts.steep * (less_max + shifted)
        drift2, drift_max = drift2 * (1 + 2.0**-30), drift_max * (1 + 2.0**-30)
    rounding = largest * 2.0**-16.9
    rounding += (st.largest0 + facts.steep * (st.m0_largest + moved_max + far_max)) * ROUNDING
    return Now(
        largest, facts.strength / largest, factor, kept, multiple, left2, shifted, moved2,
        moved_max, drift2, drift_max, rest, rest_max, rounding, far2, st.way,
    )  # fmt: skip


@inlined
def common_size(k, l, known):
    """At least the sum of the products of the entries of two columns."""
    return min(known[k, SIZE], known[l, SIZE], known[k, LENGTH] * known[l, LENGTH])


@inlined
def between(k, now, known, facts):
    """Bounds on the score of another column."""
    size, length = known[k, SIZE], known[k, LENGTH]
    half = size * now.rounding
    if facts.smooth:
        near, far = length * now.left2, min(length * now.moved2, size * now.moved_max)
        multiple = now.multiple if near < far else now.kept
        centre = score_at(k, known, multiple, facts)
        half += facts.steep * min(near, far)
        half += min(now.rest, size * now.rest_max)
        half += facts.steep * now.shifted * min(size, length * facts.root_n)
    else:
        centre = float(known[k, SCORE])
        half += min(length * now.drift2, size * now.drift_max)
    return centre - half, centre + half


@inlined
def hot_between(h, now, known, hot, facts):
    """Bounds on the score of a hot column."""
    k = hot.columns[h]
    if not facts.smooth:
        return between(k, now, known, facts)
    size = known[k, SIZE]
    centre = score_at(k, known, now.kept, facts) + now.factor * hot.effect[h]
    half = min(now.rest, size * now.rest_max)
    gone = now.way - hot.way[h]
    nearer = facts.bend * (hot.far[h] + gone) * gone + hot.doubt[h]
    if nearer < half:
        half = nearer
        centre += hot.beyond[h]
    half += now.factor * hot.open[h] + size * now.rounding
    half += facts.steep * now.shifted * min(size, known[k, LENGTH] * facts.root_n)
    return centre - half, centre + half
