"""Losses that are made of another loss."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from riata.errors import InvalidArgument
from riata.losses.base import Loss


class WrappedLoss(Loss):
    """A loss of class codes around another loss. Subclasses are frozen dataclasses with a `loss`.

    What is not said here is as the inner loss says.
    """

    loss: Loss
    classifies = True

    def __post_init__(self) -> None:
        if self.loss.gradient_bounds is not None:
            raise InvalidArgument(
                f"Codes of classes are for losses of margins, and the {self.loss.name} loss is a "
                "function of whole rows: its own function sees the target of a row."
            )

    @property
    def inner(self) -> Loss:
        return self.loss

    @property
    def name(self) -> str:
        return self.loss.name

    @property
    def n_margins(self) -> int:
        return self.loss.n_margins

    @property
    def twice_differentiable(self) -> bool:
        return self.loss.twice_differentiable

    @property
    def smoothing_error(self) -> float:
        return self.loss.smoothing_error

    def inner_targets(self, y: np.ndarray) -> np.ndarray:
        """The targets of the inner loss."""
        return y

    def inner_bound(self, y: float) -> float:
        """The bound on the size of the inner loss's targets."""
        return y

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.value(margin, self.inner_targets(y))

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.slope(margin, self.inner_targets(y))

    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.loss.curvature(margin, self.inner_targets(y))

    def slope_bound(self, margin: float, y: float) -> float:
        return self.loss.slope_bound(margin, self.inner_bound(y))

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        return self.loss.slope_range(margin, self.inner_bound(y))

    def curvature_beyond(self, margin: np.ndarray, y: float) -> np.ndarray:
        return self.loss.curvature_beyond(margin, self.inner_bound(y))

    def curvature_bound(self, y: float) -> float:
        return self.loss.curvature_bound(self.inner_bound(y))

    def smoothed(self, width: float) -> Loss | None:
        inner = self.loss.smoothed(width)
        return None if inner is None else replace(self, loss=inner)  # type: ignore[type-var]

    def offset_bound(self, y: float) -> float:
        return self.loss.offset_bound(self.inner_bound(y))

    def class_targets(self) -> tuple[float, float]:
        return self.loss.class_targets()
