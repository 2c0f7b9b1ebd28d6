"""Error bars, forecasts and harm of local models over repeated collections.

Seeds are fixed, so a test that passes once passes always. The false-alarm rates, below 1e-8 unless
a test says otherwise, are how often a correct learner would fail with another seed.
"""

import math

import numpy as np
import pytest
from scipy.special import expit, log_expit
from scipy.stats import binom

from riata import Bounds, LocalLasso, LocalLogisticRegression
from riata.errors import InvalidArgument
from riata.local import Task
from riata.local.learners.canonical import FAMILIES, normal_canonical, target_scale
from riata.local.learners.mean import mean_model
from riata.local.population import Population, PopulationGuess
from riata.local.task_plan import plan

pytestmark = pytest.mark.matrix(one_in=11)

FALSE_ALARM = 1e-8
KINDS = ["mean", "sparse-mean", "linear", "lasso", "logistic", "poisson", "kernel"]


def task(kind, epsilon=1.0, size=5):
    table = {
        "kind": kind,
        "epsilon": epsilon,
        "features": [{"name": "v", "kind": "vector", "size": size, "bounds": [-1.0, 1.0]}],
        "length": 1.0,
    }
    if "mean" not in kind:
        number = {"name": "t", "kind": "number", "bounds": [-1.0, 1.0]}
        count = {"name": "t", "kind": "number", "bounds": [0.0, 6.0], "center": 1.0}
        yes_no = {"name": "t", "kind": "yes-no"}
        table["target"] = {"logistic": yes_no, "poisson": count}.get(kind, number)
    if kind == "kernel":
        table["kernel"] = {"width": 1.0, "pairs": 8}
    return Task.from_table(table)


def learned(world, n):
    """A model of a made-up collection, and the truth."""
    kind = world.task.kind
    if "mean" in kind:
        truth = world.theta * (world.guess.length / np.linalg.norm(world.theta))
        noise = world.task.question("mean").noise(n)
        seen = truth + noise * world.rng.standard_normal(len(truth))
        return mean_model(world.task, n, seen, noise), truth
    return world._model(n), odds_scale(world) * world.theta


def odds_scale(world):
    """What turns coefficients of least squares into those of log odds, or of logarithms."""
    if not world.task.spec.family:
        return 1.0
    unit, middle = target_scale(world.task)
    family = FAMILIES[world.task.spec.family]
    return unit * normal_canonical(family, unit**2 * world.explained, middle)[0]


def coverage(kind, epsilon, size, n, repeats):
    """The part of kept coefficients inside their 90% intervals, by collection with a signal."""
    one = task(kind, epsilon, size)
    parts = []
    for rng in np.random.default_rng(11).spawn(repeats):
        model, truth = learned(Population(one, PopulationGuess(), rng), n)
        kept = np.flatnonzero(model.theta)
        if model.signal and len(kept):
            off = np.abs(model.theta - truth)[kept] / model.theta_errors[kept]
            parts.append(np.mean(off < 1.6449))
    return np.array(parts)


@pytest.mark.parametrize(
    ("kind", "size", "n"),
    [
        ("mean", 5, 10**4),
        ("mean", 30, 10**5),
        ("sparse-mean", 30, 10**5),
        ("linear", 5, 10**6),
        ("linear", 5, 10**8),
        ("linear", 30, 10**6),
        ("linear", 30, 10**8),
        ("lasso", 5, 10**6),
        ("lasso", 30, 10**8),
        ("poisson", 5, 10**6),
        ("poisson", 5, 10**8),
        ("logistic", 5, 2 * 10**4),
        ("logistic", 5, 10**5),
        ("logistic", 5, 10**8),
        ("logistic", 30, 10**6),
        ("logistic", 30, 10**8),
    ],
)
def test_intervals_of_ninety_percent_cover_about_ninety(kind, size, n):
    """Measured: 88% to 96%. Promised: 75% to 99.5%, which are six of its errors further away.

    Coefficients of one collection share its errors, so each collection counts once. By Hoeffding's
    inequality the mean of m of them is off by more than sqrt(log(2 / rate) / (2 m)) too rarely;
    that is added to both ends.
    """
    parts = coverage(kind, 1.0, size, n, 120)
    assert len(parts) >= 60
    slack = math.sqrt(math.log(2.0 / FALSE_ALARM) / (2.0 * len(parts)))
    print(f"{kind} d={size} n={n}: {parts.mean():.3f}")
    assert 0.75 <= parts.mean() <= 0.995
    assert parts.mean() + slack >= 0.9


