"""One meaning of a release: its law depends on the rows as a matrix and on the plan, and on nothing
else.

Every query has the same integers in every engine and for every container of the same rows, under
hostile rows; single columns that a selection looks at have the integers of the whole sum, in
compiled code too; and what a mechanism then draws from them has one law. `make audit` runs many
more cases of the same properties.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from riata.bounds import Bounds
from riata.engines import dense, local, shard
from riata.engines.choice import Arrays, open_engine
from riata.engines.local import LocalEngine
from riata.losses import (
    Cox,
    Gamma,
    Huber,
    Logistic,
    NegativeBinomial,
    OneAgainstRest,
    OrderedLogistic,
    Poisson,
    RowLoss,
    SmoothedHinge,
    Softmax,
    Squared,
    Tweedie,
    Weighted,
    WeightedRows,
)
from riata.preparation import Preparation
from riata.problem import Problem
from riata.projections import GaussianProjection, SparseSignProjection, StructuredProjection
from riata.queries import (
    AbsoluteError,
    CentredGradient,
    ClassCounts,
    ClippedGradient,
    ColumnSquares,
    ColumnSums,
    Coordinate,
    Correlations,
    EntrySizes,
    FineGradient,
    FlagCounts,
    FrankWolfePath,
    Gradient,
    GradientMoments,
    GradientStep,
    Improvement,
    Influence,
    JointMoments,
    LengthSizes,
    LimitedSlope,
    MarginCounts,
    MarginLengths,
    MarginSlopes,
    MeanCurvature,
    MeanSlope,
    MeanVector,
    NuisanceSums,
    OfShortRows,
    PreconditionedGradient,
    RowDigest,
    RowGradient,
    RowLengths,
    RowUtilities,
    Scaling,
    ScoreCounts,
    SlopeSizes,
    SoftmaxGradient,
    SoftmaxLine,
    SquaredError,
    SquaredMoments,
    SumsByClass,
    Support,
    SupportCurvature,
    SupportGradient,
    VertexUtilities,
    Whitening,
    WrongLabels,
)
from riata.sets import L1Ball, L2Ball, Simplex
from riata.vectors import Vector

#: Values that rows and targets are made of.
VALUES = [0.0, -0.0, 1.0, -1.0, 0.3, -0.7, 0.999, 1e-3, -1e-9, 1e-320, 5.0, -1e30, 1e308,
          np.inf, -np.inf, np.nan, 1 / 65536, 0.5 / 65536, 1.5 / 65536]  # fmt: skip
LOSSES = [
    Squared(), Logistic(), Huber(0.4), SmoothedHinge(0.7), OneAgainstRest(Logistic(), 1),
    Weighted(OneAgainstRest(SmoothedHinge(0.3), 0), (0.4, 1.6)),
    Poisson(2.0), Gamma(0.1), Tweedie(1.7, 0.3, 3.0), NegativeBinomial(0.4),
    WeightedRows(Poisson(2.0), 1.0, 3.0, 1.0),
]  # fmt: skip

#: A function of whole rows: inner products, and what is no number.
ROW_LOSS = RowLoss(lambda theta, x, y: (x @ theta - y) * x / (1 + x @ x) + np.log(x + 1), 1.3)

#: Ways to hold the same matrix.
CONTAINERS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "every other row and column": lambda x: _strided(x),
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "CSR, 64-bit indices": lambda x: _wide(sparse.csr_array(x)),
    "CSC, 64-bit indices": lambda x: _wide(sparse.csc_array(x)),
    "CSR matrix": sparse.csr_matrix,
    "COO": sparse.coo_array,
    "CSR with stored zeros": lambda x: _with_zeros(x),
    "unsorted CSR": lambda x: _unsorted(x),
}
ENGINES = ["numpy", "scan", "disk", "numba"]


def _strided(x):
    wide = np.full((2 * x.shape[0], 2 * x.shape[1]), 7.0)
    wide[::2, ::2] = x
    return wide[::2, ::2]


def _wide(x):
    x.indices, x.indptr = x.indices.astype(np.int64), x.indptr.astype(np.int64)
    return x


def _with_zeros(x):
    n, p = x.shape
    full = sparse.csr_array(np.ones((n, p)))
    return sparse.csr_array((x.ravel().copy(), full.indices, full.indptr), shape=x.shape)


def _unsorted(x):
    rows = sparse.csr_array(x)
    for i in range(x.shape[0]):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        rows.indices[part], rows.data[part] = rows.indices[part][::-1], rows.data[part][::-1]
    rows.has_sorted_indices = False
    return rows


@dataclass(frozen=True)
class Case:
    """A problem, rows, and a model at which queries are asked."""

    problem: Problem
    x: np.ndarray
    y: np.ndarray
    theta: Vector

    @property
    def preparation(self) -> Preparation:
        return Preparation(self.problem.bounds)


@st.composite
def cases(draw) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, p = draw(st.integers(1, 24)), draw(st.sampled_from([1, 2, 3, 7, 70, 200]))
    filled = draw(st.sampled_from([0.02, 0.3, 1.0]))
    x = rng.uniform(-1.3, 1.3, (n, p)) * (rng.random((n, p)) < filled)
    odd = rng.random((n, p)) < draw(st.sampled_from([0.0, 0.05, 0.5]))
    x[odd] = rng.choice(VALUES, odd.sum())
    loss = draw(st.sampled_from(LOSSES))
    y = rng.choice([*VALUES, 2.0, -2.0], n)
    norm = draw(st.sampled_from(["inf", "inf, one each", "l2", "inf, and length"]))
    bound = draw(st.sampled_from([1.0, 0.3, 3.7]))
    each = "each" in norm or ("length" in norm and draw(st.booleans()))
    limits = bound * rng.choice([1.0, 0.1, 0.77, 1e-5], p) if each else bound
    bounds = Bounds(limits, 1.0 if draw(st.booleans()) else 2.3, norm=norm.split(",")[0],
                    nonnegative=draw(st.booleans()),
                    length=1.1 * bound if "length" in norm else None)  # fmt: skip
    polytope = draw(st.sampled_from([L1Ball(1.0), L1Ball(7.3), Simplex(0.6)]))
    adjacency = draw(st.sampled_from(["replace-one", "add-remove"]))
    problem = Problem(loss, polytope, bounds, n, p, adjacency, fit_intercept=True)
    return Case(problem, x, y, _model(draw, rng, problem))


def _model(draw, rng, problem) -> Vector:
    """Where a path leads, where a fit leads, or anywhere."""
    p = problem.n_features
    kind = draw(st.sampled_from(["zero", "path", "sums", "dense"]))
    if kind == "path":
        steps = draw(st.sampled_from([1, 5, 40]))
        return FrankWolfePath(problem, 40).theta(rng.integers(0, problem.set.n_vertices, steps))
    theta = Vector.zero(p)
    if kind == "sums":
        for _ in range(5):
            theta = theta.plus(Vector.unit(p, int(rng.integers(p)), float(rng.normal())))
    if kind == "dense":
        theta = Vector.of(rng.normal(size=p) * 10.0 ** rng.integers(-6, 3, p))
    return theta.with_offset(draw(st.sampled_from([0.0, 0.4, -1.1])))


def queries(case: Case) -> dict[str, object]:
    """One query of every kind."""
    problem, theta, rng = case.problem, case.theta, np.random.default_rng(7)
    n, p, bounds = problem.n_rows, problem.n_features, problem.bounds
    few = np.unique(rng.integers(0, p, 5))
    support = Support(few, bounds)
    scaling = Scaling.of(p, few, rng.uniform(-0.5, 0.5, len(few)), rng.uniform(0.01, 2, len(few)))
    white = Whitening.of(rng.normal(size=(4, p)) * [[1e-6], [1.0], [30.0], [1e3]], np.ones(4))
    zero = Vector.zero(p)
    at = (bounds, n, problem.adjacency)
    of_rows = replace(problem, loss=ROW_LOSS, fit_intercept=False)
    short = replace(of_rows, loss=replace(ROW_LOSS, norm="l2"))
    found = {
        "gradient": Gradient(problem, theta),
        "clipped gradient": ClippedGradient(problem, theta, 0.3),
        "vertex utilities": VertexUtilities(problem, theta),
        "row gradient": RowGradient(of_rows, theta),
        "short row gradient": RowGradient(short, theta, 0.4),
        "row utilities": RowUtilities(of_rows, theta),
        "mean vector": MeanVector(bounds, p, n, problem.adjacency),
        "flag counts": FlagCounts(replace(bounds, nonnegative=True), p, n, problem.adjacency),
        "mean entries": MeanVector(bounds, p, n, problem.adjacency).entries(few),
        "gradient step": GradientStep(problem, theta, 0.5),
        "mean slope": MeanSlope(problem, theta),
        "slope sizes": SlopeSizes(problem, theta),
        "entry sizes": EntrySizes(problem),
        "fine entry sizes": EntrySizes(problem, 8),
        "length sizes": LengthSizes(problem, support),
        "limited slope": LimitedSlope(problem, theta, 0.4),
        "mean curvature": MeanCurvature(problem, theta, 0.4),
        "correlations": Correlations(problem, theta, 0.4, 0.3),
        "whole correlations": Correlations(problem, theta, 0.4, 1.0),
        "coordinate": Coordinate(problem, theta, 0.4, 0.3, int(few[0])),
        "support gradient": SupportGradient(problem, theta, 0.4, support, 0.7, 0.5),
        "support curvature": SupportCurvature(problem, theta, 0.4, support, 0.7, 0.0),
        "row lengths": RowLengths(problem, 8),
        "column sums": ColumnSums(problem),
        "column squares": ColumnSquares(problem, 0.4),
        "centred gradient": CentredGradient(problem, theta, 0.4, scaling, 1.1),
        "joint moments": JointMoments(problem, theta, 0.4, white, 0.2, 1.7, 0.6),
        "plain joint moments": JointMoments(problem, theta, 9.0, white, 2.0, 0.1, 0.0),
        "preconditioned gradient": PreconditionedGradient(
            problem, theta, 0.4, white, 3.0, 1.0, 0.3
        ),
        "squared gradients": GradientMoments(problem, theta, 0.4, white, 3.0, 1.0, 0.3),
        "improvement": Improvement(problem, theta, zero, 0.6),
        "table of classes": NuisanceSums(replace(problem, loss=OrderedLogistic(3)), theta, 1.0),
        "table of bands": NuisanceSums(replace(problem, loss=Cox((0.3, 1.0))), theta, 1.0),
        "class counts": ClassCounts(problem, 3),
        "margin counts": MarginCounts(problem, theta),
        "margin slopes": MarginSlopes(problem, theta, 0.8, (1.2, -0.1)),
        "class sums": SumsByClass(problem, 0.2),
        "score counts": ScoreCounts(problem, theta, 0.1, 0.5),
        "fine gradient": FineGradient(problem, theta),
        "squared error": SquaredError((theta,), *at),
        "absolute error": AbsoluteError((theta,), *at),
        "wrong labels": WrongLabels((theta, zero), *at, (1.0, 0.0), ((1.3, 0.2), (0.4, -0.1))),
        "row digest": RowDigest(b"k" * 32, n, problem.adjacency),
        "gradient entries": GradientStep(problem, theta, 0.5).entries(few),
    }
    joint = replace(problem, loss=Softmax(3))
    models = (theta, zero.with_offset(0.3), Vector.of(rng.normal(size=p)))
    own = Influence(scaling, 1.1, np.array([0.3, 0.0, 2.0]))
    found |= {
        "sums of three classes": SumsByClass(joint, 0.2),
        "softmax gradient": SoftmaxGradient(joint, models, 1.0, scaling, 1.1, 0.5),
        "softmax line": SoftmaxLine(joint, models, own, 0.7, 1.3, np.array([0.1, 0.0, -0.4])),
        "margin lengths": MarginLengths(joint, models),
    }
    shorter = bounds.shortened(0.3 * bounds.row_norm("l2", p))
    if shorter is not bounds:
        short = replace(problem, bounds=shorter)
        found["sums of short rows"] = OfShortRows(ColumnSums(short), bounds)
        found["gradient of short rows"] = OfShortRows(
            CentredGradient(short, theta, 0.4, scaling, 1.1), bounds
        )
    if bounds.norm == "l2":
        found["squared moments"] = SquaredMoments(bounds, 1.0, n, problem.adjacency, p, True)
    return found


def engine(name: str, container: str, case: Case):
    rows = Arrays(CONTAINERS[container](case.x), case.y)
    return open_engine(name, case.preparation, rows)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Engines cut rows into pieces, follow margins, and know scores: also for few rows."""
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    monkeypatch.setattr(shard, "BLOCK_ROWS", 5)
    monkeypatch.setattr("riata.engines.disk.BLOCK_ROWS", 4)
    monkeypatch.setattr(dense, "ENTRIES_AS_THEY_ARE", 16)
    monkeypatch.setattr("riata.queries.block._ENTRIES_OF_A_PIECE", 16)
    monkeypatch.setattr("riata.queries.block._PIECE_OF_COLUMNS", 0)


