"""Values as JSON: itself if JSON has its like, and otherwise {kind: content}."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from riata import losses, projections, sets, solvers
from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.files.archive import Archive
from riata.files.limit import ReadLimit
from riata.fitting.data_quality import DataQuality
from riata.model_file.archive import read_array, read_dtype, require, write_array
from riata.wording import shown

#: The objects that a parameter may be, or hold. Loading builds nothing else.
CLASSES: dict[str, type[Any]] = {
    "Bounds": Bounds,
    "DataQuality": DataQuality,
    **losses.REGISTRY,
    **sets.REGISTRY,
    **solvers.REGISTRY,
    **projections.REGISTRY,
}

#: What a label or a public fact may be.
PLAIN = (bool, int, float, str, type(None), np.generic)

#: NumPy's codes of the single numbers and texts that JSON can hold exactly.
_SCALARS = "?bhilqBHILQefdU"

_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}

#: Characters of the name of a place, which each place in it has again.
_LONGEST_PLACE = 1000

#: What an item of a range may take, as a list and as an array.
_RANGE_ITEM = 64

#: One-dimensional arrays that are written as lists, since their items have no fixed width.
_LISTED: dict[str, Any] = {"objects": np.dtype(object), "strings": np.dtypes.StringDType()}


class Writer:
    """Turns values into JSON and collects the arrays among them, named after their place."""

    def __init__(self) -> None:
        self.arrays: dict[str, bytes] = {}

    def node(self, value: Any, place: str) -> Any:
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
            f"Cannot save {place}, a {kind.__module__}.{kind.__qualname__}: loading more than "
            "riata's own objects, plain values and arrays would have to run code. Write an "
            f"array-like as a list or an array, with set_params({place.split('.')[0]}=...); keep "
            "a model with a class of your own as a pickle, for people who trust you."
        )

    def _nodes(self, values: Any, place: str) -> list[Any]:
        return [self.node(value, f"{place}.{i}") for i, value in enumerate(values)]

    def fields(self, value: Any, place: str) -> dict[str, Any]:
        """The fields of a dataclass."""
        names = [f.name for f in fields(value) if f.init]
        return {name: self.node(getattr(value, name), f"{place}.{name}") for name in names}

    def array(self, value: np.ndarray, place: str) -> dict[str, Any]:
        for name, dtype in _LISTED.items():
            if value.ndim == 1 and value.dtype == dtype:
                return {name: self._nodes(value.tolist(), place)}
        self.arrays[f"{place}.npy"] = write_array(value, place)
        return {"array": [value.dtype.str, list(value.shape)]}


class Reader:
    """The inverse of `Writer`: takes each array out of the archive where it belongs."""

    def __init__(self, archive: Archive, limit: ReadLimit) -> None:
        self.archive, self.limit = archive, limit

    def value(self, node: Any, place: str) -> Any:
        if isinstance(node, list):
            return [self._item(item, place, i) for i, item in enumerate(node)]
        if not isinstance(node, dict):
            return node
        require(len(node) == 1, f"{place} has {len(node)} kinds.")
        ((kind, content),) = node.items()
        if kind in CLASSES:
            return self.build(CLASSES[kind], content, place)
        if kind == "float":
            return _FLOATS[content]
        if kind == "dict":
            require(isinstance(content, dict), f"{place} is not a dict.")
            return {k: self._item(v, place, k) for k, v in content.items()}
        known = kind in ("tuple", "range", "scalar", "array", *_LISTED)
        upgrade = "If a newer riata wrote the file, upgrade."
        require(known, f"{place} is a {shown(kind)}, which this riata does not know. {upgrade}")
        require(isinstance(content, list), f"{place} is not a list.")
        if kind in ("scalar", "array"):
            code, part = content
            return self._typed(kind, code, part, place)
        return self._sequence(kind, self.value(content, place), place)

    def _item(self, node: Any, place: str, name: str | int) -> Any:
        """The value of an item of a list or a dict, at its own place."""
        if not isinstance(node, list | dict):
            return node
        within = len(place) < _LONGEST_PLACE and len(str(name)) < _LONGEST_PLACE
        require(within, f"{place[:80]}... is too deep, or its name is too long.")
        return self.value(node, f"{place}.{name}")

    def _sequence(self, kind: str, items: list[Any], place: str) -> Any:
        if kind == "tuple":
            return tuple(items)
        if kind == "range":
            found = range(*items)
            # Not len(found), which fails beyond what a machine could count.
            count = max(0, (found.stop - found.start) // found.step + 1)
            self.limit.take(_RANGE_ITEM * count, f"The range {place}")
            return found
        labels = all(isinstance(item, PLAIN) for item in items)
        require(labels, f"{place} holds more than labels.")
        return np.array(items, dtype=_LISTED[kind])

    def _typed(self, kind: str, code: Any, content: Any, place: str) -> Any:
        dtype = read_dtype(code, place)
        if kind == "scalar":
            require(dtype.char in _SCALARS, f"{place} has the type {code!r}.")
            return dtype.type(self.value(content, place))
        return read_array(self.archive, dtype, content, place)

    def build(self, kind: type[Any], content: Any, place: str) -> Any:
        """An object of riata's own, through its own checks."""
        known = {f.name for f in fields(kind) if f.init}
        require(
            isinstance(content, dict) and content.keys() <= known,
            f"{place} is not made of the fields of {kind.__name__}, {sorted(known)}.",
        )
        return kind(**self.arguments(content, f"{place}."))

    def arguments(self, nodes: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        """Values by name, for a function that may make arrays of the lists among them."""
        found = {name: self.value(node, f"{prefix}{name}") for name, node in nodes.items()}
        for name, value in found.items():
            self.limit.take(_array_bytes(value), f"The list {prefix}{name}")
        return found


def _array_bytes(value: Any) -> int:
    """What NumPy may need for a list of any depth: each text gets the room of the longest."""
    leaves = longest = 0
    left = [value] if isinstance(value, list | tuple) else []
    while left:
        for item in left.pop():
            if isinstance(item, list | tuple):
                left.append(item)
            else:
                leaves += 1
                longest = max(longest, len(item) if isinstance(item, str) else 0)
    return leaves * (32 + 12 * longest)
