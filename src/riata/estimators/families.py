"""Regressions of counts and amounts, whose mean is the exponential of a linear function."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.data.arrays import row_numbers
from riata.estimators.parameters import documented
from riata.estimators.regressor import automatic_radius, l1_ball, number_or_auto
from riata.estimators.weighted import WeightedRegressor
from riata.fitting import AutomaticRadius
from riata.fitting.prediction_rows import targets_of
from riata.fitting.rows import Table, read_table
from riata.losses import Gamma, Loss, NegativeBinomial, Poisson, Tweedie
from riata.losses.exponential import exponential
from riata.losses.log_link import LogLinkLoss
from riata.sets import ConstraintSet

#: The least mean that "auto" stands for, as a part of the bound on y.
LEAST_MEAN = 1e-3


@dataclass(eq=False, repr=False, kw_only=True)
class LogLinkRegressor(WeightedRegressor):
    """A model of the logarithm of the mean. Subclasses name the family."""

    radius: float | str = "auto"
    max_exposure: float | None = None

    @property
    @abstractmethod
    def loss(self) -> LogLinkLoss:
        """The family, without the straight tails of a fit."""

    @abstractmethod
    def _fitted_loss(self, y: float) -> LogLinkLoss:
        """The same with straight tails, for targets up to `y`."""

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        bounds = self.row_bounds()
        return (self.loss if bounds.y is None else self._fitted_loss(bounds.y),)

    def _set(self, bounds: Bounds) -> ConstraintSet | AutomaticRadius:
        return l1_ball(self.radius, automatic_radius(bounds, logarithms=True))

    # A source moves the middle of the targets' range to 0, and counts are not to be moved.

    def row_bounds(self) -> Bounds:
        """The bounds that rows are clipped into: those of the schema, for rows of a source."""
        bounds, schema = super().row_bounds(), self._schema
        if schema is None or bounds.y is None:
            return bounds
        return bounds.with_y(bounds.y + abs(schema.target_centre))

    def _read(self, X: Any, y: Any) -> tuple[Table, None, Any]:
        table = read_table(self, X, y, classifies=False, numeric=True)
        schema = self._schema
        return table, None, None if schema is None else partial(np.add, schema.target_centre)

    def _target_centre(self) -> float:
        return 0.0

    def predict(self, X: Any, exposure: Any = None) -> np.ndarray:
        """The mean of y for each row, read as rows are in `fit`; of exposure 1 if none is given."""
        means = exponential(self._margins(X))
        if exposure is None:
            return means
        return np.asarray(means * row_numbers(exposure, len(means), "exposure"))

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, exposure: Any = None
    ) -> float:
        """D^2: the part of the deviance that the model explains, 0 for the best constant.

        A source, or a frame of its schema, has its own targets.
        """
        if y is None:
            y = targets_of(self, X) + self.schema_.target_centre
        means = self.predict(X, exposure)
        y = row_numbers(y, len(means), "y")
        ones = np.ones(len(y))
        weight = ones if sample_weight is None else row_numbers(sample_weight, len(y), "weight")
        exposed = ones if exposure is None else row_numbers(exposure, len(y), "exposure")
        rate = float((weight * y).sum() / (weight * exposed).sum())
        ours, flat = (weight @ self.loss.deviance(y, each) for each in (means, rate * exposed))
        return float(1 - ours / flat)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivatePoissonRegression(LogLinkRegressor):
    """Poisson regression of counts, with differential privacy.

    Minimises the mean Poisson deviance of y from exposure * exp(x . theta + intercept) over
    ||theta||_1 <= radius. Means beyond the bound on y count as straight.

    Parameters
    ----------
    $epsilon
    $bounds
    $families
    $solver
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. Weights and exposures are protected as the rows are.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivatePoissonRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 10))
    >>> years = rng.uniform(0.1, 1.0, 20_000)
    >>> claims = rng.poisson(years * np.exp(0.8 * X[:, 3] - 1))
    >>> model = PrivatePoissonRegression(1.0, 1e-6, bounds=Bounds(x=1.0, y=5.0), max_exposure=1.0)
    >>> model = model.fit(X, claims, exposure=years)
    >>> int(np.argmax(model.coef_))
    3
    """

    @property
    def loss(self) -> Poisson:
        return Poisson()

    def _fitted_loss(self, y: float) -> Poisson:
        return Poisson(y)


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateNegativeBinomialRegression(LogLinkRegressor):
    """Regression of counts that vary more than Poisson's do, with differential privacy.

    Minimises the mean negative binomial deviance of y from exposure * exp(x . theta + intercept).

    Parameters
    ----------
    $epsilon
    $bounds
    dispersion : float, default=1.0
        The variance of y is its mean plus this times the mean squared. Public.
    $families
    $solver
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivatePoissonRegression`.
    """

    dispersion: float = 1.0

    @property
    def loss(self) -> NegativeBinomial:
        return NegativeBinomial(self.dispersion)

    def _fitted_loss(self, y: float) -> NegativeBinomial:
        return self.loss


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateGammaRegression(LogLinkRegressor):
    """Gamma regression of positive amounts, with differential privacy.

    Minimises the mean Gamma deviance of y from exposure * exp(x . theta + intercept).

    Parameters
    ----------
    $epsilon
    $bounds
    $least_mean
    $families
    $solver
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivatePoissonRegression`.
    """

    least_mean: float | str = "auto"

    @property
    def loss(self) -> Gamma:
        return Gamma()

    def _fitted_loss(self, y: float) -> Gamma:
        return Gamma(number_or_auto("least_mean", self.least_mean, LEAST_MEAN * y))


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateTweedieRegression(LogLinkRegressor):
    """Tweedie regression of amounts of which many are 0, with differential privacy.

    Minimises the mean Tweedie deviance of y from exposure * exp(x . theta + intercept).

    Parameters
    ----------
    $epsilon
    $bounds
    power : float, default=1.5
        The variance of y grows with this power of its mean: strictly between 1 (Poisson) and 2
        (Gamma). Public.
    $least_mean
    $families
    $solver
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivatePoissonRegression`.
    """

    power: float = 1.5
    least_mean: float | str = "auto"

    @property
    def loss(self) -> Tweedie:
        return Tweedie(self.power)

    def _fitted_loss(self, y: float) -> Tweedie:
        least = number_or_auto("least_mean", self.least_mean, LEAST_MEAN * y)
        return Tweedie(self.power, least, y)
