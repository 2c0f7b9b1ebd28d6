"""Rows as a worker of a Dask cluster gets them: sent to it, computed there, or read there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from distributed import Client

#: From what a worker was given to rows and targets.
ReadPiece = Callable[[Any, Any], tuple[Any, np.ndarray]]


class Piece(Protocol):
    """Some consecutive rows, wherever they are kept."""

    n_rows: int

    def assign(self, client: Client, worker: str) -> tuple[Any, Any, ReadPiece | None]:
        """What a worker is given, and how it makes rows and targets of it: None if it has them."""
        ...


class InMemory:
    """Rows in the memory of this process."""

    def __init__(self, x: Any, y: np.ndarray) -> None:
        self._x, self._y, self.n_rows = x, y, len(y)

    def assign(self, client: Client, worker: str) -> tuple[Any, Any, ReadPiece | None]:
        x, y = client.scatter([self._x, self._y], workers=[worker], hash=False)
        return x, y, None


class Partition:
    """Rows of a Dask collection. `read`, which can be pickled, makes rows of what is computed."""

    def __init__(self, x: Any, y: Any, n_rows: int, read: ReadPiece) -> None:
        self._x, self._y, self.n_rows, self._read = x, y, n_rows, read

    def assign(self, client: Client, worker: str) -> tuple[Any, Any, ReadPiece | None]:
        x, y = client.compute([self._x, self._y], workers=[worker], allow_other_workers=True)
        return x, y, self._read


class InFile:
    """Rows that a worker can read itself: by the `load` of a source that can be pickled."""

    def __init__(self, source: Any) -> None:
        self._source, self.n_rows = source, source.n_rows

    def assign(self, client: Client, worker: str) -> tuple[Any, Any, ReadPiece | None]:
        return self._source, None, _load


def _load(source: Any, nothing: None) -> tuple[Any, np.ndarray]:
    found: tuple[Any, np.ndarray] = source.load()
    return found
