"""What the default costs, in passes over the data and beside the fit without privacy.

One pass is X' r in one thread. Every case runs in a process of its own: its rows, the estimator
with nothing but public bounds and epsilon, and the fit that a user would otherwise run. Times are
processor times in one run, and memory is the largest beside the rows, over the size of the rows:
the machine is shared, and only ratios mean anything.

    python benchmarks/default.py [--quick] [--case "100k x 100" ...] [--profile] [--growth]
"""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import os
import pstats
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import LassoCV, LogisticRegression, SGDClassifier

from riata import Bounds, PrivateLasso, PrivateLogisticRegression

from results import begin_peak_mb, keep, peak_since_mb, show
from speed_data import SHAPES, Shape, make_x

EPSILON, DELTA = 1.0, 1e-6
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Case:
    """Rows of one kind, and what is fitted to them.

    Parameters
    ----------
    classes : int
        0 for a regression.
    length : bool
        Whether the rows have a public length beside the bounds of their entries.
    most : float or None
        The passes that are aimed at.
    """

    name: str
    rows: int
    columns: int
    kind: str
    classes: int
    length: bool = False
    quick: bool = False
    most: float | None = None

    @property
    def label(self) -> str:
        what = {0: "regression", 2: "two classes"}.get(self.classes, f"{self.classes} classes")
        return f"{self.name}, {what}{', length' if self.length else ''}"


def _cases() -> list[Case]:
    cases = []
    shapes = [
        ("10k x 1k", 10_000, 1_000, "dense", True, 60),
        ("100k x 100", 100_000, 100, "dense", True, 60),
        ("1M x 50", 1_000_000, 50, "dense", False, 60),
        ("rcv1", 20_000, 47_000, "text", True, 40),
        ("one-hot 200k x 5k", 200_000, 5_000, "one-hot", True, 80),
        ("one-hot 1M x 5k", 1_000_000, 5_000, "one-hot", False, 80),
        ("kdda/10", 840_000, 2_020_000, "flags", False, 40),
        ("url/4", 600_000, 800_000, "url flags", False, 40),
        ("840k x 20.2M", 840_000, 20_200_000, "flags", False, 40),
        ("10k x 1M", 10_000, 1_000_000, "text", False, None),
    ]
    for name, n, p, kind, quick, most in shapes:
        for classes in (0, 2):
            for length in (False, True) if kind == "dense" else (True,):
                cases.append(Case(name, n, p, kind, classes, length, quick, most))
        if p <= 5_000_000:  # or 20 models alone are larger than the rows
            cases.append(Case(name, n, p, kind, 20, True, False))
    return cases


CASES = {case.label: case for case in _cases()}


def make_rows(case: Case) -> tuple[Any, np.ndarray, Bounds]:
    """Rows, targets before noise and public bounds."""
    rng = np.random.default_rng(0)
    n, p = case.rows, case.columns
    if case.kind == "dense":
        x: Any = np.clip(rng.standard_normal((n, p)), -3, 3)
        bounds = {"x": 3.0, "length": 1.5 * p**0.5} if case.length else {"x": 3.0}
    elif case.kind == "one-hot":
        groups, each = 25, p // 25
        chosen = np.minimum((rng.pareto(1.0, (n, groups)) * 3).astype(np.int64), each - 1)
        indices = (chosen + each * np.arange(groups)).ravel().astype(np.int32)
        x = sparse.csr_array(
            (np.ones(n * groups), indices, np.arange(0, n * groups + 1, groups, dtype=np.int32)),
            shape=(n, p),
        )
        bounds = {"x": 1.0, "nonzeros": groups, "nonnegative": True}
    else:
        text = case.kind == "text"
        shape = {"text": "rcv1", "flags": "kdda", "url flags": "url"}[case.kind]
        per_row = SHAPES[shape].per_row
        x = make_x(Shape("case", n, p, per_row, not text, 1))[0].tocsr()
        x.data = x.data.astype(np.float64)
        if text:
            lengths = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
            x = sparse.csr_array(sparse.diags_array(1 / np.maximum(lengths, 1e-12)) @ x)
        bounds = (
            {"x": 1.0, "norm": "l2", "nonnegative": True} if text else {"x": 1.0, "length": 8.0}
        )
    theta = np.zeros((p, max(case.classes, 1)))
    often = np.argsort(-np.asarray(abs(x).sum(axis=0)).ravel())[:30]
    theta[often] = rng.standard_normal((len(often), theta.shape[1]))
    return x, np.asarray(x @ theta), bounds


