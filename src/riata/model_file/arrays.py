"""Arrays of numbers, booleans and text, in NumPy's format and without its pickles."""

from __future__ import annotations

import math
import re
import struct
import sys
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.model_file.archive import require

#: Booleans, integers, floats, bytes and text of a fixed width: nothing that could hold an object.
_DTYPE = re.compile(r"[<>|][biufSU][1-9][0-9]{0,8}")


def head(code: str, shape: tuple[int, ...]) -> bytes:
    """What precedes the numbers in version 1.0 of NumPy's format, the same in every release."""
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")


def write_array(value: np.ndarray, place: str) -> bytes:
    if not _DTYPE.fullmatch(value.dtype.str):
        raise InvalidArgument(
            f"Cannot save {place}, an array of {value.dtype} with {value.ndim} dimensions: a "
            "model file holds arrays of numbers, booleans and text. Convert it to one."
        )
    return head(value.dtype.str, value.shape) + value.tobytes()


def read_array(member: bytes, dtype: np.dtype[Any], shape: Any, place: str) -> np.ndarray:
    """The array of a member. Its head is compared with the one that `save` writes, not parsed."""
    sizes = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    require(sizes, f"The array {place} has the shape {shape!r}.")
    expected = head(dtype.str, tuple(shape))
    fits = len(member) == len(expected) + math.prod(shape) * dtype.itemsize
    what = f"an array of {dtype.str} with the shape {tuple(shape)}"
    require(fits and member.startswith(expected), f"Its member {place}.npy is not {what}.")
    body = memoryview(member)[len(expected) :]
    if dtype.kind == "b":
        most = np.frombuffer(body, "u1").max(initial=0)
        require(most <= 1, f"{place} holds more than True and False.")
    if dtype.kind == "U":
        most = np.frombuffer(body, f"{dtype.str[0]}u4").max(initial=0)
        require(most <= sys.maxunicode, f"{place} holds numbers that are no characters.")
    return np.frombuffer(body, dtype).reshape(shape).copy()


def read_dtype(code: Any, place: str) -> np.dtype[Any]:
    known = type(code) is str and _DTYPE.fullmatch(code)
    holds = "a model file holds numbers, booleans and text"
    require(known, f"{place} has the type {code!r}, and {holds}.")
    return np.dtype(code)


def require_array(value: Any, place: str, code: str, shape: tuple[int, ...]) -> None:
    """Refuse what is not a finite array of this type and shape."""
    fits = isinstance(value, np.ndarray) and value.dtype.str == code and value.shape == shape
    require(fits, f"{place} is not an array of {code} with the shape {shape}.")
    require(np.all(np.isfinite(value)), f"{place} is not finite.")
