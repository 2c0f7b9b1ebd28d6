"""Simulating a collection in one process: every person's device in turn, then the server."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from riata.arguments import check_positive, is_whole
from riata.bounds import Bounds
from riata.data.arrays import rows
from riata.errors import InvalidArgument
from riata.estimators.base import checked_bounds
from riata.estimators.summary_mixin import SummaryMixin
from riata.fitting.arguments import seed_from
from riata.fitting.progress import progress_bar
from riata.local.aggregator import Aggregator
from riata.local.channel import LARGEST_EPSILON
from riata.local.learners.model import LocalModel, statement
from riata.local.randomize import randomize
from riata.local.task import Task
from riata.mechanisms.noise import Noise
from riata.numeric import row_slices
from riata.solvers import Step

SIMULATED = (
    "Simulated locally: one process held all rows and simulated every device. The guarantee is "
    "that of the reports; the holder of the rows has seen them all."
)
#: Numbers of rows that are randomized at once.
_AT_ONCE = 1 << 22


@dataclass(eq=False, repr=False)
class LocalEstimator(SummaryMixin, BaseEstimator):
    """What all local estimators do: a task from public facts, a report from each row, a model."""

    epsilon: float
    _: KW_ONLY
    bounds: Bounds | None = None
    random_state: int | None = None
    verbose: bool = False

    def _task_kind(self, columns: int) -> str:
        raise AssertionError("a subclass names its kind of task")

    def _task_fields(self) -> dict[str, Any]:
        """Fields of the task that only this estimator has."""
        return {}

    def task(self, n_features: int) -> Task:
        """The task that rows of so many columns would answer. Reads nothing."""
        bounds = checked_bounds(self)
        bounds.check_size(n_features)
        check_positive("epsilon", self.epsilon, "it is what one report costs", LARGEST_EPSILON)
        lowest = 0.0 if bounds.nonnegative else -1.0

        def feature(name: str, kind: str, reach: float) -> dict[str, Any]:
            both = [lowest * reach, reach]
            return {"name": name, "kind": kind, "bounds": both, "center": 0.0}

        binary = binary_columns(getattr(self, "binary", None), n_features)
        if np.ndim(bounds.x) == 0 and not binary.any():
            features = [feature("x", "vector", float(bounds.x)) | {"size": n_features}]
        else:
            reach = bounds.per_column(n_features).tolist()
            features = [
                {"name": f"x[{j}]", "kind": "yes-no"}
                if binary[j]
                else feature(f"x[{j}]", "number", one)
                for j, one in enumerate(reach)
            ]
        length = {}
        if bounds.max_length is not None and not binary.any():
            length = {"length": bounds.unit_length(slice(None), n_features)}
        table = {
            "kind": self._task_kind(n_features),
            "epsilon": self.epsilon,
            "features": features,
            **length,
            **self._task_fields(),
        }
        return Task.from_table(table)

    def plan(self, n_rows: int, n_features: int, **guess: Any) -> Any:
        """What can be learned from so many people. Reads nothing; see `riata.local.Task.plan`."""
        return self.task(n_features).plan(n_rows, **guess)

    def _simulate(
        self, task: Task, x: Any, targets: np.ndarray | None, *notes: str, **how: Any
    ) -> LocalModel:
        """Every device in turn, the server that adds their reports up, and what it learns."""
        noise = Noise(seed_from(self.random_state))
        aggregator = Aggregator(task, expected=x.shape[0])
        parts = list(row_slices(x.shape[0], x.shape[1], _AT_ONCE))
        with progress_bar(type(self).__name__, len(parts), self.verbose) as callback:
            for number, part in enumerate(parts, start=1):
                answers = None if targets is None else targets[part]
                aggregator.add(randomize(task, _encoded(task, x[part]), answers, noise))
                if callback is not None:
                    callback(Step(number, len(parts)))
        model = aggregator.solve(**how)
        self.set_model(model)
        self.privacy_ = statement(task, model.reports, SIMULATED, *notes, seeded=noise.seeded)
        return model

    def set_model(self, model: LocalModel) -> None:
        """What is learned, as attributes."""
        self.task_, self.model_, self.signal_ = model.task, model, model.signal

    def _decision(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        x = rows(self, X, reset=False)
        parts = row_slices(x.shape[0], x.shape[1], _AT_ONCE)
        return np.concatenate(
            [self.model_.decision(_encoded(self.task_, x[part])) for part in parts]
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags


def _encoded(task: Task, block: Any) -> np.ndarray:
    block = block.toarray() if sparse.issparse(block) else np.asarray(block)
    with np.errstate(all="ignore"):  # a warning about a cast would tell of a value
        return task.encoding.encode_array(block.astype(float))


def binary_columns(given: Any, n_features: int) -> np.ndarray:
    """Which columns were declared to hold 0 and 1."""
    found = np.zeros(n_features, dtype=bool)
    for column in () if given is None else given:
        if not (is_whole(column) and 0 <= column < n_features):
            raise InvalidArgument(
                f"binary has {column!r}: it holds numbers of columns, from 0 to {n_features - 1}."
            )
        found[column] = True
    return found
