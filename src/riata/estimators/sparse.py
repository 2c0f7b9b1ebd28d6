"""Sparse regression with a declared number of columns."""

from __future__ import annotations

from dataclasses import dataclass

from riata.bounds import Bounds
from riata.estimators.base import BoundedModel
from riata.estimators.parameters import documented
from riata.estimators.regressor import PrivateRegressor
from riata.sets import ConstraintSet, SparseBall


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateSparseRegression(PrivateRegressor, BoundedModel):
    """Linear regression on at most `sparsity` columns, with differential privacy.

    Minimises the mean of (x . theta + intercept - y)^2 over all theta with at most `sparsity`
    non-zeros and ||theta||_2 <= radius, by gradient steps of which only the largest entries stay.

    Parameters
    ----------
    $epsilon
    $bounds
    $sparsity
    solver : str or Solver, default="auto"
        "greedy", "peeling" or "hard-thresholding", or a solver object. "auto" is "greedy".
    $options

    Attributes
    ----------
    $coefficients
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateSparseRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 100))
    >>> y = 0.6 * X[:, 3] - 0.4 * X[:, 7] + 0.1 * rng.standard_normal(20_000)
    >>> model = PrivateSparseRegression(1.0, bounds=Bounds(x=1.0, y=2.0), sparsity=2).fit(X, y)
    >>> int(np.count_nonzero(model.coef_))
    2
    """

    sparsity: int = 10
    radius: float = 1.0

    def _set(self, bounds: Bounds) -> ConstraintSet:
        return SparseBall(self.sparsity, self.radius)
