"""Expected lengths of standard normal vectors, by closed form or one-dimensional integral."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln, log_ndtr
from scipy.stats import chi


def expected_l2(n: int) -> float:
    """E ||g||_2."""
    return float(np.sqrt(2) * np.exp(gammaln((n + 1) / 2) - gammaln(n / 2)))


def expected_linf(n: int) -> float:
    """E max |g_j| = the integral of 1 - P(all |g_j| <= t)."""

    def survival(t: float) -> float:
        return -np.expm1(n * np.log1p(-2 * np.exp(log_ndtr(-t)))) if t > 0 else 1.0

    return float(quad(survival, 0.0, np.sqrt(2 * np.log(n)) + 12.0, limit=200)[0])


def expected_largest_group(sizes: np.ndarray) -> float:
    """E max over disjoint groups of the Euclidean length of the group."""
    sizes, counts = np.unique(sizes, return_counts=True)

    def survival(t: float) -> float:
        return -np.expm1(float(counts @ chi.logcdf(t, sizes))) if t > 0 else 1.0

    top = np.sqrt(sizes.max()) + np.sqrt(2 * np.log(counts.sum())) + 12.0
    return float(quad(survival, 0.0, top, limit=200)[0])
