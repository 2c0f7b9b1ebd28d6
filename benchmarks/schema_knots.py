"""How many knots pay: fits by schema with a line and with curves, at several epsilons.

Usage: RIATA_DATA=<folder> python benchmarks/schema_knots.py [splits]

The steps of `riata.data.schema.automatic.KNOTS` were read off its table. Bounds and categories are
facts about the columns.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from riata import PrivateLasso, PrivateLogisticRegression, Schema, read

from menu_data import FOLDER

#: A file, the bounds of its numbers, its target, and what the target is.
SETS: dict[str, tuple[str, dict[str, tuple[float, float]], str, dict[str, Any]]] = {
    "housing": (
        "california_housing.csv.gz",
        {"longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 52),
         "total_rooms": (0, 40_000), "total_bedrooms": (0, 6_500), "population": (0, 36_000),
         "households": (0, 6_100), "median_income": (0, 15)},
        "Price", {"bounds": [0, 500_000]},
    ),
    "diamonds": (
        "diamonds.csv.gz",
        {"carat": (0, 5), "depth": (40, 80), "table": (40, 100), "x": (0, 11), "y": (0, 11),
         "z": (0, 7)},
        "price", {"bounds": [0, 20_000]},
    ),
    "bank": (
        "bank_marketing.csv.gz", {"age": (17, 98), "campaign": (1, 40), "pdays": (0, 999)},
        "y", {"classes": ["no", "yes"]},
    ),
    "adult": (
        "adult_raw.csv.gz",
        {"age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16),
         "capital-gain": (0, 100_000), "capital-loss": (0, 5_000), "hours-per-week": (1, 99)},
        "income-per-year", {"classes": ["<=50K", ">50K"]},
    ),
}  # fmt: skip


def table_of(
    frame: pd.DataFrame, numbers: Any, target: str, about: Any, knots: int | None = None
) -> Any:
    """The schema with so many knots for each number, or with those of the default."""
    features: list[dict[str, Any]] = []
    for name in frame.columns.drop(target):
        if name in numbers:
            how = {"kind": "number", "bounds": list(numbers[name])}
            how |= {} if knots is None else {"knots": knots}
        else:
            how = {"kind": "choice", "choices": sorted(frame[name].dropna().astype(str).unique())}
        features.append({"name": name, **how})
    return {"features": features, "target": {"name": target, **about}}


def score(name: str, knots: int, epsilon: float, seed: int) -> float:
    """R2, or AUC for classes, on a quarter of the rows."""
    file, numbers, target, about = SETS[name]
    frame = pd.read_csv(FOLDER / file, skipinitialspace=True)
    order = np.random.default_rng(seed).permutation(len(frame))
    train, test = np.split(order, [int(0.75 * len(frame))])
    schema = Schema.from_table(table_of(frame, numbers, target, about, knots))
    if "bounds" in about:
        model = PrivateLasso(epsilon, 1e-6).fit(read(frame.iloc[train], schema))
        return float(model.score(frame.iloc[test]))
    found = PrivateLogisticRegression(epsilon, 1e-6).fit(read(frame.iloc[train], schema))
    labels = frame[target].iloc[test] == about["classes"][1]
    return float(roc_auc_score(labels, found.decision_function(frame.iloc[test])))


def main() -> None:
    splits = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    print("set        epsilon   line      5      9     13 knots")
    for name in SETS:
        for epsilon in (0.3, 1.0, 3.0):
            means = [
                np.mean([score(name, knots, epsilon, seed) for seed in range(splits)])
                for knots in (0, 5, 9, 13)
            ]
            print(f"{name:10} {epsilon:7g} " + " ".join(f"{mean:6.3f}" for mean in means))


if __name__ == "__main__":
    main()
