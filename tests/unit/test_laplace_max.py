"""The cost of a maximum with Laplace noise: its law by quadrature, against what is proven."""

import itertools
import math

import numpy as np
import pytest

from riata.mechanisms import ReportNoisyMax
from riata.privacy.accountants import RenyiAccountant
from riata.privacy.accountants.divergences import (
    MOST_TIES,
    laplace_max_divergence,
    pure_divergence,
)
from riata.privacy.events import LaplaceMax, from_json, of_group, to_json

LEVELS = np.linspace(-30.0, 30.0, 6_001)
STEP = LEVELS[1] - LEVELS[0]


def shape(v):
    """At each level: every candidate's rate of wins there, and the law of the largest value."""
    x = LEVELS - np.asarray(v, dtype=float)[:, None]
    above = np.exp(-np.maximum(x, 0.0)) / 2
    log_F = np.where(x < 0, np.minimum(x, 0) - math.log(2), np.log1p(-above))
    return np.where(x < 0, 1.0, above / (1 - above)), np.exp(log_F.sum(axis=0))


def law(v):
    rates, cdf = shape(v)
    p = (rates * cdf).sum(axis=1) * STEP
    assert p.sum() == pytest.approx(1.0, abs=1e-4)
    return p / p.sum()


def ties(v):
    """s_i of Lemma 10."""
    rates, cdf = shape(v)
    return (rates * rates.sum(axis=0) * cdf).sum(axis=1) / (rates * cdf).sum(axis=1)


def utilities():
    rng = np.random.default_rng(0)
    yield from (np.zeros(k) for k in (2, 3, 4, 5, 30))
    yield from (rng.normal(0, size, rng.integers(2, 12)) for size in [0.3, 1, 3] for _ in range(3))
    yield from (np.r_[0.0, np.full(k, -gap)] for k in (3, 4, 40) for gap in (0.06, 0.15, 1, 4))


def test_the_law_is_that_of_two_and_of_equal_candidates():
    gap = 0.7
    assert law([0.0, -gap])[1] == pytest.approx(math.exp(-gap) * (2 + gap) / 4, rel=1e-4)
    np.testing.assert_allclose(law(np.zeros(7)), 1 / 7)


def test_ties_are_no_more_frequent_than_is_proven_and_nearly_so():
    most = max(ties(v).max() for v in utilities())
    assert 1.16 < most <= MOST_TIES


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.5, 5.0])
@pytest.mark.parametrize("alpha", [1.5, 2.0, 5.0, 40.0])
def test_no_neighbours_diverge_by_more_than_is_proven(epsilon, alpha):
    rng, worst = np.random.default_rng(1), 0.0
    bound = laplace_max_divergence(epsilon, alpha)
    for v in utilities():
        moves = [rng.choice([-0.5, 0.5], len(v)), np.where(np.arange(len(v)) % 2, 0.5, -0.5)]
        for move in moves:
            p, q = law(v), law(v + epsilon * move)
            found = math.log(np.sum(q * (q / p) ** (alpha - 1))) / (alpha - 1)
            worst = max(worst, found)
    assert worst <= bound * (1 + 1e-6) + 1e-9
    assert bound <= pure_divergence(epsilon, alpha) * (1 + 1e-9)
    if (
        alpha >= 2 and alpha * epsilon <= 1
    ):  # and it is not far off: a bounded range would be too little
        assert worst >= 0.8 * bound
    if epsilon == 0.3 and alpha == 5.0:
        assert worst > alpha * epsilon**2 / 8


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.02, 3.0, 20.0])
def test_the_bound_is_a_bound_at_every_order(epsilon):
    orders = [1 + 10.0**k for k in range(-6, 9)]
    found = [laplace_max_divergence(epsilon, alpha) for alpha in orders]
    assert all(0 <= each <= epsilon * (1 + 1e-12) for each in found)
    assert all(b >= a * (1 - 1e-9) for a, b in itertools.pairwise(found))
    assert laplace_max_divergence(0.0, 3.0) == 0
    small = laplace_max_divergence(0.01, 3.0) / (3.0 * 0.01**2 / 2)
    assert small == pytest.approx(MOST_TIES**2 / 4, rel=0.05)


def test_the_event_is_that_of_the_mechanism_and_travels():
    event = ReportNoisyMax(0.3).event
    assert event == LaplaceMax(0.3)
    assert from_json(to_json(event)).parts == ((event, 1),)
    assert of_group(event, 3).epsilon == pytest.approx(0.9)
    assert RenyiAccountant().divergence(event, 4.0) <= 4 * 0.3**2 / 2
