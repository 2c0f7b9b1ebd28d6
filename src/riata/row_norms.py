"""Norms of rows, and lengths of rows on the grid in lr norms as exact integers.

Proofs are in docs/privacy/exact_sums.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from riata.errors import InvalidArgument
from riata.grid import MOST_COLUMNS, MOST_TOTAL, ROUNDED_UP, X_STEPS, check_columns, row_sums
from riata.privacy.budget import check_number

#: The norms with a name.
NORMS = ("inf", "l2")

#: Beyond this exponent a norm is that of the largest entry.
MOST_ORDER = 1024.0

#: An entry at its bound counts so many in the sum of powers of a row. So many columns, 2^26, fit an
#: integer.
UNIT = 2**36
MOST_COLUMNS_OF_POWERS = MOST_TOTAL // UNIT


def power(base: np.ndarray, order: float) -> np.ndarray:
    """base^order for numbers from 0 to 1, to a part in 2^41.

    By products and square roots alone, which every processor rounds alike: an exponent is a sum of
    powers of two.
    """
    whole, rest = int(order), order - int(order)
    found, square, root = np.ones_like(base), base, base
    with np.errstate(under="ignore"):
        while whole:
            found = found * square if whole & 1 else found
            square, whole = square * square, whole >> 1
        while rest:
            root, rest = np.sqrt(root), 2 * rest
            found, rest = (found * root, rest - 1) if rest >= 1 else (found, rest)
    return found


@lru_cache(maxsize=8)
def _powers(order: float) -> np.ndarray:
    """(k / X_STEPS)^order for k = 0, ..., X_STEPS, in whole units, rounded up."""
    steps = np.arange(X_STEPS + 1)
    units = np.ceil(power(steps / X_STEPS, order) * (UNIT * ROUNDED_UP))
    return np.clip(units, steps > 0, UNIT).astype(np.int64)


def power_sums(rows: Any, order: float) -> np.ndarray:
    """The sum of |entry|^order over each row on the grid, or a little more: `UNIT` is the bound."""
    check_columns(rows, MOST_COLUMNS_OF_POWERS)
    table = _powers(order)
    if sparse.issparse(rows):
        return row_sums(table[np.abs(rows.data).astype(np.int64)], rows.indptr)
    return np.asarray(table[np.abs(rows).astype(np.int64)].sum(axis=1))


def shrinks(rows: Any, order: float) -> np.ndarray:
    """The factor that brings each row on the grid to the bound, if it is rounded towards 0 then."""
    sums = power_sums(rows, order)
    found = power(UNIT / np.maximum(sums, UNIT), 1 / order) * (1 - 2.0**-39)
    return np.where(sums > UNIT, found, 1.0)


def check_most_columns(norm: str | float, n_features: int) -> None:
    """Raise if rows have more columns than their lengths in this norm are exact for."""
    most = MOST_COLUMNS if isinstance(norm, str) else MOST_COLUMNS_OF_POWERS
    if n_features > most:
        other = "" if isinstance(norm, str) else ', or use norm="l2" or norm="inf"'
        raise InvalidArgument(
            f"The data has {n_features:,} columns, and with norm={norm!r} {most:,} is the "
            "most: the length of a longer row does not fit a 64-bit integer. Hash or project "
            f"the columns to fewer{other}."
        )


def conjugate(order: float) -> float:
    """The q with 1/p + 1/q = 1."""
    if order == 1:
        return math.inf
    return 1.0 if math.isinf(order) else order / (order - 1)


def embedding_norm(size: int, given: float, wanted: float) -> float:
    """The largest l_wanted norm of `size` numbers whose l_given norm is 1."""
    return float(size ** max(0.0, 1 / wanted - 1 / given))


def norm_order(norm: str) -> float:
    """The exponent that a norm's name stands for."""
    return {"l1": 1.0, "l2": 2.0, "linf": np.inf}[norm]


def lr_norm(values: np.ndarray, order: float) -> float:
    """The lr norm of some numbers, whose powers may overflow or vanish."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0 or not math.isfinite(largest):
        return largest
    return float(largest * np.linalg.norm(values / largest, order))


def checked_norm(norm: Any) -> str | float:
    """A norm as it is known here: by its name, or by its exponent."""
    if isinstance(norm, str) and norm in NORMS:
        return norm
    if isinstance(norm, str) or not check_number("norm", norm) >= 1:
        raise InvalidArgument(
            f"norm={norm!r} is not known: it says how a row is bounded. "
            'Use "inf" for a bound on every entry, "l2" for one on the length of the row, or a '
            "number r of at least 1 for the lr norm."
        )
    if MOST_ORDER < norm < math.inf:
        raise InvalidArgument(f'norm={norm!r} is above {MOST_ORDER:g}. Use "inf" instead.')
    return {2.0: "l2", math.inf: "inf"}.get(float(norm), float(norm))
