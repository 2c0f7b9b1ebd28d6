"""The public promise about one row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from riata.errors import InvalidArgument
from riata.grid import X_STEPS, row_sums, squared_lengths
from riata.privacy.budget import check_scale
from riata.vectors import Vector
from riata.vectors import length as length_of

NORMS = ("inf", "l2")

#: Dense rows are put on the grid so many entries at a time, which fit a processor's cache.
ENTRIES_AT_ONCE = 2**16

#: The squared bounds of all columns are about this many steps together, for the lengths of rows.
_WEIGHT_STEPS = 2.0**27

_PUBLIC = (
    "noise is scaled to it. Pass the largest absolute value that a row could have, from public "
    "knowledge."
)


@dataclass(frozen=True, eq=False)
class Bounds:
    """How far one row may reach. Known before the data is seen, and never computed from it.

    Rows that break the promise are clipped into it, and missing values become 0, so the guarantee
    holds for every row whatever it contains.

    Parameters
    ----------
    x : float or array-like of shape (n_features,)
        With ``norm="inf"``, the largest |x_j|, one number for all columns or one for each.
        With ``norm="l2"``, the largest Euclidean norm of a row: one number.
    y : float, optional
        The largest |y|. Classifiers do not need it.
    norm : {"inf", "l2"}, default="inf"
        In which norm a row is bounded.
    nonnegative : bool, default=False
        Whether no entry of a row is below 0, as in counts of words. Entries below count as 0.
    length : float, optional
        The largest Euclidean norm of a row, beside the bounds of its entries. Longer rows are
        shortened.
    nonzeros : int, optional
        How many entries of a row are not 0, at most or nearly so, if they are few: one-hot
        encodings, words of texts. Rows are then no longer than so many entries at their bound make
        them, which is enforced, and ``solver="auto"`` adds noise to whole gradients, of which short
        rows need little.

    Examples
    --------
    >>> from riata import Bounds
    >>> Bounds(x=1.0, y=3.0)
    Bounds(x=1.0, y=3.0, norm='inf')
    >>> round(Bounds(x=1.0, nonzeros=16).max_length, 6)
    4.0
    """

    x: Any
    y: float | None = None
    norm: str = "inf"
    nonnegative: bool = False
    length: float | None = None
    nonzeros: int | None = None

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise InvalidArgument(
                f"norm={self.norm!r} is not known: it says how a row is bounded. "
                'Use "inf" for a bound on every entry or "l2" for one on the length of the row.'
            )
        if not isinstance(self.nonnegative, bool):
            raise InvalidArgument(f"nonnegative={self.nonnegative!r} must be True or False.")
        try:
            x = np.array(self.x, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"Bounds x must be a number or one number for each column, got "
                f"{type(self.x).__name__}."
            ) from None
        if x.ndim > 1 or (x.ndim == 1 and self.norm == "l2"):
            raise InvalidArgument(
                f"Bounds x has {x.ndim} dimensions with norm={self.norm!r}: a bound is one number, "
                'or with norm="inf" one number for each column.'
            )
        for extreme in (x.min(initial=np.inf), x.max(initial=-np.inf)):
            check_scale("Bounds x", float(extreme), _PUBLIC)
        if self.y is not None:
            object.__setattr__(self, "y", check_scale("Bounds y", self.y, _PUBLIC))
        self._check_length()
        if self.length is not None:
            x = np.asarray(np.minimum(x, self.length))  # no entry is larger than its row is long
        x.flags.writeable = False
        object.__setattr__(self, "x", float(x) if x.ndim == 0 else x)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """After a copy x is as fixed as before: identities of requests rest on it."""
        self.__dict__.update(state)
        if isinstance(self.x, np.ndarray):
            self.x.flags.writeable = False

    def _check_length(self) -> None:
        if self.norm == "l2" and not (self.length is None and self.nonzeros is None):
            raise InvalidArgument(
                'With norm="l2" x is already the length of a row. To bound entries as well, pass '
                'Bounds(x=<largest entry>, length=<largest length>) with norm="inf".'
            )
        if self.length is not None:
            length = check_scale("Bounds length", self.length, _PUBLIC)
            object.__setattr__(self, "length", length)
        if self.nonzeros is not None:
            whole = isinstance(self.nonzeros, (int, np.integer))
            if not whole or isinstance(self.nonzeros, bool) or not 1 <= self.nonzeros <= 2**40:
                raise InvalidArgument(
                    f"nonzeros={self.nonzeros!r} must be a whole number from 1 to 2^40: the "
                    "largest number of entries of a row that are not 0."
                )
            object.__setattr__(self, "nonzeros", int(self.nonzeros))

    @property
    def max_length(self) -> float | None:
        """The largest Euclidean norm of a row, if one was promised."""
        if self.norm == "l2" or self.nonzeros is None:
            return self.x if self.norm == "l2" else self.length
        # A little more than the root: so many entries at their bound are not too long.
        longest = math.sqrt(self.nonzeros) * (1 + 2.0**-50) * self.largest
        return longest if self.length is None else min(longest, self.length)

    @property
    def favours_gradients(self) -> bool:
        """Whether rows are known to be short beside what their entries alone would allow."""
        return self.norm == "l2" or self.nonzeros is not None

    def with_y(self, y: float) -> Bounds:
        return replace(self, y=y)

    def check_size(self, n_features: int) -> None:
        """Raise unless a bound for each column has one for each of `n_features` columns."""
        if np.ndim(self.x) == 1 and len(self.x) != n_features:
            raise InvalidArgument(
                f"Bounds x has {len(self.x)} entries and the data {n_features} columns: each "
                "column needs its own public bound. Pass one number for all, or one for each."
            )

    def per_column(self, n_features: int) -> np.ndarray:
        """The largest |x_j| of each column."""
        return np.broadcast_to(np.asarray(self.x, dtype=np.float64), (n_features,))

    @property
    def largest(self) -> float:
        """The largest bound of a column."""
        return self.x if isinstance(self.x, float) else float(self.x.max())

    def of_columns(self, columns: np.ndarray | int) -> Any:
        """The largest |x_j| of these columns: one number if it is the same for all."""
        return self.x if isinstance(self.x, float) else self.x[columns]

    def reach(self, theta: Vector) -> float:
        """The largest |<x, theta>| over all rows x that keep the promise."""
        reach = float(np.sum(np.abs(theta.values) * self.of_columns(theta.support)))
        longest = self.max_length
        return reach if longest is None else min(reach, longest * length_of(theta.values))

    def unit_length(self, columns: Any, size: int) -> float:
        """The largest length of a row on `size` columns, in units of their bounds."""
        if self.max_length is None:
            return math.sqrt(size)
        return min(math.sqrt(size), self.max_length / float(np.min(self.of_columns(columns))))

    def row_norm(self, norm: str, n_features: int, columns: Any = slice(None)) -> float:
        """The largest length of a row, or of some columns of it, in "l1", "l2" or "linf"."""
        limits = np.array(self.per_column(n_features)[columns])
        if norm == "linf":
            return float(limits.max())
        most = length_of(limits) if norm == "l2" else float(limits.sum())
        if self.max_length is None:
            return most
        return min(most, self.max_length * (math.sqrt(len(limits)) if norm == "l1" else 1.0))

    def clip_x(self, x: Any) -> Any:
        """A copy of the rows inside the bounds. Never an error, whatever the values are."""
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a row
            if sparse.issparse(x):
                rows = canonical_rows(x)
                rows.data = self._clip_entries(rows.data, self.of_columns(rows.indices))
                if self.max_length is not None:
                    lengths = np.sqrt(sparse.csr_array(rows / self.max_length).power(2).sum(axis=1))
                    rows.data /= np.repeat(np.maximum(lengths, 1.0), np.diff(rows.indptr))
                return rows
            rows = self._clip_entries(np.ascontiguousarray(x), self.x)
            if self.max_length is not None:
                lengths = np.sqrt(np.square(rows / self.max_length).sum(axis=1, keepdims=True))
                rows /= np.maximum(lengths, 1.0)
            return rows

    def grid_x(self, x: Any) -> Any:
        """The rows inside the bounds, in steps of a column's bound / `X_STEPS`: integers.

        Entries are rounded first. A row that is longer than `max_length` then is shortened, by a
        factor that follows from its integers: it is the same in every container.
        """
        if sparse.issparse(x):
            rows = canonical_rows(x)
            self._round_entries(rows.data, self.of_columns(rows.indices), rows.data)
            if self.max_length is not None:
                rows.data *= np.repeat(self._shrinks_of(rows), np.diff(rows.indptr))
                np.rint(rows.data, out=rows.data)
            return rows
        steps = np.empty(x.shape)
        several = max(1, ENTRIES_AT_ONCE // max(x.shape[1], 1))
        for start in range(0, len(x), several):
            few = slice(start, start + several)
            self.grid_entries(x[few], self.shrinks(x[few]), self.x, steps[few])
        return steps

    def shrinks(self, x: np.ndarray) -> np.ndarray | None:
        """What dense rows on the grid are multiplied by to be short enough, each; None for 1."""
        if self.max_length is None:
            return None
        return self._shrinks_of(self._round_entries(x, self.x, np.empty(x.shape)))[:, None]

    def grid_entries(
        self, x: np.ndarray, shrinks: np.ndarray | None, limit: Any, out: np.ndarray
    ) -> np.ndarray:
        """Entries of dense rows on the grid, written to `out`.

        Parameters
        ----------
        x : ndarray
            Some rows, or some columns of them.
        shrinks : ndarray or None
            What `shrinks` says about the rows.
        limit : float or ndarray
            The bounds of the columns.
        out : ndarray of float64
        """
        self._round_entries(x, limit, out)
        if shrinks is not None:
            np.multiply(out, shrinks, out=out)
            np.rint(out, out=out)
        return out

    def _round_entries(self, x: np.ndarray, limit: Any, out: np.ndarray) -> np.ndarray:
        """Each entry inside its own bound, in whole steps; missing ones as 0."""
        with np.errstate(all="ignore"):  # a warning about an overflow would tell of a row
            np.multiply(x, X_STEPS / limit, out=out, dtype=np.float64)
            np.rint(out, out=out)
            np.clip(out, 0.0 if self.nonnegative else -float(X_STEPS), float(X_STEPS), out=out)
            if math.isnan(out.min(initial=0.0)):  # after the clamp, which lets NaN through
                out[np.isnan(out)] = 0.0
        return out

    def _shrinks_of(self, rows: Any) -> np.ndarray:
        """The factor that brings each row of integers to the bound, even if all of it rounds up.

        A row of k integers that are not 0 becomes longer by at most sqrt(k) / 2 when it is rounded,
        in steps of the largest column.
        """
        assert self.max_length is not None
        squares, most = self.squared_lengths(rows), X_STEPS * (self.max_length / self.largest)
        if sparse.issparse(rows):
            entries = row_sums((rows.data != 0).astype(np.int64), rows.indptr)
        else:
            entries = np.count_nonzero(rows, axis=1)
        room = np.maximum(most * (1 - 2.0**-40) - np.sqrt(entries) / 2, 0.0)
        return np.where(squares > most**2, room / np.sqrt(np.maximum(squares, 1)), 1.0)

    def squared_lengths(self, rows: Any) -> np.ndarray:
        """The squared length of each row on the grid, or a little more, in the largest steps."""
        if isinstance(self.x, float):
            return squared_lengths(rows)
        # The squared bounds of the columns in whole steps, rounded up.
        squares = np.square(self.x / self.largest)
        step = squares.sum() / _WEIGHT_STEPS
        return np.asarray(squared_lengths(rows, np.ceil(squares / step).astype(np.int64)) * step)

    def _clip_entries(self, entries: Any, limit: Any) -> np.ndarray:
        clipped = _clip(entries, limit)
        return np.maximum(clipped, 0.0, out=clipped) if self.nonnegative else clipped

    def clip_y(self, y: np.ndarray) -> np.ndarray:
        """A copy of the targets inside the bounds."""
        with np.errstate(all="ignore"):
            return _clip(y, np.float64(self.y if self.y is not None else 1.0))

    def __repr__(self) -> str:
        x = self.x if np.ndim(self.x) == 0 else f"<{len(self.x)} columns>"
        more = ", nonnegative=True" if self.nonnegative else ""
        more += "" if self.length is None else f", length={self.length:.6g}"
        more += "" if self.nonzeros is None else f", nonzeros={self.nonzeros}"
        return f"Bounds(x={x}, y={self.y}, norm={self.norm!r}{more})"


def norm_order(norm: str) -> float:
    """The exponent that a norm's name stands for."""
    return {"l1": 1.0, "l2": 2.0, "linf": np.inf}[norm]


def _clip(values: Any, limit: Any) -> np.ndarray:
    """NaN to 0, everything else into [-limit, limit]; the same work whatever the values are."""
    values = np.asarray(values, dtype=np.float64)
    kept = np.where(np.isnan(values), 0.0, values)
    return np.clip(kept, -limit, limit, out=kept)


def canonical_rows(x: Any) -> sparse.csr_array:
    """A copy of sparse rows with one entry for each place, or two of them would escape clipping.

    Entries that share a place are added row by row and in float64: sorted by columns, the order of
    a row's duplicates could depend on other rows.
    """
    with np.errstate(all="ignore"):  # of numbers too large for float64
        if x.format == "coo":  # which would be added as they are
            x = sparse.coo_array((x.data.astype(np.float64), x.coords), shape=x.shape)
        rows = sparse.csr_array(x, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    return rows
