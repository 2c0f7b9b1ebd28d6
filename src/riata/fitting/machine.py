"""What decides the last digits of a solver's arithmetic between two releases."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import scipy
import scipy.linalg
from threadpoolctl import threadpool_info


def machine() -> dict[str, Any]:
    """Versions of libraries, the kernels that they chose for this processor, and their threads.

    Sums over rows are the same everywhere. What a solver makes of releases, by factorisations and
    products of small matrices, may differ in its last digit with these. So a run with a checkpoint
    goes on only where they are the same: it would ask for other releases than a copy of it.
    """
    known = ("internal_api", "version", "architecture", "num_threads", "threading_layer")
    pools = {tuple(str(pool.get(name)) for name in known) for pool in _linear_algebra()}
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
    return {
        "python": platform.python_implementation(),
        "processor": platform.machine(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "features": sorted(name for name, there in features.items() if there),
        "libraries": sorted(pools),
    }


def _linear_algebra() -> list[dict[str, Any]]:
    """The libraries that NumPy and SciPy compute with, and not what else is in the process."""
    found = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    own = [pool for pool in found if any(n in pool["filepath"] for n in ("numpy", "scipy"))]
    return own or found
