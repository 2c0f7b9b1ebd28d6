"""Counts and amounts: the deviance that private models explain of rows that were held out.

Beside them are fits without privacy, and gradient descent with clipped gradients and Gaussian
noise whose number of steps, step size and clipping were chosen by the scores themselves: on the
rows as they are, and on columns that were standardised without privacy, from the best constant.
The visits to a doctor are statsmodels' `randhie`, claims
and amounts are simulated.

    python benchmarks/families.py [--epsilon 1 3] [--seeds 5]
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import TweedieRegressor
from statsmodels.datasets import randhie

from riata import (
    Bounds,
    Budget,
    PrivateGammaRegression,
    PrivateNegativeBinomialRegression,
    PrivatePoissonRegression,
    PrivateTweedieRegression,
)
from riata.losses import Gamma, Poisson, Squared, Tweedie
from riata.losses.log_link import LogLinkLoss
from riata.problem import Problem
from riata.sets import L2Ball
from riata.solvers import NoisyGradient

from results import keep, show

DELTA = 1e-6

#: What the oracle chooses from: steps, step sizes over the mean curvature, and the quantile of the
#: lengths of gradients at the best constant at which they are clipped.
STEPS, RATES, CLIPS = (5, 20, 60), (0.2, 1.0, 5.0), (0.5, 0.9, 0.99)


@dataclass
class Data:
    """Rows in units of their public bounds."""

    name: str
    x: np.ndarray
    y: np.ndarray
    exposure: np.ndarray
    bound: float
    loss: LogLinkLoss
    models: dict[str, Any]

    @property
    def exposed(self) -> bool:
        return bool(self.exposure.min() < 1)


def visits() -> Data:
    """Visits of 20,190 people to a doctor. The bounds are round numbers that a study would say."""
    table = randhie.load_pandas().data
    most = {"lncoins": 5, "lpi": 8, "fmde": 9, "disea": 60}
    x = np.column_stack([table[k] / most.get(k, 1) for k in table.columns if k != "mdvis"])
    y = table["mdvis"].to_numpy(float)
    models = {
        "Poisson": PrivatePoissonRegression(1.0),
        "negative binomial": PrivateNegativeBinomialRegression(1.0),
    }
    return Data("randhie", x, y, np.ones(len(y)), 50.0, Poisson(), models)


def claims(rng: np.random.Generator) -> Data:
    """Claims of 40,000 drivers, observed for a month to a year, on 12 correlated columns."""
    x = drivers(rng, 40_000)
    years = rng.uniform(1 / 12, 1.0, len(x))
    y = rng.poisson(years * np.exp(-1.5 + x[:, :6] @ COEFFICIENTS)).astype(float)
    models = {"Poisson": PrivatePoissonRegression(1.0, max_exposure=1.0)}
    return Data("claims", x, y, years, 5.0, Poisson(), models)


def amounts(rng: np.random.Generator) -> Data:
    """What 20,000 claims cost: Gamma amounts of shape 2, about 1,000 each."""
    x = drivers(rng, 20_000)
    y = rng.gamma(2.0, 500 * np.exp(x[:, :6] @ COEFFICIENTS / 2))
    models = {"Gamma": PrivateGammaRegression(1.0)}
    return Data("amounts", x, y, np.ones(len(y)), 10_000.0, Gamma(), models)


def totals(rng: np.random.Generator) -> Data:
    """What 40,000 drivers cost in a year: 0 for most of them."""
    x = drivers(rng, 40_000)
    number = rng.poisson(np.exp(-1.5 + x[:, :6] @ COEFFICIENTS))
    y = np.where(number > 0, rng.gamma(2.0 * np.maximum(number, 1), 0.5), 0.0)
    models = {"Tweedie": PrivateTweedieRegression(1.0)}
    return Data("totals", x, y, np.ones(len(y)), 10.0, Tweedie(1.5), models)


COEFFICIENTS = np.array([1.2, -0.9, 0.7, 0.5, -0.4, 0.3])


def drivers(rng: np.random.Generator, n: int) -> np.ndarray:
    common = rng.uniform(-1, 1, (n, 1))
    return 0.5 * common + 0.5 * rng.uniform(-1, 1, (n, 12))


def explained(data: Data, rows: np.ndarray, means: np.ndarray) -> float:
    y, exposure = data.y[rows], data.exposure[rows]
    flat = data.loss.deviance(y, y.sum() / exposure.sum() * exposure)
    return float(1 - data.loss.deviance(y, means).sum() / flat.sum())


def without_privacy(data: Data, fit: np.ndarray, held: np.ndarray) -> float:
    model = TweedieRegressor(power=data.loss.power, alpha=0.0, link="log", max_iter=2_000)
    exposure = data.exposure
    model.fit(data.x[fit], data.y[fit] / exposure[fit], sample_weight=exposure[fit])
    return explained(data, held, model.predict(data.x[held]) * exposure[held])


def private(data: Data, model: Any, epsilon: float, seed: int, fit: Any, held: Any) -> float:
    bounds = Bounds(1.0, data.bound)
    model.set_params(epsilon=epsilon, delta=DELTA, bounds=bounds, random_state=seed)
    more = {"exposure": data.exposure[fit]} if data.exposed else {}
    model.fit(data.x[fit], data.y[fit], **more)
    return explained(data, held, model.predict(data.x[held]) * data.exposure[held])


def descents(data: Data, known: bool, epsilon: float, seed: int, fit: Any, held: Any) -> np.ndarray:
    """The scores of noisy gradient descent with each setting; `known` are means and scales."""
    x = data.x
    if known:
        x = (x - x[fit].mean(axis=0)) / x[fit].std(axis=0)
    x = np.column_stack([x, np.ones(len(x))])
    y, offset, loss = data.y[fit], np.log(data.exposure), data.loss
    start = np.zeros(x.shape[1])
    start[-1] = np.log(y.sum() / data.exposure[fit].sum())
    margins = x[fit] @ start + offset[fit]
    lengths = np.abs(loss.slope(margins, y)) * np.linalg.norm(x[fit], axis=1)
    curvature = loss.curvature(margins, y).mean()
    start = start if known else np.zeros(len(start))
    problem = Problem(Squared(), L2Ball(1.0), Bounds(1.0, 1.0), len(y), x.shape[1])
    one = NoisyGradient(steps=1).plan(problem, Budget(epsilon, DELTA))["gradient"]
    scores = []
    for steps, rate, clip in itertools.product(STEPS, RATES, np.quantile(lengths, CLIPS)):
        rng, theta = np.random.default_rng(seed), start.copy()
        noise = one.noise_multiplier * np.sqrt(steps) * 2 * clip / len(y)
        for _ in range(steps):
            slope = loss.slope(x[fit] @ theta + offset[fit], y)
            length = np.abs(slope) * np.linalg.norm(x[fit], axis=1)
            slope /= np.maximum(length / clip, 1.0)
            gradient = x[fit].T @ slope / len(y) + noise * rng.standard_normal(len(theta))
            theta -= rate / curvature * gradient
        margins = np.clip(x[held] @ theta + offset[held], -30, 30)
        scores.append(explained(data, held, np.exp(margins)))
    return np.nan_to_num(np.array(scores), nan=-1.0)


def measured(data: Data, epsilons: list[float], seeds: int) -> list[dict[str, Any]]:
    splits = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(data.y))
        splits.append((seed, order[len(order) // 4 :], order[: len(order) // 4]))
    reference = np.mean([without_privacy(data, fit, held) for _, fit, held in splits])
    rows = []
    for epsilon in epsilons:
        oracle, knowing = (
            float(np.mean([descents(data, k, epsilon, *each) for each in splits], axis=0).max())
            for k in (False, True)
        )
        for name, model in data.models.items():
            start = time.perf_counter()
            scores = [private(data, model, epsilon, *split) for split in splits]
            rows.append({
                "data": data.name, "family": name, "epsilon": epsilon,
                "riata": float(np.mean(scores)), "least": min(scores),
                "oracle descent": oracle, "and standardised": knowing,
                "without privacy": float(reference),
                "seconds": (time.perf_counter() - start) / seeds,
            })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    rng = np.random.default_rng(2_026)
    every = [visits(), claims(rng), amounts(rng), totals(rng)]
    rows = [row for data in every for row in measured(data, given.epsilon, given.seeds)]
    show("Deviance explained of rows that were held out (D2)", rows)
    keep("families", {"rows": rows})


if __name__ == "__main__":
    main()
