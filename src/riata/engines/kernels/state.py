"""What a compiled walk knows: numbers, and arrays by their names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: An entry and a slope are whole numbers of steps.
STEPS = 65536.0

#: Stand for the lowest entry where all entries are known to be on the grid, or inside the bounds.
READY, INSIDE = 1.0, 2.0

#: So many columns, of at least so many entries, may be hot. Classes of theirs begin here.
MOST_HOT, LARGE, HOT = 1024, 64, 128

#: Where the walk is, and what it waits for.
STATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            "t", "idle", "regroupings", "n_hot", "n_groups", "next_word", "wasted", "read",
            "proposals", "snapshots", "pending", "column", "group", "place", "coin", "total",
            "height", "bits", "sign", "exact", "envelope", "rebuilt", "n_across", "unknown_read",
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "top", "grouped", "scale0", "offset0", "largest0", "m0_length", "m0_largest",
            "longest", "way", "v_square", "v_turnover", "v_cross", "cross_turnover", "v_largest",
            "w_sum", "offset", "low",
            "high",
            "allowed2", "allowed_max", "allowed_rest", "allowed_rest_max", "allowed_rounding",
            "allowed_strength", "unknown_rate",
        )
    ]
)  # fmt: skip


class Columns(NamedTuple):
    """The entries by columns, as they came; `units` and `lowest` put them on the grid.

    `relative` is the bound of each column over the largest. Both may have one number for all.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    units: np.ndarray
    relative: np.ndarray
    lowest: float


class Rows(NamedTuple):
    """Of each row: its product with w, how much of that was added since the snapshot, its target,

    and the derivative of its slope at the snapshot.
    """

    v: np.ndarray
    moved: np.ndarray
    y: np.ndarray
    omega: np.ndarray


#: What is known of a column, in one line of the cache: its score at the snapshot, and its product
#: with omega m0, or for a quadratic loss its score at margins of 0; its length, and the sum of the
#: sizes of its entries.
SCORE, SHRINKING, LENGTH, SIZE = range(4)
AT_ZERO = SHRINKING


class Groups(NamedTuple):
    order: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    score: np.ndarray
    length: np.ndarray
    size: np.ndarray
    heights: np.ndarray
    ends: np.ndarray
    logs: np.ndarray


class Hot(NamedTuple):
    """Columns with the effect of the moves since the snapshot, up to `open`.

    `bound` is the part of `open` that comes from rounding, and `errors` how wrong a learned inner
    product may be. `beyond` is what the second order was when a column was evaluated, up to
    `doubt`, `far` how far the margins were from the snapshot then, and `way` how far they had gone.
    """

    columns: np.ndarray
    effect: np.ndarray
    open: np.ndarray
    beyond: np.ndarray
    doubt: np.ndarray
    far: np.ndarray
    way: np.ndarray
    unknown: np.ndarray
    amount: np.ndarray
    bound: np.ndarray
    products: np.ndarray
    errors: np.ndarray
    moves: np.ndarray
    met: np.ndarray
    fresh: np.ndarray


class Across(NamedTuple):
    """The first hot columns row by row: which of them have an entry, and the entries on the grid.

    If all entries of each are the same they are not written down again and again.
    """

    starts: np.ndarray
    places: np.ndarray
    values: np.ndarray
    levels: np.ndarray


class Walk(NamedTuple):
    """The public way: scales and gains of all steps, what was picked, and w as a hash table."""

    scales: np.ndarray
    gains: np.ndarray
    picked: np.ndarray
    keys: np.ndarray
    weights: np.ndarray


class Facts(NamedTuple):
    loss: int
    parameter: float
    smooth: bool
    mirrored: bool
    reach: float
    y_bound: float
    strength: float
    steep: float
    bend: float
    root_n: float


class Now(NamedTuple):
    """The numbers of one step."""

    largest: float
    strength: float
    factor: float
    kept: float
    multiple: float
    left2: float
    shifted: float
    moved2: float
    moved_max: float
    drift2: float
    drift_max: float
    rest: float
    rest_max: float
    rounding: float
    far2: float
    way: float
