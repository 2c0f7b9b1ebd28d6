from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.logistic import LARGEST_LOG_ODDS
from riata.losses.logistic_function import logistic, softplus
from riata.losses.nuisance import NuisanceLoss

#: Thresholds are at least so far apart, and move at most so far at a time. The first is a twentieth
#: of a standard deviation of the logistic distribution of 1.8: no class is as narrow.
LEAST_GAP, LONGEST_STEP = 0.1, 2.0


@dataclass(frozen=True)
class OrderedLogistic(NuisanceLoss):
    """The log-loss of ordered classes with proportional odds.

    The log-odds of a class above class k are ``margin - thresholds[k]``. A row whose code is none
    of 0, ..., `n_classes` - 1 has the loss 0.

    Parameters
    ----------
    n_classes : int
    thresholds : tuple of float, optional
        Increasing, one less than classes. Those of classes that are equally likely if left out.

    References
    ----------
    McCullagh (1980). Regression models for ordinal data.
    """

    n_classes: int
    thresholds: tuple[float, ...] | None = None

    name = "ordered logistic"
    link = "logit"
    twice_differentiable = True
    n_parts = 5
    longest_parts = math.sqrt(2.0)

    def __post_init__(self) -> None:
        if isinstance(self.n_classes, bool) or self.n_classes < 2:
            raise InvalidArgument(f"n_classes={self.n_classes!r} must be at least 2.")
        if self.thresholds is None:
            shares = np.arange(1, self.n_classes) / self.n_classes
            object.__setattr__(self, "thresholds", _public(np.log(shares / (1 - shares))))
        given = np.asarray(self.thresholds, dtype=np.float64)
        if given.shape != (self.n_classes - 1,) or not (
            np.isfinite(given).all() and (np.diff(given) > 0).all()
        ):
            raise InvalidArgument(
                f"thresholds={self.thresholds!r} must be {self.n_classes - 1} increasing numbers, "
                "one between each class and the next."
            )

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The threshold below and the one above each class."""
        inner = np.asarray(self.thresholds)
        return np.concatenate([[-np.inf], inner]), np.concatenate([inner, [np.inf]])

    @cached_property
    def _widths(self) -> np.ndarray:
        """What the logarithm of the likelihood has beside those of two odds, for each class."""
        below, above = self._ends
        return -np.log1p(-np.exp(below - above))

    def _codes(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cells = self.cells(y)
        return np.maximum(cells, 0).astype(np.intp), cells >= 0

    def _tails(self, margin: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities of a class above and below that of the row; 0 for rows of none."""
        codes, known = self._codes(y)
        below, above = self._ends
        up, down = logistic(margin - above[codes]), logistic(below[codes] - margin)
        up = np.where(known & (codes < self.n_classes - 1), up, 0.0)
        return up, np.where(known & (codes > 0), down, 0.0)

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        codes, known = self._codes(y)
        below, above = self._ends
        up = np.where(codes < self.n_classes - 1, softplus(margin - above[codes]), 0.0)
        down = np.where(codes > 0, softplus(below[codes] - margin), 0.0)
        return np.where(known, up + down + self._widths[codes], 0.0)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        up, down = self._tails(margin, y)
        return up - down

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        up, down = self._tails(margin, y)
        return up * (1 - up) + down * (1 - down)

    def slope_bound(self, margin: float, y: float) -> float:
        lowest, highest = self.slope_range(np.array([-margin, margin]), y)
        return float(max(-lowest[0], highest[1]))

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        inner = np.asarray(self.thresholds)
        return -logistic(inner[-1] - margin), logistic(margin - inner[0])

    def curvature_bound(self, y: float) -> float:
        return 0.25 if self.n_classes == 2 else 0.5

    def offset_bound(self, y: float) -> float:
        return LARGEST_LOG_ODDS

    # The thresholds.

    @property
    def n_cells(self) -> int:
        return self.n_classes

    def cells(self, y: np.ndarray) -> np.ndarray:
        known = (y >= 0) & (y < self.n_classes) & (y == np.floor(y))  # False for NaN
        return np.where(known, y, -1.0)

    def parts(self, margin: np.ndarray, y: np.ndarray, reach: float) -> np.ndarray:
        """1, the probabilities above and below the row's class, and their variances."""
        up, down = self._tails(margin, y)
        curvatures = (up * (1 - up), down * (1 - down))
        return np.column_stack([np.ones(len(up)), up, down, *curvatures])

    def refitted(self, means: np.ndarray, noise: float, reach: float, *, constant: bool) -> Self:
        """At margins of 0 the log-odds of the classes; else a Newton step of the likelihood."""
        counts = np.maximum(means[:, 0], max(noise, 1e-9))
        inner = np.asarray(self.thresholds)
        if constant:
            parts = np.cumsum(counts / counts.sum())[:-1]
            found = np.log(parts / (1 - parts))
        else:
            up, down, curvature_up, curvature_down = np.clip(means[:, 1:].T, 0.0, counts)
            gradient, hessian = down[1:] - up[:-1], np.diag(curvature_up[:-1] + curvature_down[1:])
            for k, apart in enumerate(np.diff(inner)):  # of class k + 1 the width
                both, change = slice(k, k + 2), np.array([1.0, -1.0])
                gradient[both] += counts[k + 1] * change / np.expm1(apart)
                curvature = counts[k + 1] / (np.expm1(apart) * -np.expm1(-apart))
                hessian[both, both] += curvature * np.outer(change, change)
            hessian += np.diag(np.full(len(inner), max(noise, 1e-9)))
            found = inner - np.clip(np.linalg.solve(hessian, gradient), -LONGEST_STEP, LONGEST_STEP)
        return replace(self, thresholds=_public(_apart(found)))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(3), cls(4, (-1.0, 0.5, 0.7)), cls(2, (0.3,))


def _apart(found: np.ndarray) -> np.ndarray:
    """Increasing numbers near these, none beyond what is worth fitting."""
    steps = LEAST_GAP * np.arange(len(found))
    rising = np.maximum.accumulate(found - steps)
    return np.clip(rising, -2 * LARGEST_LOG_ODDS, 2 * LARGEST_LOG_ODDS) + steps


def _public(numbers: np.ndarray) -> tuple[float, ...]:
    """Public numbers to 20 binary places."""
    return tuple((np.rint(numbers * 2**20) / 2**20).tolist())
