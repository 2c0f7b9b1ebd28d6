"""Fitted models as files that hold data and no code.

A model file is a zip archive of `model.json` and one `.npy` member for each array. Nothing in it
names a function, a module or a member: objects are written by the names in `CLASSES`, and the
member of an array is named after the place of the array in the model, so a reader knows every
name before it looks. Members are not compressed, so a file never unpacks to more than its size.
"""

from __future__ import annotations

import inspect
import io
import json
import math
import os
import re
import struct
import sys
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument, ModelFileError
from riata.estimators import PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.privacy.budget import ADJACENCY_IN_WORDS
from riata.privacy.statement import Statement
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex
from riata.solvers import FrankWolfe, GaussianFrankWolfe, PrivateFrankWolfe, Solver
from riata.solvers.plan import check_steps

FORMAT, VERSION = "riata model", 1

Model = PrivateLasso | PrivateLogisticRegression | PrivateErm

ESTIMATORS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (PrivateLasso, PrivateLogisticRegression, PrivateErm)
}

_LOSSES = (Squared, Huber, Logistic, SmoothedHinge, OneAgainstRest)
_SETS = (L1Ball, Simplex, GroupL1Ball, L2Ball, LpBall, Polytope)
_SOLVERS = (PrivateFrankWolfe, GaussianFrankWolfe, FrankWolfe)

#: The objects that a parameter may be, or hold. Loading builds nothing else.
CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Bounds, *_LOSSES, *_SETS, *_SOLVERS)
}

_MANIFEST = "model.json"
_TOP = {"format", "version", "riata", "estimator", "parameters", "fitted", "statement"}
_FITTED = ("coef_", "intercept_", "n_features_in_", "n_iter_")
_OPTIONAL = "feature_names_in_"

#: What Python's objects take for each byte of the JSON that they are read from, at most.
_JSON_GROWTH = 32

#: More members than any model has.
_MOST_MEMBERS = 64

#: Booleans, integers, floats, bytes and text of a fixed width: nothing that could hold an object.
_DTYPE = re.compile(r"[<>|][biufSU][0-9]{1,9}")
#: NumPy's codes of the single numbers and texts that JSON can hold exactly.
_SCALARS = "?bhilqBHILQefdU"
_ARRAY_NAME = re.compile(r"[A-Za-z0-9_.]+")

_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

_END_OF_ARCHIVE = struct.Struct("<4s4H2LH")


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file, replacing the file if there is one.

    Equal models give equal bytes. The file appears complete or not at all.

    Parameters
    ----------
    model : PrivateLasso, PrivateLogisticRegression or PrivateErm
        Its ledger is not saved, since a model file is not a way to spend; neither is the state of
        a `random_state` that is a generator. Both are None in the loaded model, and the Statement
        still says whether the noise was seeded.
    path : path-like

    Notes
    -----
    *Privacy.* The file holds the parameters, which are public, and what the fit released. It holds
    no row.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import riata
    >>> bounds = riata.Bounds(x=1.0, y=1.0)
    >>> model = riata.PrivateLasso(epsilon=1.0, delta=1e-6, bounds=bounds)
    >>> model = model.fit(np.zeros((1000, 3)), np.zeros(1000))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     riata.save(model, Path(folder) / "model.riata")
    ...     again = riata.load(Path(folder) / "model.riata")
    >>> again.privacy_ == model.privacy_
    True
    """
    content = _packed(_members(model))
    try:
        _model(content, sys.maxsize)
    except _Unreadable as problem:  # such as a parameter that was changed after the fit
        raise InvalidArgument(
            f"The model cannot be saved, because the file could not be loaded again: {problem}"
        ) from problem
    _write(Path(path), content)


def load(path: str | os.PathLike[str], *, max_bytes: int = 2**30) -> Model:
    """Read a model that `save` wrote. Runs no code from the file, whoever made it.

    Parameters
    ----------
    path : path-like
    max_bytes : int, default=2**30
        The most that the file, and the coefficients that it describes, may take. Few bytes can
        describe many zeros, so a file from a stranger could otherwise fill the memory.

    Returns
    -------
    PrivateLasso, PrivateLogisticRegression or PrivateErm
        Fitted, without a ledger.

    Notes
    -----
    The Statement is a claim by whoever wrote the file, not a certificate.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelFileError(f"There is no file {path} to load a model from. Check the path.")
    try:
        _check_size(path.stat().st_size, max_bytes)
        return _model(path.read_bytes(), max_bytes)
    except OSError as problem:
        raise ModelFileError(f"Cannot read {path}: {problem.strerror or problem}.") from problem
    except _Unreadable as problem:
        raise ModelFileError(f"Cannot load a model from {path}: {problem}") from problem.__cause__


