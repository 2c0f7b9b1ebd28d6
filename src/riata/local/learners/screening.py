"""Regression on thousands of columns: find the few that matter, then look at them together."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

#: Columns that are looked at together, at most.
MOST_KEPT = 64


def screening_level(columns: int) -> float:
    """Standard errors that one of so many columns passes by chance in one collection of 100."""
    return -float(ndtri(0.005 / max(columns, 1)))


def screen_columns(cross: np.ndarray, noise: float, constant: bool) -> np.ndarray:
    """The columns whose covariance with the target is not noise, the clearest ones first chosen.

    The constant for the intercept, the last coordinate, is not a column.
    """
    columns = len(cross) - constant
    strength = np.abs(cross[:columns])
    clear = np.flatnonzero(strength > noise * screening_level(columns))
    return np.sort(clear[np.argsort(-strength[clear], kind="stable")[:MOST_KEPT]])
