"""Every solver on every data set of the menu, at equal epsilon, delta and adjacency.

The score is R2 or accuracy on rows held out, a mean over seeds. The excess risk is the mean loss on
the rows to fit minus that of the best model of the same set, found without privacy by accelerated
projected gradient; "exact" is that model's score. Beside them stand scikit-learn's score without
privacy or constraint, and on text that of DP-SGD tuned on the held-out rows, if
benchmarks/dp_sgd.py has been run.

The radii are those of menu_data.py, for all solvers and epsilons, and everything else is left to
riata's defaults. A solver that cannot be used with a data set or a set says why.

A run with --data or --solver replaces its own rows in the kept results and leaves the others.

    python benchmarks/menu.py [--quick] [--data NAME] [--solver NAME]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.progress import track
from scipy import sparse
from scipy.sparse.linalg import svds

from riata import (
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.errors import Incompatible, InvalidArgument
from riata.losses import Logistic, Loss, Squared
from riata.sets import ConstraintSet, L1Ball, L2Ball, SparseBall

from menu_data import LOADERS, Data, without_privacy
from results import FOLDER, keep, peak_rss_mb, show

DELTA = 1e-6
ADJACENCY = "add-remove"  # Opacus's convention, so that DP-SGD is comparable
EPSILONS = (0.5, 1.0, 3.0, 10.0)
SEEDS = 5

#: The number of columns that solvers over sparse models may use.
SPARSITY = 10

#: Solvers whose noise depends on the largest entry of a row. The others are given its length.
BY_ENTRY = {"frank-wolfe", "hard-thresholding", "peeling"}


class Entry(NamedTuple):
    """A line of the menu.

    `make` gives an estimator from the data's public facts, epsilon and a seed. `problem` says which
    risk it minimises over which set, if that is known, and `task` the only task it is for.
    """

    label: str
    solver: str
    make: Callable[[Data, float, int], Any]
    problem: Callable[[Data], tuple[Loss, ConstraintSet]] | None = None
    task: str | None = None


def common(data: Data, epsilon: float, seed: int, solver: str) -> dict[str, Any]:
    """What every estimator is given."""
    return {
        "epsilon": epsilon,
        "delta": DELTA,
        "adjacency": ADJACENCY,
        "bounds": data.bounds if solver in BY_ENTRY else data.l2_bounds,
        "random_state": seed,
    }


def loss(data: Data) -> Loss:
    return Logistic() if data.classifies else Squared()


def over_l1(solver: str) -> Entry:
    """The LASSO or logistic regression over the l1 ball."""

    def make(data: Data, epsilon: float, seed: int) -> Any:
        options = common(data, epsilon, seed, solver) | {"radius": data.radius, "solver": solver}
        if data.classifies:
            return PrivateLogisticRegression(classes=[-1, 1], penalty="l1", **options)
        return PrivateLasso(**options)

    return Entry(f"{solver}, l1", solver, make, lambda d: (loss(d), L1Ball(d.radius)))


def over_l2(solver: str) -> Entry:
    """The same losses over the Euclidean ball."""

    def make(data: Data, epsilon: float, seed: int) -> Any:
        options = common(data, epsilon, seed, solver)
        return PrivateErm(loss(data), L2Ball(data.l2_radius), solver=solver, **options)

    return Entry(f"{solver}, l2", solver, make, lambda d: (loss(d), L2Ball(d.l2_radius)))


def sparse_ball(solver: str) -> Entry:
    """The same losses over models of at most ten columns."""

    def make(data: Data, epsilon: float, seed: int) -> Any:
        options = common(data, epsilon, seed, solver)
        over = SparseBall(SPARSITY, data.l2_radius)
        return PrivateErm(loss(data), over, solver=solver, **options)

    return Entry(f"{solver}, l0", solver, make)


def default(data: Data, epsilon: float, seed: int) -> Any:
    """riata's own choice: everything is left to "auto"."""
    options = common(data, epsilon, seed, "frank-wolfe")
    if data.classifies:
        return PrivateLogisticRegression(classes=[-1, 1], **options)
    return PrivateLasso(radius=data.radius, **options)


