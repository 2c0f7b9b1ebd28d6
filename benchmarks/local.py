"""The local model: users needed, accuracy on real flights, harm, speed and memory.

F is the share of the achievable gain over the trivial predictor. Five seeds unless said.

    RIATA_DATA=... python benchmarks/local.py            # all of it
    python benchmarks/local.py --only mean logistic      # some of it
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from local_peers import PEERS, RIDGES, noisy_moments, ridge_from
from riata import Bounds, LocalLasso, LocalLogisticRegression, LocalSparseMean
from riata.local import Aggregator, Client, Task
from riata.local.learners.mean import threshold_mean
from riata.local.paper import PaperL1Regression, PaperSparseMean
from riata.local.randomize import randomize
from riata.mechanisms.noise import Noise

from local_data import (
    DIAMOND_BOUNDS,
    TEST,
    Choosing,
    Decaying,
    diamonds,
    flights,
    share_of_gain,
    sparse_people,
)
from results import keep, show

SEEDS = range(5)
BALL = Bounds(x=1.0, y=1.0, norm="l2")
LATE = 15.0


def regression_share(n: int, d: int, epsilon: float, seed: int, penalty: str = "l2") -> float:
    people = Decaying(d, seed)
    x, y = people.draw(n)
    model = LocalLasso(
        epsilon, bounds=BALL, penalty=penalty, fit_intercept=False, random_state=seed
    ).fit(x, y)
    test = people.draw(TEST)
    return share_of_gain(test.y, model.predict(test.x), test.x)


def share_of_algorithm_3(n: float, d: int, epsilon: float, seed: int) -> float:
    """Algorithm 3 with a valid sigma on the same population, its sums drawn from their law."""
    people = Decaying(d, seed)
    x, y = people.draw(TEST)
    second, cross, square = x.T @ x / TEST, x.T @ y / TEST, float(y @ y) / TEST
    radius = float(np.abs(people.theta).sum())  # the smallest ball that holds the answer
    model = PaperL1Regression(
        epsilon=epsilon, delta=1e-6, dimension=None, radius=radius, random_state=seed
    ).fit_moments(round(n), second, cross, square)
    test = people.draw(TEST)
    return share_of_gain(test.y, test.x @ model.coef_, test.x)


def users_of_algorithm_3(d: int, epsilon: float, start: float) -> tuple[float, float]:
    for exponent in np.arange(start, 16.01, 0.25):
        found = [share_of_algorithm_3(10**exponent, d, epsilon, seed) for seed in SEEDS]
        if np.mean(found) >= 0.5:
            break
    return float(10**exponent), float(np.mean(found))


def users() -> list[dict[str, Any]]:
    """The smallest n on a grid of quarter decades with a mean F of at least 0.5."""
    rows = []
    for d in (10, 100):
        for epsilon in (1.0, 4.0):
            for exponent in np.arange(2.0, 7.01, 0.25):
                n = round(10**exponent)
                share = np.mean([regression_share(n, d, epsilon, seed) for seed in SEEDS])
                if share >= 0.5:
                    break
            paper, paper_share = users_of_algorithm_3(d, epsilon, exponent + 2.0)
            rows.append(
                {
                    "d": d,
                    "epsilon": epsilon,
                    "users": n,
                    "F": float(share),
                    "users, Algorithm 3": f"{paper:.3g}",
                    "its F": paper_share,
                    "ratio": paper / n,
                }
            )
    return rows


def mean() -> list[dict[str, Any]]:
    """10 of 10,000 coordinates, 100,000 people, epsilon 1."""
    errors: dict[str, list[float]] = {"soft": [], "hard": []}
    for seed in SEEDS:
        truth, x = sparse_people(100_000, 10_000, 10, seed)
        plain = LocalSparseMean(1.0, bounds=BALL, threshold="none", random_state=seed).fit(x)
        for how, found in errors.items():
            kept = threshold_mean(plain.mean_, float(plain.mean_error_[0]), how)
            found.append(float(np.linalg.norm(kept - truth) / np.linalg.norm(truth)))
    rows = [
        {"sparse mean": how, "relative error": float(np.mean(found)), "worst": max(found)}
        for how, found in errors.items()
    ]
    truth, x = sparse_people(20_000, 10_000, 10, 0)
    paper = PaperSparseMean(epsilon=1.0, delta=1e-6, random_state=0).fit(x.toarray())
    error = float(np.linalg.norm(paper.mean_ - truth) / np.linalg.norm(truth))
    rows.append({"sparse mean": "Algorithm 2, n = 20,000", "relative error": error, "worst": error})
    return rows


def logistic_share(n: int, d: int, epsilon: float, seed: int) -> float:
    people = Choosing(d, seed)
    x, y = people.draw(n)
    model = LocalLogisticRegression(
        epsilon, bounds=BALL, fit_intercept=False, random_state=seed
    ).fit(x, y)
    test = people.draw(TEST)
    best = LogisticRegression(C=1e6, fit_intercept=False).fit(test.x, test.y)
    least = log_loss(test.y, best.predict_proba(test.x))
    return float((np.log(2) - log_loss(test.y, model.predict_proba(test.x))) / (np.log(2) - least))


def logistic() -> list[dict[str, Any]]:
    rows = []
    for n in (10_000, 100_000, 1_000_000):
        shares = [logistic_share(n, 10, 1.0, seed) for seed in SEEDS]
        rows.append({"logistic, d = 10, epsilon 1": n, "F": float(np.mean(shares)),
                     "worst": float(np.min(shares))})  # fmt: skip
    return rows


def flight_task(kind: str, names: dict[str, list[str]], epsilon: float = 1.0) -> Task:
    """Bounds and weights from public knowledge: delays matter more than names."""
    delay = {"name": "dep_delay", "kind": "number", "bounds": [-30, 90], "center": 0}
    others = [
        {"name": name, "kind": "choice", "choices": levels, "weight": 0.2}
        for name, levels in names.items()
    ]
    target: dict[str, Any] = {"name": "late", "kind": "yes-no"}
    if kind == "linear":
        target = {"name": "arr_delay", "kind": "number", "bounds": [-60, 120], "center": 0}
    return Task.from_table(
        {"kind": kind, "epsilon": epsilon, "features": [delay, *others], "target": target}
    )


def flight_people(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Encoded flights, and their delays."""
    data = flights()
    parts, at = [], 0
    for feature in task.encoding.features:
        block = data.x[:, at : at + feature.columns]
        parts.append(feature.weight * block if feature.kind == "choice" else feature.scale(block))
        at += feature.columns
    return np.hstack(parts) / task.encoding.length, data.delay


