"""Three classes or more: all of them together beside each against the rest.

Texts of four, ten and 77 classes, digits, the cuts of diamonds and a synthetic mixture, with true
and with shuffled labels. It prints the accuracy, the log-loss of the probabilities, and by how much
that exceeds the log-loss of the class frequencies at worst.

    python benchmarks/classes.py [--sets digits mixture] [--solvers auto scaled-gradient]
                                 [--epsilon 0.3 1 3] [--splits 5] [--shuffled]
"""

from __future__ import annotations

import argparse
import csv
import gzip
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from real_text import log_counts
from riata import Bounds, PrivateLogisticRegression

from menu_data import FOLDER, lines

DELTA = 1e-6
TEXT = Bounds(x=1.0, norm="l2", nonnegative=True)

Table = tuple[Any, np.ndarray, Bounds]


def of_texts(texts: list[str], labels: list[str]) -> Table:
    return log_counts(texts, 14, stop_words=False), np.unique(labels, return_inverse=True)[1], TEXT


def agnews() -> Table:
    """7,600 news in four classes."""
    with gzip.open(FOLDER / "agnews_test.csv.gz", "rt") as file:
        rows = [row for row in csv.reader(file) if row[0].isdigit()]
    return of_texts([" ".join(row[1:]) for row in rows], [row[0] for row in rows])


def newsgroups() -> Table:
    """Every second of the twenty newsgroups."""
    rows = lines("20newsgroups.jsonl.gz")
    kept = sorted({str(row["label"]) for row in rows})[::2]
    rows = [row for row in rows if str(row["label"]) in kept]
    return of_texts([row["text"] for row in rows], [str(row["label"]) for row in rows])


def banking() -> Table:
    """13,083 queries in 77 classes."""
    rows = lines("banking77.jsonl.gz")
    return of_texts([row["text"] for row in rows], [str(row["label"]) for row in rows])


def digits() -> Table:
    x, y = load_digits(return_X_y=True)
    return x / 16, y, Bounds(x=5.0, norm="l2", nonnegative=True)


def cuts() -> Table:
    """The cut of every fourth diamond."""
    d = pd.read_csv(FOLDER / "diamonds.csv.gz")
    numbers = [
        np.clip(d.carat / 2.5 - 1, -1, 1), np.clip((d.depth - 62) / 10, -1, 1),
        np.clip((d.table - 58) / 15, -1, 1), np.log(d.price) / 5 - 1.6,
        d.x / 5 - 1, d.y / 5 - 1, d.z / 4 - 1,
    ]  # fmt: skip
    kinds = [pd.get_dummies(d[name]).to_numpy(float) for name in ("color", "clarity")]
    y = d["cut"].astype("category").cat.codes.to_numpy()
    return np.column_stack([*numbers, *kinds])[::4], y[::4], Bounds(x=3.5, norm="l2")


def mixture() -> Table:
    """8,000 rows of five classes that are not equally many, in 20 correlated columns."""
    rng = np.random.default_rng(5)
    means = 0.35 * rng.standard_normal((5, 20))
    y = rng.choice(5, 8_000, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    spread = rng.standard_normal((20, 20)) / 4 + 0.6 * np.eye(20)
    x = 0.3 * (means[y] + rng.standard_normal((8_000, 20)) @ spread)
    return np.clip(x, -1, 1), y, Bounds(x=2.5, norm="l2")


SETS = {each.__name__: each for each in (agnews, newsgroups, banking, digits, cuts, mixture)}


def scores(table: Table, solver: str, epsilon: float, seed: int, shuffled: bool) -> list[float]:
    """The accuracy, that of the largest class, and the log-loss of the model and of frequencies."""
    x, y, bounds = table
    rng = np.random.default_rng(100 + seed)
    y = rng.permutation(y) if shuffled else y
    order, k = rng.permutation(len(y)), len(y) * 3 // 4
    ours, theirs = order[:k], order[k:]
    labels = np.arange(y.max() + 1)
    model = PrivateLogisticRegression(
        epsilon, DELTA, bounds=bounds, classes=labels, solver=solver, random_state=seed
    ).fit(x[ours], y[ours])
    shares = np.bincount(y[ours], minlength=len(labels)) / k
    constant = np.tile(shares, (len(theirs), 1))
    return [
        model.score(x[theirs], y[theirs]),
        float(np.mean(y[theirs] == shares.argmax())),
        log_loss(y[theirs], model.predict_proba(x[theirs]), labels=labels),
        log_loss(y[theirs], constant, labels=labels),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*SETS], choices=SETS)
    parser.add_argument("--solvers", nargs="+", default=["auto"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.3, 1.0, 3.0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--shuffled", action="store_true")
    given = parser.parse_args()
    for name in given.sets:
        table = SETS[name]()
        for solver in given.solvers:
            for epsilon in given.epsilon:
                runs = range(given.splits)
                found = np.array(
                    [scores(table, solver, epsilon, seed, given.shuffled) for seed in runs]
                )
                accuracy, largest, ours, constant = found.mean(axis=0)
                worst = (found[:, 2] - found[:, 3]).max()
                print(
                    f"{name:10} {solver:16} epsilon {epsilon:<4g} accuracy {accuracy:.3f} "
                    f"(largest class {largest:.3f}), log-loss {ours:.3f} (frequencies "
                    f"{constant:.3f}, worst excess {worst:.3f})",
                    flush=True,
                )


if __name__ == "__main__":
    main()
