"""Rows that are already in memory: NumPy, SciPy sparse, data frames, lists.

Only the shape and the type of a container are looked at here, as `riata.numeric` says. Values are
neither checked nor clipped: a check whose outcome depends on a value would reveal it, and so would
an error that quotes one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from riata.errors import InvalidArgument
from riata.numeric import as_labels, as_numbers, as_targets

#: The beginnings of scikit-learn's messages, line by line, that speak of shapes and types alone.
_SPEAKS_OF_NO_VALUE = (
    "Expected 2D array, got",
    "Feature names",
    "Found array with",
    "Reshape your data",
    "The feature names should match",
    "X has ",
    "y should be a 1d array",
)


def rows(estimator: BaseEstimator, x: Any, *, reset: bool) -> Any:
    """`x` as a two-dimensional array of numbers, or as CSR or CSC rows."""

    def read(data: Any) -> Any:
        found = check_array(
            as_numbers(data, "X"),
            accept_sparse=("csr", "csc"),
            ensure_all_finite=False,
            input_name="X",
            estimator=estimator,
        )
        validate_data(estimator, data, reset=reset, skip_check_array=True)  # names and numbers
        return found

    return _quietly(read, x, "X")


def rows_and_targets(
    estimator: BaseEstimator, x: Any, y: Any, *, numeric: bool
) -> tuple[Any, np.ndarray]:
    """`x` and `y` with matching lengths; `y` as floats if `numeric`, and else as labels."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    x = rows(estimator, x, reset=True)

    def read(data: Any) -> Any:
        if not numeric:
            return column_or_1d(as_labels(data), warn=True)
        return column_or_1d(as_targets(data), dtype=np.float64, warn=True)

    y = _quietly(read, y, "y")
    check_consistent_length(x, y)
    return x, y


def row_numbers(values: Any, n_rows: int, name: str) -> np.ndarray:
    """One number for each row, such as its weight."""

    def read(data: Any) -> Any:
        return column_or_1d(as_targets(data), dtype=np.float64)

    found: np.ndarray = _quietly(read, values, name)
    if len(found) != n_rows:
        raise InvalidArgument(f"{name} has {len(found)} entries, and there are {n_rows} rows.")
    return found


def labels_as_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label in `classes`; -1, which is no class, for any other value."""
    codes = np.full(len(y), -1.0)
    if y.dtype == object:
        table = {label: code for code, label in enumerate(classes.tolist())}
        for i, label in enumerate(y):
            try:
                codes[i] = table.get(label, -1)
            except Exception:  # cannot be hashed or compared, so no label
                continue
        return codes
    for code, label in enumerate(classes):
        codes[np.asarray(y == label)] = code
    return codes


def _quietly(read: Callable[[Any], Any], data: Any, name: str) -> Any:
    """`read(data)`, with no warning or error that could tell of a value."""
    try:
        with np.errstate(all="ignore"):
            return read(data)
    except InvalidArgument:
        raise
    except (TypeError, ValueError) as error:
        lines = [k for k in str(error).splitlines() if k.startswith(_SPEAKS_OF_NO_VALUE)]
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind("\n".join(lines) or _NOT_NUMERIC.format(name=name)) from None


_NOT_NUMERIC = (
    "{name} is not numeric, or not an array with one row for each person. Pass an array of numbers."
)
