"""How kernels are compiled: kept on disk, and without the interpreter's lock."""

from __future__ import annotations

from typing import Any

from numba import njit

_ALONE: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}

#: A kernel that makes no array. So none counts references to the arrays that it is given: that
#: took most of the time of a short step. And the same, put in the place of each call.
compiled = njit(**_ALONE)
inlined = njit(**_ALONE, inline="always")

#: A kernel that makes arrays of its own.
compiled_with_arrays = njit(cache=True, nogil=True)
