"""Noise on a secret sample: who is in it, whether it is fresh, and the law of the noise.

Seeds are fixed. Over the choice of a seed, each statistical test fails with probability below 1e-9.
"""

import math

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import binomtest, chi2, kstest

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.losses import Squared
from riata.mechanisms import GaussianMechanism, SampledGaussianMechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.mechanisms.sampled import _Sampled
from riata.privacy.events import SampledGaussian
from riata.problem import Problem
from riata.queries import Block, ClippedGradient, Gradient
from riata.sets import L2Ball
from riata.vectors import Vector

FALSE_ALARM = 1e-9


def one_column_a_row(n, layout=np.asarray, block_rows=10**6):
    """Row i is the only one with an entry in column i: a sum shows who is in the sample."""
    problem = Problem(Squared(), L2Ball(1.0), Bounds(1.0, 1.0), n, n)
    engine = LocalEngine(layout(np.eye(n)), np.ones(n), problem.bounds, block_rows=block_rows)
    return Gradient(problem, Vector.zero(n)), engine


def samples(rate, n, releases, layout=np.asarray, block_rows=10**6, seed=70):
    """Who was in the sample, release by release."""
    query, engine = one_column_a_row(n, layout, block_rows)
    noise, seen = Noise(seed), []

    class Watching(Engine):
        def total(self, query):
            seen.append(engine.total(query))
            return seen[-1]

    mechanism = SampledGaussianMechanism(1.0, rate)
    for _ in range(releases):
        mechanism.release(query, Watching(), noise)
    return np.array(seen) != 0


@pytest.mark.matrix(one_in=5)
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.75])
@pytest.mark.parametrize(
    ("layout", "block_rows"), [(np.asarray, 10**6), (np.asarray, 7), (sparse.csr_array, 50)]
)
def test_each_row_takes_part_with_the_stated_probability(rate, layout, block_rows):
    taken = samples(rate, 200, 1_000, layout, block_rows)
    assert binomtest(int(taken.sum()), taken.size, rate).pvalue > FALSE_ALARM
    # Every row alike, and releases alike: sums of squares of both kinds of means.
    for axis in (0, 1):
        n = taken.shape[axis]
        z = (taken.sum(axis=axis) - n * rate) / math.sqrt(n * rate * (1 - rate))
        # The squares of a binomial have a little more weight in their tails than chi-square's.
        assert chi2.sf(float((z**2).sum()) / 1.15, len(z)) > FALSE_ALARM


def test_the_sample_is_fresh_in_each_release_and_independent_between_rows():
    rate = 0.5
    taken = samples(rate, 400, 500)
    both = taken[1:] & taken[:-1]
    assert binomtest(int(both[::2].sum()), both[::2].size, rate**2).pvalue > FALSE_ALARM
    beside = taken[:, 1::2] & taken[:, ::2]
    assert binomtest(int(beside.sum()), beside.size, rate**2).pvalue > FALSE_ALARM
    assert len({row.tobytes() for row in taken}) == len(taken)


class Scripted:
    def __init__(self, words):
        self._words = np.array(words, dtype=np.uint64)

    def words(self, start, n):
        return self._words[start : start + n]


def test_the_coin_turns_at_exactly_the_right_word():
    rate = 0.3
    threshold = int(rate * 2**63)
    words = [0, 2 * threshold - 2, 2 * threshold - 1, 2 * threshold, 2 * threshold + 1, 2**64 - 1]
    query, _ = one_column_a_row(6)
    rows = query.bounds.grid_x(np.eye(6))
    sampled = _Sampled(query, threshold, Scripted(words)).block_sum(Block(rows, np.ones(6)))
    np.testing.assert_array_equal(sampled != 0, [True, True, True, False, False, False])
    assert threshold / 2**63 <= rate  # never more than what is charged
    everybody = _Sampled(query, int(1.0 * 2**63), Scripted(words)).block_sum(
        Block(rows, np.ones(6))
    )
    assert np.all(everybody != 0)


@pytest.mark.parametrize("rate", [0.05, 0.6, 1.0])
def test_the_noise_is_that_of_the_whole_sum_over_the_rate(rate):
    p, z = 40, 1.7
    problem = Problem(Squared(), L2Ball(1.0), Bounds(1.0, 1.0, norm="l2"), 25, p)
    query = ClippedGradient(problem, Vector.zero(p), 0.5)
    engine = LocalEngine(np.zeros((25, p)), np.ones(25), problem.bounds)  # rows that say nothing
    mechanism, noise = SampledGaussianMechanism(z, rate), Noise(seed=71)
    released = np.array([mechanism.release(query, engine, noise) for _ in range(200)])
    scale = z * query.sensitivity("l2") / rate
    assert scale == pytest.approx(z * 2 * 0.5 / 25 / rate)
    assert kstest(released.ravel() / scale, "norm").pvalue > FALSE_ALARM


def test_a_sample_is_an_unbiased_look_at_all_rows():
    query, engine = one_column_a_row(100)
    mechanism, noise = SampledGaussianMechanism(1e-6, 0.25), Noise(seed=72)
    released = np.mean([mechanism.release(query, engine, noise) for _ in range(400)])
    exact = query.from_total(engine.total(query)).mean()
    # 40,000 coins of probability 1/4: the mean of coin / rate has this standard deviation.
    assert abs(released / exact - 1) <= 6.2 * math.sqrt(3 / 40_000)


def test_all_rows_are_all_rows():
    query, engine = one_column_a_row(30)
    sampled = _Sampled(query, 2**63, Noise(seed=73).coins())
    np.testing.assert_array_equal(engine.total(sampled), engine.total(query))
    for norm in ("l1", "l2", "linf"):
        assert sampled.sensitivity(norm) == query.sensitivity(norm)
        assert sampled.row_bound(norm) == query.row_bound(norm)
    assert SampledGaussianMechanism(2.0, 0.3).event == SampledGaussian(2.0, 0.3)


@pytest.mark.parametrize("block_rows", [1, 2, 7, 64])
def test_a_row_has_the_same_coin_in_any_block(block_rows):
    query, _ = one_column_a_row(60)
    coins = Noise(seed=76).coins()
    whole = LocalEngine(np.eye(60), np.ones(60), query.bounds)
    blocks = LocalEngine(np.eye(60), np.ones(60), query.bounds, block_rows=block_rows)
    sampled = _Sampled(query, 2**62, coins)
    np.testing.assert_array_equal(blocks.total(sampled), whole.total(sampled))
    assert 0 < np.count_nonzero(whole.total(sampled)) < 60
    words = coins.words(0, 60)
    for start in (0, 1, 2, 31):
        np.testing.assert_array_equal(coins.words(start, 9), words[start : start + 9])


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_an_empty_sample_is_no_error(layout):
    problem = Problem(Squared(), L2Ball(1.0), Bounds(1.0, 1.0), 4, 3)
    engine = LocalEngine(layout(np.ones((4, 3))), np.ones(4), problem.bounds, block_rows=2)
    mechanism = SampledGaussianMechanism(1.0, 1e-12)
    theta = Vector.of(np.array([0.1, 0.0, 0.2]))
    for query in (Gradient(problem, theta), ClippedGradient(problem, theta, 0.1)):
        assert np.all(np.isfinite(mechanism.release(query, engine, Noise(seed=74))))


def test_a_sampled_release_differs_from_a_full_one_by_the_sample_only():
    query, _ = one_column_a_row(8)
    full = GaussianMechanism(3.0)
    assert SampledGaussianMechanism(3.0, 0.5).event != full.event
    assert full.scale(query) == full.scale(_Sampled(query, 2**62, Noise(seed=75).coins()))
