"""Numbers: a straight line, or a curve that is linear or constant between public points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from riata.data.columns import Column
from riata.data.schema.features import Cell, Feature, Nonzeros, ones

#: The most knots or bins of a number that a schema asks for by their number.
MOST_PIECES = 1000

#: Automatic points are rounded to this part of the distance between the bounds.
_ROUNDED = 1e-3


@dataclass(frozen=True)
class Number(Feature):
    """A number: clipped into `bounds`, moved by `center` and divided by the reach around it.

    Missing and unreadable numbers count as the centre, which becomes 0.

    With `knots` it becomes a column for each of them, whose entries fall linearly from 1 at the
    knot to 0 at its neighbours: any function that is linear between knots is a linear model of
    them. With `bins`, the points between them, it becomes a one-hot encoding.

    Parameters
    ----------
    knots : tuple of float, optional
        In order. Empty for a straight line. If neither these nor `bins` are given, a fit decides
        from public facts, and until then it is a line.
    bins : tuple of float
        In order, inside the bounds.
    """

    bounds: tuple[float, float]
    center: float
    knots: tuple[float, ...] | None = None
    bins: tuple[float, ...] = ()

    kind = "number"

    @property
    def automatic(self) -> bool:
        """Whether a fit decides how many knots there are."""
        return self.knots is None and not self.bins

    @property
    def names(self) -> list[str]:
        if self.knots:
            return [f"{self.name} near {_number_in_name(knot)}" for knot in self.knots]
        if not self.bins:
            return [self.name]
        edges = [_number_in_name(edge) for edge in (self.bounds[0], *self.bins, self.bounds[1])]
        closed = [")"] * len(self.bins) + ["]"]
        ends = zip(edges, edges[1:], closed, strict=False)
        return [f"{self.name} in [{low}, {high}{end}" for low, high, end in ends]

    @property
    def n_columns(self) -> int:
        return len(self.bins) + 1 if self.bins else len(self.knots or (0,))

    @property
    def nonnegative(self) -> bool:
        return bool(self.knots or self.bins) or self.center == self.bounds[0]

    @property
    def likely_entries(self) -> int:
        return 2 if self.knots else 1

    @property
    def reach(self) -> float:
        """The largest distance of a number from the centre."""
        return max(self.bounds[1] - self.center, self.center - self.bounds[0])

    @property
    def line(self) -> bool:
        """Whether it is one column, and not a curve."""
        return not self.knots and not self.bins

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.line:
            return super().units
        return np.array([self.reach]), np.array([self.center])

    @property
    def meanings(self) -> tuple[str, ...]:
        if self.line:
            return ("of a number, the change for one unit of the column in the file",)
        where, points = ("at a knot (near)", "knots") if self.knots else ("of a bin", "bins")
        return (f"{where}, the height of the curve there: compare two {points} by the difference",)

    def scaled(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers on the scale of lines, for which they are inside the bounds."""
        return numbers

    def encode(self, column: Column) -> Nonzeros:
        if self.line:
            return self._line(column)
        numbers = np.clip(column.numbers(), *self.bounds)
        numbers = np.where(np.isnan(numbers), self.center, numbers)
        if self.bins:
            return ones(np.searchsorted(np.array(self.bins), numbers, side="right"))
        return _hats(self.scaled(numbers), self.scaled(np.array(self.knots)))

    def _line(self, column: Column) -> Nonzeros:
        scaled = np.clip(column.numbers(), *self.bounds)
        scaled -= self.center
        scaled[np.isnan(scaled)] = 0.0
        scaled /= self.reach
        return _entries(np.clip(scaled, -1.0, 1.0, out=scaled))

    def cells(self, column: Column) -> np.ndarray:
        numbers = column.numbers()
        outside = (numbers < self.bounds[0]) | (numbers > self.bounds[1])
        found: np.ndarray = np.where(
            np.isnan(numbers), Cell.MISSING, np.where(outside, Cell.OUTSIDE, Cell.GOOD)
        )
        return found

    def points(self, number: int) -> tuple[float, ...]:
        """So many points from one bound to the other, or nearly so many.

        Where 0 is inside the bounds, or no farther from them than half of their distance, points
        are closer to each other near 0, as sizes usually are; otherwise they are equally far from
        each other.
        """
        low, high = self.bounds
        width, zero = high - low, min(max(0.0, low), high)
        unit = 10.0 ** math.floor(math.log10(width * _ROUNDED))
        if abs(zero) > width / 2:
            return _rounded(np.linspace(low, high, number), self.bounds, unit)
        root = math.sqrt((zero - low) / width), math.sqrt((high - zero) / width)
        steps = np.linspace(-root[0], root[1], number)
        return _rounded(zero + width * np.sign(steps) * np.square(steps), self.bounds, unit)

    def lines(self) -> list[tuple[str, Any, str]]:
        low, high = self.bounds
        middle = ", the middle" if self.center == (low + high) / 2 else ""
        return [
            ("bounds", list(self.bounds), "values outside are clipped"),
            ("center", self.center, f"missing values count as this{middle}"),
            *self._pieces(),
        ]

    def _pieces(self) -> list[tuple[str, Any, str]]:
        if self.bins:
            return [("bins", list(self.bins), "a column for each bin between these")]
        if self.automatic:
            return []
        meaning = "its effect is linear between these" if self.knots else "a straight line"
        return [("knots", list(self.knots or ()) or 0, meaning)]


