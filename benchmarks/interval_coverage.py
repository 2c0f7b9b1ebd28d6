"""How often 95% intervals cover the coefficients of the population that rows were drawn from.

A population is a large simulated table, or a real one. Samples are drawn from it with replacement.
The truth is the best model of the population with the columns that the private model kept, as
`docs/results.md` says: of least squares by whitened gradients the robust one, for which summands of
the gradient that are clipped as those of the fit have the mean 0. "of least squares" is how often
the same intervals cover the model of least squares. Columns without an interval do not count, and
"known" is how many have one.
Beside it are the intervals of least squares or a GLM on the same sample without privacy, with
sandwich errors, which are right where the model is not: how often they cover the best model, and
the ratio of lengths. "to optimal noise" is the same ratio for a fit without privacy whose influence
functions are shortened to 1.5 times their typical length, in coordinates in which the population is
white, and have the noise of one release of the whole budget: nobody can do that, because nobody
knows these columns, coordinates and lengths.
"pull" is the median distance of an estimate beyond the truth, away from 0, in standard errors.
"false marks" is the mean share of columns without effect among those that the summary marks, at
5%, and "false p" among those whose p-value is below 0.05, where the population has such columns.

The real data lies in the folder that the environment variable RIATA_DATA names.

    python benchmarks/interval_coverage.py [--quick] [--resamples 200] [--rows 300000 --data counts]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from riata import Bounds, Budget, PrivateLasso, PrivateLogisticRegression, PrivatePoissonRegression
from riata.audit import on_release
from riata.datasets import load_flights
from riata.grid import X_STEPS
from riata.solvers.calibrated import gaussian_mechanisms

from arena_data import TABLES
from menu_data import FOLDER, readmitted, stays
from results import keep, show

DELTA, LEVEL, NORMAL_95 = 1e-6, 0.95, 1.959964
POPULATION = 100_000
MODELS = {
    "linear": PrivateLasso,
    "logistic": PrivateLogisticRegression,
    "poisson": PrivatePoissonRegression,
}


def glm(family: str, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and standard errors without privacy, those of the intercept last."""
    x = np.column_stack([x, np.ones(len(x))])
    theta = np.zeros(x.shape[1])
    if family == "poisson":
        theta[-1] = np.log(max(y.mean(), 1e-9))
    for _ in range(1 if family == "linear" else 25):
        margins = x @ theta
        if family == "linear":
            mean, weight = margins, np.ones(len(y))
        elif family == "logistic":
            mean = expit(margins)
            weight = mean * (1 - mean)
        else:
            mean = np.exp(np.minimum(margins, 20))
            weight = mean
        inverse = np.linalg.inv((x * weight[:, None]).T @ x)
        step = inverse @ (x.T @ (y - mean))
        theta = theta + step
        if np.abs(step).max() < 1e-9:
            break
    residuals = y - (x @ theta if family == "linear" else mean)
    outer = x * residuals[:, None] @ inverse
    return theta, np.sqrt(np.square(outer).sum(axis=0))


@dataclass
class Population:
    """Rows, their targets, and what is public about them."""

    name: str
    family: str
    x: np.ndarray
    y: np.ndarray
    bounds: Bounds
    #: From this column on they have no effect; 0 if nobody knows.
    first_null: int = 0
    known: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict)

    def truth(self, columns: np.ndarray) -> np.ndarray:
        """The best coefficients of these columns, and the intercept last."""
        found = self.known.get(key := tuple(columns))
        if found is None:
            found = self.known[key] = glm(self.family, self.x[:, columns], self.y)[0]
        return found


def optimal_noise(
    population: Population, columns: np.ndarray, theta: np.ndarray, most: float
) -> np.ndarray:
    """Its standard deviation for each coefficient; `most` is that of a mean of numbers up to 1."""
    family, y = population.family, population.y
    x = np.column_stack([population.x[:, columns], np.ones(len(y))])
    margins = x @ theta
    mean = {"linear": margins, "logistic": expit(margins)}.get(family, np.exp(margins))
    weight = {"linear": np.ones(len(y)), "logistic": mean * (1 - mean)}.get(family, mean)
    inverse = np.linalg.inv((x * weight[:, None]).T @ x / len(x))
    squares = np.einsum("ij,jk,ik->i", x, inverse, x) * np.square(y - mean)
    return 1.5 * math.sqrt(squares.mean()) * most * np.sqrt(np.diag(inverse))


