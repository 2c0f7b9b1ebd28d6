"""The local model in one process: `fit` plays every person's device in turn, then the server.

For simulation and research. Whoever calls `fit` holds all rows, so nobody is protected from that
person; in a real collection each row stays on its owner's device, which runs `riata.local.Client`.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from riata.bounds import Bounds
from riata.data.arrays import labels_as_codes, rows, rows_and_targets
from riata.errors import InvalidArgument
from riata.estimators.base import checked_bounds, checked_seed
from riata.estimators.classifier import OBSERVED
from riata.estimators.notebook import NotebookRepr
from riata.estimators.progress import progress_bar
from riata.local.aggregator import Aggregator
from riata.local.channel import LARGEST_EPSILON
from riata.local.fields import LARGEST
from riata.local.learners import learn
from riata.local.learners.mean import THRESHOLDS
from riata.local.learners.model import LocalModel, statement
from riata.local.play import play
from riata.local.task import INTERCEPT, MOST_COLUMNS, Task
from riata.mechanisms.noise import Noise

SIMULATED = (
    "Simulated locally: one process held all rows and played every device. The guarantee is that "
    "of the reports; the holder of the rows has seen them all."
)
#: Numbers of rows that are played at once.
_AT_ONCE = 1 << 22


class LocalEstimator(NotebookRepr, BaseEstimator):
    """What all local estimators do: a task from public facts, a report from each row, a model."""

    def _kind(self, columns: int) -> str:
        raise AssertionError("a subclass names its kind of task")

    def _extra(self) -> dict[str, Any]:
        """Fields of the task that only this estimator has."""
        return {}

    def task(self, n_features: int) -> Task:
        """The task that rows of so many columns would answer. Reads nothing."""
        bounds = checked_bounds(self)
        bounds.check_size(n_features)
        check_number("epsilon", self.epsilon, LARGEST_EPSILON, "it is what one report costs")
        lowest = 0.0 if bounds.nonnegative else -1.0

        def feature(name: str, kind: str, reach: float) -> dict[str, Any]:
            both = [lowest * reach, reach]
            return {"name": name, "kind": kind, "bounds": both, "center": 0.0}

        if np.ndim(bounds.x) == 0:
            features = [feature("x", "vector", float(bounds.x)) | {"size": n_features}]
        else:
            reach = bounds.per_column(n_features).tolist()
            features = [feature(f"x[{j}]", "number", one) for j, one in enumerate(reach)]
        table = {
            "kind": self._kind(n_features),
            "epsilon": self.epsilon,
            "features": features,
            "length": 1.0 if bounds.norm == "l2" else math.sqrt(n_features),
            **self._extra(),
        }
        return Task.from_table(table)

    def plan(self, n_rows: int, n_features: int, **guess: Any) -> Any:
        """What can be learned from so many people. Reads nothing; see `riata.local.Task.plan`."""
        return self.task(n_features).plan(n_rows, **guess)

    def _learn(
        self, task: Task, x: Any, targets: np.ndarray | None, *notes: str, **how: Any
    ) -> LocalModel:
        """Every device in turn, the server that adds their reports up, and what it learns."""
        noise = Noise(checked_seed(self))
        aggregator = Aggregator(task, expected=x.shape[0])
        steps = len(_parts(x))
        with progress_bar(type(self).__name__, steps, self.verbose) as callback:
            for part in _parts(x):
                answers = None if targets is None else targets[part]
                aggregator.add(play(task, _encoded(task, x[part]), answers, noise))
                if callback is not None:
                    callback(None)
        model = learn(aggregator, **how)
        self._keep(model)
        self.privacy_ = statement(task, model.reports, SIMULATED, *notes, seeded=noise.seeded)
        return model

    def _keep(self, model: LocalModel) -> None:
        """What is learned, as attributes."""
        self.task_, self.model_, self.signal_ = model.task, model, model.signal

    def _decision(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        x = rows(self, X, reset=False)
        parts = [self.model_.decision(_encoded(self.task_, x[part])) for part in _parts(x)]
        return np.concatenate(parts)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags


def _parts(x: Any) -> list[slice]:
    """Rows that are looked at together."""
    batch = max(1, _AT_ONCE // x.shape[1])
    return [slice(start, start + batch) for start in range(0, x.shape[0], batch)]


def _encoded(task: Task, block: Any) -> np.ndarray:
    block = block.toarray() if sparse.issparse(block) else np.asarray(block)
    return task.encoding.encode_array(block.astype(float))


def check_number(name: str, value: Any, most: float, why: str) -> None:
    """Raise unless `value` is a number above 0 and at most `most`."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not 0 < value <= most:
        upper = "" if most == math.inf else f" and at most {most:g}"
        raise InvalidArgument(f"{name}={value!r}: {why}. Pass a number above 0{upper}.")