@dataclass(frozen=True)
class Count(Number):
    """A count from 0 to a public bound, on the scale of log(1 + count), over its largest value.

    Missing and unreadable counts count as 0.
    """

    kind = "count"

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        scales, centres = super().units
        return (
            scales * (math.log1p(self.bounds[1]) / self.reach) if self.line else scales
        ), centres

    @property
    def meanings(self) -> tuple[str, ...]:
        if not self.line:
            return super().meanings
        return ("of a count, the change for 1 more of log(1 + count), natural logarithm",)

    def scaled(self, numbers: np.ndarray) -> np.ndarray:
        """As for texts, logarithms come from `math`: they must not depend on other rows."""
        seen, places = np.unique(numbers, return_inverse=True)
        return np.array([math.log1p(number) for number in seen])[places.reshape(-1)]

    def _line(self, column: Column) -> Nonzeros:
        numbers = np.clip(column.numbers(), *self.bounds)
        numbers = np.where(np.isnan(numbers), 0.0, numbers)
        return _entries(np.clip(self.scaled(numbers) / math.log1p(self.bounds[1]), 0.0, 1.0))

    def points(self, number: int) -> tuple[float, ...]:
        """Equally far from each other on the logarithmic scale."""
        scaled = np.linspace(0.0, math.log1p(self.bounds[1]), number)
        return _rounded(np.expm1(scaled), self.bounds, 1.0)

    def lines(self) -> list[tuple[str, Any, str]]:
        meaning = "larger counts count as this; log(1 + count) is over its value here"
        return [("most", self.bounds[1], meaning), *self._pieces()]


def _entries(values: np.ndarray) -> Nonzeros:
    """One column of numbers."""
    rows = np.flatnonzero(values)
    return Nonzeros(rows, np.zeros_like(rows), values[rows])


def _hats(numbers: np.ndarray, knots: np.ndarray) -> Nonzeros:
    """Two entries a row: how near it is to the knots on both sides. They sum to 1.

    The knots are different numbers, as a schema checks on this scale.
    """
    left = np.clip(np.searchsorted(knots, numbers, side="right") - 1, 0, len(knots) - 2)
    with np.errstate(all="ignore"):  # a warning would tell of a row
        part = np.clip((numbers - knots[left]) / (knots[left + 1] - knots[left]), 0.0, 1.0)
    rows = np.tile(np.arange(len(numbers)), 2)
    values = np.concatenate([1.0 - part, part])
    kept = np.flatnonzero(values)
    return Nonzeros(rows[kept], np.concatenate([left, left + 1])[kept], values[kept])


def _rounded(points: np.ndarray, bounds: tuple[float, float], unit: float) -> tuple[float, ...]:
    """Points from one bound to the other, in whole units if they stay different then."""
    whole = [float(f"{round(point / unit) * unit:.12g}") for point in points.tolist()]
    found: list[float] = []
    for each in (whole, points.tolist()):
        inner = {point for point in each[1:-1] if bounds[0] < point < bounds[1]}
        found = [bounds[0], *sorted(inner), bounds[1]]
        if len(found) == len(points):
            break
    return tuple(found)


def _number_in_name(number: float) -> str:
    """A number in the name of a column: different numbers have different names."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def in_order(points: Sequence[float]) -> bool:
    """Whether each is larger than the one before."""
    return all(a < b for a, b in pairwise(points))
