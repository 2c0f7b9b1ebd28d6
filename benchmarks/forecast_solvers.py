"""Comparisons of solvers against real fits: are the scores right, and is the best solver found?

Each case of `forecast.py` with numbers is forecast by `compare_solvers` and fitted several times
with each solver, on tables of its own. "within 2" is the share of solvers whose median realised
excess risk is within a factor of 2 of the forecast; as there, an excess below a thousandth of what
can be explained counts as none. "best found" is the share of cases in which the solver with the
best forecast is the one with the smallest realised excess, or loses at most a hundredth of what can
be explained against it.

    python benchmarks/forecast_solvers.py [--cases 20] [--fits 3]

Results are kept case by case, and cases that are kept already are not run again.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from riata import PrivateLasso, compare_solvers

from forecast import DELTA, FLOOR, GUESSES, Kept, agrees, drawn_case
from results import keep, show

SOLVERS = ("greedy", "refitted-frank-wolfe", "frank-wolfe", "sufficient-statistics")

#: Tables have at most so many entries here, and a covariance so many columns.
MOST_ENTRIES, MOST_COLUMNS = 2_000_000, 200

#: Losing so much less of what can be explained is no reason to prefer a solver.
NEAR = 0.01


def run(number: int, fits: int) -> dict[str, Any] | None:
    case, epsilon, labels = drawn_case(number)
    if labels is not None or case.n * case.p > MOST_ENTRIES or case.p > MOST_COLUMNS:
        return None
    real: dict[str, list[float]] = {name: [] for name in SOLVERS}
    for k in range(fits):
        sample = case.draw(70_000 + number + 1_000 * k)
        truth = sample.fresh @ sample.theta
        variance = float(truth.var())
        for name in SOLVERS:
            model = PrivateLasso(
                epsilon, DELTA, bounds=case.bounds, solver=name, random_state=number + 1_000 * k
            ).fit(sample.x, sample.y)
            lost = np.mean((sample.fresh @ model.coef_ + model.intercept_ - truth) ** 2)
            real[name].append(float(lost / variance))
    total = variance + case.noise**2
    found = compare_solvers(
        PrivateLasso(epsilon, DELTA, bounds=case.bounds), case.n, case.p, solvers=SOLVERS,
        repeats=10, patience=1e9, seed=number, relevant=case.s, signal=variance / total,
        spread=min(1.0, np.sqrt(total) / case.bounds.y), **GUESSES[case.design],
    )  # fmt: skip
    expected = {e.solver: e.forecast.excess_part for e in found.candidates if e.forecast}
    return {"number": number, "case": case.name, "epsilon": epsilon, "real": real,
            "expected": expected, "best": found.best.solver}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--fits", type=int, default=3)
    options = parser.parse_args()
    done, number = Kept("forecast_solvers.jsonl"), 0
    while len(done.rows) < options.cases:
        row = None if number in done.rows else run(number, options.fits)
        number += 1
        if row is not None:
            done.add(row)
            print(row["case"], row["epsilon"], row["expected"], row["best"], flush=True)
    rows = list(done.rows.values())
    table = []
    for name in SOLVERS:
        pairs = [(float(np.median(r["real"][name])), r["expected"][name]) for r in rows]
        table.append({
            "solver": name, "cases": len(pairs),
            "within 2": np.mean([agrees(real, said, FLOOR) for real, said in pairs]),
            "median ratio": np.median([real / said for real, said in pairs]),
        })  # fmt: skip
    show("Realised excess risks against forecasts, by solver", table)
    medians = [{name: np.median(r["real"][name]) for name in SOLVERS} for r in rows]
    lost = [float(m[r["best"]] - min(m.values())) for m, r in zip(medians, rows, strict=True)]
    best = {"cases": len(rows), "best found": np.mean([each <= NEAR for each in lost]),
            "largest loss": max(lost)}  # fmt: skip
    show("The solver with the best forecast", [best])
    keep("forecast_solvers", {"rows": table, "best": best})


if __name__ == "__main__":
    main()
