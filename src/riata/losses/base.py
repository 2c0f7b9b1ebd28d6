"""What a loss must say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class Loss(ABC):
    """A convex function of (margin, y). It never sees X.

    `slope` must treat each row by itself. The bounds are proven in docs/privacy/sensitivity.md and
    tested against hostile rows: slopes beyond `slope_bound` are clipped, so one that is too small
    costs accuracy, and one that is too large adds noise.
    """

    name: str
    #: Whether y is a label (-1 or 1) and not a number.
    classifies: bool = False
    #: Whether `slope` has a derivative everywhere.
    twice_differentiable: bool = False

    @abstractmethod
    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of each row."""

    @abstractmethod
    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The derivative of `value` in the margin."""

    @abstractmethod
    def curvature(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        """How fast `slope` grows with the margin: its derivative.

        Where the loss is straight, the curvature of a parabola that touches it and stays above, so
        that Newton steps from there do not go too far.
        """

    @abstractmethod
    def slope_bound(self, margin: float, y: float) -> float:
        """The largest |slope| over all margins up to `margin` and targets up to `y` in size."""

    @abstractmethod
    def curvature_bound(self, y: float) -> float:
        """The largest second derivative in the margin over all targets up to `y` in size."""

    def slope_range(self, margin: np.ndarray, y: float) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest slope at each margin, over all targets up to `y` in size.

        Neither falls anywhere as the margin grows. Here without knowledge of the loss: the same at
        every margin.
        """
        most = self.slope_bound(float(np.abs(margin).max()), y)
        return np.full(np.shape(margin), -most), np.full(np.shape(margin), most)

    def curvature_beyond(self, margin: np.ndarray, y: float) -> np.ndarray:
        """The largest second derivative at margins of this size or a larger one.

        Over all targets up to `y` in size. Here without knowledge of the loss.
        """
        return np.full(np.shape(margin), self.curvature_bound(y))

    @abstractmethod
    def offset_bound(self, y: float) -> float:
        """The largest intercept worth fitting for targets up to `y` in size."""


#: Why the parameter of a loss must be a sensible number.
SCALE_OF_LOSS = (
    "it sets where the loss turns from quadratic to linear. Pass a public number on the scale of "
    "the residuals."
)
