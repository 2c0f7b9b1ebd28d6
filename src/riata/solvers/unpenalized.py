"""Models in whitened coordinates, and what of them unpenalized columns explain.

A prior may pull to 0 what the other columns explain beside them, and nothing else: as in least
squares of residuals (Frisch and Waugh). Everything here is made of releases and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.problem import Problem
from riata.solvers.empirical_bayes import likely_columns, shrunken


@dataclass(frozen=True)
class Split:
    """A model w as a sum of two: of unpenalized columns alone, and what the others add.

    The margins of the two are uncorrelated, as far as rows are white.

    Attributes
    ----------
    penalized : ndarray of int
        The other columns.
    matrix : ndarray
        From rows in units of their bounds to white ones.
    basis : ndarray of shape (n_coordinates, n_penalized)
        Orthonormal, and orthogonal to every model of unpenalized columns alone. A coefficient is
        the inner product of w with its column of the matrix, so these are the models that have none
        of the other columns; and the columns of the others span what is orthogonal to them.
    """

    penalized: np.ndarray
    matrix: np.ndarray
    basis: np.ndarray

    @classmethod
    def of(cls, problem: Problem, matrix: np.ndarray) -> Split:
        penalized = problem.penalized
        if not problem.unpenalized:
            return cls(penalized, matrix, np.eye(len(matrix)))
        columns = matrix[:, penalized]
        sizes = np.sqrt(np.square(columns / (np.abs(columns).max(initial=0.0) or 1.0)).sum(axis=0))
        return cls(penalized, matrix, np.linalg.qr(columns / np.where(sizes > 0, sizes, 1.0))[0])

    def alone(self, w: np.ndarray) -> np.ndarray:
        """What unpenalized columns explain alone."""
        return w - self.basis @ (self.basis.T @ w)

    def shrunken(self, w: np.ndarray, noise: np.ndarray, most: float) -> np.ndarray:
        """w with errors of these sizes, of which what other columns add is pulled to 0."""
        noise = np.sqrt(np.square(self.basis).T @ np.square(noise))
        added = shrunken(self.basis.T @ w, noise, most)
        return np.asarray(self.alone(w) + self.basis @ added)

    def likely_columns(
        self, w: np.ndarray, error: float, most: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """w without the penalized columns that nothing speaks for, and which columns it has."""
        turned = self.basis.T @ self.matrix[:, self.penalized]
        added, found = likely_columns(self.basis.T @ w, turned, error, most)
        columns = np.ones(self.matrix.shape[1], dtype=bool)
        columns[self.penalized] = found
        return self.alone(w) + self.basis @ added, columns
