"""The estimators of the local model: `fit` simulates every person's device, then the server.

For simulation and research. Whoever calls `fit` holds all rows, so nobody is protected from that
person; in a real collection each row stays on its owner's device, which runs `riata.local.Client`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from riata.arguments import check_known, check_positive, is_whole
from riata.data.arrays import labels_as_codes, rows, rows_and_targets
from riata.errors import InvalidArgument
from riata.estimators.base import checked_bounds
from riata.estimators.classifier import is_observed
from riata.estimators.local_base import LocalEstimator
from riata.estimators.parameters import documented
from riata.files.fields import LARGEST
from riata.fitting.prediction_rows import signs
from riata.local.kinds import INTERCEPT, MOST_COLUMNS
from riata.local.learners.mean import THRESHOLDS
from riata.local.learners.model import LocalModel


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class LocalSparseMean(LocalEstimator):
    """The mean of rows that never leave their owners' devices, where most of it may be 0.

    Parameters
    ----------
    $local_epsilon
    bounds : Bounds
        Of a row. Rows bounded in l2 give far better means than rows bounded entry by entry.
    threshold : {"hard", "soft", "none"}, default="hard"
        What happens to coordinates that could be noise: set to 0, also pulling the others towards
        0, or nothing.
    $local_options

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    mean_error_ : ndarray of shape (n_features,)
        Standard errors from the noise of the reports.
    $local_fitted

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, LocalSparseMean
    >>> X = np.zeros((20_000, 1000)); X[:, 3] = 0.8
    >>> model = LocalSparseMean(4.0, bounds=Bounds(x=1.0, norm="l2"), random_state=0).fit(X)
    >>> np.flatnonzero(model.mean_)
    array([3])
    """

    threshold: str = "hard"

    def _task_kind(self, columns: int) -> str:
        check_known("threshold", self.threshold, THRESHOLDS)
        return "mean" if self.threshold == "none" else "sparse-mean"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Simulate every device and estimate the mean. `y` is ignored."""
        checked_bounds(self)
        x = rows(self, X, reset=True)
        self._simulate(self.task(x.shape[1]), x, None, threshold=self.threshold)
        return self

    def set_model(self, model: LocalModel) -> None:
        super().set_model(model)
        self.mean_, self.mean_error_ = model.mean, model.errors


@dataclass(eq=False, repr=False, kw_only=True)
class _LocalLinear(LocalEstimator):
    """A model with coefficients and, usually, an intercept."""

    fit_intercept: bool = True

    @abstractmethod
    def _target(self) -> dict[str, Any]:
        """The target of the task."""

    def _task_fields(self) -> dict[str, Any]:
        return {"target": self._target(), "intercept": INTERCEPT if self.fit_intercept else 0.0}


