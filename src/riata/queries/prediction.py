"""How far predictions are from the targets: the mean of bounded errors.

Proofs are in docs/privacy/tuning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.grid import slope_steps, to_steps
from riata.queries.base import Query
from riata.queries.block import Block
from riata.queries.coefficients import Coefficients
from riata.vectors import Vector


@dataclass(frozen=True, eq=False)
class PredictionError(Query):
    """The mean of an error of each row that lies between 0 and `largest`.

    Parameters
    ----------
    thetas : tuple of Vector
        One, or one for each class.
    bounds : Bounds
    n_rows, adjacency
    """

    thetas: tuple[Vector, ...]
    bounds: Bounds
    n_rows: int
    adjacency: str

    @property
    def largest(self) -> float:
        """The largest error of a row."""
        raise AssertionError("a subclass names its largest error")

    def errors(self, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The error of each row, from one column of margins for each theta."""
        raise AssertionError("a subclass names its error")

    def block_sum(self, block: Block) -> np.ndarray:
        models = [Coefficients.of(theta, self.bounds) for theta in self.thetas]
        with np.errstate(all="ignore"):  # a warning would tell of a row
            margins = np.column_stack([block.inner(model) for model in models])
            margins += [theta.offset for theta in self.thetas]
            half = self.largest / 2
            errors = self.errors(margins, block.y) - half
            return np.array([to_steps(errors, half, slope_steps(self.n_rows)).sum()])

    @property
    def unit(self) -> Any:
        return self.largest / 2 / slope_steps(self.n_rows) / self.n_rows

    def from_total(self, total: np.ndarray) -> np.ndarray:
        return total * self.unit + self.largest / 2

    def row_bound(self, norm: str) -> float:
        return self.largest / 2  # of the distance from the middle


@dataclass(frozen=True, eq=False)
class AbsoluteError(PredictionError):
    """The distance of the target from the prediction, which is clipped to the bound on y."""

    def errors(self, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
        top = self.bounds.y
        return np.abs(np.clip(margins[:, 0], -top, top) - y)  # type: ignore[operator]

    @property
    def largest(self) -> float:
        assert self.bounds.y is not None
        return 2 * self.bounds.y


@dataclass(frozen=True, eq=False)
class SquaredError(AbsoluteError):
    """The square of the same distance."""

    def errors(self, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
        return super().errors(margins, y) ** 2

    @property
    def largest(self) -> float:
        return super().largest ** 2


@dataclass(frozen=True, eq=False)
class WrongLabels(PredictionError):
    """1 for a row whose predicted label is not its own.

    Parameters
    ----------
    labels : tuple of float
        Two with one theta, of which the second is predicted where the odds are positive;
        otherwise one for each theta, of which the one with the largest odds is predicted.
    lines : tuple of (float, float)
        For each theta, the slope and the intercept that make odds of its margins.
    """

    labels: tuple[float, ...]
    lines: tuple[tuple[float, float], ...]

    def errors(self, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
        slopes, intercepts = np.array(self.lines).T
        odds = margins * slopes + intercepts
        winners = (odds[:, 0] > 0).astype(int) if odds.shape[1] == 1 else odds.argmax(axis=1)
        return (np.array(self.labels)[winners] != y).astype(float)

    @property
    def largest(self) -> float:
        return 1.0
