"""Ten billion rows at a thousand workers, simulated from constants that are measured here.

    python benchmarks/scale_simulation.py

Measured in this run: the time of one worker for an entry and for a row, how much it varies from
step to step, how long it takes to add a number of a sum, and the time of an empty question over
Dask. Assumed, and named below: the network, and how often a worker is lost. The rest is the
engine's own rule: so many actors are asked from the driver, each asks so many others, and lost
rows are read again.
"""

from __future__ import annotations

import math
import time

import dask
import numpy as np

from riata.engines.cluster import LEAN
from riata.engines.dask import _FAN
from riata.engines.shard import Shard
from riata.losses import Squared
from riata.preparation import Preparation
from riata.problem import Problem
from riata.queries import Gradient
from riata.sets import L1Ball
from riata.vectors import Vector

from results import keep, show
from scale import BOUNDS, cluster, clustered, engine, rows

#: Bytes a second into one machine, seconds for a message on the way, losses of a worker in an hour.
BANDWIDTH, LATENCY, LOSSES_AN_HOUR = 1.25e9, 2e-4, 0.01

#: Rows that a worker reads in a second, from Parquet to the grid (benchmarks/scale.py --files).
ROWS_READ_A_SECOND = 100_000

#: A number of a sum is sent in so many bytes. To add one is measured on so many.
BYTES, LONG = 8, 2_000_000

STEPS = 200

SHAPES = (  # rows, entries a row, columns, workers
    (10**7, 50, 10**5, 10),
    (10**8, 50, 10**5, 100),
    (10**9, 50, 10**6, 100),
    (10**10, 50, 10**6, 1_000),
    (10**10, 50, 10**7, 1_000),
)


def measured() -> dict[str, float]:
    """Constants of this machine."""
    took = {}
    for n, a_row in ((50_000, 8), (50_000, 48), (200_000, 8)):
        x, y = rows(n, 20_000, a_row)
        shard = Shard(*Preparation(BOUNDS)(x, y))
        problem = Problem(Squared(), L1Ball(1.0), BOUNDS, n, 20_000)
        queries = [Gradient(problem, Vector.unit(20_000, k, 0.1)) for k in range(42)]
        times = []
        for query in queries:
            begin = time.perf_counter()
            shard.total(query)
            times.append(time.perf_counter() - begin)
        took[n, a_row] = (float(np.median(times[2:])), x.nnz, np.std(np.log(times[2:])))
    few, many, long = took[50_000, 8], took[50_000, 48], took[200_000, 8]
    entry = (many[0] - few[0]) / (many[1] - few[1])
    row = max((long[0] - entry * long[1]) / 200_000, 0.0)
    dask.config.set(LEAN)
    made, client = cluster()
    with made, client:
        x, y = rows(40, 50, 8)
        question = clustered(engine(client, x, y), 40, 50, 200)
    return {
        "seconds an entry": entry, "seconds a row": row, "deviation of log time": float(many[2]),
        "seconds an empty question": question, "seconds to add a number": seconds_to_add(),
    }  # fmt: skip


def seconds_to_add() -> float:
    """What it takes to add one number of a sum to that of another worker."""
    sums, total = np.ones(LONG, dtype=np.int64), np.zeros(LONG, dtype=np.int64)
    took = []
    for _ in range(9):
        begin = time.perf_counter()
        np.add(total, sums, out=total)
        took.append(time.perf_counter() - begin)
    return min(took) / LONG


def simulated(n: int, a_row: int, p: int, workers: int, facts: dict[str, float]) -> dict:
    rng = np.random.default_rng(0)
    share = n / workers
    work = share * (a_row * facts["seconds an entry"] + facts["seconds a row"])
    levels = max(1, math.ceil(math.log(workers, _FAN)))
    at_a_node = min(_FAN, workers)
    hop = LATENCY + p * at_a_node * (BYTES / BANDWIDTH + facts["seconds to add a number"])
    steps = []
    lost = 0
    for _ in range(STEPS):
        slowest = work * math.exp(
            facts["deviation of log time"] * rng.standard_normal(workers).max()
        )
        seconds = facts["seconds an empty question"] + slowest + levels * hop
        failures = rng.poisson(workers * LOSSES_AN_HOUR * seconds / 3600)
        lost += failures
        if failures:  # its rows are read again by another worker, which is then asked
            seconds += share / ROWS_READ_A_SECOND + 2 * work
        steps.append(seconds)
    return {
        "rows": f"{n:.0e}", "columns": f"{p:.0e}", "entries": f"{n * a_row:.0e}",
        "workers": workers, "GB a worker": share * a_row * 24 / 2**30,
        "seconds a step": float(np.median(steps)), "of it sums": levels * hop,
        f"hours for {STEPS} steps": sum(steps) / 3600, "workers lost": int(lost),
    }  # fmt: skip


def main() -> None:
    facts = measured()
    show("Measured here", [facts])
    found = [simulated(*shape, facts) for shape in SHAPES]
    show(
        f"Simulated: {BANDWIDTH / 1.25e8:g} Gbit/s, {LOSSES_AN_HOUR:g} losses of a worker an hour, "
        f"{ROWS_READ_A_SECOND:,} rows read a second",
        found,
    )
    keep("scale_simulation", {"measured": facts, "simulated": found})


if __name__ == "__main__":
    main()
