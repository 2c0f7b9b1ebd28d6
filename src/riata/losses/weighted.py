from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.base import Loss
from riata.losses.one_against_rest import OneAgainstRest
from riata.losses.wrapped import WrappedLoss
from riata.privacy.budget import check_scale


@dataclass(frozen=True)
class Weighted(WrappedLoss):
    """A loss for class codes in which some classes count more than others.

    Slopes and curvatures grow with the weight of a row's class, and so do their bounds: the noise
    is scaled to the largest weight.

    Parameters
    ----------
    loss : Loss
        A loss of class codes, such as `OneAgainstRest`.
    weights : tuple of float
        The positive weight of each code. A row in none of the classes has the smallest of them.
    """

    loss: Loss
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.weights, tuple) or not self.weights:
            raise InvalidArgument(
                f"weights must be a tuple with a number for each class code, got {self.weights!r}."
            )
        for weight in self.weights:
            check_scale("A weight", weight, "noise is scaled to the largest one.")

    @property
    def name(self) -> str:
        return f"weighted {self.loss.name}"

    @property
    def largest(self) -> float:
        """The weight that all bounds are multiplied by."""
        return max(self.weights)

    @property
    def smoothing_error(self) -> float:
        return self.largest * super().smoothing_error

    def of_rows(self, codes: np.ndarray) -> np.ndarray:
        """The weight of each row: a number from the table, whatever the codes are."""
        n = len(self.weights)
        known = (codes >= 0) & (codes < n) & (codes == np.floor(codes))
        table = np.array([*self.weights, min(self.weights)])
        return table[np.where(known, codes, n).astype(np.intp)]

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.of_rows(y) * super().value(margin, y)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (self.of_rows(y) * super().slope(margin, y).T).T  # one margin or several

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (self.of_rows(y) * super().curvature(margin, y).T).T

    def slope_bound(self, margin: float, y: float) -> float:
        return self.largest * super().slope_bound(margin, y)

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        lowest, highest = super().slope_range(margin, y)
        least = min(self.weights)
        return (
            np.minimum(least * lowest, self.largest * lowest),
            np.maximum(least * highest, self.largest * highest),
        )

    def curvature_beyond(self, margin: np.ndarray, y: float) -> np.ndarray:
        return self.largest * super().curvature_beyond(margin, y)

    def curvature_bound(self, y: float) -> float:
        return self.largest * super().curvature_bound(y)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return tuple(cls(loss, (0.3, 7.0, 1.1)) for loss in OneAgainstRest.examples())
