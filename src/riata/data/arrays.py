"""Rows that are already in memory: NumPy, SciPy sparse, data frames, lists.

Only the shape and the type of a container are looked at here. Values are neither checked nor
clipped: a check whose outcome depends on a value would reveal it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

_NOT_NUMERIC = (
    "{name} is not numeric: each argument must be a number or a string that reads as a number. "
    "Encode text and categories from public lists first."
)


def rows(estimator: BaseEstimator, x: Any, *, reset: bool) -> Any:
    """`x` as a two-dimensional array or CSR matrix, its values untouched."""
    try:
        return validate_data(
            estimator, x, reset=reset, accept_sparse="csr", ensure_all_finite=False, dtype="numeric"
        )
    except (TypeError, ValueError) as error:
        raise _without_values(error, x, "X") from None


def rows_and_targets(
    estimator: BaseEstimator, x: Any, y: Any, *, numeric: bool
) -> tuple[Any, np.ndarray]:
    """`x` and `y` with matching lengths; `y` as floats if `numeric`."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    x = rows(estimator, x, reset=True)
    if not numeric and not hasattr(y, "dtype"):
        y = np.array(y, dtype=object)  # or one odd label would change the type of all the others
    try:
        y = column_or_1d(y, dtype=np.float64 if numeric else None, warn=True)
        if numeric:
            y = check_array(y, ensure_2d=False, ensure_all_finite=False, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise _without_values(error, y, "y") from None
    check_consistent_length(x, y)
    return x, y


def labels_as_codes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The position of each label in `classes`; -1, which is no class, for any other value."""
    codes = np.full(len(y), -1.0)
    for code, label in enumerate(classes):
        codes[np.asarray(y == label)] = code
    return codes


def _without_values(error: Exception, data: Any, name: str) -> Exception:
    """The error, or one that quotes nothing if its text could quote an entry of the data."""
    kind = getattr(data, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "biufc":
        return error
    if "could not convert" in str(error) or "argument must be" in str(error):
        return type(error)(_NOT_NUMERIC.format(name=name))
    return error
