"""The arena's generated designs: correlated, heavy-tailed, one-hot, small, sparse, dense, null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from riata import Bounds

from arena_data import Table


def _design(x: np.ndarray, signal: np.ndarray, noise: float, rng: Any, length: float) -> Table:
    """Rows inside a length, targets inside 1 nearly always."""
    y = signal / signal.std() + noise * rng.standard_normal(len(x))
    return Table(x, np.clip(y / 4, -1, 1), Bounds(length, 1.0, norm="l2"))


def correlated(n: int = 20_000, p: int = 50, seed: int = 0) -> Table:
    """Columns whose eigenvalues fall as 1 / j, all of them relevant."""
    rng = np.random.default_rng([1, seed])
    turn = np.linalg.qr(rng.standard_normal((p, p)))[0]
    x = rng.standard_normal((n, p)) / np.sqrt(1 + np.arange(p)) @ turn
    length = float(np.sqrt(np.sum(1 / (1 + np.arange(p)))))
    signal = x @ turn.T @ rng.standard_normal(p)
    return _design(x / (2 * length), signal, 0.5, rng, 1.0)


def heavy(n: int = 10_000, p: int = 20, seed: int = 0) -> Table:
    """Correlated columns with tails of a Student law of three degrees, and such noise."""
    rng = np.random.default_rng([2, seed])
    x = rng.standard_t(3, (n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)) / p**0.5)
    y = x @ rng.standard_normal(p) / p**0.5 + rng.standard_t(3, n)
    return Table(np.clip(x / 20, -1, 1), np.clip(y / 10, -1, 1), Bounds(3.0, 1.0, norm="l2"))


def categories(n: int = 20_000, seed: int = 0) -> Table:
    """Six categories of 2 to 20 values with unequal frequencies, as one-hot columns."""
    rng = np.random.default_rng([3, seed])
    parts, signal = [], np.zeros(n)
    for size in (2, 3, 5, 8, 12, 20):
        often = rng.dirichlet(np.full(size, 0.7))
        value = rng.choice(size, n, p=often)
        parts.append(np.eye(size)[value])
        signal += rng.standard_normal(size)[value]
    return _design(np.hstack(parts), signal, 1.0, rng, 6**0.5)


def many_for_few(n: int = 2_000, p: int = 100, seed: int = 0) -> Table:
    """Few rows, many columns, one dominant direction."""
    rng = np.random.default_rng([4, seed])
    common = rng.standard_normal((n, 1))
    x = (common + 0.6 * rng.standard_normal((n, p))) / (2 * p**0.5)
    return _design(x, x @ (1 + 0.5 * rng.standard_normal(p)), 0.5, rng, 1.0)


def small(n: int = 1_000, p: int = 8, seed: int = 0) -> Table:
    """Few rows and few columns."""
    rng = np.random.default_rng([5, seed])
    x = rng.uniform(-1, 1, (n, p)) @ (np.eye(p) + 0.4) / 2
    return _design(np.clip(x, -1, 1), x @ rng.standard_normal(p), 0.5, rng, p**0.5)


def classes(n: int = 20_000, p: int = 20, seed: int = 0) -> Table:
    """Two classes, one of them rare, from correlated columns."""
    table = correlated(n, p, seed + 100)
    rng = np.random.default_rng([6, seed])
    margins = 6 * table.y - 1.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    return Table(table.x, y, Bounds(1.0, norm="l2"), n_classes=2)


def sparse_signal(n: int = 10_000, p: int = 300, seed: int = 0) -> Table:
    """Five of 300 independent columns matter."""
    rng = np.random.default_rng([8, seed])
    x = rng.uniform(-1, 1, (n, p)) / p**0.5
    signal = x[:, rng.choice(p, 5, replace=False)] @ np.array([1.0, -1.0, 0.8, -0.6, 0.5])
    return _design(x, signal, 0.5, rng, 1.0)


def dense_signal(n: int = 10_000, p: int = 300, seed: int = 0) -> Table:
    """All of 300 columns with a common factor matter a little."""
    rng = np.random.default_rng([9, seed])
    x = 0.7 * rng.standard_normal((n, 1)) + rng.standard_normal((n, p))
    return _design(x / (2 * p**0.5), x @ rng.standard_normal(p), 0.5, rng, 1.0)


def null_small() -> Table:
    """Targets that have nothing to do with 1,000 rows of 8 columns."""
    return small().shuffled(1)


def null_wide() -> Table:
    """The same with 2,000 rows of 100 columns."""
    return many_for_few().shuffled(1)


def few_classes(n: int = 1_500, p: int = 12, seed: int = 0) -> Table:
    """Two classes of few rows."""
    rng = np.random.default_rng([10, seed])
    x = rng.standard_normal((n, p)) @ (np.eye(p) + 0.3 * rng.standard_normal((p, p)) / p**0.5)
    margins = 2 * x @ rng.standard_normal(p) / p**0.5
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-margins)), 1.0, -1.0)
    return Table(np.clip(x / 4, -1, 1), y, Bounds(p**0.5, norm="l2"), n_classes=2)


DESIGNS: dict[str, Callable[[], Table]] = {
    "correlated": correlated, "heavy tails": heavy, "categories": categories,
    "2,000 x 100": many_for_few, "1,000 x 8": small, "two classes": classes,
    "1,500 rows, two classes": few_classes, "sparse signal": sparse_signal,
    "dense signal": dense_signal, "null 1,000 x 8": null_small, "null 2,000 x 100": null_wide,
}  # fmt: skip
