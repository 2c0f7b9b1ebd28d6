"""Simple peers of the local model: noisy second moments, one bit for each, and ridge regression.

Entries, targets and their products lie in [-1, 1]. Each is made a bit whose mean it is, and bits
are flipped. The sums of so many people are drawn from their normal limits.
"""

from __future__ import annotations

import math

import numpy as np

#: One product of each person; a bit of each product in one answer (Duchi, Jordan and Wainwright
#: 2018); a bit of each column, of which the server multiplies pairs.
PEERS = ("sampled products", "all products", "all columns")
RIDGES = np.geomspace(1e-3, 3.0, 15)


def noisy_moments(
    peer: str, rows: np.ndarray, y: np.ndarray, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    """The mean of z z' for z = (1, x, y), as the peer's server sees it."""
    z = np.column_stack([np.ones(len(rows)), rows, y])
    size, n = z.shape[1], len(z)
    pairs = [(i, j) for i in range(size) for j in range(i, size) if 0 < i + j < 2 * size - 2]
    moments = z.T @ z / n
    for i, j in pairs:
        noise = _noise(peer, epsilon, len(pairs), size - 1, i > 0) / math.sqrt(n)
        moments[i, j] += noise * rng.standard_normal()
        moments[j, i] = moments[i, j]
    return moments


def _noise(peer: str, epsilon: float, products: int, columns: int, pair: bool) -> float:
    """The standard deviation of one person's share in one moment."""
    if peer == "sampled products":
        return math.sqrt(products) * _flipped(epsilon)
    if peer == "all columns":
        return _flipped(epsilon / columns) ** (2 if pair else 1)
    half = products // 2
    if products % 2:
        scale = 2.0 ** (products - 1) / math.comb(products - 1, half)
    else:
        scale = (2.0 ** (products - 1) + math.comb(products, half) / 2) / math.comb(
            products - 1, half
        )
    return _flipped(epsilon) * scale


def _flipped(epsilon: float) -> float:
    """What a bit that was flipped with probability 1 / (1 + e^epsilon) is multiplied by."""
    return 1.0 / math.tanh(epsilon / 2.0)


def ridge_from(moments: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    """Coefficients and offset, with the nearest positive semidefinite covariances."""
    means, center = moments[0, 1:-1], moments[0, -1]
    covariances = moments[1:-1, 1:-1] - np.outer(means, means)
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, 0.0) + ridge
    theta = vectors @ (vectors.T @ (moments[1:-1, -1] - means * center) / values)
    return theta, float(center - means @ theta)
