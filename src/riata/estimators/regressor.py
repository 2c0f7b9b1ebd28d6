"""What every regressor does: one fit of a loss for numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.fitting import AutomaticRadius, Fitted
from riata.fitting.prediction_rows import targets_of
from riata.losses import Loss, Squared
from riata.sets import ConstraintSet, L1Ball

#: The radius that "auto" stands for, in units of the bound on y over the largest one on a column,
#: by the solver's radius policy. An open one binds no model, though bounds on rows be 100 times too
#: wide.
RADIUS = {"open": 1e5, "wide": 1e3, "narrow": 1.0}

#: The same for models of a logarithm, over the largest bound on a column.
RADIUS_OF_LOGARITHMS = {"open": 1000.0, "wide": 100.0, "narrow": 5.0}


def automatic_radius(bounds: Bounds, *, logarithms: bool = False) -> AutomaticRadius:
    """A radius that no model worth finding exceeds, or one that a noisy search can afford."""
    y, x = 1.0 if logarithms else bounds.y or 1.0, float(np.max(bounds.x))
    radii = RADIUS_OF_LOGARITHMS if logarithms else RADIUS
    return AutomaticRadius(L1Ball, {policy: radius * y / x for policy, radius in radii.items()})


def number_or_auto(name: str, given: Any, automatic: Any) -> Any:
    """The number that was given, or what "auto" stands for."""
    if not isinstance(given, str):
        return given
    if given != "auto":
        raise InvalidArgument(f'{name}={given!r} must be a number or "auto".')
    return automatic


def l1_ball(radius: Any, automatic: AutomaticRadius) -> ConstraintSet | AutomaticRadius:
    """The ball of a radius that was given, or the one that "auto" stands for."""
    given = number_or_auto("radius", radius, automatic)
    return given if given is automatic else L1Ball(given)


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """A linear regression. Subclasses name the set, and the loss if it is not the squared one."""

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        return (Squared(),)

    def _set_attributes(self, fitted: Fitted) -> None:
        super()._set_attributes(fitted)
        self.__dict__.pop("residual_spread_", None)
        fit = fitted.solutions[0].fit
        if fit is not None and fitted.planned.problems[0].loss.least_squares:
            self.residual_spread_ = math.sqrt(fit.loss)

    def predict(self, X: Any) -> np.ndarray:
        """Predict y for each row, read as rows are in `fit`."""
        return self._margins(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions. A source, or a frame of its schema, has its own targets."""
        if y is None:
            y = targets_of(self, X) + self.schema_.target_centre
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on a hundred rows, noise is all there is
        return tags
