"""What several classes ask together: one gradient, one line and one scale for all of them.

A row's slope is a vector of whole numbers with an entry for each class: minus the sum of the
others for its own class. That alone bounds its length, whatever the margins are. Proofs are in
docs/privacy/softmax.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.grid import ROUNDED_DOWN, X_STEPS, slices, slope_steps, transposed
from riata.losses import Weighted
from riata.losses.softmax import class_codes, in_order, softmax
from riata.queries.base import ProblemQuery
from riata.queries.block import Block, Reads
from riata.queries.coefficients import Coefficients
from riata.queries.columns import Scaling
from riata.queries.sizes import N_BINS, Sizes, bins_of
from riata.vectors import Vector

#: Slopes are computed for so many rows and classes at a time, to stay in the cache.
_ENTRIES_AT_ONCE = 2**15

#: Dense rows have about so many entries at a time.
_ROWS_ENTRIES = 2**17

#: The largest variance of numbers whose Euclidean length is 1, whatever their probabilities are.
_LARGEST_VARIANCE = 0.5


def some_at_a_time(block: Block) -> Iterator[tuple[slice, Any]]:
    """Dense rows, so few at a time that they stay in the cache; all sparse ones."""
    n, p = block.shape
    for few in slices(n, n or 1 if block.is_sparse else max(1, _ROWS_ENTRIES // max(p, 1))):
        yield few, block.some_rows(few)


@dataclass(frozen=True, eq=False)
class ClassModels:
    """A model for each class on the grid, in the order of the codes.

    Attributes
    ----------
    steps : ndarray of shape (n_features, n_classes)
        Whole numbers, whose sizes sum to at most 2^36 for each class.
    units, offsets : ndarray of shape (n_classes,)
    """

    steps: np.ndarray
    units: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, thetas: tuple[Vector, ...], bounds: Bounds) -> ClassModels:
        steps, units = np.zeros((thetas[0].size, len(thetas))), np.empty(len(thetas))
        for k, theta in enumerate(thetas):
            each = Coefficients.made_of(theta, bounds)
            steps[each.support, k], units[k] = each.steps, each.unit
        return cls(steps, units, np.array([theta.offset for theta in thetas]))

    def margins(self, block: Block) -> np.ndarray:
        """<x, theta> + offset for each row and each class: one matrix product."""
        margins = np.empty((len(self.units), block.shape[0])).T  # class by class, as they are added
        for few, rows in some_at_a_time(block):
            margins[few] = self.margins_of(rows)
        return margins

    def margins_of(self, rows: Any) -> np.ndarray:
        """The same for some rows on the grid."""
        with np.errstate(all="ignore"):  # a warning would tell of a row
            if sparse.issparse(rows):
                margins = np.asarray(rows @ self.steps)
            else:
                margins = np.dot(self.steps.T, rows.T).T
            margins *= self.units
            margins += self.offsets
        return margins

    def centred(self, margins: np.ndarray) -> np.ndarray:
        """Margins less their mean over the classes."""
        found: np.ndarray = margins - in_order(margins)[:, None] / margins.shape[1]
        return found


@dataclass(frozen=True, eq=False)
class OfClasses(ProblemQuery):
    """A query at a model for each class.

    Parameters
    ----------
    thetas : tuple of Vector
        In the order of the codes.
    """

    thetas: tuple[Vector, ...]

    reads: ClassVar[Reads] = Reads.ROWS

    @property
    def n_classes(self) -> int:
        return len(self.thetas)

    @cached_property
    def models(self) -> ClassModels:
        return ClassModels.of(self.thetas, self.bounds)

    @cached_property
    def slope_steps(self) -> int:
        """How many steps a slope of 1 has, or of the largest weight of a class."""
        return slope_steps(self.n_rows)

    @property
    def largest_weight(self) -> float:
        return self.loss.largest if isinstance(self.loss, Weighted) else 1.0

    def weights(self, y: np.ndarray) -> np.ndarray:
        """How much each row counts, as a part of the largest weight."""
        if not isinstance(self.loss, Weighted):
            return np.ones(len(y))
        return self.loss.of_rows(y) / self.loss.largest

    def chances(self, margins: np.ndarray) -> np.ndarray:
        """The probability of each class."""
        with np.errstate(all="ignore"):
            return softmax(margins)

    def slopes_of(self, chances: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The slope of each row in steps at these probabilities, a whole number for each class.

        0 for a row of no class. The entries of the other classes are not negative and add up to at
        most `slope_steps`; that of its own class is minus their sum. Written over `chances`.
        """
        slopes = self._unweighted(chances, y)
        if isinstance(self.loss, Weighted):
            slopes *= self.weights(y)[:, None]
            np.trunc(slopes, out=slopes)
        return slopes

    def few_rows(self, n_rows: int) -> list[slice]:
        """All rows, so few at a time that their margins stay in the cache."""
        return slices(n_rows, max(1, _ENTRIES_AT_ONCE // self.n_classes))

    def _unweighted(self, chances: np.ndarray, y: np.ndarray) -> np.ndarray:
        codes, known = class_codes(y, self.n_classes)
        own = (np.arange(len(y)), codes)
        with np.errstate(all="ignore"):
            chances *= self.slope_steps
            np.floor(chances, out=chances)
            chances[own] = 0.0
            total = in_order(chances)
            sound = known & (total <= self.slope_steps) & (chances.min(axis=1) >= 0)  # no NaN
            chances[own] = -total
            if not sound.all():
                chances[~sound] = 0.0
        return chances


@dataclass(frozen=True, eq=False)
class SoftmaxGradient(OfClasses):
    """The mean of slope (z, c)' for all classes, with z the centred, scaled and shortened row.

    Shortening a row is done to its slopes, which are rounded towards 0.

    Parameters
    ----------
    limit : float
        Slopes that are longer, over all classes and in units of the largest weight, are shortened
        to this.
    scaling : Scaling
    length : float
        Rows that are longer in the scaled space are shortened to this.
    constant : float
        The entry c that stands for the intercepts, or 0 for none.
    """

    limit: float
    scaling: Scaling
    length: float
    constant: float

    def shortened(self, found: np.ndarray, y: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """The slopes in steps, in the place of margins; less for slopes that are too long.

        `shorter` is what the rows are multiplied by.
        """
        for few in self.few_rows(len(found)):
            slopes = self.slopes_of(self.chances(found[few]), y[few])
            sizes = np.sqrt(np.einsum("ij,ij->i", slopes, slopes))  # exact in any order
            with np.errstate(divide="ignore"):
                cut = np.minimum(1.0, self.limit * self.slope_steps * ROUNDED_DOWN / sizes)
            slopes *= (shorter[few] * cut)[:, None]
            found[few] = np.trunc(slopes, out=slopes)
        return found

    def block_sum(self, block: Block) -> np.ndarray:
        def sums(few: Block) -> np.ndarray:
            shorter = self.scaling.shortening(few, self.length)
            found = np.zeros((few.shape[1] + 1, self.n_classes))
            for some, rows in some_at_a_time(few):
                slopes = self.shortened(self.models.margins_of(rows), few.y[some], shorter[some])
                found[:-1] += transposed(rows) @ slopes
                found[-1] += slopes.sum(axis=0)
            return found

        found = block.in_pieces(sums)
        whole, totals = found[self.scaling.columns].astype(np.int64), found[-1].astype(np.int64)
        centred = whole - self.scaling.centre_steps[:, None] * totals
        return (np.vstack([centred, totals]) if self.constant else centred).T.ravel()

    @property
    def width(self) -> int:
        """The number of coefficients of each class, the intercept's included."""
        return len(self.scaling.columns) + bool(self.constant)

    @cached_property
    def unit(self) -> Any:
        step = self.largest_weight / self.slope_steps / self.n_rows
        each = self.scaling.scales * (step / X_STEPS)
        return np.tile(np.append(each, self.constant * step) if self.constant else each,
                       self.n_classes)  # fmt: skip

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """One line for each class, the intercept's entry last."""
        return super().from_total(total).reshape(self.n_classes, self.width)

    def row_bound(self, norm: str) -> float:
        slope = self.largest_weight * min(self.limit, math.sqrt(2.0))
        stretched = math.sqrt(self.n_classes * self.width) if norm == "l1" else 1.0
        return slope * math.hypot(self.length, self.constant) * stretched


@dataclass(frozen=True, eq=False)
class Influence:
    """How far a row moved the margin of its own class by being in the fit, about.

    It is taken out again before a line is fitted to margins of the same rows, which would
    otherwise look better than those of other rows.

    Parameters
    ----------
    scaling : Scaling
    length : float
        Rows count as no longer than this in the scaled space.
    factors : ndarray of shape (n_classes,)
        Times the squared length of the scaled row.
    """

    scaling: Scaling
    length: float
    factors: np.ndarray

    def of(self, block: Block, codes: np.ndarray) -> np.ndarray:
        lengths = self.scaling.lengths(block) * (self.scaling.step / X_STEPS)
        found: np.ndarray = self.factors[codes] * np.square(np.minimum(lengths, self.length))
        return found


@dataclass(frozen=True, eq=False)
class SoftmaxLine(OfClasses):
    """The gradient of the log-loss in one scale and in an offset for each class, and a curvature.

    With z the margins of a row less their mean, without the row's influence, over `cut` and
    shortened to a length of 1, it is taken at the margins ``scale * z + offsets``. The last number
    is the second derivative in the scale. Derivatives in offsets are summed at half their size, so
    they have twice the noise and the scale has less.

    Parameters
    ----------
    influence : Influence
    cut : float
        Public, positive.
    scale : float
    offsets : ndarray of shape (n_classes,)
    """

    influence: Influence
    cut: float
    scale: float
    offsets: np.ndarray

    def places(self, block: Block) -> np.ndarray:
        """z in steps: whole numbers, of which a row has a length of at most `X_STEPS`."""
        margins = self.models.margins(block)
        codes, known = class_codes(block.y, self.n_classes)
        with np.errstate(all="ignore"):
            taken = np.where(known, self.influence.of(block, codes), 0.0)
            margins[np.arange(len(codes)), codes] -= taken
            z = self.models.centred(margins)
            lengths = np.sqrt(in_order(np.square(z)))
            z = np.trunc(z * (X_STEPS * ROUNDED_DOWN / np.maximum(lengths, self.cut))[:, None])
            short = np.square(z).sum(axis=1) <= X_STEPS**2  # False for NaN
        return np.where(short[:, None], z, 0.0)

    def block_sum(self, block: Block) -> np.ndarray:
        def make(rows: Any) -> np.ndarray:
            return self.places(block).astype(np.float32)  # which has these whole numbers

        # All steps along a line ask for the same.
        asked = (type(self), *self.thetas, self.influence, self.cut)
        places = block.once("places", asked, make)
        total = np.zeros(self.n_classes + 2, dtype=np.int64)
        for few in self.few_rows(len(places)):
            z, y = places[few].astype(np.float64), block.y[few]
            at = z * (self.scale / X_STEPS) + self.offsets
            chances = self.chances(at)
            bend = np.floor(self._variances(chances, z) * self.slope_steps * self.weights(y))
            slopes = self.slopes_of(chances, y)
            of_scale = (slopes * z).sum(axis=1)
            numbers = np.column_stack([of_scale, slopes, 2 * bend])
            total += numbers.astype(np.int64).sum(axis=0)
        total[1:] *= X_STEPS // 2
        return total

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The derivative in the scale, those in the offsets, and the curvature."""
        found = super().from_total(total)
        return np.concatenate([found[:1], 2 * found[1:-1], found[-1:]])

    @staticmethod
    def _variances(chances: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The variance of z under some probabilities."""
        with np.errstate(all="ignore"):
            z = z / X_STEPS
            found = in_order(chances * z * z) - np.square(in_order(chances * z))
            return np.fmax(np.fmin(found, _LARGEST_VARIANCE), 0.0)

    @property
    def unit(self) -> Any:
        return self.largest_weight / (self.slope_steps * X_STEPS) / self.n_rows

    def row_bound(self, norm: str) -> float:
        largest = {
            "l1": math.sqrt(2.0) + 1.0 + _LARGEST_VARIANCE,
            "l2": math.sqrt(2.5 + _LARGEST_VARIANCE**2),
            "linf": math.sqrt(2.0),
        }
        return self.largest_weight * largest[norm]


@dataclass(frozen=True, eq=False)
class MarginLengths(Sizes):
    """The lengths of the rows' margins less their mean over the classes."""

    thetas: tuple[Vector, ...]

    reads: ClassVar[Reads] = Reads.ROWS

    @cached_property
    def models(self) -> ClassModels:
        return ClassModels.of(self.thetas, self.bounds)

    @property
    def top(self) -> float:
        reaches = [self.bounds.reach(theta) + abs(theta.offset) for theta in self.thetas]
        return math.hypot(*reaches) or 1.0

    def block_sum(self, block: Block) -> np.ndarray:
        with np.errstate(all="ignore"):
            z = self.models.centred(self.models.margins(block))
            steps = np.ceil(np.sqrt(in_order(np.square(z))) * (X_STEPS / self.top))
        found = bins_of(np.fmin(steps, X_STEPS))  # NaN counts as the largest
        return np.bincount(found, minlength=N_BINS).astype(np.float64)
