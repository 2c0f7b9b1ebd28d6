"""Where the numbers in riata/solvers/defaults.py come from.

For each of them, alternatives around the shipped value: the geometric mean, over synthetic cases,
epsilons and seeds, of the excess risk with the alternative over that with the shipped value. Below
1 is better. The cases are smaller than those of `accuracy.py` and other ones, and no real data is
looked at. A ratio within two errors of 1 says that the number does not matter.

    python benchmarks/tune_defaults.py [--only NAME] [--epsilon 0.3 1] [--seeds 4]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from riata import PrivateLasso
from riata.solvers import PrivateGreedy, defaults

from accuracy_cases import Case, Sample
from results import keep, show

DELTA = 1e-6

#: Seeds of the tuning data, apart from those that the benchmark judges by.
FIRST_SEED = 1_000

#: Small enough for many fits, and between what can and what cannot be learned.
CASES = (
    Case("uniform", 4_000, 300, 4, 0.1),
    Case("uniform", 8_000, 500, 12, 0.2),
    Case("uniform", 8_000, 60, 6, 0.5),
    Case("rademacher", 6_000, 400, 10, 0.1),
    Case("binary", 8_000, 400, 6, 0.1),
    Case("sparse binary", 16_000, 2_000, 8, 0.05),
    Case("gaussian", 6_000, 300, 6, 0.3),
    Case("gaussian", 16_000, 100, 15, 0.2),
    Case("block", 8_000, 300, 6, 0.1),
    Case("equicorrelated", 8_000, 300, 6, 0.2),
)

#: Excess risks below this are all the same to a user, and above 1 the model is not used.
FLOOR = 1e-5

_FIRST, _LAST = defaults.REFITS

#: What is tried in place of each number.
ALTERNATIVES: dict[str, tuple[Any, ...]] = {
    "SEARCH": (0.35, 0.45, 0.6),
    "MEASURED": (0.12, 0.35),
    "CHECK": (0.015, 0.06),
    "CHECK_CUT": (0.7, 1.0, 3.0),
    "SURE": (2.0, 2.5),
    "SCALES": (0.025, 0.1),
    "SCALES_IN_SEARCH": (2, 8),
    "INTERCEPT": (0.01, 0.04),
    "RANKING_QUANTILE": (0.4, 0.8),
    "ENTRY_QUANTILE": (0.3, 0.7, 1.0),
    "REFIT_CUT": (0.6, 0.8, 1.3),
    "LENGTH_QUANTILE": (0.6, 0.95),
    "SELECTIONS": (1.5, 6.0),
    "DEARER": (1.5, 3.0),
    "FEWEST": (2.0, 8.0),
    "FOUND": (1.0, 3.0),
    "LEAST_FALL": (1.0, 4.0),
    "PATIENCE": (1, 6),
    "VISIBLE": (2.0, 5.0),
    "REFITS": (
        (replace(_FIRST, share=0.15), _LAST),
        (replace(_FIRST, share=0.5), _LAST),
        (replace(_FIRST, curvature=0.12), replace(_LAST, curvature=0.1)),
        (replace(_FIRST, curvature=0.4), replace(_LAST, curvature=0.35)),
        (_FIRST, replace(_LAST, steps=(0.15, 0.85))),
        (_FIRST, replace(_LAST, steps=(0.15, 0.25, 0.6))),
        (replace(_FIRST, prune=1.0), _LAST),
        (replace(_FIRST, prune=3.0), _LAST),
        (_FIRST, replace(_LAST, prune=1.0)),
        (_FIRST, replace(_LAST, prune=2.5)),
    ),
}


@contextmanager
def using(name: str, value: Any) -> Iterator[None]:
    """The solvers with another value of one number."""
    where, name = (PrivateGreedy, "refits") if name == "REFITS" else (defaults, name)
    before = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, before)


def log_excess(samples: list[Sample], epsilons: list[float]) -> np.ndarray:
    """The logarithm of the excess risk of every sample at every epsilon."""
    found = []
    for i, sample in enumerate(samples):
        for epsilon in epsilons:
            model = PrivateLasso(
                epsilon, DELTA, bounds=sample.case.bounds, solver="greedy", random_state=i
            ).fit(sample.x, sample.y)
            found.append(np.log(np.clip(sample.excess(model.coef_, model.intercept_), FLOOR, 1.5)))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--epsilon", nargs="*", type=float, default=[0.2, 0.5, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    samples = [case.draw(FIRST_SEED + k) for k in range(options.seeds) for case in CASES]
    shipped = log_excess(samples, options.epsilon)
    print(f"shipped: geometric mean of the excess risk {np.exp(shipped.mean()):.5f}", flush=True)
    rows = []
    for name, values in ALTERNATIVES.items():
        if options.only and name not in options.only:
            continue
        for value in values:
            with using(name, value):
                change = log_excess(samples, options.epsilon) - shipped
            error = change.std(ddof=1) / np.sqrt(len(change))
            ratio = float(np.exp(change.mean()))
            rows.append({"number": name, "instead": value, "ratio": ratio, "error": float(error)})
            print(f"{name} = {value}: {ratio:.3f} +- {error:.3f}", flush=True)
    show("Excess risk with another number, over that with the shipped one", rows)
    keep("tune_defaults", {"rows": [{**row, "instead": str(row["instead"])} for row in rows]})


if __name__ == "__main__":
    main()
