"""A fitted model as the members of an archive, and back."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING, Any, TypeAlias

from riata import estimators
from riata.data import Schema, SchemaEncoder
from riata.errors import InvalidArgument
from riata.estimators.base import PrivateLinearModel
from riata.estimators.local_base import LocalEstimator
from riata.estimators.pipelines import inner_model, is_pipeline, schema_of
from riata.files.archive import Archive
from riata.files.limit import ReadLimit
from riata.files.text import json_size, parse_json
from riata.local.learners.model import LocalModel
from riata.model_file.archive import require
from riata.model_file.fitted import (
    SCHEMA,
    check_attributes,
    read_fitted,
    read_statement,
    write_fitted,
)
from riata.model_file.local import (
    check_local_estimator,
    read_local_estimator,
    read_local_model,
    write_local_estimator,
    write_local_model,
)
from riata.model_file.values import Reader, Writer
from riata.privacy.statement import Statement
from riata.solvers import Solver
from riata.solvers.plan import check_steps
from riata.wording import shown

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

Model: TypeAlias = "PrivateLinearModel | LocalEstimator | LocalModel | Pipeline"

ESTIMATORS: dict[str, type[Any]] = {
    name: getattr(estimators, name) for name in estimators.__all__
} | {"LocalModel": LocalModel}
_ANY_OF_THEM = f"{', '.join([*ESTIMATORS][:-1])} or {[*ESTIMATORS][-1]}"

FORMAT, VERSION = "riata model", 1

_MANIFEST = "model.json"
_ENCODER = "encoder"
_ENTRIES = ["format", "version", "riata", "estimator", "parameters", "fitted", "statement"]


def describe(model: Any) -> dict[str, bytes]:
    """The members of the archive of a model, by name."""
    from riata import __version__

    encoder = {}
    if is_pipeline(model):
        encoder = {_ENCODER: _write_encoder(model)}
        model = model.steps[-1][1]
    kind = type(model)
    if ESTIMATORS.get(kind.__name__) is not kind:
        raise InvalidArgument(
            f"Cannot save a {kind.__name__}: a model file holds a fitted {_ANY_OF_THEM}, and "
            "loading anything else would have to run code. Save the riata model inside it."
        )
    parameters, writer = _parameters(model), Writer()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "riata": __version__,
        "estimator": kind.__name__,
        "parameters": {name: writer.node(value, name) for name, value in parameters.items()},
        "fitted": _write_fitted(writer, model),
        "statement": writer.fields(_statement(model), "privacy_"),
        **encoder,
    }
    text = json.dumps(manifest, indent=1, allow_nan=False)
    return {_MANIFEST: text.encode("ascii"), **writer.arrays}


def _write_encoder(pipeline: Pipeline) -> dict[str, Any]:
    """The schema of a pipeline's encoder, and the names of its two steps."""
    inner_model(pipeline)
    return {"steps": [name for name, _ in pipeline.steps], "schema": schema_of(pipeline).toml()}


def _read_encoder(node: Any, model: Any, limit: ReadLimit) -> Pipeline:
    """The pipeline around a model."""
    from sklearn.pipeline import Pipeline  # slow to import

    require(isinstance(node, dict) and node.keys() == {"steps", "schema"}, "Its encoder is none.")
    steps, text = node["steps"], node["schema"]
    named = isinstance(steps, list) and len(steps) == 2 and all(type(s) is str for s in steps)
    require(named and steps[0] != steps[1], "Its steps do not have two names.")
    require(type(text) is str, "The schema of its encoder is no text.")
    schema = Schema.read_within(text, limit)
    fits = isinstance(model, PrivateLinearModel) and schema.n_features == model.n_features_in_
    require(fits, f"The schema of its encoder is not one of {model.n_features_in_} columns.")
    return Pipeline([(steps[0], SchemaEncoder(schema)), (steps[1], model)])