class _LocalRegressor(RegressorMixin, LocalEstimator):
    def _target(self) -> dict[str, Any]:
        reach = checked_bounds(self).y
        if reach is None:
            raise InvalidArgument(
                f"{type(self).__name__} needs a bound on y: devices clip to it. Pass "
                "bounds=Bounds(x=..., y=...)."
            )
        return {"name": "y", "kind": "number", "bounds": [-float(reach), float(reach)]}

    def _solve_options(self) -> dict[str, Any]:
        """What `Aggregator.solve` is to know."""
        return {}

    def fit(self, X: Any, y: Any) -> Self:
        """Simulate every device, and learn from their reports."""
        options = self._solve_options()
        self._target()
        x, y = rows_and_targets(self, X, y, numeric=True)
        task = self.task(x.shape[1])
        assert task.target is not None
        self._simulate(task, x, task.target.scale(y), **options)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict y for each row, read as devices read rows."""
        margins, target = self._decision(X), self.task_.target
        assert target is not None
        return target.reach * margins

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # on a hundred people, noise is all there is
        return tags


class _LocalLinearRegressor(_LocalRegressor, _LocalLinear):
    def set_model(self, model: LocalModel) -> None:
        super().set_model(model)
        self.coef_, self.coef_error_, self.intercept_ = model.coef, model.errors, model.intercept


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class LocalLasso(_LocalLinearRegressor):
    """Linear regression from reports alone.

    Half of the devices report on x x' and half on y x, each with eight bytes. From 4,096 columns
    on, columns are screened first and only the few that matter are looked at together.

    Parameters
    ----------
    $local_epsilon
    bounds : Bounds
        Of a row and of y. Rows bounded in l2 give far better models than rows bounded entry by
        entry.
    penalty : {"l1", "l2"}, default="l1"
        For few coefficients, or for many small ones.
    radius : float, default=inf
        The largest l1 norm of the coefficients, with penalty "l1".
    fit_intercept : bool, default=True
        Leave it out for centred data: the constant takes a part of every report.
    $local_options

    Attributes
    ----------
    coef_, coef_error_ : ndarray of shape (n_features,)
        Coefficients and their standard errors from the noise of the reports.
    intercept_ : float
    $local_fitted
    """

    penalty: str = "l1"
    radius: float = math.inf

    def _task_kind(self, columns: int) -> str:
        if self.penalty not in ("l1", "l2"):
            raise InvalidArgument(f'penalty={self.penalty!r} is not known. Use "l1" or "l2".')
        if columns + bool(self.fit_intercept) > MOST_COLUMNS:
            return "sparse-linear"
        return "lasso" if self.penalty == "l1" else "linear"

    def _solve_options(self) -> dict[str, Any]:
        check_positive("radius", self.radius, "coefficients of length 0 say nothing", math.inf)
        return {"radius": self.radius}


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class LocalKernelRidge(_LocalRegressor):
    """Kernel ridge regression from reports alone, by random Fourier features of length 1.

    Parameters
    ----------
    $local_epsilon
    bounds : Bounds
        Of a row and of y; columns are divided by their bounds.
    width : float, default=1.0
        Of the Gaussian kernel, where every column lies between -1 and 1.
    pairs : int, default=32
        Pairs of Fourier features. More of them follow the kernel more closely, at more noise.
    $local_options

    Attributes
    ----------
    $local_fitted
    """

    width: float = 1.0
    pairs: int = 32

    def _task_kind(self, columns: int) -> str:
        return "kernel"

    def _task_fields(self) -> dict[str, Any]:
        check_positive("width", self.width, "rows further apart have little in common", LARGEST)
        most = MOST_COLUMNS // 2
        check_positive("pairs", self.pairs, "it is the number of Fourier features of a kind", most)
        if not is_whole(self.pairs):
            raise InvalidArgument(f"pairs={self.pairs!r} is not whole. Pass a whole number.")
        kernel = {"width": self.width, "pairs": self.pairs}
        return {"target": self._target(), "kernel": kernel}


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class LocalPoissonRegression(_LocalLinearRegressor):
    """Regression of counts from reports alone: the logarithm of their mean is linear.

    Parameters
    ----------
    $local_epsilon
    bounds : Bounds
        Of a row, and of y: counts lie between 0 and it.
    binary : sequence of int, optional
        The columns that hold 0 and 1, as for `LocalLogisticRegression`.
    fit_intercept : bool, default=True
        Leave it out for centred rows and counts of mean 1.
    $local_options

    Attributes
    ----------
    coef_, coef_error_ : ndarray of shape (n_features,)
    intercept_ : float
    $local_fitted
    """

    binary: Any = None

    def _task_kind(self, columns: int) -> str:
        return "poisson"

    def _target(self) -> dict[str, Any]:
        target = super()._target()
        return target | {"bounds": [0.0, target["bounds"][1]]}

    def predict(self, X: Any) -> np.ndarray:
        """Predict the mean count of each row, at most the largest count."""
        margins, target = self._decision(X), self.task_.target
        assert target is not None
        return np.exp(np.minimum(margins, math.log(target.bounds[1])))


@documented
@dataclass(eq=False, repr=False, kw_only=True)
class LocalLogisticRegression(ClassifierMixin, _LocalLinear):
    """Logistic regression from reports alone, for two classes.

    Parameters
    ----------
    $local_epsilon
    bounds : Bounds
        Of a row.
    classes : sequence of two labels, optional
        The public classes; other labels count as neither. Without them, or with "observed", those
        of `y` are taken, and the Statement says so.
    binary : sequence of int, optional
        The columns that hold 0 and 1, from public knowledge; ``range(n_features)`` for all. Models
        then know their distribution, which matters where 1 is rare. Other values are clipped
        between them.
    fit_intercept : bool, default=True
        Leave it out for centred rows and balanced classes.
    $local_options

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_, coef_error_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    $local_fitted
    """

    classes: Any = None
    binary: Any = None

    def _task_kind(self, columns: int) -> str:
        return "logistic"

    def _target(self) -> dict[str, Any]:
        return {"name": "y", "kind": "yes-no"}

    def fit(self, X: Any, y: Any) -> Self:
        """Simulate every device and learn the log odds."""
        checked_bounds(self)
        observed = self.classes is None or is_observed(self.classes)
        labels = np.asarray(y) if observed and y is not None else None
        x, y = rows_and_targets(self, X, y, numeric=False)
        notes: tuple[str, ...] = ()
        if labels is not None:
            check_classification_targets(labels)
            notes = ("The classes were taken from the labels.",)
        classes = self._two_classes(labels)
        codes = labels_as_codes(y, classes)
        self._simulate(self.task(x.shape[1]), x, signs(codes), *notes)
        self.classes_ = classes
        return self

    def set_model(self, model: LocalModel) -> None:
        super().set_model(model)
        self.coef_, self.coef_error_ = model.coef[None], model.errors[None]
        self.intercept_ = np.array([model.intercept])

    def _two_classes(self, labels: np.ndarray | None) -> np.ndarray:
        """Those that the user named, or those of the labels."""
        if labels is None and isinstance(self.classes, str):
            raise InvalidArgument(
                f'classes={self.classes!r} must be a list of two labels, or "observed".'
            )
        classes = np.unique(np.asarray(self.classes) if labels is None else labels)
        if len(classes) != 2:
            got = f"{len(classes)} class{'' if len(classes) == 1 else 'es'}"
            hint = (
                "Pass classes=[...] with both labels that could occur."
                if len(classes) < 2
                else "Fit one model for each class against the rest."
            )
            raise InvalidArgument(
                f"Only binary classification is supported: {type(self).__name__} learns two "
                f"classes, got {got}. {hint}"
            )
        return classes

    def decision_function(self, X: Any) -> np.ndarray:
        """The log odds of the second class."""
        return self._decision(X)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        margins = self._decision(X)
        return self.classes_[(margins > 0).astype(int)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probabilities of both classes."""
        margins = self._decision(X)
        chance = 0.5 * (1.0 + np.tanh(margins / 2.0))
        return np.column_stack([1.0 - chance, chance])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags
