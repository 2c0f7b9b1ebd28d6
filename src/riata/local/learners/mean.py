"""Means of the vectors that rows became: plain, or with what could be noise set to 0."""

from __future__ import annotations

import math

import numpy as np

THRESHOLDS = ("none", "soft", "hard")


def thresholded(mean: np.ndarray, noise: float, how: str) -> np.ndarray:
    """The mean of which coordinates below noise * sqrt(2 log d) are 0.

    The noise of a coordinate does not depend on the number of coordinates, so a sparse mean is
    found in any dimension. "soft" also pulls what is left towards 0, "hard" leaves it alone.
    """
    if how == "none":
        return mean
    level = noise * math.sqrt(2.0 * math.log(len(mean) + 1))
    size = np.abs(mean)
    if how == "soft":
        return np.sign(mean) * np.maximum(size - level, 0.0)
    return np.where(size > level, mean, 0.0)
