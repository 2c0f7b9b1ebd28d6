"""Private logistic regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from riata.bounds import Bounds
from riata.data.arrays import labels_as_codes, rows_and_targets
from riata.errors import InvalidArgument
from riata.estimators.base import Job, PrivateLinearModel
from riata.losses import Logistic, Loss, OneAgainstRest
from riata.sets import ConstraintSet, L1Ball
from riata.solvers import Plan

OBSERVED = "observed"


class PrivateLogisticRegression(ClassifierMixin, PrivateLinearModel):
    """Sparse logistic regression with differential privacy, for two classes or more.

    Minimises the mean logistic loss over ||theta||_1 <= radius. More than two classes are fitted
    one against the rest; every row takes part in every fit, and the accountant composes them all.

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
    radius : float, default=10.0
        The largest l1 norm of a class's coefficients. Public.
    solver : str or Solver, default="auto"
        "frank-wolfe", "gaussian-frank-wolfe", "auto", or a solver object.
    steps : int or "auto", default="auto"
    fit_intercept : bool, default=True
        Whether to fit an intercept, for a tenth of the budget.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    ledger : Ledger, optional
    engine : {"auto", "local"}, default="auto"
    random_state : int, optional
        Makes the fit reproducible, for tests. Such a model is marked as not private.
    verbose : bool, default=False

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    n_iter_ : int
        The number of steps of each fit, which is public.
    privacy_ : Statement

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. The classes are public.

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

    def __init__(
        self,
        epsilon,
        delta=None,
        *,
        bounds=None,
        classes=None,
        radius=10.0,
        solver="auto",
        steps="auto",
        fit_intercept=True,
        adjacency="replace-one",
        ledger=None,
        engine="auto",
        random_state=None,
        verbose=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.radius = radius
        self.solver = solver
        self.steps = steps
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.ledger = ledger
        self.engine = engine
        self.random_state = random_state
        self.verbose = verbose

    def _set(self) -> ConstraintSet:
        return L1Ball(self.radius)

    def _losses(self, n_classes: int) -> list[Loss]:
        positives = [1] if n_classes == 2 else range(n_classes)
        return [OneAgainstRest(Logistic(), k) for k in positives]

    def _code_bounds(self, n_classes: int) -> Bounds:
        """The bounds with y standing for class codes, -1 for none."""
        return self._checked_bounds().with_y(float(n_classes))

    def plan(self, n_rows: int, n_features: int) -> Plan:
        """What a fit on data of this shape would do and cost. Reads nothing, charges nothing."""
        n = len(self._public_classes(None))
        return self._planned(self._losses(n), self._code_bounds(n), n_rows, n_features)[1]

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model and spend the budget.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels.
        """
        job = self._job(X, y)
        thetas = self._fit(job)
        self.classes_ = job.classes
        self.coef_ = np.array([theta.dense() for theta in thetas])
        self.intercept_ = np.array([theta.offset for theta in thetas])
        return self

    def _job(self, X: Any, y: Any) -> Job:
        self._checked_bounds()
        self._check_parameters()
        declared = None if y is None else _classes_of_type(y)
        observed = np.asarray(y) if _is_observed(self.classes) else None
        X, y = rows_and_targets(self, X, y, numeric=False)
        if observed is not None:
            check_classification_targets(observed)
            declared = np.unique(observed)
        classes = self._public_classes(declared)
        return Job(
            self._losses(len(classes)),
            self._code_bounds(len(classes)),
            X.shape,
            read=lambda: (X, labels_as_codes(y, classes)),
            classes=classes,
            notes=_class_notes(self.classes),
        )

    def _public_classes(self, declared: np.ndarray | None) -> np.ndarray:
        """The classes that the user named, or else those that y declares."""
        if isinstance(self.classes, str):
            if self.classes != OBSERVED:
                raise InvalidArgument(
                    f'classes={self.classes!r} must be a list of labels, or "observed".'
                )
            if declared is None:
                raise InvalidArgument(
                    'classes="observed" is known only at fit. Pass classes=[...] to plan before.'
                )
            classes = declared
        elif self.classes is not None:
            classes = np.unique(np.asarray(self.classes))
        elif declared is not None:
            classes = declared
        else:
            raise InvalidArgument(
                f"{type(self).__name__} needs classes: reading the labels from the data would "
                "reveal a person whose label is unique. Pass classes=[...], or "
                'classes="observed" if the set of labels in y is public.'
            )
        if len(classes) < 2:
            raise InvalidArgument(
                f"Only {len(classes)} class is given, and a classifier needs at least 2 classes. "
                "Pass every label that could occur."
            )
        return classes

    def decision_function(self, X: Any) -> np.ndarray:
        """The margin of the second class, or of each class if there are more than two."""
        margins = self._margins(X)
        return margins[:, 0] if len(self.classes_) == 2 else margins

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; one-against-rest scores are normalised to sum to 1."""
        scores = expit(self.decision_function(X))
        if len(self.classes_) == 2:
            return np.column_stack([1 - scores, scores])
        return scores / scores.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row."""
        margins = self.decision_function(X)
        winners = (margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)
        return self.classes_[winners]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on a hundred rows, noise is all there is
        return tags


def _classes_of_type(y: Any) -> np.ndarray | None:
    """The labels that the type of y allows, if that says so: booleans.

    A categorical type says so too, but usually took its categories from the rows.
    """
    kind = getattr(y, "dtype", None)
    return np.array([False, True]) if isinstance(kind, np.dtype) and kind.kind == "b" else None


def _is_observed(classes: Any) -> bool:
    return isinstance(classes, str) and classes == OBSERVED


def _class_notes(classes: Any) -> tuple[str, ...]:
    if _is_observed(classes):
        return ("The classes were read from y: the user declared the set of labels in y public.",)
    return ()
