"""Estimated moments of the vectors that rows became, with their noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

#: The intercept is the public middle unless the target's mean is this many standard errors away.
CENTER_ERRORS = 4.0


@dataclass(frozen=True)
class Moments:
    """Unbiased estimates of A = E[u u'] and b = E[y u], and the noise of one entry of each.

    Attributes
    ----------
    gram, cross : ndarray
    gram_noise, cross_noise : float
        The standard deviation of an entry off the diagonal, and of a coordinate.
    """

    gram: np.ndarray
    cross: np.ndarray
    gram_noise: float
    cross_noise: float

    def covariances(self, square: float) -> Covariances:
        """Covariances, where the last coordinate is a constant whose square is known."""
        if square == 0:
            zero = np.zeros(len(self.cross))
            return Covariances(self.gram, self.cross, self.gram_noise, self.cross_noise, zero, 0.0)
        constant = math.sqrt(square)
        last = len(self.cross) - 1
        center, center_noise = self.cross[last] / constant, self.cross_noise / constant
        noise = self.gram_noise / constant
        means = _shrink(self.gram[:last, last] / constant, noise)
        # Noise of the products that are taken out: of the target's mean and of the columns' means.
        spread = float(means @ means) / max(last, 1)
        return Covariances(
            self.gram[:last, :last] - np.outer(means, means),
            self.cross[:last] - means * center,
            self.gram_noise,
            math.hypot(self.cross_noise, center * noise, math.sqrt(spread) * center_noise),
            means,
            center if abs(center) >= CENTER_ERRORS * center_noise else 0.0,
        )


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


def _shrink(means: np.ndarray, noise: float) -> np.ndarray:
    """Means pulled to 0 as far as they are noise (James and Stein)."""
    squares = float(means @ means)
    return means * max(0.0, 1.0 - len(means) * noise**2 / squares) if squares > 0 else means


def raise_eigenvalues(matrix: np.ndarray, floor: float = 0.0) -> np.ndarray:
    """A symmetric matrix with eigenvalues of at least `floor`; at 0, the nearest PSD matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.maximum(values, floor)) @ vectors.T
