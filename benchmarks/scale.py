"""Rows on several machines, and rows that do not fit into memory.

    python benchmarks/scale.py             # two workers beside two bare processes; a worker dies
    python benchmarks/scale.py --files     # a Parquet directory of 2 billion cells under 8 GB
    python benchmarks/scale.py --memory    # the same rows on disk and in memory

The peer of the cluster is written here: two processes with half of the rows each, a pipe to each of
them, and SciPy. It keeps its margins up to date, sends float64 and has no grid, no repair and no
privacy.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dask
import numpy as np
from distributed import Client, LocalCluster
from scipy import sparse

from riata import Bounds, PrivateLasso, Schema
from riata.engines.cluster import LEAN
from riata.engines.dask import DaskEngine, InMemory
from riata.losses import Squared
from riata.preparation import Preparation
from riata.problem import Problem
from riata.queries import Gradient
from riata.sets import L1Ball
from riata.vectors import Vector

from results import keep, show

N, P, A_ROW = 200_000, 20_000, 48
STEPS, REPEATS = 60, 3
BOUNDS = Bounds(1.0, 1.0)

#: The directory of files.
FILES, FILE_ROWS, COLUMNS, FILLED, DIFFERENT = 40, 500_000, 100, 0.05, 4
LIMIT_GB = 8


def rows(n: int, p: int, a_row: int, seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Columns as popular as words."""
    rng = np.random.default_rng(seed)
    popular = 1 / (10 + np.arange(p))
    columns = rng.choice(p, (n, a_row), p=popular / popular.sum()).astype(np.int32)
    indptr = np.arange(n + 1, dtype=np.int64) * a_row
    x = sparse.csr_array((rng.uniform(0, 1, n * a_row), columns.ravel(), indptr), shape=(n, p))
    x.sum_duplicates()
    x.data = np.minimum(x.data, 1.0)
    theta = np.zeros(p)
    theta[20:40] = rng.uniform(-1, 1, 20)
    return x, np.clip(x @ theta + 0.1 * rng.standard_normal(n), -1, 1)


# Two bare processes


def bare_worker(pipe, x: sparse.csr_array, y: np.ndarray) -> None:
    columns, margins = sparse.csc_array(x), np.zeros(len(y))
    while True:
        asked = pipe.recv()
        if asked is None:
            return
        kept, column, value = asked
        few = slice(columns.indptr[column], columns.indptr[column + 1])
        margins *= kept
        margins[columns.indices[few]] += value * columns.data[few]
        pipe.send(columns.T @ (margins - y))


def bare(x: sparse.csr_array, y: np.ndarray, steps: int) -> float:
    """Seconds a step."""
    half, fork = len(y) // 2, multiprocessing.get_context("fork")
    pipes, children = [], []
    for few in (slice(0, half), slice(half, None)):
        here, there = fork.Pipe()
        child = fork.Process(target=bare_worker, args=(there, x[few], y[few]))
        child.start()
        pipes.append(here)
        children.append(child)
    moves = [(1.0, 0, 0.0)]
    took = []
    for t in range(1, steps + 3):
        begin = time.perf_counter()
        for pipe in pipes:
            pipe.send(moves[-1])
        gradient = sum(pipe.recv() for pipe in pipes)
        column = int(np.abs(gradient).argmax())
        moves.append((1 - 2 / (t + 2), column, -np.sign(gradient[column]) * 2 / (t + 2)))
        took.append(time.perf_counter() - begin)
    for pipe, child in zip(pipes, children, strict=True):
        pipe.send(None)
        child.join()
    return float(np.median(took[2:]))  # the first makes the columns


# A cluster


def engine(client: Client, x: sparse.csr_array, y: np.ndarray) -> DaskEngine:
    half = len(y) // 2
    cuts = [slice(0, half), slice(half, None)]
    return DaskEngine([InMemory(x[few], y[few]) for few in cuts], Preparation(BOUNDS), client)


def clustered(made: DaskEngine, n: int, p: int, steps: int) -> float:
    """Seconds a step."""
    problem, theta, took = Problem(Squared(), L1Ball(1.0), BOUNDS, n, p), Vector.zero(p), []
    for t in range(1, steps + 3):
        begin = time.perf_counter()
        query = Gradient(problem, theta)
        gradient = query.from_total(made.total(query))
        column = int(np.abs(gradient).argmax())
        vertex = Vector.unit(p, column, -float(np.sign(gradient[column])))
        theta = theta.toward(vertex, 2 / (t + 2))
        took.append(time.perf_counter() - begin)
    return float(np.median(took[2:]))


def cluster() -> tuple[LocalCluster, Client]:
    made = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50)
    return made, Client(made, direct_to_workers=True)


def workers() -> None:
    x, y = rows(N, P, A_ROW)
    print(f"{N:,} rows, {P:,} columns, {x.nnz:,} entries, {STEPS} steps, two workers")
    dask.config.set(LEAN)
    made, client = cluster()
    with made, client:
        whole = engine(client, x, y)
        pairs = [(bare(x, y, STEPS), clustered(whole, N, P, STEPS)) for _ in range(REPEATS)]
        best = [min(each) for each in zip(*pairs, strict=True)]
        tiny = engine(client, x[:2, :2], y[:2])
        overhead = clustered(tiny, 2, 2, 200)
        show(
            f"Milliseconds a step, best of {REPEATS} medians",
            [
                {
                    "two bare processes": 1e3 * best[0],
                    "riata on Dask": 1e3 * best[1],
                    "ratio": best[1] / best[0],
                    "a tiny step": 1e3 * overhead,
                }
            ],
        )
        model = PrivateLasso(
            1.0, 1e-6, bounds=BOUNDS, solver="frank-wolfe", steps=STEPS, fit_intercept=False
        )
        fits = killed(model, x, y, client)
    keep(
        "scale_workers",
        {"bare_s": best[0], "dask_s": best[1], "tiny_s": overhead, "fits": fits},
    )


