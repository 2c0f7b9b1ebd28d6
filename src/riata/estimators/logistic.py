"""Private logistic regression."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from riata.bounds import Bounds
from riata.estimators.classifier import LogisticClassifier
from riata.solvers import Solver

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(LogisticClassifier):
    """Sparse logistic regression with differential privacy, for two classes or more.

    Minimises the mean logistic loss over a ball of coefficients. Three classes or more are fitted
    together by the solvers "joint-class-sums" and "softmax-gradient", which "auto" takes where it
    can: the noise then does not grow with their number. By other solvers each class is fitted
    against the rest; every row takes part in every fit, and the accountant composes them all.

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
        the set of labels in `y` is public. A row with another label is in none of the classes: of
        three or more that are fitted together it counts for none, if each is fitted against the
        rest it counts against each, and with two it counts as the first.
    class_weight : dict, "balanced" or None, default=None
        How much the rows of each class count. A dict has a public weight for some labels, and the
        others have 1. "balanced" makes all classes count alike: their counts are released
        privately, for a fiftieth of the budget. Noise grows with the largest weight.
    calibration : bool or "auto", default="auto"
        Whether probabilities are calibrated after the fit, by a private fit of a line through the
        margins of each class, for a twentieth of the budget. "auto" does so unless epsilon is
        infinite, the solver projects the rows, or calibrates by itself, which "class-sums" and the
        solvers that fit all classes together always do.
    penalty : {"auto", "l1", "l2"}, default="auto"
        The norm that `radius` bounds. "auto" is "l2" for rows with a bound on their length and a
        positive delta, and otherwise "l1", whose models are sparse.
    radius : float or "auto", default="auto"
        The largest norm of a class's coefficients. Public. "auto" is 10 for "l1" (100 for solvers
        that refit), and for "l2" 800 over the bound on a row's length.
    solver : str or Solver, default="auto"
        A name from `riata.solvers.SOLVERS`, "auto", or a solver object. "auto" decides from public
        facts alone; `plan` says for what and why.
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
    calibration_ : ndarray of shape (1, 2) or (n_classes, 2)
        A slope and an intercept for each fit, which turn its margins into log-odds: (1, 0) where
        margins are used as they are.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_iter_ : int
        The number of steps of each fit, which is public.
    privacy_ : Statement

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. The classes are public. Counts of classes and the calibration
    are releases like any other: the budget is for all of them together.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (20_000, 50))
    >>> y = X[:, 0] | X[:, 1]
    >>> model = PrivateLogisticRegression(epsilon=1.0, bounds=Bounds(x=1.0), classes=[0, 1])
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
    calibration: bool | str = "auto"
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
