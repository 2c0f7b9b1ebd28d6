"""What kind of model it is: one answer for reports, files, ONNX graphs and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from riata.data.schema import Schema
from riata.estimators.pipelines import inner_model, schema_of
from riata.local.learners.model import LocalModel
from riata.local.task import Task

#: Kinds of tasks that ask for means.
MEANS = ("mean", "sparse-mean")


@dataclass(frozen=True, eq=False)
class ModelDescription:
    """Public facts about a fitted model."""

    #: Of its class, or of the kind of its task.
    name: str
    #: "mean", "number" or "label".
    output: str
    #: Whether it consists of linear functions of the columns, or of means.
    linear: bool
    #: Of the rows that it reads, and what they are called.
    n_columns: int
    names: Sequence[str] | None = None
    #: Of a classifier, in the order of their codes.
    labels: Any = None
    probabilities: bool = False
    #: Whether probabilities are the softmax of its margins.
    multinomial: bool = False
    #: Whether one linear function tells more than two classes apart, by thresholds.
    ordered: bool = False
    #: What it says beside its coefficients: the name and the text of each fact.
    facts: tuple[tuple[str, str], ...] = ()
    #: Of the source that it was fitted to.
    schema: Schema | None = None
    #: Of a model that was learned from reports.
    task: Task | None = None
    #: Whether the reports are of real devices: a `LocalModel`, which is no estimator.
    collected: bool = False

    @property
    def function_labels(self) -> list[str]:
        """What each linear function speaks for: a class, or "" for the only one."""
        if self.labels is None or self.ordered:
            return [""]
        return [str(label) for label in (self.labels if len(self.labels) > 2 else self.labels[1:])]


def describe(model: Any) -> ModelDescription:
    """The facts about a fitted estimator of riata, or about a model learned from reports."""
    if isinstance(model, LocalModel):
        return _of_reports(model)
    found = _of_estimator(inner_model(model))
    return found if inner_model(model) is model else replace(found, schema=schema_of(model))


def _of_reports(model: LocalModel) -> ModelDescription:
    kind, logistic = model.task.kind, model.task.kind == "logistic"
    return ModelDescription(
        name=f"Local model: {kind}",
        output="mean" if kind in MEANS else "label" if logistic else "number",
        linear=kind != "kernel",
        n_columns=model.task.encoding.columns,
        names=model.names,
        labels=("no", "yes") if logistic else None,
        probabilities=logistic,
        task=model.task,
        collected=True,
    )


def _of_estimator(model: Any) -> ModelDescription:
    mean, classifies = hasattr(model, "mean_"), is_classifier(model)
    labels = getattr(model, "classes_", None)
    if classifies and labels is None:
        labels = np.array([-1.0, 1.0])  # of a loss for labels, without names for them
    return ModelDescription(
        name=type(model).__name__,
        output="mean" if mean else "label" if classifies else "number",
        linear=mean or hasattr(model, "coef_"),
        n_columns=model.n_features_in_,
        names=getattr(model, "feature_names_in_", None),
        labels=labels,
        probabilities=hasattr(model, "predict_proba"),
        multinomial=getattr(model, "multinomial", False),
        ordered=hasattr(model, "thresholds_"),
        facts=model.summary_facts() if hasattr(model, "summary_facts") else (),
        schema=getattr(model, "schema_", None),
        task=getattr(model, "task_", None),
    )