def targets(case: Case, margins: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    margins = 2 * (margins - margins.mean(axis=0)) / margins.std()
    if case.classes == 0:
        return np.clip(margins[:, 0] + rng.standard_normal(len(margins)), -6, 6)
    if case.classes == 2:
        return np.where(margins[:, 0] + rng.logistic(size=len(margins)) > 0, 1, 0)
    return np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)


def private(case: Case, facts: dict[str, Any]) -> Any:
    if case.classes == 0:
        return PrivateLasso(EPSILON, DELTA, bounds=Bounds(y=6.0, **facts), random_state=0)
    return PrivateLogisticRegression(
        EPSILON, DELTA, bounds=Bounds(**facts), classes=list(range(case.classes)), random_state=0
    )


def usual(case: Case) -> Any:
    """The fit without privacy that a user would run instead."""
    if case.classes == 0:
        return LassoCV(cv=3, alphas=30)
    if case.kind.endswith("flags"):
        return SGDClassifier(loss="log_loss")
    return LogisticRegression(max_iter=200)


def cpu_seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def measure(case: Case, profiled: bool, compared: bool) -> dict[str, Any]:
    x, margins, facts = make_rows(case)
    y = targets(case, margins)
    size = x.nbytes if isinstance(x, np.ndarray) else x.data.nbytes + x.indices.nbytes
    r, columns = np.random.default_rng(2).standard_normal(len(y)), x.T
    one = min(cpu_seconds(lambda: columns @ r) for _ in range(5))
    before, model = begin_peak_mb(), private(case, facts)
    profile = cProfile.Profile()
    if profiled:
        profile.enable()
    seconds = cpu_seconds(lambda: model.fit(x, y))
    profile.disable()
    if profiled:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    memory = (peak_since_mb() - before) * 2**20 / size
    found = {
        "case": case.label, "solver": model.privacy_.solver,
        "pass ms": 1e3 * one, "passes": seconds / one, "aim": case.most or "",
        "score": float(model.score(x[:20_000], y[:20_000])), "beside / rows": memory,
    }  # fmt: skip
    if compared:
        other = usual(case)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found["times non-private"] = seconds / cpu_seconds(lambda: other.fit(x, y))
    return found


def growth(case: Case) -> dict[str, Any]:
    """How the time grows with the rows, as an exponent, from a quarter of them to all."""
    found = [measure(replace(case, rows=case.rows // k), False, False) for k in (4, 1)]
    few, all_rows = (each["passes"] * each["pass ms"] for each in found)
    return {
        "case": case.label, "solvers": ", ".join(each["solver"] for each in found),
        "exponent": math.log(all_rows / few, 4),
        "of a pass": math.log(found[1]["pass ms"] / found[0]["pass ms"], 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the smaller shapes, two classes")
    parser.add_argument("--case", nargs="+", help="those whose names contain one of these")
    parser.add_argument("--profile", action="store_true", help="where the time goes, to stderr")
    parser.add_argument("--alone", action="store_true", help="without the fits that have no noise")
    parser.add_argument("--growth", action="store_true", help="the exponent of the rows instead")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        case = CASES[args.one]
        one = growth(case) if args.growth else measure(case, args.profile, not args.alone)
        print(json.dumps(one))
        return
    wanted = [
        label for label, case in CASES.items()
        if (case.quick or not args.quick) and (not args.case or any(c in label for c in args.case))
    ]  # fmt: skip
    rows = []
    for label in wanted:
        flags = [flag for flag in ("profile", "alone", "growth") if getattr(args, flag)]
        command = [sys.executable, __file__, "--one", label, *(f"--{flag}" for flag in flags)]
        out = subprocess.run(
            command, env=os.environ | ONE_THREAD, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        rows.append(json.loads(out.splitlines()[-1]))
        print(rows[-1], file=sys.stderr)
    show("The default at epsilon 1", rows)
    keep("default_growth" if args.growth else "default", {"cases": rows})


if __name__ == "__main__":
    main()
