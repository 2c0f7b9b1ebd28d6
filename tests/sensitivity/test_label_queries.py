"""Neighbours in one target: what a label changes, in exact arithmetic, and what it does not.

Rows are hostile, and the same on both sides; targets are bounds, rubbish and class codes.
"""

import copy
import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata.audit import replay
from riata.audit.grey_box import replays
from riata.audit.pairs import random_pairs, worst_pair
from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.engines.margins import ColumnBlock, DenseBlock, RowBlock
from riata.estimators import PrivateLasso, PrivateLogisticRegression
from riata.losses import Logistic, Squared
from riata.losses.one_against_rest import OneAgainstRest
from riata.mechanisms import GaussianMechanism, PublicAnswer
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE
from riata.problem import Problem
from riata.queries import (
    Block,
    DesignCurve,
    DesignRows,
    LabelSums,
    MeanSlope,
    Reads,
    RowQuery,
    Whitening,
)
from riata.queries import block as block_module
from riata.sets import L2Ball
from riata.vectors import Vector

from exact_neighbours import (
    LENGTH,
    NORMS,
    P,
    every_bound,
    every_layout,
    hostile_rows,
    in_fractions,
    problem_of,
    some_points,
    squared_length,
    summands,
)

RNG = np.random.default_rng(0)
TURN = Whitening.of(np.linalg.qr(RNG.standard_normal((P, P)))[0], RNG.normal(size=P))
ROWS = {
    "short": DesignRows(TURN, 3.0, 0.5, 0.7),
    "long": DesignRows(TURN, 8.0, 2.0, 50.0),
    "no constant": DesignRows(TURN, 1.0, 0.0, 1e-3),
}
TARGETS = [-9.0, -1.0, 0.0, 1.0, 2.0, 9.0, np.nan, np.inf, -np.inf]
LOSSES = [Squared(), OneAgainstRest(Logistic(), 1)]
every_rows = pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def of_each_target(query, x):
    """For each row, its exact summands with all targets, each once."""
    for row in x:
        found = summands(query, np.tile(row, (len(TARGETS), 1)), np.array(TARGETS))
        yield [in_fractions(query, each) for each in np.unique(found, axis=0)]


@pytest.mark.matrix(one_in=11)
@every_rows
@every_loss
@every_bound
@pytest.mark.parametrize("limit", [0.01, np.inf])
def test_no_other_target_changes_label_sums_by_more(rows, loss, bounds, limit):
    x = hostile_rows(np.random.default_rng(1), 2)[0]
    for theta in some_points(np.random.default_rng(2)):
        query = LabelSums(problem_of(loss, bounds, adjacency=REPLACE_LABEL), theta, limit, rows)
        most = {norm: Fraction(query.sensitivity(norm)) ** 2 for norm in NORMS}
        for each in of_each_target(query, x):
            for one, other in itertools.combinations(each, 2):
                change = [a - b for a, b in zip(one, other, strict=True)]
                assert all(squared_length(change, norm) <= most[norm] for norm in NORMS)


@every_loss
def test_two_targets_of_a_long_row_reach_the_sensitivity(loss):
    query = LabelSums(
        problem_of(loss, adjacency=REPLACE_LABEL), Vector.zero(P), np.inf, ROWS["short"]
    )
    x = np.full((1, P), 1e9)
    changes = [
        squared_length([a - b for a, b in zip(one, other, strict=True)], "l2")
        for one, other in itertools.combinations(next(of_each_target(query, x)), 2)
    ]
    assert float(max(changes)) ** 0.5 > 0.999 * query.sensitivity("l2")


@every_rows
def test_label_sums_are_as_sensitive_as_a_replaced_row_at_most(rows):
    for adjacency, factor in ((REPLACE_ONE, 1.0), (REPLACE_LABEL, 1.0), (ADD_REMOVE, 0.5)):
        query = LabelSums(problem_of(adjacency=adjacency), Vector.zero(P), 0.1, rows)
        expected = factor * 2 * 0.1 * rows.length
        assert query.sensitivity("l2") == pytest.approx(expected, rel=1e-9)


@pytest.mark.matrix(one_in=11)
@every_rows
@every_loss
@every_bound
@every_layout
def test_answers_about_rows_do_not_depend_on_targets(rows, loss, bounds, layout):
    rng = np.random.default_rng(3)
    x = hostile_rows(rng, 4)[0]
    problem = problem_of(loss, bounds, len(x), REPLACE_LABEL)
    for theta in some_points(rng):
        query = DesignCurve(problem, theta, rows)
        assert query.sensitivity("l2") == query.sensitivity("l1") == 0
        totals = [
            LocalEngine(layout(x), rng.choice(TARGETS, len(x)), bounds).total(query)
            for _ in range(3)
        ]
        np.testing.assert_array_equal(totals[0], totals[1])
        np.testing.assert_array_equal(totals[0], totals[2])
        assert np.isfinite(query.from_total(totals[0])).all()


