"""How much of a budget greedy fits give to unpenalized columns before their search.

Three designs in which unpenalized columns go with others: uniform entries, genotypes with numbers
beside them, and rare flags. For each share it prints, on average over seeds: the error of the
margins over their variance, the error of the unpenalized coefficients over their size, and the
number of columns that the model has.

    python benchmarks/tune_unpenalized.py [SHARE ...] [--seeds 4]
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from riata import Bounds, PrivateLasso, PrivateLogisticRegression
from riata.solvers import defaults

ALWAYS = [0, 1]


def uniform(rng: np.random.Generator) -> tuple[np.ndarray, dict[int, float], float]:
    X = rng.uniform(-1, 1, (6_000, 300))
    X[:, 1] = np.clip(0.6 * X[:, 0] + 0.5 * X[:, 1], -1, 1)
    X[:, 5] = np.clip(0.7 * X[:, 0] + 0.4 * X[:, 5], -1, 1)
    return X, {0: 0.5, 1: -0.3, 10: 0.4, 20: -0.3}, 0.4


def genotypes(rng: np.random.Generator) -> tuple[np.ndarray, dict[int, float], float]:
    X = rng.binomial(2, rng.uniform(0.05, 0.5, 1_000), (20_000, 1_000)) / 2.0
    X[:, :3] = rng.normal(size=(20_000, 3)).clip(-3, 3) / 3
    X[:, 100:110] = (X[:, 100:110] + 0.5 * X[:, [0]]).clip(-1, 1)
    return X, {0: 0.8, 1: 0.3, 30: 0.4, 60: -0.4}, 0.5


def flags(rng: np.random.Generator) -> tuple[np.ndarray, dict[int, float], float]:
    X = (rng.uniform(size=(8_000, 150)) < 0.2).astype(float)
    X[:, 0], X[:, 1] = rng.uniform(0, 1, 8_000), rng.integers(0, 2, 8_000)
    return X, {0: 1.0, 1: 0.3, 12: 0.4, 13: 0.4, 14: -0.5}, 0.5


def errors(design, seed: int, classes: bool) -> list[float]:
    """Of one greedy fit."""
    rng = np.random.default_rng(seed)
    X, found, spread = design(rng)
    truth = np.zeros(X.shape[1])
    truth[list(found)] = list(found.values())
    more = {"solver": "greedy", "unpenalized": ALWAYS, "random_state": seed}
    if classes:
        truth *= 3
        margin = X @ truth
        y = (margin - margin.mean() + rng.logistic(size=len(X)) > 0).astype(int)
        model = PrivateLogisticRegression(2.0, 1e-6, bounds=Bounds(1.0), classes=[0, 1], **more)
    else:
        y = X @ truth + spread * rng.standard_normal(len(X))
        model = PrivateLasso(1.0, 1e-6, bounds=Bounds(1.0, 3.0), **more)
    wrong = np.ravel(model.fit(X, y).coef_) - truth
    risk = np.mean(((X - X.mean(axis=0)) @ wrong) ** 2) / np.var(X @ truth)
    always = np.abs(wrong[ALWAYS]).mean() / np.abs(truth[ALWAYS]).mean()
    return [risk, always, np.count_nonzero(model.coef_)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shares", nargs="*", type=float, default=[0.05, 0.1, 0.2, 0.4])
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    for design in (uniform, flags, genotypes):
        for classes in (False, True):
            for share in given.shares:
                defaults.FIRST_REFIT = replace(defaults.FIRST_REFIT, share=share)
                rows = [errors(design, seed, classes) for seed in range(given.seeds)]
                risk, always, columns = np.mean(rows, axis=0)
                kind = "classes" if classes else "numbers"
                print(f"{design.__name__:10s} {kind} share {share:4.2f}: risk {risk:.3f}, "
                      f"always {always:.3f}, {columns:.1f} columns", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
