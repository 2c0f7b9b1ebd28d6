"""Checks of arguments that the local model shares."""

from __future__ import annotations

import sys
from numbers import Integral

import numpy as np

from riata.errors import InvalidArgument


def check_whole(name: str, value: object, why: str, least: int = 1) -> int:
    """`value` as a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
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
