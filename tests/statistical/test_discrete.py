"""Coins, dice and numbers of repetitions have exactly their law."""

import numpy as np
import pytest
from scipy.stats import chi2

from riata.mechanisms.discrete import bernoulli, geometric, uniform_int
from riata.mechanisms.noise import Noise

#: The false-alarm rate of each statistical test here.
RATE = 1e-7


class Scripted:
    """Words that are known."""

    def __init__(self, *words):
        self._words = list(words)

    def words(self, n):
        return np.array([self._words.pop(0) for _ in range(n)], dtype="<u8")


def test_a_coin_compares_all_binary_digits():
    assert bernoulli(0.5, Scripted(2**63 - 1))
    assert not bernoulli(0.5, Scripted(2**63))  # a uniform variable of at least one half
    assert bernoulli(1.0, Scripted(2**64 - 1))
    tiny = 2.0**-70
    assert bernoulli(tiny, Scripted(0, 2**58 - 1))
    assert not bernoulli(tiny, Scripted(0, 2**58))
    third = 1 / 3
    first = int(third * 2**64)
    assert not bernoulli(third, Scripted(first))  # all digits of a float are in the first words
    assert bernoulli(third, Scripted(first - 1))


def test_a_die_refuses_the_words_that_would_make_it_uneven():
    assert uniform_int(3, Scripted(2**64 - 1, 7)) == 1
    assert uniform_int(1, Scripted(5)) == 0


def fits(counts, probabilities):
    """Pearson's statistic is not beyond what happens once in 1 / RATE."""
    wanted = counts.sum() * probabilities
    statistic = float(np.sum((counts - wanted) ** 2 / wanted))
    return statistic < chi2.isf(RATE, len(counts) - 1)


@pytest.mark.parametrize("stop", [1.0, 0.5, 0.1])
def test_the_number_of_repetitions_is_geometric(stop):
    """False-alarm rate 1e-7."""
    noise, draws = Noise(3), 20_000
    found = np.array([geometric(stop, noise) for _ in range(draws)])
    if stop == 1:
        assert (found == 1).all()
        return
    top = int(np.floor(np.log(20 / draws) / np.log1p(-stop)))
    law = stop * (1 - stop) ** np.arange(top)
    counts = np.bincount(np.minimum(found, top + 1) - 1, minlength=top + 1)
    assert fits(counts, np.append(law, 1 - law.sum()))


def test_a_die_is_even():
    """False-alarm rate 1e-7."""
    noise = Noise(4)
    counts = np.bincount([uniform_int(7, noise) for _ in range(20_000)], minlength=7)
    assert fits(counts, np.full(7, 1 / 7))
