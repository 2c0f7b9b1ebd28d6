"""What a compiled path knows: numbers, and arrays by their names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: An entry is a whole number of steps.
STEPS = 65536.0

#: Stand for the lowest entry where all entries are known to be on the grid, or inside the bounds.
READY, INSIDE = 1.0, 2.0

#: So many columns, of at least so many entries, may be hot. Classes of theirs begin here. Inner
#: products of all hot columns with so many of them are kept: with those that moved.
MOST_HOT, LARGE, HOT, MOST_MOVED = 4096, 64, 128, 1024

#: Where the path is, and what it waits for.
STATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "t", "n_hot", "n_moved", "n_groups", "next_word", "wasted", "strayed", "read",
            "proposals", "snapshots", "sweeps", "chosen", "begun", "pending", "column", "group",
            "place", "coin", "total", "height", "bits", "sign", "known", "envelope", "rebuilt",
            "n_across", "unknown_read",
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "top", "scale0", "margin_unit0", "largest0", "m0_largest", "longest", "v0_square",
            "v_square", "v_turnover", "v_cross", "cross_turnover", "v_largest", "w_sum",
            "swept_scale", "swept_largest", "up", "down", "way", "low", "high", "allowed2",
            "allowed_max", "allowed_rounding", "allowed_strength", "unknown_rate",
        )
    ]
)  # fmt: skip


class ColumnArrays(NamedTuple):
    """The entries by columns, as they came; `units` and `lowest` put them on the grid.

    `relative` is the bound of each column over the largest. Both may have one number for all. Where
    all entries are the same, `data` has one of them and `stride` is 0 instead of 1.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    units: np.ndarray
    relative: np.ndarray
    lowest: float
    stride: np.uint64


class RowArrays(NamedTuple):
    """Of each row: its product with w, in steps of `level`, and what it was at the snapshot; its
    target; and for losses whose slope is not straight, its derivative at the snapshot. `few` has
    room for what is computed for some rows at once.
    """

    v: np.ndarray
    v0: np.ndarray
    y: np.ndarray
    omega: np.ndarray
    few: np.ndarray


#: What is known of a column: its score at the snapshot, its length, and the sum of the sizes of its
#: entries.
SCORE, LENGTH, SIZE = range(3)


class Groups(NamedTuple):
    """Columns with similar bounds; from `heights` on, hot columns have places of their own.

    A column of a group is accepted whatever its value is if a coin is below `surely`. No value in
    it is larger in size than `most`.
    """

    order: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    score: np.ndarray
    length: np.ndarray
    size: np.ndarray
    heights: np.ndarray
    ends: np.ndarray
    logs: np.ndarray
    surely: np.ndarray
    most: np.ndarray


def new_groups(n_columns: int, n_groups: int, n_hot: int) -> Groups:
    """Room for groups of columns, and for hot ones."""
    whole, number, several = np.int64, np.float64, n_groups + n_hot
    kinds = {"starts": whole, "counts": whole, "score": number, "length": number, "size": number}
    found = {name: np.empty(n_groups, kind) for name, kind in kinds.items()}
    kinds = {"heights": whole, "ends": whole, "logs": number, "surely": number, "most": number}
    found |= {name: np.empty(several, kind) for name, kind in kinds.items()}
    return Groups(order=np.empty(n_columns, np.int32), **found)


class Hot(NamedTuple):
    """Columns with scores of their own: the `score` at a snapshot, and products with omega m then,

    `start`, and with omega v now, `effect`, up to `open`, of which `bound` comes from rounding. The
    snapshot is the last one, or any if slopes are straight. `doubt` is how wrong score and start
    may be. `products` has a row for each hot column that
    moved, at its `slot`, and `errors` says how wrong its inner products may be.

    `beyond` is what the second order was when a column was evaluated, up to `unsure`, `far` how far
    the margins were from the snapshot then, and `way` how far they had gone.
    """

    columns: np.ndarray
    score: np.ndarray
    start: np.ndarray
    doubt: np.ndarray
    beyond: np.ndarray
    unsure: np.ndarray
    far: np.ndarray
    way: np.ndarray
    effect: np.ndarray
    open: np.ndarray
    bound: np.ndarray
    unknown: np.ndarray
    amount: np.ndarray
    slot: np.ndarray
    products: np.ndarray
    errors: np.ndarray
    moves: np.ndarray
    met: np.ndarray
    fresh: np.ndarray


def new_hot(n_hot: int) -> Hot:
    """Room for so many hot columns."""
    found = {name: np.empty(n_hot) for name in Hot._fields}
    for name in ("columns", "unknown", "slot", "moves", "met"):
        found[name] = np.empty(n_hot, np.int64)
    for name in ("products", "errors"):
        found[name] = np.empty((MOST_MOVED, n_hot))
    return Hot(**found)


class Across(NamedTuple):
    """The first hot columns row by row: which of them have an entry, and the entries on the grid.

    If all entries of each are the same they are not written down again and again.
    """

    starts: np.ndarray
    places: np.ndarray
    values: np.ndarray
    levels: np.ndarray


class PathArrays(NamedTuple):
    """The public way: scales and gains of all steps, what was picked, and w as a hash table.

    `margin_units` are what 1 of v adds to a margin at each step.
    """

    scales: np.ndarray
    margin_units: np.ndarray
    gains: np.ndarray
    picked: np.ndarray
    keys: np.ndarray
    weights: np.ndarray


class Facts(NamedTuple):
    """What does not change. The largest slope has `slope_steps` steps.

    v is counted in steps of `level` on the grid of entries, which have no more than `span` of them,
    and are `signed` if some are negative and others positive. Entries of w, in units of the largest
    bound of a column, are multiples of `weight_step`.
    """

    loss: int
    parameter: float
    smooth: bool
    symmetric: bool
    reach: float
    y_bound: float
    strength: float
    steep: float
    slope_curvature: float
    slope_steps: float
    level: float
    span: float
    signed: bool
    root_n: float
    weight_step: float


class Now(NamedTuple):
    """The numbers of one step: docs/privacy/compiled_selection.md has their meaning."""

    largest: float
    strength: float
    grid: float
    factor: float
    factor0: float
    far2: float
    far_max: float
    drift2: float
    drift_max: float
    rest: float
    rest_max: float
    rounding: float
    fine: float
    way: float
