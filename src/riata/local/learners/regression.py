"""Linear, logistic, Poisson and kernel models from estimated moments.

Of thousands of columns the few that matter are found first, and then looked at together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from riata.local.kinds import MOST_COLUMNS
from riata.local.learners.canonical import canonical_model
from riata.local.learners.lasso import lasso, project_l1
from riata.local.learners.model import LocalModel, slope_scale
from riata.local.learners.moments import Covariances, Moments
from riata.local.learners.ridge import EVIDENCE, Slopes, ridge

if TYPE_CHECKING:
    from riata.local.task import Task

#: Columns that are looked at together, at most.
MOST_KEPT = 64


def learn_regression(
    task: Task,
    count: int,
    cross: np.ndarray,
    cross_noise: float,
    second_moments: Callable[[np.ndarray | None], tuple[np.ndarray, float]],
    radius: float = math.inf,
) -> LocalModel:
    """A model from E[y u], and from the second moments of all coordinates or of a few.

    Parameters
    ----------
    task : Task
    count : int
        Reports.
    cross, cross_noise : ndarray, float
        The estimate of E[y u], and the noise of a coordinate.
    second_moments : callable
        Estimates E[u u'] at some places, or for None at all of them, with the noise of an entry.
    radius : float, default=inf
        The largest l1 norm of coefficients, for sparse kinds.
    """
    if len(cross) <= MOST_COLUMNS:
        gram, noise = second_moments(None)
        return regression_model(task, count, Moments(gram, cross, noise, cross_noise), radius)
    constant = task.intercept > 0
    columns = screen_columns(cross, cross_noise, constant)
    places = np.append(columns, len(cross) - 1) if constant else columns
    gram, noise = second_moments(places)
    moments = Moments(gram, cross[places], noise, cross_noise)
    return wide_model(task, count, columns, moments, radius)


def regression_model(
    task: Task, count: int, moments: Moments, radius: float = math.inf, normal: bool = False
) -> LocalModel:
    """A linear, logistic, Poisson or kernel model from the moments of all coordinates.

    `normal` says that all columns are, as those of simulated people.
    """
    covariances = moments.covariances(task.intercept)
    if task.spec.sparse:
        slopes = lasso(covariances, slope_scale(task), radius)
    else:
        slopes = ridge(covariances)
    return _model(task, count, covariances, slopes, normal)


def wide_model(
    task: Task, count: int, columns: np.ndarray, moments: Moments, radius: float = math.inf
) -> LocalModel:
    """A linear model in which only the columns that passed the screening have a coefficient."""
    covariances = moments.covariances(task.intercept)
    wanted = EVIDENCE + 2.0 * math.log(task.encoding.columns)
    slopes = ridge(covariances, wanted)
    slopes = replace(slopes, theta=project_l1(slopes.theta, slope_scale(task)[columns], radius))
    few = _model(task, count, covariances, slopes)
    theta, errors = np.zeros(task.encoding.columns), np.zeros(task.encoding.columns)
    theta[columns], errors[columns] = few.theta, few.theta_errors
    return replace(few, theta=theta, theta_errors=errors)


def _model(
    task: Task, count: int, moments: Covariances, slopes: Slopes, normal: bool = False
) -> LocalModel:
    theta, variances, center = slopes.theta, slopes.variances, moments.center
    if task.spec.family:
        theta, variances, center = canonical_model(task, moments, slopes, normal)
    return LocalModel(
        task=task,
        reports=count,
        signal=slopes.signal,
        theta=theta,
        theta_errors=np.sqrt(variances),
        offset=float(center - moments.means @ theta),
        evidence=slopes.evidence,
    )


def screening_level(columns: int) -> float:
    """Standard errors that one of so many columns passes by chance in one collection of 100."""
    return -float(ndtri(0.005 / max(columns, 1)))


def screen_columns(cross: np.ndarray, noise: float, constant: bool) -> np.ndarray:
    """The columns whose covariance with the target is not noise, the clearest ones first chosen.

    The constant for the intercept, the last coordinate, is not a column.
    """
    columns = len(cross) - constant
    strength = np.abs(cross[:columns])
    clear = np.flatnonzero(strength > noise * screening_level(columns))
    return np.sort(clear[np.argsort(-strength[clear], kind="stable")[:MOST_KEPT]])
