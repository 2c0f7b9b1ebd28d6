from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.base import Loss
from riata.losses.logistic import LARGEST_LOG_ODDS
from riata.losses.logistic_function import exp_below


@dataclass(frozen=True)
class Softmax(Loss):
    """The log-loss of several classes, whose probabilities are the softmax of a margin for each.

    Margins are matrices with a column for each class and y is the code of a class. A row whose
    code is none of them has the loss 0.
    """

    n_classes: int

    name = "softmax"
    link = "logit"
    classifies = True
    twice_differentiable = True

    def __post_init__(self) -> None:
        if isinstance(self.n_classes, bool) or self.n_classes < 2:
            raise InvalidArgument(f"n_classes={self.n_classes!r} must be at least 2.")

    @property
    def n_margins(self) -> int:
        return self.n_classes

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        codes, known = class_codes(y, self.n_classes)
        own = margin[np.arange(len(codes)), codes]
        return np.where(known, np.logaddexp.reduce(margin, axis=1) - own, 0.0)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The gradient in the margins of a row: the probabilities, less 1 for its own class."""
        codes, known = class_codes(y, self.n_classes)
        found = softmax(margin)
        found[np.arange(len(codes)), codes] -= 1.0
        return np.where(known[:, None], found, 0.0)

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The second derivative in each margin."""
        _, known = class_codes(y, self.n_classes)
        chances = softmax(margin)
        return np.where(known[:, None], chances * (1 - chances), 0.0)

    def slope_bound(self, margin: float, y: float) -> float:
        """The largest Euclidean length of a row's slope."""
        return math.sqrt(2.0)

    def curvature_bound(self, y: float) -> float:
        """The largest eigenvalue of the matrix of second derivatives in the margins."""
        return 0.5

    def offset_bound(self, y: float) -> float:
        return LARGEST_LOG_ODDS

    def predict(self, margin: np.ndarray) -> np.ndarray:
        """The code of the class with the largest margin."""
        return margin.argmax(axis=1).astype(np.float64)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return ()  # the matrices of the tests are for one margin; tests/unit/test_softmax.py


def class_codes(y: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The class of each row, and whether it has one: 0 stands for none."""
    known = (y >= 0) & (y < n_classes) & (y == np.floor(y))  # False for NaN
    return np.where(known, y, 0).astype(np.intp), known


def softmax(margins: np.ndarray) -> np.ndarray:
    """exp(margin) over its sum in each row: the same bits on every machine and in any layout.

    Sums, products and quotients alone, in a fixed order, as `logistic` has them.
    """
    margins = np.ascontiguousarray(margins.T)  # class by class, as they are added up
    parts = exp_below(margins.max(axis=0) - margins)
    parts /= in_order(parts.T)
    return parts.T


def in_order(columns: np.ndarray) -> np.ndarray:
    """The sum of each row, from the first column to the last."""
    total = columns[:, 0].copy()
    for k in range(1, columns.shape[1]):
        total += columns[:, k]
    return total