def test_intervals_after_screening():
    """Nothing below 5,000 columns is screen_columns, so a few slow collections must do."""
    parts = coverage("sparse-linear", 4.0, 5000, 10**8, 12)
    assert len(parts) == 12
    print(f"sparse-linear: {parts.mean():.3f}")
    assert parts.mean() >= 0.6  # 12 collections of 3 or 4 columns; measured 0.89


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_few_people_do_no_harm(kind, epsilon):
    """The worst share of the achievable gain of 100 collections from 1,000 people.

    Noise passes for a signal in about 1 of 500 collections, and then it harms. More than six of 100
    are rarer than 1e-8, and on average hardly anything is lost.
    """
    one = task(kind, epsilon, 10)
    rngs = np.random.default_rng(12).spawn(100)
    shares = np.array([Population(one, PopulationGuess(), rng).share(1000) for rng in rngs])
    print(f"{kind} {epsilon}: worst {shares.min():.3f}, mean {shares.mean():.3f}")
    if kind == "mean":  # every coordinate is kept: its noise is what was asked for
        noise = one.question("mean").noise(1000)
        expected = 1.0 - 10 * noise**2 / 0.7**2
        assert shares.mean() == pytest.approx(expected, abs=0.5 * (1.0 - expected))
        return
    assert np.sum(shares < -0.05) <= 6
    assert shares.mean() >= -0.03


@pytest.mark.parametrize("kind", ["linear", "lasso", "logistic"])
def test_noise_alone_is_a_signal_less_often_than_promised(kind):
    """3 standard errors: less than 1 in 500 collections. False alarm below 1e-8."""
    one = task(kind, 1.0, 5)
    found, repeats = 0, 600
    for rng in np.random.default_rng(13).spawn(repeats):
        world = Population(one, PopulationGuess(), rng)
        world.theta = np.zeros(5)
        found += world._model(10**5).signal
    assert found <= binom.isf(FALSE_ALARM, repeats, 1 / 500)


# The forecast against devices that are played


def drawn(world, n, rng):
    """Rows and targets of the people of a world, on the scale of the answers."""
    left = math.sqrt(1.0 - world.task.intercept)
    signs = rng.choice([-1.0, 1.0], (n, world.columns))
    x = signs * np.sqrt(world.variances) / left  # rows of one length: none is shortened
    return x, x @ world.theta * left


def played(kind, epsilon, n, seed):
    """The share of the gain of one collection in which every device is played."""
    rng = np.random.default_rng(seed)
    world = Population(task(kind, epsilon, 4), PopulationGuess(), rng)
    x, margins = drawn(world, n, rng)
    bounds = Bounds(1.0, 1.0, norm="l2")
    if kind == "logistic":
        odds = odds_scale(world) * margins
        labels = rng.random(n) < expit(odds)
        model = LocalLogisticRegression(epsilon, bounds=bounds, random_state=seed)
        found = model.fit(x, labels).decision_function(x[:20_000])
        odds = odds[:20_000]
        chance = expit(odds)

        def loss(guess):
            return -np.mean(chance * log_expit(guess) + (1.0 - chance) * log_expit(-guess))

        return (math.log(2.0) - loss(found)) / (math.log(2.0) - loss(odds))
    noise = world.guess.spread * math.sqrt(1.0 - world.guess.explained)
    y = margins + noise * rng.choice([-1.0, 1.0], n)
    model = LocalLasso(
        epsilon, bounds=bounds, penalty="l1" if kind == "lasso" else "l2", random_state=seed
    )
    found = model.fit(x, y).predict(x[:20_000])
    return 1.0 - np.mean((found - margins[:20_000]) ** 2) / np.mean(margins[:20_000] ** 2)