class _Unreadable(Exception):
    """Why some bytes are no model, as a sentence or two."""


def _require(condition: object, otherwise: str) -> None:
    if not condition:
        raise _Unreadable(otherwise)


# Writing.


def _members(model: Any) -> dict[str, bytes]:
    """The members of the archive of a model, by name."""
    from riata import __version__

    kind = type(model)
    if ESTIMATORS.get(kind.__name__) is not kind:
        raise InvalidArgument(
            f"Cannot save a {kind.__name__}: a model file holds a fitted {_listed(ESTIMATORS)}, "
            "and loading anything else would have to run code. Save the riata model inside it."
        )
    expected = _fitted_names(kind)
    if not {*expected, "privacy_"} <= vars(model).keys():
        raise InvalidArgument(
            f"This {kind.__name__} is not fitted, so there is no model to save. Call fit first."
        )
    parameters = model.get_params(deep=False)
    names = {*parameters, *expected, _OPTIONAL, "privacy_"}
    extra = [name for name in vars(model) if name not in names and not name.startswith("_")]
    if extra:
        raise InvalidArgument(
            f"The model has attributes that fit did not make and that would be lost: {extra}. "
            "Delete them, or keep them in a file of their own."
        )
    del parameters["ledger"]
    if hasattr(parameters["random_state"], "randint"):
        parameters["random_state"] = None
    writer = _Writer()
    fitted = {name: writer.node(getattr(model, name), name) for name in expected if name != "coef_"}
    if hasattr(model, _OPTIONAL):
        fitted[_OPTIONAL] = writer.node(getattr(model, _OPTIONAL), _OPTIONAL)
    fitted["coef_"] = writer.coefficients(model.coef_)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "riata": __version__,
        "estimator": kind.__name__,
        "parameters": {name: writer.node(value, name) for name, value in parameters.items()},
        "fitted": fitted,
        "statement": writer.fields(model.privacy_, "privacy_"),
    }
    text = json.dumps(manifest, indent=1, allow_nan=False)
    return {_MANIFEST: text.encode("ascii"), **writer.arrays}


