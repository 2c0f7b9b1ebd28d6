"""What a fitted estimator tells people: its summary, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from riata.estimators.adjustment import CORRECTION
from riata.estimators.augment import augment, augmented_frame
from riata.estimators.contrast import Contrast, contrast
from riata.estimators.joint_test import JointTest, joint_test
from riata.estimators.path_plot import plot_path
from riata.estimators.summary import (
    LEVEL,
    Summary,
    confidence_intervals,
    normal_quantile,
    summarize,
)
from riata.estimators.summary_text import SHOWN_TERMS


class SummaryMixin:
    """Goes before scikit-learn's BaseEstimator, whose own picture unfitted estimators keep."""

    def summary(self, level: float = LEVEL, *, correction: str | None = CORRECTION) -> Summary:
        """Estimates, standard errors, intervals and tests, in the units of the rows or the file.

        Parameters
        ----------
        level : float, default=0.95
            Of the intervals. Terms are marked at 1 - level.
        correction : {"by", "bh", "bonferroni"} or None, default="by"
            How adjusted p-values count the number of columns: Benjamini-Yekutieli, which holds for
            any dependence of the estimates, Benjamini-Hochberg, Bonferroni, or no adjustment.

        Returns
        -------
        Summary
            To be printed, or made a frame of. It follows from what was released: it reads no row
            and costs nothing.
        """
        check_is_fitted(self, "privacy_")
        return summarize(self, level, correction=correction)

    def conf_int(self, level: float = LEVEL, *, correction: str | None = CORRECTION) -> np.ndarray:
        """The intervals of `coef_`, in its own units.

        Parameters
        ----------
        level : float, default=0.95
        correction : {"by", "bh", "bonferroni"} or None, default="by"
            How intervals count that columns were selected: with the first two, on average a part
            `level` of those of all columns that were kept holds, with the third all of them with
            probability `level`, and with None those of columns that were named before the fit.

        Returns
        -------
        ndarray
            Of the shape of `coef_` and a last axis for the two ends. NaN where the solver says
            nothing about an error.
        """
        check_is_fitted(self, "privacy_")
        return confidence_intervals(self, level, correction)

    def plot_path(self, ax: Any = None, level: float = LEVEL) -> Any:
        """Draw the coefficients in the order in which the solver selected the columns.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default those of a new figure, ``ax.figure``.
        level : float, default=0.95
            Of the intervals. A point without one has an error that nobody knows.

        Returns
        -------
        matplotlib axes
            At most 30 columns. Solvers that do not select columns one by one have no order: then
            the largest come first, and the axis says so. Coefficients are those of encoded columns,
            `coef_`, because their sizes can be compared. It reads no row and costs nothing.
        """
        check_is_fitted(self, "privacy_")
        return plot_path(self, ax, normal_quantile(level))

    def test(self, columns: Any) -> JointTest:
        """Test that the coefficients of some columns are all 0, in each class.

        Parameters
        ----------
        columns : str, int, or a sequence of them
            Names of features of the schema, which mean all their encoded columns, names of
            columns, or indices of `coef_`.

        Returns
        -------
        JointTest
            It says which test it is: of several columns Wald's where the covariances of the
            estimates follow from the releases, and Bonferroni's otherwise. p is NaN, with a reason,
            where no error is known. It reads no row and costs nothing.
        """
        check_is_fitted(self, "privacy_")
        return joint_test(self, columns)

    def contrast(
        self, weights: Mapping[str | int, float], level: float = LEVEL
    ) -> tuple[Contrast, ...]:
        """A weighted sum of coefficients with its error: the difference of two categories.

        Parameters
        ----------
        weights : mapping
            From names of columns, or indices of `coef_`, to numbers, such as
            ``{"ward=a": 1, "ward=b": -1}``.
        level : float, default=0.95
            Of the interval, for columns that were named before the fit.

        Returns
        -------
        tuple of Contrast
            One for each class. It reads no row and costs nothing.
        """
        check_is_fitted(self, "privacy_")
        return contrast(self, weights, level)

    def augment(self, X: Any, level: float = LEVEL, interval: str = "confidence") -> Any:
        """Predictions for rows that are passed, with the errors of their means, or bounds on them.

        Parameters
        ----------
        X : rows, as `predict` takes them
            They are read as rows to predict are, and nothing is charged: do not publish what
            becomes of private rows.
        level : float, default=0.95
            Of the intervals.
        interval : {"confidence", "prediction"}, default="confidence"
            Of means, or, for least squares, of single targets around them.

        Returns
        -------
        DataFrame
            ``.fitted``, ``.se.fit``, ``.lower`` and ``.upper``, and for classifiers ``.class``,
            beside the columns of X if it is a frame. See `riata.estimators.augment.augment`, which
            needs no pandas.
        """
        check_is_fitted(self, "privacy_")
        return augmented_frame(X, augment(self, X, level, interval))

    def _html_repr(self) -> str:
        if not hasattr(self, "privacy_"):
            return super()._html_repr()  # type: ignore[misc]
        statement: Any = self.privacy_
        shown = summarize(self, most=SHOWN_TERMS)
        return f"<div>{shown._repr_html_()}{statement._repr_html_()}</div>"