def projected(data: Data, epsilon: float, seed: int) -> Any:
    """100 dimensions, fewer than the rule's: the lift is solved in each of some hundred fits."""
    options = common(data, epsilon, seed, "projected") | {"radius": data.radius, "dimension": 100}
    if data.classifies:
        return ProjectedClassifier(classes=[-1, 1], **options)
    return ProjectedRegression(**options)


def machine(data: Data, epsilon: float, seed: int) -> Any:
    options = common(data, epsilon, seed, "frank-wolfe")
    return PrivateLinearSVC(classes=[-1, 1], **options)


#: The menu. An estimator of its own is one more line: Entry(label, solver, make, problem, task).
MENU: list[Entry] = [
    Entry("default", "auto", default),
    Entry("default, svm", "auto", machine, task="classification"),
    *map(over_l1, ("frank-wolfe", "gaussian-frank-wolfe", "objective-perturbation")),
    Entry("projected, l1", "projected", projected, lambda d: (loss(d), L1Ball(d.radius))),
    *map(over_l2, ("noisy-gradient", "gaussian-frank-wolfe", "objective-perturbation")),
    *map(sparse_ball, ("peeling", "hard-thresholding")),
]


def risk(data: Data, of: Loss, coef: np.ndarray, intercept: float) -> float:
    """The mean loss on the rows to fit."""
    return float(np.mean(of.value(data.x @ coef + intercept, data.y)))


class Reference(NamedTuple):
    """The best model of a set, found without privacy; its excess risk is at most `gap`."""

    risk: float
    score: float
    gap: float