def robust_truth(population: Population, columns: np.ndarray, query: Any) -> np.ndarray:
    """Where the mean of summands that are clipped as a query says is 0: the intercept is last.

    By Newton steps in the coordinates of the query, of the models that have these columns alone.
    """
    weights, steps = query["whitening"]["weights"], query["whitening"]["steps"]
    matrix, centre = weights * steps[:, None], query["whitening"]["centres"] * (steps / X_STEPS)
    units = population.bounds.per_column(population.x.shape[1])
    rows, constant = population.x / units @ matrix.T - centre, query["constant"]
    lengths = np.sqrt(
        np.square(np.clip(rows, -query["reach"], query["reach"])).sum(axis=1) + constant**2
    )
    most = (
        np.minimum(query["limit"], query["clip"] / lengths) / 2
    )  # the slope is twice the residual
    x = np.column_stack([population.x[:, columns], np.ones(len(rows))])
    clipped = np.column_stack([np.clip(rows, -query["reach"], query["reach"]), np.ones(len(rows))])
    # A model is a combination of coordinates that has no other columns.
    turn = np.zeros((clipped.shape[1], x.shape[1]))
    turn[:-1, :-1] = np.linalg.pinv(matrix.T)[:, columns] * units[columns]
    turn[-1, -1] = 1.0
    instruments = clipped @ turn
    theta = np.linalg.lstsq(x, population.y, rcond=None)[0]
    for _ in range(100):
        residuals = x @ theta - population.y
        mean = instruments.T @ np.clip(residuals, -most, most)
        if np.linalg.norm(mean) < 1e-9 * np.linalg.norm(instruments.T @ np.abs(residuals)):
            break
        inside = np.abs(residuals) < most
        theta = theta - np.linalg.solve((instruments * inside[:, None]).T @ x, mean)
    return theta


THETA = np.array([0.5, -0.4, 0.3, 0.2, -0.1, 0.05, 0.0, 0.0, 0.0, 0.0])
NULL = 6


def _correlated(rng: np.random.Generator) -> np.ndarray:
    x = 0.6**0.5 * rng.standard_normal((POPULATION, 1))
    return np.clip(x + 0.4**0.5 * rng.standard_normal((POPULATION, len(THETA))), -3, 3)


def correlated() -> Population:
    """Normal columns with correlation 0.6, normal residuals."""
    rng = np.random.default_rng(1)
    x = _correlated(rng)
    y = x @ THETA + rng.standard_normal(len(x))
    return Population("correlated", "linear", x, np.clip(y, -10, 10), Bounds(3.0, 10.0), NULL)


def heavy_tailed() -> Population:
    """Columns and residuals of Student's t with 3 degrees of freedom, within wide bounds."""
    rng = np.random.default_rng(2)
    x = np.clip(rng.standard_t(3, (POPULATION, len(THETA))), -10, 10)
    y = np.clip(x @ THETA + rng.standard_t(3, len(x)), -20, 20)
    return Population("heavy-tailed", "linear", x, y, Bounds(10.0, 20.0), NULL)


def misspecified() -> Population:
    """A curve and a product beside the line, residuals that grow with a column, columns above 0."""
    rng = np.random.default_rng(3)
    x = rng.beta(2, 3, (POPULATION, len(THETA)))
    mean = x @ (3 * THETA) + 2 * x[:, 0] ** 2 - 2 * x[:, 1] * x[:, 2]
    y = np.clip(mean + (0.2 + x[:, 0]) * rng.standard_normal(len(x)), -5, 5)
    return Population("misspecified", "linear", x, y, Bounds(1.0, 5.0))


def classes() -> Population:
    """Log-odds of correlated columns."""
    rng = np.random.default_rng(4)
    x = _correlated(rng)
    y = (rng.random(len(x)) < expit(x @ (2 * THETA) - 0.5)).astype(float)
    return Population("classes", "logistic", x, y, Bounds(3.0), NULL)


def counts() -> Population:
    """Poisson counts of correlated columns, with a mean of about 1."""
    rng = np.random.default_rng(5)
    x = _correlated(rng)
    y = np.minimum(rng.poisson(np.exp(x @ (0.7 * THETA) - 0.3)), 30).astype(float)
    return Population("counts", "poisson", x, y, Bounds(3.0, 30.0), NULL)


