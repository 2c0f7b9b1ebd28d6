"""What every estimator does: check arguments, ask for a fit, keep what was released."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from riata.arguments import is_auto
from riata.bounds import Bounds
from riata.data.schema import Schema
from riata.data.source import Source
from riata.engines.choice import RowSource, check_engine
from riata.errors import DataQualityWarning, InvalidArgument
from riata.estimators.pipelines import warn_of_surrounding_pipeline
from riata.estimators.summary_mixin import SummaryMixin
from riata.fitting import AutomaticRadius, ExtraReleases, Fitted, Request, plan, run
from riata.fitting.arguments import budget_of, check_ledger, seed_from
from riata.fitting.dask_rows import Convert
from riata.fitting.data_quality import DataQuality, check_countable
from riata.fitting.prediction_rows import bounds_with_schema, encoded
from riata.fitting.request import arguments_of
from riata.fitting.rows import Table, read_table
from riata.fitting.statement import default_delta_note
from riata.fitting.unpenalized import unpenalized_columns
from riata.losses import Loss
from riata.privacy.budget import Budget
from riata.sets import ConstraintSet
from riata.solvers import Plan, Solution, Solver

if TYPE_CHECKING:  # SQLAlchemy is slow to import
    from riata.privacy.ledger import Ledger

#: Where a fit writes down what it released, if anywhere.
Checkpointed = str | os.PathLike[str] | None


def _errors(solution: Solution) -> np.ndarray:
    """The standard error of each coefficient, NaN for those that the solver says nothing about."""
    errors = np.full(solution.theta.size, math.nan)
    if solution.errors is not None:
        errors[solution.theta.support] = solution.errors
    return errors


def _covariance(solution: Solution) -> np.ndarray:
    """What the solver says about all coefficients and the intercept, 0 for those left out."""
    assert solution.covariance is not None
    places = np.append(solution.theta.support, solution.theta.size)
    found = np.zeros((2, solution.theta.size + 1, solution.theta.size + 1))
    found[np.ix_(np.arange(2), places, places)] = solution.covariance
    return found


def _selection_order(solution: Solution) -> np.ndarray:
    """The place of each column in the order of selection, from 1; 0 for the others."""
    order = np.zeros(solution.theta.size, dtype=np.int64)
    order[list(solution.selected)] = np.arange(1, len(solution.selected) + 1)
    return order


def checked_bounds(estimator: Any) -> Bounds:
    """The bounds of an estimator, which has to have some, or of the schema of its rows."""
    schema: Schema | None = getattr(estimator, "schema_", None)
    bounds: Bounds | None = estimator.bounds
    if bounds is not None and not isinstance(bounds, Bounds):
        raise InvalidArgument(
            f"bounds must be a Bounds, got {type(bounds).__name__}. "
            "Write bounds=Bounds(x=..., y=...)."
        )
    if schema is not None:
        return bounds_with_schema(bounds, schema)
    if bounds is None:
        raise InvalidArgument(
            f"{type(estimator).__name__} needs bounds: taking them from the data would reveal it. "
            "Pass bounds=Bounds(x=..., y=...)."
        )
    return bounds


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearModel(SummaryMixin, BaseEstimator):
    """A linear model. Subclasses say which losses over which set.

    `request` and `request_for_shape` are the way from an estimator to `riata.fitting`.
    """

    solver: str | Solver = "auto"
    steps: int | str = "auto"
    fit_intercept: bool = True
    unpenalized: Any = None
    adjacency: str = "replace-one"
    ledger: Ledger | None = None
    engine: str = "auto"
    random_state: Any = None
    verbose: bool = False
    data_quality: bool = False

    #: Whether it has an intercept, and not other parameters in its place.
    has_intercept: ClassVar[bool] = True

    #: Whether the target of a schema is a duration with an event.
    reads_events: ClassVar[bool] = False

    #: Whether numbers of a schema may get knots by default.
    curves: ClassVar[bool] = False

    # What subclasses say.

    def _losses(self, classes: np.ndarray | None) -> tuple[Loss, ...]:
        raise AssertionError("a subclass names its losses")

    def _joint_loss(self, classes: np.ndarray | None) -> Loss | None:
        """The loss of all classes together, if there are several and the model has one."""
        return None

    def _set(self, bounds: Bounds) -> ConstraintSet | AutomaticRadius:
        raise AssertionError("a subclass names its set")

    def _solver(self) -> tuple[str | Solver, int | str]:
        """The solver, and its number of steps if it does not have its own."""
        return self.solver, self.steps

    def _extra_releases(self) -> ExtraReleases:
        return ExtraReleases()

    def _bounds_for(self, n_rows: int, n_features: int, n_classes: int) -> Bounds:
        """The bounds of a fit on rows of this shape."""
        return self.row_bounds()

    def _named_classes(self) -> np.ndarray | None:
        """The public labels of the constructor, for classifiers."""
        return None

    def _notes(self, classes: np.ndarray | None) -> tuple[str, ...]:
        return ()

    def _read(self, X: Any, y: Any) -> tuple[Table, np.ndarray | None, Any]:
        """The rows, the classes if there are some, and what targets go through."""
        return read_table(self, X, y, classifies=False, numeric=True), None, None

    # What all of them do.

    def check_parameters(self) -> None:
        """Raise for everything that can be wrong with the arguments without any data."""
        Budget(self.epsilon, 0.0 if self.delta is None else self.delta, self.adjacency)
        check_engine(self.engine)
        check_ledger(self.ledger, self.random_state)

    def check_columns(self, n_features: int) -> None:
        """Raise unless the arguments suit a model of rows with so many columns."""
        self.check_parameters()
        bounds = self.row_bounds()
        bounds.check_size(n_features)
        given = self._set(bounds)
        ball = given.for_solver(None) if isinstance(given, AutomaticRadius) else given
        ball.sized(n_features)

    def row_bounds(self) -> Bounds:
        """The bounds that rows are clipped into: those of the schema, for rows of a source."""
        return checked_bounds(self)

    @property
    def _schema(self) -> Schema | None:
        """The schema of the source that it is, or was, fitted to."""
        return getattr(self, "schema_", None)

    @property
    def fits_curves(self) -> bool:
        """Whether numbers of a schema get knots by default, where the schema does not say.

        The rule was drawn for what is chosen automatically: who names a solver, a radius or
        bounds, or wants pure differential privacy or none, has lines.
        """
        chosen = (self.solver, getattr(self, "radius", "auto"))
        automatic = all(map(is_auto, chosen))
        named = getattr(self, "bounds", None) is not None
        private = self.delta != 0 and self.epsilon != math.inf
        return self.curves and automatic and not named and private

    def n_coefficients(self, n_features: int) -> int:
        """How many coefficients a fit on rows of so many columns has, for each class."""
        return n_features

    def request_for_shape(
        self,
        n_rows: int,
        n_features: int,
        *,
        rows_of_a_person: int | None = None,
        classes: np.ndarray | None = None,
    ) -> Request:
        """What a fit on rows of this shape asks for. Reads nothing.

        Parameters
        ----------
        n_rows, n_features : int
        rows_of_a_person : int, optional
            How many rows each person has, if people are protected.
        classes : ndarray, optional
            The public labels, if they are not named in the constructor.
        """
        self.check_parameters()
        classes = self._named_classes() if classes is None else classes
        bounds = self._bounds_for(n_rows, n_features, 0 if classes is None else len(classes))
        budget = budget_of(self.epsilon, self.delta, self.adjacency, n_rows, rows_of_a_person)
        solver, steps = self._solver()
        default = (default_delta_note(budget.delta),) if self.delta is None else ()
        return Request(
            losses=self._losses(classes),
            set=self._set(bounds),
            bounds=bounds,
            budget=budget,
            n_rows=n_rows,
            n_features=self.n_coefficients(n_features),
            solver=solver,
            steps=steps,
            fit_intercept=bool(self.fit_intercept),
            extra_releases=replace(self._extra_releases(), data_quality=self._counts_quality()),
            classes=classes,
            schema=self._schema,
            estimator=type(self),
            parameters=arguments_of(self),
            notes=(*default, *self._notes(classes)),
            joint_loss=self._joint_loss(classes),
            unpenalized=self._unpenalized(n_features),
        )

    def _unpenalized(self, n_features: int) -> tuple[int, ...]:
        """Columns that are always in the model: of the constructor and of the schema."""
        names = getattr(self, "feature_names_in_", None)
        return unpenalized_columns(self.unpenalized, n_features, names, self._schema)

    def _counts_quality(self) -> bool:
        """Whether it is counted what is wrong with the rows."""
        if not isinstance(self.data_quality, bool | np.bool_):
            raise InvalidArgument(f"data_quality={self.data_quality!r} must be True or False.")
        return bool(self.data_quality)

    def request(self, X: Any, y: Any = None, **of_rows: Any) -> tuple[Request, RowSource]:
        """What `fit(X, y)` asks for, and the rows that it would read: none was read yet.

        `of_rows` are what else a fit is given for each row: weights, exposures.
        """
        self.check_parameters()
        if not isinstance(X, Source):  # whose schema may have the bounds
            self.__dict__.pop("schema_", None)
            self.row_bounds()
        table, classes, convert = self._read(X, y)
        if self._counts_quality():
            check_countable(self._schema)
        request = self.request_for_shape(
            *table.shape, rows_of_a_person=table.rows_of_a_person, classes=classes
        )
        return request, table.with_targets(self._coded(convert, request, table, of_rows))

    def _coded(
        self, convert: Convert | None, request: Request, table: Table, of_rows: Mapping[str, Any]
    ) -> Convert | None:
        """What targets go through, where rows may have weights as well."""
        return convert

    def plan(self, n_rows: int, n_features: int) -> Plan:
        """What a fit on data of this shape would do and cost. Reads nothing, charges nothing."""
        return plan(self.request_for_shape(n_rows, n_features)).plan

    def fit(self, X: Any, y: Any = None, *, checkpoint: Checkpointed = None) -> Self:
        """Fit the model and spend the budget.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_features), or Source
        y : array-like of shape (n_rows,)
            Numbers, or labels. Left out for a source, which has its own.
        checkpoint : path, optional
            A file that keeps what was released so far. The same call with the same file goes on
            where a fit was stopped, for what was charged when it began.
        """
        return self._fit(*self.request(X, y), checkpoint)

    def _fit(self, request: Request, rows: RowSource, checkpoint: Checkpointed) -> Self:
        warn_of_surrounding_pipeline()
        planned = plan(replace(request, seed=seed_from(self.random_state)))
        self._set_attributes(
            run(
                planned, rows, engine=self.engine, ledger=self.ledger, checkpoint=checkpoint,
                verbose=self.verbose,
            )
        )  # fmt: skip
        if hasattr(self, "data_quality_"):
            for sentence in self.data_quality_.sentences:
                warnings.warn(sentence, DataQualityWarning, stacklevel=2)
        return self

    def _set_attributes(self, fitted: Fitted) -> None:
        """Coefficients, and what the solver says about their errors: NaN where it says nothing."""
        request = fitted.planned.request
        shape = () if request.classes is None else (len(fitted.solutions),)

        def each(value: Callable[[Solution], Any], kind: type = np.float64) -> Any:
            first, *others = fitted.solutions
            found: np.ndarray = np.asarray(value(first), dtype=kind)
            values = np.empty((len(fitted.solutions), *found.shape), dtype=kind)
            values[0] = found
            for k, one in enumerate(others, 1):  # of many columns, few copies at a time
                values[k] = value(one)
            return values.reshape(shape + values.shape[1:])[()]

        self.coef_ = each(lambda s: s.theta.dense())
        self.intercept_ = each(lambda s: s.theta.offset)
        self.coef_error_ = each(_errors)
        self.__dict__.pop("coef_covariance_", None)
        if all(one.covariance is not None for one in fitted.solutions):
            self.coef_covariance_ = each(_covariance)
        self.unpenalized_ = np.array(request.unpenalized, dtype=np.int64)
        self.selection_order_ = each(_selection_order, np.int64)
        self.intercept_error_ = each(
            lambda s: math.nan if s.offset_error is None else s.offset_error
        )
        self.training_fit_ = each(lambda s: math.nan if s.fit is None else s.fit.gain)
        self.training_fit_error_ = each(lambda s: math.nan if s.fit is None else s.fit.error)
        self.n_iter_ = fitted.statement.steps
        self.privacy_ = fitted.statement
        self._set_quality(fitted.data_quality)
        if request.schema is not None and request.classes is None:
            self.intercept_ += self._target_centre()

    def _target_centre(self) -> float:
        """What the targets of a schema had been moved by in the units of margins."""
        return float(self.schema_.target_centre)

    def _set_quality(self, found: DataQuality | None) -> None:
        """What is wrong with the rows, if it was counted."""
        self.__dict__.pop("data_quality_", None)
        if found is not None:
            self.data_quality_ = found

    def row_functions(self) -> np.ndarray:
        """The coefficients of rows as they are given to `predict`: one line for each class."""
        return np.atleast_2d(self.coef_)

    def _margins(self, X: Any) -> np.ndarray:
        """The linear functions of each row, and of each class where there are several.

        Rows are read as in `fit`: missing is 0, and they are clipped into the bounds.
        """
        check_is_fitted(self)
        functions = self.row_functions()
        functions = functions if np.ndim(self.coef_) == 2 else functions[0]
        return self.row_bounds().clip_x(encoded(self, X)) @ functions.T + self.intercept_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags


@dataclass(eq=False, repr=False)
class BoundedModel(PrivateLinearModel):
    """A linear model whose rows have bounds that the user gives."""

    epsilon: float
    delta: float | None = None
    _: KW_ONLY
    bounds: Bounds | None = None
