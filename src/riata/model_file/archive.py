"""The container: a zip archive of arrays without compression, and how a file is refused.

Arrays hold numbers, booleans and text, in NumPy's format and without its pickles.
"""

from __future__ import annotations

import io
import struct
import sys
import zipfile
from typing import Any

import numpy as np

from riata.errors import InvalidArgument, ModelFileError
from riata.files.archive import DTYPE, Archive
from riata.wording import shown


def require(condition: object, otherwise: str) -> None:
    """Refuse the file unless the condition holds, with the reason as a sentence or two."""
    if not condition:
        raise ModelFileError(otherwise)


def pack(members: dict[str, bytes]) -> bytes:
    """An archive without a clock, so that equal members give equal bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            archive.writestr(info, content)
    return out.getvalue()


def head(code: str, shape: tuple[int, ...]) -> bytes:
    """What precedes the numbers in version 1.0 of NumPy's format, the same in every release."""
    text = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode("ascii")


def write_array(value: np.ndarray, place: str) -> bytes:
    if not DTYPE.fullmatch(value.dtype.str):
        raise InvalidArgument(
            f"Cannot save {place}, an array of {value.dtype} with {value.ndim} dimensions: a "
            "model file holds arrays of numbers, booleans and text. Convert it to one."
        )
    return head(value.dtype.str, value.shape) + value.tobytes()


def read_array(archive: Archive, dtype: np.dtype[Any], shape: Any, place: str) -> np.ndarray:
    """The array of a member, which has to be the one that the model describes."""
    sizes = isinstance(shape, list) and all(type(n) is int for n in shape)
    require(sizes, f"The array {place} has the shape {shown(shape)}.")
    found = archive.array(place)
    fits = found.dtype.str == dtype.str and list(found.shape) == shape
    what = f"an array of {dtype.str} with the shape {shown(shape)}"
    require(fits, f"Its member {place}.npy is not {what}.")
    if dtype.kind == "b":
        most = found.view(np.uint8).max(initial=0)
        require(most <= 1, f"{place} holds more than True and False.")
    if dtype.kind == "U":
        most = found.reshape(-1).view(f"{dtype.str[0]}u4").max(initial=0)
        require(most <= sys.maxunicode, f"{place} holds numbers that are no characters.")
    return found


def read_dtype(code: Any, place: str) -> np.dtype[Any]:
    known = type(code) is str and DTYPE.fullmatch(code)
    holds = "a model file holds numbers, booleans and text"
    require(known, f"{place} has the type {shown(code)}, and {holds}.")
    dtype: np.dtype[Any] = np.dtype(code)
    return dtype


def require_array(value: Any, place: str, code: str, shape: tuple[int, ...]) -> None:
    """Refuse what is not a finite array of this type and shape."""
    fits = isinstance(value, np.ndarray) and value.dtype.str == code and value.shape == shape
    require(fits, f"{place} is not an array of {code} with the shape {shape}.")
    ends = (value.min(initial=0), value.max(initial=0))  # which NaN is too, if it occurs
    require(np.all(np.isfinite(ends)), f"{place} is not finite.")
