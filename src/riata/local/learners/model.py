"""What was learned from reports, in the units of the answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, ndtri

from riata.privacy.statement import Statement
from riata.wording import number_of

if TYPE_CHECKING:
    from riata.local.task import Task


@dataclass(frozen=True)
class LocalModel:
    """A model learned from reports alone.

    Attributes
    ----------
    task : Task
    reports : int
        How many reports it was learned from.
    signal : bool
        Whether the reports show anything at all. If not, all coefficients are 0 and the model is
        the trivial predictor. Only a plain mean is left as it is.
    theta : ndarray
        The coefficients of the vectors that encoded rows become, or the mean of these vectors.
    theta_errors : ndarray
        Their standard errors: the noise of the reports, and what shrinking towards 0 takes away if
        the coefficients are about as large as the evidence says. 0 for a coefficient that is left
        out.
    offset : float
        The prediction where all of these vectors' coordinates are 0, on the target's encoded scale.
    evidence : float
        Twice the gain in log likelihood over no signal.
    """

    task: Task
    reports: int
    signal: bool
    theta: np.ndarray
    theta_errors: np.ndarray
    offset: float
    evidence: float

    @property
    def names(self) -> list[str]:
        """The columns that encoded rows have."""
        return self.task.encoding.names

    @cached_property
    def _column_scale(self) -> np.ndarray:
        return column_scale(self.task)

    @cached_property
    def _centers(self) -> np.ndarray:
        return self.task.encoding.by_column(lambda feature: feature.center)

    @cached_property
    def _slope_scale(self) -> np.ndarray:
        return slope_scale(self.task)

    @property
    def coef(self) -> np.ndarray:
        """What one unit more of each answer adds to the prediction, log odds or log mean."""
        self._require(self.task.spec.coefficients, "coefficients")
        return self.theta * self._slope_scale

    @property
    def errors(self) -> np.ndarray:
        """The standard errors of `coef`, or of `mean`."""
        if not self.task.spec.regression:
            return self.theta_errors / self._column_scale
        self._require(self.task.spec.coefficients, "errors of coefficients")
        return self.theta_errors * np.abs(self._slope_scale)

    @property
    def intercept(self) -> float:
        """The prediction, log odds or log mean where all answers are 0."""
        target = self.task.target
        assert target is not None
        middle = 0.0 if self.task.spec.family else target.center
        return middle + _target_unit(self.task) * self.offset - float(self.coef @ self._centers)

    @property
    def mean(self) -> np.ndarray:
        """The mean answer to each question; for choices, the share of each."""
        self._require(not self.task.spec.regression, "a mean")
        return self._centers + self.theta / self._column_scale

    @property
    def estimates(self) -> np.ndarray:
        """`coef`, or `mean` where there is no target."""
        return self.coef if self.task.spec.regression else self.mean

    def intervals(self, level: float = 0.9) -> np.ndarray:
        """For each coefficient (or mean) the two ends of an interval that covers it."""
        wide = float(ndtri(0.5 + level / 2))
        middle = self.estimates
        return np.column_stack([middle - wide * self.errors, middle + wide * self.errors])

    def decision(self, rows: np.ndarray) -> np.ndarray:
        """Predictions on the encoded scale, log odds or log means, from encoded rows."""
        vectors = self.task.vectors(rows)
        if self.task.intercept:
            vectors = vectors[:, :-1]
        return self.offset + vectors @ self.theta

    def predict(self, rows: Any) -> np.ndarray:
        """Predictions for rows: columns by name, an array of numbers, or a list of answers."""
        self._require(self.task.spec.regression, "predictions")
        values = self.decision(self._encoded(rows))
        if self.task.spec.logistic:
            return values > 0
        assert self.task.target is not None
        if self.task.spec.family:  # no mean is larger than the largest count
            return np.exp(np.minimum(values, math.log(self.task.target.bounds[1])))
        return self.task.target.center + _target_unit(self.task) * values

    def predict_probability(self, rows: Any) -> np.ndarray:
        """The probability of yes."""
        self._require(self.task.spec.logistic, "probabilities")
        return expit(self.decision(self._encoded(rows)))

    def _encoded(self, rows: Any) -> np.ndarray:
        if isinstance(rows, np.ndarray) and rows.dtype.kind in "fiub":
            return self.task.encoding.encode_array(rows.astype(float))
        if isinstance(rows, Mapping) or hasattr(rows, "columns"):
            return self.task.encoding.encode_columns(rows)
        encoded = [self.task.encoding.encode(row) for row in rows]
        return np.array(encoded).reshape(len(encoded), self.task.encoding.columns)

    def _require(self, possible: bool, what: str) -> None:
        if not possible:
            raise AttributeError(f"A task of kind {self.task.kind!r} has no {what}.")

    @cached_property
    def privacy(self) -> Statement:
        """The guarantee that every device gave to its owner."""
        return statement(self.task, self.reports)

    def __str__(self) -> str:
        reports = number_of(self.reports, "report")
        head = f"{self.task.kind} from {reports} at epsilon {self.task.epsilon:g}"
        if not self.signal:
            return f"{head}: no signal. The reports do not show more than noise."
        if self.task.spec.kernel:
            return f"{head}: a kernel model with {number_of(len(self.theta), 'feature')}."
        values = self.estimates
        order = np.argsort(-np.abs(self.theta), kind="stable")[:20]
        lines = [
            f"  {self.names[j]:<24} {values[j]:>12.4g} ± {self.errors[j]:.2g}"
            for j in order
            if self.theta[j] != 0
        ]
        return "\n".join([head, *lines])


def column_scale(task: Task) -> np.ndarray:
    """Coefficients of vectors, times this, are coefficients of answers in their own units."""
    scales = task.encoding.by_column(lambda feature: feature.weight / feature.reach)
    return scales / task.encoding.length


def _target_unit(task: Task) -> float:
    """Units of the target in 1 of its encoded scale; log odds and log means have their own."""
    return 1.0 if task.target is None or task.spec.family else task.target.reach


def slope_scale(task: Task) -> np.ndarray:
    """What turns theta into coefficients in the units of answers and target."""
    return column_scale(task) * (_target_unit(task) * math.sqrt(1.0 - task.intercept))


def statement(task: Task, reports: int, *notes: str, seeded: bool = False) -> Statement:
    """The guarantee of a task's reports."""
    return Statement(
        epsilon=task.total_epsilon,
        delta=0.0,
        adjacency="local",
        solver=f"local {task.kind}",
        steps=task.cap,
        accountant="pure local differential privacy: each report is randomised on the device",
        releases=tuple(
            f"{one.share:.0%} of the devices: one seed of a degree-{one.channel.degree} channel "
            f"over {one.channel.size} coordinates, epsilon {task.epsilon:g}"
            for one in task.questions
        ),
        public={
            "task": task.id,
            "reports": reports,
            "features": task.encoding.columns,
            "reports of one person": task.cap,
        },
        seeded=seeded,
        notes=(
            "The guarantee holds against everybody, the server too. It assumes that AES-256 under "
            "the public key of the task spreads its outputs evenly over half-spaces.",
            "Answers outside their public bounds are clipped on the device.",
            *notes,
        ),
    )
