"""What it costs to protect targets alone, beside whole rows, on a9a and on housing.

Random rows to fit on and 8,000 others to score, five times, delta 1e-6; AUC of a9a and R2 of
housing. Both columns are the defaults and differ in `adjacency` alone. The last is scikit-learn
without privacy.

    RIATA_DATA=<folder> python benchmarks/label_privacy.py [--rows 300 1000 10000]
                                                           [--epsilon 0.3 1 3]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score

import real_data
from riata import PrivateLasso, PrivateLogisticRegression

import arena_data
from results import keep, show

DELTA, SPLITS, SCORED = 1e-6, 5, 8_000


def a9a() -> tuple[np.ndarray, np.ndarray, Callable[..., Any], Any]:
    data = real_data.a9a()

    def make(epsilon: float, adjacency: str) -> Any:
        return PrivateLogisticRegression(
            epsilon, DELTA, bounds=data.bounds, classes=[-1, 1], adjacency=adjacency
        )

    return data.x.toarray(), data.y, make, LogisticRegression(max_iter=1_000)


def housing() -> tuple[np.ndarray, np.ndarray, Callable[..., Any], Any]:
    data = arena_data.housing()

    def make(epsilon: float, adjacency: str) -> Any:
        return PrivateLasso(epsilon, DELTA, bounds=data.bounds, adjacency=adjacency)

    return data.x, data.y, make, Ridge(1e-3)


TABLES = {"a9a": a9a, "housing": housing}


def scored(model: Any, x: np.ndarray, y: np.ndarray, classifies: bool) -> float:
    if classifies:
        return float(roc_auc_score(y, model.decision_function(x)))
    return float(r2_score(y, model.predict(x)))


def line(name: str, n: int, epsilon: float) -> dict[str, Any]:
    """The mean score under label privacy, with whole rows protected, and without privacy."""
    x, y, make, plain = TABLES[name]()
    found: list[list[float]] = [[], [], []]
    for seed in range(SPLITS):
        order = np.random.default_rng([seed, n]).permutation(len(x))
        fit, held = order[:n], order[n : n + SCORED]
        models = [make(epsilon, "replace-label"), make(epsilon, "replace-one"), plain]
        for scores, model in zip(found, models, strict=True):
            model.fit(x[fit], y[fit])
            scores.append(scored(model, x[held], y[held], name == "a9a"))
    means = (round(float(np.mean(each)), 3) for each in found)
    columns = ("targets protected", "rows protected", "no privacy")
    return {"data": name, "rows": n, "epsilon": epsilon} | dict(zip(columns, means, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[300, 1_000, 3_000, 10_000])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    options = parser.parse_args()
    cases = itertools.product(TABLES, options.rows, options.epsilon)
    rows = [line(*case) for case in cases]
    show("AUC of a9a and R2 of housing", rows)
    keep("label_privacy", {"rows": rows})


if __name__ == "__main__":
    main()