def flight_case(kind: str, seed: int, n: int = 300_000) -> float:
    task = flight_task(kind, flights().names)
    encoded, delay = flight_people(task)
    late = delay > LATE
    assert task.target is not None
    targets = np.where(late, 1.0, -1.0) if kind == "logistic" else task.target.scale(delay)
    order = np.random.default_rng(seed).permutation(len(encoded))
    train, test = order[:n], order[n:]
    reports = randomize(task, encoded[train], targets[train], Noise(seed))
    decision = Aggregator(task, expected=n).add(reports).solve().decision(encoded[test])
    if kind == "logistic":
        return float(roc_auc_score(late[test], decision))
    truth = np.clip(delay[test], -60, 180)
    return float(1 - np.mean((truth - task.target.reach * decision) ** 2) / np.var(truth))


def real_flights() -> list[dict[str, Any]]:
    if "RIATA_DATA" not in os.environ:
        return [{"300,000 flights, epsilon 1": "left out: RIATA_DATA names no folder"}]
    rows = []
    for kind, what in (("linear", "R2 of the delay"), ("logistic", "AUC of late")):
        found = [flight_case(kind, seed) for seed in SEEDS]
        rows.append({"300,000 flights, epsilon 1": what, "mean": float(np.mean(found)),
                     "worst": float(np.min(found))})  # fmt: skip
    return rows


def real_peers() -> list[dict[str, Any]]:
    """R2 beside simple peers, whose ridge is the best on the held-out people.

    People are drawn with replacement from three quarters of the set, so that there are enough.
    """
    if "RIATA_DATA" not in os.environ:
        return [{"peers": "left out: RIATA_DATA names no folder"}]
    rows = []
    for name in ("diamonds 2", "diamonds 6", "flights"):
        for n in (40_000, 300_000):
            for epsilon in (1.0, 2.0, 4.0):
                if name == "flights":
                    task = flight_task("linear", flights().names, epsilon)
                    encoded, y = flight_people(task)
                else:
                    columns = list(DIAMOND_BOUNDS)[: int(name.split()[1])]
                    task = diamond_task(columns, epsilon)
                    x, y = diamonds(columns)
                    encoded = task.encoding.encode_array(x)
                assert task.target is not None
                found = [
                    beside_peers(task, encoded, task.target.scale(y), n, seed) for seed in SEEDS
                ]
                rows.append({"set": name, "people": n, "epsilon": epsilon}
                            | {key: float(np.mean([one[key] for one in found]))
                               for key in found[0]})  # fmt: skip
    return rows


def diamond_task(columns: list[str], epsilon: float) -> Task:
    features = [{"name": one, "kind": "number", "bounds": DIAMOND_BOUNDS[one]} for one in columns]
    target = {"name": "price", "kind": "number", "bounds": [-1, 1]}
    return Task.from_table(
        {"kind": "linear", "epsilon": epsilon, "features": features, "target": target}
    )


