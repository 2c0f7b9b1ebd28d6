"""How the excess risk of Algorithm 2 falls with n and grows with p.

The experiment: x uniform in [-1, 1]^p, theta* 5-sparse with l1 norm 1, y = clip(x . theta* +
0.1 N(0, 1)), radius 1, epsilon 1, delta 1e-6, steps by the explicit rule, the exponential
mechanism. Theorem 2.5 promises n^(-2/3) up to logarithms, and log p, for the worst data.

This data is kinder than the worst: its risk is strongly convex, and once noise moves only a small
share w of the weight to wrong vertices, that costs about w^2, where w falls like n^(-2/3). With the
explicit rule the measured slope is therefore steeper than -2/3. With the paper's number of steps,
some forty times larger, noise dominates over the whole range and the slope is the theorem's.

For the squared loss a gradient needs only the Gram matrix, so an engine that keeps nothing else
answers the solver's queries: the same solver, curator and noise as in a fit.

The rates of the other theorems are in theorem_rates.py.

    python benchmarks/rates.py [--quick]
"""

from __future__ import annotations

import argparse
import math
from functools import cached_property

import numpy as np
from rich.progress import track

from riata import Bounds
from riata.curator import Curator
from riata.losses import Squared
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy import Budget
from riata.problem import Problem
from riata.queries import VertexUtilities
from riata.sets import L1Ball
from riata.solvers import PrivateFrankWolfe
from riata.solvers.step_count import steps_by_theorem_2_5

from results import FOLDER, keep, show

BUDGET = Budget(1.0, 1e-6)
BOUNDS = Bounds(x=1.0, y=1.0)
SUPPORT = 5


class GramEngine(Engine):
    """Answers gradient queries of the squared loss from X'X / n, X'y / n and y'y / n."""

    def __init__(self, n: int, p: int, rng: np.random.Generator) -> None:
        theta = np.zeros(p)
        theta[rng.choice(p, SUPPORT, replace=False)] = rng.dirichlet(np.ones(SUPPORT)) * rng.choice(
            [-1, 1], SUPPORT
        )
        self.gram, self.cross, self.square = np.zeros((p, p)), np.zeros(p), 0.0
        for start in range(0, n, 2**16):
            rows = min(2**16, n - start)
            x = rng.uniform(-1, 1, (rows, p))
            y = np.clip(x @ theta + 0.1 * rng.standard_normal(rows), -1, 1)
            self.gram += x.T @ x / n
            self.cross += x.T @ y / n
            self.square += y @ y / n

    def gradient(self, theta: np.ndarray) -> np.ndarray:
        return 2 * (self.gram @ theta - self.cross)

    def total(self, query: VertexUtilities) -> np.ndarray:
        gradient = self.gradient(query.gradient.theta.dense())
        return np.rint(gradient / query.unit).astype(np.int64)

    def risk(self, theta: np.ndarray) -> float:
        return float(theta @ self.gram @ theta - 2 * theta @ self.cross + self.square)

    @cached_property
    def smallest_risk(self) -> float:
        """By accelerated projected gradient, to far below the excess risks measured here."""
        ball, step = L1Ball(1.0), 1 / (2 * np.linalg.eigvalsh(self.gram)[-1])
        theta = ahead = np.zeros(len(self.cross))
        for k in range(3000):
            before, theta = theta, ball.project(ahead - step * self.gradient(ahead))
            ahead = theta + k / (k + 3) * (theta - before)
            if np.abs(theta - before).max() < 1e-10:
                break
        return self.risk(theta)


def excess_risk(engine: GramEngine, n: int, p: int, seed: int, steps: int | str = "auto") -> float:
    problem = Problem(Squared(), L1Ball(1.0), BOUNDS, n, p)
    solver = PrivateFrankWolfe(steps)
    plan = solver.plan(problem, BUDGET)
    curator = Curator(engine, plan.event, Noise(seed))
    found = solver.run(plan, problem, curator).theta.dense()
    return engine.risk(found) - engine.smallest_risk


def paper_steps(n: int) -> int:
    """Theorem 2.5 without its hidden constant, which no number of columns changes."""
    return steps_by_theorem_2_5(Problem(Squared(), L1Ball(1.0), BOUNDS, n, 2), BUDGET.epsilon)


