"""Sparse regression with a declared number of columns."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from riata.bounds import Bounds
from riata.estimators.regressor import PrivateRegressor
from riata.sets import ConstraintSet, SparseBall
from riata.solvers import Solver

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


@dataclass(eq=False, repr=False)
class PrivateSparseRegression(PrivateRegressor):
    """Linear regression on at most `sparsity` columns, with differential privacy.

    Minimises the mean of (x . theta + intercept - y)^2 over all theta with at most `sparsity`
    non-zeros and ||theta||_2 <= radius, by gradient steps of which only the largest entries stay.

    Parameters
    ----------
    epsilon : float
        The privacy budget. ``float("inf")`` fits without privacy, and the Statement says so.
    delta : float, optional
        The probability with which epsilon may fail. 0 asks for pure differential privacy. If it
        is not given it is the smaller of 1e-6 and a tenth of 1 / n_rows.
    bounds : Bounds
        How far a row may reach: public, and required.
    sparsity : int, default=10
        The largest number of columns in the model. Public.
    radius : float, default=1.0
        The largest Euclidean length of the coefficients. Public.
    solver : str or Solver, default="auto"
        "greedy", "peeling" or "hard-thresholding", or a solver object. "auto" is "greedy".
    steps : int or "auto", default="auto"
    fit_intercept : bool, default=True
        Whether to fit an intercept, for a tenth of the budget.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    ledger : Ledger, optional
    engine : {"auto", "local", "numba", "numpy", "scan", "disk", "dask"}, default="auto"
    random_state : int, optional
        Makes the fit reproducible, for tests. Such a model is marked as not private.
    verbose : bool, default=False

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_iter_ : int
    privacy_ : Statement

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

    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    bounds: Bounds | None = None
    sparsity: int = 10
    radius: float = 1.0
    solver: str | Solver = "auto"
    steps: int | str = "auto"
    fit_intercept: bool = True
    adjacency: str = "replace-one"
    ledger: Ledger | None = None
    engine: str = "auto"
    random_state: Any = None
    verbose: bool = False

    def _set(self, bounds: Bounds) -> ConstraintSet:
        return SparseBall(self.sparsity, self.radius)
