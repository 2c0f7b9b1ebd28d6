"""Checks of arguments that are shared by packages."""

from __future__ import annotations

import sys
from collections.abc import Collection
from numbers import Integral
from typing import TypeGuard

import numpy as np

from riata.errors import InvalidArgument


def is_auto(value: object) -> bool:
    """Whether it is the word "auto", and no number or array."""
    return isinstance(value, str) and value == "auto"


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number of any type: truth values are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_whole(name: str, value: object, why: str, least: int = 1) -> int:
    """`value` as a whole number of at least `least`."""
    if not is_whole(value) or value < least:
        raise InvalidArgument(
            f"{name}={value!r} must be a whole number of at least {least}: {why}. "
            "Pass a plain integer."
        )
    return int(value)


def check_positive(name: str, value: object, why: str, most: float = sys.float_info.max) -> float:
    """`value` as a positive number of at most `most`; only `most=math.inf` allows infinity."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 < (positive := float(value)) <= most:  # type: ignore[arg-type]
        upper = "" if most >= sys.float_info.max else f" and at most {most:g}"
        raise InvalidArgument(f"{name}={value!r}: {why}. Pass a number above 0{upper}.")
    return positive


def check_known(name: str, value: object, known: Collection[str], why: str = "") -> None:
    """Raise unless `value` is one of the known words, and say what it is for."""
    if not (isinstance(value, str) and value in known):
        because = f": {why}" if why else ""
        raise InvalidArgument(f"{name}={value!r} is not known{because}. Use one of {list(known)}.")
