"""A fitted model as the members of an archive, and back."""

from __future__ import annotations

import inspect
import json
from typing import Any

from riata import estimators
from riata.errors import InvalidArgument, ModelFileError
from riata.estimators.base import PrivateLinearModel
from riata.estimators.local_base import LocalEstimator
from riata.local.learners import LocalModel
from riata.model_file.archive import require, require_small
from riata.model_file.fitted import check_attributes, read_fitted, read_statement, write_fitted
from riata.model_file.local import NAME, build_local, describe_local
from riata.model_file.values import Reader, Writer
from riata.solvers import Solver
from riata.solvers.plan import check_steps

Model = PrivateLinearModel | LocalModel

ESTIMATORS: dict[str, type[Any]] = {
    name: kind
    for name in estimators.__all__
    if issubclass(kind := getattr(estimators, name), PrivateLinearModel)
}
_ANY_OF_THEM = f"{', '.join([*ESTIMATORS][:-1])} or {[*ESTIMATORS][-1]}"

FORMAT, VERSION = "riata model", 1

_MANIFEST = "model.json"
_ENTRIES = ["format", "version", "riata", "estimator", "parameters", "fitted", "statement"]

#: What Python's objects take for each byte of the JSON that they are read from, at most.
_JSON_GROWTH = 32


def describe(model: Any) -> dict[str, bytes]:
    """The members of the archive of a model, by name."""
    from riata import __version__

    writer = Writer()
    what = describe_local if type(model) is LocalModel else _describe_estimator
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "riata": __version__,
        **what(writer, model),
    }
    text = json.dumps(manifest, indent=1, allow_nan=False)
    return {_MANIFEST: text.encode("ascii"), **writer.arrays}


def _describe_estimator(writer: Writer, model: Any) -> dict[str, Any]:
    kind = type(model)
    if isinstance(model, LocalEstimator):
        raise InvalidArgument(
            f"Cannot save a {kind.__name__}: it is a simulation, and a model file holds a fitted "
            f"{_ANY_OF_THEM}. What Aggregator.solve learned from real reports can be saved, and so "
            "can their sums with riata.local.Aggregator.save."
        )
    if ESTIMATORS.get(kind.__name__) is not kind:
        raise InvalidArgument(
            f"Cannot save a {kind.__name__}: a model file holds a fitted {_ANY_OF_THEM}, and "
            "loading anything else would have to run code. Save the riata model inside it."
        )
    check_attributes(model)
    parameters = model.get_params(deep=False)
    del parameters["ledger"]
    if hasattr(parameters["random_state"], "randint"):
        parameters["random_state"] = None
    return {
        "estimator": kind.__name__,
        "parameters": {name: writer.node(value, name) for name, value in parameters.items()},
        "fitted": write_fitted(writer, model),
        "statement": writer.fields(model.privacy_, "privacy_"),
    }


def build(members: dict[str, bytes], max_bytes: int) -> Model:
    """The model that the members of an archive describe. May raise anything, and runs no code."""
    require(_MANIFEST in members, f"It has no member {_MANIFEST}.")
    text = members.pop(_MANIFEST)
    require_small(_JSON_GROWTH * len(text), max_bytes, f"Its {_MANIFEST} could take more")
    manifest = _manifest(text)
    reader = Reader(members, max_bytes)
    what = build_local if manifest["estimator"] == NAME else _build_estimator
    model = what(reader, manifest)
    require(not members, f"It has members that no array needs: {sorted(members)[:5]}.")
    return model


def _build_estimator(reader: Reader, manifest: dict[str, Any]) -> Any:
    model = _unfitted(reader, ESTIMATORS[manifest["estimator"]], manifest["parameters"])
    fitted = read_fitted(reader, model, manifest["fitted"])
    fitted["privacy_"] = read_statement(reader, manifest["statement"])
    _check_parameters(model, fitted["n_features_in_"])
    vars(model).update(fitted)
    return model


def _manifest(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text.decode("ascii"), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as problem:
        raise ModelFileError(
            f"Its {_MANIFEST} is not JSON that riata writes ({problem})."
        ) from None
    known = isinstance(found, dict) and found.get("format") == FORMAT
    require(known, f"Its {_MANIFEST} does not say that it is a {FORMAT}.")
    version, writer, name = (found.get(entry) for entry in ("version", "riata", "estimator"))
    require(
        type(version) is int and version == VERSION,
        f"It has version {version!r} of the format, by riata {writer!r}, and this riata reads "
        f"version {VERSION}. Use the riata that wrote it, or a newer one.",
    )
    require(found.keys() == {*_ENTRIES}, f"Its {_MANIFEST} does not have the entries {_ENTRIES}.")
    require(type(writer) is str, "It does not say which riata wrote it.")
    known = type(name) is str and (name in ESTIMATORS or name == NAME)
    require(known, f"It holds a {name!r}, and riata loads a {NAME}, {_ANY_OF_THEM}.")
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _unfitted(reader: Reader, kind: type[Any], nodes: Any) -> Any:
    """An estimator with the parameters of the file."""
    require(isinstance(nodes, dict), "It has no parameters.")
    unknown = sorted(nodes.keys() - (inspect.signature(kind).parameters.keys() - {"ledger"}))
    require(not unknown, f"{kind.__name__} has no parameters {unknown} that a file may set.")
    return kind(**{name: reader.value(node, name) for name, node in nodes.items()})


def _check_parameters(model: Any, n_features: int) -> None:
    """What fit would refuse is refused here."""
    model._check_parameters()
    model._checked_bounds().check_size(n_features)
    model._set().sized(n_features)
    check_steps(model.steps)
    require(isinstance(model.solver, str | Solver), "Its solver is neither a name nor a solver.")
