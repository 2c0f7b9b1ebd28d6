"""Seeds and normal vectors are the same on every device and server, for ever."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from riata.local import generator as module
from riata.local.channel import Channel
from riata.local.generator import LONGEST_PAIR, Generator
from riata.local.questions import _multiply_high, lift
from riata.local.sketch import Sketch, hadamard

FROZEN = json.loads((Path(__file__).parents[1] / "data/local_vectors.json").read_text())
KEY = bytes.fromhex(FROZEN["key"])
SEEDS = np.array([int(seed, 16) for seed in FROZEN["seeds"]], dtype=np.uint64)

#: Logarithms, sines and cosines may differ in their last bits from machine to machine.
CLOSE = {"rtol": 0, "atol": 1e-13}


def words_of(texts):
    return np.array([int(text, 16) for text in texts], dtype=np.uint64)


def test_words_are_the_frozen_ones():
    assert Generator(KEY).words(SEEDS, 0, 2).tolist() == FROZEN["words"]


def test_words_are_aes_in_counter_mode():
    for seed in FROZEN["seeds"]:
        counter = bytes.fromhex(seed) + bytes(8)
        stream = Cipher(algorithms.AES256(KEY), modes.CTR(counter)).encryptor().update(bytes(48))
        ours = Generator(KEY).words(words_of([seed]), 0, 3)
        assert ours.astype("<u4").tobytes() == stream


def test_normals_are_the_frozen_ones():
    made = Generator(KEY)
    np.testing.assert_allclose(made.normals(SEEDS, 9), FROZEN["normals"], **CLOSE)
    np.testing.assert_allclose(made.normals(SEEDS, 3, 1 << 42), FROZEN["far_normals"], **CLOSE)


def test_normals_are_those_of_box_and_muller_word_by_word():
    for words, row in zip(FROZEN["words"], FROZEN["normals"], strict=True):
        for i in range(0, 8, 2):
            length = math.sqrt(-2 * math.log((words[i] + 0.5) / 2**32))
            angle = 2 * math.pi * words[i + 1] / 2**32
            expected = length * math.cos(angle), length * math.sin(angle)
            np.testing.assert_allclose(row[i : i + 2], expected, **CLOSE)


def test_signs_and_places_are_the_frozen_ones():
    sketch = Sketch(Generator(KEY), 5000, 512)
    assert sketch._signs[:64].tolist() == FROZEN["signs"]
    assert sketch.places(SEEDS)[:, :4].tolist() == FROZEN["places"]


@pytest.mark.parametrize(
    "frozen", FROZEN["decisions"], ids=lambda d: f"{d['degree']}-{d['epsilon']}"
)
def test_decisions_are_the_frozen_ones(frozen):
    channel = Channel(frozen["degree"], 5, frozen["threshold"], int(frozen["coin"], 16))
    direction = lift(np.array([frozen["row"]]))[0]
    np.testing.assert_allclose(direction, frozen["direction"], **CLOSE)
    products = Generator(KEY).normals(words_of(frozen["seeds"]), 5) @ direction
    np.testing.assert_allclose(products, frozen["products"], **CLOSE)
    assert channel.accepts(products, words_of(frozen["coins"])).tolist() == frozen["accepted"]


def test_any_coordinate_can_be_made_alone():
    made = Generator(KEY)
    places = np.array([8, 0, 3, 3, 30, 17])
    assert np.array_equal(made.coordinates(SEEDS, places), made.normals(SEEDS, 31)[:, places])


def test_a_vector_does_not_depend_on_how_many_are_made(monkeypatch):
    made = Generator(KEY)
    many = made.normals(SEEDS, 12)
    assert np.array_equal(many[3:4], made.normals(SEEDS[3:4], 12))
    assert np.array_equal(many[:, :5], made.normals(SEEDS, 5))
    monkeypatch.setattr(module, "_BLOCK", 16)
    assert np.array_equal(many, made.normals(SEEDS, 12))


def test_no_seeds_make_no_vectors():
    none = np.zeros(0, np.uint64)
    assert Generator(KEY).normals(none, 5).shape == (0, 5)
    assert Generator(KEY).words(none, 0, 2).shape == (0, 8)
    assert Generator(KEY).coordinates(none, np.arange(3)).shape == (0, 3)


@pytest.fixture(scope="module")
def compiled():
    pytest.importorskip("numba")
    from riata.local.compiled_normals import box_muller

    return box_muller


@pytest.mark.not_quick
def test_compiled_normals_are_the_same(compiled):
    words = Generator(KEY).words(np.arange(4000, dtype=np.uint64), 0, 4)
    ours, theirs = np.empty(words.shape), np.empty(words.shape)
    compiled(words, ours)
    module._box_muller(words, theirs)
    np.testing.assert_allclose(ours, theirs, **CLOSE)


@pytest.mark.not_quick
def test_compiled_normals_are_the_same_at_the_edges(compiled):
    lengths = [0, 1, 2, 2**31 - 1, 2**31, 3037000499, 3037000500, 2**32 - 2, 2**32 - 1]
    angles = [0, 1, 2**29 - 1, 2**29, 2**30, 3 * 2**29, 2**31, 3 * 2**30, 7 * 2**29, 2**32 - 1]
    pairs = np.array([(u, w) for u in lengths for w in angles], dtype="<u4")
    ours, theirs = np.empty(pairs.shape), np.empty(pairs.shape)
    compiled(pairs, ours)
    module._box_muller(pairs, theirs)
    np.testing.assert_allclose(ours, theirs, **CLOSE)
    longest = np.hypot(*theirs.T).max()
    assert longest <= LONGEST_PAIR * (1 + 1e-15)
    assert longest >= LONGEST_PAIR * (1 - 1e-12)


def test_compiled_code_takes_over_after_a_while(compiled, monkeypatch):
    made = Generator(KEY)
    first = made.normals(SEEDS, 40)
    monkeypatch.setattr(module, "PATIENCE", 0)
    again = made.normals(SEEDS, 40)
    assert made._transform is compiled
    np.testing.assert_allclose(first, again, **CLOSE)


def test_coordinates_are_as_accurate_as_the_margin_says():
    mpmath = pytest.importorskip("mpmath")
    words = Generator(KEY).words(np.arange(60, dtype=np.uint64), 0, 1)
    words = np.vstack([words, [[0, 2**30, 2**32 - 1, 3 * 2**30]]]).astype("<u4")
    made = np.empty(words.shape)
    module._box_muller(words, made)
    with mpmath.workprec(120):
        for row, got in zip(words.tolist(), made.tolist(), strict=True):
            for i in (0, 2):
                length = mpmath.sqrt(-2 * mpmath.log((row[i] + mpmath.mpf(0.5)) / 2**32))
                angle = 2 * mpmath.pi * row[i + 1] / 2**32
                assert abs(length * mpmath.cos(angle) - got[i]) <= 2**-36 / 1000
                assert abs(length * mpmath.sin(angle) - got[i + 1]) <= 2**-36 / 1000


def test_words_are_scaled_to_seeds_exactly():
    words = SEEDS * np.uint64(977)
    for count, expected in FROZEN["scaled"].items():
        scaled = _multiply_high(words, int(count, 16))
        assert [f"{int(s):016x}" for s in scaled] == expected
        assert [int(s) for s in scaled] == [int(w) * int(count, 16) >> 64 for w in words]


@pytest.mark.parametrize("count", [1, 2, 3, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64])
def test_scaled_words_stay_below_the_count(count):
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**64, 2000, dtype=np.uint64)
    words = np.append(words, np.array([0, 1, 2**32 - 1, 2**32, 2**64 - 1], dtype=np.uint64))
    assert [int(s) for s in _multiply_high(words, count)] == [int(w) * count >> 64 for w in words]


def test_the_hadamard_transform_is_orthogonal_and_its_own_inverse():
    rows = np.random.default_rng(6).normal(size=(3, 64))
    once = hadamard(rows.copy())
    np.testing.assert_allclose(np.linalg.norm(once, axis=1), np.linalg.norm(rows, axis=1))
    np.testing.assert_allclose(hadamard(once.copy()), rows, atol=1e-14)


def test_the_places_of_a_seed_are_all_different():
    places = Sketch(Generator(KEY), 3000, 512).places(np.arange(200, dtype=np.uint64))
    assert places.min() >= 0
    assert places.max() < 4096
    assert all(len(set(row)) == 512 for row in places.tolist())


@pytest.mark.long
def test_the_vectors_can_be_written_again():
    tool = Path(__file__).parents[2] / "tools/local_vectors.py"
    ran = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=True)
    again = json.loads(ran.stdout)
    assert again.keys() == FROZEN.keys()
    assert again["words"] == FROZEN["words"]
    assert again["scaled"] == FROZEN["scaled"]
