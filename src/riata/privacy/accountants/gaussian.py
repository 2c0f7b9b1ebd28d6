"""Gaussian releases: they compose to one, whose privacy curve is known."""

from __future__ import annotations

import math

from scipy.special import log_ndtr

from riata.privacy.accountants.base import Accountant, smallest_epsilon
from riata.privacy.events import Event, Gaussian, leaves


class GaussianAccountant(Accountant):
    """Gaussian releases compose to one, whose curve is known exactly (Balle, Wang 2018)."""

    name = "exact Gaussian composition"
    knows = (Gaussian,)
    exact = True

    def applies_to(self, event: Event, delta: float) -> bool:
        return delta > 0 and super().applies_to(event, delta)

    def shift(self, event: Event) -> float:
        """The distance of the means of the composed pair, in standard deviations."""
        parts = ((leaf, k) for leaf, k in leaves(event).items() if isinstance(leaf, Gaussian))
        return math.sqrt(math.fsum(k / leaf.noise_multiplier**2 for leaf, k in parts))

    def delta(self, event: Event, epsilon: float) -> float:
        return _gaussian_delta(self.shift(event), epsilon)

    def epsilon(self, event: Event, delta: float) -> float:
        mu = self.shift(event)
        if _gaussian_delta(mu, 0.0) <= delta:
            return 0.0
        top = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1e-9
        return smallest_epsilon(lambda eps: _gaussian_delta(mu, eps), delta, 0.0, top)


def _gaussian_delta(shift: float, epsilon: float) -> float:
    """The exact curve of two normals whose means are `shift` standard deviations apart."""
    if shift == 0:
        return 0.0
    upper = math.exp(float(log_ndtr(shift / 2 - epsilon / shift)))
    lower = math.exp(min(0.0, epsilon + float(log_ndtr(-shift / 2 - epsilon / shift))))
    return max(0.0, upper - lower)
