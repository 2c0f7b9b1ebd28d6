"""From the sums of a task's reports to its model."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from riata.local.learners.lasso import lasso
from riata.local.learners.logistic import scale_and_offset
from riata.local.learners.mean import thresholded
from riata.local.learners.model import LocalModel
from riata.local.learners.moments import Centered, Moments
from riata.local.learners.ridge import Slopes, ridge
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
        For the lasso: the largest l1 norm of the coefficients on the encoded scale.
    """
    kind = aggregator.task.kind
    if kind in ("mean", "sparse-mean"):
        return _mean(aggregator, "none" if kind == "mean" else threshold)
    if kind == "sparse-linear":
        return _wide(aggregator)
    moments = _moments(aggregator).without_constant(aggregator.task.intercept)
    slopes = lasso(moments, _vector_radius(aggregator.task, radius)) if kind == "lasso" else None
    return _regression(aggregator, moments, slopes or ridge(moments))


def _vector_radius(task: Task, radius: float) -> float:
    return radius * task.encoding.length / math.sqrt(1.0 - task.intercept)


def _mean(aggregator: Aggregator, threshold: str) -> LocalModel:
    mean, noise = aggregator.tallies["mean"].vector()
    kept = thresholded(mean, noise, threshold)
    evidence = float(np.max(np.abs(mean)) / noise) ** 2
    level = 2.0 * math.log(len(mean) + 1) + 9.0
    return LocalModel(
        task=aggregator.task,
        reports=aggregator.count,
        signal=bool(np.any(kept)) if threshold != "none" else evidence > level,
        theta=kept,
        theta_errors=np.full(len(mean), noise),
        offset=0.0,
        evidence=evidence,
    )


def _moments(aggregator: Aggregator) -> Moments:
    gram, gram_noise = aggregator.tallies["gram"].matrix()
    cross, cross_noise = aggregator.tallies["cross"].vector()
    return Moments(gram, cross, gram_noise, cross_noise)


def _wide(aggregator: Aggregator) -> LocalModel:
    """Only the columns that the screening left can have a coefficient."""
    task = aggregator.task
    gram = aggregator.tallies["gram"]
    constant = task.intercept > 0
    if gram.kept is None:
        moments = _moments(aggregator).without_constant(task.intercept)
        return _regression(aggregator, moments, lasso(moments))
    kept, found = screened(aggregator.tallies["cross"], gram, constant)
    moments = found.without_constant(task.intercept)
    few = ridge(moments)
    columns = task.encoding.columns
    theta, means, errors = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    theta[kept], means[kept] = few.theta, moments.means
    errors[kept] = np.sqrt(np.diag(few.covariance))
    return LocalModel(
        task=task,
        reports=aggregator.count,
        signal=few.signal,
        theta=theta,
        theta_errors=errors,
        offset=moments.center - float(means @ theta),
        evidence=few.evidence,
    )


def _regression(aggregator: Aggregator, moments: Centered, slopes: Slopes) -> LocalModel:
    theta, scale, center = slopes.theta, 1.0, moments.center
    if aggregator.task.kind == "logistic":
        explained = float(np.clip(theta @ moments.gram @ theta, 0.0, 1.0))
        explained = max(explained, float(theta @ moments.cross) / 2.0) if slopes.signal else 0.0
        scale, center = scale_and_offset(center, explained)
    return LocalModel(
        task=aggregator.task,
        reports=aggregator.count,
        signal=slopes.signal,
        theta=scale * theta,
        theta_errors=scale * np.sqrt(np.maximum(np.diag(slopes.covariance), 0.0)),
        offset=center - scale * float(moments.means @ theta),
        evidence=slopes.evidence,
    )
