"""What a loss must say about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

import numpy as np

from riata.bounds import Bounds
from riata.losses.logistic_function import logistic

#: How the mean of y depends on a margin, by the name of the link.
INVERSE_LINKS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": np.asarray,
    "log": np.exp,
    "logit": logistic,
}


class Loss(ABC):
    """A convex function of (margin, y). It never sees X.

    `slope` must treat each row by itself. The bounds are proven in docs/privacy/sensitivity.md and
    tested against hostile rows: slopes beyond `slope_bound` are clipped, so one that is too small
    costs accuracy, and one that is too large adds noise. Objective perturbation rests on curvatures
    as well, and on convexity: it tabulates losses that are not riata's own (`losses.enforced`).

    A value may be negative. A loss without a derivative of its slope, or with none that is bounded,
    says so by a `curvature_bound` of infinity, and a straight one by 0: solvers that need a
    curvature then refuse it before anything is charged, and the others fit it.
    """

    #: Whether it is (margin - y)^2, for which second moments are sufficient statistics.
    least_squares: bool = False

    #: Whether its slope is a function of the margin less one of the target, as with the canonical
    #: link of a generalised linear model. The sum of rows times targets is then sufficient.
    canonical_link: bool = False

    #: Whether solvers measure its mean curvature, which may be far below the bound on it.
    measured_curvature: bool = False

    #: What plans expect only if it is true, beside the bounds on rows.
    assumes: str = ""

    @property
    def gradient_bounds(self) -> Bounds | None:
        """What gradients of rows are clipped to, for a loss of whole rows; None for margins."""
        return None

    def check(self, theta: np.ndarray, bounds: Bounds) -> None:  # noqa: B027 (most need none)
        """Raise if the loss cannot be used at a public theta for rows inside the bounds."""

    @property
    def smoothing_error(self) -> float:
        """How far its values are from those of the loss that it stands in for, if it does."""
        return 0.0

    @property
    @abstractmethod
    def name(self) -> str:
        """What plans and Statements call it."""

    @property
    def link(self) -> str:
        """How the mean of y is linked to the margin: a name from `INVERSE_LINKS`.

        That of a loss for labels is "logit" if margins are log odds.
        """
        return "identity"

    @property
    def classifies(self) -> bool:
        """Whether y is a label (-1 or 1) and not a number."""
        return False

    @property
    def n_margins(self) -> int:
        """How many margins a row has: more than one for a loss of all classes together."""
        return 1

    @property
    def twice_differentiable(self) -> bool:
        """Whether `slope` has a derivative everywhere."""
        return False

    @property
    def inner(self) -> Loss | None:
        """The loss that this one is made of, if there is one."""
        return None

    @property
    def innermost(self) -> Loss:
        """The loss that all wrappers are around."""
        return self if self.inner is None else self.inner.innermost

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

    def smoothed(self, width: float) -> Loss | None:
        """This loss with its corners rounded over `width`, None if it does not know how.

        Asked for only where `curvature_bound` is infinite.
        """
        return None

    @abstractmethod
    def offset_bound(self, y: float) -> float:
        """The largest intercept worth fitting for targets up to `y` in size."""

    def usual_offset(self, y: float) -> float:
        """Where the best intercept is usually about, for targets up to `y` in size."""
        return 0.0

    def known_curvature(self, offset: float) -> float | None:
        """The mean curvature at a constant if that is the best one, where the loss alone says it.

        None where it has to be measured.
        """
        return None

    def usual_curvature(self, slope: float, curvature: float) -> float:
        """The same, from the mean slope and curvature that were measured at a constant."""
        return curvature

    def class_targets(self) -> tuple[float, float]:
        """A target of the positive class and one of another, for a loss that classifies."""
        return 1.0, -1.0

    def predict(self, margin: np.ndarray) -> np.ndarray:
        """What a margin predicts: the mean of y, or the label -1 or 1."""
        if self.classifies:
            return np.where(margin > 0, 1.0, -1.0)
        return INVERSE_LINKS[self.link](margin)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Losses of this class, for the matrices of the tests."""
        return (cls(),)


#: Distances from the corner of a loss count as at least this much, so that curvatures are finite.
SMALLEST_DISTANCE = 1e-150

#: Why the parameter of a loss must be a sensible number.
SCALE_OF_LOSS = (
    "it sets where the loss turns from quadratic to linear. Pass a public number on the scale of "
    "the residuals."
)