def common(examples: int):
    return settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )  # fmt: skip


def assert_same_integers(case: Case, pairs: list[tuple[str, str]]) -> None:
    asked = queries(case)
    reference = engine("scan", "C order", case)
    expected = {name: reference.total(query) for name, query in asked.items()}
    for name, container in pairs:
        other = engine(name, container, case)
        for kind, query in asked.items():
            found = other.total(query)
            assert found.dtype == np.int64
            assert np.array_equal(found, expected[kind]), (kind, name, container)


ALL_PAIRS = [(name, container) for name in ENGINES for container in CONTAINERS]


@common(40)
@given(cases(), st.sampled_from(range(4)))
def test_same_release_every_query_engine_and_container_has_the_same_integers(case, turn):
    assert_same_integers(case, ALL_PAIRS[turn::4])


@pytest.mark.slow
@common(10_000)
@given(cases(), st.sampled_from(range(11)))
def test_same_release_of_ten_thousand_cases(case, turn):
    assert_same_integers(case, ALL_PAIRS[turn::11])


def float32_cases():
    """Rows that float32 holds: the containers of both widths hold the same matrix."""

    def narrow(case):
        x = np.clip(case.x, -3e38, 3e38).astype(np.float32)
        return replace(case, x=x.astype(np.float64))

    return cases().map(narrow)


