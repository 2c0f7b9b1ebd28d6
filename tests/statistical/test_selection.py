"""Selections follow their exact laws, and additive noise has the claimed scale.

Seeds are fixed. Each statistical test would reject a correct mechanism with probability at most
`FALSE_ALARM` over the choice of its seed.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.losses import Squared
from riata.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.problem import Problem
from riata.queries import Gradient, VertexUtilities
from riata.sets import L1Ball
from riata.vectors import Vector

from goodness_of_fit import pvalue

pytestmark = pytest.mark.matrix(one_in=11)

FALSE_ALARM = 1e-9
EPSILON, SENSITIVITY = 0.7, 0.02
#: One unit of scaled utility: a candidate this much better is e times as likely.
UNIT = 2 * SENSITIVITY / EPSILON


@dataclass
class Utilities(Engine):
    """A query with known answers, in units of `UNIT`, and its own engine."""

    scaled: tuple
    symmetric: bool = False

    def sensitivity(self, norm):
        assert norm == "linf"
        return SENSITIVITY

    def total(self, query):
        return np.array(self.scaled)

    def from_total(self, total):
        return UNIT * total

    @property
    def candidates(self):
        """The scaled utility of every candidate."""
        listed = np.array(self.scaled)
        return np.concatenate([listed, -listed]) if self.symmetric else listed


class InUnits(Utilities):
    """The same at epsilon 1 and sensitivity 1/2, where a utility is its own scaled value."""

    def sensitivity(self, norm):
        return 0.5

    def from_total(self, total):
        return total


def choose(kind, utility, symmetric, noise):
    """One selection among utilities in units."""
    query = InUnits(tuple(utility), symmetric)
    return kind(1.0).release(query, query, noise)


def selections(mechanism, utilities, draws, seed):
    """How often each candidate is selected in `draws` releases."""
    noise = Noise(seed)
    found = [mechanism.release(utilities, utilities, noise) for _ in range(draws)]
    return np.bincount(found, minlength=len(utilities.candidates))


def exponential_law(u):
    return np.exp(u - logsumexp(u))


def permute_and_flip_law(u):
    """Algorithm 1 of McKenna and Sheldon (2020), over all orders of the candidates.

    Candidates flip a coin of probability exp(u_i - max u) in a random order until one comes up.
    """
    heads = np.exp(u - np.max(u))
    law = np.zeros(len(u))
    orders = list(itertools.permutations(range(len(u))))
    for order in orders:
        nobody_yet = 1.0
        for i in order:
            law[i] += nobody_yet * heads[i] / len(orders)
            nobody_yet *= 1 - heads[i]
    return law


def noisy_max_law(u):
    """The chance that u_i plus Laplace noise is the largest, by numerical integration."""
    cuts = np.unique(u)
    edges = [cuts[0] - 60, *cuts, cuts[-1] + 60]

    def chance(i):
        others = np.delete(u, i)

        def density(t):
            return stats.laplace.pdf(t - u[i]) * np.prod(stats.laplace.cdf(t - others))

        return sum(
            quad(density, a, b, epsabs=1e-13, epsrel=1e-11, limit=200)[0]
            for a, b in itertools.pairwise(edges)
        )

    return np.array([chance(i) for i in range(len(u))])


LAWS = {
    ExponentialMechanism: exponential_law,
    PermuteAndFlip: permute_and_flip_law,
    ReportNoisyMax: noisy_max_law,
}
every_selection = pytest.mark.parametrize("kind", LAWS, ids=lambda kind: kind.__name__)

FLAT_TO_PEAKED = [
    Utilities((0.0, 0.0, 0.0, 0.0)),
    Utilities((0.1, -0.2, 0.0, 0.3, -0.3)),
    Utilities((0.0, 1.0, 2.0, -1.0, 0.5)),
    Utilities((3.0, 3.0, 0.0)),
    Utilities((5.0, 0.0, -2.0, 1.0)),
    Utilities((1.5,)),
    Utilities((0.0, 0.0), symmetric=True),
    Utilities((0.3, -0.1), symmetric=True),
    Utilities((1.0, -0.5), symmetric=True),
    Utilities((-2.0, 0.7), symmetric=True),
    Utilities((-1.0,), symmetric=True),
]
every_utility = pytest.mark.parametrize("utilities", FLAT_TO_PEAKED, ids=str)


@every_selection
@every_utility
def test_selection_follows_its_exact_law(kind, utilities):
    law = LAWS[kind](utilities.candidates)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    assert pvalue(selections(kind(EPSILON), utilities, 20_000, seed=21), law) >= FALSE_ALARM


def test_exponential_noise_is_permute_and_flip():
    # The identity that the implementation rests on (Ding et al. 2021), without sampling.
    for u in ([0.0, 1.0, 2.0, -1.0, 0.5], [0.0, 0.0, 0.0], [3.0, 0.0]):
        u = np.array(u)
        for i in range(len(u)):
            others = np.delete(u, i)

            def density(t, i=i, others=others, u=u):
                below = np.prod(stats.expon.cdf(t - others))
                return stats.expon.pdf(t - u[i]) * below

            chance, _ = quad(density, u.max(), u.max() + 60, epsabs=1e-12, limit=200)
            assert chance == pytest.approx(permute_and_flip_law(u)[i], abs=1e-9)


@every_selection
@pytest.mark.parametrize("shift", [7.0, -250.0, 2.0**20])
def test_adding_a_constant_to_every_utility_changes_nothing(kind, shift):
    # The same seed gives the same noise, so every single selection must agree. The utilities are
    # multiples of 2^-10, so that adding the constant is exact.
    u = np.array([0.5, -1.25, 2.0, 0.125])
    plain, shifted = Noise(22), Noise(22)
    for _ in range(2000):
        assert choose(kind, u, False, plain) == choose(kind, u + shift, False, shifted)


@every_selection
def test_a_larger_sensitivity_or_smaller_epsilon_flattens_the_law_in_proportion(kind):
    utilities = Utilities((0.0, 1.0, 2.0))
    halved = LAWS[kind](utilities.candidates / 2)
    assert pvalue(selections(kind(EPSILON / 2), utilities, 20_000, seed=23), halved) >= FALSE_ALARM

    class Doubled(Utilities):
        def sensitivity(self, norm):
            return 2 * SENSITIVITY

    assert (
        pvalue(selections(kind(EPSILON), Doubled((0.0, 1.0, 2.0)), 20_000, seed=24), halved)
        >= FALSE_ALARM
    )


@every_selection
def test_mirrored_candidates_are_the_vertices_of_the_l1_ball_in_order(kind):
    # With this much epsilon the best vertex is selected; it is +e_1 or, negated, -e_1.
    problem = Problem(Squared(), L1Ball(2.0), Bounds(1.0, 1.0), 4, 3)
    for sign in (1.0, -1.0):
        x = np.array([[0.1, sign, 0.2]] * 4)
        engine = LocalEngine(x, np.ones(4), problem.bounds)
        scores = VertexUtilities(problem, problem.set.start())
        assert scores.symmetric
        index = kind(1e6).release(scores, engine, Noise(25))
        np.testing.assert_array_equal(problem.set.vertex(index).dense(), [0.0, 2.0 * sign, 0.0])
        risks = [
            float(np.mean((x @ problem.set.vertex(i).dense() * 0.01 - 1.0) ** 2))
            for i in range(problem.set.n_vertices)
        ]
        assert index == int(np.argmin(risks))


EXTREME = [
    (1e8, 0.0, -1e8),
    (1e8, 1e8, 1e8),
    (0.0, 0.0, 0.0, 0.0),
    (-1e8,),
    (1e300, -1e300, 0.0),
    (5e-324, -5e-324),
    (800.0, 799.0, -745.0),
]


@every_selection
@pytest.mark.parametrize("symmetric", [False, True], ids=["listed", "symmetric"])
@pytest.mark.parametrize("utility", EXTREME, ids=str)
def test_extreme_utilities_give_a_candidate_and_no_warning(kind, symmetric, utility):
    utility = np.array(utility)
    signed = np.concatenate([utility, -utility]) if symmetric else utility
    noise = Noise(26)
    chosen = {choose(kind, utility, symmetric, noise) for _ in range(200)}
    assert all(type(index) is int for index in chosen)
    # 45 units below the best is a chance of 1e-19.
    assert chosen <= set(np.flatnonzero(signed >= signed.max() - 45).tolist())


@every_selection
@pytest.mark.parametrize("symmetric", [False, True], ids=["listed", "symmetric"])
def test_ties_are_broken_evenly(kind, symmetric):
    utilities = Utilities((0.0,) * 4, symmetric)
    n = len(utilities.candidates)
    assert (
        pvalue(selections(kind(EPSILON), utilities, 20_000, seed=27), np.full(n, 1 / n))
        >= FALSE_ALARM
    )


class LuckyWords(Noise):
    """Real words, except that the first ones of the stream are given."""

    def __init__(self, seed, lucky):
        super().__init__(seed)
        self._lucky = list(lucky)

    def words(self, n):
        words = super().words(n).copy()
        given, self._lucky = self._lucky[:n], self._lucky[n:]
        words[: len(given)] = given
        return words


LEAST, MOST, PLUS, MINUS = 0, 2**64 - 1, 0, 2**63


@pytest.mark.parametrize(
    ("kind", "gap", "lucky"),
    [
        (ExponentialMechanism, 44.0, [LEAST, MOST]),
        (PermuteAndFlip, 40.0, [MOST, LEAST]),
        (ReportNoisyMax, 78.0, [MINUS, PLUS, LEAST, LEAST]),
    ],
)
def test_no_candidate_becomes_impossible(kind, gap, lucky):
    # The worse of two candidates has a chance of about exp(-gap). If noise has a largest value,
    # the chance is 0 from some gap on and not 0 just below it: two neighbours on the two sides
    # have no finite epsilon. So the first words are as lucky for the worse candidate as they can
    # be, all others are real, and the noise must still be able to grow from there.
    chosen = [choose(kind, [gap, 0.0], False, LuckyWords(seed, lucky)) for seed in range(400)]
    assert 0 < sum(chosen) < 400


# Additive mechanisms.

COLUMNS, RELEASES = 500, 400


def residuals(mechanism):
    """All coordinates of many releases minus the exact answer, and the query."""
    rng = np.random.default_rng(28)
    problem = Problem(Squared(), L1Ball(1.0), Bounds(0.8, 1.7), 20, COLUMNS)
    x, y = rng.uniform(-0.8, 0.8, (20, COLUMNS)), rng.uniform(-1.7, 1.7, 20)
    engine, noise = LocalEngine(x, y, problem.bounds), Noise(29)
    theta = Vector.of(np.array([0.5, *np.zeros(COLUMNS - 2), -0.25]))
    query = Gradient(problem, theta)
    exact = (x.T @ (2 * (x @ theta.dense() - y))) / 20
    released = np.array([mechanism.release(query, engine, noise) for _ in range(RELEASES)])
    return released - exact, query


def slope_bound():
    return 2 * (0.8 * 0.75 + 1.7)


def test_gaussian_noise_has_the_claimed_multiple_of_the_sensitivity():
    noise, query = residuals(GaussianMechanism(1.9))
    sensitivity = 2 * slope_bound() * 0.8 * np.sqrt(COLUMNS) / 20
    assert query.sensitivity("l2") == pytest.approx(sensitivity, rel=1e-12)
    law = stats.norm(scale=1.9 * sensitivity)
    assert stats.kstest(noise.ravel(), law.cdf).pvalue >= FALSE_ALARM


def test_laplace_noise_has_the_sensitivity_over_epsilon():
    noise, query = residuals(LaplaceMechanism(0.6))
    sensitivity = 2 * slope_bound() * 0.8 * COLUMNS / 20
    assert query.sensitivity("l1") == pytest.approx(sensitivity, rel=1e-12)
    law = stats.laplace(scale=sensitivity / 0.6)
    assert stats.kstest(noise.ravel(), law.cdf).pvalue >= FALSE_ALARM


@pytest.mark.parametrize("mechanism", [GaussianMechanism(1.9), LaplaceMechanism(0.6)])
def test_noise_is_independent_between_coordinates_and_releases(mechanism):
    noise, _ = residuals(mechanism)
    noise = noise / noise.std()
    limit = stats.norm.isf(FALSE_ALARM / 4)
    for a, b in [(noise[:, :-1], noise[:, 1:]), (noise[:-1], noise[1:])]:
        products = (a * b).ravel()
        assert abs(products.mean()) <= limit * products.std() / np.sqrt(products.size)
