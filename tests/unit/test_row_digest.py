"""The digest of rows in checkpoints: other rows have another one, in every lane's arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from riata import Bounds
from riata.engines.replies import Expected
from riata.grid import MOST_ROWS, X_STEPS
from riata.queries import Block, RowDigest, row_digest
from riata.queries.row_digest import pieces_of

PRIME = 2**31 - 1
KEYS = [bytes([k]) * 32 for k in range(5)]
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def digests(x, y, start=0, key=KEYS[0]):
    return RowDigest(key, MOST_ROWS, "replace-one").block_sum(Block(x, y, start))


def from_bits(bits):
    return np.array(bits % 2**64, dtype=np.uint64).view(np.float64)[()]


def bits_of(y):
    return int(np.float64(y).view(np.uint64))


def assert_differ(one, other):
    """Under no key, and in most lanes: one lane alone misses a change once in 2^17 times."""
    for key in KEYS:
        assert np.sum(digests(*one, key=key) == digests(*other, key=key)) <= 1


#: What is added to the 64 bits of a target.
CHANGES = {
    "sign": 2**63,
    "the prime in the high word": PRIME << 32,
    "the prime in the low word": PRIME,
    "half of the low word": 2**31,
    "both words": (PRIME << 32) + PRIME,
    "the next number": 1,
    "the number before": -1,
    "the lowest exponent": 2**52,
    "the end of a piece": 2**22,
    "the end of the next piece": 2**43,
    "the prime in the upper pieces": PRIME << 22,
    "the highest bit of a piece": 2**21,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("y", [0.0, 1.0, 0.3, -0.3, 5e-324, -1e300, 3.0, 2.0**51 - 1])
def test_targets_of_hostile_bits_have_other_digests(change, y):
    other = from_bits(bits_of(y) + CHANGES[change])
    x, targets = np.zeros((3, 2)), np.array([y, 0.2, 0.3])
    changed = np.array([other, 0.2, 0.3])
    assert_differ((x, targets), (x, changed))


@pytest.mark.not_quick
@given(FINITE, FINITE)
@example(1.0, -0.9999995231628418)  # the same halves modulo the prime
@example(0.3, -0.2999997615814209)
@example(0.0, -0.0)
@example(1.0, float(np.nextafter(1.0, 2.0)))
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_other_targets_are_other_pieces_below_the_prime(one, other):
    first, second = pieces_of(np.array([one, other]))
    assert np.array_equal(first, second) == (bits_of(one) == bits_of(other))
    assert 0 <= min(first) <= max(first) < 2**22 < PRIME
    assert int(first[1]) + (int(first[2]) << 22) + (int(first[3]) << 43) == bits_of(one)
    if bits_of(one) != bits_of(other):
        x = np.zeros((1, 1))
        assert_differ((x, np.array([one])), (x, np.array([other])))


STEPS = st.integers(-X_STEPS, X_STEPS)


@pytest.mark.not_quick
@given(st.lists(st.tuples(STEPS, STEPS), min_size=1, max_size=6), st.floats(-1, 1))
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
def test_other_rows_on_the_grid_have_other_digests(pairs, target):
    one, other = (np.array([row], dtype=np.float64) for row in zip(*pairs, strict=True))
    y = np.array([target])
    if np.array_equal(one, other):
        assert np.array_equal(digests(one, y), digests(other, y))
    else:
        assert np.all(((one - other) % PRIME != 0) == (one != other))
        assert_differ((one, y), (other, y))


@given(st.integers(0, 10**7), st.integers(1, 3000), st.integers(0, 2999), st.booleans())
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_blocks_add_up_wherever_they_are_cut(start, n_rows, cut, dense):
    rng, cut = np.random.default_rng(n_rows), min(cut, n_rows)
    x = rng.integers(-X_STEPS, X_STEPS + 1, (n_rows, 3)) * (rng.random((n_rows, 3)) < 0.5)
    form = np.asarray if dense else sparse.csr_array
    x, y = form(x.astype(np.float64)), rng.normal(size=n_rows)
    parts = digests(x[:cut], y[:cut], start) + digests(x[cut:], y[cut:], start + cut)
    assert np.array_equal(parts, digests(x, y, start))


def test_places_count():
    """The order of rows, a number of blank rows, and in which column an entry is."""
    x, y = np.zeros((4, 3)), np.zeros(4)
    x[1, 1] = 7.0
    for other, targets in (
        (x[[1, 0, 2, 3]], y), (x[:, [1, 0, 2]], y), (x[:3], y[:3]), (x, y + 1.0),
    ):  # fmt: skip
        assert_differ((x, y), (other, targets))
    assert not np.array_equal(digests(x, y, 0), digests(x, y, 1))


def test_zeros_have_no_sign_and_rows_no_container():
    x = np.array([[3.0, 0.0, -X_STEPS], [0.0, -0.0, 1.0]])
    stored = sparse.csr_array(np.abs(x) + 1)
    stored.data = x.ravel()  # zeros that are stored
    y = Bounds(1.0, 2.0).clip_y(np.array([-0.0, np.nan]))
    assert not np.signbit(y).any()
    for other in (x + 0.0, np.asfortranarray(x), sparse.csr_array(x), stored):
        assert np.array_equal(digests(other, y), digests(x, np.zeros(2)))


@pytest.mark.parametrize("columns", [1, 2, 7])
def test_columns_are_multiplied_some_at_a_time(columns, monkeypatch):
    monkeypatch.setattr(row_digest, "_COLUMNS", columns)
    x = np.random.default_rng(0).integers(-X_STEPS, X_STEPS, (5, 7)).astype(np.float64)
    y = np.linspace(-1, 1, 5)
    first = digests(x, y)
    assert np.array_equal(first, digests(sparse.csr_array(x), y))
    for column in range(7):
        other = x.copy()
        other[2, column] += 1
        assert_differ((x, y), (other, y))
    swapped = x[:, [*range(1, 7), 0]]
    assert_differ((x, y), (swapped, y))


@pytest.mark.not_quick
def test_the_largest_rows_are_summed_exactly():
    """Inner products reach 2^53 at most, so one more step is one more multiple."""
    n = row_digest._COLUMNS
    assert n * X_STEPS * (2**row_digest._COLUMN_BITS - 1) < 2**53
    x, y = np.full((1, n), float(X_STEPS)), np.ones(1)
    less = x.copy()
    less[0, -1] -= 1
    assert_differ((x, y), (less, y))
    assert np.array_equal(digests(x, y), digests(sparse.csr_array(x), y))


def test_workers_that_ask_others_believe_their_digests():
    """In a tree of workers a sum is compared with what all rows of the query can make it."""
    query = RowDigest(KEYS[0], MOST_ROWS, "replace-one")
    expected = Expected.of(query, 3)
    x, y = np.ones((5000, 3)), np.ones(5000)
    assert expected.shape == digests(x, y).shape
    assert np.all(digests(x, y) <= expected.limit(5000))
    assert expected.limit(query.n_rows) >= expected.limit(5000)