@pytest.mark.parametrize(
    ("kind", "n"), [("linear", 60_000), ("lasso", 100_000), ("logistic", 20_000)]
)
@pytest.mark.slow
def test_forecasts_agree_with_collections_that_are_played(kind, n):
    """Six played collections against 60 forecast ones, within 0.2 and five standard errors."""
    real = np.array([played(kind, 3.0, n, seed) for seed in range(6)])
    one = task(kind, 3.0, 4)
    rngs = np.random.default_rng(14).spawn(60)
    forecast = np.array([Population(one, PopulationGuess(), rng).share(n) for rng in rngs])
    error = forecast.std() * math.sqrt(1 / 6 + 1 / 60)
    print(f"{kind}: played {real.mean():.3f}, forecast {forecast.mean():.3f} +- {error:.3f}")
    assert abs(real.mean() - forecast.mean()) <= 0.2 + 6.0 * error
    assert forecast.mean() > 0.2


def test_the_forecast_grows_with_people_and_epsilon():
    shares = [
        np.mean([Population(task("linear", eps), PopulationGuess(), rng).share(n) for rng in rngs])
        for eps, n in [(1.0, 10**4), (1.0, 10**6), (4.0, 10**6), (4.0, 10**8)]
        for rngs in [np.random.default_rng(15).spawn(40)]
    ]
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[-1] > 0.95


@pytest.mark.parametrize("n", [0, -1, 1.5, "10", None, True, math.nan])
def test_plans_need_a_number_of_people(n):
    with pytest.raises(InvalidArgument, match=r"n=.* whole number of at least 1: .*people"):
        task("mean").plan(n)


@pytest.mark.parametrize(
    ("guess", "message"),
    [
        ({"explained": 0.0}, "explained=0.0: .* above 0 and at most 0.6"),
        ({"explained": 0.9}, "explained=0.9: .* above 0 and at most 0.6"),
        ({"explained": math.nan}, "explained=nan"),
        ({"spread": -1.0}, "spread=-1.0"),
        ({"length": 2.0}, "length=2.0"),
        ({"length": "1"}, "length='1'"),
        ({"decay": -0.1}, "decay=-0.1"),
        ({"nonzero": 0}, "nonzero=0"),
        ({"nonzero": 2.5}, "nonzero=2.5"),
        ({"nonzero": True}, "nonzero=True"),
        ({"explained": True}, "explained=True"),
        ({"explain": 0.1}, "explain is not known.*Did you mean explained"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": "x"}, "seed='x'"),
    ],
)
def test_plans_need_a_possible_guess(guess, message):
    with pytest.raises(InvalidArgument, match=message):
        task("linear").plan(1000, **guess)


def test_plans_are_reproducible_and_of_few_words():
    one = task("lasso", 4.0, 6)
    first = plan(one, np.int64(1000), nonzero=50)
    assert str(first) == str(plan(one, 1000, nonzero=50))
    assert first.people == 1000
    low, high = first.interval
    assert low <= high
    assert 0 <= first.no_signal <= 1
    assert "Too few people" in first.advice or first.worthwhile


def test_plans_of_many_columns_solve_few_collections(monkeypatch):
    def share(population, n):
        solved.append(population.columns)
        return population.ease(n)

    solved = []
    monkeypatch.setattr(Population, "share", share)
    kept = plan(task("linear", 1.0, 200), 10**8)
    assert len(solved) > 100
    solved.clear()
    wide = plan(task("linear", 1.0, 1000), 10**9)
    assert len(solved) <= 13
    guess, rngs = PopulationGuess(), np.random.default_rng(0).spawn(40)
    all_of_them = [Population(wide.task, guess, rng).ease(10**9) for rng in rngs]
    assert wide.share == pytest.approx(np.mean(all_of_them), abs=0.02)
    assert kept.people_needed < wide.people_needed