def beside_peers(
    task: Task, encoded: np.ndarray, y: np.ndarray, n: int, seed: int
) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(encoded))
    test, rest = order[: len(order) // 4], order[len(order) // 4 :]
    people = rng.choice(rest, n)

    def score(predicted: np.ndarray) -> float:
        off = y[test] - np.clip(predicted, -1, 1)
        return float(1 - np.mean(off**2) / np.var(y[test]))

    reports = randomize(task, encoded[people], y[people], Noise(seed))
    model = Aggregator(task, expected=n).add(reports).solve()
    # Peers know the bounds of each column alone: entries in [-1, 1].
    weights = task.encoding.by_column(lambda feature: feature.weight)
    rows = encoded * task.encoding.length / weights
    scores = {"riata": score(model.decision(encoded[test]))}
    for name in PEERS:
        moments = noisy_moments(name, rows[people], y[people], task.epsilon, rng)
        scores[name] = max(
            score(rows[test] @ theta + offset)
            for theta, offset in (ridge_from(moments, ridge) for ridge in RIDGES)
        )
    return scores


def harm() -> list[dict[str, Any]]:
    """The worst F of 100 runs with 1,000 people, where there is hardly anything to learn."""
    rows = []
    for epsilon in (0.5, 1.0, 4.0):
        for d in (10, 100):
            ridge = [regression_share(1000, d, epsilon, seed) for seed in range(100)]
            lasso = [regression_share(1000, d, epsilon, seed, "l1") for seed in range(100)]
            classes = [logistic_share(1000, d, epsilon, seed) for seed in range(100)]
            found = {"l2": ridge, "l1": lasso, "logistic": classes}
            rows.append({"epsilon": epsilon, "d": d}
                        | {f"worst F, {name}": min(shares) for name, shares in found.items()}
                        | {f"mean, {name}": float(np.mean(shares))
                           for name, shares in found.items()})  # fmt: skip
    return rows


def table_of(d: int, epsilon: float, kind: str = "linear") -> Task:
    features = [{"name": "x", "kind": "vector", "size": d, "bounds": [-1, 1]}]
    target = {"name": "y", "kind": "number", "bounds": [-1, 1]}
    table = {"kind": kind, "epsilon": epsilon, "features": features, "length": 1.0}
    return Task.from_table(table | ({} if kind == "mean" else {"target": target, "intercept": 0.0}))


def speed() -> list[dict[str, Any]]:
    """Per-thread CPU time, best of three, beside a bare generation of as many normal numbers."""
    d, n = 127, 200_000  # and one coordinate that fills the length
    rng = np.random.default_rng(0)
    task = table_of(d, 4.0)
    row = rng.standard_normal(d) / d
    seconds = best_of(lambda: [Client(task).report(row, 0.5) for _ in range(50)]) / 50
    rows = [{"what": "client, d = 128, epsilon 4", "microseconds": 1e6 * seconds,
             "a second": 1 / seconds, "of bare NumPy": "-"}]  # fmt: skip
    seeds = rng.integers(0, 2**64, n, dtype=np.uint64)
    bare = best_of(lambda: rng.standard_normal((n, d + 1))) / n
    for name, patience in (("NumPy", 1 << 62), ("numba", 0)):
        from riata.local import generator

        generator.PATIENCE = patience
        Aggregator(task).add(seeds[:1000])
        spent = best_of(lambda: Aggregator(table_of(d, 4.0), expected=n).add(seeds)) / n
        rows.append({"what": f"aggregation, d = 128, {name}", "microseconds": 1e6 * spent,
                     "a second": 1 / spent, "of bare NumPy": f"{spent / bare:.2f}"})  # fmt: skip
    return rows


def best_of(work: Any) -> float:
    found = []
    for _ in range(3):
        start = time.thread_time()
        work()
        found.append(time.thread_time() - start)
    return min(found)


def memory() -> list[dict[str, Any]]:
    """Growth of the memory over ten million reports at d = 256, in a process of its own."""
    code = "import local; local.stream()"
    folder = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    start, end = map(float, done.stdout.split())
    return [{"reports, d = 256": 10_000_000, "MB at the start": start, "MB at most": end,
             "growth": end - start}]  # fmt: skip


def stream() -> None:
    """Resident memory, because the peak of a child counts its parent's too."""
    aggregator = Aggregator(table_of(255, 1.0), expected=10_000_000)
    rng = np.random.default_rng(0)
    aggregator.add(rng.integers(0, 2**64, 200_000, dtype=np.uint64))
    start = most = resident_mb()
    for _ in range(98):
        aggregator.add(rng.integers(0, 2**64, 100_000, dtype=np.uint64))
        most = max(most, resident_mb())
    print(start, most)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


PARTS = {
    "users": users,
    "mean": mean,
    "logistic": logistic,
    "flights": real_flights,
    "peers": real_peers,
    "harm": harm,
    "speed": speed,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    found = {}
    for name in parser.parse_args().only:
        found[name] = PARTS[name]()
        show(name, found[name])
    keep("local" if len(found) == len(PARTS) else "local-" + "-".join(found), found)


if __name__ == "__main__":
    main()
