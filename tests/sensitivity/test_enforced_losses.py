"""Losses of somebody else in objective perturbation: nothing that they declare is believed."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from riata import PrivateErm
from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.engines.messages import QueryReader, QueryWriter
from riata.errors import InvalidArgument
from riata.grid import X_STEPS
from riata.losses import (
    REGISTRY,
    Hinge,
    Huber,
    Logistic,
    Loss,
    OneAgainstRest,
    Poisson,
    RowLoss,
    Smoothed,
    Squared,
    Weighted,
    WeightedRows,
)
from riata.losses.enforced import enforced, proven
from riata.losses.tabulated import Tabulated, tabulated
from riata.mechanisms.noise import Noise
from riata.privacy import Budget
from riata.problem import Problem
from riata.queries import Minimum
from riata.sets import L2Ball
from riata.solvers import PerturbedObjective
from riata.vectors import Vector

M, Y = 3.0, 2.0
LENGTH = Bounds(1.0, 1.0, norm="l2")


@dataclass(frozen=True)
class Declared(Loss):
    """Any slope, with any bounds."""

    kind: str = "tanh"
    steepest: float = 1.0
    curved: float = 1.0
    offset: float = 1.0

    name = "declared"

    def value(self, margin, y):
        return 0 * margin

    def slope(self, margin, y):
        off = margin - y
        return {
            "tanh": lambda: np.tanh(off),
            "steep": lambda: np.clip(100 * off, -1, 1),
            "jumps": lambda: np.sign(off),
            "falls": lambda: -np.tanh(off),
            "waves": lambda: np.sin(7 * off) + 0.1 * off,
            "long": lambda: 1e6 * off,
            "none": lambda: 0 * off,
            "missing": lambda: np.where(off > 1, np.nan, off),
            "one number": lambda: 1.0,
        }[self.kind]()

    def curvature(self, margin, y):
        return 0 * margin

    def slope_bound(self, margin, y):
        return self.steepest

    def slope_range(self, margin, y):
        return np.zeros(np.shape(margin)), np.zeros(np.shape(margin))

    def curvature_bound(self, y):
        return self.curved

    def curvature_beyond(self, margin, y):
        return np.zeros(np.shape(margin))

    def offset_bound(self, y):
        return self.offset


@dataclass(frozen=True)
class MySquared(Squared):
    """As true as the one that it is made of, but who knows."""


@dataclass(frozen=True)
class MyLogistic(Logistic):
    pass


@dataclass(frozen=True)
class MyHuber(Huber):
    pass


@dataclass(frozen=True)
class MyPoisson(Poisson):
    pass


@dataclass(frozen=True)
class MyHinge(Hinge):
    pass


def test_riatas_own_losses_are_proven_and_those_made_of_others_are_not():
    for loss in REGISTRY.examples():
        assert proven(loss)
        assert enforced(loss, M, Y) is loss
    strange = [
        MySquared(), Declared(), Smoothed(MyHinge(), 0.3), OneAgainstRest(MyLogistic(), 1),
        Weighted(OneAgainstRest(MyLogistic(), 1), (1.0, 2.0)), WeightedRows(MySquared(), 1.0),
    ]  # fmt: skip
    for loss in strange:
        assert not proven(loss)
        assert enforced(loss, M, Y) is not loss


KINDS = ("tanh", "steep", "jumps", "falls", "waves", "long")


@pytest.mark.parametrize("curved", [0.0, 0.01, 1.0, 50.0])
@pytest.mark.parametrize("steepest", [0.2, 1.0, 1e4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_convex_and_within_its_own_bounds(kind, steepest, curved):
    """At margins and targets on and off the knots, beyond the bounds too."""
    rng = np.random.default_rng(3)
    table = tabulated(Declared(kind, steepest, curved), M, Y)
    margins = np.sort(np.concatenate([rng.uniform(-2 * M, 2 * M, 4_000), [-M, 0.0, M]]))
    for y in (-Y, -0.3333, 0.0, 1.2345, Y, 5.0, np.nan):
        slopes = table.slope(margins, np.full(len(margins), y))
        assert np.abs(slopes).max() <= steepest * (1 + 1e-12)
        assert np.abs(slopes).max() <= table.slope_bound(M, Y)
        rises = np.diff(slopes)
        assert rises.min() >= -1e-12 * steepest
        assert np.all(rises <= table.curvature_bound(Y) * np.diff(margins) + 1e-11 * steepest)
        lowest, highest = table.slope_range(margins, Y)
        assert np.all(slopes >= lowest - 1e-12 * steepest)
        assert np.all(slopes <= highest + 1e-12 * steepest)
        for least in (0.0, 0.5, 2.0):
            beyond = np.abs(margins) >= least
            most = table.curvature_beyond(np.array([least]), Y)[0]
            here = table.curvature(margins[beyond], np.full(beyond.sum(), y))
            assert here.max() <= most + 1e-14 * steepest / table.step
    assert table.curvature_bound(Y) <= curved * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("loss", "mine"),
    [
        (Squared(), MySquared()),
        (Logistic(), MyLogistic()),
        (Huber(0.4), MyHuber(0.4)),
        (Smoothed(Hinge(), 0.3), Smoothed(MyHinge(), 0.3)),
        (OneAgainstRest(Logistic(), 1), OneAgainstRest(MyLogistic(), 1)),
        (WeightedRows(Squared(), 1.0, 3.0), WeightedRows(MySquared(), 1.0, 3.0)),
        (WeightedRows(Poisson(9.0), 4.0, 1.0, 2.0), WeightedRows(MyPoisson(9.0), 4.0, 1.0, 2.0)),
    ],
    ids=repr,
)
def test_a_true_loss_is_nearly_as_it_was(loss, mine):
    rng = np.random.default_rng(4)
    margins = rng.uniform(-M, M, 3_000)
    y = rng.choice([-1.0, 1.0, 0.0, 0.37], 3_000)
    if isinstance(loss, WeightedRows):
        y = loss.encode(y, rng.uniform(0, 3, 3_000))
    used = enforced(mine, M, 1.0)
    largest = loss.slope_bound(M, 1.0)
    assert np.abs(used.slope(margins, y) - loss.slope(margins, y)).max() <= 1e-2 * largest
    assert used.slope_bound(M, 1.0) == pytest.approx(largest, rel=1e-3)
    assert used.curvature_bound(1.0) <= loss.curvature_bound(1.0) * (1 + 1e-9)
    assert used.smoothing_error <= loss.smoothing_error + 2e-3 * largest * M
    assert (used.link, used.classifies) == (loss.link, loss.classifies)


def test_the_error_of_a_table_bounds_the_difference_of_the_values():
    for mine in (MyLogistic(), MyHuber(0.4), Smoothed(MyHinge(), 0.3)):
        table = tabulated(mine, M, 1.0)
        margins = np.linspace(-M, M, 200_001)
        y = np.full(len(margins), 1.0)
        slopes = table.slope(margins, y) - mine.slope(margins, y)
        apart = np.cumsum(slopes) * (margins[1] - margins[0])
        assert np.ptp(apart) <= table.error


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"kind": "none"}, "nothing to minimise"),
        ({"kind": "missing"}, "finite number for each row"),
        ({"kind": "one number"}, "finite number for each row"),
        ({"steepest": 0.0}, "slope_bound"),
        ({"steepest": np.inf}, "slope_bound"),
        ({"curved": -1.0}, "curvature_bound"),
        ({"curved": np.nan}, "curvature|no `smoothed`"),
        ({"offset": -1.0}, "offset_bound"),
        ({"offset": np.inf}, "offset_bound"),
        ({"offset": np.nan}, "offset_bound"),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_cannot_be_enforced_is_refused_before_anything_is_charged(wrong, match, delta):
    loss = replace(Declared(), **wrong)
    problem = Problem(loss, L2Ball(1.0), Bounds(1.0, 1.0, norm="l2"), 50, 2, fit_intercept=True)
    with pytest.raises(InvalidArgument, match=match):
        PerturbedObjective().plan(problem, Budget(1.0, delta))


class Watched(Declared):
    """Remembers what its slope was shown."""

    seen: set = set()  # noqa: RUF012 (shared on purpose)

    def slope(self, margin, y):
        Watched.seen.update(np.asarray(margin).tolist(), np.asarray(y).tolist())
        return super().slope(margin, y)


@pytest.mark.not_quick
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_code_of_a_stranger_never_sees_a_row(delta):
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-0.5, 0.5, (300, 3)), rng.uniform(-1, 1, 300)
    Watched.seen.clear()
    model = PrivateErm(
        Watched(), L2Ball(1.0), 5.0, delta, bounds=Bounds(1.0, 1.0, norm="l2"),
        solver="objective-perturbation", random_state=0,
    )  # fmt: skip
    model.plan(300, 3)
    planned = set(Watched.seen)
    model.fit(x, y)
    assert planned
    assert Watched.seen <= planned
    assert not Watched.seen & set(y.tolist())


@pytest.mark.not_quick
def test_a_fit_with_a_table_is_the_fit_with_the_loss():
    rng = np.random.default_rng(6)
    x = rng.uniform(-0.5, 0.5, (2_000, 3))
    y = np.clip(x @ [0.9, -0.4, 0.0] + 0.1, -1, 1)
    fits = [
        PrivateErm(
            loss, L2Ball(1.0), 1e4, 1e-6, bounds=Bounds(1.0, 1.0, norm="l2"),
            solver="objective-perturbation", random_state=0,
        ).fit(x, y)
        for loss in (Squared(), MySquared())
    ]  # fmt: skip
    np.testing.assert_allclose(fits[0].coef_, fits[1].coef_, atol=1e-3)
    assert "declared constants" in fits[1].plan(2_000, 3).assumes
    assert fits[0].plan(2_000, 3).assumes == ""


def test_a_table_travels_with_its_query():
    problem = Problem(Declared("steep", 1.0, 0.5), L2Ball(2.0), LENGTH, 40, 3)
    query, writer = Minimum(problem), QueryWriter()
    fine = query.gradient(Vector.of(np.ones(3)))
    first, second = (writer.write(fine) for _ in range(2))
    assert len(second.query) < 10_000  # what is large is sent once
    reader = QueryReader()
    there = [reader.read(message) for message in (first, second)][1]
    margins, y = np.linspace(-2, 2, 99), np.linspace(-1, 1, 99)
    np.testing.assert_array_equal(there.loss.slope(margins, y), query.loss.slope(margins, y))


def test_the_sum_of_gradients_is_that_of_the_table():
    rng = np.random.default_rng(7)
    problem = Problem(Declared("steep", 1.0, 0.01), L2Ball(2.0), Bounds(1.0, 1.0, norm="l2"), 40, 3)
    query = Minimum(problem)
    assert isinstance(query.loss, Tabulated)
    assert query.row_curvature <= 0.01 * query.row_length**2 * (1 + 1e-9)
    x, y = rng.uniform(-0.5, 0.5, (40, 3)), rng.uniform(-1, 1, 40)
    engine, theta = LocalEngine(x, y, problem.bounds), Vector.of(rng.standard_normal(3))
    fine = query.gradient(theta)
    found = fine.from_total(engine.total(fine))[:3]
    block = engine._blocks[0]
    rows = block.rows * (1.0 / X_STEPS)
    expected = rows.T @ query.loss.slope(rows @ theta.dense(), block.y)
    assert np.linalg.norm(found - expected) <= query.gradient_error + 1e-12
    plan = PerturbedObjective().plan(problem, Budget(1.0, 0.0))
    plan["minimise"].release(query, engine, Noise(0))
    steeper = Minimum(replace(problem, loss=Declared("steep", 1.0, 1.0)))
    with pytest.raises(ValueError, match="stretch"):
        plan["minimise"].release(steeper, engine, Noise(0))


# Ways around


class NoLoss:
    """Something that behaves like a loss, and is none."""

    name, link, classifies, n_margins, gradient_bounds = "none", "identity", False, 1, None
    assumes, inner, smoothing_error = None, None, 0.0

    def __getattr__(self, name):
        return getattr(Declared("steep", 1.0, 0.01), name)


def patched():
    loss = Logistic()
    object.__setattr__(loss, "slope", lambda margin, y: 1e3 * np.sign(margin))
    return loss


@pytest.mark.parametrize("loss", [patched(), WeightedRows(NoLoss(), 1.0, 2.0)], ids=["own", "duck"])
def test_objects_that_pretend_to_be_proven_are_not(loss):
    assert not proven(loss)
    kept = enforced(loss, M, 1.0)
    assert proven(kept)
    margins = np.linspace(-M, M, 999)
    rises = np.diff(kept.slope(margins, np.ones(999))) / np.diff(margins)
    assert rises.max() <= kept.curvature_bound(1.0) * (1 + 1e-9)


def test_what_is_computed_once_makes_no_loss_unproven():
    loss = Poisson(3.0)
    assert loss.high == pytest.approx(np.log(3.0))
    assert proven(loss)


class Changing(Declared):
    """A loss that says otherwise when it is asked again."""

    asked = 0

    def curvature_bound(self, y):
        Changing.asked += 1
        return np.inf if Changing.asked > 5 else 1.0


def test_no_slope_that_is_not_enforced_meets_a_row():
    problem = Problem(Changing(), L2Ball(1.0), LENGTH, 10, 2)
    Changing.asked = 100
    with pytest.raises(ValueError, match="enforced"):
        Minimum(problem).gradient(Vector.zero(2))


class Mutable(Declared):
    sign = 1.0

    def slope(self, margin, y):
        return np.tanh(margin - type(self).sign * y)


def test_a_loss_that_was_changed_has_another_table():
    mine = Mutable()
    before = enforced(mine, M, 1.0).slope(np.zeros(1), np.ones(1))
    Mutable.sign = -1.0
    try:
        after = enforced(mine, M, 1.0).slope(np.zeros(1), np.ones(1))
    finally:
        Mutable.sign = 1.0
    assert before == pytest.approx(-after)


@pytest.mark.parametrize(
    "weights", [(), [1.0, 2.0], (1.0, -1e3), (0.0, 1.0), (1.0, np.nan), (np.inf,)]
)
def test_weights_that_would_bend_a_loss_the_other_way_are_refused(weights):
    with pytest.raises(InvalidArgument, match=r"weight"):
        Weighted(OneAgainstRest(Logistic(), 1), weights)


@pytest.mark.parametrize("scale", [2.0**-190, 2.0**190])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_gradients_whose_squares_are_no_numbers_are_refused_before_the_charge(scale, delta):
    loss = WeightedRows(Huber(scale), scale, scale)
    problem = Problem(loss, L2Ball(5.0), Bounds(scale, 2.0**51, norm="l2"), 100, 2)
    with pytest.raises(InvalidArgument, match="units"):
        PerturbedObjective().plan(problem, Budget(20.0, delta))


@pytest.mark.parametrize(
    "wrap", [lambda loss: OneAgainstRest(loss, 1), lambda loss: Weighted(loss, (1.0,))]
)
def test_a_loss_of_whole_rows_has_no_codes(wrap):
    with pytest.raises(InvalidArgument, match="whole rows"):
        wrap(RowLoss(lambda theta, x, y: x, 1.0))
