"""Where noisy gradients lead in whitened coordinates, and how far that may be off.

A point is w, with the offset last if there is one. Everything here is made of releases with known
noise, and costs nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from riata.losses import Loss
from riata.solvers.empirical_bayes import averaged_noise
from riata.solvers.whitened_defaults import RATE, RATE_OF_CLASSES, limited

#: The deviation of a Jacobian is at least that of the last second moments, and up to a power of two
#: more, in so many doublings: rows that were shortened have other second moments than all rows.
DOUBLINGS = 8

#: No direction counts as bent less than this, in units of the mean curvature.
LEAST_CURVATURE = 0.05

#: Eigenvalues of a noisy identity spread no farther than this around 1 when errors are computed.
MOST_SPREAD = 0.8

#: Points and gradients, in units of the noise, are no larger: products of them are finite.
_MOST = 1e30


class AveragedSteps:
    """Steps along the gradient; the last iterates are averaged.

    Parameters
    ----------
    rate : float
        How far a step goes, over the curvature.
    curvature : float
    skipped, steps : int
        How many iterates come before those that are averaged, and how many there are.
    constant : float
        The entry of a row that stands for the intercept, or 0 for none.
    """

    def __init__(
        self, rate: float, curvature: float, skipped: int, steps: int, constant: float
    ) -> None:
        self.rate, self.curvature, self.constant = rate, curvature, constant
        self.skipped, self.steps, self._noises = skipped, steps, list[float]()
        self._mean: np.ndarray | float = 0.0

    def advance(self, point: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        """The next point after a released gradient."""
        self._noises.append(noise)
        move = self.rate / self.curvature * gradient
        if self.constant:
            move[-1] /= self.constant
        point = limited(point - move)
        if len(self._noises) > self.skipped:
            self._mean = self._mean + point / (self.steps - self.skipped)
        return point

    @property
    def found(self) -> np.ndarray:
        """The mean of the last points."""
        return np.asarray(self._mean)

    def noise(self, attenuation: float) -> float:
        """Its noise, if this part of the curvature is left."""
        noises = np.array(self._noises) / self.curvature
        return averaged_noise(noises, self.rate, self.rate * attenuation, self.steps - self.skipped)


class _Fit(NamedTuple):
    """A line through the gradients that were seen, in units of their noise."""

    evidence: float
    square: float
    inverse: np.ndarray
    weights: np.ndarray
    value: np.ndarray
    slopes: np.ndarray


class GradientRoot:
    """Where a mean gradient is 0, of which noisy values were seen at a few points.

    In whitened coordinates the Jacobian is the identity, but for noise: it is taken for the
    identity plus independent normal entries, and what it is along the way is learned from the
    gradients themselves. Then the gradient is a Gaussian process, and each point is the root of its
    mean. If the Jacobian is the identity that is the mean of all Newton steps, weighted by their
    precision. If it is not, directions of too large a step do not diverge, and those of too small
    a one converge as soon as they are seen.

    Parameters
    ----------
    curvature : float
        The mean curvature of the loss.
    deviation : float
        The standard deviation of an entry of the Jacobian, over the curvature.
    constant : float
        The entry of a row that stands for the intercept, or 0 for none. Its gradient has no more
        noise than the others, and counts as if it had as much.

    Attributes
    ----------
    found : ndarray
    spread : ndarray of shape (q, q)
        What errors of the gradient with a standard deviation of 1 move it by: the inverse of the
        Jacobian's mean.
    noise : float
        The standard deviation of these errors that the noise makes.

    References
    ----------
    Hennig, Kiefel (2013). Quasi-Newton methods: a new direction.
    """

    def __init__(self, curvature: float, deviation: float, constant: float) -> None:
        self.curvature, self.deviation = curvature, min(deviation, 1.0)
        self.constant = constant
        self._points: list[np.ndarray] = []
        self._gradients: list[np.ndarray] = []
        self._noises: list[float] = []

    def advance(self, point: np.ndarray, gradient: np.ndarray, noise: float) -> np.ndarray:
        """The root as far as a gradient and all before it tell."""
        gradient = gradient / self.curvature
        if self.constant:
            gradient[-1] /= self.constant
        self._points.append(point)
        self._gradients.append(gradient)
        self._noises.append(noise / self.curvature)
        self.found = self._root()
        return self.found

    def _root(self) -> np.ndarray:
        unit, last = self._noises[-1], self._points[-1]
        relative = unit / np.array(self._noises)
        moves = np.clip((np.array(self._points) - last) / unit, -_MOST, _MOST)
        values = np.clip(np.array(self._gradients) / unit, -_MOST, _MOST) - moves
        seen, values = moves * relative[:, None], values * relative[:, None]
        first, *others = (self._fitted(seen, values, relative, k) for k in range(DOUBLINGS))
        fit = max([first, *others], key=lambda each: each.evidence)
        # With moves d from the last point the mean is value + d + square * slopes' moves d.
        basis = np.linalg.svd(moves, full_matrices=False)[2]
        down, across = fit.square * fit.slopes.T, seen @ basis.T
        u, sizes, v = np.linalg.svd(np.eye(len(basis)) + basis @ down @ across)
        inverse = (v.T / np.maximum(sizes, LEAST_CURVATURE)) @ u.T
        self._bent = down @ across @ inverse, basis
        move = -fit.value + self._bent[0] @ (basis @ fit.value)
        near = fit.square * (seen @ move)
        variance = fit.square * float(move @ move) - float(near @ fit.inverse @ near)
        left = 1 - float(fit.weights @ near)
        variance += left**2 / float(fit.weights @ relative)
        self.noise = unit * math.sqrt(max(variance, 0.0))
        return limited(last + unit * move)

    def _fitted(self, seen: np.ndarray, values: np.ndarray, ones: np.ndarray, k: int) -> _Fit:
        """The line if entries of the Jacobian deviate by 2^k times what their noise says."""
        square = (2.0**k * self.deviation) ** 2
        sizes, vectors = np.linalg.eigh(seen @ seen.T)
        sizes = 1 + square * np.maximum(sizes, 0.0)
        inverse = (vectors / sizes) @ vectors.T
        weights = inverse @ ones
        precision = float(weights @ ones)
        value = weights @ values / precision
        slopes = inverse @ (values - np.outer(ones, value))
        evidence = values.shape[1] * (float(np.log(sizes).sum()) + math.log(precision))
        evidence += float((slopes * (values - np.outer(ones, value))).sum())
        return _Fit(-evidence / 2, square, inverse, weights, value, slopes)

    @property
    def spread(self) -> np.ndarray:
        """The inverse of the Jacobian, with what is not known of it."""
        bent, basis = self._bent
        inverse = np.eye(len(self.found)) - bent @ basis
        # The mean of 1 / x^2 over the eigenvalues of the identity with noise (semicircle law).
        square = min(4 * len(inverse) * self.deviation**2, MOST_SPREAD**2)
        unknown = 2 / square * (1 / math.sqrt(1 - square) - 1) if square > 1e-6 else 1.0
        return inverse * math.sqrt(unknown)


def path_of(
    loss: Loss, curvature: float, deviation: float, skipped: int, steps: int, constant: float
) -> GradientRoot | AveragedSteps:
    """How the steps go: to the root, where the curvature of the loss is a constant."""
    if loss.least_squares:
        return GradientRoot(curvature, deviation, constant)
    changes = loss.classifies or loss.measured_curvature
    rate = RATE_OF_CLASSES if changes else RATE
    return AveragedSteps(rate, curvature, skipped, steps, constant)
