"""Losses with nuisance parameters: public numbers that are fitted beside the model."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np

from riata.losses.base import Loss


class NuisanceLoss(Loss):
    """A loss with parameters that all rows share and that no column multiplies.

    Such as the thresholds of ordered classes, or the hazards of bands of time. For fixed parameters
    it is a loss as any other. What the next parameters follow from is a table of sums: each row
    adds the numbers of `parts` to the line of its cell and nothing to the other lines.
    """

    measured_curvature = True

    #: How many numbers a row adds to its cell.
    n_parts: ClassVar[int]

    #: The largest Euclidean length of these numbers: a longer row counts for nothing.
    longest_parts: ClassVar[float]

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """The number of lines of the table. Public."""

    @abstractmethod
    def cells(self, y: np.ndarray) -> np.ndarray:
        """The cell of each row, from 0; what is no whole number below `n_cells` is in none."""

    @abstractmethod
    def parts(self, margin: np.ndarray, y: np.ndarray, reach: float) -> np.ndarray:
        """What each row adds: `n_parts` numbers in [0, 1], what lies outside is clipped.

        Parameters
        ----------
        margin, y : ndarray of shape (n_rows,)
        reach : float
            Margins that are larger may count as this. Public.
        """

    @abstractmethod
    def refitted(self, means: np.ndarray, noise: float, reach: float, *, constant: bool) -> Self:
        """The loss with the parameters that a released table says.

        Parameters
        ----------
        means : ndarray of shape (n_cells, n_parts)
            The sums over the number of rows, with noise.
        noise : float
            The standard deviation of the noise of each mean.
        reach : float
            With which the parts were made.
        constant : bool
            Whether all margins were 0.
        """