@pytest.mark.long
@common(25)
@given(float32_cases())
def test_same_release_32_and_64_bits_frames_and_whole_numbers(case):
    asked = queries(case)
    whole = np.rint(np.clip(np.nan_to_num(case.x), -2, 2))
    forms = [
        (case.x, [case.x.astype(np.float32), np.asfortranarray(case.x, dtype=np.float32),
                  sparse.csr_array(case.x, dtype=np.float32),
                  sparse.csc_array(case.x, dtype=np.float32)]),
        (whole, [whole.astype(np.int8), whole.astype(np.int64),
                 sparse.csr_array(whole.astype(np.int64)),
                 sparse.csc_array(whole.astype(np.int8))]),
    ]  # fmt: skip
    for x, others in forms:
        reference = open_engine("scan", case.preparation, Arrays(x, case.y))
        expected = {name: reference.total(query) for name, query in asked.items()}
        for other in others:
            for name in ENGINES:
                found = open_engine(name, case.preparation, Arrays(other, case.y))
                for kind, query in asked.items():
                    assert np.array_equal(found.total(query), expected[kind]), (kind, name)


@common(25)
@given(cases(), st.data())
def test_same_release_projected_rows(case, data):
    bounds, p = case.problem.bounds, case.problem.n_features
    kind = data.draw(
        st.sampled_from([GaussianProjection, SparseSignProjection, StructuredProjection])
    )
    dimension = data.draw(st.integers(1, min(p, 9)))
    asked = Bounds(1.3, bounds.y, norm="l2")
    preparation = Preparation(bounds, kind(dimension, p, 3), asked)
    problem = Problem(case.problem.loss, L2Ball(1.0), asked, len(case.y), dimension)
    query = Gradient(problem, Vector.of(np.linspace(-1, 1, dimension)))
    expected = None
    for name in ENGINES:
        for container in ("C order", "Fortran order", "CSR", "CSC"):
            rows = Arrays(CONTAINERS[container](case.x), case.y)
            found = open_engine(name, preparation, rows).total(query)
            expected = found if expected is None else expected
            assert np.array_equal(found, expected), (name, container)


