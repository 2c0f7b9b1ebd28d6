"""Answers of workers: what is sent is heard, and what cannot be an answer is refused."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.protocol import serialize
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from riata import Bounds
from riata.engines.actor import Branch
from riata.engines.replies import Expected, Reply, WrongReply, fault_of
from riata.errors import DataError
from riata.grid import MOST_SLOPE_STEPS, X_STEPS
from riata.losses import Logistic, Squared
from riata.preparation import Preparation
from riata.problem import Problem
from riata.queries import Block, Gradient
from riata.sets import L1Ball
from riata.vectors import Vector

ANY = Expected((3,), 1e18)


def heard(frames, expected=ANY, limit=2.0**62):
    whole = Reply(None, [], [])
    whole.add(Reply.of(frames, expected), limit)
    return whole


@given(
    hnp.arrays(np.int64, 3, elements=st.integers(-(2**61), 2**61)),
    st.lists(st.integers(0, 99), max_size=4),
    st.lists(st.integers(0, 99), max_size=4),
)
@settings(deadline=None)
def test_what_is_sent_is_heard(total, lost, unheard):
    found = heard(Reply(total, lost, unheard).frames())
    np.testing.assert_array_equal(found.total, total)
    assert (found.lost, found.unheard, found.fault) == (lost, unheard, "")


def test_faults_and_silence_are_heard():
    assert heard(Reply(None, [], [], "No memory: ü.").frames()).fault == "No memory: ü."
    found = heard(Reply(None, [1], [2]).frames())
    assert (found.total, found.lost, found.unheard) == (None, [1], [2])


def test_nothing_is_pickled():
    def serializers(header):
        parts = header.get("sub-headers", [header])
        return {part["serializer"] for part in parts}

    for reply in (Reply(np.arange(3), [1], []), Reply(None, [], [], "fault")):
        header, _ = serialize(reply.frames())
        assert serializers(header) == {"dask"}


GOOD = Reply(np.arange(3), [], []).frames()


@pytest.mark.parametrize(
    "frames",
    [
        None, 7, "text", {}, [], [GOOD[1]], GOOD[1], [GOOD[0]], [*GOOD, GOOD[1]],
        [GOOD[1], GOOD[0]],
        [GOOD[0], GOOD[1].tolist()], [GOOD[0], GOOD[1].astype(float)],
        [GOOD[0], GOOD[1].astype(np.int32)], [GOOD[0], GOOD[1].astype(object)],
        [GOOD[0], GOOD[1].astype(">i8")], [GOOD[0], GOOD[1][:2]], [GOOD[0], np.arange(4)],
        [GOOD[0], GOOD[1][None]], [GOOD[0], np.int64(5)], [GOOD[0].astype(float), GOOD[1]],
        [np.array([1, 0, 0, 4]), np.arange(4)], [np.array([1, 0, 0]), np.array(5)],
        [np.array([1, -1, 0, 3]), GOOD[1]], [np.array([1, 9, 9, 3]), GOOD[1]],
        [np.array([9, 0, 0, 3]), GOOD[1]], [np.array([0, 0, 0]), GOOD[1]],
        [np.array([2, 0, 0]), GOOD[1]],
    ],
)  # fmt: skip
def test_what_cannot_be_an_answer_is_refused(frames):
    with pytest.raises(WrongReply):
        heard(frames)


@pytest.mark.not_quick
@given(st.data())
@settings(deadline=None, max_examples=300)
def test_answers_that_were_damaged_are_refused_or_whole(data):
    """Whatever is changed in what was sent: never another kind of error, nor another shape."""
    frames = [np.array(each) for each in GOOD]
    which = data.draw(st.integers(0, len(frames) - 1))
    raw = bytearray(frames[which].tobytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    frames[which] = np.frombuffer(bytes(raw), frames[which].dtype).reshape(frames[which].shape)
    try:
        found = heard(frames)
    except WrongReply:
        return
    assert found.fault or found.total is None or found.total.shape == (3,)


@pytest.mark.parametrize("value", [101, -101, 2**62, -(2**63), 2**63 - 1])
def test_sums_beyond_what_rows_can_make_are_refused(value):
    total = np.array([0, value, 0])
    for limit in (100.0, np.array([2.0**62, 100.0, 0.0])):
        with pytest.raises(WrongReply, match="larger"):
            heard(Reply(total, [], []).frames(), limit=limit)
        found = heard(Reply(np.sign(total) * 100, [], []).frames(), limit=limit)
        assert abs(found.total[1]) == 100


@pytest.mark.parametrize("bounds", [Bounds(1.0, 1.0), Bounds(np.array([1.0, 5.0, 0.1]), 2.0)])
@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_limits_follow_from_what_one_row_can_add(bounds, loss):
    """The largest row reaches the limit, and no row goes beyond it."""
    problem = Problem(loss, L1Ball(1.0), bounds, 10, 3)
    query = Gradient(problem, Vector.unit(3, 1, 0.5))
    expected = Expected.of(query, 3)
    assert expected.shape == (3,)
    most = np.broadcast_to(np.max(bounds.x) / bounds.x * X_STEPS * MOST_SLOPE_STEPS, 3)
    np.testing.assert_allclose(np.broadcast_to(expected.limit(1), 3), most, rtol=1e-5)
    signs = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    for target in (-9.0, 9.0):
        x, y = Preparation(bounds)(9.0 * signs, np.full(8, target))
        for row in range(8):
            one = query.block_sum(Block(x[row : row + 1], y[row : row + 1]))
            assert np.all(np.abs(one) <= expected.limit(1))


def test_only_those_who_were_asked_can_be_missing():
    branch = Branch(0, None, (Branch(1, None, ()), Branch(2, None, ())))
    good = branch.heard(Reply(np.arange(3), [1], [2]).frames(), ANY)
    assert (good.lost, good.unheard) == ([1], [2])
    for lost, unheard in (([0], []), ([7], []), ([1, 1], []), ([1], [1])):
        with pytest.raises(WrongReply, match="not asked"):
            branch.heard(Reply(np.arange(3), lost, unheard).frames(), ANY)
    with pytest.raises(WrongReply, match="without a sum"):
        branch.heard(Reply(None, [1], [2]).frames(), ANY)
    silence = branch.heard(None, ANY)
    assert (silence.lost, silence.unheard) == ([0], [1, 2])


def test_faults_quote_no_row():
    assert "SECRET" not in fault_of(ValueError("could not convert 'SECRET'"))
    assert "SECRET" not in fault_of(MemoryError("SECRET"))
    assert fault_of(DataError("There is no file a.csv.")) == "There is no file a.csv."