class LocalSparseMean(LocalEstimator):
    """The mean of rows that never leave their owners' devices, where most of it may be 0.

    Parameters
    ----------
    epsilon : float
        What each report costs.
    bounds : Bounds
        Of a row. Rows bounded in l2 give far better means than rows bounded entry by entry.
    threshold : {"hard", "soft", "none"}, default="hard"
        What happens to coordinates that could be noise: set to 0, also pulling the others towards
        0, or nothing.
    random_state : int, optional
        For tests: marks the result "seeded: not private".
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    mean_error_ : ndarray of shape (n_features,)
        Standard errors from the noise of the reports.
    signal_ : bool
        Whether the reports show anything but noise.
    task_, model_, privacy_ : Task, LocalModel, Statement

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, LocalSparseMean
    >>> X = np.zeros((20_000, 1000)); X[:, 3] = 0.8
    >>> model = LocalSparseMean(4.0, bounds=Bounds(x=1.0, norm="l2"), random_state=0).fit(X)
    >>> np.flatnonzero(model.mean_)
    array([3])
    """

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        threshold: str = "hard",
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.threshold = threshold
        self.random_state = random_state
        self.verbose = verbose

    def _kind(self, columns: int) -> str:
        if self.threshold not in THRESHOLDS:
            raise InvalidArgument(
                f"threshold={self.threshold!r} is not known. Use one of {list(THRESHOLDS)}."
            )
        return "mean" if self.threshold == "none" else "sparse-mean"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Play every device and estimate the mean. `y` is ignored."""
        checked_bounds(self)
        x = rows(self, X, reset=True)
        self._learn(self.task(x.shape[1]), x, None, threshold=self.threshold)
        return self

    def _keep(self, model: LocalModel) -> None:
        super()._keep(model)
        self.mean_, self.mean_error_ = model.mean, model.errors


class _LocalRegressor(RegressorMixin, LocalEstimator):
    def _target(self) -> dict[str, Any]:
        reach = checked_bounds(self).y
        if reach is None:
            raise InvalidArgument(
                f"{type(self).__name__} needs a bound on y: devices clip to it. Pass "
                "bounds=Bounds(x=..., y=...)."
            )
        return {"name": "y", "kind": "number", "bounds": [-float(reach), float(reach)]}

    def _fit(self, X: Any, y: Any, **how: Any) -> LocalModel:
        self._target()
        x, y = rows_and_targets(self, X, y, numeric=True)
        task = self.task(x.shape[1])
        assert task.target is not None
        return self._learn(task, x, task.target.scaled(y), **how)

    def predict(self, X: Any) -> np.ndarray:
        """Predict y for each row, read as devices read rows."""
        margins = self._decision(X)
        return self.task_.target.reach * margins

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.regressor_tags.poor_score = True  # on a hundred people, noise is all there is
        return tags


class LocalLasso(_LocalRegressor):
    """Linear regression from reports alone.

    Half of the devices report on x x' and half on y x, each with eight bytes. From 4,096 columns
    on, columns are screened first and only the few that matter are looked at together.

    Parameters
    ----------
    epsilon : float
        What each report costs.
    bounds : Bounds
        Of a row and of y. Rows bounded in l2 give far better models than rows bounded entry by
        entry.
    penalty : {"l1", "l2"}, default="l1"
        For few coefficients, or for many small ones.
    radius : float, default=inf
        The largest l1 norm of the coefficients, with penalty "l1".
    fit_intercept : bool, default=True
        Leave it out for centred data: the constant takes a part of every report.
    random_state : int, optional
        For tests: marks the result "seeded: not private".
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    coef_, coef_error_ : ndarray of shape (n_features,)
        Coefficients and their standard errors from the noise of the reports.
    intercept_ : float
    signal_ : bool
        Whether the reports show anything but noise. If not, the model predicts a constant.
    task_, model_, privacy_ : Task, LocalModel, Statement
    """

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        penalty: str = "l1",
        radius: float = math.inf,
        fit_intercept: bool = True,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.penalty = penalty
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def _kind(self, columns: int) -> str:
        if self.penalty not in ("l1", "l2"):
            raise InvalidArgument(f'penalty={self.penalty!r} is not known. Use "l1" or "l2".')
        if columns + bool(self.fit_intercept) > MOST_COLUMNS:
            return "sparse-linear"
        return "lasso" if self.penalty == "l1" else "linear"

    def _extra(self) -> dict[str, Any]:
        return {"target": self._target(), "intercept": INTERCEPT if self.fit_intercept else 0.0}

    def fit(self, X: Any, y: Any) -> Self:
        """Play every device and learn the coefficients."""
        check_number("radius", self.radius, math.inf, "coefficients of length 0 say nothing")
        self._fit(X, y, radius=self.radius)
        return self

    def _keep(self, model: LocalModel) -> None:
        super()._keep(model)
        self.coef_, self.coef_error_, self.intercept_ = model.coef, model.errors, model.intercept


class LocalKernelRidge(_LocalRegressor):
    """Kernel ridge regression from reports alone, by random Fourier features of length 1.

    Parameters
    ----------
    epsilon : float
        What each report costs.
    bounds : Bounds
        Of a row and of y; columns are divided by their bounds.
    width : float, default=1.0
        Of the Gaussian kernel, where every column lies between -1 and 1.
    pairs : int, default=32
        Pairs of Fourier features. More of them follow the kernel more closely, at more noise.
    random_state : int, optional
        For tests: marks the result "seeded: not private".
    verbose : bool, default=False
        Show a progress bar.
    """

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        width: float = 1.0,
        pairs: int = 32,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.width = width
        self.pairs = pairs
        self.random_state = random_state
        self.verbose = verbose

    def _kind(self, columns: int) -> str:
        return "kernel"

    def _extra(self) -> dict[str, Any]:
        check_number("width", self.width, LARGEST, "rows further apart have little in common")
        most = MOST_COLUMNS // 2
        check_number("pairs", self.pairs, most, "it is the number of Fourier features of a kind")
        if not isinstance(self.pairs, int | np.integer):
            raise InvalidArgument(f"pairs={self.pairs!r} is not whole. Pass a whole number.")
        kernel = {"width": self.width, "pairs": self.pairs}
        return {"target": self._target(), "kernel": kernel}

    def fit(self, X: Any, y: Any) -> Self:
        """Play every device and learn the coefficients of the Fourier features."""
        self._fit(X, y)
        return self


class LocalLogisticRegression(ClassifierMixin, LocalEstimator):
    """Logistic regression from reports alone, for two classes.

    Parameters
    ----------
    epsilon : float
        What each report costs.
    bounds : Bounds
        Of a row.
    classes : sequence of two labels, optional
        The public classes; other labels count as neither. Without them, or with "observed", those
        of `y` are taken, and the Statement says so.
    fit_intercept : bool, default=True
        Leave it out for centred rows and balanced classes.
    random_state : int, optional
        For tests: marks the result "seeded: not private".
    verbose : bool, default=False
        Show a progress bar.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    coef_, coef_error_ : ndarray of shape (1, n_features)
    intercept_ : ndarray of shape (1,)
    signal_ : bool
        Whether the reports show anything but noise.
    task_, model_, privacy_ : Task, LocalModel, Statement
    """

    def __init__(
        self,
        epsilon: float,
        *,
        bounds: Bounds | None = None,
        classes: Any = None,
        fit_intercept: bool = True,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.classes = classes
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.verbose = verbose

    def _kind(self, columns: int) -> str:
        return "logistic"

    def _extra(self) -> dict[str, Any]:
        target = {"name": "y", "kind": "yes-no"}
        return {"target": target, "intercept": INTERCEPT if self.fit_intercept else 0.0}

    def fit(self, X: Any, y: Any) -> Self:
        """Play every device and learn the log odds."""
        checked_bounds(self)
        observed = self.classes is None or (
            isinstance(self.classes, str) and self.classes == OBSERVED
        )
        labels = np.asarray(y) if observed and y is not None else None
        x, y = rows_and_targets(self, X, y, numeric=False)
        notes: tuple[str, ...] = ()
        if labels is not None:
            check_classification_targets(labels)
            notes = ("The classes were taken from the labels.",)
        classes = self._two_classes(labels)
        codes = labels_as_codes(y, classes)
        targets = np.where(codes < 0, 0.0, 2.0 * codes - 1.0)
        self._learn(self.task(x.shape[1]), x, targets, *notes)
        self.classes_ = classes
        return self

    def _keep(self, model: LocalModel) -> None:
        super()._keep(model)
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
