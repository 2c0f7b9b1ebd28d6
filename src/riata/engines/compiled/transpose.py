"""From rows to columns, on the grid, by several threads.

Entries that go straight to their columns miss the caches where columns are many. So they go to
blocks of neighbouring columns first, in the arrays that will hold the columns, and each block is
then sorted in the cache. Until then an entry, which is a whole number of steps, shares 32 bits
with the last bits of its column. Rows stay in their order all the time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from riata.engines.compiled.jit import compiled, inlined
from riata.engines.compiled.snapshot import of, on_grid
from riata.engines.compiled.state import STEPS

#: Entries of a block, which fit into the cache of a processor, and how many blocks can be written
#: to at once without a wait for memory.
_BLOCK, _MOST_BLOCKS = 2**15, 2**8

#: Blocks are made of cells of equally many columns. There are about so many, or more and smaller
#: ones if one has so many times the entries of a block, as each thread keeps a copy of a block.
_CELLS, _LARGEST = 2**11, 8

#: Fewer entries are not worth the start of a thread.
_WORTH_THREADS = 2**22

#: Bits of a column beside an entry: what numbers from -STEPS to STEPS leave of 32.
_BITS = 14
_SHIFT, _MASK = np.uint32(_BITS), np.uint32(2**_BITS - 1)

_ONE = np.uint64(1)


@compiled
def count(indptr, indices, shift, begin, end, counts):
    """How many entries each cell of 2^shift columns has in some rows."""
    for e in range(np.uint64(indptr[begin]), np.uint64(indptr[end])):
        counts[indices[e] >> shift] += _ONE


@compiled
def scatter(indptr, indices, data, units, lowest, shift, blocks, begin, end, places, rows, packed):
    """Put the entries of some rows into the blocks of their cells."""
    for i in range(begin, end):
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            k = indices[e]
            block = blocks[k >> shift]
            place = places[block]
            places[block] = place + _ONE
            rows[place] = i
            steps = np.uint32(on_grid(data[e], of(units, k), lowest) + STEPS)
            packed[place] = (steps << _SHIFT) | (np.uint32(k) & _MASK)


@inlined
def unpacked(packed):
    return np.float32(packed >> _SHIFT) - np.float32(STEPS)


@compiled
def sort(firsts, starts, begin, end, indptr, rows, packed, entries, copied_rows, copied):
    """Sort the entries of some blocks by column, and tell where the columns end."""
    for block in range(begin, end):
        first, stop = starts[block], starts[block + 1]
        k = firsts[block]
        if firsts[block + 1] - k == 1:
            indptr[k + 1] = stop
            for e in range(first, stop):
                entries[e] = unpacked(packed[e])
            continue
        # Where a column ends is at first how many entries it has, then where its next one goes.
        ends, least = indptr[k + 1 : firsts[block + 1] + 1], np.uint32(k)
        for e in range(stop - first):
            copied[e], copied_rows[e] = packed[first + e], rows[first + e]
            ends[(copied[e] - least) & _MASK] += _ONE
        place = first
        for j in range(len(ends)):
            ends[j], place = place, place + ends[j]
        for e in range(stop - first):
            j = (copied[e] - least) & _MASK
            place = ends[j]
            ends[j] = place + _ONE
            rows[place] = copied_rows[e]
            entries[place] = unpacked(copied[e])


def columns_of_rows(x: Any, units: np.ndarray, lowest: float, threads: int) -> tuple[Any, ...]:
    """`indptr`, `indices` and entries on the grid of the columns of a CSR array."""
    p, size = x.shape[1], max(_BLOCK, x.nnz // _MOST_BLOCKS)
    threads = threads if x.nnz >= _WORTH_THREADS else 1
    columns, runs = x.indices.view(f"u{x.indices.itemsize}"), _even_runs(x.indptr, threads)
    shift = min(max(p // _CELLS, 1).bit_length() - 1, _BITS)
    shift, counts = _count_cells(x, columns, runs, shift, _LARGEST * size)
    new = _begins_a_block(counts.sum(axis=0), shift, size)
    cells, blocks = np.flatnonzero(new), np.cumsum(new, dtype=np.uint32) - np.uint32(1)
    firsts, counts = np.append(cells << shift, p), np.add.reduceat(counts, cells, axis=1)
    starts = np.zeros(len(firsts), np.uint64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    places = starts[:-1] + np.cumsum(counts, axis=0) - counts
    both = np.empty((2, x.nnz), np.int32)  # which is given larger pages than two arrays
    rows, entries, packed = both[0], both[1].view(np.float32), both[1].view(np.uint32)
    given = x.indptr, columns, x.data, units, lowest, np.uint64(shift), blocks
    _in_threads(lambda i, b, e: scatter(*given, b, e, places[i], rows, packed), runs)
    indptr = np.zeros(p + 1, np.uint64)
    largest = int(np.where(np.diff(firsts) > 1, np.diff(starts), 0).max())

    def sort_some(_: int, begin: int, end: int) -> None:
        copies = np.empty(largest, np.int32), np.empty(largest, np.uint32)
        sort(firsts, starts, begin, end, indptr, rows, packed, entries, *copies)

    _in_threads(sort_some, _even_runs(starts, threads))
    return indptr, rows, entries


def _count_cells(
    x: Any, columns: np.ndarray, runs: list[int], shift: int, most: int
) -> tuple[int, np.ndarray]:
    """The size of cells with at most so many entries, and how many each has in each run of rows."""
    counts = np.zeros((len(runs) - 1, (x.shape[1] >> shift) + 1), np.uint64)
    bits = np.uint64(shift)
    _in_threads(lambda i, b, e: count(x.indptr, columns, bits, b, e, counts[i]), runs)
    if shift == 0 or counts.sum(axis=0).max() <= most:
        return shift, counts
    return _count_cells(x, columns, runs, max(shift - 3, 0), most)


def _begins_a_block(counts: np.ndarray, shift: int, size: int) -> np.ndarray:
    """Whether each cell begins a block, which a cell of more entries than `size` has alone."""
    groups = (np.cumsum(counts) - counts).astype(np.int64) // size
    groups += np.arange(len(counts)) >> (_BITS - shift)
    alone = counts > size
    groups += 2 * np.cumsum(alone) - alone
    return np.diff(groups, prepend=-1) > 0


def _even_runs(starts: np.ndarray, runs: int) -> list[int]:
    """Where runs of rows or blocks begin and end that have about as many entries each."""
    wanted = [int(starts[-1]) * i // runs for i in range(1, runs)]
    found = np.searchsorted(starts, np.array(wanted, starts.dtype))
    return [0, *found.tolist(), len(starts) - 1]


def _in_threads(work: Callable[[int, int, int], None], ends: list[int]) -> None:
    """Call `work(i, begin, end)` for all runs, each in a thread of its own."""
    if len(ends) == 2:
        work(0, *ends)
        return
    with ThreadPoolExecutor(len(ends) - 1) as pool:
        list(pool.map(work, range(len(ends) - 1), ends[:-1], ends[1:]))


@compiled
def _grid_columns(indptr, data, units, lowest, entries):
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            entries[e] = on_grid(data[e], of(units, k), lowest)


def on_grid_of_columns(indptr: Any, data: Any, units: np.ndarray, lowest: float) -> np.ndarray:
    """The entries of columns on the grid, which float32 holds without rounding."""
    entries = np.empty(len(data), np.float32)
    _grid_columns(indptr, data, units, lowest, entries)
    return entries