def exact(data: Data, of: Loss, over: ConstraintSet, most: int = 1000) -> Reference:
    """Accelerated projected gradient with restarts, for theta in the set and any intercept."""
    n, p = data.x.shape
    over, ones = over.sized(p), np.ones((n, 1))
    x = data.x if not sparse.issparse(data.x) else sparse.csr_array(data.x)
    beside = sparse.hstack([x, ones], format="csr") if sparse.issparse(x) else np.hstack([x, ones])
    largest = float(svds(beside, k=1, return_singular_vectors=False, random_state=0)[0])
    step = n / (1.01 * of.curvature_bound(1.0) * largest**2)
    back = beside.T.tocsr() if sparse.issparse(x) else beside.T

    def gradient(theta: np.ndarray) -> np.ndarray:
        return back @ of.slope(beside @ theta, data.y) / n

    theta = ahead = np.zeros(p + 1)
    momentum, gap = 1.0, np.inf
    for k in range(most):
        slope = gradient(ahead)
        new = ahead - step * slope
        new[:p] = over.project(new[:p])
        if (ahead - new) @ (new - theta) > 0:  # uphill: forget the momentum
            momentum = 1.0
        before, momentum = momentum, (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead, theta = new + (before - 1) / momentum * (new - theta), new
        if k % 25 == 24:
            slope = gradient(theta)
            gap = theta[:p] @ slope[:p] - over.minimiser(slope[:p]).dot(slope[:p])
            bound = of.offset_bound(1.0)
            gap += theta[p] * slope[p] + bound * abs(slope[p])
            if gap < 1e-5:
                break
    margins = data.held_x @ theta[:p] + theta[p]
    score = data.score(np.where(margins > 0, 1.0, -1.0) if data.classifies else margins)
    return Reference(risk(data, of, theta[:p], theta[p]), score, float(gap))


def peak_of(run: Callable[[], Any]) -> tuple[Any, float, float]:
    """What `run` returns, its processor time in seconds, and the peak memory meanwhile in MB.

    The memory is the whole process's, with the data. Its high-water mark is started afresh, and
    so is the one that `results.keep` prints; where that is not possible it is that of the run.
    """
    status = Path("/proc/self/status")
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        status = None
    start = time.process_time()
    result = run()
    seconds = time.process_time() - start
    if status is None:
        return result, seconds, peak_rss_mb()
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return result, seconds, int(line.split()[1]) / 1024


def measure(
    data: Data, entry: Entry, epsilon: float, seeds: int, best_of: Callable[..., Reference]
) -> dict[str, Any]:
    """One row of the table. Raises InvalidArgument if the entry does not apply."""
    found, exact_score = [], np.nan
    for seed in range(seeds):
        model = entry.make(data, epsilon, seed)
        _, seconds, memory = peak_of(lambda model=model: model.fit(data.x, data.y))
        score = data.score(model.predict(data.held_x))
        excess, used = np.nan, np.nan
        if hasattr(model, "coef_"):
            coef, intercept = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
            used = np.count_nonzero(coef)
            if entry.problem is not None:
                of, over = entry.problem(data)
                best = best_of(of, over)
                excess = risk(data, of, coef, intercept) - best.risk
                exact_score = best.score
        found.append((score, excess, used, seconds, memory))
    score, excess, used, seconds, _ = np.mean(found, axis=0)
    return {
        "data": data.name,
        "solver": entry.label,
        "epsilon": epsilon,
        "score": float(score),
        "sd": float(np.std([f[0] for f in found])),
        "exact": exact_score,
        "excess risk": float(excess),
        "non-zeros": float(used),
        "steps": int(getattr(model, "n_iter_", 0)),
        "CPU s": float(seconds),
        "peak MB": float(max(f[-1] for f in found)),
    }


class Menu:
    """The rows measured so far, and the reasons of those that do not apply."""

    def __init__(self, name: str, afresh: bool) -> None:
        self.name, path = name, FOLDER / f"{name}.json"
        kept = {} if afresh or not path.exists() else json.loads(path.read_text(encoding="utf-8"))
        self.rows: list[dict[str, Any]] = kept.get("rows", [])
        self.refused: list[dict[str, str]] = kept.get("does not apply", [])
        self.references: dict[str, dict[str, Any]] = kept.get("references", {})

    def forget(self, data: str, label: str) -> None:
        for rows in (self.rows, self.refused):
            rows[:] = [r for r in rows if (r["data"], r["solver"]) != (data, label)]

    def refuse(self, data: str, label: str, reason: str) -> None:
        """Keep a reason, once for each data set and entry."""
        if not any((r["data"], r["solver"]) == (data, label) for r in self.refused):
            self.refused.append({"data": data, "solver": label, "reason": reason})

    def keep(self, seeds: int) -> None:
        content = {
            "delta": DELTA,
            "adjacency": ADJACENCY,
            "seeds": seeds,
            "references": self.references,
            "rows": self.rows,
            "does not apply": self.refused,
        }
        keep(self.name, content)

    def serve(self, name: str, entries: list[Entry], epsilons: Any, seeds: int) -> None:
        """Measure the entries on one data set, and print its table."""
        data = LOADERS[name]()
        known = {
            "task": data.task,
            "rows": data.x.shape[0],
            "columns": data.x.shape[1],
            "without privacy": without_privacy(name),
            "without features": data.score_without_features(),
        }
        self.references[name] = self.references.get(name, {}) | known

        @cache
        def best_of(of: Loss, over: ConstraintSet) -> Reference:
            found = exact(data, of, over)
            self.references[name][f"{of.name} over {over}"] = found._asdict()
            return found

        for entry in track(entries, name):
            self.forget(name, entry.label)
            if entry.task not in (None, data.task):
                continue
            for epsilon in epsilons:
                try:
                    self.rows.append(measure(data, entry, epsilon, seeds, best_of))
                except InvalidArgument as refusal:
                    self.refuse(name, entry.label, reason_of(refusal))
        mine = [
            {k: v for k, v in row.items() if k != "data"}
            for row in self.rows
            if row["data"] == name
        ]
        mine += [{"solver": "DP-SGD, tuned", **row} for row in dp_sgd(name, mine)]
        if mine:
            score = "accuracy" if data.classifies else "R2"
            show(
                f"{name}, {known['rows']:,} x {known['columns']:,}: {score} "
                f"{known['without privacy']:.4f} without privacy, "
                f"{known['without features']:.4f} without features",
                mine,
            )

    def show_refused(self) -> None:
        """One line for each entry and reason, with the data sets it concerns."""
        by_reason: dict[tuple[str, str], list[str]] = {}
        for r in self.refused:
            by_reason.setdefault((r["solver"], r["reason"]), []).append(r["data"])
        lines = [
            {"solver": label, "does not apply to": ", ".join(names), "reason": reason}
            for (label, reason), names in by_reason.items()
        ]
        if lines:
            show("Does not apply", lines)


def reason_of(refusal: InvalidArgument) -> str:
    """The reason without what differs between data sets."""
    if isinstance(refusal, Incompatible):
        this, _, because, instead = refusal.parts
        return f"{this}: {because}. {instead}."
    return str(refusal)


def dp_sgd(name: str, like: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
    """What benchmarks/dp_sgd.py kept for this data, with the columns of `like` if given."""
    path = FOLDER / "dp_sgd.json"
    if not path.exists():
        return []
    kept = [r for r in json.loads(path.read_text(encoding="utf-8"))["rows"] if r["data"] == name]
    columns = list(like[0])[1:] if like else ["epsilon", "score"]
    return [{c: r.get("accuracy" if c == "score" else c, "") for c in columns} for r in kept]


def plot(menu: Menu, path: Path) -> None:
    """Score against epsilon: a panel for each data set, a line for each entry."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    names = [name for name in LOADERS if name in menu.references]
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(3.8 * columns, 3.1 * lines + 0.6), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    solvers = list(dict.fromkeys(row["solver"].split(",")[0] for row in menu.rows))
    colours = {solver: colormaps["tab10"](i % 10) for i, solver in enumerate(solvers)}
    drawn: dict[str, Any] = {}
    for axes, name in zip(panels, names, strict=False):
        known, mine = menu.references[name], [r for r in menu.rows if r["data"] == name]
        for label in dict.fromkeys(row["solver"] for row in mine):
            x, y, sd = zip(
                *((r["epsilon"], r["score"], r["sd"]) for r in mine if r["solver"] == label),
                strict=True,
            )
            style = {"color": colours[label.split(",")[0]], "markersize": 4, "linewidth": 1.3}
            drawn[label] = axes.errorbar(x, y, sd, fmt="s:" if "l2" in label else "o-", **style)
        peer = dp_sgd(name)
        if peer:
            x, y = zip(*((r["epsilon"], r["score"]) for r in peer), strict=True)
            (drawn["DP-SGD, tuned on the held-out rows"],) = axes.plot(x, y, "^--", color="#475569")
        for key, line in (("without privacy", "--"), ("without features", ":")):
            drawn[key] = axes.axhline(known[key], color="#94a3b8", linestyle=line, linewidth=1)
        worst = known["without features"]
        axes.set(xscale="log", title=f"{name}, {known['rows']:,} x {known['columns']:,}")
        axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS], minor=False)
        axes.minorticks_off()
        axes.set_ylabel("accuracy" if known["task"] == "classification" else "R2")
        axes.set_ylim(bottom=worst - 0.15 * (known["without privacy"] - worst))
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes in panels[max(0, len(names) - columns) : len(names)]:
        axes.set_xlabel("epsilon")
    figure.suptitle(f"Score on held-out rows; delta {DELTA:g}, {ADJACENCY}", fontsize="medium")
    figure.legend(
        list(drawn.values()), list(drawn), loc="outside lower center", ncols=3, frameon=False,
        fontsize="small",
    )  # fmt: skip
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two seeds and two epsilons")
    parser.add_argument("--data", choices=list(LOADERS), action="append", help="only this data")
    solvers = list(dict.fromkeys(entry.solver for entry in MENU))
    parser.add_argument("--solver", choices=solvers, action="append", help="only this solver")
    options = parser.parse_args()
    seeds, epsilons = (2, EPSILONS[1::2]) if options.quick else (SEEDS, EPSILONS)
    entries = [e for e in MENU if options.solver is None or e.solver in options.solver]
    name = "menu-quick" if options.quick else "menu"
    menu = Menu(name, afresh=options.data is None and options.solver is None)
    for data in options.data or LOADERS:
        menu.serve(data, entries, epsilons, seeds)
        menu.keep(seeds)
    menu.show_refused()
    plot(menu, FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
