"""Second moments of the rows: what least squares needs to know about them.

Like every query a sum of bounded integers over the rows. That it is exact, and how much one row's
squared loss can vary over a ball, is proven in docs/privacy/posterior.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import MOST_ROWS, ROUNDED_UP, X_STEPS, to_steps
from riata.privacy.budget import check_adjacency, check_scale
from riata.queries.base import Query
from riata.queries.block import Block

#: A target is a whole number of steps, at most this many in size.
Y_STEPS = X_STEPS

#: So many coefficients at most, the intercept included: float64 is trusted for no more.
MOST_COEFFICIENTS = 2**10


def symmetric_matrix(triangle: np.ndarray, size: int) -> np.ndarray:
    """The symmetric matrix with this upper triangle, row by row."""
    whole = np.empty((size, size), dtype=triangle.dtype)
    upper = np.triu_indices(size)
    whole[upper] = whole.T[upper] = triangle
    return whole


@dataclass(frozen=True, eq=False)
class SquaredMoments(Query):
    """The mean of u u' over the rows, u = (x, y) or with an intercept (x, R, y).

    The sum is the upper triangle of the matrix, row by row. R is the bound on the length of x, so
    that a coefficient c of the constant column stands for an intercept of R c.

    Parameters
    ----------
    bounds : Bounds
        With ``norm="l2"`` and a bound on y.
    radius : float
        Coefficients are sought in the Euclidean ball of this radius.
    n_rows : int
    adjacency : {"replace-one", "add-remove", "replace-label"}
    size : int
        The number of columns of x.
    fit_intercept : bool
    """

    bounds: Bounds
    radius: float
    n_rows: int
    adjacency: str
    size: int
    fit_intercept: bool = False

    def __post_init__(self) -> None:
        if self.bounds.norm != "l2" or self.bounds.y is None:
            raise InvalidArgument(
                f"{self.bounds} must bound the length of a row and the target, because the largest "
                'loss of a row follows from the two. Pass Bounds(x=..., y=..., norm="l2").'
            )
        check_scale("radius", self.radius, "the largest loss of a row follows from it.")
        check_adjacency(self.adjacency)
        if not 1 <= self.n_rows <= MOST_ROWS:
            raise InvalidArgument(
                f"n_rows={self.n_rows} must lie between 1 and the {MOST_ROWS} whose sums are exact."
            )
        if not 1 <= self.size <= MOST_COEFFICIENTS - 1:
            raise InvalidArgument(
                f"size={self.size} must lie between 1 and {MOST_COEFFICIENTS - 1}. "
                "Project the columns to fewer."
            )

    @property
    def n_coefficients(self) -> int:
        """How many coefficients there are, the intercept's included."""
        return self.size + self.fit_intercept

    @property
    def y_bound(self) -> float:
        assert self.bounds.y is not None
        return self.bounds.y

    @property
    def ball_radius(self) -> float:
        """The radius of the ball of all coefficients: an intercept up to the bound on y fits in."""
        return math.hypot(self.radius, self.fit_intercept * self.y_bound / self.bounds.x)

    @property
    def reach(self) -> float:
        """The bound on x times the radius of the ball: the largest |<x, theta>|."""
        return self.bounds.x * self.ball_radius

    @property
    def loss_bound(self) -> float:
        """How much (<x, theta> - y)^2 of one row can vary over the ball, rounded up."""
        margin = self.reach * math.sqrt(1 + self.fit_intercept)
        y = self.y_bound
        return ((margin + y) ** 2 if y <= margin else 4 * margin * y) * ROUNDED_UP

    def block_sum(self, block: Block) -> np.ndarray:
        x, y = block.rows, block.y
        extra = np.full((x.shape[0], 1 + self.fit_intercept), float(X_STEPS))
        extra[:, -1] = to_steps(y, self.y_bound, Y_STEPS)
        square = x.T @ x
        whole = np.zeros((self.n_coefficients + 1,) * 2)
        whole[: self.size, : self.size] = square.toarray() if sparse.issparse(square) else square
        whole[: self.size, self.size :] = x.T @ extra
        whole[self.size :, self.size :] = extra.T @ extra
        return whole[np.triu_indices(len(whole))]

    def matrix(self, triangle: np.ndarray) -> np.ndarray:
        """The symmetric matrix with this upper triangle, integers or not."""
        return symmetric_matrix(triangle, self.n_coefficients + 1)

    @property
    def unit(self) -> Any:
        steps = np.full(self.n_coefficients + 1, self.bounds.x / X_STEPS)
        steps[-1] = self.y_bound / Y_STEPS
        return np.outer(steps, steps)[np.triu_indices(len(steps))] / self.n_rows

    def from_total(self, total: np.ndarray) -> np.ndarray:
        """The matrix of means: x' x in its first rows and columns, y in the last ones."""
        return self.matrix(total * self.unit)

    def row_bound(self, norm: str) -> float:
        x, y = self.bounds.x, self.y_bound
        square = x**2 * (1 + self.fit_intercept) + y**2
        if norm == "linf":
            return max(x, y) ** 2
        if norm == "l2":
            return square
        return ((x * (math.sqrt(self.size) + self.fit_intercept) + y) ** 2 + square) / 2
