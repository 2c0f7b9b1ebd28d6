"""What a private Frank-Wolfe fit costs on large sparse data, in passes over the non-zeros.

One pass is X' r in a compiled loop over the columns, in one thread. The set-up of the engine and
the run are timed apart, each in its thread's own processor time, the best of a few after a first
one that is reported as "cold". Each case has a process of its own, so that its peak memory is its
own. The machine is shared: only ratios mean anything.

    python benchmarks/speed.py                      all shapes, losses and epsilons
    python benchmarks/speed.py --quick              rcv1 alone, with fewer steps
    python benchmarks/speed.py --case url --loss squared --epsilon 1
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riata import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.losses import Logistic, Loss, Squared
from riata.mechanisms.noise import Noise
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.sets import L1Ball
from riata.solvers.plan import Plan, Solution
from riata.solvers.private_frank_wolfe import PrivateFrankWolfe

from results import FOLDER, keep, peak_rss_mb, show
from speed_data import RADIUS, SHAPES, make_x, make_y, margins, one_pass

LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic()}
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-6
BOUNDS = Bounds(x=1.0, y=1.0)

#: Largest numbers that are aimed at.
MOST_STEP_MICROSECONDS = 5.0
MOST_CONVERSION_PASSES = 12.0
MOST_MATRICES = 1.5
MOST_KDDA_MB = 4.5 * 1024

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def most_passes(shape: str, loss: str, epsilon: float) -> float | None:
    """How many passes a run of the shape's full number of steps should take at most."""
    if shape in ("rcv1", "news20"):
        return {"squared": 5.0, "logistic": 8.0}[loss] if epsilon <= 1 else None
    if loss == "squared":
        return 8.0 if epsilon <= 1 else 12.0
    return 35.0 if epsilon <= 0.1 else None


@dataclass(frozen=True)
class Seconds:
    """The processor time of this thread, and of all threads of the process."""

    thread: float
    process: float


def clocked(run: Callable[[], Any]) -> tuple[Any, Seconds]:
    gc.collect()
    thread, process = time.thread_time(), time.process_time()
    result = run()
    return result, Seconds(time.thread_time() - thread, time.process_time() - process)


def best(times: list[Seconds]) -> Seconds:
    """The best after the first."""
    return min(times[1:], key=lambda seconds: seconds.thread)


def best_of(run: Callable[[], Any], repeats: int) -> Seconds:
    return best([clocked(run)[1] for _ in range(1 + repeats)])


def warn_of_threads(what: str, seconds: Seconds) -> None:
    """Say so if other threads did part of the work."""
    if seconds.process > 1.1 * seconds.thread + 0.01:
        print(
            f"{what}: {seconds.thread:.4g} s in its thread, {seconds.process:.4g} s in all threads",
            file=sys.stderr,
        )


def time_of_pass(x: Any, repeats: int = 7) -> float:
    r = np.random.default_rng(4).standard_normal(x.shape[0])
    return best_of(lambda: one_pass(x, r), repeats).thread


def build_engine(x: Any, y: np.ndarray, kernels: str) -> LocalEngine:
    if "kernels" in inspect.signature(LocalEngine).parameters:
        return LocalEngine(x, y, BOUNDS, kernels=kernels)
    return LocalEngine(x, y, BOUNDS)


def make_plan(size: tuple[int, int], loss: str, epsilon: float, steps: int) -> Plan:
    n, p = size
    problem = Problem(LOSSES[loss], L1Ball(RADIUS, p), BOUNDS, n, p, "replace-one", False)
    solver = PrivateFrankWolfe(steps=steps, selection="exponential")
    return solver.plan(problem, Budget(epsilon, DELTA))


def run_plan(plan: Plan, engine: LocalEngine, steps: int) -> Solution:
    """The first `steps` steps of the plan."""
    solver = PrivateFrankWolfe(steps=plan.steps, selection="exponential")
    curator = Curator(engine, plan.event, Noise(5))
    return solver.run(replace(plan, steps=steps), plan.problem, curator)


