"""What fits take: seconds and memory of each solver, for `riata.forecasting.costs`.

Each fit runs in a process of its own, on sparse rows as a source has them. Seconds of the processor
are fitted, with no negative part and relative errors, by

    begin + entries * (a + columns * b) + steps * (c + entries * d + rows * e + columns * f)

and memory by bytes for each entry, over what the rows take themselves.

    python benchmarks/costs.py [--solvers greedy ...] [--check]

The constants that are printed go into src/riata/forecasting/costs.py. With --check nothing is
fitted: fits of other shapes are compared with what these constants say.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from riata import Bounds, PrivateErm
from riata.forecasting import cost_of
from riata.losses import Logistic, Squared
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import SOLVERS

from results import keep, show

#: Rows, columns, and the share of entries that are not 0.
SIZES = (
    (1_000, 50, 1.0), (5_000, 50, 1.0), (5_000, 300, 1.0), (20_000, 100, 1.0),
    (20_000, 400, 0.1), (2_000, 2_000, 0.1), (60_000, 20, 1.0),
)  # fmt: skip

OTHER_SIZES = ((10_000, 200, 1.0), (40_000, 60, 0.3), (3_000, 800, 0.2))


def estimator(solver: str) -> Any:
    loss = Logistic() if solver == "class-sums" else Squared()
    sets = {"hard-thresholding": SparseBall(10, 1.0), "peeling": SparseBall(10, 1.0)}
    short = solver == "posterior-sampling"
    ball = L2Ball(1.0) if short else sets.get(solver, L1Ball(1.0))
    bounds = Bounds(1.0, 1.0, norm="l2" if short else "inf")
    return PrivateErm(loss, ball, 1.0, 1e-6, bounds=bounds, solver=solver)


def rows(n: int, p: int, density: float) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng([n, p])
    x = sparse.random_array((n, p), density=density, rng=rng, format="csr")
    y = np.clip(x @ rng.uniform(-1, 1, p) / np.sqrt(p), -1, 1)
    return x, y


def measured(solver: str, x: Any, y: np.ndarray, answer: Any) -> None:
    (n, p), model = x.shape, estimator(solver)
    if solver == "class-sums":
        y = np.where(y > np.median(y), 1, -1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    begun = time.process_time()
    model.fit(x, y)
    seconds = time.process_time() - begun
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    answer.put({"solver": solver, "rows": n, "columns": p, "entries": int(x.nnz),
                "steps": model.privacy_.steps, "seconds": seconds, "bytes": grown})  # fmt: skip


def constants(found: list[dict[str, Any]]) -> tuple[np.ndarray, float]:
    """The parts of the time, and the largest factor by which they miss a measurement."""
    features = np.array(
        [
            [1.0, r["entries"], r["entries"] * r["columns"], r["steps"], r["steps"] * r["entries"],
             r["steps"] * r["rows"], r["steps"] * r["columns"]]
            for r in found
        ]
    )  # fmt: skip
    seconds = np.array([r["seconds"] for r in found])
    parts, _ = nnls(features / seconds[:, None], np.ones(len(found)))
    ratio = features @ parts / seconds
    return parts, float(np.max(np.maximum(ratio, 1 / ratio)))


def fitted(solver: str, table: tuple[Any, np.ndarray]) -> dict[str, Any] | None:
    """One fit in a process of its own; None if the solver refuses the shape."""
    fork = multiprocessing.get_context("fork")
    answer = fork.Queue()
    child = fork.Process(target=measured, args=(solver, *table, answer))
    child.start()
    child.join()
    return answer.get() if child.exitcode == 0 else None


def check(solvers: list[str]) -> None:
    """Seconds that the constants say, over those of fits of other shapes."""
    found = []
    for size in OTHER_SIZES:
        table = rows(*size)
        for solver in solvers:
            if (one := fitted(solver, table)) is not None:
                plan = estimator(solver).plan(*table[0].shape)
                steps = one["steps"] if plan.adaptive else None
                said = cost_of(plan, one["entries"], steps).seconds
                found.append({"solver": solver, "size": str(size), "ratio": said / one["seconds"]})
    show("Seconds by the constants over those measured", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        check(options.solvers)
        return
    found, table = [], []
    tables = {size: rows(*size) for size in SIZES}
    for solver in options.solvers:
        mine = []
        for size in SIZES:
            if (one := fitted(solver, tables[size])) is not None:
                mine.append(one)
                print(one, flush=True)
        if not mine:
            continue
        parts, worst = constants(mine)
        entry = max(r["bytes"] / r["entries"] for r in mine if r["entries"] > 10**6)
        print(f'"{solver}": ({", ".join(f"{part:.1e}" for part in parts)}),', flush=True)
        table.append({"solver": solver, "misses by at most": worst, "bytes an entry": entry})
        found += mine
    show("Seconds and memory of fits", table)
    keep("costs", {"rows": found, "fitted": table})


if __name__ == "__main__":
    main()