@common(30)
@given(cases())
def test_same_release_after_any_history(case):
    """What an engine was asked before changes nothing: moves are followed without rounding."""
    problem, p = case.problem, case.problem.n_features
    rng = np.random.default_rng(3)
    thetas, theta = [], problem.set.start()
    for t in range(1, 12):
        thetas.append(theta.with_offset(float(rng.normal())))
        vertex = problem.set.vertex(int(rng.integers(problem.set.n_vertices)))
        theta = theta.toward(vertex, Fraction(2, t + 2))
        if t % 4 == 0:
            thetas.append(theta.plus(Vector.unit(p, int(rng.integers(p)), 0.3)))
    thetas += [thetas[3], case.theta, thetas[-1], Vector.zero(p)]
    engines = [
        engine(name, container, case)
        for name, container in (
            ("numpy", "C order"),
            ("numpy", "CSR"),
            ("scan", "CSC"),
            ("numpy", "Fortran order"),
        )
    ]
    for theta in thetas:
        fresh = engine("scan", "C order", case)
        for query in (
            MeanSlope(problem, theta),
            Gradient(problem, theta),
            Coordinate(problem, theta, 0.5, 0.5, 0),
        ):
            expected = fresh.total(query)
            for other in engines:
                assert np.array_equal(other.total(query), expected)


