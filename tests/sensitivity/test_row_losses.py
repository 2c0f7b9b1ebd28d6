"""Losses of whole rows: whatever the code of other people does with a row, its gradient keeps the
declared length, depends on that row alone, and tells nobody of a failure."""

import itertools
import sys
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds, PrivateErm, forecast, save
from riata.audit import random_pairs, replays
from riata.engines import LocalEngine
from riata.errors import Incompatible, InvalidArgument
from riata.losses import RowLoss, Squared
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.queries import Gradient, RowGradient, RowUtilities
from riata.sets import L1Ball, L2Ball, Polytope, Simplex
from riata.solvers import SOLVERS, Solver
from riata.vectors import Vector

P = 5
BOUNDS = Bounds(1.0, 2.0)
every_norm = pytest.mark.parametrize("norm", ["l1", "l2", 1.25, 3.0, np.inf])
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])


class Hostile(BaseException):
    """What no handler for ordinary errors catches."""


def fails(theta, x, y):
    raise Hostile(x)


def leaves(theta, x, y):
    sys.exit(int(x[0]))


def writes(theta, x, y):
    x += 1
    return x


def writes_to_the_model(theta, x, y):
    theta.setflags(write=True)
    theta[:] = x[0]
    return theta + x


def changes_filters(theta, x, y):
    warnings.resetwarnings()
    warnings.simplefilter("always")
    warnings.warn(f"row {x}", stacklevel=1)
    np.seterr(all="raise")
    return 2 * x


def warns(theta, x, y):
    warnings.warn(f"row {x}", stacklevel=1)
    np.log(np.zeros(1)) * x[0]
    return 3 * x


#: What a function may do with a row: by the first entry of the row, in fifths.
ANSWERS = {
    0: lambda theta, x, y: 1e300 * x,
    1: lambda theta, x, y: np.full(P, np.nan),
    2: lambda theta, x, y: np.array([np.inf, -np.inf, 1.0, np.nan, -1e308]),
    3: fails,
    4: lambda theta, x, y: np.ones(P + 1),
    -1: lambda theta, x, y: 2 * (x @ theta - y) * x,
    -2: leaves,
    -3: warns,
    -4: lambda theta, x, y: "nothing",
    5: writes_to_the_model,
    -5: changes_filters,
}


def hostile(theta, x, y):
    return ANSWERS[round(5 * float(x[0]))](theta, x, y)


def problem(loss, C, n_rows=3, adjacency=REPLACE_ONE):
    return Problem(loss, C, BOUNDS, n_rows, P, adjacency)


def rows():
    """Rows that reach each answer, at corners and inside."""
    rng = np.random.default_rng(0)
    x = rng.choice([-1.0, 1.0, 0.3, 0.0], (200, P))
    x[:, 0] = rng.integers(-5, 6, 200) / 5
    x[:4, 0] = [0, 0, 0, -0.2]
    x[:4, 1:] = [[1, 1, 1, 1], [-1, -1, -1, -1], [1, 0, 0, 0], [1, 1, 1, 1]]
    return x, rng.choice([-2.0, 0.0, 2.0], 200)


def summands(query, x, y):
    grid, targets = query.bounds.grid_x(x), query.bounds.clip_y(y)
    engine = LocalEngine(x, y, query.bounds)
    each = [LocalEngine(x[[i]], y[[i]], query.bounds).total(query) for i in range(len(y))]
    assert np.array_equal(np.sum(each, axis=0), engine.total(query))
    assert len(grid) == len(targets)
    return [[int(v) * Fraction(float(query.unit)) for v in one] for one in each]


def length(vector, norm):
    if norm == "l2":
        return sum(v * v for v in vector)
    sizes = [abs(v) for v in vector]
    return (sum(sizes) if norm == "l1" else max(sizes)) ** 2


