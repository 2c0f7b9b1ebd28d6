"""The stochastic intermediate gradient method of Dvurechensky and Gasnikov (2016)."""

from __future__ import annotations

import math

import numpy as np

from riata.arguments import check_whole


class Sigm:
    """Convex minimisation over the unit ball with noisy, inexact gradients, one at a time.

    With d(w) = ||w||^2 / 2, a power q between 1 and 2 and i = 0, 1, ...,

        alpha_i = ((i + q) / q)^(q - 1) / a,            a = 2^(q - 1/2),
        beta_i  = L + b sigma (i + q + 1)^(q - 1/2),    b = 2^((5 - 2 q) / 4) q^(1/2 - q),
        B_i     = a alpha_i^2,    A_i = alpha_0 + ... + alpha_i,    tau_i = alpha_(i+1) / B_(i+1),

    one step takes a gradient G_(k+1) at x_(k+1) = tau_k z_k + (1 - tau_k) y_k, and sets

        xhat = the point of the ball nearest to z_k - alpha_(k+1) G_(k+1) / beta_k,
        w    = tau_k xhat + (1 - tau_k) y_k,
        y_(k+1) = (1 - B_(k+1) / A_(k+1)) y_k + B_(k+1) / A_(k+1) w,
        z_(k+1) = the point of the ball nearest to - sum of alpha_i G_i / beta_(k+1).

    The expected excess of y_k is of the order L / k^q + sigma / sqrt(k) + k^(q - 1) gamma for an
    oracle of inexactness gamma. At q = 1, the default, errors do not add up, as in Lemma 10 of
    Zheng, Mou and Wang (2017).

    Parameters
    ----------
    n_features : int
    smoothness : float
        L, the largest curvature of the objective.
    sigma : float
        A bound on the standard deviation of the gradients.
    power : float, default=1.0
        q, between 1 (no error adds up) and 2 (the fastest without noise).
    """

    def __init__(
        self, n_features: int, smoothness: float, sigma: float, power: float = 1.0
    ) -> None:
        self._smoothness, self._sigma, self._q = smoothness, sigma, power
        self._a = 2 ** (power - 0.5)
        self._b = 2 ** ((5 - 2 * power) / 4) * power ** (0.5 - power)
        self._steps = 0
        self._sum = np.zeros(n_features)
        self._y = np.zeros(n_features)
        self._z = np.zeros(n_features)
        self._total = 0.0
        self._next()

    def _next(self) -> None:
        """The numbers of the coming step."""
        self._alpha = self.alpha(self._steps)
        self._weight = self._a * self._alpha**2  # B
        self._total += self._alpha  # A
        self._tau = self._alpha / self._weight if self._steps else 1.0

    def alpha(self, i: int) -> float:
        return ((i + self._q) / self._q) ** (self._q - 1) / self._a

    def beta(self, i: int) -> float:
        return self._smoothness + self._b * self._sigma * (i + self._q + 1) ** (self._q - 0.5)

    @property
    def point(self) -> np.ndarray:
        """x: where the next gradient is to be taken."""
        return self._tau * self._z + (1 - self._tau) * self._y

    @property
    def answer(self) -> np.ndarray:
        """y: the best guess so far."""
        return self._y

    def step(self, gradient: np.ndarray) -> None:
        """Take the gradient at `point`."""
        k = self._steps
        self._sum += self._alpha * gradient
        if k == 0:
            self._y = into_ball(-self._alpha / self.beta(0) * gradient)
        else:
            near = into_ball(self._z - self._alpha / self.beta(k - 1) * gradient)
            w = self._tau * near + (1 - self._tau) * self._y
            share = self._weight / self._total
            self._y = (1 - share) * self._y + share * w
        self._z = into_ball(-self._sum / self.beta(k))
        self._steps += 1
        self._next()


def sigm_risk(steps: int, smoothness: float, sigma: float, inexactness: float = 0.0) -> float:
    """A bound on the expected excess of the answer for power 1: Lemma 10, with constants.

    smoothness / (sqrt(2) n) + sigma (b sqrt(n + 1) / n + 1 / (b sqrt(n))) / sqrt(2) + inexactness
    with b = 2^(3/4), that is about 1.61 sigma / sqrt(n) for many steps n. The proof is in
    docs/algorithms/local_paper.md.

    Parameters
    ----------
    steps : int
    smoothness, sigma : float
        As for `Sigm`.
    inexactness : float, default=0.0
        gamma of Definition 4.
    """
    steps = check_whole("steps", steps, "it is a number of gradients")
    b = 2**0.75
    noise = b * math.sqrt(steps + 1) / steps + 1 / (b * math.sqrt(steps))
    return (smoothness / steps + sigma * noise) / math.sqrt(2) + inexactness


def sigm_steps(risk: float, smoothness: float, sigma: float) -> int:
    """The smallest number of steps whose `sigm_risk` is at most `risk`."""
    high = 1
    while sigm_risk(high, smoothness, sigma) > risk:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sigm_risk(middle, smoothness, sigma) > risk else (low, middle)
    return high


def into_ball(v: np.ndarray) -> np.ndarray:
    """The nearest point of the unit ball."""
    length = float(np.linalg.norm(v))
    return v / length if length > 1 else v
