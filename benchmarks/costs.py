"""What fits take: seconds and memory of each solver, for `riata.forecasting.costs`.

Each fit runs in a process of its own, on arrays and on sparse rows. Seconds of the processor are
fitted for both, with no negative part and relative errors, by

    begin + entries * a + rows * columns^2 * b
    + steps * (c + entries * d + rows * e + columns * f)

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

from riata import Bounds, PrivateErm, PrivateLogisticRegression
from riata.forecasting import cost_of
from riata.losses import Squared
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import SOLVERS

from results import keep, show

#: Rows, columns, and the share of entries that are not 0: arrays, and sparse rows.
SIZES = {
    "full": (
        (1_000, 50, 1.0), (5_000, 50, 1.0), (5_000, 300, 1.0), (20_000, 100, 1.0),
        (10_000, 1_000, 1.0), (60_000, 20, 1.0), (200_000, 50, 1.0),
    ),
    "sparse": (
        (1_000, 50, 0.2), (5_000, 300, 0.1), (20_000, 400, 0.1), (2_000, 2_000, 0.1),
        (60_000, 100, 0.15), (30_000, 500, 0.03), (20_000, 10_000, 0.004),
    ),
}  # fmt: skip

OTHER_SIZES = (
    (2_000, 1_500, 1.0), (100_000, 100, 1.0), (1_000_000, 20, 1.0), (40_000, 60, 0.3),
    (50_000, 504, 0.028), (20_000, 40_000, 0.0018),
)  # fmt: skip

#: Solvers that classify, and into how many classes.
CLASSES = {"class-sums": 2, "joint-class-sums": 4, "softmax-gradient": 4}


def estimator(solver: str) -> Any:
    if solver in CLASSES:
        short = Bounds(1.0, norm="l2", nonnegative=True)
        classes = list(range(CLASSES[solver]))
        return PrivateLogisticRegression(1.0, 1e-6, bounds=short, classes=classes, solver=solver)
    sets = {"hard-thresholding": SparseBall(10, 1.0), "peeling": SparseBall(10, 1.0)}
    short = solver == "posterior-sampling"
    ball = L2Ball(1.0) if short else sets.get(solver, L1Ball(1.0))
    bounds = Bounds(1.0, 1.0, norm="l2" if short else "inf")
    return PrivateErm(Squared(), ball, 1.0, 1e-6, bounds=bounds, solver=solver)


def rows(n: int, p: int, density: float) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng([n, p])
    if density == 1.0:
        x: Any = rng.uniform(0, 1, (n, p))
    else:
        x = sparse.random_array((n, p), density=density, rng=rng, format="csr")
    y = np.clip(x @ rng.uniform(-1, 1, p) / np.sqrt(p), -1, 1)
    return x, y


def entries_of(x: Any) -> int:
    return int(x.nnz) if sparse.issparse(x) else int(x.size)


def measured(solver: str, x: Any, y: np.ndarray, answer: Any) -> None:
    (n, p), model = x.shape, estimator(solver)
    if (classes := CLASSES.get(solver)) is not None:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    begun = time.process_time()
    model.fit(x, y)
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answer.put({"solver": solver, "rows": n, "columns": p, "entries": entries_of(x),
                "steps": model.privacy_.steps, "seconds": seconds, "bytes": peak - before,
                "peak": peak})  # fmt: skip


def constants(found: list[dict[str, Any]]) -> tuple[np.ndarray, float]:
    """The parts of the time, and the largest factor by which they miss a measurement."""
    features = np.array(
        [
            [1.0, r["entries"], r["rows"] * r["columns"] ** 2, r["steps"],
             r["steps"] * r["entries"], r["steps"] * r["rows"], r["steps"] * r["columns"]]
            for r in found
        ]
    )  # fmt: skip
    seconds = np.array([r["seconds"] for r in found])
    parts, _ = nnls(features / seconds[:, None], np.ones(len(found)))
    ratio = features @ parts / seconds
    return parts, float(np.max(np.maximum(ratio, 1 / ratio)))


def bytes_of_entries(found: list[dict[str, Any]]) -> float:
    """What an entry takes, beside what every fit takes."""
    entries, taken = (np.array([float(r[key]) for r in found]) for key in ("entries", "bytes"))
    parts, _ = nnls(np.column_stack([np.ones(len(found)), entries]), taken)
    return float(parts[1])


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
                cost = cost_of(plan, one["entries"], steps)
                found.append({
                    "solver": solver, "size": str(size), "seconds": one["seconds"],
                    "ratio": cost.seconds / one["seconds"], "MB": one["peak"] / 1e6,
                    "ratio of memory": cost.bytes / one["peak"],
                })  # fmt: skip
    show("Seconds and memory by the constants over those measured", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--solvers", nargs="*", default=list(SOLVERS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        check(options.solvers)
        return
    found, table = [], []
    tables = {size: rows(*size) for sizes in SIZES.values() for size in sizes}
    for solver in options.solvers:
        for kind, sizes in SIZES.items():
            each = (fitted(solver, tables[size]) for size in sizes)
            mine = [one | {"kind": kind} for one in each if one is not None]
            if not mine:
                continue
            parts, worst = constants(mine)
            entry = bytes_of_entries(mine)
            said = ", ".join(f"{part:.1e}" for part in parts)
            print(f'{kind}: "{solver}": ({said}), {entry:.0f} bytes', flush=True)
            table.append({"solver": solver, "rows": kind, "misses by at most": worst,
                          "bytes an entry": entry})  # fmt: skip
            found += mine
    show("Seconds and memory of fits", table)
    keep("costs", {"rows": found, "fitted": table})


if __name__ == "__main__":
    main()
