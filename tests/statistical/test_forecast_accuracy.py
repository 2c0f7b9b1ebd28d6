"""Forecasts against real fits on data for which the guess is true."""

import numpy as np
import pytest

from riata import Bounds, PrivateLasso, PrivateLogisticRegression, forecast
from riata.engines import LocalEngine
from riata.simulation import Guess, SimulatedEngine, World
from riata.solvers import choose_solver

#: Rows, columns, relevant columns, the noise of y, epsilon.
NUMBERS = [
    (2_000, 50, 3, 0.2, 1.0),
    (2_000, 200, 5, 0.2, 2.0),
    (3_000, 300, 5, 0.1, 1.0),
    (4_000, 100, 10, 0.2, 2.0),
    (4_000, 400, 10, 0.1, 5.0),
    (3_000, 200, 10, 0.4, 5.0),
    (2_000, 100, 20, 0.1, 5.0),
    (2_000, 300, 10, 0.4, 0.2),
    (5_000, 60, 20, 0.1, 2.0),
    (5_000, 200, 10, 0.1, 0.5),
]
LABELS = [(4_000, 60, 5, 6.0, 5.0), (2_000, 100, 5, 4.0, 0.3)]

FLOOR = 1e-3

#: What is true of the columns.
KNOWN = {"design": "uniform", "correlation": 0.0, "alignment": 0.0}


def rows(n, p, s, seed):
    rng = np.random.default_rng(seed)
    theta = np.zeros(p)
    theta[rng.choice(p, s, replace=False)] = rng.uniform(0.5, 1.5, s) * rng.choice([-1, 1], s)
    return rng, rng.uniform(-1, 1, (n, p)), theta / np.abs(theta).sum()


def number_fit(case, seed):
    n, p, s, noise, epsilon = case
    rng, x, theta = rows(n, p, s, seed)
    variance = theta @ theta / 3
    model = PrivateLasso(epsilon, 1e-6, bounds=Bounds(x=1.0, y=1.0), random_state=seed)
    model.fit(x, x @ theta + noise * rng.standard_normal(n))
    real = np.sum((model.coef_ - theta) ** 2) / 3 + model.intercept_**2
    total = variance + noise**2
    found = forecast(
        model, n, p, relevant=s, signal=variance / total, spread=np.sqrt(total), seed=seed, **KNOWN
    )
    return real / variance, found


def label_fit(case, seed):
    n, p, s, factor, epsilon = case
    rng, x, theta = rows(n, p, s, seed)
    odds = 1 / (1 + np.exp(-factor * x @ theta))
    from riata.simulation.world import auc

    model = PrivateLogisticRegression(
        epsilon, 1e-6, bounds=Bounds(x=1.0), classes=[0, 1], random_state=seed
    ).fit(x, (rng.random(n) < odds).astype(int))
    best = auc(x @ theta, odds)
    found = forecast(model, n, p, relevant=s, signal=best, seed=seed, **KNOWN)

    def risk(p):
        return -np.mean(odds * np.log(p) + (1 - odds) * np.log1p(-p))

    fitted = model.predict_proba(x)[:, 1]
    return (risk(fitted) - risk(odds)) / (risk(np.full(n, odds.mean())) - risk(odds)), found


@pytest.mark.slow
def test_fits_are_where_they_were_expected():
    """Of 36 fits four of five should be near, and nearly all inside.

    If four of five are near, fewer than 16 are with probability 5e-7, and so it is with 22 inside
    where nine of ten are. `benchmarks/forecast.py` measures the shares themselves.
    """
    near, inside = 0, 0
    for again in range(3):
        results = [number_fit(case, 100 + 40 * again + k) for k, case in enumerate(NUMBERS)]
        results += [label_fit(case, 300 + 40 * again + k) for k, case in enumerate(LABELS)]
        for real, found in results:
            expected = found.excess_part
            near += max(real, expected) < FLOOR or expected / 2 <= real <= 2 * expected
            parts = [each.excess / each.explained for each in found.scores]
            inside += min(parts) <= real <= max(parts) * 1.05
    print(near, inside)
    assert near >= 16
    assert inside >= 22


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", [{}, {"design": "signs"}, {"design": "normal", "correlation": 0.8, "group": 10}]
)
def test_columns_on_demand_have_the_law_of_whole_tables(shape):
    """Six standard errors of 80 fits: a false alarm has a probability below 1e-7 for each shape."""
    from riata.curator import Curator
    from riata.mechanisms.noise import Noise

    model = PrivateLasso(8.0, 1e-6, bounds=Bounds(x=1.0, y=1.0))
    plan = model.plan(4_000, 300)
    solver = choose_solver(plan.solver, plan.problem, plan.budget, "auto")
    guess = Guess(relevant=10, signal=0.7, spread=0.25, **shape)
    found = {}
    for whole in (True, False):
        logs = []
        for seed in range(40):
            world = World(guess, plan.problem, np.random.default_rng([seed, whole]))
            x, y = world.draw()
            engine = plan.engine(LocalEngine, world.whole(x), y) if whole else SimulatedEngine(x, y)
            curator = Curator(engine, plan.event, Noise(seed), plan.parts, plan.adaptive)
            logs.append(np.log(world.score(solver.run(plan, plan.problem, curator).theta).excess))
        found[whole] = np.array(logs)
    error = np.sqrt(sum(each.var() / len(each) for each in found.values()))
    assert abs(found[True].mean() - found[False].mean()) < 6 * error
