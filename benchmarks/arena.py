"""Tables with few columns: riata's default, its solvers, and peers with oracle settings.

Replace-one, delta 1e-6, a quarter held out. Peers have the settings that are best on the held-out
rows. A win or a loss is a difference of more than two standard errors and 0.003.

    python benchmarks/arena.py [--quick] [--set housing ...] [--epsilon 0.3 1 3] [--bounds l2]
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from riata import PrivateLasso, PrivateLogisticRegression

import arena_data
import arena_peers
from arena_data import Table
from results import show

DELTA, TIE = 1e-6, 0.003
SETS = arena_data.REAL | arena_data.DESIGNS


def score(table: Table, y: np.ndarray, margins: np.ndarray) -> float:
    """The area under the curve, or R2 of predictions inside the public range."""
    if table.classifies:
        return float(roc_auc_score(y, margins))
    return float(r2_score(y, np.clip(margins, -table.bounds.y, table.bounds.y)))


def split(table: Table, seed: int) -> tuple[np.ndarray, ...]:
    return tuple(train_test_split(table.x, table.y, test_size=0.25, random_state=seed))


def own(table: Table, solver: str, epsilon: float, seed: int) -> float:
    x, held, y, truth = split(table, seed)
    facts = {"bounds": table.bounds, "solver": solver, "random_state": seed}
    if table.classifies:
        facts["classes"] = [-1.0, 1.0]
        model = PrivateLogisticRegression(epsilon, DELTA, **facts).fit(x, y)
        return score(table, truth, model.decision_function(held))
    return score(table, truth, PrivateLasso(epsilon, DELTA, **facts).fit(x, y).predict(held))


def peers(table: Table, epsilon: float, seed: int) -> dict[str, float]:
    """Rows with a constant beside them; a bound on entries counts as the length it implies."""
    x, held, y, truth = split(table, seed)
    length = table.bounds.row_norm("l2", x.shape[1])
    beside = length / 2
    x, held = (np.hstack([rows, np.full((len(rows), 1), beside)]) for rows in (x, held))
    length, most = float(np.hypot(length, beside)), table.bounds.y or 1.0
    mu, rng = arena_peers.strength(epsilon, DELTA), np.random.default_rng(seed)
    tried = arena_peers.noisy_descents(x, y, table.classifies, length, mu, rng)
    return {
        "AdaSSP": score(table, truth, held @ arena_peers.ada_ssp(x, y, length, most, mu, rng)),
        "noisy descent": max(score(table, truth, held @ w) for w in tried),
    }


def ceiling(table: Table, seed: int) -> float:
    x, held, y, truth = split(table, seed)
    if table.classifies:
        model = LogisticRegression(C=10.0, max_iter=1_000).fit(x, y)
        return score(table, truth, model.decision_function(held))
    return score(table, truth, Ridge(1e-3).fit(x, y).predict(held))


def verdict(mine: list[float], theirs: list[float]) -> str:
    gaps = np.subtract(mine, theirs)
    sure = max(TIE, 2 * float(gaps.std(ddof=1)) / len(gaps) ** 0.5)
    return "win" if gaps.mean() > sure else "loss" if gaps.mean() < -sure else "tie"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 0.3, 1.0, 3.0, 8.0])
    parser.add_argument("--bounds", choices=["l2", "inf"], default="l2")
    parser.add_argument("--solver", nargs="+", default=["auto", "scaled-gradient"])
    parser.add_argument("--quick", action="store_true", help="three splits, three epsilons, no GD")
    given = parser.parse_args()
    splits = range(3 if given.quick else 5)
    epsilons = [0.3, 1.0, 3.0] if given.quick else given.epsilon
    rows, count = [], Counter()
    for name in given.set:
        table = SETS[name]()
        table = table if given.bounds == "l2" else table.entrywise()
        for epsilon in epsilons:
            found = {s: [own(table, s, epsilon, k) for k in splits] for s in given.solver}
            if not given.quick:
                others = [peers(table, epsilon, k) for k in splits]
                found |= {peer: [each[peer] for each in others] for peer in others[0]}
            for rival, scores in found.items():
                if rival != "auto" and "auto" in found:
                    count[rival, verdict(found["auto"], scores)] += 1
            means = {rival: float(np.mean(scores)) for rival, scores in found.items()}
            row = {"set": name, "epsilon": epsilon} | means | {"ceiling": ceiling(table, 0)}
            rows.append(row)
            print(row, flush=True)
    show("arena", rows)
    for (rival, result), times in sorted(count.items()):
        print(f"auto against {rival}: {times} x {result}")


if __name__ == "__main__":
    main()
