"""Support vector machines under pure differential privacy, alone and behind a projection.

The example of Kasiviswanathan and Jin (2016), Theorem 3.6: the hinge over a ball, delta 0. Every
fourth row is held out. The data lies in the folder that the environment variable RIATA_DATA names.

    python benchmarks/pure_svm.py [--data bank clickbait] [--epsilon 3 10] [--seeds 3]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from riata import Bounds, PrivateErm
from riata.losses import Hinge
from riata.sets import L1Ball, L2Ball
from riata.solvers import NoisyGradient, PerturbedObjective, PrivateFrankWolfe, Projected, Solver

import menu_data
from results import keep, show

#: The categories of a phone call of the bank, as its description lists them, ...
CATEGORIES = {
    "job": "admin. blue-collar entrepreneur housemaid management retired self-employed services "
    "student technician unemployed unknown",
    "marital": "divorced married single unknown",
    "education": "basic.4y basic.6y basic.9y high.school illiterate professional.course "
    "university.degree unknown",
    "car.loan": "no yes unknown",
    "hou.loan": "no yes unknown",
    "per.loan": "no yes unknown",
    "contact": "cellular telephone",
    "month": "jan feb mar apr may jun jul aug sep oct nov dec",
    "day_of_week": "mon tue wed thu fri",
    "outcome": "failure hold success",
}

#: ... and its numbers, each with the value that counts as 1.
NUMBERS = {"age": 100.0, "campaign": 20.0}


def bank() -> menu_data.Data:
    """Whether 41,188 people took out a deposit when called, 11% of them. One row is a call."""
    with gzip.open(menu_data.FOLDER / "bank_marketing.csv.gz", "rt", encoding="utf-8") as file:
        calls = list(csv.DictReader(file))
    columns = [
        [float(call[name] == value) for call in calls]
        for name, values in CATEGORIES.items()
        for value in values.split()
    ]
    columns += [[float(call[k]) / most for call in calls] for k, most in NUMBERS.items()]
    columns += [[float(call["pdays"] != "999") for call in calls]]
    x = np.minimum(np.array(columns).T, 1.0)
    y = np.where([call["y"] == "yes" for call in calls], 1.0, -1.0)
    bounds = Bounds((len(CATEGORIES) + len(NUMBERS) + 1) ** 0.5, norm="l2")
    return menu_data._split("bank", x, y, bounds, bounds, menu_data.CLASSIFICATION, 4.0, 2.0)


LOADERS = {"bank": bank, "clickbait": menu_data.clickbait}

#: The radius of the l2 ball and of the l1 ball, and the projected dimension. They were chosen by
#: hand among three or four after a look at scores.
SIZES = {"bank": (2.0, 4.0, 50), "clickbait": (4.0, 30.0, 200)}

#: Over which width the corner is rounded. "auto" is so small for the bank that fits take minutes.
SMOOTHING: dict[str, float | str] = {"bank": 0.5, "clickbait": "auto"}


def fitted(data: menu_data.Data, C: Any, solver: Solver, epsilon: float, seed: int) -> np.ndarray:
    """The margins of the held-out rows. Half of the headlines are clickbait: no intercept."""
    model = PrivateErm(
        Hinge(), C, epsilon, 0.0, bounds=data.l2_bounds, solver=solver, random_state=seed,
        fit_intercept=data.name == "bank",
    ).fit(data.x, data.y)  # fmt: skip
    assert model.privacy_.delta == 0
    return data.held_x @ model.coef_ + model.intercept_


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=list(LOADERS), choices=list(LOADERS))
    parser.add_argument("--epsilon", nargs="*", type=float, default=[3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    rows = []
    for name in asked.data:
        data, (l2, l1, dimension) = LOADERS[name](), SIZES[name]
        perturbed = PerturbedObjective(smoothing=SMOOTHING[name])
        behind = Projected(dimension=dimension, inner=perturbed)
        private: dict[str, tuple[Any, Solver]] = {
            "objective perturbation, l2 ball": (L2Ball(l2), perturbed),
            "noisy gradient, l2 ball": (L2Ball(l2), NoisyGradient()),
            "Frank-Wolfe, l1 ball": (L1Ball(l1), PrivateFrankWolfe()),
            f"projected to {dimension}, l2 ball": (L2Ball(l2), behind),
            f"projected to {dimension}, l1 ball": (L1Ball(l1), behind),
        }
        svm = LinearSVC(loss="hinge", C=1.0, max_iter=20_000).fit(data.x, data.y)
        margins = svm.decision_function(data.held_x)
        constant = np.full(len(margins), data.y.mean())
        rows += [_row(name, "most frequent label", None, [(constant, 0.0)], data)]
        rows += [_row(name, "without privacy", None, [(margins, 0.0)], data)]
        for epsilon in asked.epsilon:
            for what, (C, solver) in private.items():
                found = []
                for seed in range(asked.seeds):
                    begin = time.perf_counter()
                    margins = fitted(data, C, solver, epsilon, seed)
                    found.append((margins, time.perf_counter() - begin))
                rows += [_row(name, what, epsilon, found, data)]
                print(rows[-1], flush=True)
    show("Support vector machines at delta 0", rows)
    keep("pure_svm", {"rows": rows})


def _row(
    name: str, what: str, epsilon: float | None, found: list[Any], data: menu_data.Data
) -> dict[str, Any]:
    scores = [data.score(np.where(margins > 0, 1.0, -1.0)) for margins, _ in found]
    curves = [roc_auc_score(data.held_y, margins) for margins, _ in found]
    return {
        "data": name, "model": what, "epsilon": "" if epsilon is None else f"{epsilon:g}",
        "accuracy": float(np.mean(scores)), "AUC": float(np.mean(curves)),
        "sd of AUC": float(np.std(curves)), "seconds": float(np.mean([t for _, t in found])),
    }  # fmt: skip


if __name__ == "__main__":
    main()
