"""Releases as text, exactly: numbers of a candidate, arrays and models."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from riata.vectors import Vector


def release_to_text(value: Any) -> Any:
    """What JSON can hold."""
    if isinstance(value, Vector):
        arrays = {"support": value.support, "values": value.values}
        found = {name: release_to_text(array) for name, array in arrays.items()}
        return {"size": value.size, "offset": float(value.offset).hex(), **found}
    if isinstance(value, np.ndarray):
        out = io.BytesIO()
        np.save(out, value, allow_pickle=False)
        return {"array": base64.b64encode(out.getvalue()).decode()}
    if isinstance(value, int | np.integer):
        return int(value)
    raise TypeError(f"A release of type {type(value).__name__} cannot be written down.")


def release_from_text(text: Any) -> Any:
    """The release that was written."""
    if isinstance(text, int):
        return text
    if "array" in text:
        return np.load(io.BytesIO(base64.b64decode(text["array"])), allow_pickle=False)
    offset = float.fromhex(text["offset"])
    return Vector(
        text["size"], release_from_text(text["support"]), release_from_text(text["values"]), offset
    )
