"""A canonical form of public values: equal for the same values, and different for all others.

Every field of every object is in it, and arrays are hashed whole. Nothing is left to `repr`, which
shortens arrays and leaves out what its author did not think of. What has no such form, because its
state is hidden or because it is code of other people, is *unnamed*: it stands there by its type
alone, and whoever relies on the form can ask for what is unnamed.
"""

from __future__ import annotations

import datetime
import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np
from scipy import sparse

#: Values inside of values, no deeper than this.
_DEEPEST = 32

#: Values that are what their text says, together with their type.
_BY_TEXT = (complex, Decimal, datetime.date, datetime.time, datetime.timedelta, PurePath, range)


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical form, in hexadecimal digits."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any) -> Any:
    """The value as JSON with a tag for each type."""
    return _Form().of(value, 0)


def unnamed(value: Any) -> list[str]:
    """The types of what is in a value and has no canonical form."""
    form = _Form()
    form.of(value, 0)
    return sorted(form.unnamed)


class _Form:
    """Makes canonical forms, and remembers what had none."""

    def __init__(self) -> None:
        self.unnamed: set[str] = set()

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if depth > _DEEPEST:
            return self._without_name(kind)
        if value is None or kind in (bool, str):
            return value
        if isinstance(value, np.generic):
            return self._array(np.asarray(value), depth) if kind.__module__ == "numpy" else (
                self._without_name(kind)
            )  # fmt: skip
        if kind is int:
            return {"int": str(value)}
        if kind is float:
            return {"float": value.hex()}
        if kind is Fraction:
            return {"ratio": [str(value.numerator), str(value.denominator)]}
        if kind in (bytes, bytearray):
            return {kind.__name__: hashlib.sha256(value).hexdigest()}
        if isinstance(value, _BY_TEXT):
            return {"text": [_name(kind), str(value)]}
        if kind is np.ndarray:
            return self._array(value, depth)
        if sparse.issparse(value):
            return self._sparse(value, depth)
        if kind in (list, tuple):
            return [self.of(each, depth + 1) for each in value]
        if kind in (set, frozenset):
            return {"set": sorted((self.of(each, depth + 1) for each in value), key=_text)}
        if isinstance(value, Mapping):
            pairs = [[self.of(k, depth + 1), self.of(v, depth + 1)] for k, v in value.items()]
            return {"map": sorted(pairs, key=_text)}
        return self._object(value, depth)

    def _array(self, value: np.ndarray, depth: int) -> Any:
        shape, kind = list(value.shape), value.dtype
        if kind.kind == "O":
            return {"array": [shape, [self.of(each, depth + 1) for each in value.ravel().tolist()]]}
        if kind.kind not in "biufcmMSU":
            return self._without_name(type(value))
        if value.ndim == 0 and kind.kind in "biufU":  # a NumPy number is the number
            return self.of(value.item(), depth + 1)
        plain = np.ascontiguousarray(value, dtype=kind.newbyteorder("<"))
        return {"array": [shape, plain.dtype.str, hashlib.sha256(plain.tobytes()).hexdigest()]}

    def _sparse(self, value: Any, depth: int) -> Any:
        rows = sparse.csr_array(value, copy=True)  # which is tidied
        rows.sum_duplicates()
        parts = [list(rows.shape), rows.indptr.astype("<i8"), rows.indices.astype("<i8"), rows.data]
        return {"sparse": [self.of(part, depth + 1) for part in parts]}

    def _object(self, value: Any, depth: int) -> Any:
        """An object of riata by its fields, and its classes and functions by their names."""
        what = value if inspect.isroutine(value) or isinstance(value, type) else type(value)
        ours = str(getattr(what, "__module__", "")).split(".")[0] == "riata"
        plain = "<" not in str(getattr(what, "__qualname__", "<"))  # in no function
        if not ours or not plain or inspect.ismethod(value):
            self._without_name(what)
        if what is value:
            return {"code": _name(what)}
        return {"object": _name(what), "fields": self._fields(value, depth)}

    def _fields(self, value: Any, depth: int) -> Any:
        """All that an object was made of; what it computed from that and keeps is left out."""
        kind = type(value)
        if hasattr(value, "get_params"):
            found = value.get_params(deep=False)
        else:
            names = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
            names += [field.name for field in fields(value)] if is_dataclass(value) else []
            found = {name: getattr(value, name) for name in names if hasattr(value, name)}
            found |= {
                name: each
                for name, each in getattr(value, "__dict__", {}).items()
                if not isinstance(inspect.getattr_static(kind, name, None), cached_property)
            }
        return {str(name): self.of(each, depth + 1) for name, each in found.items()}

    def _without_name(self, kind: Any) -> Any:
        self.unnamed.add(_name(kind))
        return {"unnamed": _name(kind)}


def _name(kind: Any) -> str:
    module = getattr(kind, "__module__", "?")
    return f"{module}.{getattr(kind, '__qualname__', type(kind).__name__)}"


def _text(form: Any) -> str:
    return json.dumps(form, sort_keys=True)
