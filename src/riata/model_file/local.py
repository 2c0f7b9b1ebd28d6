"""Models that were learned from reports: the public task, and what its reports showed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.estimators import LocalLogisticRegression
from riata.estimators.local_base import LocalEstimator
from riata.files.text import json_size
from riata.local.learners.model import LocalModel
from riata.local.task import Task
from riata.model_file.archive import require, require_array
from riata.model_file.fitted import NAMES, check_columns, number_of_fits
from riata.model_file.values import Reader, Writer

#: What a column takes in the arrays of coefficients, and what it takes as a question of a task.
_COLUMN, _QUESTION = 256, 4096

_LOCAL_MODEL = ("task", "reports", "signal", "theta", "theta_errors", "offset", "evidence")


def write_local_model(writer: Writer, model: LocalModel) -> dict[str, Any]:
    return {
        "task": model.task.canonical.decode(),
        **{name: writer.node(getattr(model, name), name) for name in _LOCAL_MODEL[1:]},
    }


def read_local_model(reader: Reader, nodes: Any) -> LocalModel:
    """The model of a task file that riata itself would accept."""
    require(
        isinstance(nodes, dict) and nodes.keys() == {*_LOCAL_MODEL},
        f"A learned model has {sorted(_LOCAL_MODEL)}, and the file has something else.",
    )
    text = nodes["task"]
    require(type(text) is str, "Its task is not a text.")
    task = Task.read_within(text, reader.limit)
    reader.limit.take(json_size(text), "Its task, written again,")
    require(task.canonical.decode() == text, "Its task is not written as riata writes it.")
    found = {name: reader.value(nodes[name], name) for name in _LOCAL_MODEL[1:]}
    size = task.vector_size - (task.intercept > 0)
    for name in ("theta", "theta_errors"):
        require_array(found[name], name, "<f8", (size,))
    offset, evidence, reports = found["offset"], found["evidence"], found["reports"]
    require(isinstance(offset, float) and math.isfinite(offset), "Its offset is not a number.")
    require(isinstance(evidence, float), "Its evidence is not a number.")
    require(isinstance(found["signal"], bool | np.bool_), "Its signal is neither True nor False.")
    require(type(reports) is int and reports >= 0, "Its number of reports is not one.")
    return LocalModel(task=task, **found)


def check_local_estimator(model: LocalEstimator) -> None:
    """Refuse to save a simulation that was not run."""
    if "privacy_" not in vars(model):
        raise InvalidArgument("The model is not fitted, so there is none to save. Call fit first.")


def write_local_estimator(writer: Writer, model: LocalEstimator) -> dict[str, Any]:
    present = sorted({"n_features_in_", "classes_", NAMES} & vars(model).keys())
    nodes = {name: writer.node(getattr(model, name), name) for name in present}
    return nodes | {"model_": write_local_model(writer, model.model_)}


def read_local_estimator(reader: Reader, model: LocalEstimator, nodes: Any) -> dict[str, Any]:
    """The attributes that fit would have set."""
    expected = {"n_features_in_", "model_"}
    if isinstance(model, LocalLogisticRegression):
        expected |= {"classes_"}
    require(
        isinstance(nodes, dict) and expected <= nodes.keys() <= expected | {NAMES},
        f"A fitted {type(model).__name__} has {sorted(expected)}, and the file something else.",
    )
    found = {name: reader.value(nodes[name], name) for name in nodes if name != "model_"}
    n = found["n_features_in_"]
    check_columns(n, found.get(NAMES))
    if "classes_" in found:
        require(number_of_fits(reader, found["classes_"]) == 1, "It does not have two classes.")
    held = read_local_model(reader, nodes["model_"])
    columns = len(held.task.encoding.features) + held.task.encoding.columns
    reader.limit.take(_COLUMN * columns, f"The coefficients of its {n} columns")
    if np.ndim(getattr(model.bounds, "x", 0.0)) > 0:
        reader.limit.take(_QUESTION * n, f"A task of {n} columns")
    same = held.task.kind == model.task(n).kind and held.task.encoding.columns == n
    require(same, "Its task is not one of its parameters and columns.")
    before = {*vars(model)}
    model.set_model(held)
    made = {name: value for name, value in vars(model).items() if name not in before}
    return found | made
