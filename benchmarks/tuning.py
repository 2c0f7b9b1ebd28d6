"""Does private tuning pay? A search beside the defaults, a split budget, and hindsight.

All at the same total epsilon, delta 1e-6 and replace-one, with R2 on rows that no fit has seen:

- default: the estimator's own parameters, with the whole budget;
- search: `PrivateSearch` over the grid;
- split: every candidate once, each with its part of the budget and a private score (composition);
- worst, mean and hindsight: one candidate with the whole budget, chosen after the fact.

    python benchmarks/tuning.py [--repeats 5] [--epsilon 0.5 1 4] [--case NAME ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import ParameterGrid, train_test_split

from riata import Bounds, Budget, PrivateLasso, PrivateSearch
from riata.datasets import load_flights
from riata.fitting import release_score
from riata.mechanisms import GaussianMechanism
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import spent
from riata.privacy.calibrate import calibrate, noise_multiplier_at
from riata.privacy.events import ZeroConcentrated, compose
from riata.tuning.scoring import error_query, score_of

from results import keep, show

DELTA = 1e-6


@dataclass(frozen=True)
class Case:
    """RowSource, what is public about them, and a grid worth searching."""

    x: Any
    y: np.ndarray
    estimator: PrivateLasso
    grid: Any


def simulated(n_rows: int) -> Case:
    """Ten of 100 columns matter, with a total of 3 in the l1 norm."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (n_rows, 100))
    theta = np.zeros(100)
    theta[:10] = 0.3 * np.where(np.arange(10) % 2, -1, 1)
    y = x @ theta + 0.3 * rng.standard_normal(n_rows)
    estimator = PrivateLasso(None, bounds=Bounds(x=1.0, y=3.0), solver="frank-wolfe")
    return Case(x, y, estimator, {"radius": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0]})


def simulated_solvers(n_rows: int) -> Case:
    """The same rows, and a grid of solvers."""
    case = simulated(n_rows)
    estimator = PrivateLasso(None, bounds=case.estimator.bounds)
    solvers = ["frank-wolfe", "greedy", "refitted-frank-wolfe", "sufficient-statistics"]
    return Case(case.x, case.y, estimator, {"solver": solvers})


def flights() -> Case:
    found = load_flights()
    estimator = PrivateLasso(None, bounds=found.bounds)
    grid = [
        {"solver": ["greedy", "sufficient-statistics"]},
        {"solver": ["frank-wolfe"], "radius": [0.3, 1.0, 3.0]},
    ]
    return Case(found.x, found.y, estimator, grid)


CASES: dict[str, Callable[[], Case]] = {
    "radii, 20,000 rows": lambda: simulated(20_000),
    "radii, 80,000 rows": lambda: simulated(80_000),
    "solvers, 20,000 rows": lambda: simulated_solvers(20_000),
    "flights, solvers and radii": flights,
}


def split(case: Case, x: Any, y: np.ndarray, epsilon: float, seed: int) -> Any:
    """Each candidate once, with an equal part of the rho of the budget; the best private score."""
    grid = list(ParameterGrid(case.grid))
    rho = calibrate(lambda r: compose((ZeroConcentrated(r), len(grid))), Budget(epsilon, DELTA))
    fit = spent(ZeroConcentrated(0.85 * rho), DELTA).epsilon
    score = GaussianMechanism(noise_multiplier_at(0.15 * rho))
    noise, best = Noise(seed), (-np.inf, None)
    for number, parameters in enumerate(grid):
        model = clone(case.estimator).set_params(
            epsilon=fit, delta=DELTA, random_state=1000 * seed + number, **parameters
        )
        request, rows = model.fit(x, y).request(x, y)
        query = error_query("absolute-error", model, request.bounds, len(y))
        error = release_score(
            query, score, rows, bounds=request.bounds, adjacency="replace-one", noise=noise
        )
        found = score_of("absolute-error", error)
        best = max(best, (found, model), key=lambda pair: pair[0])
    return best[1]


def once(case: Case, epsilon: float, seed: int) -> dict[str, float]:
    x, x_test, y, y_test = train_test_split(case.x, case.y, test_size=0.25, random_state=seed)
    y_test = case.estimator.bounds.clip_y(y_test)

    def r2(model: Any) -> float:
        return float(r2_score(y_test, model.predict(x_test)))

    def alone(number: int, **parameters: Any) -> float:
        model = clone(case.estimator).set_params(
            epsilon=epsilon, delta=DELTA, random_state=100 * seed + number, **parameters
        )
        return r2(model.fit(x, y))

    search = PrivateSearch(case.estimator, case.grid, epsilon, DELTA, random_state=seed)
    each = [alone(i, **parameters) for i, parameters in enumerate(ParameterGrid(case.grid))]
    return {
        "default": alone(99),
        "search": r2(search.fit(x, y)),
        "split": r2(split(case, x, y, epsilon, seed)),
        "worst": min(each),
        "mean": float(np.mean(each)),
        "hindsight": max(each),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--case", nargs="+", choices=list(CASES), default=list(CASES))
    asked = parser.parse_args()
    rows = []
    for name in asked.case:
        case = CASES[name]()
        for epsilon in asked.epsilon:
            found = [once(case, epsilon, seed) for seed in range(asked.repeats)]
            means = {k: float(np.mean([one[k] for one in found])) for k in found[0]}
            rows.append({"case": name, "epsilon": epsilon, **means})
            show(f"R2 on unseen rows, means of {asked.repeats}", rows)
    keep("tuning", {"repeats": asked.repeats, "rows": rows})


if __name__ == "__main__":
    main()
