"""Private regression of ordered classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from riata.bounds import Bounds
from riata.data.arrays import labels_as_codes
from riata.errors import InvalidArgument
from riata.estimators.classifier import LabelPredictor, check_label_type
from riata.estimators.nuisance import NuisanceModel
from riata.estimators.parameters import documented
from riata.fitting.rows import Table, read_table
from riata.losses import Loss, NuisanceLoss, OrderedLogistic


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateOrdinalRegression(LabelPredictor, NuisanceModel):
    """Ordinal logistic regression with proportional odds, with differential privacy.

    The log-odds of a class above class k are x . theta - thresholds[k], for all k with the same
    theta. Thresholds and coefficients maximise the likelihood over ||theta||_1 <= radius together.

    Parameters
    ----------
    $epsilon
    $bounds
    classes : array-like, optional
        The labels from the lowest to the highest: public, and required unless a schema lists them
        in this order. A row with another label counts for nothing.
    $open_radius
    $solver
    $options

    Attributes
    ----------
    $coefficients
        Always 0: the thresholds take its place.
    thresholds_ : ndarray of shape (n_classes - 1,)
        The log-odds of `ordered_classes_[k]` or lower at a row of zeros.
    classes_, ordered_classes_ : ndarray of shape (n_classes,)
        The labels as scikit-learn sorts them, and from the lowest to the highest.
    $fitted

    Notes
    -----
    *Privacy.* As for `PrivateLasso`. The solver is "profile-gradient", with a positive delta and at
    most 1,024 columns.

    References
    ----------
    McCullagh (1980). Regression models for ordinal data.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateOrdinalRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 5))
    >>> pain = np.digitize(2 * X[:, 1] + rng.logistic(size=20_000), [-1, 1])
    >>> model = PrivateOrdinalRegression(1.0, 1e-6, bounds=Bounds(x=1.0), classes=[0, 1, 2])
    >>> model = model.fit(X, pain)
    >>> int(np.argmax(model.coef_)), bool(np.all(np.diff(model.thresholds_) > 0))
    (1, True)
    """

    classes: Any = None

    instead_of_intercept: ClassVar[str] = "the thresholds"

    def labels(self) -> np.ndarray:
        """The labels from the lowest to the highest: of the constructor, or of the schema."""
        schema = self._schema
        listed = None if schema is None or schema.target is None else schema.target.labels
        if self.classes is None and not listed:
            raise InvalidArgument(
                "PrivateOrdinalRegression needs classes: their order cannot be read from labels. "
                "Pass classes=[...] from the lowest to the highest."
            )
        found = np.asarray(list(listed or ()) if self.classes is None else list(self.classes))
        different = found.ndim == 1 and len(np.unique(found)) == len(found) >= 2
        if not different:
            raise InvalidArgument(f"classes={self.classes!r} must be two different labels or more.")
        if listed and not np.array_equal(np.unique(found), np.unique(np.asarray(listed))):
            raise InvalidArgument(
                f"classes={found.tolist()} and the schema says {list(listed)}. Leave classes out, "
                "or list those of the schema in order."
            )
        return found

    @property
    def loss(self) -> OrderedLogistic:
        """With thresholds that nothing is known about."""
        return OrderedLogistic(len(self.labels()))

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        return (self.loss,)

    def _bounds_for(self, n_rows: int, n_features: int, n_classes: int) -> Bounds:
        """The bounds with y standing for codes of classes, -1 for none."""
        return super()._bounds_for(n_rows, n_features, n_classes).with_y(float(len(self.labels())))

    def _read(self, X: Any, y: Any) -> tuple[Table, None, Any]:
        table = read_table(self, X, y, classifies=True, numeric=False)
        ordered = self.labels()
        if table.encoded:  # as the places of labels in the sorted list of them
            return table, None, partial(_ranks, np.argsort(ordered))
        check_label_type(y, ordered)
        return table, None, partial(labels_as_codes, classes=ordered)

    def _set_nuisance(self, loss: NuisanceLoss, offset: float) -> None:
        assert isinstance(loss, OrderedLogistic)
        self.thresholds_ = np.array(loss.thresholds) - offset
        self.ordered_classes_ = self.labels()
        self.classes_ = np.unique(self.ordered_classes_)

    def summary_facts(self) -> tuple[tuple[str, str], ...]:
        lower, upper = self.ordered_classes_[:-1], self.ordered_classes_[1:]
        each = zip(lower, upper, self.thresholds_, strict=True)
        return (("thresholds", ", ".join(f"{low} | {high}: {t:.4g}" for low, high, t in each)),)

    def decision_function(self, X: Any) -> np.ndarray:
        """x . theta for each row: the higher, the higher the classes."""
        return self._margins(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        margins = self._margins(X)
        above = expit(margins[:, None] - self.thresholds_)
        ends = np.ones((len(margins), 1))
        chances = -np.diff(np.hstack([ends, above, 0 * ends]), axis=1)
        return chances[:, np.argsort(self.ordered_classes_)]

    def predict(self, X: Any) -> np.ndarray:
        """The most likely class of each row."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _ranks(places: np.ndarray, y: np.ndarray) -> np.ndarray:
    """From codes in the sorted list of labels to places in the ordered one; -1 for none."""
    known = (y >= 0) & (y < len(places))
    return np.where(known, places[np.where(known, y, 0).astype(np.intp)], -1).astype(np.float64)