class _Writer:
    """Turns values into JSON and collects the arrays among them, named after their place."""

    def __init__(self) -> None:
        self.arrays: dict[str, bytes] = {}

    def node(self, value: Any, place: str) -> Any:
        """`value` as JSON: itself if JSON has its like, and otherwise {kind: content}."""
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is list:
            return self._nodes(value, place)
        if kind is tuple:
            return {"tuple": self._nodes(value, place)}
        if kind is range:
            return {"range": [value.start, value.stop, value.step]}
        if kind is dict and all(type(key) is str for key in value):
            return {"dict": {k: self.node(v, f"{place}.{k}") for k, v in value.items()}}
        if isinstance(value, np.generic) and value.dtype.char in _SCALARS:
            return {"scalar": [value.dtype.str, self.node(value.item(), place)]}
        if kind is np.ndarray:
            return self.array(value, place)
        if CLASSES.get(kind.__name__) is kind:
            return {kind.__name__: self.fields(value, place)}
        raise InvalidArgument(
            f"Cannot save {place}, a {kind.__module__}.{kind.__qualname__}: a model file holds "
            "riata's own objects, plain values and arrays of numbers or labels, and loading "
            "anything else would have to run code. Write an array-like as a list or an array, "
            f"with set_params({place.split('.')[0]}=...); keep a model with a class of your own "
            "as a pickle, for people who trust you."
        )

    def _nodes(self, values: Any, place: str) -> list[Any]:
        return [self.node(value, f"{place}.{i}") for i, value in enumerate(values)]

    def fields(self, value: Any, place: str) -> dict[str, Any]:
        """The fields of a dataclass."""
        return {
            f.name: self.node(getattr(value, f.name), f"{place}.{f.name}")
            for f in fields(value)
            if f.init
        }

    def array(self, value: np.ndarray, place: str) -> dict[str, Any]:
        """A numeric or text array as a member of its own, an array of objects within the JSON."""
        if value.ndim == 1 and value.dtype == object:
            return {"objects": self._nodes(value.tolist(), place)}
        if value.ndim == 1 and value.dtype == np.dtypes.StringDType():
            return {"strings": self._nodes(value.tolist(), place)}
        if not (_DTYPE.fullmatch(value.dtype.str) and _ARRAY_NAME.fullmatch(place)):
            raise InvalidArgument(
                f"Cannot save {place}, an array of {value.dtype} with {value.ndim} dimensions: a "
                "model file holds arrays of numbers, booleans and text. Convert it to one."
            )
        head = _npy_head(value.dtype.str, value.shape)
        self.arrays[f"{place}.npy"] = head + value.tobytes()
        return {"array": [value.dtype.str, list(value.shape)]}

    def coefficients(self, coef: np.ndarray) -> dict[str, Any]:
        """All of them, or those that are not zero and where they are, whichever is shorter."""
        coef = np.asarray(coef, dtype="<f8", order="C")
        flat = coef.ravel()
        support = np.flatnonzero(flat.view("<i8"))  # a negative zero is kept
        if 2 * len(support) >= len(flat):
            return self.array(coef, "coef_")
        return {
            "sparse": [
                list(coef.shape),
                self.array(support.astype("<i8"), "coef_.support"),
                self.array(flat[support], "coef_.values"),
            ]
        }


