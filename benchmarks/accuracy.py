"""The default LASSO beside what others have published, on the synthetic suite.

Excess is what a model loses on fresh rows against the truth, in units of what the zero model loses
(accuracy_cases.py): delta = 1e-6, replaced rows, a mean over seeds. riata chooses everything from
public facts. The peers (accuracy_peers.py) are given the best point of their grids of steps, radii,
step sizes and the like, by the very excess that is printed, and the sparsity where they want one.

Every result is kept in results/accuracy.jsonl, and measured again only if the peers, the suite or,
for riata's own rows, the sources of riata have changed.

    python benchmarks/accuracy.py [--epsilon E] [--seeds N] [--quick] [--case TEXT] [--method NAME]
                                  [--choices] [--harm | --support | --cost]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import astuple
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

import accuracy_harm
import riata
from riata import PrivateLasso
from riata.errors import InvalidArgument

from accuracy_cases import CASES, Case, Sample
from accuracy_peers import DELTA, FRANK_WOLFE, PEERS, SURVEY, VERSION, Grid, View, without_privacy
from accuracy_peers import measure as measure_peer
from results import FOLDER, keep, peak_rss_mb, show

SEEDS = 5
KEPT = FOLDER / "accuracy.jsonl"

#: Without privacy: nothing learnt, and everything.
REFERENCES = ("zero", "least squares")

#: What --support recovers, and what --cost times.
SUPPORT_CASE = Case("uniform", 20_000, 1_000, 10, 0.1)
COST_CASE = SUPPORT_CASE


@cache
def sources() -> str:
    """A hash of riata's own sources."""
    digest = hashlib.sha256()
    for path in sorted(Path(riata.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def lasso(case: Case, epsilon: float, seed: int, solver: str = "auto", **options: Any) -> Any:
    """The estimator as a user would make it: bounds, a budget and nothing else."""
    return PrivateLasso(
        epsilon=epsilon,
        delta=DELTA,
        bounds=case.bounds,
        solver=solver,
        random_state=seed,
        **options,
    )


class Draw:
    """A case and a seed: the rows are drawn when they are first needed, for all methods."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.seed = case, seed

    @cached_property
    def sample(self) -> Sample:
        return self.case.draw(self.seed)

    @cached_property
    def view(self) -> View:
        return View(self.sample)

    def measure(self, method: str, epsilon: float) -> Grid:
        """The excess of a method at each point of its grid; most have one point only."""
        if method in PEERS:
            return measure_peer(method, self.view, epsilon, self.seed)
        if method == "zero":
            return {"": self.sample.excess(np.zeros(self.case.p))}
        if method == "least squares":
            return {"": self.sample.excess(without_privacy(self.sample))}
        model = lasso(self.case, epsilon, self.seed, method.removeprefix("riata:"))
        model.fit(self.sample.x, self.sample.y)
        return {"": self.sample.excess(model.coef_, model.intercept_)}


class Kept:
    """The results so far, one JSON line each, found by a hash of what they depend on."""

    def __init__(self) -> None:
        FOLDER.mkdir(exist_ok=True)
        lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
        rows = [json.loads(line) for line in lines]
        self.results: dict[str, Grid] = {row["key"]: row["grid"] for row in rows}

    def get(self, draw: Draw, method: str, epsilon: float) -> Grid:
        """The result, measured if it is not there."""
        depends: list[Any] = [astuple(draw.case), draw.seed, method, DELTA]
        if method not in REFERENCES:
            depends += [epsilon, VERSION if method in PEERS else sources()]
        key = hashlib.sha256(json.dumps(depends).encode()).hexdigest()[:16]
        if key not in self.results:
            start = time.process_time()
            self.results[key] = draw.measure(method, epsilon)
            row = {
                "key": key,
                "case": draw.case.name,
                "method": method,
                "seed": draw.seed,
                "epsilon": epsilon,
                "seconds": round(time.process_time() - start, 2),
                "grid": self.results[key],
            }
            with KEPT.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        return self.results[key]


def best(grids: list[Grid]) -> dict[str, Any]:
    """The point of the grid whose mean over seeds is the smallest."""
    means = {point: float(np.mean([grid[point] for grid in grids])) for point in grids[0]}
    point = min(means, key=lambda p: means[p])
    return {
        "excess": means[point],
        "sd": float(np.std([grid[point] for grid in grids])),
        "point": point,
    }


def measured(
    cases: list[Case], methods: list[str], epsilons: list[float], seeds: int
) -> dict[tuple[str, str, float], dict[str, Any]]:
    """The best of every method, case and epsilon. A method that refuses a case says why once."""
    kept, found = Kept(), {}
    refused: dict[str, str] = {}
    for case in track(cases, description="cases"):
        grids: dict[tuple[str, float], list[Grid]] = {}
        for seed in range(seeds):
            draw = Draw(case, seed)
            for method in methods:
                for epsilon in epsilons:
                    try:
                        grid = kept.get(draw, method, epsilon)
                    except InvalidArgument as reason:
                        refused[method] = str(reason)
                        continue
                    grids.setdefault((method, epsilon), []).append(grid)
        for (method, epsilon), several in grids.items():
            found[case.name, method, epsilon] = best(several)
    for method, reason in refused.items():
        print(f"{method}: {reason}")
    return found


def label(case: Case) -> str:
    """A name that leaves room for the numbers."""
    return f"{case.design} {case.n // 1000}k x {case.p:,} s{case.s} {case.noise:g}"


def geometric(ratios: list[float]) -> str:
    if not ratios:
        return "not measured"
    return f"{np.exp(np.mean(np.log(ratios))):.3g} over {len(ratios)} cases"


def summarise(table: dict[str, dict[str, float]]) -> None:
    """How the default compares, over the cases in which both were measured."""

    def ratios(peers: list[str]) -> dict[str, float]:
        found = {}
        for case, row in table.items():
            there = [row[peer] for peer in peers if peer in row]
            if "auto" in row and there:
                found[case] = min(there) / row["auto"]
        return found

    for name in FRANK_WOLFE:
        print(f"excess({name}) / excess(auto): {geometric(list(ratios([name]).values()))}")
    print(f"best of the survey / auto: {geometric(list(ratios(list(SURVEY)).values()))}")
    behind = {case: 1 / ratio for case, ratio in ratios(list(PEERS)).items()}
    if behind:
        worst = max(behind, key=lambda case: behind[case])
        print(f"auto / best peer: at most {behind[worst]:.3g}, at {worst}")


def _written(row: dict[str, float], methods: list[str]) -> dict[str, str]:
    return {m: f"{row[m]:.4f}" if m in row else "" for m in methods}


def compare(
    cases: list[Case], methods: list[str], epsilon: float, seeds: int, choices: bool
) -> None:
    """Every method on every case."""
    found = measured(cases, methods, [epsilon], seeds)
    table = {
        label(case): {
            method: found[case.name, method, epsilon]["excess"]
            for method in methods
            if (case.name, method, epsilon) in found
        }
        for case in cases
    }
    title = f"Excess at epsilon {epsilon:g}, delta {DELTA:g}, {seeds} seeds"
    for part in ([m for m in methods if m not in SURVEY], [m for m in methods if m in SURVEY]):
        if part:
            show(title, [{"case": name, **_written(row, part)} for name, row in table.items()])
    long = [
        {"case": label(case), "method": method, **found[case.name, method, epsilon]}
        for case in cases
        for method in methods
        if (case.name, method, epsilon) in found
    ]
    if choices:
        show("The best points of the grids", [row for row in long if row["point"]])
    summarise(table)
    keep("accuracy", {"epsilon": epsilon, "delta": DELTA, "seeds": seeds, "rows": long})


def harm(text: str, seeds: int) -> None:
    """What a default fit costs where there is nothing to learn, for every path of "auto"."""
    rows = []
    for case in track(accuracy_harm.selected(text), description="cases"):
        rows += accuracy_harm.rows_of(case, seeds)
    show(f"Targets that have nothing to do with the rows, {seeds} seeds", rows)
    keep("accuracy-harm", {"seeds": seeds, "rows": rows})


def support(epsilon: float, seeds: int) -> None:
    """How well the default's non-zero coefficients tell the columns that matter."""
    rows = []
    for seed in range(seeds):
        sample = SUPPORT_CASE.draw(seed)
        model = lasso(SUPPORT_CASE, epsilon, seed).fit(sample.x, sample.y)
        chosen, true = model.coef_ != 0, sample.theta != 0
        both = int(np.sum(chosen & true))
        rows.append(
            {
                "seed": seed,
                "chosen": int(chosen.sum()),
                "right": both,
                "F1": 2 * both / int(chosen.sum() + true.sum()),
                "excess": sample.excess(model.coef_, model.intercept_),
            }
        )
    show(f"Support at {SUPPORT_CASE.name}, epsilon {epsilon:g}", rows)
    print(f"mean F1 {np.mean([row['F1'] for row in rows]):.3f}")
    keep("accuracy-support", {"case": SUPPORT_CASE.name, "epsilon": epsilon, "rows": rows})


def timed(models: list[Any], sample: Sample, repeats: int) -> list[float]:
    """The wall time of each model's fastest fit; they take turns."""
    seconds: list[list[float]] = [[] for _ in models]
    for _ in range(repeats):
        for model, some in zip(models, seconds, strict=True):
            start = time.perf_counter()
            model.fit(sample.x, sample.y)
            some.append(time.perf_counter() - start)
    return [min(some) for some in seconds]


def cost(cases: list[Case], epsilon: float, repeats: int) -> None:
    """The default's wall time beside Frank-Wolfe with as many selections, in the same run."""
    rows = []
    for case in cases:
        sample, model = case.draw(0), lasso(case, epsilon, 0)
        selections = model.fit(sample.x, sample.y).n_iter_
        plain = lasso(case, epsilon, 0, "frank-wolfe", steps=max(selections, 1))
        seconds, beside = timed([model, plain], sample, repeats)
        rows.append(
            {
                "case": label(case),
                "selections": selections,
                "default, s": seconds,
                "frank-wolfe, s": beside,
                "ratio": seconds / beside,
                "peak MB": peak_rss_mb(),
            }
        )
    show(f"Wall time of a fit, the fastest of {repeats}", rows)
    keep("accuracy-cost", {"rows": rows})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    names = ", ".join([*REFERENCES, *PEERS, "auto"])
    parser.add_argument(
        "--method",
        action="append",
        help=f"only this: {names}, or a solver of riata, as riata:NAME if a peer is called so too",
    )
    parser.add_argument("--choices", action="store_true", help="print the best points of the grids")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--harm", action="store_true", help="cost on null data")
    instead.add_argument("--support", action="store_true", help="which columns are found")
    instead.add_argument("--cost", action="store_true", help="the time and memory of a fit")
    options = parser.parse_args()
    seeds = 1 if options.quick else options.seeds
    cases = [case for case in CASES if options.case in case.name or options.case in label(case)]
    if not (cases or options.harm):
        parser.error(f"no case contains {options.case!r}")
    if options.harm:
        harm(options.case, seeds)
    elif options.support:
        support(options.epsilon, seeds)
    elif options.cost:
        cost(cases if options.case else [COST_CASE], options.epsilon, 1 if options.quick else 3)
    else:
        methods = options.method or ["zero", *PEERS, "auto", "least squares"]
        compare(cases, methods, options.epsilon, seeds, options.choices)


if __name__ == "__main__":
    main()
