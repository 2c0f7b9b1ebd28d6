"""The private LASSO."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from riata.bounds import Bounds
from riata.estimators.regressor import PrivateRegressor, automatic_radius
from riata.fitting import AutomaticRadius
from riata.sets import ConstraintSet, L1Ball
from riata.solvers import Solver

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


@dataclass(eq=False, repr=False)
class PrivateLasso(PrivateRegressor):
    """Sparse linear regression with differential privacy.

    Minimises the mean of (x . theta + intercept - y)^2 over ||theta||_1 <= radius.

    Parameters
    ----------
    epsilon : float
        The privacy budget. ``float("inf")`` fits without privacy, and the Statement says so.
    delta : float, optional
        The probability with which epsilon may fail. 0 asks for pure differential privacy. If it
        is not given it is the smaller of 1e-6 and a tenth of 1 / n_rows.
    bounds : Bounds
        How far a row may reach: public, and required.
    radius : float or "auto", default="auto"
        The largest l1 norm of the coefficients, in units of y over units of x. Public. "auto" is
        the bound on y over the largest bound on a column, times 10 for solvers that refit and 1000
        for those with a penalty of their own: they hardly notice it.
    solver : str or Solver, default="auto"
        A name from `riata.solvers.SOLVERS`, "auto", or a solver object. "auto" goes by public
        facts: with few columns for the number of rows it is "whitened-gradient", and with bounds
        on entries otherwise "greedy".
    steps : int or "auto", default="auto"
        The number of private steps. "auto" chooses it from public facts.
    fit_intercept : bool, default=True
        Whether to fit an intercept, for a tenth of the budget.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Which data sets count as neighbours.
    ledger : Ledger, optional
        Where the fit is charged before a row is read.
    engine : {"auto", "local", "numba", "numpy", "scan", "disk", "dask"}, default="auto"
        Where the rows are summed: in this process, on disk or at a Dask cluster, and whether long
        fits on sparse rows are compiled. "auto" goes by where the rows are and what is quicker.
    random_state : int, optional
        Makes the fit reproducible, for tests. Such a model is marked as not private.
    verbose : bool, default=False
        Whether to draw a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    coef_error_, intercept_error_ : ndarray of shape (n_features,), float
        Standard errors, NaN where the solver says nothing about them.
    selection_order_ : ndarray of int of shape (n_features,)
        The place of each column in the order in which a search selected columns, from 1; 0 for
        columns that were not selected, and for solvers that do not select one by one.
    n_iter_ : int
        The number of steps, which is public.
    privacy_ : Statement
        The guarantee.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

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

    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    bounds: Bounds | None = None
    radius: float | str = "auto"
    solver: str | Solver = "auto"
    steps: int | str = "auto"
    fit_intercept: bool = True
    adjacency: str = "replace-one"
    ledger: Ledger | None = None
    engine: str = "auto"
    random_state: Any = None
    verbose: bool = False

    def _set(self, bounds: Bounds) -> ConstraintSet | AutomaticRadius:
        if isinstance(self.radius, str) and self.radius == "auto":
            return automatic_radius(bounds)
        return L1Ball(self.radius)  # type: ignore[arg-type]