def _npy_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    """What precedes the numbers in version 1.0 of NumPy's format, the same in every release."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")


def _packed(members: dict[str, bytes]) -> bytes:
    """An archive without a clock, so that equal members give equal bytes."""
    out = io.BytesIO()
    try:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED, allowZip64=False) as archive:
            for name, content in members.items():
                info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
                info.create_system, info.external_attr = 3, 0o644 << 16
                archive.writestr(info, content)
    except zipfile.LargeZipFile as problem:
        raise InvalidArgument(
            "The model is too large for a model file, which holds at most 2 GiB. "
            "Keep its arrays with numpy.save."
        ) from problem
    return out.getvalue()


def _write(path: Path, content: bytes) -> None:
    """All of the file or nothing: written beside its place, then moved there."""
    beside = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    try:
        try:
            with beside.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as problem:
        raise ModelFileError(
            f"Cannot write {path}: {problem.strerror or problem}. Nothing was saved there."
        ) from problem


# Reading.


def _model(content: bytes, max_bytes: int) -> Model:
    """The model in the bytes of a file."""
    try:
        members = _unpacked(content, max_bytes)
        manifest = _manifest(members.pop(_MANIFEST), max_bytes)
        kind = ESTIMATORS[manifest["estimator"]]
        reader = _Reader(members, max_bytes)
        parameters = _parameters(reader, kind, manifest["parameters"])
        fitted = _fitted(reader, kind, manifest["fitted"])
        fitted["privacy_"] = _statement(reader, manifest["statement"])
        model = kind(**parameters)
        _check_parameters(model, fitted["n_features_in_"])
        _require(not members, f"It has members that no array needs: {sorted(members)[:5]}.")
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,  # InvalidArgument too
    ) as problem:
        raise _Unreadable(f"A value in it does not fit its place ({problem}).") from problem
    for name, value in fitted.items():
        setattr(model, name, value)
    return model


def _check_size(size: int, max_bytes: int) -> None:
    _require(
        size <= max_bytes,
        f"It is larger than max_bytes={max_bytes}. If you trust it, pass a larger max_bytes.",
    )


def _unpacked(content: bytes, max_bytes: int) -> dict[str, bytes]:
    """The members of an archive that `_packed` could have made."""
    _check_size(len(content), max_bytes)
    damaged = "It is not a model file, or it is cut off or damaged. Copy it again."
    _require(content[:4] == b"PK\x03\x04" and len(content) > 64, damaged)
    end = len(content) - _END_OF_ARCHIVE.size
    sign, *_, count, size, offset, comment = _END_OF_ARCHIVE.unpack_from(content, end)
    _require(sign == b"PK\x05\x06" and comment == 0 and offset + size == end, damaged)
    # The names are limited before they are read, and so is the larger kind of archive.
    _require(content[end - 20 : end - 16] != b"PK\x06\x07", damaged)
    _require(
        count <= _MOST_MEMBERS and size <= 512 * _MOST_MEMBERS,
        f"It has {count} members, more than any model.",
    )
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = archive.infolist()
            names = [info.filename for info in listed]
            _require(len(set(names)) == len(names), "Two of its members have the same name.")
            _require(_MANIFEST in names, f"It has no member {_MANIFEST}.")
            for info in listed:
                _require(
                    info.compress_type == zipfile.ZIP_STORED
                    and info.file_size == info.compress_size
                    and not info.flag_bits & 1,
                    f"Its member {info.filename!r} is compressed or encrypted, and riata never "
                    "does that.",
                )
            _require(sum(info.file_size for info in listed) <= len(content), damaged)
            return {info.filename: archive.read(info) for info in listed}
    except (zipfile.BadZipFile, EOFError, OSError, RuntimeError, struct.error) as problem:
        raise _Unreadable(damaged) from problem


def _manifest(text: bytes, max_bytes: int) -> dict[str, Any]:
    _require(
        len(text) <= max_bytes // _JSON_GROWTH,
        f"Its {_MANIFEST} could take more than max_bytes={max_bytes} in memory. "
        "If you trust it, pass a larger max_bytes.",
    )
    try:
        found = json.loads(
            text.decode("ascii"), object_pairs_hook=_without_repeats, parse_constant=_no_constant
        )
    except (ValueError, RecursionError) as problem:
        raise _Unreadable(f"Its {_MANIFEST} is not JSON that riata writes ({problem}).") from None
    _require(
        isinstance(found, dict) and found.get("format") == FORMAT,
        f"Its {_MANIFEST} does not say that it is a {FORMAT}.",
    )
    version = found.get("version")
    _require(
        type(version) is int and version == VERSION,
        f"It has version {version!r} of the format, by riata {found.get('riata')!r}, and this "
        f"riata reads version {VERSION}. Use the riata that wrote it, or a newer one.",
    )
    _require(found.keys() == _TOP, f"Its {_MANIFEST} does not have the entries {sorted(_TOP)}.")
    _require(type(found["riata"]) is str, "It does not say which riata wrote it.")
    name = found["estimator"]
    _require(
        type(name) is str and name in ESTIMATORS,
        f"It holds a {name!r}, and riata loads a {_listed(ESTIMATORS)}.",
    )
    return found


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _Reader:
    """The inverse of `_Writer`: takes each array out of `members` where it belongs."""

    def __init__(self, members: dict[str, bytes], max_bytes: int) -> None:
        self._members, self._max_bytes = members, max_bytes

    def value(self, node: Any, place: str) -> Any:
        if isinstance(node, list):
            return [self.value(item, f"{place}.{i}") for i, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        _require(len(node) == 1, f"{place} has {len(node)} kinds.")
        ((kind, content),) = node.items()
        if kind in CLASSES:
            return self.build(CLASSES[kind], content, place)
        match kind:
            case "float":
                return _FLOATS[content]
            case "tuple":
                return tuple(self._list(content, place))
            case "range":
                return self._range(content, place)
            case "dict":
                _require(isinstance(content, dict), f"{place} is not a dict.")
                return {k: self.value(v, f"{place}.{k}") for k, v in content.items()}
            case "scalar":
                return self._scalar(content, place)
            case "array":
                return self._array(content, place)
            case "objects":
                return self._labels(content, place, np.dtype(object))
            case "strings":
                return self._labels(content, place, np.dtypes.StringDType())
        raise _Unreadable(
            f"{place} is a {kind!r}, which this riata does not know. If a newer riata wrote the "
            "file, upgrade."
        )

    def build(self, kind: type[Any], content: Any, place: str) -> Any:
        """An object of riata's own, through its own checks."""
        known = {f.name for f in fields(kind) if f.init}
        _require(
            isinstance(content, dict) and content.keys() <= known,
            f"{place} is not made of the fields of {kind.__name__}, {sorted(known)}.",
        )
        return kind(**{name: self.value(node, f"{place}.{name}") for name, node in content.items()})

    def coefficients(self, node: Any, shape: tuple[int, ...]) -> np.ndarray:
        """Coefficients of this shape, which the rest of the file implies."""
        size = math.prod(shape)
        _require(
            8 * size <= self._max_bytes,
            f"Its {size} coefficients would take more than max_bytes={self._max_bytes}. "
            "If you trust it, pass a larger max_bytes.",
        )
        if isinstance(node, dict) and node.keys() == {"sparse"}:
            declared, *parts = self._list(node["sparse"], "coef_", decode=False)
            support, values = (
                self.value(part, f"coef_.{name}")
                for part, name in zip(parts, ("support", "values"), strict=True)
            )
            _require_array(support, "coef_.support", "<i8", (len(support),))
            _require_array(values, "coef_.values", "<f8", (len(support),))
            inside = len(support) == 0 or (support[0] >= 0 and support[-1] < size)
            _require(
                declared == list(shape) and inside and np.all(support[1:] > support[:-1]),
                f"The places of its coefficients do not fit the shape {shape}.",
            )
            coef = np.zeros(size)
            coef[support] = values
            coef = coef.reshape(shape)
        else:
            coef = self.value(node, "coef_")
        _require_array(coef, "coef_", "<f8", shape)
        return coef

    def _list(self, content: Any, place: str, *, decode: bool = True) -> list[Any]:
        _require(isinstance(content, list), f"{place} is not a list.")
        return self.value(content, place) if decode else content

    def _range(self, content: Any, place: str) -> range:
        found = range(*self._list(content, place))
        _require(8 * len(found) <= self._max_bytes, f"{place} is longer than max_bytes allows.")
        return found

    def _scalar(self, content: Any, place: str) -> Any:
        code, node = self._list(content, place, decode=False)
        dtype = _dtype(code, place)
        _require(dtype.char in _SCALARS, f"{place} has the type {code!r}.")
        return dtype.type(self.value(node, place))

    def _labels(self, content: Any, place: str, dtype: Any) -> np.ndarray:
        items = self._list(content, place)
        plain = (bool, int, float, str, type(None), np.generic)
        _require(all(isinstance(item, plain) for item in items), f"{place} holds more than labels.")
        out = np.empty(len(items), dtype=dtype)
        out[:] = items
        return out

    def _array(self, content: Any, place: str) -> np.ndarray:
        """The array of a member. Its head must be the one that `save` writes, byte for byte."""
        code, shape = self._list(content, place, decode=False)
        dtype = _dtype(code, place)
        _require(
            isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape),
            f"The array {place} has the shape {shape!r}.",
        )
        member = self._members.pop(f"{place}.npy", None)
        if member is None:
            raise _Unreadable(f"Its member {place}.npy is missing.")
        head = _npy_head(code, tuple(shape))
        _require(
            member.startswith(head)
            and len(member) == len(head) + math.prod(shape) * dtype.itemsize,
            f"Its member {place}.npy is not an array of {code} with the shape {tuple(shape)}.",
        )
        found = np.ndarray(tuple(shape), dtype, buffer=member, offset=len(head)).copy()
        if dtype.kind == "b":
            _require(np.all(found.view(np.uint8) <= 1), f"{place} holds more than True and False.")
        if dtype.kind == "U":
            count = (len(member) - len(head)) // 4
            points = np.ndarray(count, f"{code[0]}u4", buffer=member, offset=len(head))
            _require(
                points.max(initial=0) <= sys.maxunicode,
                f"{place} holds numbers that are no characters.",
            )
        return found