@every_norm
@every_adjacency
@pytest.mark.parametrize("clip", [None, 0.4, 1e9])
def test_no_row_gradient_exceeds_what_is_declared(norm, adjacency, clip):
    loss = RowLoss(hostile, 1.7, norm)
    query = RowGradient(problem(loss, L2Ball(1.0), 3, adjacency), Vector.of(np.ones(P)), clip)
    alone = summands(query, *rows())
    for asked in ("l1", "l2", "linf"):
        allowed = Fraction(query.sensitivity(asked)) ** 2
        if adjacency == ADD_REMOVE:
            assert max(length(one, asked) for one in alone) <= allowed
            continue
        longest = sorted(alone, key=lambda one: length(one, asked))[-40:]
        for one, other in itertools.combinations(longest, 2):
            change = [a - b for a, b in zip(one, other, strict=True)]
            assert length(change, asked) <= allowed


@every_norm
def test_the_sensitivity_is_attained(norm):
    query = RowGradient(problem(RowLoss(hostile, 1.7, norm), L2Ball(1.0)), Vector.zero(P))
    row = np.array([[0, 1, 1, 1, 1]] if isinstance(norm, str) else [[0, 1, 0, 0, 0]])
    one, other = (summands(query, s * row, np.zeros(1))[0] for s in (1.0, -1.0))
    dual = "l2" if norm == "l2" else "linf"
    moved = length([a - b for a, b in zip(one, other, strict=True)], dual)
    assert Fraction(0.999) <= moved / Fraction(query.sensitivity(dual)) ** 2 <= 1


@every_norm
@every_adjacency
@pytest.mark.parametrize(
    "C", [L1Ball(0.7), Simplex(1.3), Polytope(np.vstack([np.eye(P), -2 * np.ones(P)]))], ids=repr
)
def test_no_neighbour_moves_a_utility_by_more_than_its_sensitivity(norm, adjacency, C):
    x, y = rows()
    query = RowUtilities(problem(RowLoss(hostile, 1.7, norm), C, len(y), adjacency), Vector.zero(P))
    base = query.from_total(LocalEngine(x, y, BOUNDS).total(query))
    allowed, largest = query.sensitivity("linf"), 0.0
    for row in (np.array([0, s, s, s, s]) for s in (1.0, -1.0)):
        moved = x.copy()
        moved[0] = row
        there = query.from_total(LocalEngine(moved, y, BOUNDS).total(query))
        largest = max(largest, float(np.abs(there - base).max()))
    if adjacency == ADD_REMOVE:
        gone = RowUtilities(query.problem, query.theta)
        total = LocalEngine(x[1:], y[1:], BOUNDS).total(gone)
        largest = float(np.abs(gone.from_total(total) - base).max())
    assert 0 < largest <= allowed
    with pytest.raises(ValueError, match="one utility"):
        query.row_bound("l2")


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, np.asfortranarray])
def test_nothing_of_a_failure_is_seen(layout, capfd):
    x, y = rows()
    query = RowGradient(problem(RowLoss(hostile, 1.7), L1Ball(1.0), len(y)), Vector.of(np.ones(P)))
    filters = list(warnings.filters)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        total = LocalEngine(layout(x), y, BOUNDS, block_rows=7).total(query)
    assert not seen
    assert capfd.readouterr() == ("", "")
    assert list(warnings.filters) == filters
    assert np.array_equal(total, LocalEngine(x, y, BOUNDS).total(query))
    bad = x[:, 0] == 0.6  # a row for which the function fails counts as 0
    assert np.array_equal(total, LocalEngine(x[~bad], y[~bad], BOUNDS).total(query))


def test_who_stops_the_program_stops_it():
    def stopped(theta, x, y):
        raise KeyboardInterrupt

    query = RowGradient(problem(RowLoss(stopped, 1.0), L1Ball(1.0)), Vector.zero(P))
    with pytest.raises(KeyboardInterrupt):
        LocalEngine(np.ones((1, P)), np.ones(1), BOUNDS).total(query)


