"""What could have made the refitting solvers better, and what each of it does.

Each line changes one thing in the shipped solver: the geometric mean, over the cases, epsilons and
seeds of `tune_defaults.py`, of the excess risk with the change over that without. Above 1 is worse.

    python benchmarks/tried.py [--seeds 2] [--epsilon 0.3 1 3]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from riata.mechanisms import TopK
from riata.privacy.calibrate import bounded_range_at
from riata.queries import Correlations
from riata.solvers import PrivateGreedy, RefittedFrankWolfe, defaults
from riata.solvers.plan import Solver
from riata.solvers.refit import Run

from results import keep, show
from tune_defaults import CASES, FIRST_SEED, log_excess, using

#: Rounds of the search by batches.
ROUNDS = 3


class Batches(PrivateGreedy):
    """Several columns a round, by one draw of the top k, in place of one by one."""

    def search(self, run: Run) -> None:
        amount = defaults.SEARCH * run.whole / ROUNDS
        each = max(1, round(run.steps / defaults.SELECTIONS / ROUNDS))
        for _ in range(ROUNDS):
            query = Correlations(run.problem, run.theta, run.ranking_limit, run.entry_limit)
            price = (1 - defaults.MEASURED) * amount / each
            run.remaining.left -= price * each
            top = TopK(bounded_range_at(price), min(each, run.problem.n_features))
            for column in run.curator.release(query, top):
                run.step_along(int(column), defaults.MEASURED * amount / each)
                run.notify_progress()
            run.measure_slopes()


class Pruned(PrivateGreedy):
    """One refit in place of two."""

    refits = defaults.REFITS[1:]


#: Each change: the solver, and the numbers that it replaces.
CHANGES: dict[str, tuple[Callable[[], Solver], AbstractContextManager[None]]] = {
    "several columns a round, by one-shot top-k": (Batches, nullcontext()),
    "Frank-Wolfe steps in the search": (RefittedFrankWolfe, nullcontext()),
    "every selection at the same price": (PrivateGreedy, using("DEARER", 1.0)),
    "entries not cut in the search": (PrivateGreedy, using("ENTRY_QUANTILE", 1.0)),
    "slopes not cut in the search": (PrivateGreedy, using("RANKING_QUANTILE", 1.0)),
    "slopes measured once": (PrivateGreedy, using("LAST_SCALE", 0)),
    "slopes clipped at twice the usual place in the refit": (
        PrivateGreedy, using("REFIT_CUT", 2 * defaults.REFIT_CUT),
    ),
    "one refit in place of two": (Pruned, nullcontext()),
    "one Newton step in the last refit": (
        PrivateGreedy,
        using("REFITS", (defaults.REFITS[0], replace(defaults.REFITS[1], steps=(1.0,)))),
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epsilon", nargs="*", type=float, default=[0.3, 1.0, 3.0])
    options = parser.parse_args()
    samples = [case.draw(FIRST_SEED + 10 + k) for k in range(options.seeds) for case in CASES]
    shipped = log_excess(samples, options.epsilon)
    print(f"shipped: geometric mean of the excess risk {np.exp(shipped.mean()):.5f}", flush=True)
    rows = []
    for name, (solver, change) in CHANGES.items():
        with change:
            ratios = log_excess(samples, options.epsilon, solver()) - shipped
        error = float(ratios.std(ddof=1) / np.sqrt(len(ratios)))
        rows.append({"change": name, "ratio": float(np.exp(ratios.mean())), "error": error})
        print(f"{name}: {rows[-1]['ratio']:.3f} +- {error:.3f}", flush=True)
    show("Excess risk with the change, over that without", rows)
    keep("tried", {"rows": rows})


if __name__ == "__main__":
    main()
