"""What a private Frank-Wolfe fit costs on large sparse data, in passes over the non-zeros.

One pass is X' r in a compiled loop over the columns, in one thread. The set-up of the engine and
the run are timed apart, each in its thread's own processor time, the best of a few after a first
one that is reported as "cold". Each case has a process of its own, so that its peak memory is its
own. The machine is shared: only ratios mean anything.

    python benchmarks/speed.py                      all shapes, losses and epsilons
    python benchmarks/speed.py --case url --loss squared --epsilon 1
    python benchmarks/speed.py --peers              against other code on the same data
    python benchmarks/speed.py --dense              the same for dense data
    python benchmarks/speed.py --growth             over 100 times as many rows and columns

With `--quick` each of them is smaller: rcv1 alone and fewer steps.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from riata import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.losses import Logistic, Loss, Squared
from riata.mechanisms.noise import Noise
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.sets import L1Ball
from riata.solvers.plan import Plan
from riata.solvers.private_frank_wolfe import PrivateFrankWolfe
from riata.solvers.solution import Solution

from results import FOLDER, begin_peak_mb, keep, peak_rss_mb, peak_since_mb, show
from speed_data import RADIUS, SHAPES, Shape, make_x, make_y, margins, one_pass
from speed_peers import (
    all_vertices,
    alpha_of_norm,
    diffprivlib_models,
    lasso_solvers,
    optimised_loop,
    plain_loop,
    textbook_loop,
)

LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic()}
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-6
BOUNDS = Bounds(x=1.0, y=1.0)

#: Over which rows and columns the shape of rcv1 is made to grow.
GROWING_ROWS = (20_000, 63_000, 200_000, 630_000, 2_000_000)
GROWING_COLUMNS = (10_000, 32_000, 100_000, 320_000, 1_000_000)

DENSE_STEPS = 500

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


def least_ratio(peer: str, shape: str, loss: str, epsilon: float) -> float | None:
    """How many times the time of a run a peer should take at least."""
    if peer == "textbook" and epsilon == 1:
        by_loss = {"rcv1": (800.0, 300.0), "news20": (2000.0, 800.0)}.get(shape, (None, None))
        return by_loss[loss == "logistic"]
    peaked = epsilon >= 10 or (epsilon >= 1 and shape in ("url", "kdda"))
    if peer == "optimised loop" and peaked:
        return {"squared": 80.0, "logistic": 5.0}[loss]
    return None


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
    """The best after the first, if there are more."""
    return min(times[1:] or times, key=lambda seconds: seconds.process)


def best_of(run: Callable[[], Any], repeats: int) -> Seconds:
    return best([clocked(run)[1] for _ in range(1 + repeats)])


def warn_of_threads(what: str, seconds: Seconds) -> None:
    """Say so if other threads did part of the work."""
    if seconds.process > 1.1 * seconds.thread + 0.01:
        print(
            f"{what}: {seconds.thread:.4g} s in its thread, {seconds.process:.4g} s in all threads",
            file=sys.stderr,
        )


def time_of_pass(x: Any) -> float:
    repeats = 7 if x.nnz < 10**8 else 3
    r = np.random.default_rng(4).standard_normal(x.shape[0])
    return best_of(lambda: one_pass(x, r), repeats).thread


def build_engine(x: Any, y: np.ndarray, kernels: str) -> LocalEngine:
    """An engine with all that does not depend on the model: columns, and their lengths."""
    engine = LocalEngine(x, y, BOUNDS, kernels=kernels)
    if sparse.issparse(x) and kernels == "numba":
        assert len(engine._entries.known) == x.shape[1]
    return engine


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
    for i in range(1 + repeats):
        if i == 1 or repeats == 0:  # compiled code is in memory by now
            cold, before = peak_rss_mb(), begin_peak_mb()
        solution, seconds = timed_run(plan.steps)
        runs.append(seconds)
        if i == 1 or repeats == 0:
            grown = peak_since_mb() - before
        quarters.append(timed_run(few)[1])
    setup, run, quarter = best(setups), best(runs), best(quarters)
    warn_of_threads("set-up", setup)
    warn_of_threads("run", run)
    return solution, {
        "set-up, s": setup.process,  # of all threads: snapshots are taken by two
        "run, s": run.process,
        "cold set-up, s": setups[0].process,
        "cold run, s": runs[0].process,
        "step, us": (run.process - quarter.process) / (plan.steps - few) * 1e6,
        "grown, MB": grown,
        "peak, MB": max(cold, peak_since_mb()),
    }


def matrix_mb(x: Any) -> float:
    return (x.data.nbytes + x.indices.nbytes + x.indptr.nbytes) / 2**20


def sized(shape: str, rows: int | None, columns: int | None) -> Shape:
    """The shape, with other numbers of rows and columns if they are given."""
    known = SHAPES[shape]
    return replace(known, rows=rows or known.rows, columns=columns or known.columns)


def measure_case(
    shape: str,
    loss: str,
    epsilon: float,
    steps: int,
    kernels: str,
    repeats: int,
    rows: int | None = None,
    columns: int | None = None,
) -> dict[str, Any]:
    """One shape, one loss, one epsilon."""
    imports = peak_rss_mb()
    x, by_rank = make_x(sized(shape, rows, columns))
    y = make_y(x, by_rank, loss)
    del by_rank
    generated = peak_rss_mb()
    seconds = time_of_pass(x)
    plan = make_plan(x.shape, loss, epsilon, steps)
    solution, times = measure_engine(x, y, plan, kernels, repeats)
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
        "matrices": 1 + times["grown, MB"] / matrix_mb(x),
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
        "CSR set-up, s": setup.process,
        "cold, s": times[0].process,
        "CSR set-up, passes": setup.process / seconds,
        "aim": MOST_CONVERSION_PASSES,
        "matrix, MB": size,
        "imports, MB": imports,
        "peak with both, MB": peak_rss_mb(),
    }


def time_of_step(loop: Iterator[int]) -> tuple[float, int]:
    """The best time of a step, and from how many: as a step costs the same all the time."""
    next(loop)
    _, first = clocked(lambda: next(loop))
    count = int(np.clip(0.5 / first.thread, 1, 50))

    def several() -> None:
        for _ in range(count):
            next(loop)

    times = [first] + [clocked(several)[1] for _ in range(3)]
    warn_of_threads("peer", best(times))
    return best(times).thread / count, 3 * count


def sharpness(plan: Plan) -> float:
    """What the exponential mechanism multiplies utilities with, at the worst iterate."""
    problem = plan.problem
    reach = problem.set.reach(problem.bounds)
    return plan["select"].epsilon / (2 * problem.worst_sensitivity(reach))


def against(peer: str, seconds: float, how: str, ours: dict[str, Any]) -> dict[str, Any]:
    both = ours["set-up, s"] + ours["run, s"]
    return {
        "peer": peer,
        "peer, s": seconds,
        "run, s": ours["run, s"],
        "set-up, s": ours["set-up, s"],
        "peer / run": seconds / ours["run, s"],
        "/ both": seconds / both,
        "how": how,
    }


def measure_peers(
    shape: str, loss: str, epsilon: float, steps: int, kernels: str, repeats: int
) -> list[dict[str, Any]]:
    """Other code on the rows of one shape."""
    x, by_rank = make_x(SHAPES[shape])
    y = make_y(x, by_rank, loss)
    del by_rank
    plan = make_plan(x.shape, loss, epsilon, steps)
    solution, ours = measure_engine(x, y, plan, kernels, repeats)
    given = (y, LOSSES[loss].slope, sharpness(plan))
    answers = []

    def add_loop(peer: str, loop: Iterator[int], kind: str) -> None:
        seconds, count = time_of_step(loop)
        how = f"{kind}, {count} steps"
        answers.append(against(peer, steps * seconds, how, ours))

    add_loop("optimised loop", optimised_loop(x, *given), "compiled pass")
    wide = sparse.csc_array((x.data.astype(np.float64), x.indices, x.indptr), shape=x.shape)
    add_loop("plain loop", plain_loop(wide, *given), "SciPy products")
    if shape != "kdda":  # its list of vertices does not fit beside the rows
        vertices, kind = all_vertices(x.shape[1])
        add_loop("textbook", textbook_loop(wide, *given, vertices), f"{kind} vertices")
    if loss == "squared" and shape in ("rcv1", "news20"):
        norm = float(np.abs(solution.theta.values).sum())
        alpha = alpha_of_norm(wide, y, norm)
        for peer, make in lasso_solvers().items():
            answers.append(time_lasso(peer, make, alpha, wide, y, repeats, ours))
    return answers


def time_lasso(
    peer: str, make: Callable[[float], Any], alpha: float, x: Any, y: np.ndarray, repeats: int,
    ours: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    model = make(alpha)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seconds = best_of(lambda: model.fit(x, y), repeats)
    warn_of_threads(peer, seconds)
    how = f"alpha {alpha:.2g}, norm {np.abs(model.coef_).sum():.3g}"
    stopped = any("onverge" in str(each.message) for each in caught)
    return against(peer, seconds.thread, how + ", not converged" * stopped, ours)


def measure_dense(
    rows: int, columns: int, order: str, loss: str, steps: int, kernels: str, repeats: int,
    peers: list[str],
) -> list[dict[str, Any]]:  # fmt: skip
    """Other code on dense rows, in C or in Fortran order."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1.0, 1.0, (rows, columns))
    signal = 0.2 * x[:, :10] @ np.where(np.arange(10) % 2, -1.0, 1.0) + rng.normal(0, 0.1, rows)
    y = np.clip(signal, -1, 1) if loss == "squared" else np.sign(signal)
    x = np.asarray(x, order=order)
    plan = make_plan(x.shape, loss, 1.0, steps)
    _, ours = measure_engine(x, y, plan, kernels, repeats)
    residual = rng.standard_normal(rows)
    seconds = best_of(lambda: x.T @ residual, 3 * repeats)
    answers = [against("one pass", seconds.thread, "X' r, BLAS", ours)]
    if "plain loop" in peers:
        seconds, count = time_of_step(plain_loop(x, y, LOSSES[loss].slope, sharpness(plan)))
        how = f"NumPy, {count} steps"
        answers.append(against("plain loop", steps * seconds, how, ours))
    if "Lasso" in peers:
        alpha = 0.1 * float(np.abs(x.T @ y).max()) / rows
        make = lasso_solvers()["scikit-learn Lasso"]
        answers.append(time_lasso("scikit-learn Lasso", make, alpha, x, y, repeats, ours))
    if "diffprivlib" in peers:
        models = diffprivlib_models()
        model = (
            models.LinearRegression(
                epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False
            )
            if loss == "squared"
            else models.LogisticRegression(epsilon=1.0, data_norm=columns**0.5, fit_intercept=False)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, seconds = clocked(lambda: model.fit(x, y))
        name = f"diffprivlib {type(model).__name__}"
        answers.append(against(name, seconds.thread, "one fit, delta 0", ours))
    return answers


CHILDREN: dict[str, Callable[..., Any]] = {
    "case": measure_case,
    "conversion": measure_conversion,
    "peers": measure_peers,
    "dense": measure_dense,
}


def in_a_process(child: str, **arguments: Any) -> Any:
    """What a child function returns, in a new process with one thread; None if it fails.

    Each answer is kept at once, as a line of JSON.
    """
    command = [sys.executable, __file__, "--child", child, json.dumps(arguments)]
    print(child, *arguments.values(), flush=True)
    done = subprocess.run(
        command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        print(f"{child} failed with code {done.returncode}", file=sys.stderr)
        return None
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
            "both": row["set-up, passes"] + row["run, passes"],
            "aim": aim(row["aim"]),
            "step, us": row["step, us"],
            "aim ": aim(MOST_STEP_MICROSECONDS),
        }
        for row in rows
    ])  # fmt: skip
    show("Model and memory: the rows and what a fit takes beside them, in matrices", [
        {
            **{key: row[key] for key in keys},
            "columns": row["columns"],
            "risk": row["risk"],
            "risk of zero": row["risk of zero"],
            "matrix, MB": row["matrix, MB"],
            "peak, MB": row["peak, MB"],
            "matrices": row["matrices"],
            "aim": aim(MOST_KDDA_MB) + " MB" if row["shape"] == "kdda" else aim(MOST_MATRICES),
        }
        for row in rows
    ])  # fmt: skip