def measure_engine(
    x: Any, y: np.ndarray, plan: Plan, kernels: str, repeats: int
) -> tuple[Solution, dict[str, Any]]:
    """Times of the set-up and of the run. Every run has a new engine: none finds things ready."""
    setups: list[Seconds] = []

    def timed_run(steps: int) -> tuple[Solution, Seconds]:
        engine, seconds = clocked(lambda: build_engine(x, y, kernels))
        setups.append(seconds)
        return clocked(lambda: run_plan(plan, engine, steps))

    runs, quarters, few = [], [], max(plan.steps // 4, 1)
    for _ in range(1 + repeats):
        solution, seconds = timed_run(plan.steps)
        runs.append(seconds)
        quarters.append(timed_run(few)[1])
    setup, run, quarter = best(setups), best(runs), best(quarters)
    warn_of_threads("set-up", setup)
    warn_of_threads("run", run)
    return solution, {
        "set-up, s": setup.thread,
        "run, s": run.thread,
        "run in all threads, s": run.process,
        "cold set-up, s": setups[0].thread,
        "cold run, s": runs[0].thread,
        "step, us": (run.thread - quarter.thread) / (plan.steps - few) * 1e6,
    }


def matrix_mb(x: Any) -> float:
    return (x.data.nbytes + x.indices.nbytes + x.indptr.nbytes) / 2**20


def measure_case(
    shape: str, loss: str, epsilon: float, steps: int, kernels: str, repeats: int
) -> dict[str, Any]:
    """One shape, one loss, one epsilon."""
    imports = peak_rss_mb()
    x, by_rank = make_x(SHAPES[shape])
    y = make_y(x, by_rank, loss)
    del by_rank
    generated = peak_rss_mb()
    seconds = time_of_pass(x)
    plan = make_plan(x.shape, loss, epsilon, steps)
    solution, times = measure_engine(x, y, plan, kernels, repeats)
    peak = peak_rss_mb()
    seconds = min(seconds, time_of_pass(x))
    theta = solution.theta
    risk = LOSSES[loss].value(margins(x, theta.support, theta.values), y).mean()
    return {
        "shape": shape,
        "loss": loss,
        "epsilon": epsilon,
        "steps": steps,
        "pass, s": seconds,
        **times,
        "run, passes": times["run, s"] / seconds,
        "set-up, passes": times["set-up, s"] / seconds,
        "columns": len(theta.support),
        "risk": float(risk),
        "risk of zero": float(LOSSES[loss].value(np.zeros(len(y)), y).mean()),
        "matrix, MB": matrix_mb(x),
        "imports, MB": imports,
        "generated, MB": generated,
        "peak, MB": peak,
        "matrices": (peak - imports) / matrix_mb(x),
    }


def measure_conversion(shape: str, kernels: str, repeats: int) -> dict[str, Any]:
    """The set-up from rows that come row by row."""
    imports = peak_rss_mb()
    x, by_rank = make_x(SHAPES[shape])
    y = make_y(x, by_rank, "squared")
    del by_rank
    seconds, size = time_of_pass(x), matrix_mb(x)
    x = x.tocsr()
    times = [clocked(lambda: build_engine(x, y, kernels))[1] for _ in range(1 + repeats)]
    setup = best(times)
    warn_of_threads("set-up from CSR", setup)
    return {
        "shape": shape,
        "pass, s": seconds,
        "CSR set-up, s": setup.thread,
        "cold, s": times[0].thread,
        "CSR set-up, passes": setup.thread / seconds,
        "aim": MOST_CONVERSION_PASSES,
        "matrix, MB": size,
        "imports, MB": imports,
        "peak with both, MB": peak_rss_mb(),
    }


CHILDREN: dict[str, Callable[..., Any]] = {
    "case": measure_case,
    "conversion": measure_conversion,
}


def in_a_process(child: str, **arguments: Any) -> Any:
    """What a child function returns, in a new process with one thread. Kept as a line of JSON."""
    command = [sys.executable, __file__, "--child", child, json.dumps(arguments)]
    print(child, *arguments.values(), flush=True)
    done = subprocess.run(
        command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, text=True, check=True
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "speed.jsonl").open("a", encoding="utf-8") as lines:
        print(json.dumps({"child": child, **arguments, "answer": answer}), file=lines)
    return answer


def aim(value: float | None) -> str:
    return "" if value is None else f"<= {value:g}"


def show_cases(rows: list[dict[str, Any]]) -> None:
    keys = ("shape", "loss", "epsilon", "steps")
    show("Time: one pass is X' r over all non-zeros", [
        {
            **{key: row[key] for key in keys},
            "pass, ms": 1e3 * row["pass, s"],
            "set-up, passes": row["set-up, passes"],
            "cold, s": row["cold set-up, s"] + row["cold run, s"],
            "run, s": row["run, s"],
            "run, passes": row["run, passes"],
            "aim": aim(row["aim"]),
            "step, us": row["step, us"],
            "aim ": aim(MOST_STEP_MICROSECONDS),
        }
        for row in rows
    ])  # fmt: skip
    show("Model and memory, with and without what the imports take", [
        {
            **{key: row[key] for key in keys},
            "columns": row["columns"],
            "risk": row["risk"],
            "risk of zero": row["risk of zero"],
            "matrix, MB": row["matrix, MB"],
            "peak, MB": row["peak, MB"],
            "without, matrices": row["matrices"],
            "aim": aim(MOST_KDDA_MB) + " MB" if row["shape"] == "kdda" else aim(MOST_MATRICES),
        }
        for row in rows
    ])  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--loss", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--steps", type=int, help="in place of the shape's own number")
    parser.add_argument("--kernels", choices=("auto", "numba", "numpy"), default="numba")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="rcv1 alone, with fewer steps")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.case, chosen.steps = ["rcv1"], chosen.steps or 100
    return chosen


def fits(chosen: argparse.Namespace) -> None:
    rows, conversions = [], []
    for shape in (SHAPES[name] for name in chosen.case):
        common = {"shape": shape.name, "kernels": chosen.kernels, "repeats": chosen.repeats}
        conversions.append(in_a_process("conversion", **common))
        steps = chosen.steps or shape.steps
        for loss in chosen.loss:
            for epsilon in chosen.epsilon:
                row = in_a_process("case", **common, loss=loss, epsilon=epsilon, steps=steps)
                full = steps == shape.steps
                row["aim"] = most_passes(shape.name, loss, epsilon) if full else None
                rows.append(row)
    show("Set-up of an engine from CSR rows", conversions)
    show_cases(rows)
    keep("speed", {"conversions": conversions, "rows": rows})


def main() -> None:
    chosen = arguments()
    if chosen.child:
        child, given = chosen.child
        print(json.dumps(CHILDREN[child](**json.loads(given))))
        return
    fits(chosen)


if __name__ == "__main__":
    main()
