"""Entries on the grid, all scores in one pass, and columns in groups of similar bounds."""

from __future__ import annotations

import math

import numpy as np

from riata.engines.kernels.compiled import compiled, compiled_with_arrays, inlined
from riata.engines.kernels.losses import derivative, slope
from riata.engines.kernels.state import (
    AT_ZERO,
    HOT,
    INSIDE,
    LENGTH,
    READY,
    SCORE,
    SHRINKING,
    SIZE,
    STEPS,
)

#: Groups: score bins of this width in log-weights, and lengths in quarters of a power of two.
WIDTH, BINS, LENGTHS = 0.5, 120, 80


@inlined
def on_grid(value, unit, lowest):
    z = value * unit
    if lowest == READY:
        return z
    if lowest == INSIDE:
        return np.rint(z)
    if z != z:
        return 0.0
    return np.rint(min(max(z, lowest), STEPS))


@inlined
def of(values, k):
    """The number of a column, in an array that may have one for all."""
    return values[k] if len(values) > 1 else values[0]


@inlined
def entries_of(columns, k):
    """How many entries a column has."""
    return np.int64(columns.indptr[k + 1]) - np.int64(columns.indptr[k])


@compiled
def where_entries_are(columns, begin, end):
    """`READY` if every entry of some columns is on the grid, `INSIDE` if none is to be clipped."""
    ready = True
    for k in range(begin, end):
        unit = of(columns.units, k)
        for e in range(columns.indptr[k], columns.indptr[k + 1]):
            z = columns.data[e] * unit
            if not columns.lowest <= z <= STEPS:  # or it is NaN
                return columns.lowest
            ready = ready and z == np.rint(z)
    return READY if ready else INSIDE


@compiled
def measure_columns(columns, known, begin, end):
    """The length and the sum of sizes of some columns, or a little more."""
    for k in range(begin, end):
        a, b = 0.0, 0.0
        unit = of(columns.units, k)
        weight = of(columns.relative, k) / STEPS * (1 + 2.0**-20)
        for e in range(columns.indptr[k], columns.indptr[k + 1]):
            x = on_grid(columns.data[e], unit, columns.lowest)
            a += x * x
            b += abs(x)
        known[k, LENGTH] = math.sqrt(a) * weight
        known[k, SIZE] = b * weight


@compiled
def classify_lengths(known, classes):
    """The class of each column's length. Returns the largest length."""
    longest = 0.0
    for k in range(len(known)):
        longest = max(longest, known[k, LENGTH])
    for k in range(len(known)):
        classes[k] = LENGTHS - 1
        if known[k, LENGTH] > 0:
            octaves = 4.0 * math.log2(longest / known[k, LENGTH])
            classes[k] = np.uint8(min(octaves, LENGTHS - 1.0))
    return longest


@compiled
def look_at_rows(rows, facts, factor, offset, pairs, begin, end):
    """Slopes of some rows, the lengths of margins, and the largest slope.

    If `pairs` has room for it, also derivative * shrinking margin, or the slope at 0.
    """
    square, most, largest = 0.0, 0.0, 0.0
    for i in range(begin, end):
        inner = rows.v[i] * factor
        s = slope(facts.loss, facts.parameter, inner + offset, rows.y[i])
        pairs[i, 0] = s
        largest = max(largest, abs(s))
        square += inner * inner
        most = max(most, abs(inner))
        if facts.smooth:
            omega = np.float32(derivative(facts.loss, inner + offset, rows.y[i]))
            rows.omega[i] = omega
            if pairs.shape[1] > 1 and facts.bend > 0:
                pairs[i, 1] = omega * inner
            elif pairs.shape[1] > 1:
                pairs[i, 1] = slope(facts.loss, facts.parameter, offset, rows.y[i])
    return square, most, largest


