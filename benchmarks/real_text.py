"""Classifiers of real texts: class sums beside noisy gradients.

Texts become logs of counts of hashed words, brought to length 1: nothing is learned from rows, not
even an idf. Stop words are scikit-learn's public list. Five random quarters are held out, one after
the other, and each fit has noise of its own.

    python benchmarks/real_text.py [--epsilon 0.5 1 3 10] [--splits 5] [--solvers NAME ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from riata import Bounds, PrivateLogisticRegression
from riata.solvers import ClassSums

from menu_data import lines
from results import keep, show

DELTA = 1e-6
UNIT = Bounds(x=1.0, norm="l2")

Rows = tuple[Any, np.ndarray]

#: What is compared. The steps after the first are corrections.
SOLVERS: dict[str, Any] = {
    "class-sums": "class-sums",
    "class-sums, 1 step": ClassSums(steps=1),
    "class-sums, 9 steps": ClassSums(steps=9),
    "noisy-gradient": "noisy-gradient",
}


def log_counts(texts: list[str], bits: int, stop_words: bool) -> Any:
    """1 + log of the count of each hashed word, in rows of length 1."""
    words = HashingVectorizer(
        n_features=2**bits, alternate_sign=False, norm=None,
        stop_words=list(ENGLISH_STOP_WORDS) if stop_words else None,
    )  # fmt: skip
    rows = sparse.csr_array(words.transform(texts))
    rows.data = 1 + np.log(rows.data)
    lengths = np.sqrt(rows.power(2).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ rows)


def clickbait(bits: int = 14) -> Rows:
    """32,000 headlines, half of them clickbait."""
    rows = lines("clickbait_headlines.jsonl.gz")
    x = log_counts([r["text"] for r in rows], bits, stop_words=False)
    return x, np.array([r["label"] == 1 for r in rows])


def newsgroups(bits: int = 16, stop_words: bool = True) -> Rows:
    """18,846 posts, comp.* against the other groups."""
    rows = lines("20newsgroups.jsonl.gz")
    x = log_counts([r["text"] for r in rows], bits, stop_words)
    return x, np.array([r["label"].startswith("comp.") for r in rows])


LOADERS: dict[str, Callable[[], Rows]] = {
    "clickbait, 2^14": cache(clickbait),
    "clickbait, 2^18": cache(lambda: clickbait(18)),
    "20newsgroups, 2^16, no stop words": cache(newsgroups),
    "20newsgroups, 2^14": cache(lambda: newsgroups(14, stop_words=False)),
}


def without_privacy(x: Any, y: np.ndarray) -> float:
    fitted, held, labels, truth = train_test_split(x, y, test_size=0.25, random_state=0)
    models = [LogisticRegression(C=c, max_iter=1000) for c in (10, 100)]
    return max(m.fit(fitted, labels).score(held, truth) for m in models)


def scores(x: Any, y: np.ndarray, epsilon: float, solver: Any, splits: int) -> list[float]:
    found = []
    for split in range(splits):
        fitted, held, labels, truth = train_test_split(x, y, test_size=0.25, random_state=split)
        model = PrivateLogisticRegression(
            epsilon, DELTA, bounds=UNIT, classes=[False, True], solver=solver, random_state=split
        )
        found.append(float(model.fit(fitted, labels).score(held, truth)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 3.0, 10.0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS))
    parser.add_argument("--data", nargs="+", default=list(LOADERS))
    asked = parser.parse_args()
    rows = []
    for name in asked.data:
        x, y = LOADERS[name]()
        for epsilon in asked.epsilon:
            for solver in asked.solvers:
                start = time.perf_counter()
                found = scores(x, y, epsilon, SOLVERS[solver], asked.splits)
                seconds = (time.perf_counter() - start) / asked.splits
                mean, spread = float(np.mean(found)), float(np.std(found))
                rows.append(
                    {"data": name, "epsilon": epsilon, "solver": solver, "accuracy": mean,
                     "spread": spread, "seconds": seconds}
                )  # fmt: skip
                print(*rows[-1].values(), flush=True)
        rows.append(
            {"data": name, "epsilon": float("inf"), "solver": "scikit-learn",
             "accuracy": without_privacy(x, y), "spread": 0.0, "seconds": 0.0}
        )  # fmt: skip
    show("Accuracy on held-out texts", rows)
    keep("real_text", {"delta": DELTA, "splits": asked.splits, "rows": rows})


if __name__ == "__main__":
    main()
