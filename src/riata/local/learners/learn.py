"""From the sums of a task's reports to its model."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from riata.local.learners.lasso import lasso, within
from riata.local.learners.logistic import odds_variances, scale_and_offset
from riata.local.learners.mean import thresholded
from riata.local.learners.model import LocalModel, slope_scale
from riata.local.learners.moments import Centered, Moments
from riata.local.learners.ridge import EVIDENCE, Slopes, ridge
from riata.local.learners.screening import screened

if TYPE_CHECKING:
    from riata.local.aggregator import Aggregator
    from riata.local.task import Task


def learn(
    aggregator: Aggregator, *, threshold: str = "hard", radius: float = math.inf
) -> LocalModel:
    """The model of a task.

    Parameters
    ----------
    aggregator : Aggregator
    threshold : {"hard", "soft"}, default="hard"
        For sparse means.
    radius : float, default=inf
        For sparse regression: the largest l1 norm of the coefficients in their own units.
    """
    task, count, tallies = aggregator.task, aggregator.count, aggregator.tallies
    if "mean" in tallies:
        return mean_model(task, count, *tallies["mean"].vector(), threshold)
    cross, noise = tallies["cross"].vector()
    if tallies["gram"].kept is None:
        gram, entry_noise = tallies["gram"].matrix()
        return regression_model(task, count, Moments(gram, cross, entry_noise, noise), radius)
    constant = task.intercept > 0
    kept = screened(cross, noise, constant)
    places = np.append(kept, len(cross) - 1) if constant else kept
    gram, entry_noise = tallies["gram"].matrix_at(places)
    return wide_model(task, count, kept, Moments(gram, cross[places], entry_noise, noise), radius)


def mean_model(
    task: Task, count: int, mean: np.ndarray, noise: float, threshold: str = "hard"
) -> LocalModel:
    """The mean of a task's vectors, of which coordinates that may be noise are 0.

    A sparse mean is 0 where not even its largest coordinate is clear. A plain mean is left alone
    whether there is a signal or not: it is unbiased, and its errors say what it is worth.
    """
    if task.kind == "mean":
        threshold = "none"
    evidence = float(np.max(np.abs(mean)) / noise) ** 2
    signal = evidence > 2.0 * math.log(len(mean) + 1) + EVIDENCE
    kept = thresholded(mean, noise, threshold)
    return LocalModel(
        task=task,
        reports=count,
        signal=signal,
        theta=kept if signal or threshold == "none" else np.zeros(len(mean)),
        theta_errors=np.full(len(mean), noise),
        offset=0.0,
        evidence=evidence,
    )


def regression_model(
    task: Task, count: int, moments: Moments, radius: float = math.inf
) -> LocalModel:
    """A linear, logistic or kernel model from the moments of all coordinates."""
    centered = moments.without_constant(task.intercept)
    if task.kind in ("lasso", "sparse-linear"):
        slopes = lasso(centered, slope_scale(task), radius)
    else:
        slopes = ridge(centered)
    return _model(task, count, centered, slopes)


def wide_model(
    task: Task, count: int, kept: np.ndarray, moments: Moments, radius: float = math.inf
) -> LocalModel:
    """A linear model in which only the columns that the screening kept have a coefficient."""
    centered = moments.without_constant(task.intercept)
    wanted = EVIDENCE + 2.0 * math.log(task.encoding.columns)
    slopes = ridge(centered, wanted)
    slopes = replace(slopes, theta=within(slopes.theta, slope_scale(task)[kept], radius))
    few = _model(task, count, centered, slopes)
    theta, errors = np.zeros(task.encoding.columns), np.zeros(task.encoding.columns)
    theta[kept], errors[kept] = few.theta, few.theta_errors
    return replace(few, theta=theta, theta_errors=errors)


def _model(task: Task, count: int, moments: Centered, slopes: Slopes) -> LocalModel:
    theta, variances, scale, center = slopes.theta, slopes.variances, 1.0, moments.center
    if task.kind == "logistic":
        explained = float(np.clip(theta @ moments.gram @ theta, 0.0, 1.0))
        explained = max(explained, float(theta @ moments.cross) / 2.0) if slopes.signal else 0.0
        scale, center = scale_and_offset(center, explained)
        if slopes.filter is not None:
            variances = odds_variances(moments, slopes.filter, theta, explained)
    return LocalModel(
        task=task,
        reports=count,
        signal=slopes.signal,
        theta=scale * theta,
        theta_errors=np.sqrt(variances),
        offset=float(center - scale * (moments.means @ theta)),
        evidence=slopes.evidence,
    )
