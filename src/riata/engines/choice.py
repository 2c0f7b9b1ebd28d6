"""Which engine sums the rows: by its name, and by where the rows are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from riata.engines.disk import DiskEngine, RowsOnDisk
from riata.engines.local import LocalEngine
from riata.engines.memory import check_memory, memory_for_rows
from riata.engines.shard import Shard
from riata.errors import InvalidArgument
from riata.mechanisms.engine import Engine
from riata.preparation import Preparation
from riata.wording import did_you_mean

#: Engines of this process that know the scores of a path without summing them, and the kernels
#: that they use.
_KERNELS = {"auto": "auto", "local": "auto", "numba": "numba", "numpy": "numpy"}

ENGINES = (*_KERNELS, "scan", "disk", "dask")

#: What an engine needs beside riata's own dependencies, and the extra that brings it.
_NEEDS = {"numba": ("numba", "fast"), "dask": ("distributed", "dask")}

#: Rows in memory are summed or sent so many at a time.
_ROWS_AT_ONCE = 2**17

#: A sparse entry takes so many bytes. An engine in memory needs so many times what rows take
#: themselves, with its copies of them on the grid and by columns.
_BYTES_OF_AN_ENTRY, _COPIES = 12, 4


class RowSource(ABC):
    """Where the rows of a fit are. Nothing is read before one of these is called."""

    #: Whether an engine in this process would have to fetch them.
    distributed: ClassVar[bool] = False

    #: The schema that they are read by, if they have one.
    schema: Any = None

    #: How many rows each person has, if they are of people.
    rows_of_a_person: int | None = None

    @property
    def shape(self) -> tuple[int, int] | None:
        """The numbers of rows and columns, where they are known without a look at the rows."""
        return None

    @abstractmethod
    def load(self) -> tuple[Any, np.ndarray]:
        """All rows and targets, in memory."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        """The same, some at a time."""

    @abstractmethod
    def pieces(self) -> list[Any]:
        """The same as pieces that `riata.engines.dask` gives to workers."""

    def keyed(self, key: bytes) -> RowSource:
        """The same rows, where some are drawn at random by a secret key."""
        return self

    def with_schema(self, schema: Any) -> RowSource:
        """The same rows as another schema of their columns reads them, if they have a schema."""
        raise AssertionError("rows in memory have no schema")

    def watched(self) -> AbstractContextManager[Callable[[int], None] | None]:
        """What is told how many rows workers read, if somebody looks on."""
        return nullcontext()

    @property
    def likely_entries(self) -> int:
        """About how many entries are to be read: from public facts. 0 if they are in memory."""
        return 0


class Arrays(RowSource):
    """Rows in memory. `convert` makes numbers of the targets as they are given."""

    def __init__(
        self, x: Any, y: np.ndarray, convert: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> None:
        self._x, self._given, self._convert = x, y, convert

    @property
    def shape(self) -> tuple[int, int]:
        return self._x.shape[0], self._x.shape[1]

    @cached_property
    def _y(self) -> np.ndarray:
        return self._given if self._convert is None else self._convert(self._given)

    def load(self) -> tuple[Any, np.ndarray]:
        return self._x, self._y

    def blocks(self) -> Iterator[tuple[Any, np.ndarray]]:
        return self._cut(_ROWS_AT_ONCE)

    def _cut(self, rows: int) -> Iterator[tuple[Any, np.ndarray]]:
        x = self._x.tocsr() if sparse.issparse(self._x) else self._x
        for start in range(0, len(self._y), rows):
            few = slice(start, start + rows)
            yield x[few], self._y[few]

    def pieces(self) -> list[Any]:
        from riata.engines.cluster import n_workers
        from riata.engines.dask import InMemory

        size = max(1, min(_ROWS_AT_ONCE, -(-len(self._y) // n_workers())))
        return [InMemory(*block) for block in self._cut(size)]


def check_engine(name: object) -> None:
    """Raise unless there is such an engine, and what it needs is there."""
    if name not in ENGINES:
        raise InvalidArgument(
            f"engine={name!r} is not known.{did_you_mean(name, ENGINES)} Use one of "
            f"{list(ENGINES)}."
        )
    check_memory()
    package, extra = _NEEDS.get(str(name), ("", ""))
    if package and find_spec(package) is None:
        raise InvalidArgument(
            f'engine="{name}" needs the package {package}, which is not installed. Install it with '
            f'pip install "riata[{extra}]", or leave engine out.'
        )


def open_engine(name: str, preparation: Preparation, rows: RowSource) -> Engine:
    """An engine for the rows, which are read now."""
    if name == "dask" or (name == "auto" and rows.distributed):
        from riata.engines.cluster import current_client
        from riata.engines.dask import DaskEngine

        client, pieces = current_client(), rows.pieces()
        with rows.watched() as advance:
            return DaskEngine(pieces, preparation, client, advance)
    if name == "disk" or (name == "auto" and not _fits_into_memory(rows)):
        on_disk = RowsOnDisk()
        for block in rows.blocks():
            x, y = preparation(*block)
            on_disk.append(sparse.csr_array(x), y)
        return DiskEngine(on_disk)
    x, y = rows.load()
    if name == "scan":
        return Shard(*preparation(x, y))
    return LocalEngine(preparation.project(x), y, preparation.bounds, kernels=_KERNELS[name])


def _fits_into_memory(rows: RowSource) -> bool:
    """Whether an engine in memory has room for the rows: by public facts, and by the machine's."""
    needed = rows.likely_entries * _BYTES_OF_AN_ENTRY
    return needed * _COPIES <= memory_for_rows()
