"""How kernels are compiled: kept on disk, and without the interpreter's lock."""

from __future__ import annotations

from typing import Any

from numba import njit

#: A division by 0 is no error: with a check for it, loops are not made for several numbers at once.
_ALONE: dict[str, Any] = {
    "cache": True, "nogil": True, "_nrt": False, "error_model": "numpy",
}  # fmt: skip

#: A kernel that makes no array. So none counts references to the arrays that it is given: that
#: took most of the time of a short step. And the same, put in the place of each call.
compiled = njit(**_ALONE)
inlined = njit(**_ALONE, inline="always")

#: One that is always put in the place of its calls: to hand over the arrays takes longer than a
#: short step.
part_of_step = njit(**_ALONE, forceinline=True)

#: One that may take it that no number is NaN, so that a maximum is found for several at a time.
without_nan = njit(**_ALONE, fastmath={"nnan", "nsz"})
