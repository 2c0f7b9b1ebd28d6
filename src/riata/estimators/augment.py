"""Predictions for rows that the caller passes, with what is known about their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit

from riata.arguments import check_known
from riata.errors import InvalidArgument
from riata.estimators.description import ModelDescription, describe
from riata.estimators.ratios import calibration_lines, ratio_kind
from riata.estimators.summary import LEVEL, normal_quantile
from riata.fitting.prediction_rows import encoded
from riata.losses.exponential import exponential
from riata.solvers.empirical_bayes import FLAT_PART

#: What `.lower` and `.upper` are about.
INTERVALS = ("confidence", "prediction")


def augment(
    model: Any, X: Any, level: float = LEVEL, interval: str = "confidence"
) -> dict[str, np.ndarray]:
    """A column of predictions for rows that are passed, and columns of their errors.

    Parameters
    ----------
    model : fitted estimator or LocalModel
    X : rows, as `predict` takes them
    level : float, default=0.95
        Of the intervals.
    interval : {"confidence", "prediction"}, default="confidence"
        Of means, or of single targets around them.

    Returns
    -------
    dict of ndarray
        ``.fitted``, ``.se.fit``, ``.lower`` and ``.upper``, with the names of R's broom: the mean,
        the hazard over that of a row of zeros, the probability of the second class, or the margin
        of a classifier without probabilities. Classifiers have ``.class``; of three classes or
        more, and of ordered ones, they have ``.fitted.<class>`` without errors.

    Notes
    -----
    Where the covariances of the estimates follow from the releases, the error of a prediction is
    made of them. Otherwise it is bounded by the sum of the errors of all its terms, which is right
    for every covariance and larger than the truth for most. It is NaN where too much of it is
    unknown. Intervals of single targets add the private estimate of the spread of residuals, and
    suppose that these are normal and spread alike everywhere. They are for least squares.
    """
    reach, about = normal_quantile(level), describe(model)
    check_known("interval", interval, INTERVALS)
    if interval == "prediction":
        _spread(model, about)
    if about.output == "mean":
        raise InvalidArgument(
            f"{about.name} predicts nothing, so there is nothing to add to rows. Use summary()."
        )
    if about.labels is not None and (len(about.labels) > 2 or about.ordered):
        return _of_classes(model, about, X)
    if not hasattr(model, "row_functions"):
        return _without_errors(model, about, X)
    kind = ratio_kind(model, about)
    margins, errors = _margins(model, X)
    slope, shift = calibration_lines(model, 1)[0]
    margins, errors = slope * margins + shift, abs(slope) * errors
    mean, steepness = _mean(kind, margins)
    around = np.hypot(errors, _spread(model, about)) if interval == "prediction" else errors
    ends = [_mean(kind, margins + side * reach * around)[0] for side in (-1, 1)]
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
    fitted = model.fit_intercept and getattr(model, "has_intercept", True)
    intercept = float(np.atleast_1d(model.intercept_error_)[0]) if fitted else 0.0
    if rows.shape[1] != len(coef):  # of rows that were projected before
        return margins, np.full(len(margins), math.nan)
    covariance = getattr(model, "coef_covariance_", None)
    if covariance is not None:
        covariance = covariance.reshape(covariance.shape[-3:]).copy()
        if not fitted:  # what moved all margins of the fit is no part of these
            covariance[:, -1], covariance[:, :, -1] = 0.0, 0.0
        return margins, _row_errors(rows, covariance)
    sizes = abs(rows)
    unknown = (coef != 0) & ~np.isfinite(known)
    errors = sizes @ np.where((coef != 0) & ~unknown, known, 0.0) + intercept
    return margins, np.where(sizes @ unknown.astype(float) > 0, math.nan, errors)


def _spread(model: Any, about: ModelDescription) -> float:
    """How far single targets lie around their means: one standard error above the estimate.

    The mean squared residual is a released loss less a released gain, with independent noise.
    """
    spread = getattr(model, "residual_spread_", None)
    if spread is None:
        raise InvalidArgument(
            f'interval="prediction" needs the spread of residuals, and this {about.name} has none: '
            "it is released for least squares by solvers that estimate their fit. Hold rows out, "
            "and look at their residuals."
        )
    error = float(model.training_fit_error_)
    unsure = math.sqrt(2) * error / max(1 - float(model.training_fit_), error, 1e-300)
    return float(spread) * math.sqrt(1 + unsure)


def _row_errors(rows: Any, covariance: np.ndarray) -> np.ndarray:
    """The standard errors of margins; NaN where more than a part of them is a guess."""
    whole, guessed = (
        np.asarray((rows @ each[:-1, :-1] * rows).sum(axis=1)).ravel()
        + 2 * np.asarray(rows @ each[:-1, -1]).ravel()
        + each[-1, -1]
        for each in covariance
    )
    whole = np.maximum(whole, 0.0)
    return np.where(guessed > FLAT_PART * whole, math.nan, np.sqrt(whole))


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