def _parameters(model: Any) -> dict[str, Any]:
    """What `__init__` takes, without what no file may hold."""
    if isinstance(model, LocalModel):
        return {}
    parameters: dict[str, Any] = model.get_params(deep=False)
    parameters.pop("ledger", None)
    if hasattr(parameters["random_state"], "randint"):
        parameters["random_state"] = None
    return parameters


def _write_fitted(writer: Writer, model: Any) -> dict[str, Any]:
    if isinstance(model, LocalModel):
        return write_local_model(writer, model)
    if isinstance(model, LocalEstimator):
        check_local_estimator(model)
        return write_local_estimator(writer, model)
    check_attributes(model)
    return write_fitted(writer, model)


def _statement(model: Any) -> Statement:
    return model.privacy if isinstance(model, LocalModel) else model.privacy_


def build(archive: Archive, limit: ReadLimit) -> Model:
    """The model that an archive describes. May raise anything, and runs no code."""
    manifest = _manifest(archive.read(_MANIFEST), limit)
    reader = Reader(archive, limit)
    kind, claim = ESTIMATORS[manifest["estimator"]], read_statement(reader, manifest["statement"])
    model: Model
    if kind is LocalModel:
        require(manifest["parameters"] == {}, "A LocalModel has no parameters.")
        model = read_local_model(reader, manifest["fitted"])
        require(model.privacy == claim, "Its Statement is not the one of its task.")
    else:
        model = _unfitted(reader, kind, manifest["parameters"])
        vars(model).update(_read_fitted(reader, model, manifest["fitted"]), privacy_=claim)
    archive.end()
    if _ENCODER in manifest:
        return _read_encoder(manifest[_ENCODER], model, limit)
    return model


def _read_fitted(reader: Reader, model: Any, nodes: Any) -> dict[str, Any]:
    if isinstance(model, LocalEstimator):
        return read_local_estimator(reader, model, nodes)
    fitted = read_fitted(reader, model, nodes)
    if SCHEMA in fitted:
        model.schema_ = fitted[SCHEMA]  # the bounds of rows may come from it
    _check_parameters(model, fitted["n_features_in_"])
    return fitted


def _manifest(text: bytes, limit: ReadLimit) -> dict[str, Any]:
    found: dict[str, Any] = parse_json(text, limit, f"Its {_MANIFEST}")
    limit.take(json_size(text), f"What its {_MANIFEST} describes")
    known = isinstance(found, dict) and found.get("format") == FORMAT
    require(known, f"Its {_MANIFEST} does not say that it is a {FORMAT}.")
    version, writer, name = (found.get(entry) for entry in ("version", "riata", "estimator"))
    require(
        type(version) is int and version == VERSION,
        f"It has version {shown(version)} of the format, by riata {shown(writer)}, and this riata "
        f"reads version {VERSION}. Use the riata that wrote it, or a newer one.",
    )
    entries = found.keys() - {_ENCODER}
    require(entries == {*_ENTRIES}, f"Its {_MANIFEST} does not have the entries {_ENTRIES}.")
    require(type(writer) is str, "It does not say which riata wrote it.")
    known = type(name) is str and name in ESTIMATORS
    require(known, f"It holds a {shown(name)}, and riata loads a {_ANY_OF_THEM}.")
    return found


def _unfitted(reader: Reader, kind: type[Any], nodes: Any) -> Any:
    """An estimator with the parameters of the file."""
    require(isinstance(nodes, dict), "It has no parameters.")
    unknown = sorted(nodes.keys() - (inspect.signature(kind).parameters.keys() - {"ledger"}))
    what = f"{kind.__name__} has no parameters {shown(unknown)} that a file may set."
    require(not unknown, what)
    return kind(**reader.arguments(nodes))


def _check_parameters(model: Any, n_features: int) -> None:
    """What fit would refuse is refused here."""
    model.check_columns(n_features)
    check_steps(model.steps)
    require(isinstance(model.solver, str | Solver), "Its solver is neither a name nor a solver.")