@every_rows
@every_loss
def test_where_rows_are_secret_answers_about_them_have_a_sensitivity_that_holds(rows, loss):
    x = hostile_rows(np.random.default_rng(4), 2)[0]
    for theta in some_points(np.random.default_rng(5)):
        query = DesignCurve(problem_of(loss), theta, rows)
        found = [in_fractions(query, each) for each in summands(query, x, np.zeros(len(x)))]
        for norm in NORMS:
            most = Fraction(query.sensitivity(norm)) ** 2
            for one, other in itertools.combinations(found, 2):
                change = [a - b for a, b in zip(one, other, strict=True)]
                assert squared_length(change, norm) <= most


def test_a_row_query_sees_no_target():
    seen = []

    class Looks(DesignCurve):
        def sum_of_rows(self, block):
            seen.append(block.y)
            return super().sum_of_rows(block)

    query = Looks(problem_of(adjacency=REPLACE_LABEL), Vector.zero(P), ROWS["long"])
    block = Block(np.ones((2, P)), np.ones(2))
    query.block_sum(block)
    assert seen == [None]
    np.testing.assert_array_equal(block.y, np.ones(2))


@every_layout
def test_every_kind_of_block_answers_without_targets(layout):
    x, y = np.random.default_rng(8).uniform(-0.4, 0.4, (40, P)), np.ones(40)
    theta, columns = Vector.of(np.ones(P)), np.arange(1, P)
    query = DesignCurve(problem_of(n=40, adjacency=REPLACE_LABEL), theta, ROWS["long"])
    model = query.coefficients
    engine = LocalEngine(layout(x), y, LENGTH, block_rows=16)
    blocks = [*engine._blocks, *engine._column_blocks]
    of_rows = DenseBlock if layout is np.asarray else RowBlock
    assert {type(block) for block in blocks} == {of_rows, ColumnBlock}
    for block in blocks:
        alone = copy.copy(block)
        alone.y = None
        np.testing.assert_array_equal(alone.inner(model), block.inner(model))
        for one, other in zip(
            alone.some_columns(columns), block.some_columns(columns), strict=True
        ):
            np.testing.assert_array_equal(one[1], other[1])


class AsksForSlopes(RowQuery, MeanSlope):
    """A mistake: slopes are made of targets."""

    reads = Reads.SUMS

    def sum_of_rows(self, block):
        return np.array([self.slopes(block).sum()])


class AsksForPieces(AsksForSlopes):
    def sum_of_rows(self, block):
        return block.in_pieces(lambda few: few.sums(self.slopes(few)))


class AsksForWhatIsKept(AsksForSlopes):
    def sum_of_rows(self, block):
        return block.once("of targets", (0,), lambda x: block.y * x.shape[0])


class Keeps(MeanSlope):
    """Slopes, and something of targets that is kept with the block."""

    def block_sum(self, block):
        block.once("of targets", (0,), lambda x: block.y * x.shape[0])
        return block.in_pieces(lambda few: few.sums(self.slopes(few)))

    reads = Reads.SUMS


@pytest.mark.parametrize("asks", [AsksForSlopes, AsksForPieces, AsksForWhatIsKept])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_nothing_that_was_kept_of_targets_answers_a_row_query(asks, layout, monkeypatch):
    monkeypatch.setattr(block_module, "_ENTRIES_OF_A_PIECE", 8)
    monkeypatch.setattr(block_module, "_PIECE_OF_COLUMNS", 1)
    rng = np.random.default_rng(0)
    bounds = Bounds(1.0, 1.0)
    engine = LocalEngine(layout(rng.normal(size=(50, 4))), rng.choice([-1.0, 1.0], 50), bounds)
    facts = {"n_rows": 50, "n_features": 4, "adjacency": REPLACE_LABEL}
    problem, theta = Problem(Logistic(), L2Ball(1.0), bounds, **facts), Vector.of(np.ones(4))
    engine.total(Keeps(problem, theta))
    with pytest.raises(TypeError, match="NoneType"):
        engine.total(asks(problem, theta))


def test_an_exact_answer_is_refused_where_it_would_tell_something():
    engine = LocalEngine(np.ones((1, P)), np.ones(1), LENGTH)
    label, one = problem_of(adjacency=REPLACE_LABEL), problem_of()
    zero, rows = Vector.zero(P), ROWS["long"]
    answer = PublicAnswer().release(DesignCurve(label, zero, rows), engine, Noise(0))
    assert answer.shape == (rows.width + 1, rows.width)
    for query in (DesignCurve(one, zero, rows), LabelSums(label, zero, 1.0, rows)):
        with pytest.raises(ValueError, match="not public"):
            PublicAnswer().release(query, engine, Noise(0))


