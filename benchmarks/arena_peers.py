"""Peers of the arena, written from their papers, with exact Gaussian accounting.

They get what users do not have: settings that are the best on the held-out rows. Rows are inside a
length R and targets inside Y; everything is replace-one. `mu` is the strength of the guarantee:
a Gaussian release of sensitivity s and strength m has noise s / m. Each peer yields one linear
model, a column for each class, for each of its settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import log_expit, softmax
from scipy.stats import norm
from sklearn.linear_model import orthogonal_mp

#: Second moments of more columns than this are not formed.
MOST_MOMENTS = 1_000

#: Above so many columns a part of the rows votes for columns by their covariance with the target.
MOST_PURSUIT = 2_000


def strength(epsilon: float, delta: float) -> float:
    """The mu at which Gaussian differential privacy is (epsilon, delta), by Dong, Roth and Su."""

    def excess(mu: float) -> float:
        below = norm.cdf(-epsilon / mu + mu / 2)
        return float(below - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2) - delta)

    return float(brentq(excess, 1e-5, 20.0))


@dataclass(frozen=True)
class Rows:
    """What a peer sees: rows with a constant beside them, targets, bounds and the budget.

    Labels are -1 and 1, or 0 to K - 1; `n_classes` is 0 for regression.
    """

    x: Any
    y: np.ndarray
    length: float
    most: float
    n_classes: int
    epsilon: float
    delta: float
    rng: Any

    @property
    def mu(self) -> float:
        return strength(self.epsilon, self.delta)

    def shortened(self, part: float) -> tuple[Any, float]:
        """Rows no longer than a part of their bound."""
        length = part * self.length
        lengths = np.sqrt(np.asarray((self.x * self.x).sum(axis=1)).ravel())
        shrink = np.minimum(1.0, length / np.maximum(lengths, 1e-12))
        return self.x * shrink[:, None], length


def noisy_gram(x: Any, length: float, mu: float, rng: Any) -> np.ndarray:
    p = x.shape[1]
    noise = rng.standard_normal((p, p)) * math.sqrt(2) * length**2 / mu
    return np.asarray(x.T @ x) + np.triu(noise) + np.triu(noise, 1).T


def ada_ssp(given: Rows) -> Iterator[np.ndarray]:
    """AdaSSP (Wang 2018): noisy second moments, with a ridge chosen by a noisy eigenvalue."""
    p, part, rng = given.x.shape[1], given.mu / math.sqrt(3), given.rng
    for shorter in (1.0, 0.5, 0.25):
        x, length = given.shortened(shorter)
        gram = noisy_gram(x, length, part, rng)
        cross = x.T @ given.y + rng.standard_normal(p) * 2 * length * given.most / part
        ridge = _ridge(x, length, part, rng)
        for more in (0.1, 1.0):
            yield _solved(gram, more * ridge, cross)


def _ridge(x: Any, length: float, mu: float, rng: Any) -> float:
    p = x.shape[1]
    least = np.linalg.eigvalsh(np.asarray(x.T @ x))[0]
    least += length**2 / mu * (rng.standard_normal() - 1.645)
    return max(0.0, math.sqrt(p * math.log(2 * p**2 / 0.05)) * length**2 / mu - max(least, 0))


def _solved(gram: np.ndarray, ridge: float, cross: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.lstsq(gram + ridge * np.eye(len(gram)), cross)[0])


def boosted_ada_ssp(given: Rows) -> Iterator[np.ndarray]:
    """Boosted AdaSSP (Tang and others 2023): one noisy second moment, clipped residuals."""
    part, rng = given.mu / math.sqrt(3), given.rng
    for shorter in (1.0, 0.5):
        x, length = given.shortened(shorter)
        p = x.shape[1]
        gram, ridge = noisy_gram(x, length, part, rng), _ridge(x, length, part, rng)
        for more in (0.1, 1.0):
            solve = np.linalg.pinv(gram + more * ridge * np.eye(p))
            for steps in (10, 50):
                for clip in (0.1, 0.3, 1.0):
                    w = np.zeros(p)
                    for _ in range(steps):
                        left = np.clip(given.y - x @ w, -clip * given.most, clip * given.most)
                        scale = 2 * length * clip * given.most * math.sqrt(steps) / part
                        w = w + solve @ (x.T @ left + scale * rng.standard_normal(p))
                    yield w


def noisy_descents(given: Rows) -> Iterator[np.ndarray]:
    """Averaged noisy gradient descent for several clips, rates and numbers of steps."""
    x, length, mu, rng = given.x, given.length, given.mu, given.rng
    n, p = x.shape
    lengths = np.sqrt(np.asarray((x * x).sum(axis=1)).ravel())
    columns = given.n_classes if given.n_classes > 2 else 1
    targets = np.eye(columns)[given.y.astype(int)] if columns > 1 else given.y[:, None]
    for steps in (8, 30, 100):
        for clip in (0.1, 0.5, 2.0):
            for rate in (0.1, 1.0, 5.0):
                w, total = np.zeros((p, columns)), np.zeros((p, columns))
                for t in range(steps):
                    slopes = _slopes(x @ w, targets, given.n_classes)
                    sizes = np.sqrt(np.square(slopes).sum(axis=1)) * lengths
                    cut = clip * length / 2
                    slopes *= np.minimum(1.0, cut / np.maximum(sizes, 1e-12))[:, None]
                    noise = 2 * cut * math.sqrt(steps) / mu * rng.standard_normal(w.shape)
                    w = w - rate / length**2 * (x.T @ slopes + noise) / n * 4
                    total += w * (2 * t >= steps)
                yield total / (steps // 2)


def _slopes(margins: np.ndarray, targets: np.ndarray, n_classes: int) -> np.ndarray:
    if n_classes == 0:
        return margins - targets
    if n_classes == 2:
        return -targets / (1 + np.exp(np.clip(targets * margins, -500, 500)))
    return softmax(margins, axis=1) - targets


def objective_perturbation(given: Rows) -> Iterator[np.ndarray]:
    """Objective perturbation (Chaudhuri and others 2011; Kifer and others 2012), logistic loss.

    Normal noise on the linear term. The gradient of a replaced row moves by 2 R and the determinant
    by a factor of 1 + curvature / ridge, which is taken from epsilon. What is left is accounted as
    if the loss were Gaussian, which is no more than the noise that is proven (Redberg and others
    2023 need a little more): the peer gets the benefit.
    """
    p, length = given.x.shape[1], given.length
    curvature = length**2 / 4
    draw = given.rng.standard_normal(p)
    for share in (0.02, 0.1, 0.3):
        ridge = curvature / math.expm1(share * given.epsilon)
        scale = 2 * length / strength((1 - share) * given.epsilon, given.delta)
        for more in (1.0, 10.0, 100.0):
            yield _minimiser(given, more * ridge, scale * draw)


def _minimiser(given: Rows, ridge: float, tilt: np.ndarray) -> np.ndarray:
    """Of the logistic risk with a ridge and a linear term."""

    def risk(w: np.ndarray) -> tuple[float, np.ndarray]:
        margins = given.y * (given.x @ w)
        slopes = -given.y * np.exp(log_expit(-margins))
        value = -log_expit(margins).sum() + ridge * (w @ w) / 2 + tilt @ w
        return float(value), given.x.T @ slopes + ridge * w + tilt

    start, options = np.zeros(len(tilt)), {"maxiter": 200}
    return np.asarray(minimize(risk, start, jac=True, method="L-BFGS-B", options=options).x)


def stability_selection(given: Rows) -> Iterator[np.ndarray]:
    """Columns by votes of disjoint parts of the rows (Kifer and others 2012), then AdaSSP.

    A part votes for s columns, found by orthogonal matching pursuit, or by covariance if there are
    very many. One row moves the votes of one part: by sqrt(2 s) in length.
    """
    p, half, rng = given.x.shape[1] - 1, given.mu / math.sqrt(2), given.rng
    x = given.x[:, :p]
    for parts in (20, 100):
        if x.shape[0] < 20 * parts:
            continue
        blocks = np.array_split(rng.permutation(x.shape[0]), parts)
        for s in (3, 10):
            votes = np.zeros(p)
            for block in blocks:
                votes[_voted(x[block], given.y[block], min(s, p))] += 1
            votes += math.sqrt(2 * s) / half * rng.standard_normal(p)
            kept = np.append(np.argsort(-votes)[: min(s, p)], p)
            few = Rows(_dense(given.x[:, kept]), given.y, given.length, given.most,
                       given.n_classes, given.epsilon, given.delta, rng)  # fmt: skip
            for found in _refits(few, half):
                w = np.zeros(p + 1)
                w[kept] = found
                yield w


def _refits(given: Rows, mu: float) -> Iterator[np.ndarray]:
    part, rng = mu / math.sqrt(3), given.rng
    for shorter in (1.0, 0.25):
        x, length = given.shortened(shorter)
        gram = noisy_gram(x, length, part, rng)
        noise = rng.standard_normal(x.shape[1]) * 2 * length * given.most / part
        yield _solved(gram, _ridge(x, length, part, rng), x.T @ given.y + noise)


def _dense(x: Any) -> np.ndarray:
    return x.toarray() if hasattr(x, "toarray") else np.asarray(x)


def _voted(x: Any, y: np.ndarray, s: int) -> np.ndarray:
    y = y - y.mean()
    if x.shape[1] > MOST_PURSUIT:
        means = np.asarray(x.mean(axis=0)).ravel()
        return np.argsort(-np.abs(x.T @ y - means * y.sum()))[:s]
    x = _dense(x)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0)
    return np.flatnonzero(orthogonal_mp(x / np.where(spread > 0, spread, np.inf), y,
                                        n_nonzero_coefs=s))  # fmt: skip


def peers_for(n_columns: int, n_classes: int) -> dict[str, Callable[[Rows], Iterator[np.ndarray]]]:
    """Those that can fit such rows."""
    found: dict[str, Callable[[Rows], Iterator[np.ndarray]]] = {"noisy descent": noisy_descents}
    if n_classes > 2:
        return found
    if n_columns <= MOST_MOMENTS:
        found |= {"AdaSSP": ada_ssp, "Boosted AdaSSP": boosted_ada_ssp}
    if n_classes == 2:
        found["objective perturbation"] = objective_perturbation
    if n_columns >= 20:
        found["stability selection"] = stability_selection
    return found
