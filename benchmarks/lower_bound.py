"""Private LASSOs on the data that is hard for all of them: Theorem 3.1 of the paper.

For each number of rows, the instance with the largest proven lower bound; the excess risk (mean
squared loss, unit l1 ball) of every solver that applies; the model 0, which reads nothing; the
lower bound, which no private algorithm beats in the mean over instances; and the plan's bound,
which holds for the worst data. Seeds are instances: each fit has its own.

A fit holds n x p dense numbers, so larger sizes are run on an engine that knows the structure of
the orthogonal block and answers the same queries: the same solver, curator and noise as in a fit.

Upper beside lower: for pairs of a set and a row norm, the smallest bound of a plan, the largest
lower bound, and the factor between them. Nothing is fitted for it.

The trace: Tardos's accusation at a score above 3, for members and for fresh rows.

    python benchmarks/lower_bound.py [--quick] [--ranges]
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from rich.progress import track

from riata import Bounds, PrivateErm
from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.hard_instances import HardInstance
from riata.losses import Linear, Logistic, Squared
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy import Budget
from riata.problem import Problem
from riata.queries import Gradient, Query, VertexUtilities
from riata.sets import GroupL1Ball, L1Ball, L2Ball, Simplex
from riata.solvers import SOLVERS, choose_solver
from riata.solvers.risk_range import risk_range

from results import FOLDER, keep, show

BOUNDS = Bounds(x=1.0, y=1.0)
EPSILONS = (0.1, 1.0)
DELTA = 1e-6
ACCUSED = 3.0
OUTSIDERS = 200
#: Rows times columns that are fitted as dense data.
LARGEST_TABLE = 2**22


class NotAnswered(Exception):
    """The structured engine does not know the query."""


class HardEngine(Engine):
    """Answers gradient queries on database i of an instance, without its orthogonal block."""

    def __init__(self, instance: HardInstance, i: int) -> None:
        self.code, self.k = np.delete(instance.code, i, axis=0), instance.orthogonal_rows
        self.n = instance.n_rows

    def total(self, query: Query) -> np.ndarray:
        if type(query) not in (Gradient, VertexUtilities):
            raise NotAnswered(type(query).__name__)
        at = query.gradient if isinstance(query, VertexUtilities) else query
        theta = at.theta.dense()
        gradient = 2 / self.n * (self.code.T @ (self.code @ theta - 1) + self.k * theta)
        return np.rint(gradient / query.unit).astype(np.int64)


def model(name: str, epsilon: float, seed: int | None = None) -> PrivateErm:
    return PrivateErm(
        Squared(), L1Ball(1.0), epsilon, DELTA, bounds=BOUNDS, solver=name, fit_intercept=False,
        random_state=seed,
    )  # fmt: skip


def by_engine(name: str, epsilon: float, instance: HardInstance, i: int, seed: int) -> np.ndarray:
    problem = Problem(Squared(), L1Ball(1.0), BOUNDS, instance.n_rows, instance.n_features)
    budget = Budget(epsilon, DELTA)
    solver = choose_solver(name, problem, budget, "auto")
    plan = solver.plan(problem, budget)
    curator = Curator(HardEngine(instance, i), plan.event, Noise(seed), adaptive=plan.adaptive)
    return solver.run(plan, problem, curator).theta.dense()


def fitted(name: str, epsilon: float, instance: HardInstance, seed: int) -> np.ndarray:
    i = seed % (instance.code_rows + 1)
    if name == "non-private":
        return instance.minimiser(i)
    if instance.n_rows * instance.n_features > LARGEST_TABLE:
        return by_engine(name, epsilon, instance, i, seed)
    return model(name, epsilon, seed).fit(*instance.data(i)).coef_


def instances(n: int, epsilon: float, seeds: int) -> list[HardInstance]:
    best = HardInstance.hardest(n + n // 16, epsilon, DELTA)
    return [
        HardInstance(best.code_rows, best.n_features, best.repeats, best.code_share, seed)
        for seed in range(seeds)
    ]


def traced(instance: HardInstance, theta: np.ndarray) -> np.ndarray:
    """Shares of accused members and outsiders, the mean score of members, and the agreement."""
    i = instance.seed % (instance.code_rows + 1)
    scores = instance.trace(theta, i, OUTSIDERS)
    return np.array(
        [
            np.mean(scores.members > ACCUSED),
            np.mean(scores.outsiders > ACCUSED),
            np.mean(scores.members),
            instance.agreement(theta, i),
        ]
    )


def measure(n: int, epsilon: float, seeds: int, notes: dict[str, str]) -> list[dict[str, object]]:
    rows = []
    same = instances(n, epsilon, seeds)
    one = same[0]
    zero = [each.excess_risk(np.zeros(each.n_features), 0) for each in same]
    for name in ("non-private", *SOLVERS):
        try:
            bound = (
                math.nan
                if name == "non-private"
                else model(name, epsilon).plan(one.n_rows, one.n_features).excess_risk
            )
            models = [fitted(name, epsilon, each, each.seed) for each in same]
        except (InvalidArgument, NotAnswered) as error:
            notes[f"{name}, epsilon {epsilon:g}, n {one.n_rows}"] = str(error)
            continue
        risks = [
            each.excess_risk(theta, each.seed % (each.code_rows + 1))
            for each, theta in zip(same, models, strict=True)
        ]
        seen = np.mean([traced(e, t) for e, t in zip(same, models, strict=True)], axis=0)
        rows.append(
            {
                "epsilon": epsilon,
                "n": one.n_rows,
                "p": one.n_features,
                "w": one.code_rows,
                "tau": one.tau,
                "solver": name,
                "lower bound": one.lower_bound(epsilon, DELTA),
                "model 0": float(np.mean(zero)),
                "excess risk": float(np.mean(risks)),
                "standard error": float(np.std(risks, ddof=1) / math.sqrt(seeds)),
                "upper bound": bound,
                "members accused": float(seen[0]),
                "outsiders accused": float(seen[1]),
                "mean score": float(seen[2]),
                "agreement": float(seen[3]),
            }
        )
    return rows


def ranges() -> list[dict[str, object]]:
    """Upper beside lower for pairs of a set and a row norm."""
    length = Bounds(x=1.0, y=1.0, norm="l2")
    pairs = [
        ("squared", Squared(), L1Ball(1.0), BOUNDS),
        ("squared", Squared(), L1Ball(1.0), length),
        ("squared", Squared(), Simplex(1.0), BOUNDS),
        ("squared", Squared(), GroupL1Ball(8), length),
        ("squared", Squared(), L2Ball(1.0), length),
        ("logistic", Logistic(), L2Ball(1.0), length),
        ("logistic", Logistic(), L1Ball(1.0), BOUNDS),
        ("linear", Linear(), L1Ball(1.0), BOUNDS),
        ("linear", Linear(), Simplex(1.0), BOUNDS),
        ("linear", Linear(), L2Ball(1.0), length),
    ]
    rows = []
    for n, p in ((8_196, 8_192), (131_080, 65_536)):
        for epsilon, delta in ((1.0, DELTA), (0.1, DELTA), (1.0, 0.0)):
            for name, loss, constraint, bounds in pairs:
                problem = Problem(loss, constraint, bounds, n, p)
                found = risk_range(problem, Budget(epsilon, delta))
                rows.append(
                    {
                        "n": n,
                        "p": p,
                        "epsilon": epsilon,
                        "delta": delta,
                        "loss": name,
                        "set": type(constraint).__name__,
                        "rows": bounds.norm,
                        "lower": found.lower,
                        "hides": found.hidden,
                        "upper": found.upper,
                        "solver": found.plan.solver,
                        "factor": found.factor,
                    }
                )
    return rows


def verdict(rows: list[dict[str, object]]) -> list[str]:
    """Each private measurement that is not between the curves, in words."""
    return [
        f"{r['solver']} at epsilon {r['epsilon']}, n {r['n']}: {r['excess risk']:.3g} is not "
        f"between {r['lower bound']:.3g} and {r['upper bound']:.3g}"
        for r in rows
        if r["solver"] != "non-private"
        and not r["lower bound"] <= r["excess risk"] <= r["upper bound"]
    ]


def plot(rows: list[dict[str, object]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    colours = ("#b45309", "#475569", "#0f766e", "#7c3aed", "#be123c", "#1d4ed8")
    for axes, epsilon in zip(figure.subplots(1, 2, sharey=True), EPSILONS, strict=True):
        here = [r for r in rows if r["epsilon"] == epsilon]
        names = [name for name in SOLVERS if any(r["solver"] == name for r in here)]
        for name, colour in zip(names, colours, strict=False):
            own = [r for r in here if r["solver"] == name]
            n, y, e, bound = (
                [r[key] for r in own]
                for key in ("n", "excess risk", "standard error", "upper bound")
            )
            axes.errorbar(n, y, yerr=2 * np.array(e), fmt="o-", color=colour, label=name, ms=4)
            axes.plot(n, bound, ":", color=colour, label=f"{name}, upper bound")
        first = [r for r in here if r["solver"] == "non-private"]
        n = [r["n"] for r in first]
        axes.plot(n, [r["model 0"] for r in first], "-", color="#94a3b8", label="the model 0")
        axes.plot(n, [r["lower bound"] for r in first], "k--", label="lower bound")
        axes.set(xscale="log", yscale="log", xlabel="rows n", title=f"epsilon = {epsilon:g}")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylabel("excess risk")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(FOLDER / "lower_bound.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer seeds and smaller data")
    parser.add_argument("--ranges", action="store_true", help="upper beside lower alone")
    arguments = parser.parse_args()
    quick, both = arguments.quick, ranges()
    show("Upper beside lower", both)
    if arguments.ranges:
        return
    seeds, sizes = (3, (9, 10, 11)) if quick else (5, (9, 11, 13, 15, 17))
    notes: dict[str, str] = {}
    rows: list[dict[str, object]] = []
    for k in track(sizes, "over n"):
        for epsilon in EPSILONS:
            rows += measure(2**k, epsilon, seeds, notes)
    risks = ("epsilon", "n", "p", "w", "tau", "solver", "lower bound", "model 0", "excess risk",
             "standard error", "upper bound")  # fmt: skip
    trace = ("epsilon", "n", "p", "w", "solver", "members accused", "outsiders accused",
             "mean score", "agreement")  # fmt: skip
    show("Excess risk on hard instances", [{key: r[key] for key in risks} for r in rows])
    show("The trace: accused at a score above 3", [{key: r[key] for key in trace} for r in rows])
    for what, why in notes.items():
        print(f"left out: {what}: {why}")
    outside = verdict(rows)
    print("\n".join(outside) or "every private measurement lies between the two curves")
    keep("lower_bound", {"rows": rows, "ranges": both, "left_out": notes, "outside": outside})
    plot(rows)


if __name__ == "__main__":
    main()
