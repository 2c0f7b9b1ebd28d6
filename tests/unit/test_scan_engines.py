"""Sums are the same bits wherever the rows are: in one piece, in shards, on disk."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds
from riata.engines import LocalEngine, choice
from riata.engines import disk as disk_module
from riata.engines import shard as shard_module
from riata.engines.choice import Arrays, open_engine
from riata.engines.messages import QueryReader, QueryWriter
from riata.engines.shard import Shard
from riata.errors import DiskFull
from riata.grid import X_STEPS
from riata.losses import Logistic, Squared
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.mechanisms.sampled import _Sampled
from riata.preparation import Preparation
from riata.problem import Problem
from riata.projections import SparseSignProjection
from riata.queries import (
    CentredGradient,
    ClippedGradient,
    ColumnSquares,
    ColumnSums,
    Coordinate,
    Correlations,
    EntrySizes,
    Gradient,
    GradientStep,
    Improvement,
    MarginCounts,
    MeanSlope,
    Minimum,
    Scaling,
    SlopeSizes,
    Support,
    SupportCurvature,
    SupportGradient,
    VertexUtilities,
)
from riata.sets import L1Ball
from riata.vectors import Vector

N, P = 157, 23
RNG = np.random.default_rng(5)
ROWS = RNG.uniform(-1.4, 1.4, (N, P)) * (RNG.uniform(size=(N, P)) < 0.3)
ROWS[3, :4] = np.nan, np.inf, -np.inf, 1e300
TARGETS = RNG.uniform(-1.2, 1.2, N)
LIMITS = np.linspace(0.3, 2.0, P)


def thetas():
    few = Vector(P, np.array([2, 7]), np.array([0.3, -0.2]), 0.1)
    return Vector.zero(P), few, Vector.of(RNG.uniform(-0.1, 0.1, P))


def queries(bounds):
    coins = Noise(seed=1).coins()
    for loss in (Squared(), Logistic()):
        problem = Problem(loss, L1Ball(1.0), bounds, N, P)
        support = Support(np.array([1, 2, 9]), bounds)
        for theta in thetas() if loss.name == "squared" else thetas()[1:2]:
            gradient = Gradient(problem, theta)
            yield gradient
            yield VertexUtilities(problem, theta)
            yield GradientStep(problem, theta, 0.1)
            yield GradientStep(problem, theta, 0.1).entries(np.array([4, 0]))
            yield ClippedGradient(problem, theta, 0.2)
            yield MeanSlope(problem, theta)
            yield SlopeSizes(problem, theta)
            yield Correlations(problem, theta, 0.5, 0.25)
            yield Correlations(problem, theta, 0.5, 1.0)
            yield Coordinate(problem, theta, 0.5, 0.5, 2)
            yield SupportGradient(problem, theta, 0.5, support, 1.0, 0.5)
            yield SupportCurvature(problem, theta, 0.5, support, 1.0, 0.5)
            yield Improvement(problem, theta, Vector.zero(P), 1.0)
            yield MarginCounts(problem, theta)
            yield _Sampled(gradient, 2**62, coins)
            scaling = Scaling(P, np.arange(P), np.zeros(P, np.int64), np.ones(P, np.int64), 1.0)
            yield CentredGradient(problem, theta, 0.5, scaling, 1.0)
        yield ColumnSums(problem)
        yield ColumnSquares(problem, 0.5)
        yield EntrySizes(problem)
        yield Minimum(problem).gradient(thetas()[1])


BOUNDS = {
    "one bound": Bounds(1.0, 1.0),
    "one for each": Bounds(LIMITS, 1.0),
    "length": Bounds(1.5, 1.0, norm="l2"),
    "counts": Bounds(1.0, 1.0, nonnegative=True),
}


def shards(x, y, ready, cuts):
    return [Shard(*ready(x[a:b], y[a:b]), a) for a, b in pairwise(cuts)]


class Together(Engine):
    def __init__(self, engines):
        self.engines = engines

    def total(self, query):
        return sum(engine.total(query) for engine in self.engines)

    def part(self, part, parts):
        return Together([engine.part(part, parts) for engine in self.engines])


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", BOUNDS)
def test_all_engines_find_the_same_sums(name, layout, monkeypatch):
    bounds, x = BOUNDS[name], layout(ROWS)
    ready = Preparation(bounds)
    plain = LocalEngine(x, TARGETS, bounds)
    whole = Shard(*ready(x, TARGETS))
    cuts = [0, 1, 60, 61, 130, N]
    cut = Together(shards(x, TARGETS, ready, cuts))
    monkeypatch.setattr(shard_module, "BLOCK_ROWS", 10)
    blocks = Shard(*ready(x, TARGETS))
    engines = {"whole": whole, "cut": cut, "blocks": blocks}
    if layout is sparse.csr_array:
        monkeypatch.setattr(disk_module, "BLOCK_ROWS", 32)
        monkeypatch.setattr(disk_module, "BLOCK_ENTRIES", 90)
        monkeypatch.setattr(choice, "_ROWS_AT_ONCE", 50)
        engines["disk"] = open_engine("disk", ready, Arrays(x, TARGETS))
        assert len(engines["disk"]._rows._places) > 8
    asked = 0
    for query in queries(bounds):
        expected = plain.total(query)
        for engine in engines.values():
            np.testing.assert_array_equal(engine.total(query), expected)
        some = plain.part(1, 3).total(query)
        for engine in engines.values():
            np.testing.assert_array_equal(engine.part(1, 3).total(query), some)
        asked += 1
    assert asked > 60


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("make", [MeanSlope, Gradient, SlopeSizes, MarginCounts])
def test_a_model_that_overflows_warns_of_no_row(make, layout):
    """Warnings are errors here. An infinite model times a row of zeros is not a number."""
    problem = Problem(Logistic(), L1Ball(1.0), Bounds(1e60, 1.0), N, P)
    query = make(problem, Vector.of(np.full(P, 1e300)))
    x = layout(np.where(np.arange(N)[:, None] == 3, 0.0, np.ones(P)))
    ready = Preparation(problem.bounds)
    plain = LocalEngine(x, TARGETS, problem.bounds).total(query)
    np.testing.assert_array_equal(Shard(*ready(x, TARGETS)).total(query), plain)


def test_projected_rows_can_be_prepared_anywhere():
    given, phi = Bounds(1.5, 1.0, norm="l2"), SparseSignProjection(5, P, 0)
    ready = Preparation(given, phi, Bounds(2.0, 1.0, norm="l2"))
    whole = ready(sparse.csr_array(ROWS), TARGETS)
    for few in (slice(0, 1), slice(3, 60), slice(100, N)):
        part = ready(sparse.csr_array(ROWS[few]), TARGETS[few])
        np.testing.assert_array_equal(part[0], whole[0][few])
        np.testing.assert_array_equal(part[1], whole[1][few])
    assert np.abs(whole[0]).max() <= X_STEPS


def test_a_message_tells_once_of_what_queries_share():
    bounds = Bounds(LIMITS, 1.0)
    problem = Problem(Squared(), L1Ball(1.0), bounds, N, P)
    writer, reader, later = QueryWriter(), QueryReader(), QueryReader()
    sizes = []
    for theta in thetas():
        query = VertexUtilities(problem, theta)
        message = writer.write(query)
        sizes.append(len(message.shared))
        found = reader.read(pickle.loads(pickle.dumps(message)))
        np.testing.assert_array_equal(found.gradient.theta.dense(), theta.dense())
        assert found.gradient.theta.offset == theta.offset
        assert found.sensitivity("linf") == query.sensitivity("linf")
        assert LIMITS.tobytes() not in message.query
    assert sizes[0] > 0
    assert sizes[1:] == [0, 0]
    later.learn(writer.shared)  # one that comes later has everything
    assert later.read(writer.write(Gradient(problem, thetas()[1]))).bounds.y == 1.0


def test_a_long_model_travels_once_a_step_and_is_forgotten_afterwards():
    p = 2**13
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), N, p)
    writer, reader, later = QueryWriter(), QueryReader(), QueryReader()
    largest = 0
    for step in range(6):
        theta = Vector.of(RNG.uniform(-0.1, 0.1, p))
        sizes = []
        for query in (Gradient(problem, theta), MeanSlope(problem, theta.with_offset(0.5 * step))):
            message = pickle.dumps(writer.write(query))
            found = reader.read(pickle.loads(message)).theta
            np.testing.assert_array_equal(found.dense(), theta.dense())
            assert found.offset == query.theta.offset
            sizes.append(len(message))
        assert sizes[0] > theta.weights.nbytes > 50 * sizes[1]
        largest = max(largest, len(reader._shared))
        assert sum(map(len, writer.shared.values())) < 6 * theta.weights.nbytes
    assert largest < 8
    later.learn(writer.shared)
    np.testing.assert_array_equal(later.read(writer.write(query)).theta.dense(), theta.dense())


def test_an_array_that_was_changed_in_place_travels_again():
    p = 2**13
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), N, p)
    writer, reader = QueryWriter(), QueryReader()
    theta = Vector(p, np.arange(p), np.full(p, 0.25))
    for value in (0.25, 0.5, 0.5):
        theta.weights[:] = value
        found = reader.read(writer.write(Gradient(problem, theta)))
        assert found.theta.dense().tolist() == [value] * p


def test_nothing_that_holds_rows_travels():
    shard = Shard(*Preparation(BOUNDS["one bound"])(ROWS, TARGETS))
    rows = Arrays(sparse.csr_array(ROWS), TARGETS)
    engine = open_engine("disk", Preparation(BOUNDS["one bound"]), rows)
    for private in (shard, engine, engine._rows):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(private)
        assert "0." not in repr(private)


def test_a_full_disk_is_an_error_that_says_what_to_do(monkeypatch):
    class Full:
        def write(self, text):
            raise OSError(28, "No space left on device")

    rows = disk_module.RowsOnDisk()
    rows._file.close()
    rows._file = Full()
    with pytest.raises(DiskFull, match="Make room"):
        rows.append(BOUNDS["one bound"].grid_x(sparse.csr_array(ROWS)), TARGETS)


def test_blocks_are_read_into_the_same_memory():
    """Into that of the block before the last, so that no more than two are held."""
    rows = disk_module.RowsOnDisk()
    x = sparse.csr_array(BOUNDS["one bound"].grid_x(sparse.csr_array(ROWS)))
    for cut in (slice(0, 40), slice(40, 41), slice(41, 120), slice(120, N)):
        rows.append(x[cut], TARGETS[cut])
    for _ in range(2):
        seen, starts = [], []
        for found, y, start in rows.blocks():
            seen.append((sparse.csr_array(found, copy=True), y.copy()))
            starts.append(start)
        assert starts == [0, 40, 41, 120]
        np.testing.assert_array_equal(sparse.vstack([x for x, _ in seen]).toarray(), x.toarray())
        np.testing.assert_array_equal(np.concatenate([y for _, y in seen]), TARGETS)
    held = [room["data"] for room in rows._rooms]
    assert not list(disk_module.RowsOnDisk().blocks())
    list(rows.blocks())
    assert all(room["data"] is before for room, before in zip(rows._rooms, held, strict=True))


def test_a_file_of_rows_that_was_cut_is_an_error():
    rows = disk_module.RowsOnDisk()
    rows.append(sparse.csr_array(BOUNDS["one bound"].grid_x(sparse.csr_array(ROWS))), TARGETS)
    rows._file.truncate(100)
    with pytest.raises(OSError, match="ends too early"):
        list(rows.blocks())
