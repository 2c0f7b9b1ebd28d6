"""Small answers from the workers of a Dask cluster, such as whose the rows of a file are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from riata.engines.cluster import current_client
from riata.engines.replies import fault_of
from riata.errors import ClusterError, ClusterLost

#: What is called at a worker. It can be pickled, and its answer is arrays.
Call = Callable[[], list[np.ndarray]]


def gather(calls: Sequence[Call]) -> list[list[np.ndarray]]:
    """The answer of each call, wherever it is made. What it means is for the caller to check."""
    client = current_client()
    futures = [client.submit(_quietly, call, pure=False) for call in calls]
    return [_answer(future) for future in futures]


def _quietly(call: Call) -> list[np.ndarray]:
    """The answer after nothing, or what went wrong: an error would be logged with all it knows."""
    try:
        return [np.empty(0, dtype=np.uint8), *call()]
    except Exception as error:
        return [np.frombuffer(fault_of(error).encode(), dtype=np.uint8)]


def _answer(future: Any) -> list[np.ndarray]:
    found: Any = None
    with suppress(Exception):  # or its text would go along with ours
        found = future.result()
    if found is None:
        raise ClusterLost(
            "The workers that read the ids of people were lost. Look after the cluster, then try "
            "again."
        )
    arrays = isinstance(found, list) and all(type(each) is np.ndarray for each in found)
    if not arrays or not found or found[0].dtype != np.uint8:
        raise ClusterError(
            "A worker sent an answer that is no list of arrays: its version of riata may differ."
        )
    if len(found[0]):
        text = found[0].tobytes().decode("utf-8", "replace")
        raise ClusterError(
            f"A worker cannot read the ids of people. {text} Workers read files themselves, so "
            "each of them must find a file at the same path."
        )
    return found[1:]
