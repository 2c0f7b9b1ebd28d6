"""The rows of Dask arrays and data frames, which stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from riata.data.partitions import PartitionReader
from riata.data.source import Advance, progress_bar
from riata.engines.choice import RowSource
from riata.errors import DataError, InvalidArgument
from riata.numeric import NUMERIC

Convert = Callable[[np.ndarray], np.ndarray]

#: Packages whose objects are Dask collections.
_DASK = ("dask", "dask_expr")


class CollectionRows(RowSource):
    """The rows of a Dask array or data frame, which stay where they are.

    Parameters
    ----------
    x, y
        With the same partitions.
    lengths : sequence of int
        How many rows each partition has.
    progress : bool
        Whether a bar is drawn while they are read.
    convert : callable, optional
        What targets go through, which can be pickled.
    """

    distributed = True

    def __init__(
        self,
        x: Any,
        y: Any,
        lengths: tuple[int, ...],
        progress: bool,
        convert: Convert | None = None,
    ) -> None:
        self._x, self._y, self._lengths = x, y, lengths
        self._progress, self._convert = progress, convert

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self._lengths), self._x.shape[1]

    def _partitions(self) -> Iterator[tuple[Any, Any, PartitionReader]]:
        rows = self._x.to_delayed().ravel().tolist()
        targets = self._y.to_delayed().ravel().tolist()
        for x, y, n_rows in zip(rows, targets, self._lengths, strict=True):
            yield x, y, PartitionReader((n_rows, self.shape[1]), self._convert)

    def pieces(self) -> list[Any]:
        from riata.engines.dask import Partition

        return [Partition(x, y, read.shape[0], read) for x, y, read in self._partitions()]

    @property
    def likely_entries(self) -> int:
        """How many entries all rows have."""
        return int(self.shape[0] * self.shape[1])

    def blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        from dask.base import compute

        with self.watched():
            for x, y, read in self._partitions():
                yield read(*quietly(compute, x, y))

    def watched(self) -> AbstractContextManager[Advance]:
        """A bar without steps: how many rows a partition has need not be public."""
        return progress_bar("The Dask collection", self.shape[0], self._progress)

    def load(self) -> tuple[Any, np.ndarray]:
        found = list(self.blocks())
        stack = sparse.vstack if sparse.issparse(found[0][0]) else np.concatenate
        return stack([x for x, _ in found]), np.concatenate([y for _, y in found])


def quietly(compute: Callable[..., Any], *what: Any) -> Any:
    """What Dask computes, without its error, which may quote rows."""
    with suppress(Exception):
        return compute(*what)
    raise DataError(
        "The Dask collection cannot be computed. What Dask says about it may quote rows, and is "
        "left out here: compute the collection with Dask to see it."
    )


def is_collection(x: Any) -> bool:
    """Whether it is a Dask collection. Dask itself is not imported for that."""
    return type(x).__module__.split(".")[0] in _DASK


def partitioned(x: Any, y: Any, *, numeric: bool) -> tuple[Any, Any, np.ndarray | None]:
    """Rows and targets as Dask arrays with the same partitions, and the names of the columns.

    Only the number of rows of each partition is found out, if it is not known. Targets are numbers
    if `numeric`, and otherwise labels.
    """
    if y is None or not is_collection(y):
        raise InvalidArgument(
            "X is a Dask collection, and y is not: rows and targets must have the same partitions. "
            "Pass y as a Dask array or series."
        )
    for name, each in (("X", x), ("y", y)):
        if not hasattr(each, "ndim"):
            raise InvalidArgument(
                f"{name} is a Dask {type(each).__name__}, which has no columns. Pass a Dask array "
                "or data frame."
            )
    names = None
    if hasattr(x, "to_dask_array"):
        names = np.array([str(name) for name in x.columns], dtype=object)
        x = quietly(partial(x.to_dask_array, lengths=True))
    if hasattr(y, "to_dask_array"):
        y = quietly(partial(y.to_dask_array, lengths=True))
    _check_shape_and_type(x, y, numeric)
    if any(np.isnan(size) for axis in (*x.chunks, *y.chunks) for size in axis):
        x, y = quietly(x.compute_chunk_sizes), quietly(y.compute_chunk_sizes)
    if x.shape[0] != y.shape[0]:
        raise InvalidArgument(
            f"X has {x.shape[0]} rows and y {y.shape[0]} targets: each row needs its own target."
        )
    x = x.rechunk({1: -1})
    return x, y.rechunk((x.chunks[0],)), names


def _check_shape_and_type(x: Any, y: Any, numeric: bool) -> None:
    if x.ndim != 2 or y.ndim != 1:
        raise InvalidArgument(
            f"X has {x.ndim} dimensions and y {y.ndim}: rows are a two-dimensional collection and "
            "targets a one-dimensional one."
        )
    for name, kind in (("X", x.dtype), ("y", y.dtype))[: 2 if numeric else 1]:
        if kind.kind not in NUMERIC:
            raise InvalidArgument(
                f"{name} has the type {kind}, and not that of numbers. Convert its columns with "
                "astype, and encode text and categories from public lists first; a Schema does so "
                "for files."
            )
