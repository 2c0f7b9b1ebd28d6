"""Regression on thousands of columns: find the few that matter, then look at them together."""

from __future__ import annotations

import math

import numpy as np

from riata.local.learners.moments import Moments
from riata.local.tally import Tally

#: Columns that are looked at together, at most.
MOST_KEPT = 64


def screened(cross: Tally, gram: Tally, constant: bool) -> tuple[np.ndarray, Moments]:
    """The columns whose covariance with the target is not noise, and the moments among them.

    The reports of the second moments are opened only at the chosen coordinates; the constant for
    the intercept, the last coordinate, is always among them.
    """
    estimate, noise = cross.vector()
    columns = len(estimate) - constant
    strength = np.abs(estimate[:columns])
    clear = np.flatnonzero(strength > noise * math.sqrt(2.0 * math.log(columns + 1)))
    kept = np.sort(clear[np.argsort(-strength[clear], kind="stable")[:MOST_KEPT]])
    places = np.append(kept, columns) if constant else kept
    matrix, entry_noise = gram.matrix_at(places)
    return kept, Moments(matrix, estimate[places], entry_noise, noise)