@compiled
def look_at_columns(columns, known, pairs, begin, end):
    """The products of some columns with one or two numbers of each row.

    In two sums that do not wait for another.
    """
    both = pairs.shape[1] > 1
    indptr, indices, data, lowest = columns.indptr, columns.indices, columns.data, columns.lowest
    for k in range(begin, end):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        unit, weight = of(columns.units, k), of(columns.relative, k) / STEPS
        e, stop = indptr[k], indptr[k + 1]
        if (stop - e) % np.uint64(2) == 1:
            x = on_grid(data[e], unit, lowest)
            a = x * pairs[indices[e], 0]
            if both:
                b = x * pairs[indices[e], 1]
            e += np.uint64(1)
        while e < stop:
            i, j = indices[e], indices[e + np.uint64(1)]
            x, z = on_grid(data[e], unit, lowest), on_grid(data[e + np.uint64(1)], unit, lowest)
            a += x * pairs[i, 0]
            c += z * pairs[j, 0]
            if both:
                b += x * pairs[i, 1]
                d += z * pairs[j, 1]
            e += np.uint64(2)
        known[k, SCORE] = (a + c) * weight
        if both:
            known[k, SHRINKING] = (b + d) * weight


@inlined
def score_at(k, known, multiple, facts):
    """The score of a column at a multiple of the snapshot's margins, to first order."""
    score = float(known[k, SCORE])
    if facts.bend > 0:
        return score + (multiple - 1.0) * known[k, SHRINKING]
    return score + (multiple - 1.0) * (score - known[k, AT_ZERO])


@inlined
def rank_of(k, known, multiple, facts):
    """What a column is ranked by: its score at a multiple of the snapshot's margins."""
    score = score_at(k, known, multiple, facts)
    return abs(score) if facts.mirrored else -score


@compiled_with_arrays
def group_columns(known, classes, groups, strength, multiple, facts, state):
    """Sort the columns by score, at a multiple of m0, and by length, and bound each group."""
    p = len(known)
    top = -math.inf
    for k in range(p):
        top = max(top, rank_of(k, known, multiple, facts))
    keys, n_keys = np.empty(p, np.uint16), BINS * LENGTHS
    tally, place = np.zeros(n_keys, np.int64), np.empty(n_keys, np.int64)
    best, longest, largest = np.full(n_keys, -math.inf), np.zeros(n_keys), np.zeros(n_keys)
    finer = strength / WIDTH
    for k in range(p):
        if classes[k] >= HOT:
            continue
        rank = rank_of(k, known, multiple, facts)
        key = int(min(finer * (top - rank), BINS - 1.0)) * LENGTHS + classes[k]
        keys[k] = key
        tally[key] += 1
        best[key] = max(best[key], rank)
        longest[key] = max(longest[key], known[k, LENGTH])
        largest[key] = max(largest[key], known[k, SIZE])
    before, g = 0, 0
    for key in range(n_keys):
        place[key] = before
        if tally[key] > 0:
            groups.starts[g], groups.counts[g] = before, tally[key]
            groups.score[g], groups.length[g], groups.size[g] = (
                best[key],
                longest[key],
                largest[key],
            )
            g += 1
        before += tally[key]
    for k in range(p):
        if classes[k] < HOT:
            groups.order[place[keys[k]]] = k
            place[keys[k]] += 1
    state[0].n_groups = g
    state[0].envelope = 0
    state[0].idle = 0
    state[0].grouped = multiple


@compiled
def bound_group(g, known, groups, multiple, facts):
    """The largest score, length and size in a group."""
    groups.score[g], groups.length[g], groups.size[g] = -math.inf, 0.0, 0.0
    for place in range(groups.starts[g], groups.starts[g] + groups.counts[g]):
        k = groups.order[place]
        groups.score[g] = max(groups.score[g], rank_of(k, known, multiple, facts))
        groups.length[g] = max(groups.length[g], known[k, LENGTH])
        groups.size[g] = max(groups.size[g], known[k, SIZE])
