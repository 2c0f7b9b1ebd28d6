"""A model that was learned from reports: its task, its coefficients and its Statement."""

from __future__ import annotations

from typing import Any

from riata.local.learners import LocalModel
from riata.local.task import Task
from riata.model_file.archive import require
from riata.model_file.arrays import require_array
from riata.model_file.fitted import read_statement
from riata.model_file.values import Reader, Writer

NAME = "LocalModel"
_ARRAYS = ("theta", "theta_errors")
_PLAIN = {"reports": int, "signal": bool, "offset": float, "evidence": float}


def describe_local(writer: Writer, model: LocalModel) -> dict[str, Any]:
    """What the manifest says of such a model."""
    fitted = {name: writer.array(getattr(model, name).astype("<f8"), name) for name in _ARRAYS}
    fitted |= {name: writer.node(kind(getattr(model, name)), name) for name, kind in _PLAIN.items()}
    return {
        "estimator": NAME,
        "parameters": {"task": model.task.canonical.decode()},
        "fitted": fitted,
        "statement": writer.fields(model.privacy, "privacy"),
    }


def build_local(reader: Reader, manifest: dict[str, Any]) -> LocalModel:
    """The inverse. The Statement must be the one of the task."""
    parameters, nodes = manifest["parameters"], manifest["fitted"]
    named = isinstance(parameters, dict) and parameters.keys() == {"task"}
    require(named and type(parameters["task"]) is str, "It does not say which task it answers.")
    task = Task.read(parameters["task"])
    require(task.canonical.decode() == parameters["task"], "Its task is not in the canonical form.")
    expected = {*_ARRAYS, *_PLAIN}
    complete = isinstance(nodes, dict) and nodes.keys() == expected
    require(complete, f"A {NAME} has {sorted(expected)}, and the file has something else.")
    found = {name: reader.value(nodes[name], name) for name in sorted(expected)}
    size = task.vector_size - (task.intercept > 0)
    for name in _ARRAYS:
        require_array(found[name], name, "<f8", (size,))
    for name, kind in _PLAIN.items():
        require(type(found[name]) is kind, f"Its {name} is {found[name]!r}.")
    require(found["reports"] >= 0, f"Its number of reports is {found['reports']}.")
    model = LocalModel(task=task, **found)
    said = read_statement(reader, manifest["statement"])
    require(said == model.privacy, "Its Statement is not the one of its task.")
    return model
