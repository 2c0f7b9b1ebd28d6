"""Attacks that succeeded against other libraries, each tried here.

Where an attack needs something to succeed against, a textbook mechanism is the control. Seeds are
fixed; each statistical test would reject a correct mechanism with probability at most
`FALSE_ALARM` over the choice of its seed.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.losses import Huber, Squared
from riata.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    TopK,
)
from riata.mechanisms.additive import Additive
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy.events import Gaussian, leaves
from riata.problem import Problem
from riata.queries import Gradient, MeanSlope
from riata.sets import L1Ball, L2Ball
from riata.solvers import GaussianFrankWolfe, PrivateFrankWolfe
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=13)

FALSE_ALARM = 1e-9
ADDITIVE = [LaplaceMechanism(1.0), GaussianMechanism(2.0)]
every_additive = pytest.mark.parametrize("mechanism", ADDITIVE, ids=repr)


# (i) Mironov (2012): the low-order bits of a floating-point Laplace release give away its input.

N = 8
PROBLEM = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), N, 1)
QUERY = MeanSlope(PROBLEM, PROBLEM.set.start())


def neighbours():
    """Two data sets that differ in one row, with answers of 0 and -1/2."""
    x = np.ones((N, 1))
    y = np.repeat([1.0, -1.0], N // 2)
    other = y.copy()
    other[-1] = 1.0
    return [LocalEngine(x, targets, PROBLEM.bounds) for targets in (y, other)]


@dataclass(frozen=True)
class TextbookLaplace:
    """answer + scale * (a float64 Laplace variable): the control."""

    epsilon: float

    def scale(self, query):
        return query.sensitivity("l1") / self.epsilon

    def release(self, query, engine, noise):
        words = noise.words(2)
        u = (float(words[0] >> np.uint64(11)) + 0.5) * 2.0**-53
        sign = 1.0 if words[1] >> np.uint64(63) else -1.0
        return query.from_total(engine.total(query)) - sign * self.scale(query) * np.log(u)


def fine(released):
    """The event: small, and not a multiple of 2^-54 as every sum near 1/2 + something is."""
    return np.abs(released) < 0.1, np.abs(released) * 2.0**54 % 1 != 0


def seen(mechanism, engine, draws=4_000):
    noise = Noise(71)
    released = np.array([mechanism.release(QUERY, engine, noise)[0] for _ in range(draws)])
    small, odd = fine(released)
    assert small.sum() > 100
    return int((small & odd).sum())


def test_low_order_bits_give_away_the_input_of_a_textbook_laplace():
    ours, theirs = (seen(TextbookLaplace(1.0), engine) for engine in neighbours())
    assert ours > 100
    assert theirs == 0


@every_additive
def test_low_order_bits_give_nothing_away(mechanism):
    ours, theirs = (seen(mechanism, engine) for engine in neighbours())
    assert ours == theirs == 0


@every_additive
def test_neighbours_can_release_the_same_numbers(mechanism):
    # Every release is one of the numbers k * grid, and the grid is public: it depends on the
    # scale of the noise alone.
    steps = mechanism.scale(QUERY) / QUERY.unit
    grid = 2.0 ** max(int(np.frexp(steps)[1]) - 11, 0)
    noise = Noise(72)
    for engine in neighbours():
        released = np.array([mechanism.release(QUERY, engine, noise)[0] for _ in range(2_000)])
        multiple = np.rint(released / QUERY.unit / grid)
        np.testing.assert_array_equal(QUERY.from_total(multiple * grid), released)
        assert set(multiple % 8) == set(range(8))  # and none of them is left out


@every_additive
def test_the_grid_is_found_for_totals_that_are_no_multiples_of_it(mechanism):
    # Seven steps apart in a sum whose grid is far coarser: both end on the same multiples.
    places = []
    for last in (0.0, 7 / 2**16):
        engine = LocalEngine(np.ones((1, 1)), np.array([last]), PROBLEM.bounds)
        noise = Noise(73)
        steps = [mechanism.release(QUERY, engine, noise)[0] / QUERY.unit for _ in range(500)]
        places.append(np.array(steps))
    grid = 2.0 ** (int(np.frexp(mechanism.scale(QUERY) / QUERY.unit)[1]) - 11)
    assert grid > 7
    for found in places:
        assert np.abs(found / grid - np.rint(found / grid)).max() < 1e-9


# (ii) A linear regression that added no noise to a moment whose lower bound was 0.

ROWS = np.random.default_rng(74).uniform(0, 1, (40, 5))
DATA = {
    "one-sided": (ROWS, np.linspace(0, 1, 40)),
    "rows of zeros": (np.zeros((40, 5)), np.zeros(40)),
    "constant columns": (np.ones((40, 5)), np.ones(40)),
    "one column of zeros": (ROWS * [1, 1, 0, 1, 1], np.linspace(0, 1, 40)),
    "missing": (np.full((40, 5), np.nan), np.full(40, np.nan)),
}
BOUNDS = [
    Bounds(1.0, 1.0),
    Bounds(1e-50, 1e-50),
    Bounds(1e50, 1e50),
    Bounds([1e-60, 1, 1, 1, 1e60], 1),
]
COMMON = {"random_state": 75}
MODELS = {
    "lasso": lambda bounds: PrivateLasso(1.0, 1e-6, bounds=bounds, **COMMON),
    "pure lasso": lambda bounds: PrivateLasso(1.0, 0.0, bounds=bounds, **COMMON),
    "noisy max": lambda bounds: PrivateLasso(
        1.0, 1e-6, solver=PrivateFrankWolfe(3, "laplace"), bounds=bounds, **COMMON
    ),
    "gaussian": lambda bounds: PrivateErm(
        Huber(0.5), L2Ball(1.0), 1.0, 1e-6, solver=GaussianFrankWolfe(3), bounds=bounds, **COMMON
    ),
    "logistic": lambda bounds: PrivateLogisticRegression(
        1.0, 1e-6, classes=[0, 1], bounds=bounds, **COMMON
    ),
}


def noise_scales(query, mechanism):
    """The scale of the noise on every coordinate, in units of what one row can change."""
    if isinstance(mechanism, Additive):
        return mechanism.scale(query) / (query.row_bound("linf") / query.n_rows)
    return query.sensitivity("linf") / (query.row_bound("linf") / query.n_rows) / mechanism.epsilon


@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
@pytest.mark.parametrize("model", MODELS)
def test_every_released_query_has_noise(monkeypatch, model, bounds, case):
    released, release = [], Curator.release

    def recorded(self, query, mechanism, part=0):
        released.append(noise_scales(query, mechanism))
        return release(self, query, mechanism, part)

    monkeypatch.setattr(Curator, "release", recorded)
    x, y = DATA[case]
    y = (y > 0.5).astype(int) if model == "logistic" else y
    found = MODELS[model](bounds).fit(x, y)
    if model in ("noisy max", "gaussian"):
        assert len(released) == 6  # a vertex or gradient and an intercept in each of three steps
    assert len(released) >= 3
    # At epsilon 1, less noise than what one row can change would protect nobody.
    assert all(1 <= scale < np.inf for scale in released)
    assert np.all(np.isfinite(found.coef_))


@every_additive
@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("scale", [1e-50, 1.0, 1e50])
def test_every_coordinate_of_a_release_has_the_same_noise(mechanism, case, scale):
    x, y = DATA[case]
    bounds = Bounds(scale, scale)
    query = Gradient(Problem(Squared(), L1Ball(1.0), bounds, 40, 5), Vector.unit(5, 0, 0.5))
    engine, noise, draws = LocalEngine(scale * x, scale * y, bounds), Noise(76), 400
    exact = query.from_total(engine.total(query))
    residuals = np.array([mechanism.release(query, engine, noise) for _ in range(draws)]) - exact
    law = stats.laplace if isinstance(mechanism, LaplaceMechanism) else stats.norm
    for column in residuals.T:
        found = stats.kstest(column / mechanism.scale(query), law.cdf)
        assert found.pvalue >= FALSE_ALARM / 5


# (iii) Noise drawn from 256 seeds.


@pytest.mark.long
def test_two_thousand_fits_share_no_noise(monkeypatch):
    drawn, words = [], Noise.words

    def recorded(self, n):
        drawn.append(words(self, n))
        return drawn[-1]

    monkeypatch.setattr(Noise, "words", recorded)
    model = PrivateLasso(1.0, 0.0, bounds=Bounds(1.0, 1.0), steps=1)
    for _ in range(2_000):
        model.fit(*DATA["one-sided"])
    assert len(drawn) >= 2_000
    found = np.concatenate(drawn)
    assert len(np.unique(found)) == len(found)  # by chance: 2e-12


# (iv) The scale of the noise passed where its mean belongs.


def known_scale(mechanism, query):
    """What the event claims, which is what is paid for."""
    event = mechanism.event
    if isinstance(event, Gaussian):
        return stats.norm(scale=event.noise_multiplier * query.sensitivity("l2"))
    return stats.laplace(scale=query.sensitivity("l1") / event.epsilon)


@pytest.mark.parametrize(
    "mechanism",
    [LaplaceMechanism(0.2), LaplaceMechanism(3.0), GaussianMechanism(0.5), GaussianMechanism(9.0)],
    ids=repr,
)
def test_additive_noise_has_mean_zero_and_the_scale_of_its_event(mechanism):
    p = 100_000
    query = Gradient(Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 1, p), Vector.zero(p))
    engine = LocalEngine(np.ones((1, p)), np.array([-0.3]), Bounds(1.0, 1.0))
    noise = mechanism.release(query, engine, Noise(77)) - query.from_total(engine.total(query))
    law = known_scale(mechanism, query)
    assert abs(noise.mean()) <= stats.norm.isf(FALSE_ALARM / 4) * law.std() / np.sqrt(p)
    cells = np.histogram(noise, law.ppf(np.linspace(0, 1, 51)))[0]
    assert stats.chisquare(cells).pvalue >= FALSE_ALARM / 2


#: The chance of the worse of two candidates, `gap` units of 2 sensitivities / epsilon below.
WORSE = {
    ExponentialMechanism: lambda gap: expit(-gap),
    TopK: lambda gap: expit(-gap),
    PermuteAndFlip: lambda gap: np.exp(-gap) / 2,
    ReportNoisyMax: lambda gap: np.exp(-gap) * (2 + gap) / 4,
}


@dataclass
class TwoCandidates(Engine):
    """A query and its engine: the first candidate is better by `gap`, at sensitivity 0.25."""

    gap: float
    symmetric: bool = False

    def sensitivity(self, norm):
        return 0.25

    def total(self, query):
        return np.array([self.gap, 0.0])

    def from_total(self, total):
        return total


@pytest.mark.parametrize("epsilon", [0.4, 2.0])
@pytest.mark.parametrize("gap", [0.0, 0.5, -0.5])
@pytest.mark.parametrize("kind", WORSE, ids=lambda kind: kind.__name__)
def test_the_noise_of_a_selection_has_no_direction_and_the_scale_of_its_event(kind, gap, epsilon):
    # With a mean, the noise would prefer a candidate at gap 0; with another scale, the better
    # one would win by another share, and by the same one whichever comes first.
    mechanism = kind(epsilon, 1) if kind is TopK else kind(epsilon)
    (event,) = leaves(mechanism.event)
    query, noise, draws = TwoCandidates(gap), Noise(78), 10_000
    found = [int(np.ravel(mechanism.release(query, query, noise))[0]) for _ in range(draws)]
    worse = 1 if gap >= 0 else 0
    chance = WORSE[kind](abs(gap) * event.epsilon / (2 * 0.25))
    assert stats.binomtest(found.count(worse), draws, chance).pvalue >= FALSE_ALARM
