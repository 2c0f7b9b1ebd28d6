"""Tables of nuisance parameters keep their bounds on hostile rows, in exact arithmetic.

Every comparison with a sensitivity is one of `Fraction`s: see docs/privacy/nuisance.md.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from riata.bounds import Bounds
from riata.losses import Cox, OrderedLogistic
from riata.privacy.budget import REPLACE_ONE
from riata.problem import Problem
from riata.queries import Block, NuisanceSums
from riata.sets import L1Ball
from riata.vectors import Vector

from exact_neighbours import (
    NORMS,
    assert_no_neighbour_exceeds,
    every_adjacency,
    every_layout,
    exceeds,
    hostile_rows,
    squared_share,
    summands,
)

P, Y = 4, 3.0
BOUNDS = Bounds([0.3, 1.0, 2.5, 1e-3], Y)
LOSSES = [
    OrderedLogistic(2),
    OrderedLogistic(3, (-1.0, -0.99)),
    OrderedLogistic(4, (-40.0, 0.3, 9.0)),
    Cox((3.0,)),
    Cox((1e-9, 1.0, 3.0), (1e5, 1e-5, 2.0)),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def problem_of(loss, adjacency=REPLACE_ONE, n=3):
    return Problem(loss, L1Ball(1.0), BOUNDS, n, P, adjacency, fit_intercept=True)


def hostile(rng):
    x, y = hostile_rows(rng, 4, P)
    return x, rng.choice([*y, 0.0, -0.0, 1.0, 2.0, 3.0, -3.0, 0.5, 1e-12, np.nan, np.inf], len(x))


def some_queries(problem, rng):
    for size in (0.0, 1.0, 1e6, 1e300):
        theta = Vector.of(size * rng.standard_normal(P)).with_offset(float(size))
        for reach in (0.5, 4.0):
            yield NuisanceSums(problem, theta, reach)


@every_loss
@every_adjacency
@every_layout
def test_no_hostile_neighbour_exceeds_the_sensitivity(loss, adjacency, layout):
    rng = np.random.default_rng(26)
    x, y = hostile(rng)
    for query in some_queries(problem_of(loss, adjacency), rng):
        alone = summands(query, x, y, layout)
        assert alone.min() >= 0
        lines = alone.reshape(len(x), loss.n_cells, loss.n_parts)
        assert np.all((lines > 0).any(axis=2).sum(axis=1) <= 1)  # one cell for each row
        assert_no_neighbour_exceeds(query, alone, NORMS)
        together = Block(query.bounds.grid_x(layout(x)), query.bounds.clip_y(y))
        np.testing.assert_array_equal(query.block_sum(together), alone.sum(axis=0))


def test_a_worst_pair_reaches_the_sensitivity():
    """Rows of two cells whose numbers are all as large as they can be."""
    far = Vector.of(np.array([0.0, 40.0, 0.0, 0.0]))
    ordered = NuisanceSums(problem_of(OrderedLogistic(3), n=1), far, 1.0)
    up, down = (np.array([0, 1.0, 0, 0]), 0.0), (np.array([0, -1.0, 0, 0]), 2.0)
    assert 0.9999 < squared_share(ordered, up, down) <= 1
    durations = NuisanceSums(problem_of(Cox((1.0, 3.0)), n=1), far, 1.0)
    first, last = (np.array([0, 1.0, 0, 0]), 1.0), (np.array([0, 1.0, 0, 0]), 3.0)
    assert 0.9999 < squared_share(durations, first, last) <= 1


def test_a_row_that_stays_in_its_cell_changes_less():
    """Which the root of two in place of two rests on: no number is negative."""
    far = Vector.of(np.array([0.0, 40.0, 0.0, 0.0]))
    query = NuisanceSums(problem_of(Cox((1.0, 3.0)), n=1), far, 1.0)
    event, none = (np.array([0, 1.0, 0, 0]), 3.0), (np.array([0, -1.0, 0, 0]), -3.0)
    assert squared_share(query, event, none) <= 0.5


@dataclass(frozen=True)
class Careless(Cox):
    """A loss that says that its parts are shorter, larger and fewer than it makes them."""

    longest_parts = 1.0

    def parts(self, margin, y, reach):
        found = super().parts(margin, y, reach)
        found[:, 0] = np.where(y > 2, -1e300, found[:, 0])
        return np.column_stack([1e300 * found, np.full(len(y), np.nan)])

    def cells(self, y):
        return np.where(y == 1.0, np.nan, np.where(y == 2.0, 1e9, super().cells(y)))


@every_adjacency
def test_a_loss_that_says_too_little_changes_no_bound(adjacency):
    rng = np.random.default_rng(3)
    x, y = hostile(rng)
    for query in some_queries(problem_of(Careless((1.0, 3.0)), adjacency), rng):
        alone = summands(query, x, y)
        assert alone.min() >= 0
        assert_no_neighbour_exceeds(query, alone, NORMS)


@every_adjacency
def test_the_broken_twin_whose_numbers_have_signs_is_caught(monkeypatch, adjacency):
    """Neighbours then differ by twice their length, and not by the root of two times it."""
    honest = Cox.parts

    def signed(self, margin, y, reach):
        return 2 * honest(self, margin, y, reach) - 1

    def block_sum(self, block):
        parts = np.rint(signed(self.loss, self.margins(block), block.y, 1.0) * self.slope_steps)
        places = self.loss.cells(block.y).astype(int)
        return np.column_stack(
            [np.bincount(places, each, self.loss.n_cells) for each in parts.T]
        ).ravel()

    query = NuisanceSums(problem_of(Cox((3.0,)), adjacency), Vector.zero(P), 1.0)
    query = replace(query, theta=Vector.of(np.array([0.0, 40.0, 0.0, 0.0])))
    x, y = np.tile([[0, 1.0, 0, 0], [0, -1.0, 0, 0]], (2, 1)), np.array([3.0, -3.0, -3.0, 3.0])
    assert not exceeds(query, summands(query, x, y), "l2")
    monkeypatch.setattr(NuisanceSums, "block_sum", block_sum)
    assert exceeds(query, summands(query, x, y), "l2") == (adjacency == REPLACE_ONE)


@every_loss
@pytest.mark.parametrize("margin", [0.0, 0.5, 3.0])
def test_slopes_keep_their_bound_and_reach_it(loss, margin):
    targets = np.array([0.0, -0.0, 1.0, 2.0, 3.0, -3.0, -1.0, 0.5, 1e-12, np.nan, np.inf, -np.inf])
    margins = np.linspace(-margin, margin, 41)
    with np.errstate(all="ignore"):
        slopes = loss.slope(*map(np.ravel, np.meshgrid(margins, targets)))
    bound = loss.slope_bound(margin, Y)
    assert np.all(np.abs(slopes) <= bound * (1 + 2.0**-40))
    assert np.abs(slopes).max() >= bound * (1 - 1e-6)


@pytest.mark.parametrize(
    "loss",
    [OrderedLogistic(2), OrderedLogistic(4, (-1.0, -0.9, 2.0)), Cox((3.0,)), Cox((0.5, 1.0, 3.0))],
    ids=repr,
)
def test_parts_are_derivatives_of_the_likelihood(loss):
    """By differences: the parameters that a noiseless table leads to have a slope of 0."""
    rng = np.random.default_rng(5)
    n = 4_000
    margin = rng.normal(size=n)
    if isinstance(loss, Cox):
        y = rng.uniform(0, loss.edges[-1], n) * rng.choice([-1, 1], n)
        y[: n // 3] = rng.choice(loss.edges, n // 3)
    else:
        y = rng.integers(0, loss.n_classes, n).astype(float)
    query = NuisanceSums(problem_of(loss, n=n), Vector.zero(P), 8.0)
    for _ in range(30):
        parts = loss.parts(margin, y, 8.0)
        cells = loss.cells(y).astype(int)
        means = np.array([parts[cells == k].sum(axis=0) / n for k in range(loss.n_cells)])
        loss = loss.refitted(means, 0.0, 8.0, constant=False)
    assert query.table_loss.n_cells == loss.n_cells

    def risk(shift, k):
        if isinstance(loss, OrderedLogistic):
            moved = np.array(loss.thresholds)
            moved[k] += shift
            return replace(loss, thresholds=tuple(moved)).value(margin, y).mean()
        rates = np.array(loss.rates)
        rates[k] *= np.exp(shift)
        moved = replace(loss, rates=tuple(rates))
        log_rate = np.log(rates[loss.cells(y).astype(int)])
        hazard = np.exp(margin) * moved.baseline(np.abs(y))
        return (hazard - (y > 0) * (margin + log_rate)).mean()

    free = loss.n_cells - isinstance(loss, OrderedLogistic)
    for k in range(free):
        slope = (risk(1e-4, k) - risk(-1e-4, k)) / 2e-4
        assert abs(slope) < 2e-4