def test_a_function_sees_one_row_and_can_change_nothing():
    x, y = rows()
    seen = []

    def looks(theta, row, target):
        assert row.shape == theta.shape == (P,)
        with pytest.raises(ValueError, match="read-only"):
            theta += 1
        with pytest.raises(ValueError, match="read-only"):
            row += 1
        seen.append((row.ctypes.data % 64, row.base.size))
        return row

    query = RowGradient(problem(RowLoss(looks, 1.0), L1Ball(1.0), len(y)), Vector.zero(P))
    total = LocalEngine(x, y, BOUNDS).total(query)
    assert np.array_equal(total, LocalEngine(x, y, BOUNDS)._x.sum(axis=0))
    assert set(seen) == {
        (0, P + 8)
    }  # at the same place of a cache line, and no other row beside it


def squares(theta, x, y):
    return 2 * (x @ theta - y) * x


def test_a_loss_of_margins_written_as_one_of_rows_has_the_same_gradient():
    x, y = rows()
    loss = RowLoss(squares, 14.0, smoothness=2.0, value=lambda theta, x, y: (x @ theta - y) ** 2)
    theta = Vector.of(np.linspace(-0.3, 0.4, P))
    ours, theirs = (
        kind(problem(each, L1Ball(1.0), len(y)), theta)
        for kind, each in ((RowGradient, loss), (Gradient, Squared()))
    )
    engine = LocalEngine(x, y, BOUNDS)
    found, expected = (query.from_total(engine.total(query)) for query in (ours, theirs))
    np.testing.assert_allclose(found, expected, atol=14 * 2.0**-16)
    mean = np.mean((x @ theta.dense() - y) ** 2)
    np.testing.assert_allclose(loss.risk(theta.dense(), x, y), mean)
    assert ours.problem.curvature == pytest.approx(2.0 * 2**2)
    assert ours.problem.worst_excess_risk == 2 * 14.0


@pytest.mark.parametrize(("norm", "solver"), [("l1", "auto"), ("l2", "auto"), ("l2", "frank-wolfe"),
                                          ("l1", "gaussian-frank-wolfe")])  # fmt: skip
@pytest.mark.parametrize("epsilon", [100.0, float("inf")])
def test_fits_find_the_optimum_when_noise_is_small(norm, solver, epsilon):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (400, P))
    y = x @ [0.6, -0.3, 0.0, 0.0, 0.0]
    loss = RowLoss(squares, 4.0, norm, 2.0, lambda theta, x, y: (x @ theta - y) ** 2)
    model = PrivateErm(
        loss, L1Ball(1.0), epsilon, 1e-6, bounds=Bounds(1.0, 1.0), random_state=0,
        fit_intercept=False, solver="auto" if epsilon == float("inf") else solver,
        steps=60,
    ).fit(x, y)  # fmt: skip
    assert loss.risk(model.coef_, x, y) < 0.2 * loss.risk(np.zeros(P), x, y)
    assert model.plan(400, P).assumes.endswith("constants are true") == (epsilon < float("inf"))


def half_of_it_fails(theta, x, y):
    if 0.5 < x[0] < 0.9:
        raise Hostile(x)
    return 1e3 * (x @ theta - y) * x


@every_norm
@every_adjacency
@pytest.mark.parametrize("solver", ["frank-wolfe", "gaussian-frank-wolfe", "noisy-gradient"])
def test_hostile_neighbours_of_whole_fits_cost_no_more_than_was_charged(norm, adjacency, solver):
    model = PrivateErm(
        RowLoss(half_of_it_fails, 1.0, norm), L1Ball(1.0), 1.0, 1e-6, bounds=Bounds(1.0, 1.0),
        solver=solver, steps=4, fit_intercept=False, adjacency=adjacency,
    )  # fmt: skip
    found = list(replays(model, random_pairs(model, 10, 12, P, label="rows"), seed=0))
    assert all(replay.sound for replay in found)
    largest = max(release.ratio for replay in found for release in replay.releases)
    least = {"l1": 0.9, "l2": 0.4}.get(norm, 0.2) if solver == "frank-wolfe" else 0.9
    assert largest > (least if isinstance(norm, str) else min(least, 0.2))


