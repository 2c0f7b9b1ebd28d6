"""A model on the grid: the integers that inner products with rows are made of.

What a query makes of a row depends on the row and on these integers alone: not on how the model
came about, nor on the engine, the container or the order in which a sum is taken. Proofs are in
docs/privacy/exact_sums.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from riata.bounds import Bounds
from riata.grid import X_STEPS, coefficient_step
from riata.vectors import Vector, product

#: Whole weights, in units of the largest bound of a column, are rounded to this part of one ...
WEIGHT_STEP = 2.0**-12

#: ... while their sizes add up to no more than this: then all inner products are exact.
MOST_WEIGHT = 2**24


@dataclass(frozen=True, eq=False)
class Coefficients:
    """theta times the bounds of its columns, as whole numbers of a step."""

    support: np.ndarray
    steps: np.ndarray  # whole numbers, whose sizes sum to at most 2^36
    unit: float  # what one step of a coefficient times one step of an entry adds to a margin
    longest: float = math.inf  # the largest margin of a row that is no longer than it may be

    @classmethod
    def of(cls, theta: Vector, bounds: Bounds) -> Coefficients:
        """theta on the grid: the same object as long as theta is there, as several queries ask."""
        known = _KNOWN.get(theta)
        if known is None or known[0] is not bounds:
            _KNOWN[theta] = known = bounds, cls.made_of(theta, bounds)
        return known[1]

    @classmethod
    def made_of(cls, theta: Vector, bounds: Bounds) -> Coefficients:
        """The same, and not kept."""
        longest = bounds.reach(theta) if bounds.shortens else math.inf
        with np.errstate(all="ignore"):  # of a model that is no model
            limits = bounds.of_columns(theta.support)
            relative = limits / bounds.largest if np.ndim(limits) else 1.0
            weights = theta.weights * relative
            total = float(np.abs(weights).sum())
            whole = theta.weight_unit is not None and total <= MOST_WEIGHT
            step = WEIGHT_STEP if whole else float(coefficient_step(total))
            unit = theta.scale * bounds.largest * (step / X_STEPS)
            return cls(theta.support, np.rint(weights / step), unit, longest)

    @cached_property
    def reach(self) -> float:
        """The largest size of an inner product, over rows with entries inside the bounds."""
        return float(np.abs(self.steps).sum()) * (self.unit * X_STEPS)

    def inner(self, x: Any) -> np.ndarray:
        """<x, theta> for rows on the grid."""
        return self.in_units(self.steps_of(x))

    def in_units(self, steps: np.ndarray) -> np.ndarray:
        """Inner products, from whole numbers of units: also of a model that overflows."""
        with np.errstate(all="ignore"):  # a warning would tell of a row
            return steps * self.unit

    def steps_of(self, x: Any) -> np.ndarray:
        """The same in whole units, exactly."""
        if not len(self.support):
            return np.zeros(x.shape[0])
        with np.errstate(all="ignore"):  # a warning would tell of a row
            return product(x, self.support, self.steps)


_KNOWN: WeakKeyDictionary[Vector, tuple[Bounds, Coefficients]] = WeakKeyDictionary()
