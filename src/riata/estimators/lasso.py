"""The private LASSO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from riata.arguments import is_auto
from riata.bounds import Bounds
from riata.estimators.base import BoundedModel
from riata.estimators.parameters import documented
from riata.estimators.regressor import PrivateRegressor, automatic_radius
from riata.fitting import AutomaticRadius
from riata.sets import ConstraintSet, L1Ball


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLasso(PrivateRegressor, BoundedModel):
    """Sparse linear regression with differential privacy.

    Minimises the mean of (x . theta + intercept - y)^2 over ||theta||_1 <= radius.

    Parameters
    ----------
    $epsilon
    $bounds
    radius : float or "auto", default="auto"
        The largest l1 norm of the coefficients, in units of y over units of x. Public. "auto" is
        the bound on y over the largest bound on a column, times 10 for solvers that refit and 1000
        for those with a penalty of their own: they hardly notice it.
    $solver
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* Everything that the fit reveals satisfies the guarantee in `privacy_`. Public are
    the number of rows, the column names, the bounds and every parameter. `score` on the training
    rows is a new look at them that nobody has paid for.

    *Differences from the paper.* See `riata.solvers.PrivateFrankWolfe`.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 100))
    >>> y = 0.6 * X[:, 3] - 0.4 * X[:, 7] + 0.1 * rng.standard_normal(20_000)
    >>> model = PrivateLasso(epsilon=1.0, delta=1e-6, bounds=Bounds(x=1.0, y=2.0)).fit(X, y)
    >>> model.privacy_.delta
    1e-06
    """

    curves = True

    radius: Any = "auto"

    def _set(self, bounds: Bounds) -> ConstraintSet | AutomaticRadius:
        if is_auto(self.radius):
            return automatic_radius(bounds)
        return L1Ball(self.radius)
