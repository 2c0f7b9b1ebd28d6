"""What a fit made: coefficients, labels and the Statement, with the types that fit gives them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.data import Schema
from riata.errors import InvalidArgument
from riata.estimators import (
    HeavyTailedRegression,
    PrivateCoxRegression,
    PrivateOrdinalRegression,
)
from riata.estimators.classifier import LogisticClassifier, PrivateClassifier
from riata.fitting.data_quality import DataQuality
from riata.model_file.archive import require, require_array
from riata.model_file.values import PLAIN, Reader, Writer
from riata.privacy.budget import ADJACENCY_IN_WORDS, LARGEST_SCALE, SMALLEST_SCALE
from riata.privacy.statement import Statement
from riata.wording import shown

NAMES, SCHEMA, QUALITY = "feature_names_in_", "schema_", "data_quality_"
COVARIANCE, SPREAD, ALWAYS = "coef_covariance_", "residual_spread_", "unpenalized_"
OPTIONAL = {NAMES, SCHEMA, QUALITY, COVARIANCE, SPREAD, ALWAYS}

#: Numbers of each column, of which most may be 0.
_COLUMNS = ("coef_", "coef_error_", "selection_order_")

#: Numbers that go with each intercept, NaN where the solver says nothing.
_ERRORS = ("intercept_error_", "training_fit_", "training_fit_error_")


def _names(kind: type[Any]) -> set[str]:
    """The attributes that a fitted model of this kind has, besides its Statement."""
    own = {"classes_", "class_weight_"} if issubclass(kind, PrivateClassifier) else set()
    own |= {"calibration_"} if issubclass(kind, LogisticClassifier) else set()
    if issubclass(kind, PrivateOrdinalRegression):
        own = {"classes_", "ordered_classes_", "thresholds_"}
    own |= {"band_ends_", "baseline_hazard_"} if issubclass(kind, PrivateCoxRegression) else set()
    own |= {"truncation_"} if issubclass(kind, HeavyTailedRegression) else set()
    return {*_COLUMNS, "intercept_", "n_features_in_", "n_iter_", *_ERRORS, *own}


def check_attributes(model: Any) -> None:
    """Refuse to save a model without what fit makes, or with more."""
    expected = {*_names(type(model)), "privacy_"}
    if not expected <= vars(model).keys():
        raise InvalidArgument("The model is not fitted, so there is none to save. Call fit first.")
    known = {*model.get_params(deep=False), *expected, *OPTIONAL}
    extra = [name for name in vars(model) if name not in known and not name.startswith("_")]
    if extra:
        raise InvalidArgument(
            f"The model has attributes that fit did not make and that would be lost: {extra}. "
            "Delete them, or keep them in a file of their own."
        )


def write_fitted(writer: Writer, model: Any) -> dict[str, Any]:
    own = {*_names(type(model)), *OPTIONAL} - {*_COLUMNS, SCHEMA}
    present = own & vars(model).keys()
    present -= {ALWAYS} if not np.size(getattr(model, ALWAYS, ())) else set()
    nodes = {name: writer.node(getattr(model, name), name) for name in sorted(present)}
    if hasattr(model, SCHEMA):
        nodes[SCHEMA] = model.schema_.toml()
    errors = np.nan_to_num(model.coef_error_)  # an error is positive: 0 is free to mean unknown
    return {
        **nodes,
        "coef_": _write_coefficients(writer, model.coef_, "coef_"),
        "coef_error_": _write_coefficients(writer, errors, "coef_error_"),
        "selection_order_": _write_coefficients(writer, model.selection_order_, "selection_order_"),
    }


def read_fitted(reader: Reader, model: Any, nodes: Any) -> dict[str, Any]:
    kind = type(model)
    expected = _names(kind)
    require(
        isinstance(nodes, dict) and expected <= nodes.keys() <= expected | OPTIONAL,
        f"A fitted {kind.__name__} has {sorted(expected)}, and the file has something else.",
    )
    found = {name: reader.value(node, name) for name, node in nodes.items() if name not in _COLUMNS}
    n, intercept = found["n_features_in_"], found["intercept_"]
    check_columns(n, found.get(NAMES))
    require(type(found["n_iter_"]) is int, f"Its number of steps is {shown(found['n_iter_'])}.")
    if SCHEMA in found:
        found[SCHEMA] = _read_schema(reader, found[SCHEMA], n)
    if QUALITY in found:
        require(isinstance(found[QUALITY], DataQuality), "Its counts of bad cells are none.")
    if "truncation_" in found:
        cut = found["truncation_"]
        usual = isinstance(cut, float) and SMALLEST_SCALE <= cut <= LARGEST_SCALE
        require(usual, "Its truncation is not a positive number.")
    found.setdefault(ALWAYS, np.zeros(0, dtype=np.int64))
    size = model.n_coefficients(n)
    shape: tuple[int, ...] = (size,)
    if not model.has_intercept:
        require_nuisance(reader, found)
    if "class_weight_" in found:
        shape = (number_of_fits(reader, found["classes_"]), size)
        require_array(intercept, "intercept_", "<f8", shape[:1])
        weights = found["class_weight_"]
        require_array(weights, "class_weight_", "<f8", found["classes_"].shape)
        require(bool(np.all(weights > 0)), "A class has a weight that is not positive.")
    else:
        finite = isinstance(intercept, float) and math.isfinite(intercept)
        require(finite, "Its intercept is not a finite number.")
    if "calibration_" in found:
        lines = found["calibration_"]
        require_array(lines, "calibration_", "<f8", (shape[0], 2))
        require(bool(np.all(lines[:, 0] > 0)), "A calibration has a slope that is not positive.")
    for name in _ERRORS:
        given = np.asarray(found[name])
        usual = type(found[name]) is type(intercept) and given.dtype == np.float64
        require(usual and given.shape == shape[:-1], f"Its {name} does not fit its intercept.")
    _check_extra(found, shape)
    errors = _read_coefficients(reader, nodes["coef_error_"], shape, "coef_error_")
    errors[errors == 0] = math.nan
    order = _read_coefficients(reader, nodes["selection_order_"], shape, "selection_order_")
    reader.limit.take(3 * order.nbytes, "Its order of selection")
    places = np.clip(order, 0, size).astype(np.int64)
    require(np.array_equal(places, order), "Its order of selection is not made of whole numbers.")
    return {
        **found,
        "selection_order_": places,
        "coef_": _read_coefficients(reader, nodes["coef_"], shape, "coef_"),
        "coef_error_": errors,
    }


def require_nuisance(reader: Reader, found: dict[str, Any]) -> None:
    """Refuse thresholds and baselines that are none."""
    if "classes_" in found:
        number_of_fits(reader, found["classes_"])
        ordered, thresholds = found["ordered_classes_"], found["thresholds_"]
        row = isinstance(ordered, np.ndarray) and ordered.dtype == found["classes_"].dtype
        sorted_alike = row and np.array_equal(np.unique(ordered), found["classes_"])
        require(sorted_alike, "Its ordered classes are not its classes.")
        require_array(thresholds, "thresholds_", "<f8", (len(ordered) - 1,))
        require(bool(np.all(np.diff(thresholds) > 0)), "Its thresholds do not increase.")
        return
    ends, hazards = found["band_ends_"], found["baseline_hazard_"]
    require(isinstance(ends, np.ndarray) and ends.ndim == 1 and len(ends) > 0, "It has no bands.")
    require_array(ends, "band_ends_", "<f8", ends.shape)
    require_array(hazards, "baseline_hazard_", "<f8", ends.shape)
    rising = bool(np.all(np.diff(ends, prepend=0.0) > 0)) and bool(np.all(hazards > 0))
    require(rising, "Its bands or its hazards are not positive and in order.")


def _check_extra(found: dict[str, Any], shape: tuple[int, ...]) -> None:
    """Refuse covariances, unpenalized columns and a spread of residuals that no fit makes."""
    if COVARIANCE in found:
        values, size = found[COVARIANCE], shape[-1] + 1
        require_array(values, COVARIANCE, "<f8", (*shape[:-1], 2, size, size))
        usual = np.isfinite(values).all() and (np.diagonal(values, axis1=-2, axis2=-1) >= 0).all()
        require(bool(usual), "Its covariances are none.")
    places = found[ALWAYS]
    require_array(places, ALWAYS, "<i8", (np.size(places),))
    inside = bool(np.all(np.diff(places) > 0) and np.all((places >= 0) & (places < shape[-1])))
    require(inside, "Its unpenalized columns are none of its columns.")
    if SPREAD in found:
        usual = isinstance(found[SPREAD], float) and 0 < found[SPREAD] < math.inf
        require(bool(usual), "The spread of its residuals is not a positive number.")


def _read_schema(reader: Reader, text: Any, n_features: int) -> Schema:
    require(type(text) is str, "Its schema is no text.")
    schema = Schema.read_within(text, reader.limit)
    fits = schema.n_features == n_features and schema.target is not None
    require(fits, f"Its schema is not one of {n_features} columns and a target.")
    return schema


def check_columns(n: Any, names: Any) -> None:
    """Refuse a number of columns that is none, and names that do not fit it."""
    require(type(n) is int and n >= 1, f"Its number of columns is {shown(n)}.")
    if names is not None:
        named = isinstance(names, np.ndarray) and names.dtype == object
        named = named and names.shape == (n,) and all(type(name) is str for name in names)
        require(named, f"It does not have one name for each of its {n} columns.")


def number_of_fits(reader: Reader, classes: Any) -> int:
    row = isinstance(classes, np.ndarray) and classes.ndim == 1
    reader.limit.take(3 * classes.nbytes if row else 0, "Its classes")
    different = row and len(np.unique(classes)) == len(classes) >= 2
    require(different, "Its classes are not two different labels or more.")
    return 1 if len(classes) == 2 else len(classes)


def _write_coefficients(writer: Writer, coef: np.ndarray, name: str) -> dict[str, Any]:
    """All of them, or those that are not zero and where they are, whichever is shorter."""
    coef = np.asarray(coef, dtype="<f8", order="C")
    flat = coef.ravel()
    support = np.flatnonzero(flat.view("<i8"))  # a negative zero is kept
    if 2 * len(support) >= len(flat):
        return writer.array(coef, name)
    places = writer.array(support.astype("<i8"), f"{name}.support")
    values = writer.array(flat[support], f"{name}.values")
    return {"sparse": [list(coef.shape), places, values]}


def _read_coefficients(reader: Reader, node: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Coefficients of this shape, which the rest of the file implies."""
    size = math.prod(shape)
    if not (isinstance(node, dict) and node.keys() == {"sparse"}):
        coef: np.ndarray = reader.value(node, name)
        require_array(coef, name, "<f8", shape)
        return coef
    reader.limit.take(8 * size, f"Its {size} coefficients")
    declared, places, values = node["sparse"]
    support = reader.value(places, f"{name}.support")
    require_array(support, f"{name}.support", "<i8", (len(support),))
    found = reader.value(values, f"{name}.values")
    require_array(found, f"{name}.values", "<f8", support.shape)
    inside = len(support) == 0 or (support[0] >= 0 and support[-1] < size)
    fits = declared == list(shape) and inside and np.all(support[1:] > support[:-1])
    require(fits, f"The places of its coefficients do not fit the shape {shape}.")
    coef = np.zeros(size)
    coef[support] = found
    return coef.reshape(shape)


def read_statement(reader: Reader, node: Any) -> Statement:
    """A claim in the form that riata gives it. Whether it is true, no file can say."""
    claim: Statement = reader.build(Statement, node, "privacy_")
    texts = (claim.solver, claim.accountant, *claim.releases, *claim.notes, *claim.public)
    require(
        isinstance(claim.epsilon, float)
        and isinstance(claim.delta, float)
        and claim.epsilon >= 0
        and 0 <= claim.delta <= 1
        and claim.adjacency in ADJACENCY_IN_WORDS
        and type(claim.seeded) is bool
        and type(claim.steps) is int
        and type(claim.releases) is type(claim.notes) is tuple
        and type(claim.public) is dict
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(fact, PLAIN) for fact in claim.public.values()),
        "Its Statement is not one that riata makes.",
    )
    return claim
