"""Rows in whitened coordinates: their joint second moments with the slopes, and clipped gradients.

A whitening is public: it was made of earlier releases, and lies on integer grids, so that a row in
the new coordinates is a vector of integers that depends on the row alone. Proofs are in
docs/privacy/whitened_gradient.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from riata.errors import InvalidArgument
from riata.grid import (
    ROUNDED_DOWN,
    THETA_STEPS,
    X_STEPS,
    coefficient_step,
    slices,
    to_steps,
)
from riata.queries.block import Block, Reads
from riata.queries.moments import symmetric_matrix
from riata.queries.support import LimitedSlope

#: So many coordinates at most: then squared lengths of rows are exact.
MOST_COORDINATES = 2**10

#: An entry in moments is a whole number of steps before its row is shortened, at most this many.
MOST_BEFORE = 2**21

#: The centre of a coordinate, in its steps, is at most this large.
_MOST_CENTRE = 2.0**52

#: Dense copies of rows have about this many entries at a time, to stay in the cache.
_ENTRIES_AT_ONCE = 2**17

#: Lengths and scales lie in this range: products of them are ordinary numbers.
_SMALLEST, _LARGEST = 1e-70, 1e70

#: No step of a whitening is larger: a row in whitened coordinates is then a finite number of the
#: steps of every length above. Nor is an entry of a matrix that a whitening is made of.
_LARGEST_STEP = 1e100


@dataclass(frozen=True, eq=False)
class Whitening:
    """A public affine map of rows, on integer grids: u = matrix @ x - centre.

    Rows x are in units of their columns' bounds.

    Parameters
    ----------
    weights : ndarray of shape (n_coordinates, n_features)
        Whole numbers. The sizes in a row sum to at most 2^36.
    centres : ndarray of shape (n_coordinates,)
        Whole numbers of at most 2^52.
    steps : ndarray of shape (n_coordinates,)
        What a weight of 1 stands for, for each coordinate: positive, at most 1e100.
    """

    weights: np.ndarray
    centres: np.ndarray
    steps: np.ndarray

    def __post_init__(self) -> None:
        for name in ("weights", "centres", "steps"):  # copies, that nobody can change later
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=np.float64))
        self._freeze()
        weights, centres, steps = self.weights, self.centres, self.steps
        whole = bool((np.rint(weights) == weights).all() and (np.rint(centres) == centres).all())
        if not whole or len(weights) != len(centres) or len(weights) != len(steps):
            raise InvalidArgument("A whitening has whole numbers for each coordinate.")
        if len(weights) > MOST_COORDINATES or (np.abs(centres) > _MOST_CENTRE).any():
            raise InvalidArgument("A whitening has too many coordinates, or a centre is too large.")
        if (np.abs(weights).sum(axis=1) > 2 * THETA_STEPS).any():
            raise InvalidArgument("The weights of a whitening are too large for exact sums.")
        if not bool(((steps > 0) & (steps <= _LARGEST_STEP)).all()):
            raise InvalidArgument(
                f"The steps of a whitening must be positive, and at most {_LARGEST_STEP:g}: a row "
                "would not be finite in larger ones. Use smaller entries."
            )

    def _freeze(self) -> None:
        for array in (self.weights, self.centres, self.steps):
            array.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """After a copy the arrays are as fixed as before: whitened rows are kept for it."""
        self.__dict__.update(state)
        self._freeze()

    @classmethod
    def of(cls, matrix: np.ndarray, centre: np.ndarray) -> Whitening:
        """The map that is as near as the grids allow, for any finite numbers."""
        matrix = np.clip(matrix, -_LARGEST_STEP, _LARGEST_STEP)
        steps = coefficient_step(np.abs(matrix).sum(axis=1))
        with np.errstate(over="ignore"):  # of a centre that is far away in small steps
            centres = np.clip(np.rint(centre / steps * X_STEPS), -_MOST_CENTRE, _MOST_CENTRE)
        return cls(np.rint(matrix / steps[:, None]), centres, steps)

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return len(self.steps)

    @cached_property
    def _scales_columns(self) -> bool:
        """Whether each coordinate is a multiple of its own column."""
        n, p = self.weights.shape
        return n == p and np.count_nonzero(self.weights) == np.count_nonzero(
            self.weights.diagonal()
        )

    @property
    def matrix(self) -> np.ndarray:
        return self.weights * self.steps[:, None]

    @property
    def centre(self) -> np.ndarray:
        return self.centres * (self.steps / X_STEPS)

    def rows(
        self, block: Block, step: float, most: int, beside: int = 0
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Rows on the grid in the new coordinates, a few at a time, and which rows these are.

        In whole steps, at most `most` in size. Each number depends on its row alone. There is room
        for some more numbers `beside` them.
        """
        n, p = block.shape
        several = max(1, _ENTRIES_AT_ONCE // max(p, self.size + beside))
        factors = (self.steps / (X_STEPS * step))[:, None]
        reach = X_STEPS * np.abs(self.weights).sum(axis=1) + np.abs(self.centres)
        inside = bool((reach[:, None] * factors <= most).all())
        diagonal = self.weights.diagonal()[:, None]
        for few in slices(n, several):
            rows = block.some_rows(few)
            # Coordinate by coordinate: what is done to each of them has long loops.
            whole = np.zeros((self.size + beside, rows.shape[0]))
            u = whole[: self.size]
            if block.is_sparse:
                u[...] = (rows @ self.weights.T).T
            elif self._scales_columns:
                np.multiply(rows.T, diagonal, out=u)
            else:
                np.dot(self.weights, rows.T, out=u)
            u -= self.centres[:, None]  # exact: both sides are integers, and so is the difference
            with np.errstate(under="ignore"):  # a warning would tell of a row
                u *= factors
            np.rint(u, out=u)
            if not inside:
                np.clip(u, -most, most, out=u)
            yield few, whole.T

    def kept_rows(
        self, block: Block, step: float, most: int
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """The same, and their squared lengths. Those of dense rows are computed once."""
        if block.is_sparse:
            for few, u in self.rows(block, step, most):
                yield few, u, np.einsum("ij,ij->i", u, u)
            return
        assert most < 2**24  # float32 has these whole numbers

        def make(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            kept, squares = np.empty((len(x), self.size), np.float32), np.empty(len(x))
            for few, u in self.rows(block, step, most):
                kept[few], squares[few] = u, np.einsum("ij,ij->i", u, u)
            return kept, squares

        kept, squares = block.once("whitened", (self, step, most), make)
        for few in slices(len(kept), max(1, _ENTRIES_AT_ONCE // self.size)):
            yield few, kept[few].astype(np.float64), squares[few]


def check_sizes(length: float, constant: float, scale: float) -> None:
    """Raise unless sums over rows of these sizes are exact."""
    ordinary = all(_SMALLEST <= size <= _LARGEST for size in (length, scale))
    if not (ordinary and 0 <= constant <= length):
        raise InvalidArgument(
            f"Lengths and scales must lie between {_SMALLEST:g} and {_LARGEST:g}, and the constant "
            f"be no larger than the length: got {length!r}, {scale!r} and {constant!r}. Sums are "
            "exact for such rows alone."
        )


def counted_cells(width: int) -> np.ndarray:
    """How often each cell of the upper triangle of a symmetric matrix counts, row by row."""
    row, column = np.triu_indices(width)
    return np.where(row == column, 1.0, math.sqrt(2))


@dataclass(frozen=True, eq=False)
class JointMoments(LimitedSlope):
    """The mean of h h', with h = (u, slope / scale), shortened, and a constant beside it.

    The sum is the upper triangle of the matrix, row by row. Off the diagonal a cell counts
    sqrt(2) times, for the two places that it stands for: so the noise is as short as it can be.

    Parameters
    ----------
    limit : float
        Where slopes are clipped.
    whitening : Whitening
    scale : float
        The unit of slopes.
    length : float
        Rows (u, slope / scale) that are longer are shortened to this.
    constant : float
        The entry that stands for the intercept, at most the length, or 0 for none.
    """

    whitening: Whitening
    scale: float
    length: float
    constant: float

    reads: ClassVar[Reads] = Reads.ROWS

    nonnegative_inner: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_sizes(self.length, self.constant, self.scale)

    @property
    def step(self) -> float:
        """What a step of an entry is."""
        return self.length / X_STEPS

    @property
    def width(self) -> int:
        """The number of entries of h."""
        return self.whitening.size + 1 + bool(self.constant)

    def rows(self, block: Block) -> Iterator[np.ndarray]:
        """The rows h in steps, a few at a time: whole numbers."""
        most = self.scale * self.step * MOST_BEFORE / self.slope_unit
        slopes = to_steps(self.slopes(block), most, MOST_BEFORE)
        q, beside = self.whitening.size, self.width - self.whitening.size
        for few, h in self.whitening.rows(block, self.step, MOST_BEFORE, beside):
            h[:, q] = slopes[few]
            squares = np.einsum("ij,ij->i", h, h)
            with np.errstate(divide="ignore"):
                h *= np.minimum(1.0, X_STEPS * ROUNDED_DOWN / np.sqrt(squares))[:, None]
            np.trunc(h, out=h)
            if self.constant:
                h[:, q + 1] = math.floor(self.constant / self.step)
            yield h

    def block_sum(self, block: Block) -> np.ndarray:
        total = np.zeros((self.width, self.width))
        for h in self.rows(block):
            total += h.T @ h
        return total[np.triu_indices(self.width)]

    @cached_property
    def unit(self) -> Any:
        return counted_cells(self.width) * (self.step**2 / self.n_rows)

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The matrix of means."""
        return symmetric_matrix(total * (self.step**2 / self.n_rows), self.width)

    def row_bound(self, norm: str) -> float:
        square = self.length**2 + self.constant**2
        return square * self.width if norm == "l1" else square


class WhitenedRows:
    """What rows (u, constant) have, whose coordinates u are clipped at `reach`."""

    whitening: Whitening
    reach: float
    constant: float

    @property
    def step(self) -> float:
        """What a step of an entry is."""
        return self.reach / X_STEPS

    @property
    def width(self) -> int:
        """The number of entries, the constant included."""
        return self.whitening.size + bool(self.constant)


@dataclass(frozen=True, eq=False)
class PreconditionedGradient(WhitenedRows, LimitedSlope):
    """The mean of slope * (u, constant), with each row's summand shortened to a public length.

    Shortening is done to the slope, which is rounded towards 0: what is summed stays a whole number
    times whole numbers. A slope of log odds is shortened as much as that of the row's other label
    would be, so that the mean is still 0 at the true model: a slope that was cut only where it is
    large would move the model away from 0.

    Parameters
    ----------
    limit : float
        Where slopes are clipped.
    whitening : Whitening
    reach : float
        Coordinates of u that are larger count as this.
    constant : float
        The entry that stands for the intercept, at most the reach, or 0 for none.
    clip : float
        The largest length of a summand.
    """

    whitening: Whitening
    reach: float
    constant: float
    clip: float

    reads: ClassVar[Reads] = Reads.ROWS

    def __post_init__(self) -> None:
        check_sizes(self.reach, self.constant, self.clip)

    def block_sum(self, block: Block) -> np.ndarray:
        total, beside = np.zeros(self.width), math.floor(self.constant / self.step)
        for kept, u in self.kept_slopes(block):
            total[: self.whitening.size] += kept @ u
            if self.constant:
                total[-1] += beside * kept.sum()
        return total

    def kept_slopes(self, block: Block) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """What is left of the slopes, and the rows, a few at a time: whole numbers."""
        slopes, largest = self.slopes(block), self.largest_slopes(block)
        beside = math.floor(self.constant / self.step)
        allowed = self.clip * ROUNDED_DOWN / (self.slope_unit * self.step)
        for few, u, squares in self.whitening.kept_rows(block, self.step, X_STEPS):
            lengths = np.sqrt(squares + float(beside) ** 2)
            with np.errstate(divide="ignore"):
                most = np.floor(np.minimum(allowed / lengths, self.slope_steps))
            kept = slopes[few]
            if largest is not None:
                kept = np.trunc(kept * np.minimum(1.0, most / largest[few]))
            yield np.clip(kept, -most, most), u

    def largest_slopes(self, block: Block) -> np.ndarray | None:
        """How large each row's slope could be with another label, in steps; None of numbers."""
        if not (self.loss.classifies and self.loss.innermost.link == "logit"):
            return None
        margins = self.margins(block)
        found = np.ones(len(margins))
        for label in self.loss.class_targets():
            slopes = self.slopes_at(margins, np.full(len(margins), label))
            found = np.maximum(found, np.abs(slopes))
        return found

    @property
    def unit(self) -> Any:
        return self.slope_unit * self.step / self.n_rows

    def row_bound(self, norm: str) -> float:
        return self.clip * (math.sqrt(self.width) if norm == "l1" else 1.0)


@dataclass(frozen=True, eq=False)
class GradientMoments(PreconditionedGradient):
    """The mean of g g', with g the clipped summand of a preconditioned gradient.

    It is what varies from row to row in that gradient, and so what the errors of a model are made
    of that the loss does not tell: the inner part of a sandwich.
    """

    nonnegative_inner: ClassVar[bool] = True

    def block_sum(self, block: Block) -> np.ndarray:
        q, total = self.whitening.size, np.zeros((self.width, self.width))
        with np.errstate(over="ignore"):  # where it is not needed: no summand is a step long
            factor = min(self.slope_unit * self.step / self.clip * X_STEPS, float(X_STEPS))
        for kept, u in self.kept_slopes(block):
            g = np.empty((len(u), self.width))
            g[:, :q] = u
            g[:, q:] = math.floor(self.constant / self.step)
            g *= kept[:, None]
            g *= factor
            np.trunc(g, out=g)
            total += g.T @ g
        return total[np.triu_indices(self.width)]

    @cached_property
    def unit(self) -> Any:
        return counted_cells(self.width) * ((self.clip / X_STEPS) ** 2 / self.n_rows)

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The matrix of means."""
        return symmetric_matrix(total * ((self.clip / X_STEPS) ** 2 / self.n_rows), self.width)

    def row_bound(self, norm: str) -> float:
        return self.clip**2 * (self.width if norm == "l1" else 1.0)
