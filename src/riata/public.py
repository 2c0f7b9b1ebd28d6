"""Public randomness: reproducible numbers that protect nothing and depend on no data."""

from __future__ import annotations

import hashlib

import numpy as np
from scipy.special import ndtri


def public_normals(shape: tuple[int, ...], label: str) -> np.ndarray:
    """Standard normals that everybody who knows `label` can compute."""
    n = int(np.prod(shape))
    words = np.frombuffer(hashlib.shake_256(label.encode()).digest(8 * n), dtype="<u8")
    uniform = ((words >> np.uint64(12)) + 0.5) * 2.0**-52
    return np.asarray(ndtri(uniform)).reshape(shape)
