"""Where the numbers in riata/solvers/class_sums.py come from.

For each of them, alternatives around the shipped value: by how much the share of errors on held-out
rows changes, as a mean of ratios over synthetic texts, epsilons and seeds. Below 1 is better. No
real data is looked at.

    python benchmarks/tune_class_sums.py [--only NAME ...] [--epsilon 0.5 1 3] [--seeds 2]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from riata import Bounds, PrivateLogisticRegression
from riata.queries import class_sums as queries
from riata.solvers import class_sums as solver

from menu_data import zipf
from results import keep, show

DELTA = 1e-6
UNIT = Bounds(x=1.0, norm="l2")

Rows = tuple[Any, np.ndarray]

#: What is tried in place of each number.
ALTERNATIVES: dict[str, tuple[Any, ...]] = {
    "COUNTED": (0.05, 0.2),
    "MARGINS_SHARE": (0.015, 0.06),
    "N_SCORE_BINS": (12, 16, 40, 64),
    "VISIBLE": (1.0, 2.0, 4.0),
    "COMMON": (2.0, 8.0),
    "GUESSED_VARIANCE": (0.03, 0.3),
    "LEAST_VARIANCE": (0.001, 0.01),
    "MOST_VARIANCE": (0.3, 1.0),
    "SAMPLED": (0.0, 0.5, 2.0),
    "MOST_ODD": (0.9, 0.995),
    "CORRECTIONS": (2, 4, 16),
    "CORRECTIONS_SHARE": (0.15, 0.5),
    "CORRECTED_SLOPE": (0.25, 1.0),
    "STEP": (0.25, 1.0),
    "LONGEST": (128.0, 2048.0),
    "QUIET": (0.0, 1 / 8000, 1 / 2000),
}


def _frequencies(p: int) -> np.ndarray:
    frequency = 1 / (np.arange(p) + 2.7)
    return frequency / frequency.sum()


def _unit_rows(row: np.ndarray, word: np.ndarray, n: int, p: int) -> Any:
    """Logs of counts, in rows of length 1."""
    counts = sparse.csr_array((np.ones(len(word)), (row, word)), shape=(n, p))
    counts.sum_duplicates()
    counts.data = 1 + np.log(counts.data)
    lengths = np.sqrt(counts.power(2).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ counts)


def _lengths(rng: np.random.Generator, n: int, length: float, spread: float) -> np.ndarray:
    found = length * np.exp(spread * rng.standard_normal(n) - spread**2 / 2)
    return np.maximum(3, np.round(found)).astype(int)


def independent(
    n: int, p: int, length: float, spread: float, odds: float, positive: float, seed: int
) -> Rows:
    """Words after Zipf's law, whose log odds between the classes have heavy tails."""
    rng = np.random.default_rng(seed)
    log_odds = odds * rng.standard_t(3, p) * np.where(np.arange(p) < 50, 0.5, 1.0)
    log_odds = np.clip(log_odds, -3, 3)
    y = rng.random(n) < positive
    row = np.repeat(np.arange(n), _lengths(rng, n, length, spread))
    drawn, word = rng.random(len(row)), np.empty(len(row), dtype=int)
    for label in (False, True):
        mine = y[row] == label
        frequency = _frequencies(p) * np.exp((1 if label else -1) * log_odds / 2)
        word[mine] = np.searchsorted(np.cumsum(frequency / frequency.sum())[:-1], drawn[mine])
    return _unit_rows(row, word, n, p), y


def phrases(
    n: int, p: int, length: float, spread: float, odds: float, words: int, positive: float,
    seed: int,
) -> Rows:  # fmt: skip
    """Phrases after Zipf's law that bring several words each: words depend on each other."""
    rng = np.random.default_rng(seed)
    word_of = np.searchsorted(np.cumsum(_frequencies(p))[:-1], rng.random((p, words)))
    sizes = rng.integers(1, words + 1, p)
    x, y = independent(n, p, length, spread, odds, positive, seed + 1)
    phrase, row = x.indices, np.repeat(np.arange(n), np.diff(x.indptr))
    size = sizes[phrase]
    place = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    return _unit_rows(np.repeat(row, size), word_of[np.repeat(phrase, size), place], n, p), y


def words_of_zipf() -> Rows:
    data = zipf()
    rows = sparse.vstack([data.x, data.held_x], format="csr")
    return sparse.csr_array(rows), np.append(data.y, data.held_y) > 0


CASES: dict[str, Callable[[], Rows]] = {
    "headlines": cache(lambda: independent(32_000, 2**14, 9, 0.2, 0.8, 0.5, 1)),
    "posts": cache(lambda: independent(19_000, 2**15, 200, 0.8, 0.25, 0.3, 2)),
    "few posts": cache(lambda: independent(4_000, 2**13, 80, 0.6, 0.4, 0.5, 3)),
    "phrases": cache(lambda: phrases(19_000, 2**14, 30, 0.8, 0.6, 12, 0.3, 4)),
    "long phrases": cache(lambda: phrases(32_000, 2**14, 8, 0.4, 0.8, 30, 0.5, 5)),
    "zipf": cache(words_of_zipf),
}


@contextmanager
def changed(name: str, value: Any) -> Iterator[None]:
    """The solver with another number."""
    module = solver if hasattr(solver, name) else queries
    shipped = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, shipped)


def errors(case: str, epsilon: float, seeds: int) -> np.ndarray:
    """The share of held-out rows that are classified wrongly, for each seed."""
    x, y = CASES[case]()
    held = np.arange(len(y)) % 4 == 0
    found = []
    for seed in range(seeds):
        model = PrivateLogisticRegression(
            epsilon, DELTA, bounds=UNIT, classes=[False, True], solver="class-sums",
            random_state=seed,
        )  # fmt: skip
        found.append(1 - model.fit(x[~held], y[~held]).score(x[held], y[held]))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(ALTERNATIVES))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    places = [(case, epsilon) for case in CASES for epsilon in asked.epsilon]
    shipped = {place: errors(*place, asked.seeds) for place in places}
    start = [{"case": c, "epsilon": e, "errors": float(shipped[c, e].mean())} for c, e in places]
    show("Errors with the shipped numbers", start)
    rows = []
    for name in asked.only:
        for value in ALTERNATIVES[name]:
            with changed(name, value):
                ratios = {p: float(errors(*p, asked.seeds).mean() / shipped[p].mean())
                          for p in places}  # fmt: skip
            by_case = {
                case: float(np.mean([ratios[case, e] for e in asked.epsilon])) for case in CASES
            }
            rows.append(
                {"number": name, "value": value, "all": float(np.mean(list(ratios.values()))),
                 **by_case}
            )  # fmt: skip
            print(*rows[-1].values(), flush=True)
    show("Errors with an alternative over errors with the shipped number", rows)
    keep("tune_class_sums", {"delta": DELTA, "shipped": start, "rows": rows})


if __name__ == "__main__":
    main()
