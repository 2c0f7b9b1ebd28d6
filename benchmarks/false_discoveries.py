"""How many of the marked columns of a summary are false, over designs with correlated nulls.

Rows are drawn again and again from designs in which columns without an effect go with others that
have one. A summary marks columns whose adjusted p-value is at most 10%. The false discovery
proportion is the part of the marked columns whose coefficient in the whole model is 0, and 0 if
none is marked; the rate is its mean. "Found" is the part of the columns with an effect that are
marked.

    python benchmarks/false_discoveries.py --fits 25 --rows 20000 --columns 30 300 --epsilon 1 4
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from riata import Bounds, PrivateLasso, PrivateLogisticRegression

LEVEL, EFFECTS = 0.9, 8
CORRECTIONS = ("by", "bh")

Design = Callable[[np.random.Generator, int, int], np.ndarray]


def independent(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_normal((n, p))


def chain(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Neighbours have a correlation of 0.8."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.8 * X[:, j - 1] + 0.6 * X[:, j]
    return X


def blocks(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Five columns share half of their variance."""
    shared = np.repeat(rng.standard_normal((n, math.ceil(p / 5))), 5, axis=1)[:, :p]
    return math.sqrt(0.5) * (shared + rng.standard_normal((n, p)))


def factor(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """All columns share a third of their variance."""
    shared = rng.standard_normal((n, 1))
    return math.sqrt(1 / 3) * shared + math.sqrt(2 / 3) * rng.standard_normal((n, p))


def flags(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Yes or no, each as its neighbour for two rows in three, yes for one in eight to a half."""
    rates = np.geomspace(1 / 8, 1 / 2, p)
    X = (rng.random((n, p)) < rates).astype(float)
    for j in range(1, p):
        same = rng.random(n) < 2 / 3
        X[same, j] = X[same, j - 1]
    return X - rates


def heavy(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """As the chain, with the tails of Student's t with five degrees of freedom."""
    return chain(rng, n, p) / np.sqrt(rng.chisquare(5, n) / 5)[:, None]


DESIGNS: tuple[Design, ...] = (independent, chain, blocks, factor, flags, heavy)


def rounds(
    design: Design, classes: bool, columns: int, given: argparse.Namespace, epsilon: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each fit: which columns have an effect, and adjusted p-values by correction."""
    for seed in range(given.fits):
        rng = np.random.default_rng([seed, columns, int(classes)])
        X = design(rng, given.rows, columns)
        truth = np.zeros(columns)
        places = rng.choice(columns, EFFECTS, replace=False)
        truth[places] = rng.choice([-1, 1], EFFECTS) * rng.uniform(0.02, 0.3, EFFECTS)
        margin = X @ truth
        more = {"delta": 1e-6, "random_state": seed}
        if classes:
            y = (2 * margin + rng.logistic(size=given.rows) > 0).astype(int)
            model = PrivateLogisticRegression(epsilon, bounds=Bounds(6.0), classes=[0, 1], **more)
        else:
            y = margin + rng.standard_normal(given.rows)
            model = PrivateLasso(epsilon, bounds=Bounds(6.0, 8.0), **more)
        model.fit(X, y)
        p = []
        for correction in CORRECTIONS:
            terms = model.summary(LEVEL, correction=correction).functions[0].terms
            found = {term.name: term.p_adjusted for term in terms}
            p.append([found.get(f"x[{j}]", math.nan) for j in range(columns)])
        yield truth != 0, np.array(p), np.ravel(model.coef_) != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=25)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, nargs="+", default=[30, 300])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 4.0])
    given = parser.parse_args()
    print(f"{given.rows:,} rows, {given.fits} fits of each, nominal {1 - LEVEL:.0%}")
    print("| design | columns | model | epsilon | rate, BY | found, BY | rate, BH | found, BH |")
    print("|---|---|---|---|---|---|---|---|")
    for columns in given.columns:
        for epsilon in given.epsilon:
            for classes in (False, True):
                for design in DESIGNS:
                    rates: list[list[float]] = []
                    for effect, p, _ in rounds(design, classes, columns, given, epsilon):
                        marked = p <= 1 - LEVEL
                        false = (marked & ~effect).sum(axis=1) / np.maximum(marked.sum(axis=1), 1)
                        found = (marked & effect).sum(axis=1) / EFFECTS
                        rates.append([false[0], found[0], false[1], found[1]])
                    means = " | ".join(f"{each:.0%}" for each in np.mean(rates, axis=0))
                    kind = "logistic" if classes else "linear"
                    print(f"| {design.__name__} | {columns} | {kind} | {epsilon:g} | {means} |",
                          flush=True)  # fmt: skip
    print(f"{time.process_time():.0f} s of processor time")


if __name__ == "__main__":
    main()
