"""Private quantile regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.estimators.parameters import documented
from riata.estimators.regressor import automatic_radius, l1_ball, number_or_auto
from riata.estimators.weighted import WeightedRegressor
from riata.fitting import AutomaticRadius
from riata.fitting.prediction_rows import targets_of
from riata.losses import Loss, Quantile, Smoothed
from riata.sets import ConstraintSet

#: The width over which "auto" rounds the corner of the loss, as a part of the bound on y.
SMOOTHING = 0.02


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateQuantileRegression(WeightedRegressor):
    """Linear regression of a quantile, such as the median, with differential privacy.

    Minimises the mean pinball loss of y at x . theta + intercept, with its corner rounded, over
    ||theta||_1 <= radius.

    Parameters
    ----------
    $epsilon
    $bounds
    quantile : float, default=0.5
        Strictly between 0 and 1. Public.
    smoothing : float or "auto", default="auto"
        The width over which the corner of the loss is rounded, in units of y. Public. "auto" is a
        fiftieth of the bound on y.
    radius : float or "auto", default="auto"
        As for `PrivateLasso`.
    $max_weight
    $solver
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. Weights are protected as the rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateQuantileRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 5))
    >>> y = X[:, 0] + rng.exponential(0.5, 20_000)
    >>> model = PrivateQuantileRegression(3.0, 1e-6, bounds=Bounds(x=1.0, y=5.0), quantile=0.9)
    >>> bool(0.85 < np.mean(y < model.fit(X, y).predict(X)) < 0.95)
    True
    """

    quantile: float = 0.5
    smoothing: float | str = "auto"
    radius: float | str = "auto"

    @property
    def loss(self) -> Quantile:
        return Quantile(self.quantile)

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        y = self.row_bounds().y
        automatic = SMOOTHING * (1.0 if y is None else y)
        return (Smoothed(self.loss, number_or_auto("smoothing", self.smoothing, automatic)),)

    def _set(self, bounds: Bounds) -> ConstraintSet | AutomaticRadius:
        return l1_ball(self.radius, automatic_radius(bounds))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """D^2: the part of the pinball loss that the model explains, 0 for the best constant.

        A source, or a frame of its schema, has its own targets.
        """
        from sklearn.metrics import d2_pinball_score  # slow to import

        if y is None:
            y = targets_of(self, X) + self.schema_.target_centre
        return float(
            d2_pinball_score(y, self.predict(X), alpha=self.quantile, sample_weight=sample_weight)
        )
