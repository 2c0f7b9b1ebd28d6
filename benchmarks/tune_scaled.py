"""Where the numbers of `solvers/scaled_gradient.py` come from.

Synthetic one-hot rows: blocks of categories with Zipf frequencies, some of which depend on each
other, and rare flags; normal effects; skewed noise, or labels. Each number is replaced by
alternatives, and what is printed is the held-out score with the shipped numbers and its change. A
change within a few thousandths says that the number does not matter. No real data is looked at.

    python benchmarks/tune_scaled.py [--only NAME ...] [--epsilon 1 3] [--seeds 2]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import r2_score, roc_auc_score

from riata import Bounds, PrivateLasso, PrivateLogisticRegression
from riata.solvers import scaled_gradient

from results import keep, show

DELTA = 1e-6

#: The numbers of levels of each block of categories, and the number of rare flags.
BLOCKS, FLAGS = (12, 31, 20, 16, 100, 1_000, 3_000), 5


def _shares(**changed: float) -> dict[str, float]:
    return scaled_gradient.SHARES | changed


#: What is tried in place of each number.
ALTERNATIVES: dict[str, tuple[Any, ...]] = {
    "STEPS": (16, 64),
    "SHARES": (
        _shares(squares=0.06),
        _shares(squares=0.26),
        _shares(sums=0.01),
        _shares(sums=0.04),
        _shares(slopes=0.005, entries=0.002),
        _shares(constant=0.005, intercept=0.005),
        _shares(constant=0.03, intercept=0.03),
        _shares(check=0.03),
    ),
    "FIRST_STEPS": (2, 8),
    "ENTRY_QUANTILE": (0.5, 0.9),
    "ENTRY_BINS": (1, 32),
    "KEPT": (2.0, 5.0),
    "FLOOR": (0.3, 3.0),
    "FLOOR_OF_NOISE": (1.0, 4.0),
    "CUT": (0.75, 1.25),
    "INTERCEPT_CUT": (1.0, 4.0),
    "LENGTH": (0.7, 1.4),
    "RATE": (0.25, 1.0),
    "MOMENTUM": (0.6, 0.9),
    "INTERCEPT_RATE": (0.25, 1.0),
    "LEFT_OUT": (0.0, 0.5),
}


@dataclass(frozen=True)
class Case:
    """How much of the variance the columns explain, and whether labels are predicted."""

    snr: float
    labels: bool = False
    n: int = 100_000


CASES = (Case(0.15), Case(0.5), Case(0.3, labels=True, n=50_000))


def one_hot(case: Case, seed: int) -> tuple[sparse.csr_array, np.ndarray, Bounds]:
    """Rows of one 1 in each block, targets in [-1, 1] or labels, and what is public of them."""
    rng, n, columns, offset = np.random.default_rng(seed), case.n, [], 0
    signal, before = np.zeros(n), None
    for i, levels in enumerate(BLOCKS):
        frequency = 1 / (np.arange(levels) + 3.0)
        level = rng.choice(levels, n, p=frequency / frequency.sum())
        if before is not None and i % 2:
            level = np.where(rng.random(n) < 0.6, before % levels, level)
        columns.append(offset + level)
        offset, before = offset + levels, level
        signal += rng.standard_normal(levels)[level]
    for _ in range(FLAGS):
        flag = (rng.random(n) < 0.03).astype(int)
        columns.append(offset + flag)
        offset += 2
        signal += rng.standard_normal(2)[flag]
    signal = (signal - signal.mean()) / signal.std() * case.snr**0.5
    y = signal + (1 - case.snr) ** 0.5 * (rng.gamma(1.0, 1.0, n) - 1)
    y = np.where(y > 0.5, 1.0, -1.0) if case.labels else np.clip(y / 3, -1, 1)
    places, width = np.stack(columns, axis=1), len(columns)
    entries = (np.ones(places.size), places.ravel(), np.arange(0, places.size + 1, width))
    bounds = Bounds(width**0.5, 1.0, norm="l2")
    return sparse.csr_array(entries, shape=(n, offset)), y, bounds


@contextmanager
def using(name: str, value: Any) -> Iterator[None]:
    """The solver with another value of one number."""
    before = getattr(scaled_gradient, name)
    setattr(scaled_gradient, name, value)
    try:
        yield
    finally:
        setattr(scaled_gradient, name, before)


def score(case: Case, sample: Any, epsilon: float, seed: int) -> float:
    """R2, or the area under the curve for labels, on every fourth row, which is not fitted."""
    x, y, bounds = sample
    held = np.arange(len(y)) % 4 == 0
    common = {"bounds": bounds, "solver": "scaled-gradient", "random_state": seed}
    if case.labels:
        labelled = PrivateLogisticRegression(epsilon, DELTA, classes=[-1.0, 1.0], **common)
        margins = labelled.fit(x[~held], y[~held]).decision_function(x[held])
        return float(roc_auc_score(y[held], margins))
    model = PrivateLasso(epsilon, DELTA, **common).fit(x[~held], y[~held])
    return float(r2_score(y[held], model.predict(x[held])))


def scores(samples: list[Any], epsilons: list[float]) -> np.ndarray:
    """One line for each case and epsilon, one entry for each seed."""
    found = {
        (case, epsilon): [score(case, s, epsilon, k) for c, s, k in samples if c is case]
        for case in CASES
        for epsilon in epsilons
    }
    return np.array(list(found.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    samples = [(case, one_hot(case, k), k) for case in CASES for k in range(options.seeds)]
    shipped = scores(samples, options.epsilon)
    print("shipped", shipped.mean(axis=1).round(4), flush=True)
    rows = []
    for name, values in ALTERNATIVES.items():
        if options.only and name not in options.only:
            continue
        for value in values:
            with using(name, value):
                change = (scores(samples, options.epsilon) - shipped).mean(axis=1)
            print(name, value, change.round(4), f"mean {change.mean():+.4f}", flush=True)
            rows.append({"number": name, "instead": str(value), "change": float(change.mean())})
    if rows:
        show("Change of the held-out score with another number", rows)
        keep("tune_scaled", {"shipped": shipped.mean(axis=1).tolist(), "rows": rows})


if __name__ == "__main__":
    main()