def _dtype(code: Any, place: str) -> np.dtype[Any]:
    _require(
        type(code) is str and _DTYPE.fullmatch(code),
        f"{place} has the type {code!r}, and a model file holds numbers, booleans and text.",
    )
    return np.dtype(code)


def _require_array(value: Any, place: str, code: str, shape: tuple[int, ...]) -> None:
    fits = isinstance(value, np.ndarray) and value.dtype.str == code and value.shape == shape
    _require(fits, f"{place} is not an array of {code} with the shape {shape}.")
    _require(code != "<f8" or np.all(np.isfinite(value)), f"{place} is not finite.")


# What a model must have.


def _fitted_names(kind: type[Any]) -> tuple[str, ...]:
    return (*_FITTED, "classes_") if kind is PrivateLogisticRegression else _FITTED


def _parameters(reader: _Reader, kind: type[Any], nodes: Any) -> dict[str, Any]:
    known = inspect.signature(kind).parameters.keys() - {"ledger"}
    _require(isinstance(nodes, dict), "It has no parameters.")
    unknown = sorted(nodes.keys() - known)
    _require(not unknown, f"{kind.__name__} has no parameters {unknown} that a file may set.")
    return {name: reader.value(node, name) for name, node in nodes.items()}


def _check_parameters(model: Any, n_features: int) -> None:
    """What fit would refuse is refused here."""
    model._check_parameters()
    model._checked_bounds().check_size(n_features)
    model._set().sized(n_features)
    check_steps(model.steps)
    _require(isinstance(model.solver, str | Solver), "Its solver is neither a name nor a solver.")