def killed(model: PrivateLasso, x: sparse.csr_array, y: np.ndarray, client: Client) -> list[dict]:
    """The same fit in one process, on the cluster, and on the cluster with a worker killed."""
    fits, coef = [], None
    total_of = DaskEngine.total_of
    for name, engine_name, when in (
        ("one process", "scan", 0), ("cluster", "dask", 0), ("worker killed", "dask", STEPS // 2),
    ):  # fmt: skip
        asked = [0]

        def counted(self, *query, when=when, asked=asked):
            asked[0] += 1
            if asked[0] == when:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return total_of(self, *query)

        DaskEngine.total_of = counted
        begin = time.perf_counter()
        fitted = model.set_params(engine=engine_name, random_state=1).fit(x, y)
        seconds = time.perf_counter() - begin
        DaskEngine.total_of = total_of
        coef = fitted.coef_ if coef is None else coef
        fits.append(
            {
                "fit": name,
                "seconds": seconds,
                "distinct columns": int(np.count_nonzero(fitted.coef_)),
                "same bits": bool(np.array_equal(fitted.coef_, coef)),
                "epsilon": fitted.privacy_.epsilon,
            }
        )
    show(f"{STEPS} steps, set-up included", fits)
    return fits


# Files


def write_files(folder: Path, files: int) -> None:
    """Sparse numbers in Parquet: most cells are 0."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"c{i:02}" for i in range(COLUMNS)]
    theta = np.zeros(COLUMNS)
    theta[:5] = 0.8, -0.6, 0.5, -0.4, 0.3
    for number in range(files):
        path = folder / f"part-{number:03}.parquet"
        if number >= DIFFERENT:  # what is in them does not matter
            shutil.copy(folder / f"part-{number % DIFFERENT:03}.parquet", path)
            continue
        rng = np.random.default_rng(number)
        cells = np.zeros((FILE_ROWS, COLUMNS), dtype=np.float32)
        filled = rng.random((FILE_ROWS, COLUMNS), dtype=np.float32) < FILLED
        cells[filled] = rng.uniform(0, 10, int(filled.sum()))
        y = cells @ theta + rng.standard_normal(FILE_ROWS)
        table = {name: cells[:, i] for i, name in enumerate(names)} | {"y": y.astype(np.float32)}
        pq.write_table(pa.table(table), path, row_group_size=2**17)
    features = [{"name": name, "kind": "number", "bounds": [0, 10], "center": 0} for name in names]
    table = {"features": features, "target": {"name": "y", "bounds": [-20, 20]}}
    Schema.from_table(table).save(folder / "schema.toml")


FIT = """
import resource, sys, time
limit = int(sys.argv[2]) * 2**30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from riata import PrivateLasso, read
source = read(sys.argv[1], sys.argv[1] + "/schema.toml")
begin = time.perf_counter()
model = PrivateLasso(
    1.0, 1e-8, solver="frank-wolfe", steps=int(sys.argv[4]), fit_intercept=False,
    engine=sys.argv[3], random_state=1, verbose=True,
).fit(source)
seconds = time.perf_counter() - begin
import hashlib
print(
    source.n_rows, source.n_features, seconds,
    next(int(k.split()[1]) for k in open("/proc/self/status") if k.startswith("VmHWM")) / 2**20,
    int((model.coef_ != 0).sum()), hashlib.sha256(model.coef_.tobytes()).hexdigest()[:12],
)
"""


def fit_files(folder: Path, engine_name: str, limit: int, steps: int, memory: str = "") -> dict:
    """In a process of its own that may not have more memory than the limit."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    if memory:
        environment["RIATA_MEMORY"] = memory
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(folder), str(limit), engine_name, str(steps)],
        stdout=subprocess.PIPE, text=True, check=True, env=environment,
    )  # fmt: skip
    n, p, seconds, peak, picked, digest = done.stdout.split()
    return {
        "engine": engine_name + (f", rows {memory}" if memory else ""),
        "rows": int(n), "cells": int(n) * int(p), "steps": steps, "seconds": float(seconds),
        "peak GB": float(peak), "limit GB": limit, "distinct columns": int(picked), "model": digest,
    }  # fmt: skip


def files(number: int) -> None:
    with tempfile.TemporaryDirectory(prefix="riata-") as name:
        write_files(Path(name), number)
        size = sum(path.stat().st_size for path in Path(name).iterdir()) / 2**30
        print(f"{number} Parquet files, {size:.1f} GB")
        found = [fit_files(Path(name), "disk", LIMIT_GB, 40)]
        found.append(fit_files(Path(name), "auto", LIMIT_GB, 40, "1GB"))
    show("A Parquet directory under a limit on the address space", found)
    keep("scale_files", {"fits": found})


def memory() -> None:
    with tempfile.TemporaryDirectory(prefix="riata-") as name:
        write_files(Path(name), 4)
        found = [fit_files(Path(name), engine, 16, 40) for engine in ("local", "auto", "disk")]
    for each in found:
        each["ratio"] = each["seconds"] / found[0]["seconds"]
    show("The same rows in memory and on disk", found)
    keep("scale_memory", {"fits": found})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--n-files", type=int, default=FILES)
    asked = parser.parse_args()
    if asked.files:
        files(asked.n_files)
    elif asked.memory:
        memory()
    else:
        workers()


if __name__ == "__main__":
    main()
