"""Linear models as ONNX graphs, which other programs and languages run."""

from __future__ import annotations

import json
import math
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.estimators.classifier import LogisticClassifier
from riata.estimators.description import ModelDescription, describe
from riata.estimators.local import LocalLasso, LocalLogisticRegression
from riata.estimators.local_base import LocalEstimator
from riata.estimators.ordinal import PrivateOrdinalRegression
from riata.estimators.pipelines import inner_model, schema_of
from riata.row_norms import NORMS

#: The version of ONNX's operators, and of the file format that goes with them: old enough for
#: runtimes of some years ago.
OPSET, IR_VERSION = 17, 8
ROWS = "X"


#: The operators that make means of margins, by the link of the loss.
_INVERSE_LINKS = {"identity": "Identity", "log": "Exp", "logit": "Sigmoid"}


def export_onnx(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted linear model as an ONNX graph. Needs the extra `riata[onnx]`.

    The graph reads rows as `predict` does: missing values count as 0, and rows are clipped into
    the bounds. It computes in double precision.

    Parameters
    ----------
    model : fitted estimator
        Any linear one: all but `LocalSparseMean` and `LocalKernelRidge`. Or a pipeline of
        `SchemaEncoder` and such a one: the graph begins after the encoder.
    path : path-like
        The file is replaced if there is one.

    Notes
    -----
    The input is called "X", of shape (rows, columns) and type double. The outputs are called
    "prediction", for numbers; or "label", "decision" and, for logistic models, "probabilities".
    The Statement is in the metadata of the file, as JSON under "riata.statement". Of a model with a
    schema "X" is an encoded row, and the schema is there too, under "riata.schema".

    *Privacy.* The file holds the coefficients, the bounds and the Statement. It holds no row.
    """
    whole, model = model, inner_model(model)
    schema = schema_of(whole) if whole is not model else getattr(model, "schema_", None)
    _check(model)
    graph = _Graph(model.n_features_in_)
    if isinstance(model, LocalEstimator):
        _local_margins(graph, model)
    else:
        _margins(graph, model)
    about = describe(model)
    if about.ordered:
        _ordered(graph, model)
    elif about.output == "label":
        _classes(graph, about)
    else:
        link = getattr(getattr(model, "loss", None), "link", "identity")
        graph.output(graph(_INVERSE_LINKS[link], "margins"), "prediction", [None])
    Path(path).write_bytes(graph.finished(model, "" if schema is None else schema.toml()))


def _check(model: Any) -> None:
    linear = isinstance(model, PrivateLinearModel | LocalLasso | LocalLogisticRegression)
    if not linear:
        raise InvalidArgument(
            f"Cannot export a {type(model).__name__}: an ONNX file holds a fitted linear model of "
            "riata. Keep other models with riata.save."
        )
    if not hasattr(model, "privacy_"):
        raise InvalidArgument("The model is not fitted, so there is nothing to export. Fit it.")
    if find_spec("onnx") is None:
        raise InvalidArgument(
            "An ONNX file needs the package onnx, which is not installed. Install the extra: "
            'pip install "riata[onnx]".'
        )


class _Graph:
    """Nodes in order, and the constants that they use."""

    def __init__(self, columns: int) -> None:
        from onnx import TensorProto, helper

        self._helper, self._double = helper, TensorProto.DOUBLE
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []
        self.input = helper.make_tensor_value_info(ROWS, self._double, ["rows", columns])

    def constant(self, value: Any) -> str:
        """The name of a constant: numbers, or texts as they are."""
        from onnx import TensorProto, helper, numpy_helper

        name = f"constant_{len(self.constants)}"
        array = np.asarray(value)
        if array.dtype.kind == "U":
            texts = [one.encode() for one in array.tolist()]
            tensor = helper.make_tensor(name, TensorProto.STRING, array.shape, texts)
        else:
            tensor = numpy_helper.from_array(np.ascontiguousarray(array), name)
        self.constants.append(tensor)
        return name

    def __call__(self, operator: str, *inputs: Any, name: str = "", **attributes: Any) -> str:
        """One node, and the name of what it computes. Inputs are names or constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        name = name or f"value_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, names, [name], **attributes))
        return name

    def output(self, value: str, name: str, shape: list[Any], kind: int | None = None) -> None:
        self("Identity", value, name=name)
        shape = ["rows", *shape[1:]]
        made = self._helper.make_tensor_value_info(name, kind or self._double, shape)
        self.outputs.append(made)

    def finished(self, model: Any, schema: str) -> bytes:
        """The bytes of the file."""
        import onnx

        from riata import __version__

        graph = self._helper.make_graph(
            self.nodes, type(model).__name__, [self.input], self.outputs, self.constants
        )
        made = self._helper.make_model(
            graph,
            opset_imports=[self._helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="riata",
            producer_version=__version__,
            doc_string=model.privacy_.sentence,
        )
        statement = json.dumps(model.privacy_.to_dict(), default=str)
        more = {"riata.schema": schema} if schema else {}
        self._helper.set_model_props(made, {"riata.statement": statement, **more})
        onnx.checker.check_model(made, full_check=True)
        content: bytes = made.SerializeToString(deterministic=True)
        return content


def _margins(graph: _Graph, model: PrivateLinearModel) -> None:
    """x . coef_ + intercept_, for rows inside the bounds."""
    rows = _inside(graph, model.row_bounds())
    coef = model.row_functions()
    product = graph("MatMul", rows, np.array(coef.T))
    margins = graph("Add", product, np.atleast_1d(np.float64(model.intercept_)))
    if isinstance(model, LogisticClassifier):
        margins = graph("Mul", margins, np.array(model.calibration_[:, 0]))
        margins = graph("Add", margins, np.array(model.calibration_[:, 1]))
    _flat(graph, margins, len(coef))


def _flat(graph: _Graph, margins: str, functions: int) -> None:
    """One number a row, unless there are several classes."""
    if functions == 1:
        graph("Squeeze", margins, np.array([1]), name="margins")
    else:
        graph("Identity", margins, name="margins")


def _present(graph: _Graph) -> str:
    """The rows, with 0 for what is missing."""
    return graph("Where", graph("IsNaN", ROWS), np.float64(0.0), ROWS)


def _inside(graph: _Graph, bounds: Any) -> str:
    """The rows as `Bounds.clip_x` reads them."""
    reach = np.asarray(bounds.x, dtype=np.float64)
    lowest = np.zeros_like(reach) if bounds.nonnegative else -reach
    rows = graph("Min", graph("Max", _present(graph), lowest), reach)
    if not bounds.shortens:
        return rows
    if bounds.norm not in NORMS:
        units = graph("Div", graph("Abs", rows), np.float64(bounds.x))
        powers = graph("Pow", units, np.float64(bounds.order))
        total = graph("ReduceSum", powers, np.array([1]), keepdims=1)
        longer = graph("Max", graph("Pow", total, np.float64(1 / bounds.order)), np.float64(1.0))
        return graph("Div", rows, longer)
    scaled = graph("Div", rows, np.float64(bounds.max_length))
    squares = graph("ReduceSum", graph("Mul", scaled, scaled), np.array([1]), keepdims=1)
    longer = graph("Max", graph("Sqrt", squares), np.float64(1.0))
    return graph("Mul", rows, graph("Div", np.float64(1.0), longer))


def _local_margins(graph: _Graph, model: LocalEstimator) -> None:
    """The margins of rows that are encoded as devices encode them."""
    task, learned = model.task_, model.model_
    columns = [
        (feature.bounds[0], feature.bounds[1], feature.center, feature.weight / feature.reach)
        for feature in task.encoding.features
        for _ in range(feature.columns)
    ]
    low, high, center, scale = np.array(columns, dtype=np.float64).T.copy()
    missing = graph("IsNaN", ROWS)
    away = graph("Sub", graph("Min", graph("Max", _present(graph), low), high), center)
    encoded = graph("Where", missing, np.float64(0.0), graph("Mul", away, scale))
    encoded = graph("Div", encoded, np.float64(task.encoding.length))
    theta = math.sqrt(1.0 - task.intercept) * learned.theta
    margins = graph("Add", graph("MatMul", encoded, theta[:, None]), np.float64(learned.offset))
    if isinstance(model, LocalLasso):
        assert task.target is not None
        margins = graph("Mul", margins, np.float64(task.target.reach))
    _flat(graph, margins, 1)


def _classes(graph: _Graph, about: ModelDescription) -> None:
    """Labels, decisions and, if the margins are log odds, probabilities."""
    from onnx import TensorProto

    labels = about.labels
    two = len(labels) == 2
    if two:
        above = graph("Greater", "margins", np.float64(0.0))
        winners = graph("Cast", above, to=TensorProto.INT64)
    else:
        winners = graph("ArgMax", "margins", axis=1, keepdims=0)
    values, kind = _labels(labels)
    graph.output(graph("Gather", values, winners), "label", [None], kind)
    graph.output("margins", "decision", [None] if two else [None, len(labels)])
    if about.probabilities:
        many = _joint_chances if about.multinomial else _many_chances
        chances = _two_chances(graph) if two else many(graph)
        graph.output(chances, "probabilities", [None, len(labels)])


def _ordered(graph: _Graph, model: PrivateOrdinalRegression) -> None:
    """Labels, decisions and probabilities of ordered classes, in the order of `classes_`."""
    columns = graph("Unsqueeze", "margins", np.array([1]))
    zero = graph("Mul", columns, np.float64(0.0))
    above = graph("Sigmoid", graph("Sub", columns, model.thresholds_[None]))
    upper = graph("Concat", graph("Add", zero, np.float64(1.0)), above, axis=1)
    chances = graph("Sub", upper, graph("Concat", above, zero, axis=1))
    chances = graph("Gather", chances, np.argsort(model.ordered_classes_), axis=1)
    values, kind = _labels(model.classes_)
    winners = graph("ArgMax", chances, axis=1, keepdims=0)
    graph.output(graph("Gather", values, winners), "label", [None], kind)
    graph.output("margins", "decision", [None])
    graph.output(chances, "probabilities", [None, len(model.classes_)])


def _labels(labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Labels in a type that ONNX has, and its code."""
    from onnx import TensorProto

    found = np.array(labels.tolist())
    if found.dtype.kind in "iu":
        return found.astype(np.int64), TensorProto.INT64
    known = {"b": TensorProto.BOOL, "f": TensorProto.DOUBLE, "U": TensorProto.STRING}
    if found.dtype.kind not in known or len(np.unique(found)) != len(labels):
        raise InvalidArgument(
            f"The labels have the type {labels.dtype}, which ONNX does not have. Fit with labels "
            "that are whole numbers, booleans or texts."
        )
    return found, known[found.dtype.kind]


def _two_chances(graph: _Graph) -> str:
    """The probabilities of both classes."""
    odds = graph("Unsqueeze", "margins", np.array([1]))
    both = [graph("Sigmoid", graph("Neg", odds)), graph("Sigmoid", odds)]
    return graph("Concat", *both, axis=1)


def _joint_chances(graph: _Graph) -> str:
    """The probabilities of classes that were fitted together."""
    return graph("Softmax", "margins", axis=1)


def _many_chances(graph: _Graph) -> str:
    """Scores against the rest, normalised to sum to 1: by logarithms, so that none vanishes."""
    falls = graph("Exp", graph("Neg", graph("Abs", "margins")))
    rest = graph("Log", graph("Add", falls, np.float64(1.0)))
    scores = graph("Sub", graph("Min", "margins", np.float64(0.0)), rest)
    return graph("Softmax", scores, axis=1)
