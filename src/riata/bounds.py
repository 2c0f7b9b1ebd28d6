"""The public promise about one row."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from riata.errors import InvalidArgument
from riata.grid import ROUNDED_UP, X_STEPS, canonical_rows, pieces, row_sums, squared_lengths
from riata.privacy.budget import LARGEST_SCALE, SMALLEST_SCALE, check_scale
from riata.row_norms import (
    check_most_columns,
    checked_norm,
    conjugate,
    embedding_norm,
    lr_norm,
    norm_order,
)
from riata.row_norms import (
    shrinks as shrinks_in,
)
from riata.vectors import Vector
from riata.vectors import length as length_of

#: Dense rows are put on the grid so many entries at a time, which fit a processor's cache.
ENTRIES_AT_ONCE = 2**16

#: The squared bounds of all columns are about this many steps together, for the lengths of rows,
#: and each is rounded up by less than one. So many columns may have a bound of their own.
_WEIGHT_STEPS, _MOST_BOUNDS = 2**27, 2**29

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
        With any other norm, the largest norm of a row: one number.
    y : float, optional
        The largest |y|. Classifiers do not need it.
    norm : {"inf", "l2"} or float, default="inf"
        In which norm a row is bounded. A number r >= 1 is the lr norm: dual to the lq ball with
        1/q + 1/r = 1.
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
    norm: str | float = "inf"
    nonnegative: bool = False
    length: float | None = None
    nonzeros: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", checked_norm(self.norm))
        if not isinstance(self.nonnegative, bool):
            raise InvalidArgument(f"nonnegative={self.nonnegative!r} must be True or False.")
        if isinstance(self.x, tuple) and len(self.x) == 2:
            raise InvalidArgument(
                f"Bounds x={self.x!r} could be an interval, or the bounds of two columns. A bound "
                "is the largest absolute value: for numbers between 18 and 90 write x=90, or move "
                "them to their middle, or describe them in a schema. For two columns write a list: "
                f"x={list(self.x)!r}."
            )
        try:
            x = np.asarray(self.x, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"Bounds x must be a number or one number for each column, got "
                f"{type(self.x).__name__}."
            ) from None
        if x.ndim > 1 or (x.ndim == 1 and self.norm != "inf"):
            raise InvalidArgument(
                f"Bounds x has {x.ndim} dimensions with norm={self.norm!r}: a bound is one number, "
                'or with norm="inf" one number for each column.'
            )
        if x.size > _MOST_BOUNDS:
            raise InvalidArgument(
                f"Bounds x has {x.size:,} numbers, and {_MOST_BOUNDS:,} is the most. Pass one "
                "number for all columns."
            )
        x = np.array(x)
        for extreme in (x.min(initial=np.inf), x.max(initial=-np.inf)):
            check_scale("Bounds x", float(extreme), _PUBLIC)
        if self.y is not None:
            object.__setattr__(self, "y", check_scale("Bounds y", self.y, _PUBLIC))
        self._check_length()
        if self.length is not None:
            x = np.asarray(np.minimum(x, self.length))  # no entry is larger than its row is long
        x.flags.writeable = False
        object.__setattr__(self, "x", float(x) if x.ndim == 0 else x)

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: a copy is the same whatever was computed before."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """After a copy x is as fixed as before: identities of requests rest on it."""
        self.__dict__.update(state)
        if isinstance(self.x, np.ndarray):
            self.x.flags.writeable = False

    def _check_length(self) -> None:
        if self.norm != "inf" and not (self.length is None and self.nonzeros is None):
            raise InvalidArgument(
                f"With norm={self.norm!r} x is already the length of a row. To bound entries as "
                'well, pass Bounds(x=<largest entry>, length=<largest length>) with norm="inf".'
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

    @cached_property
    def max_length(self) -> float | None:
        """The largest Euclidean norm of a row, if one was promised."""
        if not isinstance(self.norm, str):
            return self.x if self.norm < 2 else None
        if self.norm == "l2" or self.nonzeros is None:
            return self.x if self.norm == "l2" else self.length
        # A little more than the root: so many entries at their bound are not too long.
        longest = math.sqrt(self.nonzeros) * (1 + 2.0**-50) * self.largest
        return min(longest, self.length or longest)

    @property
    def order(self) -> float:
        """The exponent of the norm in which a row is bounded."""
        return self.norm if not isinstance(self.norm, str) else {"l2": 2.0}.get(self.norm, math.inf)

    @property
    def _other(self) -> bool:
        """Whether rows are bounded in another norm than "inf" and "l2"."""
        return not isinstance(self.norm, str)

    @property
    def shortens(self) -> bool:
        """Whether a row may be shortened as a whole, and not only entry by entry."""
        return self._other or self.max_length is not None

    @property
    def favours_gradients(self) -> bool:
        """Whether rows are known to be short beside what their entries alone would allow."""
        in_one_entry = self.length is not None and self.largest >= self.length
        return self.order <= 2 or self.nonzeros is not None or in_one_entry

    def with_y(self, y: float) -> Bounds:
        return replace(self, y=y)

    def shortened(self, length: float) -> Bounds:
        """The same bounds of rows that are no longer than this either, in the Euclidean norm."""
        if self._other or (self.max_length or math.inf) <= length:
            return self
        length = min(max(length, SMALLEST_SCALE), LARGEST_SCALE)
        return replace(self, x=length) if self.norm == "l2" else replace(self, length=length)

    def check_size(self, n_features: int) -> None:
        """Raise unless rows of `n_features` columns can be put inside these bounds, exactly."""
        if np.ndim(self.x) == 1 and len(self.x) != n_features:
            raise InvalidArgument(
                f"Bounds x has {len(self.x)} entries and the data {n_features} columns: each "
                "column needs its own public bound. Pass one number for all, or one for each."
            )
        check_most_columns(self.norm, n_features)

    def per_column(self, n_features: int) -> np.ndarray:
        """The largest |x_j| of each column."""
        return np.broadcast_to(np.asarray(self.x, dtype=np.float64), (n_features,))

    @cached_property
    def largest(self) -> float:
        """The largest bound of a column."""
        return self.x if isinstance(self.x, float) else float(self.x.max())

    def of_columns(self, columns: np.ndarray | int) -> Any:
        """The largest |x_j| of these columns: one number if it is the same for all."""
        return self.x if isinstance(self.x, float) else self.x[columns]

    def reach(self, theta: Vector) -> float:
        """The largest |<x, theta>| over all rows x that keep the promise."""
        reach = float(np.sum(np.abs(theta.values) * self.of_columns(theta.support)))
        if self._other:
            length = lr_norm(theta.values, conjugate(self.order))
            return min(reach, float(self.x * length * ROUNDED_UP))
        longest = self.max_length
        return reach if longest is None else min(reach, longest * length_of(theta.values))

    def unit_length(self, columns: Any, size: int) -> float:
        """The largest length of a row on `size` columns, in units of their bounds."""
        if self._other and size:
            return embedding_norm(size, self.order, 2.0) * ROUNDED_UP
        if self.max_length is None or size == 0:
            return math.sqrt(size)
        return min(math.sqrt(size), self.max_length / float(np.min(self.of_columns(columns))))

    def row_norm(self, norm: str, n_features: int, columns: Any = slice(None)) -> float:
        """The largest length of a row, or of some columns of it, in "l1", "l2" or "linf"."""
        limits = np.array(self.per_column(n_features)[columns])
        if norm == "linf":
            return float(limits.max(initial=0.0))
        if self._other and len(limits):
            longest = embedding_norm(len(limits), self.order, norm_order(norm))
            return float(self.x * longest * ROUNDED_UP)
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
                if self.shortens:
                    units = sparse.csr_array(abs(rows) / self._longest)
                    lengths = units.power(self._power).sum(axis=1) ** (1 / self._power)
                    rows.data /= np.repeat(np.maximum(lengths, 1.0), np.diff(rows.indptr))
                return rows
            rows = self._clip_entries(np.ascontiguousarray(x), self.x)
            if self.shortens:
                units = np.abs(rows) / self._longest
                lengths = (units**self._power).sum(axis=1, keepdims=True) ** (1 / self._power)
                rows /= np.maximum(lengths, 1.0)
            return rows

    @property
    def _longest(self) -> float:
        """The largest norm of a row that is shortened as a whole, in the norm of `_power`."""
        return float(self.x if self._other else self.max_length or math.inf)

    @property
    def _power(self) -> float:
        return self.order if self._other else 2.0

    def grid_x(self, x: Any) -> Any:
        """The rows inside the bounds, in steps of a column's bound / `X_STEPS`: integers.

        Entries are rounded first. A row that is too long then is shortened, by a factor that
        follows from its integers: it is the same in every container.
        """
        if sparse.issparse(x):
            rows = canonical_rows(x)
            for _, few in pieces(rows):
                self._round_entries(few.data, self.of_columns(few.indices), few.data)
                shrinks = self._shrinks_of(few) if self.shortens else np.ones(1)
                if shrinks.min(initial=1.0) < 1:  # times 1, whole numbers are what they are
                    few.data *= np.repeat(shrinks, np.diff(few.indptr))
                    self._round_again(few.data)
            return rows
        steps = np.empty(x.shape)
        for few, rows in pieces(x, ENTRIES_AT_ONCE):
            self.grid_rows(rows, steps[few])
        return steps

    def grid_rows(self, x: np.ndarray, out: np.ndarray) -> np.ndarray:
        """A few dense rows on the grid, written to `out`."""
        self._round_entries(x, self.x, out)
        if self.shortens and ((shrinks := self._shrinks_of(out)) < 1).any():
            np.multiply(out, shrinks[:, None], out=out)  # times 1 nothing changes
            self._round_again(out)
        return out

    def shrinks(self, x: np.ndarray) -> np.ndarray | None:
        """What dense rows on the grid are multiplied by to be short enough, each; None for 1."""
        if not self.shortens:
            return None
        return self._shrinks_of(self._round_entries(x, self.x, np.empty(x.shape)))[:, None]

    def grid_entries(
        self, x: np.ndarray, shrinks: np.ndarray | None, limit: Any, out: np.ndarray
    ) -> np.ndarray:
        """Entries of some dense rows, or of some columns of them, on the grid, written to `out`.

        Parameters
        ----------
        shrinks : ndarray or None
            What `shrinks` says about the rows.
        limit : float or ndarray
            The bounds of the columns.
        """
        self._round_entries(x, limit, out)
        if shrinks is not None:
            np.multiply(out, shrinks, out=out)
            self._round_again(out)
        return out

    def _round_again(self, steps: np.ndarray) -> None:
        """Whole steps of shortened rows: towards 0 where `_shrinks_of` leaves no room for more."""
        (np.trunc if self._other else np.rint)(steps, out=steps)

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
        if self._other:
            return shrinks_in(rows, self.order)
        assert self.max_length is not None
        squares, most = self.squared_lengths(rows), X_STEPS * (self.max_length / self.largest)
        if not (squares > most**2).any():
            return np.ones(len(squares))
        if sparse.issparse(rows):
            entries = row_sums((rows.data != 0).astype(np.int64), rows.indptr)
        else:  # of those that are too long
            entries, too_long = np.zeros(len(rows)), squares > most**2
            entries[too_long] = np.count_nonzero(rows[too_long], axis=1)
        room = np.maximum(most * (1 - 2.0**-40) - np.sqrt(entries) / 2, 0.0)
        return np.where(squares > most**2, room / np.sqrt(np.maximum(squares, 1)), 1.0)

    def squared_lengths(self, rows: Any) -> np.ndarray:
        """The squared length of each row on the grid, or a little more, in the largest steps."""
        if isinstance(self.x, float):
            return squared_lengths(rows)
        weights, step = self._weights
        return np.asarray(squared_lengths(rows, weights) * step)

    @cached_property
    def _weights(self) -> tuple[np.ndarray, float]:
        """The squared bounds of the columns in whole steps, rounded up, and the step.

        The step follows from a sum of integers, which is the same on every machine.
        """
        squares = np.square(self.x / self.largest)
        whole = np.ceil(squares * _WEIGHT_STEPS).astype(np.int64)
        step = int(whole.sum()) / _WEIGHT_STEPS**2
        return np.ceil(squares / step).astype(np.int64), step

    def _clip_entries(self, entries: Any, limit: Any) -> np.ndarray:
        clipped = _clip(entries, limit)
        return np.maximum(clipped, 0.0, out=clipped) if self.nonnegative else clipped

    def clip_y(self, y: np.ndarray) -> np.ndarray:
        """A copy of the targets inside the bounds, without a sign of 0."""
        with np.errstate(all="ignore"):
            return _clip(y, np.float64(self.y if self.y is not None else 1.0)) + 0.0

    def __repr__(self) -> str:
        x = self.x if np.ndim(self.x) == 0 else f"<{len(self.x)} columns>"
        more = ", nonnegative=True" if self.nonnegative else ""
        more += "" if self.length is None else f", length={self.length:.6g}"
        more += "" if self.nonzeros is None else f", nonzeros={self.nonzeros}"
        return f"Bounds(x={x}, y={self.y}, norm={self.norm!r}{more})"


def _clip(values: Any, limit: Any) -> np.ndarray:
    """NaN to 0, everything else into [-limit, limit]; the same work whatever the values are."""
    values = np.asarray(values, dtype=np.float64)
    kept = np.where(np.isnan(values), 0.0, values)
    return np.clip(kept, -limit, limit, out=kept)