def fits(chosen: argparse.Namespace) -> None:
    """The cases themselves."""
    rows, conversions = [], []
    for shape in (SHAPES[name] for name in chosen.case):
        common = {"shape": shape.name, "kernels": chosen.kernels, "repeats": chosen.repeats}
        conversions.append(in_a_process("conversion", **common))
        steps = chosen.steps or shape.steps
        for loss, epsilon in chosen.pairs:
            row = in_a_process("case", **common, loss=loss, epsilon=epsilon, steps=steps)
            if row is not None:
                full = steps == shape.steps
                row["aim"] = most_passes(shape.name, loss, epsilon) if full else None
                rows.append(row)
    conversions = [row for row in conversions if row is not None]
    if conversions:
        show("Set-up of an engine from CSR rows", conversions)
    if rows:
        show_cases(rows)
    keep("speed", {"conversions": conversions, "rows": rows})


def peers(chosen: argparse.Namespace) -> None:
    """Other code on the same rows. Times of loops are those of a few steps, scaled."""
    kept = []
    for shape in (SHAPES[name] for name in chosen.case):
        steps, rows = chosen.steps or shape.steps, []
        common = {"shape": shape.name, "steps": steps, "kernels": chosen.kernels}
        for loss, epsilon in chosen.pairs:
            case = {"loss": loss, "epsilon": epsilon}
            answers = in_a_process("peers", **common, **case, repeats=chosen.repeats)
            for answer in answers or []:
                least = least_ratio(answer["peer"], shape.name, loss, epsilon)
                full = steps == shape.steps and least is not None
                rows.append({**case, **answer, "aim": f">= {least:g}" if full else ""})
        if rows:
            show(f"{shape.name}, {steps:,} steps; of loops, so many were measured and scaled", rows)
        kept += [{"shape": shape.name, "steps": steps, **row} for row in rows]
    keep("speed_peers", {"rows": kept})


