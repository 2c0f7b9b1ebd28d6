"""The entries of sparse rows, column by column, as compiled code reads them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.engines.compiled import snapshot, state, transpose
from riata.grid import X_STEPS, canonical_rows

#: Rows and columns are looked at by so many threads, where they have at least so many entries:
#: threads take a millisecond to begin.
THREADS = 2
_WORTH_THREADS = 2**22


class Entries(NamedTuple):
    """The entries by columns, how long the columns are, and which class of lengths they are in.

    `level` is the one entry on the grid that all are like, or 0, and `signed` whether some are
    negative and others positive.
    """

    columns: state.ColumnArrays
    known: np.ndarray
    classes: np.ndarray
    longest: float
    level: float
    signed: bool


def in_threads(work: Any, size: int, entries: int) -> list[Any]:
    """Call `work(begin, end)` for all parts of 0, ..., size, if there are entries enough."""
    if entries < _WORTH_THREADS or THREADS == 1:
        return [work(0, size)]
    parts = 4 * THREADS
    ends = [size * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, ends[:-1], ends[1:]))


def entries_by_column(x: Any, bounds: Bounds) -> Entries:
    """The entries for the kernels: CSC rows of 32-bit numbers as they are, others as a copy."""
    limits = np.atleast_1d(np.asarray(bounds.x, dtype=np.float64))
    units, lowest = X_STEPS / limits, 0.0 if bounds.nonnegative else -float(X_STEPS)
    relative = limits / limits.max()
    if x.format not in ("csr", "csc"):
        x = canonical_rows(x)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if x.format == "csc":
        indptr, indices, data = x.indptr, x.indices, x.data
        if data.dtype != np.float32:
            data, units = transpose.on_grid_of_columns(indptr, data, units, lowest), np.ones(1)
    else:
        x = sparse.csr_array(x)
        if not x.has_canonical_format:
            x = canonical_rows(x)
        indptr, indices, data = transpose.columns_of_rows(x, units, lowest, THREADS)
        units = np.ones(1)
    columns = state.ColumnArrays(
        np.asarray(indptr).astype(np.uint64, copy=False),
        np.ascontiguousarray(indices, np.int32).view(np.uint32),
        np.ascontiguousarray(data),
        units, relative, lowest, np.uint64(1),
    )  # fmt: skip
    p = len(indptr) - 1
    known, classes = np.zeros((p, 3), np.float32), np.empty(p, np.uint8)

    def measure(begin: int, end: int) -> np.ndarray:
        seen = np.empty(5)
        snapshot.measure_columns(columns, x.shape[0], known, seen, begin, end)
        return seen

    seen = np.array(in_threads(measure, p, len(data)))
    in_order, on_grid, inside = seen[:, :3].min(axis=0) > 0
    least, largest = seen[:, snapshot.LEAST].min(), seen[:, snapshot.LARGEST].max()
    if not in_order:  # two entries at one place would escape the clipping
        return entries_by_column(canonical_rows(x), bounds)
    if inside:
        columns = columns._replace(lowest=state.READY if on_grid else state.INSIDE)
    level = float(least) if least == largest > 0 and len(relative) == 1 else 0.0
    if level:
        one = np.full(1, level, np.float32)
        columns = columns._replace(
            data=one, units=np.ones(1), lowest=state.READY, stride=np.uint64(0)
        )
    longest = snapshot.classify_lengths(known, known.view(np.uint32), classes)
    return Entries(columns, known, classes, longest, level, bool(least < 0 < largest))
