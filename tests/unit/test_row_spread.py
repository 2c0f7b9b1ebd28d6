"""Which directions of the rows are stretched, from a released second moment."""

import numpy as np
import pytest

from riata import Bounds, PrivateErm
from riata.audit import random_pairs, replays
from riata.losses import Logistic, Squared
from riata.queries import Whitening
from riata.sets import L2Ball
from riata.solvers.row_spread import RowSpread

RNG = np.random.default_rng(0)


def noisy(values, noise):
    """A matrix with these eigenvalues, and symmetric noise."""
    p = len(values)
    turn = np.linalg.qr(RNG.standard_normal((p, p)))[0]
    errors = np.triu(noise * RNG.standard_normal((p, p)), 1)
    errors += errors.T + np.diag(noise * 2**0.5 * RNG.standard_normal(p))
    return turn @ np.diag(values) @ turn.T + errors


def test_what_noise_hides_is_alike_and_the_trace_stays():
    values = np.array([0.3, 0.1] + [0.002] * 28)
    spread = RowSpread.of(noisy(values, 1e-3), 1e-3, 0.2)
    assert np.count_nonzero(~spread.lost) == 2
    np.testing.assert_allclose(spread.values[~spread.lost], [0.1, 0.3], rtol=0.1)
    assert np.ptp(spread.values[spread.lost]) == 0
    assert spread.values.sum() == pytest.approx(values.sum(), rel=0.1)


@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0])
def test_noise_alone_leaves_the_rows_as_they_are(size):
    spread = RowSpread.of(noisy(np.zeros(20), size), max(size, 1e-12), 0.2)
    assert np.ptp(spread.values[spread.lost]) == 0
    assert (spread.values > 0).all()
    _, left = spread.coordinates(Whitening.of(np.eye(20), np.zeros(20)), 1.0)
    assert ((left > 0) & (left < 1)).all()


def test_a_trace_that_is_lost_in_noise_may_be_the_usual_one_but_no_more():
    def most(size, noise):
        return RowSpread.of(np.diag(np.full(20, size / 20)), noise, 0.2).most

    assert most(0.05, 0.01) == pytest.approx(1 + 2 * 40**0.5 * 0.01 / 0.063, rel=0.3)
    assert most(0.05, 0.02) == pytest.approx(0.2 / (40**0.5 * 0.02))
    assert most(0.3, 0.02) == most(0.05, 1.0) == 1.0
    assert most(0.05, 1e-6) == pytest.approx(1.0, abs=1e-3)


def test_less_noise_makes_whiter_rows():
    spread = RowSpread.of(np.diag(np.geomspace(1e-3, 1.0, 10)), 1e-9, 0.2)
    floors = [spread.best_floor(noise, 1.0, 0.02, 10_000) for noise in (1.0, 1e-2, 1e-4)]
    assert floors == sorted(floors, reverse=True)
    assert floors[0] > 10 * floors[-1]


def test_coordinates_have_the_second_moments_that_they_say():
    values, before = np.array([0.01, 0.1, 1.0]), Whitening.of(0.5 * np.eye(3), np.full(3, 0.2))
    matrix = noisy(values, 0.0)
    whitening, left = RowSpread.of(matrix, 1e-12, 0.2).coordinates(before, 0.1)
    turn = whitening.matrix @ np.linalg.inv(before.matrix)
    np.testing.assert_allclose(turn @ matrix @ turn.T, np.diag(left), atol=1e-6)
    np.testing.assert_allclose(left, values / (values + 0.1), rtol=1e-6)
    np.testing.assert_allclose(whitening.centre, turn @ before.centre, atol=1e-4)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
def test_no_release_of_a_fit_that_sees_the_spread_exceeds_its_claim(loss, adjacency):
    model = PrivateErm(
        loss, L2Ball(10.0), 50.0, 1e-6, bounds=Bounds(1.3, 1.0, norm="l2"),
        solver="averaged-gradient", adjacency=adjacency,
    )  # fmt: skip
    assert model.plan(40, 3).times["spread"] == 1
    found = list(replays(model, random_pairs(model, 6, 40, 3), seed=1))
    assert all(each.sound for each in found)
    assert all(each.realised.epsilon <= each.claimed.epsilon for each in found)