def measure(n: int, p: int, repeats: int) -> dict[str, float]:
    rng = np.random.default_rng([n, p])
    risks = np.empty((repeats, 2))
    for seed in range(repeats):
        engine = GramEngine(n, p, rng)
        risks[seed, 0] = excess_risk(engine, n, p, seed)
        risks[seed, 1] = excess_risk(engine, n, p, seed, paper_steps(n))
    plan = PrivateFrankWolfe().plan(Problem(Squared(), L1Ball(1.0), BOUNDS, n, p), BUDGET)
    (ours, paper), errors = risks.mean(axis=0), risks.std(axis=0, ddof=1) / math.sqrt(repeats)
    return {
        "n": n,
        "p": p,
        "steps": plan.steps,
        "excess risk": float(ours),
        "standard error": float(errors[0]),
        "paper's steps": paper_steps(n),
        "its excess risk": float(paper),
        "its standard error": float(errors[1]),
        "worst-case bound": plan.excess_risk,
    }


def around_the_rule(n: int, p: int, repeats: int) -> dict[str, float]:
    """The excess risk when the rule's number of steps is scaled."""
    problem = Problem(Squared(), L1Ball(1.0), BOUNDS, n, p)
    rule = PrivateFrankWolfe().plan(problem, BUDGET).steps
    rng = np.random.default_rng([n, p, 1])
    engines = [GramEngine(n, p, rng) for _ in range(repeats)]
    row: dict[str, float] = {"n": n, "p": p, "steps by rule": rule}
    for factor in (0.25, 0.5, 1.0, 2.0, 4.0, 16.0):
        steps = max(1, round(factor * rule))
        risks = [excess_risk(e, n, p, seed, steps) for seed, e in enumerate(engines)]
        row[f"x {factor:g}"] = float(np.mean(risks))
    return row


def slope(rows: list[dict[str, float]], of: str, risk: str = "excess risk") -> float:
    x, y = np.log([r[of] for r in rows]), np.log([r[risk] for r in rows])
    return float(np.polyfit(x, y, 1)[0])


def plot(by_n: list[dict[str, float]], by_p: list[dict[str, float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)

    def points(axes, rows, of, risk, error, colour, label):
        x, y, e = (np.array([r[key] for r in rows]) for key in (of, risk, error))
        axes.errorbar(x, y, yerr=2 * e, fmt="o-", color=colour, label=label, markersize=4)
        return x, y

    ours, paper = slope(by_n, "n"), slope(by_n, "n", "its excess risk")
    points(left, by_n, "n", "excess risk", "standard error", "#b45309", f"riata, slope {ours:.2f}")
    n, y = points(
        left, by_n, "n", "its excess risk", "its standard error", "#475569",
        f"with the paper's steps, slope {paper:.2f}",
    )  # fmt: skip
    left.plot(n, y[-1] * (n / n[-1]) ** (-2 / 3), "--", color="#94a3b8", label="slope -2/3")
    left.set(xscale="log", yscale="log", xlabel="rows n", ylabel="excess risk", title="p = 200")
    p, y = points(right, by_p, "p", "excess risk", "standard error", "#b45309", "riata")
    line = np.polyval(np.polyfit(np.log(p), y, 1), np.log(p))
    right.plot(p, line, "--", color="#94a3b8", label="straight in log p")
    right.set(xscale="log", xlabel="columns p", title=f"n = {by_p[0]['n']:,}", ylim=(0, None))
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FOLDER / "rates.svg")
    figure.savefig(FOLDER / "rates.png", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats and smaller data")
    quick = parser.parse_args().quick
    repeats, top = (5, 16) if quick else (20, 20)
    by_n = [measure(2**k, 200, repeats) for k in track(range(12, top + 1), "over n")]
    sizes = (25, 50, 100, 200, 400, 800) if quick else (25, 50, 100, 200, 400, 800, 1600)
    by_p = [measure(2**15, p, repeats) for p in track(sizes, "over p")]
    rule = [around_the_rule(2**k, 200, repeats) for k in track((13, 15, 17), "around the rule")]
    falls, paper = slope(by_n, "n"), slope(by_n, "n", "its excess risk")
    grows = slope(by_p, "p")
    show(f"Excess risk over n: slope {falls:.3f}, with the paper's steps {paper:.3f}", by_n)
    show(f"Excess risk over p: exponent {grows:.3f} (a power of log p)", by_p)
    show("Excess risk when the rule's number of steps is scaled", rule)
    log_p = np.log([r["p"] for r in by_p])
    fit = np.corrcoef(log_p, [r["excess risk"] for r in by_p])[0, 1] ** 2
    print(f"excess risk against log p is straight with R2 {fit:.3f}")
    slopes = {"slope_n": falls, "slope_n_paper_steps": paper, "exponent_p": grows, "r2_log_p": fit}
    keep("rates", {"by_n": by_n, "by_p": by_p, "rule": rule, **slopes})
    plot(by_n, by_p)


if __name__ == "__main__":
    main()
