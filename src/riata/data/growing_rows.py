"""Sparse rows that are put together from blocks, in little more memory than they take."""

from __future__ import annotations

import numpy as np
from scipy import sparse


class GrowingRows:
    """Blocks of sparse rows, each appended to the arrays of all rows.

    The arrays grow where they are, which the operating system does without a copy for large ones;
    stacking the blocks at the end would hold all rows twice.
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._data = np.empty(0)
        self._indices = np.empty(0, dtype=np.int32)
        self._ends: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]

    def append(self, x: sparse.csr_array) -> None:
        """A block of float64 whose column numbers fit 32 bits."""
        start = len(self._data)
        for whole, part in ((self._data, x.data), (self._indices, x.indices)):
            whole.resize(start + x.nnz, refcheck=False)  # no view of it exists
            whole[start:] = part[: x.nnz]
        self._ends.append(x.indptr[1:].astype(np.int64) + start)

    def rows(self) -> sparse.csr_array:
        """All rows. To be taken once."""
        ends = np.concatenate(self._ends)
        if ends[-1] <= np.iinfo(np.int32).max:
            ends = ends.astype(np.int32)
        indices = self._indices.astype(ends.dtype, copy=False)
        shape = (len(ends) - 1, self._n_features)
        return sparse.csr_array((self._data, indices, ends), shape=shape)
