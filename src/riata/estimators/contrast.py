"""A weighted sum of coefficients with its error, such as the difference of two categories."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from riata.errors import InvalidArgument
from riata.estimators.coefficients import coefficients
from riata.estimators.description import describe
from riata.estimators.joint_test import columns_of
from riata.estimators.ratios import calibration_lines, ratio_kind
from riata.estimators.summary import LEVEL, bounded_exp, normal_quantile, units_of
from riata.solvers.empirical_bayes import FLAT_PART
from riata.wording import shown


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of coefficients of one linear function. NaN stands for what nobody knows.

    Attributes
    ----------
    label : str
        The class, or "".
    estimate, error : float
        In the units of the summary.
    low, high : float
        The ends of its interval, for columns that were named before the fit.
    z, p : float
        Whether it is 0.
    ratio, ratio_low, ratio_high : float
        The ratio of odds or rates that it stands for, and its interval.
    """

    label: str
    estimate: float
    error: float
    low: float
    high: float
    z: float
    p: float
    ratio: float
    ratio_low: float
    ratio_high: float


def contrast(
    model: Any, weights: Mapping[str | int, float], level: float = LEVEL
) -> tuple[Contrast, ...]:
    """A weighted sum of coefficients, for each class. It follows from what was released.

    Parameters
    ----------
    model : fitted estimator
    weights : mapping
        From names of columns, or indices of `coef_`, to finite numbers. Columns that the model left
        out count as 0 without an error.
    level : float, default=0.95
    """
    reach, about, found = normal_quantile(level), describe(model), coefficients(model)
    if not found or about.output == "mean":
        raise InvalidArgument(f"{about.name} has no coefficients, so there are none to compare.")
    if not isinstance(weights, Mapping):
        raise InvalidArgument('weights must be a dict, such as {"ward=a": 1, "ward=b": -1}.')
    if not weights:
        raise InvalidArgument("weights is empty. Name at least one column.")
    scales, counts = units_of(about, found)[0], np.zeros(found[0].size)
    for name, weight in weights.items():
        places = columns_of(about, found[0], name)
        if len(places) > 1:
            raise InvalidArgument(
                f"{name!r} stands for {len(places)} columns. Name one of "
                f"{shown([found[0].name(j) for j in places])}."
            )
        if not math.isfinite(weight):
            raise InvalidArgument(f"The weight of {name!r} is {weight!r}: use a finite number.")
        counts[places[0]] += weight / scales[places[0]]
    kind = ratio_kind(model, about)
    slopes = calibration_lines(model, len(found))[:, 0] if kind else np.full(len(found), math.nan)
    made = []
    for k, each in enumerate(found):
        estimate = float(counts @ each.values)
        if each.covariance is None:
            error = _bound(counts, each.values, each.errors)
        else:
            error = float(combination_errors(counts[None], each.covariance[:, :-1, :-1])[0])
        error = error if error > 0 else math.nan
        ends = (estimate, estimate - reach * error, estimate + reach * error)
        ratios = [bounded_exp(float(slopes[k]) * end) for end in ends]
        z = estimate / error
        made.append(
            Contrast(each.label, estimate, error, *ends[1:], z, 2 * float(ndtr(-abs(z))), *ratios)
        )
    return tuple(made)


def combination_errors(weights: Any, covariance: np.ndarray) -> np.ndarray:
    """The standard errors of weighted sums; NaN where more than a part of one is a guess."""
    whole, guessed = (
        np.asarray(((weights @ each) * weights).sum(axis=1)).ravel() for each in covariance
    )
    whole = np.maximum(whole, 0.0)
    return np.where(guessed > FLAT_PART * whole, math.nan, np.sqrt(whole))


def _bound(counts: np.ndarray, values: np.ndarray, errors: np.ndarray) -> float:
    """Without covariances: the sum of all errors, which is right for every covariance."""
    used = (counts != 0) & (values != 0)
    return float(np.abs(counts[used]) @ errors[used])