def test_the_change_of_slopes_is_the_one_of_a_canonical_link():
    rng = np.random.default_rng(6)
    x, y = rng.uniform(-0.4, 0.4, (50, P)), rng.choice([0.0, 1.0], 50)
    theta, rows = Vector.of(rng.normal(size=P)).with_offset(0.3), ROWS["long"]
    for loss in LOSSES:
        problem = problem_of(loss, LENGTH, 50, REPLACE_LABEL)
        engine = LocalEngine(x, y, LENGTH)

        def answer(query, engine=engine):
            return query.from_total(engine.total(query))

        at, start = (
            answer(LabelSums(problem, point, np.inf, rows)) for point in (theta, Vector.zero(P))
        )
        found = answer(DesignCurve(problem, theta, rows))
        np.testing.assert_allclose(found[0], at - start, atol=1e-5)
        moved = theta.with_offset(theta.offset + 0.02)  # many steps of the slopes
        nearby = answer(DesignCurve(problem, moved, rows))[0]
        np.testing.assert_allclose((nearby - found[0]) / 0.02, found[-1] / rows.constant, atol=5e-3)


def test_other_layouts_give_the_same_sums():
    x, y = hostile_rows(np.random.default_rng(7), 4)
    problem = problem_of(n=len(x), adjacency=REPLACE_LABEL)
    for query in (
        LabelSums(problem, Vector.zero(P), 0.5, ROWS["short"]),
        DesignCurve(problem, Vector.zero(P), ROWS["short"]),
    ):
        totals = [LocalEngine(f(x), y, LENGTH).total(query) for f in (np.asarray, sparse.csr_array)]
        np.testing.assert_array_equal(*totals)


# Whole fits, replayed from the neighbour.

UNIT = Bounds(x=1.0, y=1.0)
LABELS = {"adjacency": "replace-label"}
MODELS = {
    "numbers": PrivateLasso(1.0, 1e-6, bounds=UNIT, **LABELS),
    "numbers, pure": PrivateLasso(1.0, 0.0, bounds=UNIT, **LABELS),
    "classes": PrivateLogisticRegression(1.0, 1e-6, bounds=UNIT, classes=[0, 1], **LABELS),
    "balanced": PrivateLogisticRegression(
        1.0, 1e-6, bounds=UNIT, classes=[0, 1], class_weight="balanced", **LABELS
    ),
    "three classes": PrivateLogisticRegression(
        1.0, 1e-6, bounds=UNIT, classes=[0, 1, 2], **LABELS
    ),
    "another solver": PrivateLasso(1.0, 1e-6, bounds=UNIT, solver="whitened-gradient", **LABELS),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_no_release_of_a_fit_exceeds_its_claim_between_neighbours_in_one_target(name):
    model = MODELS[name]
    pairs = list(random_pairs(model, 6, 8, 3, label=name))
    for (x, _), (others, _) in pairs:
        np.testing.assert_array_equal(x, others)
    assert all(each.sound for each in replays(model, pairs, seed=0))


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_the_worst_neighbours_reach_the_claim_and_differ_in_a_target_alone(name):
    pair = worst_pair(MODELS[name], 20, 3)
    np.testing.assert_array_equal(pair.data[0], pair.neighbour[0])
    assert np.count_nonzero(pair.data[1] != pair.neighbour[1]) == 1
    found = replay(MODELS[name], pair.data, pair.neighbour, seed=0)
    assert found.sound
    assert found.ratio > 0.85


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_a_changed_row_is_not_covered(name):
    x, y = np.full((20, 3), 0.3), np.arange(20) % 2
    other = x.copy()
    other[0] = -1.0
    assert not replay(MODELS[name], (x, y), (other, y), seed=0).sound


def test_the_replay_notices_an_answer_about_rows_that_reads_a_target(monkeypatch):
    pair = worst_pair(MODELS["numbers"], 20, 3)
    monkeypatch.setattr(
        RowQuery, "block_sum", lambda self, block: self.sum_of_rows(block) + block.y.sum()
    )
    assert not replay(MODELS["numbers"], pair.data, pair.neighbour, seed=0).sound


def test_the_replay_notices_noise_for_half_of_a_target(monkeypatch):
    pair = worst_pair(MODELS["classes"], 20, 3)
    monkeypatch.setattr(LabelSums, "row_bound", lambda self, norm: 0.25 * self.rows.length)
    assert not replay(MODELS["classes"], pair.data, pair.neighbour, seed=0).sound


def test_in_fractions_and_floats_answers_agree():
    query = LabelSums(problem_of(adjacency=REPLACE_LABEL), Vector.zero(P), 0.5, ROWS["short"])
    total = LocalEngine(np.ones((1, P)), np.ones(1), LENGTH).total(query)
    exact = [float(each) for each in in_fractions(query, total)]
    np.testing.assert_allclose(query.from_total(total), exact, rtol=1e-12)
    assert GaussianMechanism(1.0).sensitivity(query) == query.sensitivity("l2")
