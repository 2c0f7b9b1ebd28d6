"""Dense rows stay where they are: what is summed is the same as if all were put on the grid."""

import math
import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from riata import Bounds
from riata.engines import LocalEngine, dense, local
from riata.engines.dense import DenseColumns, DenseRows
from riata.engines.shard import Shard
from riata.grid import X_STEPS
from riata.losses import Logistic, Softmax
from riata.problem import Problem
from riata.queries import (
    Block,
    ClippedGradient,
    Coordinate,
    Correlations,
    EntrySizes,
    Gradient,
    JointMoments,
    LengthSizes,
    PreconditionedGradient,
    Scaling,
    SoftmaxGradient,
    Support,
    SupportCurvature,
    VertexUtilities,
    Whitening,
)
from riata.sets import L1Ball
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=11)

N, P = 211, 37

BOUNDS = {
    "one": Bounds(0.7, 1.0),
    "each": Bounds(np.linspace(0.3, 3.0, P), 1.0),
    "nonnegative": Bounds(0.7, 1.0, nonnegative=True),
    "length": Bounds(2.0, 1.0, norm="l2"),
    "length, nonnegative": Bounds(2.0, 1.0, norm="l2", nonnegative=True),
}


def cast(x, dtype):
    with np.errstate(all="ignore"):
        return x.astype(dtype)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=1)[::2, ::2],
    "float32": lambda x: cast(x, np.float32),
    "float32 F": lambda x: np.asfortranarray(cast(x, np.float32)),
    "float16": lambda x: cast(x, np.float16),
    "int": lambda x: np.nan_to_num(np.clip(x, -3, 3)).astype(np.int64),
    "bool": lambda x: x > 0,
}


