"""Predictions for rows that the caller passes, with what is known about their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from riata.errors import InvalidArgument
from riata.estimators.description import ModelDescription, describe
from riata.estimators.ratios import calibration_lines, ratio_kind
from riata.estimators.summary import LEVEL, normal_quantile
from riata.fitting.prediction_rows import encoded
from riata.losses.exponential import exponential


def augment(model: Any, X: Any, level: float = LEVEL) -> dict[str, np.ndarray]:
    """A column of predictions for rows that are passed, and columns of their errors.

    Parameters
    ----------
    model : fitted estimator or LocalModel
    X : rows, as `predict` takes them
    level : float, default=0.95
        Of the intervals of means.

    Returns
    -------
    dict of ndarray
        ``.fitted``, ``.se.fit``, ``.lower`` and ``.upper``, with the names of R's broom: the mean,
        the probability of the second class, or the margin of a classifier without probabilities.
        Classifiers have ``.class``; of three classes or more they have ``.fitted.<class>`` without
        errors.

    Notes
    -----
    Solvers release no covariances. The error of a prediction is bounded by the sum of the errors
    of all its terms, which is right for every covariance and larger than the truth for most. It is
    NaN where the error of a term is unknown. The intervals are of means: how far single targets
    lie around them was not released.
    """
    reach, about = normal_quantile(level), describe(model)
    if about.output == "mean":
        raise InvalidArgument(
            f"{about.name} predicts nothing, so there is nothing to add to rows. Use summary()."
        )
    if about.labels is not None and len(about.labels) > 2:
        return _of_classes(model, about, X)
    if not hasattr(model, "row_functions"):
        return _without_errors(model, about, X)
    kind = ratio_kind(model, about)
    margins, errors = _margins(model, X)
    slope, shift = calibration_lines(model, 1)[0]
    margins, errors = slope * margins + shift, abs(slope) * errors
    mean, steepness = _mean(kind, margins)
    ends = [_mean(kind, margins + side * reach * errors)[0] for side in (-1, 1)]
    found = {".fitted": mean, ".se.fit": steepness * errors, ".lower": ends[0], ".upper": ends[1]}
    if about.labels is not None:
        found[".class"] = np.asarray(about.labels)[(margins > 0).astype(int)]
    return found


def augmented_frame(X: Any, found: dict[str, np.ndarray]) -> Any:
    """A pandas frame of the columns that `augment` found, beside those of X if it is a frame."""
    try:
        import pandas as pd
    except ImportError:
        raise InvalidArgument(
            "augment needs the package pandas, which is not installed. Install it, or use "
            "riata.estimators.augment.augment, which returns arrays."
        ) from None
    return X.assign(**found) if isinstance(X, pd.DataFrame) else pd.DataFrame(found)


def _margins(model: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The linear function of each row, and a bound on its standard error."""
    margins = np.asarray(model._margins(X)).reshape(-1)
    coef, known = np.atleast_2d(model.coef_)[0], np.atleast_2d(model.coef_error_)[0]
    rows = model.row_bounds().clip_x(encoded(model, X))
    intercept = float(np.atleast_1d(model.intercept_error_)[0]) if model.fit_intercept else 0.0
    if rows.shape[1] != len(coef):  # of rows that were projected before
        return margins, np.full(len(margins), math.nan)
    sizes = abs(rows)
    unknown = (coef != 0) & ~np.isfinite(known)
    errors = sizes @ np.where((coef != 0) & ~unknown, known, 0.0) + intercept
    return margins, np.where(sizes @ unknown.astype(float) > 0, math.nan, errors)


def _mean(kind: str, margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of a margin, and its derivative."""
    if kind == "odds":
        mean = expit(margins)
        return mean, mean * (1 - mean)
    if kind in ("rate", "hazard"):
        mean = exponential(margins)
        return mean, mean
    return margins, np.ones(len(margins))


def _of_classes(model: Any, about: ModelDescription, X: Any) -> dict[str, np.ndarray]:
    scores = model.predict_proba(X) if about.probabilities else model.decision_function(X)
    columns = {f".fitted.{label}": scores[:, k] for k, label in enumerate(about.labels)}
    return {**columns, ".class": model.predict(X)}


def _without_errors(model: Any, about: ModelDescription, X: Any) -> dict[str, np.ndarray]:
    """Of reports: the error of their intercept is unknown, and so are those of predictions."""
    predicted = model.predict(X)
    found = {".fitted": predicted}
    if about.labels is not None:
        local = model.predict_probability(X) if about.collected else model.predict_proba(X)[:, 1]
        found = {".fitted": local}
    unknown = np.full(len(predicted), math.nan)
    found |= {".se.fit": unknown, ".lower": unknown, ".upper": unknown}
    return found if about.labels is None else {**found, ".class": predicted}
