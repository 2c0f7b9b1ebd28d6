"""Peers of the arena, written from their papers, with exact Gaussian accounting.

They get what users do not have: settings that are the best on the held-out rows. Rows are inside a
length R and targets inside Y; everything is replace-one. `mu` is the strength of the guarantee:
a Gaussian release of sensitivity s and strength m has noise s / m.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm


def strength(epsilon: float, delta: float) -> float:
    """The mu at which Gaussian differential privacy is (epsilon, delta), by Dong, Roth and Su."""

    def excess(mu: float) -> float:
        below = norm.cdf(-epsilon / mu + mu / 2)
        return float(below - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2) - delta)

    return float(brentq(excess, 1e-4, 20.0))


def ada_ssp(
    x: np.ndarray, y: np.ndarray, length: float, most: float, mu: float, rng: Any
) -> np.ndarray:
    """AdaSSP (Wang 2018): noisy second moments, with a ridge chosen by a noisy eigenvalue."""
    p, part = x.shape[1], mu / math.sqrt(3)
    noise = rng.standard_normal((p, p)) * math.sqrt(2) * length**2 / part
    gram = x.T @ x + np.triu(noise) + np.triu(noise, 1).T
    least = np.linalg.eigvalsh(x.T @ x)[0] + length**2 / part * (rng.standard_normal() - 1.645)
    ridge = max(0.0, math.sqrt(p * math.log(2 * p**2 / 0.05)) * length**2 / part - max(least, 0))
    cross = x.T @ y + rng.standard_normal(p) * 2 * length * most / part
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(p), cross))


def noisy_descents(
    x: np.ndarray, y: np.ndarray, classifies: bool, length: float, mu: float, rng: Any
) -> Iterator[np.ndarray]:
    """Averaged noisy gradient descent for several clips, rates and numbers of steps."""
    n, p = x.shape
    for steps in (10, 50, 200):
        for clip in (0.1, 0.5, 2.0):
            for rate in (0.1, 1.0, 5.0):
                w, total = np.zeros(p), np.zeros(p)
                for t in range(steps):
                    margins = x @ w
                    slopes = -y / (1 + np.exp(y * margins)) if classifies else margins - y
                    rows = np.abs(slopes) * np.sqrt(np.square(x).sum(axis=1))
                    cut = clip * length / 2
                    slopes = slopes * np.minimum(1.0, cut / np.maximum(rows, 1e-12))
                    noise = 2 * cut * math.sqrt(steps) / mu * rng.standard_normal(p)
                    w = w - rate / length**2 * (x.T @ slopes + noise) / n * 4
                    total += w * (2 * t >= steps)
                yield total / max(1, math.ceil(steps / 2))
