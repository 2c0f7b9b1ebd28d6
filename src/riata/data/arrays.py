"""Rows that are already in memory: NumPy, SciPy sparse, data frames, lists.

Only the shape and the type of a container are looked at here. Values are neither checked nor
clipped: a check whose outcome depends on a value would reveal it, and so would an error that
quotes one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

#: The beginnings of scikit-learn's messages, line by line, that speak of shapes and types alone.
_SPEAKS_OF_NO_VALUE = (
    "Complex data not supported",
    "Expected 2D array, got",
    "Feature names",
    "Found array with",
    "Reshape your data",
    "The feature names should match",
    "X has ",
    "dtype='numeric' is not compatible",
    "y should be a 1d array",
)


def rows(estimator: BaseEstimator, x: Any, *, reset: bool) -> Any:
    """`x` as a two-dimensional array, or as CSR or CSC rows, its values untouched."""

    def read(data: Any) -> Any:
        found = validate_data(
            estimator, data, reset=reset, accept_sparse=("csr", "csc"), ensure_all_finite=False
        )
        return found if found.dtype.kind in "biuf" else found.astype(np.float64)

    return _quietly(read, x, "X")


def rows_and_targets(
    estimator: BaseEstimator, x: Any, y: Any, *, numeric: bool
) -> tuple[Any, np.ndarray]:
    """`x` and `y` with matching lengths; `y` as floats if `numeric`."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    x = rows(estimator, x, reset=True)
    if numeric:
        y = _quietly(_numbers_in_a_row, y, "y")
    else:
        if not hasattr(y, "dtype"):
            y = np.array(y, dtype=object)  # or one odd label would change the type of the others
        y = _quietly(lambda labels: column_or_1d(labels, warn=True), y, "y")
    check_consistent_length(x, y)
    return x, y


def labels_as_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label in `classes`; -1, which is no class, for any other value."""
    codes = np.full(len(y), -1.0)
    if y.dtype == object:
        table = {label: code for code, label in enumerate(classes.tolist())}
        for i, label in enumerate(y):
            try:
                codes[i] = table.get(label, -1)
            except TypeError:  # not hashable, so no label
                continue
        return codes
    for code, label in enumerate(classes):
        codes[np.asarray(y == label)] = code
    return codes


def _numbers_in_a_row(y: Any) -> np.ndarray:
    y = column_or_1d(y, dtype=np.float64, warn=True)
    return check_array(y, ensure_2d=False, ensure_all_finite=False, dtype=np.float64)


def _quietly(read: Callable[[Any], Any], data: Any, name: str) -> Any:
    """`read(data)`, with no warning or error that could tell of a value."""
    try:
        with np.errstate(all="ignore"):
            try:
                return read(data)
            except OverflowError:  # Python's integers have no largest one
                return read(np.vectorize(_as_float, otypes=[object])(np.asarray(data, object)))
    except (TypeError, ValueError) as error:
        lines = [k for k in str(error).splitlines() if k.startswith(_SPEAKS_OF_NO_VALUE)]
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind("\n".join(lines) or _not_numeric(name)) from None


def _as_float(value: Any) -> Any:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return value


def _not_numeric(name: str) -> str:
    return (
        f"{name} is not numeric: each argument must be a number or a string that reads as a "
        "number. Encode text and categories from public lists first."
    )
