"""A private linear support vector machine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from riata.bounds import Bounds
from riata.estimators.classifier import PrivateClassifier
from riata.losses import Loss, SmoothedHinge
from riata.solvers import Solver

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


@dataclass(eq=False, repr=False)
class PrivateLinearSVC(PrivateClassifier):
    """A linear support vector machine with differential privacy, for two classes or more.

    Minimises the mean hinge loss, its corner made quadratic, over a ball of coefficients. More than
    two classes are fitted one against the rest; every row takes part in every fit, and the
    accountant composes them all.

    Parameters
    ----------
    epsilon : float
        The privacy budget of all classes together. ``float("inf")`` fits without privacy, and the
        Statement says so.
    delta : float, optional
        The probability with which epsilon may fail. 0 asks for pure differential privacy. If it
        is not given it is the smaller of 1e-6 and a tenth of 1 / n_rows.
    bounds : Bounds
        How far a row may reach: public, and required. A bound on y is not needed.
    classes : array-like, or "observed"
        The labels: public, and required unless `y` is an array of booleans. A label that only one
        person has would reveal that person, so they are never silently read from the rows, not
        even from a categorical type; ``classes="observed"`` reads them from `y` and declares that
        the set of labels in `y` is public. A row with another label is in none of the classes:
        with three or more it counts against each, with two it counts as the first.
    smoothing : float, default=1.0
        The length of the hinge's quadratic corner. Public.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count. A dict has a public weight for some labels, and the
        others have 1. "balanced" makes all classes count alike: their counts are released
        privately, for a fiftieth of the budget. Noise grows with the largest weight.
    penalty : {"auto", "l1", "l2"}, default="auto"
        The norm that `radius` bounds. "auto" is "l2" for rows with a bound on their length and a
        positive delta, and otherwise "l1", whose models are sparse.
    radius : float or "auto", default="auto"
        The largest norm of a class's coefficients. Public. "auto" is 10 for "l1" (100 for solvers
        that refit), and for "l2" 800 over the bound on a row's length.
    solver : str or Solver, default="auto"
        A name from `riata.solvers.SOLVERS`, "auto", or a solver object. "auto" is "noisy-gradient"
        for rows with a bound on their length, and otherwise "greedy".
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
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
        The weights that the classes had, the mean of a row's or of the given ones being 1.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_iter_ : int
        The number of steps of each fit, which is public.
    privacy_ : Statement

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. The classes are public. Counts of classes are releases like
    any other: the budget is for all of them together.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (20_000, 50))
    >>> y = X[:, 0] | X[:, 1]
    >>> model = PrivateLinearSVC(epsilon=1.0, bounds=Bounds(x=1.0), classes=[0, 1])
    >>> model = model.fit(X, y)
    >>> model.predict(X[:2]).shape
    (2,)
    """

    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    bounds: Bounds | None = None
    classes: Any = None
    class_weight: Any = None
    smoothing: float = 1.0
    penalty: str = "auto"
    radius: float | str = "auto"
    solver: str | Solver = "auto"
    steps: int | str = "auto"
    fit_intercept: bool = True
    adjacency: str = "replace-one"
    ledger: Ledger | None = None
    engine: str = "auto"
    random_state: Any = None
    verbose: bool = False

    def _label_loss(self) -> Loss:
        return SmoothedHinge(self.smoothing)
