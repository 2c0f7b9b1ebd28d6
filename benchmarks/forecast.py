"""Forecasts against real fits: how often is the excess risk within a factor of 2 of the forecast?

Each case draws a table with a known truth, fits it once, and forecasts the same fit from public
facts and the true design, number of relevant columns, signal and spread as the guess.
The excess is a part of what the truth explains. "floor" counts a forecast and a fit that both lose
less than a thousandth as agreeing: nobody would see the difference. One fit scatters around its
own median, so even a perfect forecast misses some: "at best" is the share of simulated fits within
a factor of 2 of the median of the others, which no forecast from the same guess can beat by much.
An interval holds a fit that is within a hundredth of its ends, since that of a fit that learns
nothing has no width. "learned" leaves out the cases whose forecast is that nothing is learned: they
agree without effort.

"typical" compares the forecast with the median of several fits, each on a table of its own, for
the learned cases that were fitted more than once: the scatter of one fit is then mostly gone.

    python benchmarks/forecast.py [--fits 200] [--repeats 20] [--again 4] [--again-below 100]

Results are kept case by case, and cases that are kept already are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from scipy.special import expit

from riata import Bounds, PrivateLasso, PrivateLogisticRegression, forecast
from riata.simulation.world import auc

from accuracy_cases import BLOCK, Case, Sample
from results import FOLDER, keep, show

DELTA = 1e-6

#: Losing less than this part of what can be explained is the same to a user as losing nothing.
FLOOR = 1e-3

#: So near to the end of an interval is inside.
NEAR = 1.01

#: Tables have at most so many entries.
MOST_ENTRIES = 1e7

#: How often there are 2,000, 5,000, 10,000, 20,000 and 50,000 rows: larger tables take longer.
ROWS = (0.25, 0.3, 0.25, 0.15, 0.05)

#: How the designs of the suite are guessed.
GUESSES: dict[str, dict[str, Any]] = {
    name: {"correlation": 0.0, "alignment": 0.0} | facts
    for name, facts in {
        "uniform": {"design": "uniform"},
        "rademacher": {"design": "signs"},
        "binary": {"design": "binary", "density": 0.3},
        "sparse binary": {"design": "binary", "density": 0.02},
        "gaussian": {"design": "normal"},
        "block": {"design": "normal", "correlation": 0.8, "group": BLOCK},
        "equicorrelated": {"design": "normal", "correlation": 0.5},
    }.items()
}


def drawn_case(number: int) -> tuple[Case, float, float | None]:
    """A case, its epsilon, and for labels the AUC of the truth: every fifth case has labels."""
    rng = np.random.default_rng([20_000, number])
    while True:
        case = Case(
            str(rng.choice(list(GUESSES))),
            int(rng.choice([2_000, 5_000, 10_000, 20_000, 50_000], p=ROWS)),
            int(rng.choice([50, 200, 1_000, 5_000])),
            int(rng.choice([3, 5, 10, 20])),
            float(rng.choice([0.1, 0.2, 0.4])),
        )
        if case.n * case.p <= MOST_ENTRIES:
            break
    epsilon = float(rng.choice([0.2, 0.5, 1.0, 2.0, 5.0]))
    labels = float(rng.choice([0.7, 0.8, 0.9])) if number % 5 == 4 else None
    return case, epsilon, labels


def of_numbers(sample: Sample, epsilon: float, seed: int) -> tuple[Any, dict[str, float], float]:
    """The estimator, what is guessed, and the realised excess, of a regression."""
    case, truth = sample.case, sample.fresh @ sample.theta
    variance = float(truth.var())
    total = variance + case.noise**2
    model = PrivateLasso(epsilon, DELTA, bounds=case.bounds, random_state=seed)
    guess = {"signal": variance / total, "spread": min(1.0, np.sqrt(total) / case.bounds.y)}
    model.fit(sample.x, sample.y)
    lost = np.mean((sample.fresh @ model.coef_ + model.intercept_ - truth) ** 2)
    return model, guess, float(lost / variance)


def of_labels(
    sample: Sample, epsilon: float, seed: int, wanted: float
) -> tuple[Any, dict[str, float], float]:
    """The same of a classification whose truth has the wanted AUC."""
    truth = sample.fresh @ sample.theta
    mean, low, high = truth.mean(), 0.0, 10 / truth.std()
    most = auc(truth, expit(high * (truth - mean)))
    wanted = min(wanted, 0.5 + 0.8 * (most - 0.5))  # few sparse rows have a relevant column
    for _ in range(40):
        middle = (low + high) / 2
        margins = middle * (truth - mean)
        low, high = (middle, high) if auc(margins, expit(margins)) < wanted else (low, middle)
    odds = expit(high * (truth - mean))
    rng = np.random.default_rng([seed, 7])
    y = (rng.random(sample.case.n) < expit(high * (sample.x @ sample.theta - mean))).astype(int)
    bounds = Bounds(x=sample.case.bounds.x)
    model = PrivateLogisticRegression(
        epsilon, DELTA, bounds=bounds, classes=[0, 1], random_state=seed
    ).fit(sample.x, y)

    def risk(p: np.ndarray) -> float:
        return float(-np.mean(odds * np.log(p) + (1 - odds) * np.log1p(-p)))

    margins = np.clip(model.decision_function(sample.fresh), -30, 30)
    constant = risk(np.full_like(odds, odds.mean()))
    best = risk(np.clip(odds, 1e-12, 1 - 1e-12))
    part = (risk(expit(margins)) - best) / (constant - best)
    return model, {"signal": wanted, "positives": float(odds.mean())}, part


def fitted(number: int, again: int = 0) -> tuple[Case, float, Any, dict[str, float], float]:
    """A real fit of a case, on another table if it is done again."""
    case, epsilon, wanted = drawn_case(number)
    sample, seed = case.draw(5_000 + number + 10_000 * again), number + 10_000 * again
    if wanted is None:
        return case, epsilon, *of_numbers(sample, epsilon, seed)
    return case, epsilon, *of_labels(sample, epsilon, seed, wanted)


def run(number: int, repeats: int) -> dict[str, Any]:
    begun = time.perf_counter()
    case, epsilon, model, guess, real = fitted(number)
    middle = time.perf_counter()
    told = {"relevant": case.s, **guess, **GUESSES[case.design]}
    found = forecast(model, case.n, case.p, repeats=repeats, seed=number, **told)
    parts = [each.excess / each.explained for each in found.scores]
    return {
        "number": number, "case": case.name, "design": case.design,
        "labels": drawn_case(number)[2] is not None, "epsilon": epsilon, "real": real,
        "forecast": found.excess_part, "parts": parts,
        "fit_seconds": middle - begun, "forecast_seconds": time.perf_counter() - middle,
    }  # fmt: skip


class Kept:
    """Rows in a file of lines, by their numbers."""

    def __init__(self, name: str) -> None:
        FOLDER.mkdir(exist_ok=True)
        self._path = FOLDER / name
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        self.rows = {row["number"]: row for row in map(json.loads, lines)}

    def add(self, row: dict[str, Any]) -> None:
        self.rows[row["number"]] = row
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def agrees(real: float, expected: float, floor: float = 0.0) -> bool:
    return max(real, expected) <= floor or expected / 2 <= real <= expected * 2


def shares(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many agree, and how many lie in their interval."""
    covered, best = [], []
    for row in rows:
        parts = np.array(row["parts"])
        low, high = np.quantile(parts, [0.1, 0.9], method="weibull")
        covered.append(low / NEAR <= row["real"] <= high * NEAR)
        medians = [np.median(np.delete(parts, i)) for i in range(len(parts))]
        best += [agrees(part, m, FLOOR) for part, m in zip(parts, medians, strict=True)]
    return {
        "fits": len(rows),
        "within 2": np.mean([agrees(r["real"], r["forecast"]) for r in rows]),
        "with floor": np.mean([agrees(r["real"], r["forecast"], FLOOR) for r in rows]),
        "at best": np.mean(best),
        "in the interval": np.mean(covered),
        "median ratio": np.median([r["real"] / r["forecast"] for r in rows]),
        "seconds of a forecast": np.median([r["forecast_seconds"] for r in rows]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--again", type=int, default=0)
    parser.add_argument("--again-below", type=int, default=100)
    options = parser.parse_args()
    done, more = Kept("forecast.jsonl"), Kept("forecast_again.jsonl")
    for number in range(options.fits):
        if number in done.rows:
            continue
        row = run(number, options.repeats)
        done.add(row)
        print(
            f"{number}: {row['case']}, epsilon {row['epsilon']:g}"
            f"{', labels' if row['labels'] else ''}: {row['real']:.2g}, expected "
            f"{row['forecast']:.2g}, {row['forecast_seconds']:.1f} s",
            flush=True,
        )
    rows = [done.rows[k] for k in sorted(done.rows)]
    learned = [r for r in rows if r["forecast"] < 0.9]
    for row in learned if options.again else []:
        number = row["number"]
        if number not in more.rows and number < options.again_below:
            reals = [fitted(number, k)[-1] for k in range(1, options.again + 1)]
            more.add({"number": number, "reals": [row["real"], *reals]})
            print(f"{number}: {np.median(reals):.2g}, expected {row['forecast']:.2g}", flush=True)
    parts = {"all": rows}
    parts["numbers"] = [r for r in rows if not r["labels"]]
    parts["labels"] = [r for r in rows if r["labels"]]
    parts["learned"] = learned
    for design in GUESSES:
        parts[design] = [r for r in rows if r["design"] == design]
    table = [{"of": name, **shares(few)} for name, few in parts.items() if few]
    typical = [
        {**done.rows[k], "real": float(np.median(row["reals"]))} for k, row in more.rows.items()
    ]
    if typical:
        table.append({"of": "typical", **shares(typical)})
    show("Realised excess risks against forecasts", table)
    keep("forecast", {"rows": table})


if __name__ == "__main__":
    main()
