"""What the server makes of the sums. Everything here is post-processing and costs nobody privacy.

- `mean`: means, plain and sparse
- `moments`: second moments and cross moments with their noise, with the constant taken out
- `ridge`: regression with a prior fitted to the evidence; `lasso`: sparse regression
- `canonical`: logistic and Poisson regression; `regression`: all of these together, of the columns
  that matter; `model`: the result
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from riata.local.learners.mean import mean_model
from riata.local.learners.model import LocalModel
from riata.local.learners.moments import joint_moments
from riata.local.learners.regression import learn_regression, regression_model

if TYPE_CHECKING:
    from riata.local.question_sums import PooledSums, QuestionSums
    from riata.local.task import Task

__all__ = ["LocalModel", "learn"]


def learn(
    task: Task,
    sums: Mapping[str, QuestionSums] | Mapping[str, PooledSums],
    *,
    threshold: str = "hard",
    radius: float = math.inf,
) -> LocalModel:
    """The model of a task.

    Parameters
    ----------
    task : Task
    sums : mapping
        What was counted, for each question.
    threshold : {"hard", "soft"}, default="hard"
        For sparse means.
    radius : float, default=inf
        For sparse regression: the largest l1 norm of the coefficients in their own units.
    """
    count = sum(one.count for one in sums.values())
    if not task.spec.regression:
        return mean_model(task, count, *sums["mean"].vector(), threshold)
    if task.joint:
        moments = joint_moments(task, *sums["joint"].matrix())
        return regression_model(task, count, moments, radius)
    cross, noise = sums["cross"].vector()
    return learn_regression(task, count, cross, noise, sums["gram"].matrix, radius)
