"""What a row adds depends on the row alone: not on its neighbours, its place or their number."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds, PrivateErm
from riata.audit import random_pairs, replays
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import Incompatible
from riata.grid import coefficient_steps
from riata.losses import Squared
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE
from riata.privacy.events import Gaussian
from riata.problem import Problem
from riata.projections import PROJECTIONS, GivenProjection
from riata.queries import ClippedGradient, Minimum
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import PrivatePeeling
from riata.vectors import Vector


def test_rows_are_not_split_where_one_may_be_taken_away():
    model = PrivateErm(
        Squared(), SparseBall(2, 1.0), 10.0, 0.0, bounds=Bounds(1.0, 1.0), adjacency="add-remove",
        solver=PrivatePeeling(4, split=True),
    )  # fmt: skip
    with pytest.raises(Incompatible, match="moves all later ones"):
        model.plan(1000, 8)
    assert model.set_params(solver=PrivatePeeling(4)).plan(1000, 8).parts == 1
    with pytest.raises(ValueError, match="other parts"):
        Curator.open(
            Gaussian(1.0), read=lambda: None, noise=Noise(0), adjacency="add-remove", parts=2
        )


def test_there_are_no_parts_beyond_those_paid_for():
    engine = LocalEngine(np.ones((4, 1)), np.ones(4), Bounds(1.0, 1.0))
    curator = Curator(engine, Gaussian(1.0), Noise(0), parts=2)
    for part in (-1, 2):
        with pytest.raises(ValueError, match="There is no part"):
            curator.release(None, None, part)


def test_a_sparse_row_is_clipped_alike_last_or_not():
    bx = [
        1.1050029237453802,
        1.1079407897364937,
        0.8153255610421419,
        0.5858013800881416,
        0.3539307023816564,
        0.6833688807855183,
        0.7084732054199987,
        0.34527519390244515,
    ]
    row = np.array([68.0, 3196.0, 9754.0, 65482.0, 12516.0, 42754.0, 49168.0, 15370.0])
    bounds = Bounds(bx, 1.0)
    problem = Problem(Squared(), L2Ball(1.0), bounds, 2, 8, ADD_REMOVE)
    query = ClippedGradient(problem, Vector.zero(8), 2.8179485929534802e-05)
    x = np.vstack([row, row / 2]) * bx / 2**16
    ours = LocalEngine(sparse.csr_array(x), np.ones(2), bounds).total(query)
    theirs = LocalEngine(sparse.csr_array(x[:1]), np.ones(1), bounds).total(query)
    change = [
        (int(a) - int(b)) * Fraction(float(u))
        for a, b, u in zip(ours, theirs, query.unit, strict=True)
    ]
    assert sum(v * v for v in change) <= Fraction(query.sensitivity("l2")) ** 2


@pytest.mark.parametrize("p", [20_000, 60_000])
def test_a_fine_gradient_is_within_its_error_on_wide_rows(p):
    rng = np.random.default_rng(0)
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1e-3), 1, p)
    for _ in range(4):
        theta = rng.standard_normal(p)
        theta *= 0.999 / np.abs(theta).sum()
        coarse, step = coefficient_steps(theta)
        fine, small = coefficient_steps(theta - coarse * step)
        row = np.sign(theta - coarse * step - fine * small)  # along what the two grids leave
        query = Minimum(problem)
        gradient = query.gradient(Vector.of(theta))
        engine = LocalEngine(row[None, :], np.zeros(1), problem.bounds)
        found = gradient.from_total(engine.total(gradient))
        margin = sum(Fraction(float(a)) * int(b) for a, b in zip(theta, row, strict=True))
        # slope * x: every entry is off by the slope's error
        allowed = Fraction(query.gradient_error / query.row_length)
        assert abs(Fraction(float(found[-1])) - 2 * margin) <= allowed


@pytest.mark.parametrize("kind", [*PROJECTIONS, "given"])
@pytest.mark.parametrize("norm", ["inf", "l2"])
def test_a_projected_row_does_not_depend_on_the_others(kind, norm):
    rng = np.random.default_rng(0)
    bounds = Bounds(2.0, norm=norm)
    for n, p, m in ((12, 40, 5), (13, 300, 7), (2, 50, 3), (70, 33, 33)):
        phi = GivenProjection(rng.standard_normal((m, p)))
        if kind != "given":
            phi = PROJECTIONS[kind](m, p)
        steps = bounds.grid_x(rng.standard_normal((n, p)))
        rows = phi.rows_of_steps(steps, bounds.x)
        np.testing.assert_allclose(rows, phi.rows(steps * (2.0 / 2**16)), atol=1e-6)
        for alone in (slice(1, None), slice(0, 1), slice(None, None, 2)):
            np.testing.assert_array_equal(rows[alone], phi.rows_of_steps(steps[alone], bounds.x))
        same = phi.rows_of_steps(sparse.csr_array(steps), bounds.x)
        np.testing.assert_allclose(same, rows, atol=1e-12)


def test_a_posterior_sample_can_be_replayed():
    model = PrivateErm(
        Squared(),
        L2Ball(1.0),
        1.0,
        0.0,
        bounds=Bounds(1.3, 1.5, norm="l2"),
        solver="posterior-sampling",
    )
    assert all(each.sound for each in replays(model, random_pairs(model, 5, 12, 8), seed=0))
