"""A search over a public grid, with one privacy budget for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from riata.data.arrays import rows_and_targets
from riata.data.source import Source
from riata.errors import Incompatible
from riata.estimators.base import PrivateLinearModel
from riata.estimators.classifier import PrivateClassifier
from riata.estimators.pipelines import warn_of_surrounding_pipeline
from riata.fitting import Request, release_score, search_digest
from riata.fitting.arguments import budget_of, check_ledger, seed_from
from riata.fitting.dask_rows import is_collection
from riata.fitting.prediction_rows import bounds_with_schema, signs
from riata.fitting.statement import CLIPPING_NOTE, DELTA_NOTE, LABEL_NOTE, default_delta_note
from riata.mechanisms.discrete import geometric, uniform_int
from riata.mechanisms.noise import Noise
from riata.privacy.budget import REPLACE_LABEL, Budget
from riata.privacy.statement import Statement
from riata.releases import notify_of_search, unobserved
from riata.tuning.candidates import check_estimator, check_expected, check_fits, grid_points
from riata.tuning.planning import SearchPlan, plan_search
from riata.tuning.scoring import classifies, error_query, score_of
from riata.tuning.suppression import suppressed_output

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger


def _if_available(name: str) -> Any:
    """Whether the estimator, or the one that was found, has a method."""
    return available_if(
        lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), name)
    )


@dataclass(eq=False, repr=False)
class PrivateSearch(MetaEstimatorMixin, BaseEstimator):
    """Choose parameters from a grid with differential privacy, and keep the best model.

    A random number of candidates is tried, each drawn at random from the grid, fitted and scored
    with noise on the same rows. Only the best is kept. The budget covers every fit, every score
    and the choice.

    Parameters
    ----------
    estimator : estimator
        A private estimator of the central model. Its epsilon, delta, ledger and random_state must
        be None: the search has its own.
    grid : dict or list of dict
        Lists of values by the names of parameters, as for `sklearn.model_selection.ParameterGrid`.
        Public. Parameters that touch privacy (epsilon, delta, bounds, classes, adjacency, ledger,
        random_state, data_quality) are refused, and so are max_weight and max_exposure: the rows
        of a search have no weights.
    epsilon : float
        The privacy budget of the whole search.
    delta : float, optional
        As for the estimators. 0 asks for pure differential privacy.
    expected : float or "auto", default="auto"
        How many candidates are tried on average, at least 1. The number itself has a geometric
        distribution and stays secret. "auto" is twice the size of the grid: each candidate is then
        tried with a probability of about two thirds.
    scoring : {"auto", "accuracy", "absolute-error", "squared-error"}, default="auto"
        What the candidates are compared by. "auto" is the accuracy of classifiers and the mean
        absolute error of regressors. Predictions are clipped to the bound on y for it.
    ledger : Ledger, optional
        Where the whole search is charged, once, before a row is read.
    random_state : int, optional
        Makes the search reproducible, for tests. Such a model is marked as not private.
    verbose : bool, default=False
        Whether to show that the search runs. How far it is would reveal how long it is.

    Attributes
    ----------
    best_estimator_ : estimator
        The fitted winner. Its `privacy_` is that of the search.
    best_params_ : dict
        What the grid says about it.
    best_score_ : float
        Its private score on the rows of the fit, larger is better: the accuracy, or minus the mean
        error.
    best_score_error_ : float
        The standard deviation of the noise of a score. The best of several noisy scores is too
        large more often than too small.
    privacy_ : Statement
        The guarantee of everything above.
    n_features_in_, feature_names_in_ : int, ndarray
        As in scikit-learn.

    Notes
    -----
    *Privacy.* The search is one release of `riata.privacy.events.RandomlyRepeated`: proofs are in
    docs/privacy/tuning.md. Public are the grid, the number of rows and whatever is public for the
    estimator. How many candidates were tried, which ones, and how the others did is neither kept
    nor shown: warnings and log lines of the whole process are off until the search is over. The
    time that a search takes is not protected, and grows with the number of them.

    *Differences from the paper.* Papernot and Steinke (2022) bound Renyi divergences. The same
    argument with the exact curve of a run gives a smaller epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> from riata import Bounds, PrivateLasso, PrivateSearch
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 20))
    >>> y = 0.6 * X[:, 3] - 0.4 * X[:, 7] + 0.1 * rng.standard_normal(20_000)
    >>> lasso = PrivateLasso(None, bounds=Bounds(x=1.0, y=2.0), solver="frank-wolfe")
    >>> search = PrivateSearch(lasso, {"radius": [0.1, 1.0, 10.0]}, epsilon=1.0).fit(X, y)
    >>> search.privacy_.delta
    1e-06
    """

    estimator: Any
    grid: Any
    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    expected: float | str = "auto"
    scoring: str = "auto"
    ledger: Ledger | None = None
    random_state: Any = None
    verbose: bool = False

    def plan(self, n_rows: int, n_features: int) -> SearchPlan:
        """What a search on data of this shape would do and cost. Reads nothing, charges nothing."""
        self._check_parameters()
        return self._planned(self.estimator, (n_rows, n_features))

    def plan_for(self, source: Source) -> SearchPlan:
        """The same for the rows of a source. Only their number is found out, which is public."""
        self._check_parameters()
        return self._planned(*self._first_request(source, None)[:2])

    def fit(self, X: Any, y: Any = None) -> Self:
        """Search, and spend the budget.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_features), or Source
        y : array-like of shape (n_rows,)
            Numbers or labels, as for the estimator. Left out for a source, which has its own.
        """
        warn_of_surrounding_pipeline()
        self._check_parameters()
        estimator, shape, request = self._first_request(X, y)
        plan = self._planned(estimator, shape)
        check_fits(plan.estimators, shape)
        seed = seed_from(self.random_state)
        noise = Noise(seed)
        digest = search_digest(self, request, plan.event, seed)
        if self.ledger is not None:
            name = f"PrivateSearch, {type(estimator).__name__}"
            summary = {"estimator": name, **plan.summary(), "request": digest}
            self.ledger.charge(plan.event, adjacency=plan.budget.adjacency, summary=summary)
        source = X if isinstance(X, Source) else None
        with _status(self.verbose), suppressed_output():
            X, y = _arrays(X, y, request.classes, estimator)
            best, score, number = self._best(plan, X, y, noise)
        if source is not None:
            _set_source(best, source)
        elif hasattr(estimator, "feature_names_in_"):
            best.feature_names_in_ = estimator.feature_names_in_
        found = {"candidate": number, "score": score, "coef": best.coef_}
        notify_of_search(plan.event, len(plan.parameters), {**found, "intercept": best.intercept_})
        self.best_estimator_ = best
        self.best_params_ = plan.parameters[number]
        self.best_score_, self.best_score_error_ = score, plan.score_error
        self.privacy_ = best.privacy_ = self._statement(plan, request, noise.seeded, digest)
        self.n_features_in_ = best.n_features_in_
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_
        return self

    @unobserved()
    def _best(
        self, plan: SearchPlan, X: Any, y: Any, noise: Noise
    ) -> tuple[PrivateLinearModel, float, int]:
        """Every access to the rows. Of all runs only the one with the largest score is returned."""
        best: tuple[PrivateLinearModel, float, int] | None = None
        for _ in range(geometric(1 / plan.expected, noise)):
            number = uniform_int(len(plan.estimators), noise)
            model = clone(plan.estimators[number])
            if noise.seeded:
                model.random_state = uniform_int(2**31, noise)
            score = self._scored(plan, number, model.fit(X, y), X, y, noise)
            if best is None or score > best[1]:
                best = (model, score, number)
        assert best is not None
        return best

    def _scored(
        self, plan: SearchPlan, number: int, model: PrivateLinearModel, X: Any, y: Any, noise: Noise
    ) -> float:
        bounds, n_rows = plan.bounds[number], plan.plans[number].problem.n_rows
        query = error_query(plan.scoring, model, bounds, n_rows)
        error = release_score(
            query, plan.score, model.request(X, y)[1], bounds=bounds, noise=noise,
            adjacency=plan.budget.adjacency, engine=model.engine,
        )  # fmt: skip
        return score_of(plan.scoring, error)

    def _first_request(self, X: Any, y: Any) -> tuple[PrivateLinearModel, tuple[int, int], Request]:
        """The estimator with its classes named, the shape of the rows, and one fit of it."""
        estimator = clone(self.estimator).set_params(epsilon=1.0, delta=0.0)
        request, _ = estimator.request(X, y)
        if request.of_people:
            raise Incompatible(
                "PrivateSearch", "rows of people", because="its runs count rows",
                instead="Use parameters that are fixed in advance",
            )  # fmt: skip
        shape = (request.n_rows, estimator.n_features_in_)
        names = getattr(estimator, "feature_names_in_", None)
        estimator = clone(self.estimator)
        if names is not None:
            estimator.feature_names_in_ = names
        if isinstance(estimator, PrivateClassifier):
            estimator.classes = request.classes
        if isinstance(X, Source) and hasattr(estimator, "bounds"):
            estimator.bounds = bounds_with_schema(estimator.bounds, X.schema)
        return estimator, shape, request

    def _planned(self, estimator: PrivateLinearModel, shape: tuple[int, int]) -> SearchPlan:
        candidates = grid_points(estimator, self.grid)
        return plan_search(
            estimator,
            candidates,
            budget_of(self.epsilon, self.delta, estimator.adjacency, shape[0]),
            shape,
            check_expected(self.expected, len(candidates)),
            self.scoring,
        )

    def _check_parameters(self) -> None:
        """Everything that can be wrong without any data."""
        estimator = check_estimator(self.estimator)
        check_expected(self.expected, len(grid_points(estimator, self.grid)))
        Budget(self.epsilon, 0.0 if self.delta is None else self.delta, estimator.adjacency)
        check_ledger(self.ledger, self.random_state)

    def _statement(
        self, plan: SearchPlan, request: Request, seeded: bool, digest: str
    ) -> Statement:
        fitted, total = self.best_estimator_.privacy_, plan.spent
        notes = (CLIPPING_NOTE, *request.notes)
        if plan.budget.adjacency == REPLACE_LABEL:
            notes += (LABEL_NOTE,)
        if self.delta is None:
            notes += (default_delta_note(total.delta),)
        if total.delta * request.n_rows >= 1:
            notes += (DELTA_NOTE,)
        found = ", ".join(f"{k}={v!r}" for k, v in self.best_params_.items())
        return Statement(
            epsilon=total.epsilon,
            delta=total.delta,
            adjacency=plan.budget.adjacency,
            solver=f"random search, found {found or 'the only candidate'}: {fitted.solver}",
            steps=fitted.steps,
            accountant=total.accountant,
            releases=plan.releases,
            public={**fitted.public, "candidates": len(plan.parameters)},
            seeded=seeded,
            notes=notes,
            request=digest,
        )

    @_if_available("predict")
    def predict(self, X: Any) -> np.ndarray:
        """What the best model predicts."""
        return self._fitted.predict(X)

    @_if_available("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """The margins, or calibrated log-odds, of the best model."""
        return self._fitted.decision_function(X)

    @_if_available("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class under the best model."""
        return self._fitted.predict_proba(X)

    @_if_available("predict_log_proba")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of `predict_proba`."""
        return self._fitted.predict_log_proba(X)

    @_if_available("score")
    def score(self, X: Any, y: Any) -> float:
        """The exact score of the best model: not for the rows of the fit."""
        return self._fitted.score(X, y)

    @property
    def _fitted(self) -> PrivateLinearModel:
        check_is_fitted(self)
        return self.best_estimator_

    @property
    def classes_(self) -> np.ndarray:
        """The labels, of a classifier."""
        return self._fitted.classes_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags, theirs = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = theirs.estimator_type
        tags.classifier_tags, tags.regressor_tags = theirs.classifier_tags, theirs.regressor_tags
        tags.input_tags, tags.target_tags = theirs.input_tags, theirs.target_tags
        tags.non_deterministic = self.random_state is None
        return tags


def _arrays(X: Any, y: Any, classes: Any, estimator: PrivateLinearModel) -> tuple[Any, Any]:
    """The rows and targets as arrays, once for all runs; collections stay where they are."""
    if is_collection(X):
        return X, y
    if not isinstance(X, Source):
        return rows_and_targets(clone(estimator), X, y, numeric=classes is None)
    x, codes = X.load()
    assert codes is not None
    if classes is not None:
        labels = np.array([*classes.tolist(), None], dtype=object)  # -1 is no class
        return x, labels[codes.astype(int)]
    return x, signs(codes) if classifies(estimator) else codes


def _set_source(model: PrivateLinearModel, source: Source) -> None:
    """What a model knows that was fitted from a source, and the intercept in its units."""
    model.schema_ = source.schema
    if not source.schema.unnamed:
        model.feature_names_in_ = np.array(source.schema.feature_names, dtype=object)
    if not classifies(model):
        model.intercept_ += source.schema.target_centre


@contextmanager
def _status(verbose: bool) -> Iterator[None]:
    """A sign of life that says nothing about how far the search is."""
    if not verbose:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("PrivateSearch"):
        yield
