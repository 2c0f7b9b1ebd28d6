"""Rows that do not fit into memory: on the grid, in a file without a name, a block at a time."""

from __future__ import annotations

import errno
import tempfile
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from scipy import sparse

from riata.engines.shard import of_part, sum_over
from riata.errors import DiskFull
from riata.grid import BLOCK_ROWS
from riata.mechanisms.engine import Engine
from riata.queries import Block, Query

#: A block has about so many entries, and so few rows that sums are exact: some 50 MB in all.
BLOCK_ENTRIES = 2**21


@dataclass(frozen=True)
class _Place:
    """Where a block is in the file."""

    begin: int
    n_rows: int
    entries: int
    start: int


class RowsOnDisk:
    """Sparse rows on the grid, appended once and read again and again.

    The file has no name and vanishes with the process, however it ends.

    Parameters
    ----------
    folder : path, optional
        Where the file is. The folder for temporary files if left out.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix="riata-")  # noqa: SIM115
        self.close = weakref.finalize(self, self._file.close)
        self._places: list[_Place] = []
        # Memory for two blocks, as to be given new memory takes as long as to read into it.
        self._rooms: tuple[dict[str, np.ndarray], ...] = ({}, {})
        self._n_features = self.n_rows = self._end = 0

    def append(self, x: Any, y: np.ndarray) -> None:
        """More rows, cut into blocks."""
        self._n_features = x.shape[1]
        entries = np.diff(x.indptr)
        block = np.cumsum(entries) // BLOCK_ENTRIES
        cuts = np.flatnonzero(np.diff(block)) + 1
        ends = sorted({0, len(y), *cuts.tolist(), *range(0, len(y), BLOCK_ROWS)})
        for a, b in pairwise(ends):
            self._append(x[a:b], y[a:b])

    def _append(self, x: Any, y: np.ndarray) -> None:
        arrays = (
            y.astype(np.float64),
            np.diff(x.indptr).astype(np.int32),
            x.indices.astype(np.int32),
            x.data.astype(np.int32),
        )
        try:
            for array in arrays:
                self._file.write(array.tobytes())
        except OSError as problem:
            if problem.errno != errno.ENOSPC:
                raise
            raise DiskFull(
                "The disk for temporary files is full: rows that do not fit into memory are put "
                "there. What was charged stays charged. Make room, or set TMPDIR to a larger disk, "
                "then fit again; with a checkpoint nothing is charged anew."
            ) from None
        self._places.append(_Place(self._end, len(y), x.nnz, self.n_rows))
        self._end += sum(array.nbytes for array in arrays)
        self.n_rows += len(y)

    def blocks(self) -> Iterator[tuple[Any, np.ndarray, int]]:
        """Rows, targets, and the number of the first row; the next block is read meanwhile.

        A block is written over when the one after the next is asked for.
        """
        self._file.flush()
        with ThreadPoolExecutor(1) as reader:
            coming = [reader.submit(self._read, 0)] if self._places else []
            for following in range(1, len(self._places) + 1):
                found = coming.pop().result()
                if following < len(self._places):
                    coming.append(reader.submit(self._read, following))
                yield found

    def _read(self, number: int) -> tuple[Any, np.ndarray, int]:
        place, room = self._places[number], self._rooms[number % 2]
        self._file.seek(place.begin)

        def array(name: str, size: int, kind: Any = np.int32) -> np.ndarray:
            if name not in room or len(room[name]) < size:
                room[name] = np.empty(size, kind)
            return room[name][:size]

        def read(name: str, size: int, kind: Any = np.int32) -> np.ndarray:
            found = array(name, size, kind)
            if self._file.readinto(found.data) != found.nbytes:
                raise OSError("The file of rows that do not fit into memory ends too early.")
            return found

        y = read("y", place.n_rows, np.float64)
        indptr = array("indptr", place.n_rows + 1)
        indptr[0] = 0
        np.cumsum(read("lengths", place.n_rows), dtype=np.int32, out=indptr[1:])
        indices = read("indices", place.entries)
        data = array("data", place.entries, np.float64)
        data[:] = read("steps", place.entries)
        shape = (place.n_rows, self._n_features)
        return sparse.csr_array((data, indices, indptr), shape=shape), y, place.start

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("Rows on disk are private and cannot be pickled.")

    def __repr__(self) -> str:
        return "<RowsOnDisk>"


class DiskEngine(Engine):
    """Sums queries over rows on disk, a block at a time: each sum reads them all once.

    Parameters
    ----------
    rows : RowsOnDisk
    part, parts : int
        Only every row whose number leaves the rest `part` when divided by `parts`.
    """

    def __init__(self, rows: RowsOnDisk, part: int = 0, parts: int = 1) -> None:
        self._rows, self._part, self._parts = rows, part, parts

    def total(self, query: Query) -> np.ndarray:
        """The exact sum of the query's integers over all rows."""
        found = self._rows.blocks()
        if self._parts > 1:
            found = (of_part(*block, self._part, self._parts) for block in found)
        return sum_over(query, starmap(Block, found))

    def part(self, part: int, parts: int) -> DiskEngine:
        """The same for every row whose number leaves the rest `part` when divided by `parts`."""
        return DiskEngine(self._rows, part, parts)

    def close(self) -> None:
        self._rows.close()