def dense(chosen: argparse.Namespace) -> None:
    """Dense rows."""
    cases = [
        (10_000, 10_000, "C", "squared", ["plain loop", "Lasso"]),
        (10_000, 10_000, "F", "squared", ["plain loop", "Lasso"]),
        (100_000, 1_000, "C", "logistic", ["plain loop"]),
        (10_000, 2_000, "C", "squared", ["plain loop", "diffprivlib"]),
        (10_000, 2_000, "C", "logistic", ["plain loop", "diffprivlib"]),
    ]
    if chosen.quick:
        cases = [(n // 10, p // 10, *rest) for n, p, *rest in cases]
    rows = []
    for n, p, order, loss, names in cases:
        facts = {
            "rows": n,
            "columns": p,
            "order": order,
            "loss": loss,
            "steps": chosen.steps or DENSE_STEPS,
        }
        answers = in_a_process(
            "dense", **facts, kernels=chosen.kernels, repeats=chosen.repeats, peers=names
        )
        rows.extend({**facts, **answer} for answer in answers or [])
    if rows:
        show("Dense rows, epsilon 1", rows)
    keep("speed_dense", {"rows": rows})


def growth(chosen: argparse.Namespace) -> None:
    """The shape of rcv1 with up to 100 times as many rows or columns.

    More rows at the same epsilon also make selections sharper. So rows grow with as much less of
    epsilon, too, which leaves them as sharp as they are.
    """
    steps, n0 = chosen.steps or SHAPES["rcv1"].steps, SHAPES["rcv1"].rows
    sizes = [(n, SHAPES["rcv1"].columns, as_sharp) for n in GROWING_ROWS for as_sharp in (0, 1)]
    sizes += [(n0, p, 1) for p in GROWING_COLUMNS]
    rows = []
    for n, p, as_sharp in sizes[::2] if chosen.quick else sizes:
        for loss, epsilon in chosen.pairs:
            given = epsilon * n0 / n if as_sharp else epsilon
            row = in_a_process(
                "case", shape="rcv1", rows=n, columns=p, loss=loss, epsilon=given, steps=steps,
                kernels=chosen.kernels, repeats=chosen.repeats,
            )  # fmt: skip
            if row is not None:
                names = ("loss", "epsilon", "steps", "pass, s", "set-up, passes", "run, s")
                names += ("run, passes", "step, us", "columns", "peak, MB")
                found = {"picked" if name == "columns" else name: row[name] for name in names}
                line = f"{loss}, epsilon {epsilon:g}" + f" x {n0:,} / n" * as_sharp
                rows.append({"rows": n, "columns": p, **found, "line": line})
    if rows:
        shown = [{name: row[name] for name in row if name != "line"} for row in rows]
        show("Growing rows and columns, 74 non-zeros a row", shown)
        keep("speed_growth", {"rows": rows})
        plot_growth(rows)


def plot_growth(rows: list[dict[str, Any]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    shape = SHAPES["rcv1"]
    panels = (
        (left, "rows", [row for row in rows if row["columns"] == shape.columns]),
        (right, "columns", [row for row in rows if row["rows"] == shape.rows]),
    )
    colours = iter(("#b45309", "#475569", "#0f766e", "#7c3aed", "#be123c", "#94a3b8"))
    for line in sorted({row["line"] for row in rows}):
        colour = next(colours)
        for axes, of, found in panels:
            points = sorted((row[of], row["run, passes"]) for row in found if row["line"] == line)
            if len({place for place, _ in points}) > 1:
                label = line if of == "rows" else line.partition(" x ")[0]
                axes.plot(*zip(*points, strict=True), "o-", color=colour, markersize=4, label=label)
    left.set(xlabel="rows n", ylabel="run, passes", title=f"p = {shape.columns:,}")
    right.set(xlabel="columns p", title=f"n = {shape.rows:,}")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / "speed_growth.svg")
    figure.savefig(FOLDER / "speed_growth.png", dpi=150)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--peers", action="store_true", help="against other code on the same rows")
    part.add_argument("--dense", action="store_true", help="against other code on dense rows")
    part.add_argument("--growth", action="store_true", help="over more rows and columns")
    parser.add_argument("--case", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--loss", nargs="+", choices=LOSSES, default=list(LOSSES))
    parser.add_argument("--epsilon", nargs="+", type=float, help="0.1, 1 and 10 if not given")
    parser.add_argument("--steps", type=int, help="in place of the shape's own number")
    parser.add_argument("--kernels", choices=("auto", "numba", "numpy"), default="numba")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="rcv1 alone and fewer steps")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.case, chosen.steps = ["rcv1"], chosen.steps or 100
    if chosen.epsilon is None:
        chosen.epsilon = [1.0] if chosen.growth else [1.0, 10.0] if chosen.peers else EPSILONS
    chosen.pairs = [(loss, epsilon) for loss in chosen.loss for epsilon in chosen.epsilon]
    return chosen


def main() -> None:
    chosen = arguments()
    if chosen.child:
        child, given = chosen.child
        print(json.dumps(CHILDREN[child](**json.loads(given))))
    elif chosen.peers:
        peers(chosen)
    elif chosen.dense:
        dense(chosen)
    elif chosen.growth:
        growth(chosen)
    else:
        fits(chosen)


if __name__ == "__main__":
    main()
