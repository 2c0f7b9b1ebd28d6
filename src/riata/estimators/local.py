"""The local model in one process: `fit` plays every person's device in turn, then the server.

For simulation and research. Whoever calls `fit` holds all rows, so nobody is protected from that
person; in a real collection each row stays on its owner's device, which runs `riata.local.Client`.
"""

from __future__ import annotations

import math
from dataclasses import replace
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
from riata.estimators.progress import progress_bar
from riata.local.aggregator import Aggregator
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


class LocalEstimator(BaseEstimator):
    """What all local estimators do: a task from public facts, a report from each row, a model."""

    def _kind(self, columns: int) -> str:
        raise AssertionError("a subclass names its kind of task")

    def _extra(self) -> dict[str, Any]:
        """Fields of the task that only this estimator has."""
        return {}

    def task(self, n_features: int) -> Task:
        """The task that rows of so many columns would answer. Reads nothing."""
        bounds = checked_bounds(self)
        reach = np.broadcast_to(np.asarray(bounds.x, dtype=float), (n_features,)).tolist()
        features: list[dict[str, Any]]
        if np.ndim(bounds.x) == 0:
            both = [-float(bounds.x), float(bounds.x)]
            features = [{"name": "x", "kind": "vector", "size": n_features, "bounds": both}]
        else:
            features = [
                {"name": f"x[{j}]", "kind": "number", "bounds": [-one, one]}
                for j, one in enumerate(reach)
            ]
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

    def _play(self, task: Task, x: Any, targets: np.ndarray | None) -> Aggregator:
        """Every device in turn, and the server that adds their reports up."""
        noise = Noise(checked_seed(self))
        aggregator = Aggregator(task, expected=x.shape[0])
        batch = max(1, _AT_ONCE // x.shape[1])
        steps = -(-x.shape[0] // batch)
        with progress_bar(type(self).__name__, steps, self.verbose) as callback:
            for start in range(0, x.shape[0], batch):
                part = slice(start, start + batch)
                block = x[part]
                block = block.toarray() if sparse.issparse(block) else np.asarray(block)
                encoded = task.encoding.encode_array(block.astype(float))
                answers = None if targets is None else targets[part]
                aggregator.add(play(task, encoded, answers, noise))
                if callback is not None:
                    callback(None)
        self._seeded = noise.seeded
        return aggregator

    def _keep(self, model: LocalModel) -> None:
        self.task_ = model.task
        self.model_ = model
        self.signal_ = model.signal
        self.privacy_ = statement(model.task, model.reports, SIMULATED, seeded=self._seeded)

    def _decision(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        x = rows(self, X, reset=False)
        x = x.toarray() if sparse.issparse(x) else x
        return self.model_.decision(self.task_.encoding.encode_array(x.astype(float)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags


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
        return "mean" if self.threshold == "none" else "sparse-mean"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Play every device and estimate the mean. `y` is ignored."""
        if self.threshold not in THRESHOLDS:
            raise InvalidArgument(
                f"threshold={self.threshold!r} is not known. Use one of {list(THRESHOLDS)}."
            )
        checked_bounds(self)
        x = rows(self, X, reset=True)
        model = learn(self._play(self.task(x.shape[1]), x, None), threshold=self.threshold)
        self._keep(model)
        self.mean_, self.mean_error_ = model.mean, model.errors
        return self


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
        target = self._target()
        x, y = rows_and_targets(self, X, y, numeric=True)
        task = self.task(x.shape[1])
        assert task.target is not None
        self._reach = target["bounds"][1]
        model = learn(self._play(task, x, task.target.scaled(y)), **how)
        self._keep(model)
        return model

    def predict(self, X: Any) -> np.ndarray:
        """Predict y for each row, read as devices read rows."""
        return self._reach * self._decision(X)

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
        if columns + bool(self.fit_intercept) > MOST_COLUMNS:
            return "sparse-linear"
        return "lasso" if self.penalty == "l1" else "linear"

    def _extra(self) -> dict[str, Any]:
        return {"target": self._target(), "intercept": INTERCEPT if self.fit_intercept else 0.0}

    def fit(self, X: Any, y: Any) -> Self:
        """Play every device and learn the coefficients."""
        if self.penalty not in ("l1", "l2"):
            raise InvalidArgument(f'penalty={self.penalty!r} is not known. Use "l1" or "l2".')
        if not self.radius > 0:
            raise InvalidArgument(f"radius={self.radius!r} must be a positive number.")
        target = self._target()
        reach = float(np.max(np.asarray(checked_bounds(self).x)))
        model = self._fit(X, y, radius=self.radius * reach / target["bounds"][1])
        self.coef_, self.coef_error_, self.intercept_ = model.coef, model.errors, model.intercept
        return self


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
        The public classes. Without them those of `y` are taken, and the Statement says so.
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
        x, y = rows_and_targets(self, X, y, numeric=False)
        if self.classes is None:
            check_classification_targets(y)
            self.classes_ = np.unique(y)
        else:
            self.classes_ = np.asarray(self.classes)
        if len(self.classes_) != 2:
            raise InvalidArgument(
                f"{type(self).__name__} learns two classes, got {len(self.classes_)} "
                f"class{'' if len(self.classes_) == 1 else 'es'}. Fit one model for each class "
                "against the rest."
            )
        codes = labels_as_codes(y, self.classes_)
        targets = np.where(codes < 0, 0.0, 2.0 * codes - 1.0)
        model = learn(self._play(self.task(x.shape[1]), x, targets))
        self._keep(model)
        if self.classes is None:
            note = "The classes were taken from the labels."
            self.privacy_ = replace(self.privacy_, notes=(*self.privacy_.notes, note))
        self.coef_, self.coef_error_ = model.coef[None], model.errors[None]
        self.intercept_ = np.array([model.intercept])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """The log odds of the second class."""
        return self._decision(X)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        return self.classes_[(self._decision(X) > 0).astype(int)]

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