@common(40)
@given(cases())
def test_same_release_single_columns_have_the_integers_of_the_whole_sum(case):
    """What a selection looks at one by one is what it would have summed."""
    problem = case.problem
    for query in (
        VertexUtilities(problem, case.theta),
        Correlations(problem, case.theta, 0.4, 0.3),
    ):
        totals = engine("scan", "C order", case).total(query)
        expected = query.from_total(totals)
        for container in ("C order", "Fortran order", "CSR", "CSC"):
            scores = engine("numpy", container, case).scores(query, 1e-3)
            if scores is None:
                continue
            found = [scores.exactly(0, k) for k in range(problem.n_features)]
            assert np.array_equal(found, expected), container


@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 200))]
)
def test_same_release_compiled_columns_have_the_integers_of_the_whole_sum(seed):
    pytest.importorskip("numba")
    from riata.engines.compiled import bounds as drift
    from riata.engines.compiled import selection as kernel
    from riata.mechanisms import CompiledSelections, ExponentialMechanism
    from riata.mechanisms.noise import Noise

    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([3, 60, 300])), int(rng.choice([2, 30, 90]))
    x = rng.uniform(-1.3, 1.3, (n, p)) * (rng.random((n, p)) < rng.choice([0.1, 1.0]))
    odd = rng.random((n, p)) < 0.05
    x[odd] = rng.choice(VALUES, odd.sum())
    y, loss = rng.choice(VALUES, n), LOSSES[seed % 5]
    limits = rng.choice([1.0, 0.1, 0.77, 1e-5], p) if seed % 2 else 0.7
    bounds = Bounds(limits, 1.3, nonnegative=bool(seed % 3 == 0))
    problem = Problem(loss, L1Ball(3.3) if seed % 4 else Simplex(0.9), bounds, n, p)
    path = FrankWolfePath(problem, 50)
    compiled = LocalEngine(sparse.csr_array(x), y, bounds, kernels="numba")
    plain = LocalEngine(x, y, bounds, kernels="numpy")
    noise, released = Noise(seed), np.empty(0, dtype=np.int64)
    for steps in (1, 6, 22):
        more = CompiledSelections(ExponentialMechanism(0.7), steps).release(path, compiled, noise)
        released = np.append(released, more)
        inside = compiled.compiled_path(path, 0.7)
        now = drift.numbers_now(inside._facts, inside._path, inside._state)
        found = [kernel.total_of(k, inside._columns, inside._rows, now, inside._facts)
                 for k in range(p)]  # fmt: skip
        query = path.utilities(path.theta(released))
        assert np.array_equal(found, plain.total(query))
        assert now.largest == query.gradient.slope_bound()


def test_same_release_files_and_frames(tmp_path):
    """A file, a frame and an array with the same numbers."""
    from riata import PrivateLasso, Schema, read

    rng = np.random.default_rng(1)
    x = np.round(rng.uniform(-1.2, 1.2, (500, 6)), 3)
    y = np.round(np.clip(x[:, 0], -1, 1), 3)
    frame = pd.DataFrame(x, columns=[f"c{j}" for j in range(6)]).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    schema = Schema.from_table({
        "features": [{"name": f"c{j}", "kind": "number", "bounds": [-1, 1]} for j in range(6)],
        "target": {"name": "y", "bounds": [-1, 1]},
    })  # fmt: skip
    models = []
    for rows in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        for name in ("numpy", "scan", "disk", "auto"):
            model = PrivateLasso(1.0, 1e-6, engine=name, random_state=5)
            models.append(model.fit(read(rows, schema), checkpoint=tmp_path / f"{len(models)}"))
    for model in models[1:]:
        assert np.array_equal(model.coef_, models[0].coef_)
        assert model.intercept_ == models[0].intercept_
        assert model.privacy_.request == models[0].privacy_.request