def hostile(n=N, p=P, seed=0):
    """Ordinary rows, and some with everything that a row could contain."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    x[::7, ::3] = np.nan
    x[1::11, 1::5] = np.inf
    x[2::11, 1::5] = -np.inf
    x[3, :], x[4, :], x[5, :] = 1e308, -0.0, 5e-324
    x[6, :], x[8, :] = np.nan, rng.choice([-0.7, 0.7, 2.0], p)
    return x


def grid_as_defined(x, bounds):
    """Missing to 0, clip, multiply, round, then shorten rows of integers: one after the other."""
    with np.errstate(all="ignore"):
        x = np.ascontiguousarray(x).astype(np.float64)
        x = np.where(np.isnan(x), 0.0, x)
        x = np.clip(x, -np.asarray(bounds.x), bounds.x)
        if bounds.nonnegative:
            x = np.maximum(x, 0.0)
        x = np.rint(x * (X_STEPS / np.asarray(bounds.x)))
        if bounds.norm == "l2":
            for row in x:
                square = sum(int(q) ** 2 for q in row)
                if square > X_STEPS**2:
                    room = X_STEPS * (1 - 2.0**-40) - math.sqrt(np.count_nonzero(row)) / 2
                    row[:] = np.rint(row * (room / math.sqrt(square)))
        return x


@pytest.fixture
def small_pieces(monkeypatch):
    """Every array is large, every piece small, and threads are worth it."""
    monkeypatch.setattr(local, "MOST_KEPT", 0)
    monkeypatch.setattr(local, "BLOCK_ENTRIES", 8 * P)
    monkeypatch.setattr(dense, "ENTRIES_AT_ONCE", 3 * P)
    monkeypatch.setattr(dense, "ENTRIES_AS_THEY_ARE", 2 * N)
    monkeypatch.setattr("riata.bounds.ENTRIES_AT_ONCE", 5 * P)
    monkeypatch.setattr(dense, "_WORTH_THREADS", 0)


each_layout = pytest.mark.parametrize("layout", LAYOUTS)
each_bounds = pytest.mark.parametrize("bounds", BOUNDS)


@each_bounds
@each_layout
def test_pieces_are_put_on_the_grid_as_the_whole_is(layout, bounds, small_pieces):
    x, bounds = LAYOUTS[layout](hostile()), BOUNDS[bounds]
    expected = grid_as_defined(x, bounds)
    assert_array_equal(bounds.grid_x(x), expected)
    rows = DenseRows(x, bounds)
    found = np.full((N, P), np.nan)

    def fill(few, block):
        found[few] = block

    rows.each(fill)
    assert_array_equal(found, expected)
    for column in (0, P - 1, 3, 0):
        assert_array_equal(rows.column(column), expected[:, column])
    of_columns = np.full((N, P), np.nan)

    def fill_columns(few, buffer):
        of_columns[:, few] = rows.columns(few, buffer)

    rows._in_pieces(fill_columns, columns=True)
    assert_array_equal(of_columns, expected)


@each_layout
@pytest.mark.parametrize("most", [X_STEPS, 1000])
def test_columns_of_pieces_are_those_of_the_whole(layout, most, small_pieces):
    x, bounds = LAYOUTS[layout](hostile()), BOUNDS["each"]
    whole = np.clip(grid_as_defined(x, bounds), -most, most)
    columns = DenseColumns(DenseRows(x, bounds), most)
    slopes = np.random.default_rng(1).integers(-X_STEPS, X_STEPS, N).astype(np.float64)
    assert_array_equal(columns.sums(slopes), whole.T @ slopes)
    assert [columns.sum(j, slopes) for j in range(P)] == (whole.T @ slopes).tolist()
    lengths, sizes = np.sqrt(np.square(whole).sum(axis=0)), np.abs(whole).sum(axis=0)
    assert (columns.lengths >= lengths).all()
    assert_array_equal(columns.sizes >= sizes, True)
    np.testing.assert_allclose(columns.lengths, lengths, rtol=1e-3)


@each_layout
@pytest.mark.parametrize("most", [X_STEPS, 1000])
@pytest.mark.parametrize("rows", ["hostile", "tame", "some tame"])
def test_rough_sums_are_off_by_no_more_than_they_say(layout, most, rows, small_pieces):
    x = hostile()
    if rows != "hostile":
        tame = np.random.default_rng(3).uniform(-0.3, 0.3, (N, P))
        some = np.add.outer(np.arange(N), np.arange(P)) < 30
        x = np.where(some, x, tame) if rows == "some tame" else tame
    x, bounds = LAYOUTS[layout](x), BOUNDS["each"]
    whole = np.clip(grid_as_defined(x, bounds), -most, most)
    columns = DenseColumns(DenseRows(x, bounds), most)
    slopes = np.random.default_rng(1).integers(-X_STEPS, X_STEPS, N).astype(np.float64)
    for _ in range(2):
        off = np.abs(columns.rough_sums(slopes) - whole.T @ slopes)
        assert (off <= columns.roughness * np.abs(slopes).sum()).all()
    assert (columns.lengths >= np.sqrt(np.square(whole).sum(axis=0))).all()
    quick = layout in ("C", "F")
    assert (columns.roughness > 0) == quick
    if quick:
        assert any(columns._rows._inside.values()) == (rows != "hostile")
        assert (off > 0).any() == (rows != "hostile")


@each_bounds
@each_layout
def test_sums_are_those_of_the_whole(layout, bounds, small_pieces, monkeypatch):
    x, bounds = LAYOUTS[layout](hostile()), BOUNDS[bounds]
    rng = np.random.default_rng(2)
    y = rng.choice([-1.0, 1.0, np.nan], N)
    problem = Problem(Logistic(), L1Ball(3.0), bounds, N, P)
    thetas = [Vector.zero(P), Vector.unit(P, 3, 2.0), Vector.of(rng.standard_normal(P))]
    queries = [Gradient(problem, theta) for theta in thetas]
    if bounds.norm == "inf":
        queries += [Correlations(problem, theta, 0.5, 0.4) for theta in thetas]
    pieces = LocalEngine(x, y, problem.bounds)
    assert pieces._in_pieces
    found = [pieces.total(query) for query in queries]
    parts = [[pieces.part(k, 3).total(query) for query in queries] for k in range(3)]
    margins = [pieces._margins.of(query) for query in queries]
    monkeypatch.setattr(local, "MOST_KEPT", x.size)
    whole = LocalEngine(x, y, problem.bounds)
    assert not whole._in_pieces
    for i, query in enumerate(queries):
        assert found[i].dtype == np.int64
        assert_array_equal(found[i], whole.total(query))
        assert_array_equal(sum(part[i] for part in parts), found[i])
        assert_array_equal(margins[i], query.margins(Block(whole._x, y)))


def test_threads_do_not_matter(small_pieces, monkeypatch):
    problem = Problem(Logistic(), L1Ball(3.0), BOUNDS["one"], N, P)
    query = Gradient(problem, Vector.of(np.random.default_rng(3).standard_normal(P)))
    found = []
    for threads in (1, 2, 5, 1000):
        monkeypatch.setattr(dense, "THREADS", threads)
        found.append(LocalEngine(hostile(), np.ones(N), problem.bounds).total(query))
    for other in found[1:]:
        assert_array_equal(found[0], other)


@pytest.mark.not_quick
def test_large_rows_are_not_copied_and_not_changed(monkeypatch):
    n, p = 3_000, 3_000
    monkeypatch.setattr(local, "MOST_KEPT", n * p - 1)
    x, y = hostile(n, p), np.ones(n)
    before = x.copy()
    problem = Problem(Logistic(), L1Ball(3.0), Bounds(0.7, 1.0), n, p)
    query = Gradient(problem, Vector.unit(p, 3, 2.0))
    tracemalloc.start()
    engine = LocalEngine(x, y, problem.bounds)
    assert np.shares_memory(engine._dense._x, x)
    engine.total(query)
    scores = engine.scores(VertexUtilities(problem, query.theta), 1.0)
    assert scores is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    blocks = dense.THREADS * local.BLOCK_ENTRIES * 8
    assert peak < blocks + 0.25 * x.nbytes
    assert np.array_equal(x, before, equal_nan=True)


def test_columns_that_were_read_are_kept_but_not_all():
    x = hostile(50, 1_000)
    rows = DenseRows(x, Bounds(0.7, 1.0))
    assert rows.column(7) is rows.column(7)
    for column in range(1_000):
        rows.column(column)
    assert len(rows._columns) == rows._most_kept <= 20
    assert 999 in rows._columns
    assert 7 not in rows._columns


def test_what_is_kept_beside_sparse_rows_is_never_out_of_date():
    rng = np.random.default_rng(4)
    n, p = 900, 5_000
    x = sparse.random_array((n, p), density=0.02, rng=rng, format="csr")
    y = rng.choice([-1.0, 1.0], n)
    problem = Problem(Logistic(), L1Ball(3.0), Bounds(0.7, 1.0), n, p)
    engine = LocalEngine(x, y, problem.bounds)
    first = Vector.of(rng.standard_normal(p) * (rng.random(p) < 0.1))
    second = first.toward(Vector.unit(p, 3, 2.0), Fraction(3, 10))
    asked = [first, first.with_offset(0.4), second, first, second.with_offset(0.1), second, first]
    for theta in asked:
        for query in (Gradient(problem, theta), ClippedGradient(problem, theta, 0.3)):
            new = LocalEngine(x, y, problem.bounds)
            assert_array_equal(engine.total(query), new.total(query))
        found = engine.scores(VertexUtilities(problem, theta), 1.0)
        assert found is not None


@each_bounds
@each_layout
def test_copies_that_are_kept_are_the_rows_on_the_grid(layout, bounds, small_pieces):
    x, bounds = LAYOUTS[layout](hostile()), BOUNDS[bounds]
    expected, v = grid_as_defined(x, bounds), np.arange(P, dtype=float) - 7
    rows = DenseRows(x, bounds)
    for most in (1, 1000, 2**15 - 1, 2**15, 50_000, X_STEPS):
        found = rows.clipped(most)
        assert found.dtype == (np.int16 if most < 2**15 else np.float32)
        assert_array_equal(found, np.clip(expected, -most, most))
        assert rows.clipped(most) is found
    assert rows.is_kept
    assert_array_equal(rows.kept, expected)
    assert_array_equal(rows @ v, expected @ v)
    assert_array_equal([rows.column(j) for j in range(P)], expected.T)


def some_queries(problem):
    """Queries that read whole rows, some columns, and sums over all columns."""
    bounds, p, rng = problem.bounds, problem.n_features, np.random.default_rng(6)
    theta, models = Vector.of(rng.normal(size=p)), [Vector.of(rng.normal(size=p)) for _ in range(3)]
    white = Whitening.of(rng.normal(size=(4, p)) * [[1e-6], [1.0], [30.0], [1e3]], np.ones(4))
    scaling = Scaling.of(p, np.arange(0, p, 2), np.zeros(19), np.linspace(0.5, 2, 19))
    found = [
        EntrySizes(problem), EntrySizes(problem, 3), Gradient(problem, theta),
        Correlations(problem, theta, 0.4, 0.3), Correlations(problem, theta, 0.4, 0.9),
        Correlations(problem, theta, 0.2, 0.3), Correlations(problem, theta, 0.4, 1.0),
        LengthSizes(problem, Support(np.array([3]), bounds)),
        LengthSizes(problem, Support(np.arange(p), bounds)),
        SupportCurvature(problem, theta, 0.4, Support(np.array([2, 30]), bounds), 0.7, 0.1),
        JointMoments(problem, theta, 0.4, white, 0.2, 1.7, 0.6),
        PreconditionedGradient(problem, theta, 0.4, white, 3.0, 1.0, 0.3),
        ClippedGradient(problem, theta, 0.3),
    ]  # fmt: skip
    joint = replace(problem, loss=Softmax(3))
    return [*found, SoftmaxGradient(joint, tuple(models), 1.0, scaling, 1.1, 0.5)]


@each_bounds
@pytest.mark.parametrize("rows_of_a_block", [1, 9, N])
@pytest.mark.parametrize("turn", range(3))
def test_sums_of_kept_rows_are_those_of_rows_on_the_grid(
    bounds, rows_of_a_block, turn, monkeypatch
):
    monkeypatch.setattr(local, "BLOCK_ENTRIES", rows_of_a_block * P)
    monkeypatch.setattr("riata.grid._ENTRIES_AT_ONCE", 3 * P)
    monkeypatch.setattr("riata.queries.whitening._ENTRIES_AT_ONCE", 4 * P)
    monkeypatch.setattr("riata.queries.softmax._ROWS_ENTRIES", 5 * P)
    monkeypatch.setattr("riata.queries.sizes._ENTRIES_AT_ONCE", 2 * P)
    x, bounds = hostile(), BOUNDS[bounds]
    x[9::13, ::2], x[14] = 0.0, 0.0
    y = np.random.default_rng(2).choice([-1.0, 1.0, 0.0, 2.0, np.nan], N)
    problem = Problem(Logistic(), L1Ball(3.0), bounds, N, P, fit_intercept=True)
    plain = Shard(grid_as_defined(x, bounds), bounds.clip_y(y))
    engine, queries = LocalEngine(x, y, bounds), some_queries(problem)
    for query in np.random.default_rng(turn).permutation(np.array(queries, dtype=object)):
        assert_array_equal(engine.total(query), plain.total(query))


def test_a_search_keeps_clipped_rows_alone_and_reads_them_once_a_selection():
    n, p = 600, 700
    problem = Problem(Logistic(), L1Ball(3.0), BOUNDS["one"], n, p, fit_intercept=True)
    engine = LocalEngine(hostile(n, p), np.ones(n), problem.bounds)
    engine.total(EntrySizes(problem))
    for theta in (Vector.zero(p), Vector.unit(p, 3, 0.2)):
        query = Correlations(problem, theta, 0.4, 0.3)
        assert engine.scores(query, 1.0) is None
        engine.total(query)
        engine.total(Coordinate(problem, theta, 0.4, 0.3, 5))
        engine.total(LengthSizes(problem, Support(np.array([3, 5]), problem.bounds)))
    assert not engine._dense.is_kept
    assert engine._dense._clipped[1].nbytes == 2 * n * p
    assert engine.scores(VertexUtilities(problem, theta), 1.0) is not None


def test_lengths_of_columns_of_a_part_are_computed_in_64_bits():
    """One entry at the bound and many small ones: 32 bits lose the small ones."""
    x = np.full((40_000, 4), 15 / X_STEPS)
    x[0] = 1.0
    part = LocalEngine(x, np.ones(len(x)), Bounds(1.0, 1.0)).part(0, 1)
    assert part._dense.kept.dtype == np.float32
    exact = math.sqrt(X_STEPS**2 + (len(x) - 1) * 15**2)
    assert part._columns.lengths == pytest.approx([exact] * 4, rel=1e-8)  # a little more