def _fitted(reader: _Reader, kind: type[Any], nodes: Any) -> dict[str, Any]:
    """The attributes that fit made, with the types and shapes that fit gives them."""
    expected = {*_fitted_names(kind)}
    _require(
        isinstance(nodes, dict) and expected <= nodes.keys() <= expected | {_OPTIONAL},
        f"A fitted {kind.__name__} has {sorted(expected)}, and the file has something else.",
    )
    found = {name: reader.value(node, name) for name, node in nodes.items() if name != "coef_"}
    n = found["n_features_in_"]
    _require(type(n) is int and n >= 1, f"Its number of columns is {n!r}.")
    _require(type(found["n_iter_"]) is int, f"Its number of steps is {found['n_iter_']!r}.")
    if _OPTIONAL in found:
        names = found[_OPTIONAL]
        _require(
            isinstance(names, np.ndarray)
            and names.dtype == object
            and names.shape == (n,)
            and all(type(name) is str for name in names),
            f"It does not have one name for each of its {n} columns.",
        )
    shape: tuple[int, ...] = (n,)
    if "classes_" in found:
        classes = found["classes_"]
        _require(
            isinstance(classes, np.ndarray)
            and classes.ndim == 1
            and len(np.unique(classes)) == len(classes) >= 2,
            "Its classes are not two different labels or more.",
        )
        fits = 1 if len(classes) == 2 else len(classes)
        shape = (fits, n)
        _require_array(found["intercept_"], "intercept_", "<f8", (fits,))
    else:
        intercept = found["intercept_"]
        _require(
            isinstance(intercept, float) and math.isfinite(intercept),
            "Its intercept is not a finite number.",
        )
    return {**found, "coef_": reader.coefficients(nodes["coef_"], shape)}


def _statement(reader: _Reader, node: Any) -> Statement:
    said: Statement = reader.build(Statement, node, "privacy_")
    numbers = isinstance(said.epsilon, float) and isinstance(said.delta, float)
    texts = (said.solver, said.accountant, *said.releases, *said.notes, *said.public)
    plain = (bool, int, float, str, type(None), np.generic)
    _require(
        numbers
        and said.epsilon >= 0
        and 0 <= said.delta <= 1
        and said.adjacency in ADJACENCY_IN_WORDS
        and type(said.seeded) is bool
        and type(said.steps) is int
        and isinstance(said.releases, tuple)
        and isinstance(said.notes, tuple)
        and isinstance(said.public, dict)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(fact, plain) for fact in said.public.values()),
        "Its Statement is not one that riata makes.",
    )
    return said


def _listed(names: Any) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
