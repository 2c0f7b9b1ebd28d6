"""The noise has the laws it claims, never repeats, and never travels.

Seeds are fixed, so a verdict never changes from run to run. Each statistical test would reject a
correct generator with probability at most `FALSE_ALARM` over the choice of its seed.
"""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from scipy import stats

from riata.mechanisms.noise import Noise

FALSE_ALARM = 1e-9

LAWS = {
    "uniform": stats.uniform(),
    "normal": stats.norm(),
    "exponential": stats.expon(),
    "gumbel": stats.gumbel_r(),
    "laplace": stats.laplace(),
}
every_law = pytest.mark.parametrize("law", LAWS)


@every_law
def test_draws_follow_their_law(law):
    draws = getattr(Noise(seed=11), law)(1_000_000)
    assert stats.kstest(draws, LAWS[law].cdf).pvalue >= FALSE_ALARM


@every_law
def test_many_short_calls_follow_the_same_law(law):
    noise = Noise(seed=12)
    draws = np.concatenate([getattr(noise, law)(1 + i % 7) for i in range(25_000)])
    assert stats.kstest(draws, LAWS[law].cdf).pvalue >= FALSE_ALARM


@every_law
def test_tails_have_their_weight(law):
    # Kolmogorov and Smirnov see little of the tails, and privacy lives there.
    draws = getattr(Noise(seed=13), law)(2_000_000)
    cuts = [1e-2, 1e-3, 1e-4, 1e-5]
    for weight in cuts:
        above = int((draws > LAWS[law].isf(weight)).sum())
        below = int((draws < LAWS[law].ppf(weight)).sum())
        for count in (above, below):
            test = stats.binomtest(count, len(draws), weight)
            assert test.pvalue >= FALSE_ALARM / (2 * len(cuts))


@every_law
def test_successive_calls_are_uncorrelated(law):
    noise, width, lags = Noise(seed=14), 5, [1, 2, 5, 10, 50]
    draws = np.concatenate([getattr(noise, law)(width) for _ in range(40_000)])
    scores = stats.norm.ppf(np.clip(LAWS[law].cdf(draws), 1e-15, 1 - 1e-15))
    limit = stats.norm.isf(FALSE_ALARM / (2 * 2 * len(lags)))
    for series in (scores, (scores**2 - 1) / np.sqrt(2)):
        for lag in lags:
            products = series[lag:] * series[:-lag]
            # Studentised: normal to well below this limit for 200,000 products.
            assert abs(products.mean()) <= limit * products.std() / np.sqrt(len(products))


def test_every_bit_of_a_uniform_is_fair():
    draws = Noise(seed=15).uniform(200_000)
    bits = 50
    ones = [int((np.floor(draws * 2.0 ** (k + 1)) % 2).sum()) for k in range(bits)]
    for count in ones:
        assert stats.binomtest(count, len(draws), 0.5).pvalue >= FALSE_ALARM / bits


class FixedWords(Noise):
    """A generator whose key stream is one chosen word."""

    def __init__(self, word):
        super().__init__(seed=0)
        self._word = word

    def _words(self, n):
        return np.full(n, self._word, dtype="<u8")


@every_law
@pytest.mark.parametrize(
    "word",
    [0, 1, 2**10, 2**63 - 1, 2**63, 2**64 - 2**11, 2**64 - 1],
    ids=["0", "1", "2^10", "2^63-1", "2^63", "2^64-2^11", "2^64-1"],
)
def test_no_word_gives_the_ends_of_the_interval_or_infinite_noise(law, word):
    draw = float(getattr(FixedWords(word), law)(1)[0])
    assert np.isfinite(draw)
    if law == "uniform":
        assert 0 < draw < 1


def test_unseeded_generators_differ():
    words = np.concatenate([Noise().uniform(4) for _ in range(100)])
    assert len(np.unique(words)) == len(words)


def test_successive_draws_differ():
    noise = Noise()
    first, second = noise.uniform(1000), noise.uniform(1000)
    assert len(np.intersect1d(first, second)) == 0
    assert len(np.intersect1d(first, noise.exponential(1000))) == 0


def test_a_seed_makes_draws_reproducible_and_is_marked():
    for law in LAWS:
        np.testing.assert_array_equal(
            getattr(Noise(seed=3), law)(100), getattr(Noise(seed=3), law)(100)
        )
    assert len(np.intersect1d(Noise(seed=3).uniform(100), Noise(seed=4).uniform(100))) == 0
    assert Noise(seed=3).seeded
    assert Noise(seed=0).seeded
    assert "NOT PRIVATE" in repr(Noise(seed=3))
    assert not Noise().seeded
    assert "NOT PRIVATE" not in repr(Noise())


def test_a_seeded_stream_does_not_depend_on_how_it_is_cut():
    whole, parts = Noise(seed=5), Noise(seed=5)
    cut = np.concatenate([parts.uniform(n) for n in (1, 3, 0, 96)])
    np.testing.assert_array_equal(whole.uniform(100), cut)


def test_threads_never_get_the_same_draw():
    noise, drawn, start = Noise(), [], threading.Barrier(8)

    def work():
        start.wait()
        drawn.append(np.concatenate([noise.uniform(3) for _ in range(500)]))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(drawn)
    assert len(words) == 8 * 1500
    assert len(np.unique(words)) == len(words)


_FORK = """
import os
import numpy as np
from riata.mechanisms.noise import Noise

noise = Noise()
noise.uniform(3)  # in use before the fork


def child():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, noise.uniform(64).tobytes() + noise.normal(64).tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        drawn = np.frombuffer(pipe.read())
    os.waitpid(pid, 0)
    assert len(drawn) == 128
    return drawn


drawn = np.concatenate([child(), child(), noise.uniform(64), noise.normal(64), child()])
print(len(drawn), len(np.unique(drawn)))
"""


def test_a_forked_process_takes_a_new_key():
    # In a process of its own: this one may have threads, and a fork would warn about them.
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["512", "512"]


@pytest.mark.parametrize("seed", [None, 1], ids=["unseeded", "seeded"])
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_generator_cannot_be_duplicated(duplicate, seed):
    with pytest.raises(TypeError, match="noise"):
        duplicate(Noise(seed))


def test_a_generator_shows_no_key():
    noise = Noise()
    noise.uniform(10)
    kept = vars(noise).values()
    assert not any(isinstance(value, (bytes, bytearray, memoryview)) for value in kept)
    assert repr(noise) == "<Noise keyed by the system>"


def test_a_fork_while_another_thread_draws_leaves_the_child_able_to_draw():
    noise = Noise()
    with noise._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads, on purpose
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a deadlock would last for ever
            os._exit(0 if noise.uniform(1)[0] > 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