def wide() -> Population:
    """300 correlated columns, of which the six of `THETA` matter: columns are selected."""
    rng = np.random.default_rng(6)
    x = 0.3**0.5 * rng.standard_normal((POPULATION // 3, 1))
    x = np.clip(x + 0.7**0.5 * rng.standard_normal((len(x), 300)), -3, 3)
    y = np.clip(x[:, : len(THETA)] @ THETA + rng.standard_normal(len(x)), -10, 10)
    return Population("wide", "linear", x, y, Bounds(3.0, 10.0), NULL)


#: Columns that are left out, so that the others are determined: "inland", and five islands; the
#: first of each grade, and two sizes that others nearly determine.
LEFT_OUT = {"housing": [9, 12], "diamonds": [4, 5, 6, 11, 18]}


def real(name: str) -> Callable[[], Population]:
    def made() -> Population:
        table = TABLES[name]()
        x, family = np.delete(np.asarray(table.x), LEFT_OUT.get(name, []), axis=1), "linear"
        y = np.asarray(table.y, dtype=float)
        if table.classifies:
            y, family = (y > 0).astype(float), "logistic"
        else:
            y = np.clip(y, -table.bounds.y, table.bounds.y)
        return Population(name, family, x, y, table.bounds)

    return made


def adult() -> Population:
    """Who earns more than 50,000 of 48,842 people: numbers and flags."""
    frame = pd.read_csv(FOLDER / "adult_raw.csv.gz", skipinitialspace=True)
    x = np.column_stack([
        (frame["age"] - 45) / 45, (frame["education-num"] - 8) / 8,
        (frame["hours-per-week"] - 50) / 50, frame["capital-gain"] > 0, frame["capital-loss"] > 0,
        frame["sex"] == "Male", frame["marital-status"].str.startswith("Married-"),
        frame["race"] == "White", frame["workclass"] == "Self-emp-not-inc",
        frame["native-country"] == "United-States",
    ]).astype(float)  # fmt: skip
    y = frame["income-per-year"].str.startswith(">").to_numpy().astype(float)
    return Population("adult", "logistic", x, y, Bounds(1.0))


def diabetes() -> Population:
    """Which of 71,518 patients came back to the hospital: seven numbers."""
    x, _, _ = stays()
    y = (readmitted() > 0).astype(float)
    return Population("diabetes", "logistic", x[:, -7:].toarray(), y, Bounds(1.0))


def flights() -> Population:
    """Delays at arrival of 327,346 flights: months and hours, without the first of each."""
    found = load_flights()
    few = [j for j, name in enumerate(found.feature_names) if name.startswith(("month=", "hour="))]
    few = [j for j in few if found.feature_names[j] not in ("month=1", "hour=5", "hour=23")]
    x, y = found.x[:, few].toarray(), found.bounds.clip_y(found.y)
    return Population("flights", "linear", x, y, Bounds(2**0.5, found.bounds.y, norm="l2"))


POPULATIONS: dict[str, Callable[[], Population]] = {
    "correlated": correlated, "heavy-tailed": heavy_tailed, "misspecified": misspecified,
    "classes": classes, "counts": counts, "wide": wide, "housing": real("housing"),
    "visits": real("visits"), "affairs": real("affairs"), "adult": adult, "diabetes": diabetes,
    "diamonds": real("diamonds"), "flights": flights,
}  # fmt: skip
QUICK = [
    (name, n, epsilon)
    for name in POPULATIONS
    for n, epsilon in ([(5_000, 3.0)] if name == "affairs" else [(10_000, 1.0), (10_000, 10.0)])
]
FULL = [(name, n, e) for name in POPULATIONS for n in (2_000, 10_000, 50_000) for e in (0.5, 2, 8)]


@dataclass
class Tally:
    """What was seen of the intervals of a cell."""

    inside: list[bool] = field(default_factory=list)
    inside_best: list[bool] = field(default_factory=list)
    inside_plain: list[bool] = field(default_factory=list)
    intercepts: list[bool] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    to_optimal: list[float] = field(default_factory=list)
    pulls: list[float] = field(default_factory=list)
    known: list[float] = field(default_factory=list)
    false_marks: list[float] = field(default_factory=list)
    false_p: list[float] = field(default_factory=list)


def false_share(names: list[str], first_null: int) -> float:
    return sum(int(name[2:-1]) >= first_null for name in names) / max(len(names), 1)


def sampled(population: Population, n: int, epsilon: float, seed: int, tally: Tally) -> None:
    rows = np.random.default_rng([seed, n]).integers(0, len(population.y), n)
    x, y = population.x[rows], population.y[rows]
    model: Any = MODELS[population.family](
        epsilon, DELTA, bounds=population.bounds, random_state=seed
    )
    targets, seen = y.astype(bool) if population.family == "logistic" else y, list[Any]()
    with on_release(seen.append):
        model.fit(x, targets)
    coef, errors = np.atleast_2d(model.coef_)[0], np.atleast_2d(model.coef_error_)[0]
    columns = np.flatnonzero(coef)
    shown = np.isfinite(errors[columns])
    if population.first_null:
        summary = model.summary(LEVEL)
        terms = summary.functions[0].terms[1:]  # the first is the intercept
        marked = [term.name for term in terms if summary.discovered(term)]
        small = [term.name for term in terms if term.p <= 1 - LEVEL]
        tally.false_marks.append(false_share(marked, population.first_null))
        tally.false_p.append(false_share(small, population.first_null))
    tally.known.append(float(shown.sum() / x.shape[1]))
    best = truth = population.truth(columns)
    gradients = [each.query for each in seen if each.query.name == "PreconditionedGradient"]
    if population.family == "linear" and gradients:
        truth = robust_truth(population, columns, gradients[-1])
    plain, plain_errors = glm(population.family, x[:, columns], y)
    whole = gaussian_mechanisms({"one": 1}, {"one": 1.0}, Budget(epsilon, DELTA), 1)["one"]
    noise = optimal_noise(population, columns, best, 2 * whole.noise_multiplier / n)
    off = (coef[columns] - truth[:-1])[shown] / errors[columns][shown]
    reach = np.diff(model.conf_int(LEVEL))[..., 0].reshape(-1)[columns][shown] / 2
    tally.inside += (np.abs(off) * errors[columns][shown] <= reach).tolist()
    tally.pulls += (off * np.sign(truth[:-1][shown])).tolist()
    off_best = np.abs(coef[columns] - best[:-1])[shown]
    tally.inside_best += (off_best <= reach).tolist()
    tally.lengths += (reach / NORMAL_95 / plain_errors[:-1][shown]).tolist()
    optimal = np.hypot(plain_errors, noise)[:-1][shown]
    tally.to_optimal += (reach / NORMAL_95 / optimal).tolist()
    off_plain = (plain - best)[:-1][shown] / plain_errors[:-1][shown]
    tally.inside_plain += (np.abs(off_plain) <= NORMAL_95).tolist()
    intercept, error = np.atleast_1d(model.intercept_)[0], np.atleast_1d(model.intercept_error_)[0]
    if np.isfinite(error):
        tally.intercepts.append(bool(abs(intercept - truth[-1]) <= NORMAL_95 * error))


def measured(population: Population, n: int, epsilon: float, resamples: int) -> dict[str, Any]:
    start, tally = time.perf_counter(), Tally()
    for seed in range(resamples):
        sampled(population, n, epsilon, seed, tally)

    def mean(values: list[Any]) -> float:
        return float(np.mean(values)) if values else float("nan")

    def median(values: list[float]) -> float:
        return float(np.median(values)) if values else float("nan")

    return {
        "data": population.name, "family": population.family, "n": n, "epsilon": epsilon,
        "known": mean(tally.known), "coverage": mean(tally.inside),
        "of least squares": mean(tally.inside_best) if population.family == "linear" else math.nan,
        "without privacy": mean(tally.inside_plain), "length ratio": median(tally.lengths),
        "to optimal noise": median(tally.to_optimal),
        "pull": median(tally.pulls), "intercept": mean(tally.intercepts),
        "false p": mean(tally.false_p), "false marks": mean(tally.false_marks),
        "seconds": (time.perf_counter() - start) / resamples,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few cells, in minutes")
    parser.add_argument("--resamples", type=int, help="of each cell: 40 or 200")
    parser.add_argument("--rows", type=int, nargs="+", help="these cells, with each epsilon")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 2.0, 8.0])
    parser.add_argument("--data", nargs="+", choices=POPULATIONS, default=[*POPULATIONS])
    given = parser.parse_args()
    resamples = given.resamples or (40 if given.quick else 200)
    made = {name: POPULATIONS[name]() for name in given.data}
    cells = QUICK if given.quick else FULL
    if given.rows:
        cells = [(name, n, e) for name in made for n in given.rows for e in given.epsilon]
    rows = []
    for name, n, epsilon in cells:
        if name in made:
            rows.append(row := measured(made[name], n, float(epsilon), resamples))
            print(" ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
            sys.stdout.flush()
    show(f"Coverage of {LEVEL:.0%} intervals, {resamples} samples each", rows)
    keep("interval_coverage", {"resamples": resamples, "rows": rows})


if __name__ == "__main__":
    main()
