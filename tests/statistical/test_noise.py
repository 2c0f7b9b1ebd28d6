"""Random words are fair, never repeat, and never travel.

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

WORD = 64


def test_every_bit_of_a_word_is_fair():
    words = Noise(seed=15).words(400_000)
    for bit in range(WORD):
        ones = int(((words >> np.uint64(bit)) & np.uint64(1)).sum())
        assert stats.binomtest(ones, len(words), 0.5).pvalue >= FALSE_ALARM / WORD


def test_the_bits_of_a_word_are_independent_of_each_other():
    words = Noise(seed=16).words(200_000)
    bits = (words[:, None] >> np.arange(WORD, dtype=np.uint64)) & np.uint64(1)
    signs = 2.0 * bits - 1
    together = signs.T @ signs  # each off the diagonal is a sum of 200,000 fair signs
    pairs = WORD * (WORD - 1) / 2
    limit = stats.norm.isf(FALSE_ALARM / (2 * pairs)) * np.sqrt(len(words))
    assert np.abs(together - np.diag(np.diag(together))).max() <= limit


@pytest.mark.parametrize("calls", ["one call", "many short calls"])
def test_words_are_uniform(calls):
    noise = Noise(seed=11)
    if calls == "one call":
        words = noise.words(1_000_000)
    else:
        words = np.concatenate([noise.words(1 + i % 7) for i in range(25_000)])
    for shift in (56, 28, 0):  # the highest, the middle and the lowest byte
        counts = np.bincount(((words >> np.uint64(shift)) & np.uint64(255)).astype(int))
        assert len(counts) == 256
        assert stats.chisquare(counts).pvalue >= FALSE_ALARM / 3


def test_the_smallest_and_largest_words_have_their_weight():
    # A chi-square test over bytes sees little of the ends, and the tails of noise live there.
    words = Noise(seed=13).words(2_000_000)
    cuts = [1e-2, 1e-3, 1e-4, 1e-5]
    for weight in cuts:
        low = int((words < np.uint64(weight * 2.0**64)).sum())
        high = int((words > np.uint64((1 - weight) * 2.0**64)).sum())
        for count in (low, high):
            test = stats.binomtest(count, len(words), weight)
            assert test.pvalue >= FALSE_ALARM / (2 * len(cuts))


def test_successive_calls_are_uncorrelated():
    noise, width, lags = Noise(seed=14), 5, [1, 2, 5, 10, 50]
    words = np.concatenate([noise.words(width) for _ in range(40_000)])
    scores = stats.norm.ppf((words + 0.5) / 2.0**64 * (1 - 2.0**-50))
    limit = stats.norm.isf(FALSE_ALARM / (2 * 2 * len(lags)))
    for series in (scores, (scores**2 - 1) / np.sqrt(2)):
        for lag in lags:
            products = series[lag:] * series[:-lag]
            # Studentised: normal to well below this limit for 200,000 products.
            assert abs(products.mean()) <= limit * products.std() / np.sqrt(len(products))


def test_fresh_generators_never_share_a_word():
    # Keys from 256 seeds would repeat among the first 30 generators, and from 2^32 among these
    # but for a chance of 1e-3.
    words = np.concatenate([Noise().words(1) for _ in range(250_000)])
    assert len(np.unique(words)) == len(words)  # by chance: 2e-9


def test_successive_draws_differ():
    noise = Noise()
    assert len(np.intersect1d(noise.words(1000), noise.words(1000))) == 0


def test_a_seed_makes_draws_reproducible_and_is_marked():
    np.testing.assert_array_equal(Noise(seed=3).words(100), Noise(seed=3).words(100))
    assert len(np.intersect1d(Noise(seed=3).words(100), Noise(seed=4).words(100))) == 0
    assert Noise(seed=3).seeded
    assert Noise(seed=0).seeded
    assert "NOT PRIVATE" in repr(Noise(seed=3))
    assert not Noise().seeded
    assert "NOT PRIVATE" not in repr(Noise())


def test_a_seeded_stream_does_not_depend_on_how_it_is_cut():
    whole, parts = Noise(seed=5), Noise(seed=5)
    cut = np.concatenate([parts.words(n) for n in (1, 3, 0, 96)])
    np.testing.assert_array_equal(whole.words(100), cut)


def drawn_by_threads(noise, count=8, calls=500):
    """What each of several threads draws from the same generator at the same time."""
    drawn, start = [], threading.Barrier(count)

    def work():
        start.wait()
        drawn.append(np.concatenate([noise.words(3) for _ in range(calls)]))

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return drawn


@pytest.mark.parametrize("seed", [None, 1], ids=["unseeded", "seeded"])
def test_threads_never_get_the_same_word(seed):
    words = np.concatenate(drawn_by_threads(Noise(seed)))
    assert len(words) == 8 * 1500
    assert len(np.unique(words)) == len(words)


def test_each_thread_has_a_stream_of_its_own():
    # Whole streams, not pieces of one: the stream that a thread would get alone goes to one of
    # them, undisturbed, and nothing of it to the others.
    alone = Noise(seed=6).words(8 * 1500)
    shares = [np.isin(words, alone) for words in drawn_by_threads(Noise(seed=6))]
    assert sorted(share.mean() for share in shares) == [0.0] * 7 + [1.0]


_FORK = """
import os
import numpy as np
from riata.mechanisms.noise import Noise

noise = Noise()
noise.words(3)  # in use before the fork


def child():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, noise.words(128).tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        drawn = np.frombuffer(pipe.read(), dtype="<u8")
    os.waitpid(pid, 0)
    assert len(drawn) == 128
    return drawn


drawn = np.concatenate([child(), child(), noise.words(128), child()])
print(len(drawn), len(np.unique(drawn)))
"""


def test_a_forked_process_takes_a_new_key():
    # In a process of its own: this one may have threads, and a fork would warn about them.
    done = subprocess.run(
        [sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["512", "512"]


@pytest.mark.parametrize("seed", [None, 1], ids=["unseeded", "seeded"])
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_generator_cannot_be_duplicated(duplicate, seed):
    with pytest.raises(TypeError, match="noise"):
        duplicate(Noise(seed))


def test_a_generator_shows_no_key():
    noise = Noise()
    noise.words(10)
    kept = vars(noise).values()
    assert not any(isinstance(value, (bytes, bytearray, memoryview)) for value in kept)
    assert repr(noise) == "<Noise keyed by the system>"


def test_a_fork_while_another_thread_draws_leaves_the_child_able_to_draw():
    noise, stop = Noise(), threading.Event()

    def work():
        while not stop.is_set():
            noise.words(1000)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads, on purpose
                child = os.fork()
            if child == 0:
                signal.alarm(20)  # a deadlock would last for ever
                os._exit(0 if len(noise.words(1)) == 1 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        thread.join()
