"""What exactness costs: selections and Gaussian releases against plain NumPy in the same run.

The peer of a selection is the Gumbel arg max that everybody writes,
``np.argmax(scores + rng.gumbel(size=n))``; that of a Gaussian release is ``rng.standard_normal(n)``
alone. riata's draws come from AES-256 and have the exact law. Selections are also timed for flat
and peaked scores, between which the time must not tell. The runs alternate, and the fastest of
each counts, in processor time: the machine is shared, and only the ratios mean anything.

    python benchmarks/exact_draws.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from riata.mechanisms import ExponentialMechanism, GaussianMechanism, PermuteAndFlip, TopK
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise

from results import keep, show

REPEATS = 60
STEPS = 2**33


class Scores(Engine):
    """A query and its engine, with sums that are given."""

    def __init__(self, sums: np.ndarray, symmetric: bool = False) -> None:
        self.sums, self.symmetric, self.unit = sums, symmetric, 1.0

    def total(self, query: Any) -> np.ndarray:
        return self.sums

    def from_total(self, total: np.ndarray) -> np.ndarray:
        return total * self.unit

    def sensitivity(self, norm: str) -> float:
        return float(STEPS)


def alternately(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The fastest processor time of each, in milliseconds."""
    best, rng = dict.fromkeys(runs, np.inf), np.random.default_rng(1)
    for _ in range(REPEATS):
        for name in rng.permutation(list(runs)):  # who comes after whom must not matter
            run = runs[name]
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return {name: 1e3 * seconds for name, seconds in best.items()}


def selections(n: int) -> list[dict[str, Any]]:
    rng, noise = np.random.default_rng(0), Noise()
    peaked = np.zeros(n, dtype=np.int64)
    peaked[n // 3] = 2000 * STEPS
    shapes = {
        "flat": np.zeros(n, dtype=np.int64),
        "peaked": peaked,
        "normal": (3 * STEPS * rng.standard_normal(n)).astype(np.int64),
    }
    plain = shapes["normal"] / STEPS
    runs: dict[str, Callable[[], Any]] = {
        "numpy": lambda: np.argmax(plain + rng.gumbel(size=n)),
    }
    mechanisms = {
        "exponential": (ExponentialMechanism(1.0), False),
        "exponential, both signs": (ExponentialMechanism(1.0), True),
        "permute-and-flip": (PermuteAndFlip(1.0), False),
        "top 10": (TopK(1.0, 10), False),
    }
    for name, (mechanism, symmetric) in mechanisms.items():
        for shape, sums in shapes.items():
            query: Any = Scores(sums[: n // 2] if symmetric else sums, symmetric)
            runs[f"{name}, {shape}"] = lambda m=mechanism, q=query: m.release(q, q, noise)
    found = alternately(runs)
    rows = []
    for name in mechanisms:
        times = {shape: found[f"{name}, {shape}"] for shape in shapes}
        rows.append(
            {
                "candidates": n,
                "selection": name,
                **{f"{shape} ms": ms for shape, ms in times.items()},
                "NumPy ms": found["numpy"],
                "over NumPy": max(times.values()) / found["numpy"],
                "peaked over flat": times["peaked"] / times["flat"],
            }
        )
    return rows


def gaussians(n: int) -> dict[str, Any]:
    rng, noise = np.random.default_rng(0), Noise()
    query: Any = Scores(rng.integers(-(2**50), 2**50, n))
    found = alternately(
        {
            "riata": lambda: GaussianMechanism(1.3).release(query, query, noise),
            "numpy": lambda: rng.standard_normal(n),
        }
    )
    return {
        "numbers": n,
        "million a second": n / found["riata"] / 1e3,
        "NumPy, million a second": n / found["numpy"] / 1e3,
        "over NumPy": found["riata"] / found["numpy"],
    }


def main() -> None:
    chosen = [row for n in (100_000, 1_000_000) for row in selections(n)]
    show("Exact selections", chosen)
    drawn = [gaussians(n) for n in (100_000, 1_000_000)]
    show("Gaussian releases on a grid", drawn)
    keep("exact_draws", {"selections": chosen, "gaussians": drawn})


if __name__ == "__main__":
    main()
