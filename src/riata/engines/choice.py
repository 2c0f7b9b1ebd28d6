"""Which engine sums the rows: by its name, and by where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from riata.engines.local import LocalEngine
from riata.engines.shard import Shard
from riata.errors import InvalidArgument
from riata.mechanisms.base import Engine
from riata.preparation import Preparation

#: Engines of this process that know the scores of a walk without summing them, and the kernels
#: that they use.
_KERNELS = {"auto": "auto", "local": "auto", "numba": "numba", "numpy": "numpy"}

#: Engines that make every sum from the beginning.
_SCANNING = ("scan", "dask")

ENGINES = (*_KERNELS, *_SCANNING)

#: What an engine needs beside riata's own dependencies, and the extra that brings it.
_NEEDS = {"numba": ("numba", "fast"), "dask": ("distributed", "dask")}

#: Rows in memory are given to workers in at least so many pieces for each, and in such pieces.
_ROWS_A_PIECE = 2**20


def check_engine(name: object) -> None:
    """Raise unless there is such an engine and what it needs is installed."""
    if name not in ENGINES:
        raise InvalidArgument(f"engine={name!r} is not known. Use one of {list(ENGINES)}.")
    package, extra = _NEEDS.get(str(name), ("", ""))
    if package and find_spec(package) is None:
        raise InvalidArgument(
            f'engine="{name}" needs the package {package}, which is not installed. Install it with '
            f'pip install "riata[{extra}]", or leave engine out.'
        )


def open_engine(
    name: str, preparation: Preparation, read: Callable[[], tuple[Any, np.ndarray]]
) -> Engine:
    """An engine for the rows that `read` returns."""
    x, y = read()
    if name == "dask":
        return _at_workers(preparation, x, y)
    if name == "scan":
        return Shard(*preparation(x, y))
    projected, bounds = preparation.project(x), preparation.bounds
    return LocalEngine(projected, y, bounds, kernels=_KERNELS[name])


def _at_workers(preparation: Preparation, x: Any, y: np.ndarray) -> Engine:
    from riata.engines.cluster import current_client
    from riata.engines.dask import DaskEngine, InMemory

    client = current_client()
    workers = max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)
    n = x.shape[0]
    size = max(1, min(_ROWS_A_PIECE, -(-n // workers)))
    x = x.tocsr() if hasattr(x, "tocsr") else x
    cuts = [slice(i, i + size) for i in range(0, n, size)]
    return DaskEngine([InMemory(x[few], y[few]) for few in cuts], preparation, client)
