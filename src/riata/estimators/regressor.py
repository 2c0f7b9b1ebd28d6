"""What every regressor does: one fit of a loss for numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from riata.bounds import Bounds
from riata.data.arrays import rows_and_targets
from riata.engines.choice import Arrays
from riata.estimators.base import Checkpointed, Job, PrivateLinearModel
from riata.estimators.rows import SourceRows, collection_of
from riata.estimators.sources import people, source_of, targets_of
from riata.losses import Loss, Squared
from riata.solvers import Plan, Solver

#: The radius that "auto" stands for, in units of the bound on y over the largest one on a column,
#: by the solver's radius policy.
RADIUS = {"open": 1000.0, "wide": 10.0, "narrow": 1.0}


def automatic_radius(bounds: Bounds, solver: Solver | None) -> float:
    """A radius that no model worth finding exceeds, or one that a noisy search can afford."""
    policy = "narrow" if solver is None else solver.radius_policy
    return RADIUS[policy] * (bounds.y or 1.0) / float(np.max(bounds.x))


class PrivateRegressor(RegressorMixin, PrivateLinearModel):
    """A linear regression. Subclasses name the set, and the loss if it is not the squared one."""

    def _loss(self) -> Loss:
        return Squared()

    def plan(self, n_rows: int, n_features: int) -> Plan:
        """What a fit on data of this shape would do and cost. Reads nothing, charges nothing."""
        return self._planned([self._loss()], self._checked_bounds(), n_rows, n_features)[1]

    def fit(self, X: Any, y: Any = None, *, checkpoint: Checkpointed = None) -> Self:
        """Fit the model and spend the budget.

        Parameters
        ----------
        X : array-like or sparse of shape (n_rows, n_features), or Source
        y : array-like of shape (n_rows,)
            Left out for a source, which has its own.
        checkpoint : path, optional
            A file that keeps what was released so far. The same call with the same file goes on
            where a fit was stopped, for what was charged when it began.
        """
        self._keep(self._fit(self._job(X, y), checkpoint), ())
        if hasattr(self, "schema_"):
            self.intercept_ += self.schema_.target_centre
        return self

    def _job(self, X: Any, y: Any) -> Job:
        source = source_of(self, X, y, classifies=False)
        bounds = self._checked_bounds()
        self._check_parameters()
        if source is not None:
            rows = SourceRows(source, self.verbose)
            return Job([self._loss()], bounds, source.shape, rows, rows_of_a_person=people(source))
        collection = collection_of(self, X, y, numeric=True)
        if collection is not None:
            return Job([self._loss()], bounds, collection.shape, collection)
        X, y = rows_and_targets(self, X, y, numeric=True)
        return Job([self._loss()], bounds, X.shape, Arrays(X, y))

    def predict(self, X: Any) -> np.ndarray:
        """Predict y for each row, read as rows are in `fit`."""
        return self._margins(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions. A source, or a frame of its schema, has its own targets."""
        if y is None:
            y = targets_of(self, X) + self.schema_.target_centre
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # on a hundred rows, noise is all there is
        return tags
