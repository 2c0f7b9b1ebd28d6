"""The envelope that columns are proposed from: a whole number for each group or hot column."""

from __future__ import annotations

import math

import numpy as np

from riata.engines.compiled.bounds import hot_between
from riata.engines.compiled.jit import compiled, inlined
from riata.mechanisms import envelope
from riata.mechanisms.envelope import COMPILED_BAND as BAND
from riata.mechanisms.envelope import COMPILED_ROUNDING as ROUNDING
from riata.mechanisms.envelope import COMPILED_SLACK as SLACK
from riata.mechanisms.envelope import TOTAL_BITS

#: Heights that add up to less than this are rounded up by too much.
FEW = 2**50
LOG_2 = math.log(2.0)

#: The envelope is kept while the logarithms of weights stay within this much of its own.
ROOM = 0.05

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
