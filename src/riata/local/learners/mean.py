"""Means of the vectors that rows became: plain, or with what could be noise set to 0."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from riata.local.learners.model import LocalModel

if TYPE_CHECKING:
    from riata.local.task import Task

THRESHOLDS = ("none", "soft", "hard")
#: Beyond the largest of so many noises: 3.5 standard errors.
EVIDENCE = 3.5**2


def mean_model(
    task: Task, count: int, mean: np.ndarray, noise: float, threshold: str = "hard"
) -> LocalModel:
    """The mean of a task's vectors, of which coordinates that may be noise are 0.

    A sparse mean is 0 where not even its largest coordinate is clear. A plain mean is left alone
    whether there is a signal or not: it is unbiased, and its errors say what it is worth.
    """
    if not task.spec.sparse:
        threshold = "none"
    evidence = float(np.max(np.abs(mean)) / noise) ** 2
    signal = evidence > 2.0 * math.log(len(mean) + 1) + EVIDENCE
    theta = threshold_mean(mean, noise, threshold)
    return LocalModel(
        task=task,
        reports=count,
        signal=signal,
        theta=theta if signal or threshold == "none" else np.zeros(len(mean)),
        theta_errors=np.full(len(mean), noise),
        offset=0.0,
        evidence=evidence,
    )


def threshold_mean(mean: np.ndarray, noise: float, how: str) -> np.ndarray:
    """The mean of which coordinates below noise * sqrt(2 log d) are 0.

    The noise of a coordinate does not depend on the number of coordinates, so a sparse mean is
    found in any dimension. "soft" also pulls what is left towards 0, "hard" leaves it alone.
    """
    if how == "none":
        return mean
    level = noise * math.sqrt(2.0 * math.log(len(mean) + 1))
    size = np.abs(mean)
    if how == "soft":
        return np.sign(mean) * np.maximum(size - level, 0.0)
    return np.where(size > level, mean, 0.0)
