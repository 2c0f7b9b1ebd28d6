"""Partitions of a Dask collection, whose values are what they are.

A collection says of what type its values are, which is public. What a partition really has follows
from its rows: one text among numbers makes all of them objects. So each value is read by itself,
and what is no number is missing, as in files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from riata.errors import DataError
from riata.numeric import number

#: The kinds of NumPy types that are numbers, and of those whose values are read one by one.
_NUMBERS, _OTHERS = "biuf", "OUSc"


@dataclass(frozen=True)
class PartitionReader:
    """From a computed partition, of the `shape` that the collection says, to rows and targets.

    It can be pickled. Targets go through `convert`, if there is one.
    """

    shape: tuple[int, int]
    convert: Callable[[np.ndarray], np.ndarray] | None = None

    def __call__(self, x: Any, y: Any) -> tuple[Any, np.ndarray]:
        if sparse.issparse(x):  # entries at one place are added as floats
            x = x.tocoo()
            entries = numbers(x.data).astype(np.float64)
            rows = sparse.csr_array((entries, x.coords), shape=x.shape)
        else:
            rows = numbers(x)
        targets = np.asarray(y)
        if rows.shape != self.shape or targets.shape != self.shape[:1]:
            raise DataError(
                "A partition of the Dask collection has another shape than the collection says: "
                "what makes it must work row by row. Correct it, or its chunks."
            )
        if self.convert is not None:
            return rows, self.convert(targets)
        return rows, numbers(targets).astype(np.float64)


def numbers(values: Any) -> np.ndarray:
    """An array of numbers. What is no number is NaN, whatever the other values are."""
    found = np.asarray(values)
    if found.dtype.kind in _NUMBERS:
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value
            return found.astype(np.float64) if found.dtype.itemsize > 8 else found
    if found.dtype.kind not in _OTHERS:  # dates and records, each of them
        return np.full(found.shape, math.nan)
    flat = [_number(value) for value in found.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(found.shape)


def _number(value: Any) -> float:
    """A value of any type as the number that it is, or spells; NaN for all others."""
    if isinstance(value, complex | np.complexfloating):
        return float(value.real) if value.imag == 0 else math.nan
    return number(value.strip() if isinstance(value, str | bytes) else value)
