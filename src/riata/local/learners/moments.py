"""Estimated moments of the vectors that rows became, with their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from riata.local.questions import TARGET_SHARE

if TYPE_CHECKING:
    from riata.local.task import Task


@dataclass(frozen=True)
class Moments:
    """Unbiased estimates of A = E[u u'] and b = E[y u], and the noise of one entry of each.

    Attributes
    ----------
    gram, cross : ndarray
    gram_noise, cross_noise : float
        The standard deviation of an entry off the diagonal, and of a coordinate.
    square : float, optional
        An estimate of E[y^2], where there is one.
    """

    gram: np.ndarray
    cross: np.ndarray
    gram_noise: float
    cross_noise: float
    square: float = math.inf

    def covariances(self, square: float) -> Covariances:
        """Covariances, where the last coordinate is a constant whose square is known."""
        if square == 0:
            zero = np.zeros(len(self.cross))
            return self._possible(
                Covariances(self.gram, self.cross, self.gram_noise, self.cross_noise, zero, 0.0),
                0.0,
            )
        constant = math.sqrt(square)
        last = len(self.cross) - 1
        center, center_noise = self.cross[last] / constant, self.cross_noise / constant
        noise = self.gram_noise / constant
        means = _shrink(self.gram[:last, last] / constant, noise)
        # Noise of the products that are taken out: of the target's mean and of the columns' means.
        spread = float(means @ means) / max(last, 1)
        found = Covariances(
            self.gram[:last, :last] - np.outer(means, means),
            self.cross[:last] - means * center,
            self.gram_noise,
            math.hypot(self.cross_noise, center * noise, math.sqrt(spread) * center_noise),
            means,
            _clear_center(center, center_noise),
        )
        return self._possible(found, center)

    def _possible(self, found: Covariances, center: float) -> Covariances:
        """The nearest covariances of columns and target that there can be.

        No column explains more of the target than it varies. Distances are taken where all entries
        have the same noise.
        """
        if math.isinf(self.square):
            return found
        unit = self.gram_noise / self.cross_noise
        both = np.append(found.gram, unit * found.cross[None], axis=0)
        last = np.append(unit * found.cross, unit**2 * max(self.square - center**2, 0.0))
        both = raise_eigenvalues(np.column_stack([both, last]))
        return replace(found, gram=both[:-1, :-1])


def joint_moments(task: Task, matrix: np.ndarray, noise: float) -> Moments:
    """The moments of u and y from those of z, in which shortened rows weigh less.

    The mean weight is what is left of the constant's square and, where y is -1 or 1, of its own.
    """
    row, target = 1.0 - TARGET_SHARE, TARGET_SHARE
    left, whole = matrix[-2, -2] * (task.intercept > 0), row * task.intercept
    if task.spec.logistic:
        left, whole = left + matrix[-1, -1], whole + target
    weight = _mean_weight(left / whole, noise / whole, task.least_weight) if whole else 1.0
    matrix, noise = matrix / weight, noise / weight
    both = math.sqrt(row * target)
    square = 1.0 if task.spec.logistic else float(matrix[-1, -1]) / target
    return Moments(
        matrix[:-1, :-1] / row, matrix[:-1, -1] / both, noise / row, noise / both, square
    )


def _mean_weight(seen: float, noise: float, least: float) -> float:
    """The mean weight: what was seen, and that most rows of most tasks are not shortened much."""
    usual, spread = 1.0 - 0.3 * (1.0 - least), 0.3 * (1.0 - least)
    if spread == 0:
        return 1.0
    trust = spread**2 / (spread**2 + 2.0 * noise**2)
    return float(np.clip(usual + trust * (seen - usual), least, 1.0))


@dataclass(frozen=True)
class Covariances:
    """Covariances of vectors and target with their noise, and the means that were taken out."""

    gram: np.ndarray
    cross: np.ndarray
    gram_noise: float
    cross_noise: float
    means: np.ndarray
    center: float

    def at(self, places: np.ndarray) -> Covariances:
        """The same for some of the coordinates."""
        return replace(
            self,
            gram=self.gram[np.ix_(places, places)],
            cross=self.cross[places],
            means=self.means[places],
        )


def _clear_center(center: float, noise: float) -> float:
    """The mean of the target, or the public middle where it may be noise.

    One standard error is enough where it is small, and four where it is not: what noise adds to a
    prediction is the larger, the larger it is.
    """
    level = noise * min(4.0, 1.0 + 20.0 * noise)
    return center * max(0.0, 1.0 - (level / center) ** 8) if center != 0 else 0.0


def _shrink(means: np.ndarray, noise: float) -> np.ndarray:
    """Means pulled to 0 as far as they are noise (James and Stein)."""
    squares = float(means @ means)
    return means * max(0.0, 1.0 - len(means) * noise**2 / squares) if squares > 0 else means


def raise_eigenvalues(matrix: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """A symmetric matrix with eigenvalues of at least `floor`; at 0, the nearest PSD matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, floor)) @ vectors.T
