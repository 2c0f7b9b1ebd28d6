from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from riata.losses.base import Loss
from riata.losses.logistic import Logistic
from riata.losses.wrapped import WrappedLoss


@dataclass(frozen=True)
class OneAgainstRest(WrappedLoss):
    """A classification loss for one class of several: class codes in, labels -1 and 1 inside.

    Parameters
    ----------
    loss : Loss
        A loss for labels of -1 and 1.
    positive : int
        The class code that counts as 1. Every other code counts as -1.
    """

    loss: Loss
    positive: int

    @property
    def link(self) -> str:
        return self.loss.link

    @property
    def canonical_link(self) -> bool:  # type: ignore[override]
        return self.loss.canonical_link

    def inner_targets(self, y: np.ndarray) -> np.ndarray:
        """1 for the class, -1 for every other code."""
        return 2.0 * (y == self.positive) - 1.0

    def inner_bound(self, y: float) -> float:
        return 1.0

    def class_targets(self) -> tuple[float, float]:
        return float(self.positive), 1.0 if self.positive == 0 else 0.0

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(Logistic(), 1),)
