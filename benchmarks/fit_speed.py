"""What a private fit costs, as ratios against plain code in the same run.

The peers: a textbook Algorithm 2 in NumPy that writes down all 2p vertices, the same loop without
them (a matrix-vector product and 2p Laplace draws a step), scikit-learn's Lasso on the same rows,
and one pass over the data (X' r). The machine is shared, so only the ratios mean anything.

    python benchmarks/fit_speed.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import Lasso

from riata import Bounds, PrivateLasso

from results import keep, show

STEPS = 50
REPEATS = 3


def best_time(run: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def textbook(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 2 with explicit vertices."""
    n, p = x.shape
    vertices = np.vstack([np.eye(p), -np.eye(p)])
    theta = np.zeros(p)
    for t in range(1, STEPS + 1):
        gradient = 2 * x.T @ (x @ theta - y) / n
        scores = vertices @ gradient + rng.laplace(scale=0.01, size=2 * p)
        theta += 2 / (t + 2) * (vertices[np.argmin(scores)] - theta)
    return theta


def plain_loop(x: Any, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Algorithm 2 with implicit vertices."""
    n, p = x.shape
    theta = np.zeros(p)
    for t in range(1, STEPS + 1):
        gradient = 2 * (x.T @ (x @ theta - y)) / n
        scores = np.concatenate([gradient, -gradient]) + rng.laplace(scale=0.01, size=2 * p)
        chosen = int(np.argmin(scores))
        theta *= t / (t + 2)
        theta[chosen % p] += 2 / (t + 2) * (1 if chosen < p else -1)
    return theta


def dense(n: int, p: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (n, p))


def wide_sparse(n: int, p: int, per_row: int) -> sparse.csr_array:
    rng = np.random.default_rng(0)
    columns = (p * rng.random((n, per_row)) ** 3).astype(np.int32)  # a few columns are common
    starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    x = sparse.csr_array((np.ones(n * per_row), columns.ravel(), starts), shape=(n, p))
    x.sum_duplicates()
    x.data[:] = 1.0
    return x


def measure(name: str, x: Any) -> dict[str, Any]:
    n, p = x.shape
    rng = np.random.default_rng(1)
    y = np.clip(x[:, [0]].sum(axis=1) * 0.5 - x[:, [1]].sum(axis=1) * 0.3, -1, 1)
    model = PrivateLasso(
        1.0, 1e-6, bounds=Bounds(x=1.0, y=1.0), solver="frank-wolfe", steps=STEPS,
        fit_intercept=False, random_state=0,
    )  # fmt: skip
    fit = best_time(lambda: model.fit(x, y))
    residual = rng.standard_normal(n)
    row = {
        "rows": name,
        "private fit, s": fit,
        "passes": fit / best_time(lambda: x.T @ residual),
        "plain loop / riata": best_time(lambda: plain_loop(x, y, rng)) / fit,
        "Lasso / riata": best_time(lambda: Lasso(alpha=1e-2).fit(x, y)) / fit,
        "textbook / riata": float("nan"),
        "distinct columns": len(np.flatnonzero(model.coef_)),
        "risk": float(np.mean((x @ model.coef_ - y) ** 2)),
    }
    if not sparse.issparse(x) and p <= 4000:
        row["textbook / riata"] = best_time(lambda: textbook(x, y, rng)) / fit
    return row


def main() -> None:
    rows = [
        measure("dense 10,000 x 1,000", dense(10_000, 1_000)),
        measure("dense 5,000 x 4,000", dense(5_000, 4_000)),
        measure("sparse 20,000 x 47,000", wide_sparse(20_000, 47_000, 74)),
        measure("sparse 20,000 x 1,000,000", wide_sparse(20_000, 1_000_000, 200)),
    ]
    show(f"Time of a private fit with {STEPS} steps", rows)
    keep("fit_speed", {"rows": rows})


if __name__ == "__main__":
    main()