def test_a_forecast_refuses_what_it_cannot_simulate():
    model = PrivateErm(
        RowLoss(squares, 1.0), L1Ball(1.0), 1.0, 1e-6, bounds=BOUNDS, fit_intercept=False
    )
    with pytest.raises(Incompatible, match="simulates margins"):
        forecast(model, 500, P)


REFUSED = set(SOLVERS) - {"frank-wolfe", "gaussian-frank-wolfe", "noisy-gradient"}


@pytest.mark.parametrize("solver", sorted(REFUSED))
def test_solvers_that_need_margins_or_a_curvature_refuse(solver):
    model = PrivateErm(
        RowLoss(squares, 1.0), L1Ball(1.0), 1.0, 1e-6, bounds=BOUNDS, solver=solver,
        fit_intercept=False,
    )  # fmt: skip
    why = "can be enforced" if solver == "objective-perturbation" else "function of whole rows"
    with pytest.raises(Incompatible, match=why):
        model.plan(100, P)
    assert isinstance(SOLVERS[solver](), Solver)


def test_declarations_and_functions_are_checked_before_anything_is_read():
    for arguments, why in [
        ((3, 1.0), "must be a function"),
        ((squares, 0.0), "lipschitz"),
        ((squares, np.inf), "lipschitz"),
        ((squares, 1.0, "l3"), "norm"),
        ((squares, 1.0, "l1", -1.0), "smoothness"),
        ((squares, 1.0, "l1", 1.0, 3), "value"),
        ((squares, 1.0, "l1", 1.0, None, 3), "name"),
    ]:
        with pytest.raises(InvalidArgument, match=why):
            RowLoss(*arguments)
    calls = []

    def remembers(theta, x, y):
        calls.append(x.sum())
        return x * np.mean(calls)

    for function, why in [
        (remembers, "remembers earlier rows"),
        (lambda theta, x, y: x[:2], "shape"),
        (lambda theta, x, y: x / 0.0, "fails|not finite"),
        (writes, "read-only"),
        (lambda theta, x, y: x + np.random.default_rng().normal(), "random"),
    ]:
        model = PrivateErm(
            RowLoss(function, 1.0), L1Ball(1.0), 1.0, 1e-6, bounds=BOUNDS, fit_intercept=False
        )
        with pytest.raises(InvalidArgument, match=why), np.errstate(all="ignore"):
            model.plan(100, P)
    with pytest.raises(InvalidArgument, match="fit_intercept=False"):
        PrivateErm(RowLoss(squares, 1.0), L1Ball(1.0), 1.0, 1e-6, bounds=BOUNDS).plan(100, P)
    with pytest.raises(InvalidArgument, match="no value"):
        RowLoss(squares, 1.0).risk(np.zeros(P), *rows())
    with pytest.raises(InvalidArgument, match="no slope at a margin"):
        RowLoss(squares, 1.0).slope(np.zeros(1), np.zeros(1))


def test_code_has_no_name_for_a_checkpoint_or_a_model_file(tmp_path):
    model = PrivateErm(
        RowLoss(squares, 4.0), L1Ball(1.0), 5.0, 1e-6, bounds=Bounds(1.0, 1.0), steps=2,
        fit_intercept=False,
    )  # fmt: skip
    x, y = rows()
    with pytest.raises(InvalidArgument, match="checkpoint cannot be used"):
        model.fit(x, y, checkpoint=tmp_path / "run")
    assert model.fit(x, y).privacy_.public["loss"] == "given"
    with pytest.raises(InvalidArgument, match="would have to run code"):
        save(model, tmp_path / "model.riata")
