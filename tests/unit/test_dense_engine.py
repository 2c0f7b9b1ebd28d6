"""Dense rows stay where they are: what is summed is the same as if all were put on the grid."""

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from riata import Bounds
from riata.engines import LocalEngine, dense, local
from riata.engines.dense import DenseColumns, DenseRows
from riata.grid import X_STEPS
from riata.losses import Logistic
from riata.problem import Problem
from riata.queries import Block, ClippedGradient, Correlations, Gradient, VertexUtilities
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
