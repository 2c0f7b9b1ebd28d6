"""Packed sums are the same numbers, in no more bytes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from riata.engines import packing
from riata.engines.packing import LISTED, LOT, PARTS, packed

LEAST, MOST = -(2**63), 2**63 - 1


def bits(most):
    """Numbers of few bits as often as of many."""
    return st.integers(0, most).flatmap(lambda k: st.integers(-(2**k), 2**k - 1))


def arrays(numbers, longest=60):
    return st.lists(numbers, max_size=longest).map(lambda each: np.array(each, dtype=np.int64))


def check(numbers):
    found = pickle.loads(pickle.dumps(packed(numbers)))
    back = found.added_to(None)
    assert back.dtype == np.int64
    assert back.shape == numbers.shape
    np.testing.assert_array_equal(back, numbers)
    assert found.data.nbytes <= numbers.nbytes
    return found


@given(arrays(bits(63)), st.integers(1, 20), st.integers(1, 5))
@settings(deadline=None)
def test_nothing_is_lost(numbers, lot, look):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "LOT", lot)
        patch.setattr(packing, "_LOOK", look)
        check(numbers)


@given(arrays(bits(40)), st.integers(0, 23), st.integers(1, 20))
@settings(deadline=None)
def test_common_halves_are_not_sent(numbers, halvings, lot):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "LOT", lot)
        few, many = check(numbers), check(numbers << halvings)
        assert many.data.nbytes == few.data.nbytes


@given(
    hnp.arrays(np.int64, hnp.array_shapes(max_dims=3, max_side=9)),
    st.booleans(),
)
@settings(deadline=None)
def test_every_shape_and_order(numbers, turned):
    check(numbers.T if turned else numbers)


@given(arrays(bits(61)), st.data())
@settings(deadline=None)
def test_a_sum_of_packed_ones_is_the_sum(numbers, data):
    others = data.draw(hnp.arrays(np.int64, len(numbers), elements=bits(61)))
    total = np.array(others)
    found = packed(numbers).added_to(total)
    assert found is total
    np.testing.assert_array_equal(found, numbers + others)


@pytest.mark.parametrize(
    "numbers",
    [[], [0], [LEAST], [MOST], [LEAST, MOST], [0] * 99, [LEAST] * 99, [MOST, 0, -1] * 33],
)
def test_extremes(numbers):
    check(np.array(numbers, dtype=np.int64))


@pytest.mark.parametrize("width", list(PARTS)[1:])
def test_numbers_of_so_many_bytes_take_no_more(width):
    """And one more takes what is needed to list it, wherever it is."""
    length = 3 * LOT + 5
    rng = np.random.default_rng(width)
    least, most = -(2 ** (8 * width - 1)), 2 ** (8 * width - 1) - 1
    numbers = rng.integers(least, most, length, endpoint=True)
    numbers[:3] = least, most, 1
    size = check(numbers).data.nbytes
    assert size <= width * length + 8 * 4
    if width < 8:
        for place, value in ((1, most + 1), (LOT, least - 1), (length - 1, MOST), (7, LEAST)):
            numbers[place] = value
        assert check(numbers).data.nbytes <= size + 4 * (LISTED + 16)


def test_sizes_grow_with_the_numbers():
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal(2 * LOT)
    sizes = [check((numbers * 2.0**k).astype(np.int64)).data.nbytes for k in range(60)]
    assert sizes == sorted(sizes)
    assert sizes[0] < numbers.nbytes / 2
    empty = check(np.zeros(2 * LOT, dtype=np.int64)).data.nbytes
    assert empty == 0


def test_a_look_that_misses_what_is_large_costs_no_more_than_plain_numbers():
    numbers = np.full(LOT, MOST)
    numbers[:: packing._LOOK] = 1
    assert check(numbers).data.nbytes == numbers.nbytes


def test_sums_of_words_take_about_half_of_the_bytes():
    """Columns as popular as words, in any order: most have few entries, and some very many."""
    rng = np.random.default_rng(1)
    p = 2**20
    counts = rng.poisson(5e6 / (14 * (10 + np.arange(p))))
    sums = np.sqrt(counts) * rng.standard_normal(p) * 2**13
    for entries, most in ((np.rint(sums * 2**16), 4.5), (np.rint(sums) * 2**16, 2.6)):
        for order in (np.arange(p), rng.permutation(p)):
            assert check(entries[order].astype(np.int64)).data.nbytes < most * p
