"""A canonical form of public values: equal for the same values, and different for all others.

Every field of every object is in it, and arrays are hashed whole. Nothing is left to `repr`, which
shortens arrays and leaves out what its author did not think of.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from riata.errors import InvalidArgument

#: Values inside of values, no deeper than this.
_DEEPEST = 32


def digest(value: Any) -> str:
    """The SHA-256 of a value's canonical form, in hexadecimal digits."""
    text = json.dumps(canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any, depth: int = 0) -> Any:
    """The value as JSON with a tag for each type.

    Raises
    ------
    InvalidArgument
        If a value holds itself.
    """
    if depth > _DEEPEST:
        raise InvalidArgument(
            "A parameter holds values inside of values without an end, so a run with it has no "
            "name. Pass plain numbers, texts, arrays and objects of riata."
        )
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return canonical(value.item() if value.dtype.kind in "biufU" else str(value), depth + 1)
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, float):
        return {"float": value.hex()}
    if isinstance(value, Fraction):
        return {"ratio": [str(value.numerator), str(value.denominator)]}
    if isinstance(value, bytes):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, np.ndarray):
        return _array(value, depth)
    if sparse.issparse(value):
        rows = sparse.csr_array(value)
        rows.sum_duplicates()
        parts = [rows.shape, rows.indptr.astype("<i8"), rows.indices.astype("<i8"), rows.data]
        return {"sparse": [canonical(part, depth + 1) for part in parts]}
    if isinstance(value, list | tuple):
        return [canonical(each, depth + 1) for each in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((canonical(each, depth + 1) for each in value), key=json.dumps)}
    if isinstance(value, Mapping):
        pairs = [
            [canonical(key, depth + 1), canonical(each, depth + 1)] for key, each in value.items()
        ]
        return {"map": sorted(pairs, key=lambda pair: json.dumps(pair[0], sort_keys=True))}
    if inspect.isroutine(value) or isinstance(value, type):
        return {"code": _code(value)}
    return {"object": _code(type(value)), "fields": _fields(value, depth)}


def _array(value: np.ndarray, depth: int) -> Any:
    if value.dtype.kind in "OUSmM":
        return {
            "array": [
                list(value.shape),
                [canonical(each, depth + 1) for each in value.ravel().tolist()],
            ]
        }
    plain = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
    return {
        "array": [list(value.shape), plain.dtype.str, hashlib.sha256(plain.tobytes()).hexdigest()]
    }


def _fields(value: Any, depth: int) -> Any:
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
    return {str(name): canonical(each, depth + 1) for name, each in found.items()}


def _code(value: Any) -> str:
    """The name of a class or function, and for other people's also what is written in it."""
    name = f"{value.__module__}.{value.__qualname__}"
    if value.__module__.split(".")[0] in ("riata", "numpy", "scipy", "sklearn", "builtins"):
        return name
    try:
        text = inspect.getsource(value)
    except (OSError, TypeError):
        text = repr(getattr(getattr(value, "__code__", None), "co_code", ""))
    return f"{name} {hashlib.sha256(text.encode()).hexdigest()}"
