"""Sparse vectors: the same algebra as dense ones."""

import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.vectors import Vector, length

RNG = np.random.default_rng(7)


def random_vector(size, n_nonzero, offset=0.0):
    dense = np.zeros(size)
    dense[RNG.choice(size, n_nonzero, replace=False)] = RNG.standard_normal(n_nonzero)
    return Vector.of(dense).with_offset(offset), dense


PAIRS = [
    (random_vector(30, a, 0.5), random_vector(30, b, -2.0))
    for a, b in [(0, 0), (0, 5), (5, 0), (3, 7), (30, 30), (30, 1), (1, 30), (1, 1)]
]


@pytest.mark.parametrize("mu", [0.0, 0.25, 2 / 3, 1.0])
@pytest.mark.parametrize("pair", PAIRS)
def test_toward_is_the_convex_combination_of_dense_vectors(pair, mu):
    (a, dense_a), (b, dense_b) = pair
    moved = a.toward(b, mu)
    np.testing.assert_allclose(moved.dense(), (1 - mu) * dense_a + mu * dense_b, atol=1e-15)
    assert moved.offset == pytest.approx((1 - mu) * 0.5 + mu * -2.0, abs=1e-15)
    assert moved.size == 30


@pytest.mark.parametrize("pair", PAIRS)
def test_toward_keeps_the_support_increasing_and_small(pair):
    (a, _), (b, _) = pair
    moved = a.toward(b, 0.5)
    assert np.all(np.diff(moved.support) > 0)
    assert set(moved.support) == set(a.support) | set(b.support)


def test_toward_the_same_support_agrees_with_the_general_rule():
    a = Vector(6, np.array([1, 4]), np.array([1.0, 2.0]))
    b = Vector(6, np.array([1, 4]), np.array([-3.0, 0.5]))
    padded = Vector(6, np.array([0, 1, 4]), np.array([0.0, -3.0, 0.5]))
    np.testing.assert_allclose(a.toward(b, 0.3).dense(), a.toward(padded, 0.3).dense(), atol=0)


def test_toward_changes_neither_of_its_arguments():
    (a, dense_a), (b, dense_b) = PAIRS[3]
    a.toward(b, 0.5)
    np.testing.assert_array_equal(a.dense(), dense_a)
    np.testing.assert_array_equal(b.dense(), dense_b)


def test_many_steps_equal_the_dense_recursion():
    theta, dense = Vector.zero(50), np.zeros(50)
    offset = 0.0
    for t in range(1, 200):
        index, value, b = int(RNG.integers(50)), RNG.standard_normal(), RNG.standard_normal()
        mu = 2 / (t + 2)
        theta = theta.toward(Vector.unit(50, index, value).with_offset(b), mu)
        dense *= 1 - mu
        dense[index] += mu * value
        offset = (1 - mu) * offset + mu * b
    np.testing.assert_allclose(theta.dense(), dense, atol=1e-14)
    assert theta.offset == pytest.approx(offset, abs=1e-14)


@pytest.mark.parametrize("n_nonzero", [0, 1, 7, 8, 30])
@pytest.mark.parametrize(
    "container",
    [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csr_matrix, sparse.csc_array],
)
def test_margins_agree_with_the_dense_product(container, n_nonzero):
    theta, dense = random_vector(30, n_nonzero, offset=0.7)
    rows = RNG.standard_normal((11, 30))
    margins = theta.margins(container(rows))
    assert margins.shape == (11,)
    np.testing.assert_allclose(margins, rows @ dense + 0.7, atol=1e-12)


def test_margins_of_no_rows_are_empty():
    theta, _ = random_vector(30, 3)
    assert theta.margins(np.empty((0, 30))).shape == (0,)


def test_dot_leaves_the_offset_out():
    theta, dense = random_vector(30, 6, offset=100.0)
    other = RNG.standard_normal(30)
    assert theta.dot(other) == pytest.approx(dense @ other, abs=1e-12)


def test_zero_unit_and_of_say_what_they_mean():
    np.testing.assert_array_equal(Vector.zero(4).dense(), np.zeros(4))
    np.testing.assert_array_equal(Vector.unit(4, 2, -3.0).dense(), [0, 0, -3.0, 0])
    dense = np.array([0.0, 1.5, 0.0, -2.0])
    vector = Vector.of(dense)
    np.testing.assert_array_equal(vector.support, [1, 3])
    np.testing.assert_array_equal(vector.values, [1.5, -2.0])
    np.testing.assert_array_equal(vector.dense(), dense)
    assert vector.offset == 0.0


def test_of_copies_and_takes_whole_numbers():
    dense = np.array([0, 2, 0, 5])
    vector = Vector.of(dense)
    dense[:] = 9
    assert vector.values.dtype == np.float64
    np.testing.assert_array_equal(vector.dense(), [0, 2, 0, 5])


def test_with_offset_leaves_the_original_alone():
    theta, _ = random_vector(30, 3, offset=1.0)
    assert theta.with_offset(2.0).offset == 2.0
    assert theta.offset == 1.0


def test_a_length_keeps_its_digits_over_millions_of_entries():
    # A dot product of BLAS on one thread is 2.5e-12 too small here: more than noise is rounded up.
    n = 8_000_000
    assert length(np.full(n, 1 / 3)) == pytest.approx(np.sqrt(n) / 3, rel=1e-14)
    assert Bounds(1 / 3).row_norm("l2", n) == pytest.approx(np.sqrt(n) / 3, rel=1e-14)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e-310, 1e200, 1e307])
def test_a_length_neither_vanishes_nor_overflows(scale):
    assert length(scale * np.array([3.0, 0.0, -4.0])) == pytest.approx(5 * scale, rel=1e-12)


def test_lengths_of_nothing_and_of_no_numbers():
    assert length(np.zeros(0)) == length(np.zeros(3)) == 0.0
    assert length(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(length(np.array([1.0, np.nan])))
