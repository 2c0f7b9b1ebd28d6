"""Which directions of the rows to stretch, from a noisy second moment of theirs.

Between rows as they are, where noise on gradients is small in directions of which little is to be
learned, and white ones, where each direction is learned in a step, lies what costs least.
Everything here is made of a release and of public numbers, and costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from riata.queries import Whitening
from riata.solvers.design_prior import FLOORS
from riata.solvers.empirical_bayes import lost_in_noise

#: The trace may be larger than it looks by so many standard deviations of its noise.
_BEYOND = 2.0

#: The trace, and what of it is not seen, count as at least this much.
_LEAST, _LEAST_LOST = 1e-6, 0.02


@dataclass(frozen=True)
class RowSpread:
    """Second moments of the rows along directions that are uncorrelated.

    Attributes
    ----------
    values : ndarray
        Those that are lost in noise are all alike, and add up to what the others leave.
    vectors : ndarray
        The directions, in columns.
    lost : ndarray of bool
        Which values are lost in noise.
    most : float
        How many times larger all of them together may be than they look.
    """

    values: np.ndarray
    vectors: np.ndarray
    lost: np.ndarray
    most: float

    @classmethod
    def of(cls, matrix: np.ndarray, noise: float, usual: float) -> RowSpread:
        """That of a released matrix; `noise` is that of a number off the diagonal.

        `usual` is what the trace is taken for before it is seen.
        """
        raw, vectors = np.linalg.eigh(matrix)
        lost = lost_in_noise(raw, noise)
        of_trace = math.sqrt(2 * len(raw)) * noise
        whole = max(float(raw.sum()), of_trace, _LEAST)
        most = max(min(float(raw.sum()) + _BEYOND * of_trace, usual) / whole, 1.0)
        left = max(whole - float(raw[~lost].sum()), _LEAST_LOST * whole)
        each = left / max(int(np.count_nonzero(lost)), 1)
        smallest = float(raw[~lost].min(initial=math.inf))
        return cls(np.where(lost, min(each, smallest), raw), vectors, lost, most)

    def best_floor(self, noise: float, slopes: float, explained: float, n_rows: int) -> float:
        """What to add to the values before rows are divided by the roots: see `design_prior`.

        Parameters
        ----------
        noise : float
            Of one release of all gradients, for rows of length 1.
        slopes : float
            The variance of the slopes.
        explained : float
            How much of it rows are taken to explain, by coefficients that are all alike.
        n_rows : int
        """
        values, top = self.values, float(self.values.max())
        signal = np.square(values) * (explained * slopes / float(values.sum()))
        best = (math.inf, top)
        for part in FLOORS:
            lifted = values + part * top
            square = float((values / lifted).sum())
            errors = noise**2 * square * lifted + slopes / n_rows * values
            risk = float((values * errors / (signal + errors)).sum())
            best = min(best, (risk, part * top))
        return best[1]

    def coordinates(self, whitening: Whitening, floor: float) -> tuple[Whitening, np.ndarray]:
        """Coordinates in which a direction is divided by the root of its value and the floor.

        And the second moments of the rows there.
        """
        lifted = self.values + floor
        turn = self.vectors.T / np.sqrt(lifted)[:, None]
        found = Whitening.of(turn @ whitening.matrix, turn @ whitening.centre)
        return found, self.values / lifted
