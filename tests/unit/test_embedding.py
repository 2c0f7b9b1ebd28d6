"""Theorems 3.1 and 3.8 of Kasiviswanathan and Jin with constants, against simulated matrices."""

import math

import numpy as np
import pytest

from riata.embedding import (
    embedding_dimension,
    embedding_failure,
    expected_margin_distortion,
    lift_error,
    margin_distortion,
    psi2_norm,
)
from riata.errors import InvalidArgument
from riata.sets import L1Ball
from riata.sets.lift import lift

P = 60
WIDTH = L1Ball(1.0, P).gaussian_width().value


def matrices(m, count, seed=0, p=P):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, m, p)) / math.sqrt(m)


def test_the_dimension_is_the_least_that_fails_rarely_enough():
    for width, distortion, failure in [(0.0, 0.5, 0.1), (3.0, 0.5, 0.01), (5.0, 0.1, 1e-6)]:
        m = embedding_dimension(width, distortion, failure)
        assert embedding_failure(m, width, distortion) <= failure
        assert m == 1 or embedding_failure(m - 1, width, distortion) > failure
    assert embedding_failure(4, 10.0, 0.5) == 1.0


def test_unit_vectors_are_distorted_as_rarely_as_the_bound_says():
    """The unit vectors e_j, whose width is E max g_j. False alarms: the bound is never below the
    true probability, and 400 draws leave it by 0.15 with probability below exp(-18)."""
    width, gamma = WIDTH, 0.8
    for m in (60, 90, 130):
        lengths = np.square(matrices(m, 400, m)).sum(axis=1)
        failed = np.mean(np.abs(lengths - 1).max(axis=1) > gamma)
        assert failed <= embedding_failure(m, width, gamma) + 0.15
    assert embedding_failure(260, width, gamma) < 0.05


@pytest.mark.not_quick
def test_the_distances_of_some_points_are_kept_as_johnson_and_lindenstrauss_say():
    """30 points have 435 directions between them; no projection of 200 fails at 0.01 each."""
    rng, k, d, gamma = np.random.default_rng(4), 30, 1_000, 0.6
    pairs = k * (k - 1) // 2
    width = math.sqrt(2 * math.log(pairs))
    m = embedding_dimension(width, gamma, 0.01)
    assert m < d
    points = rng.standard_normal((k, d))
    apart = (points[:, None] - points[None])[np.triu_indices(k, 1)]
    apart /= np.linalg.norm(apart, axis=1, keepdims=True)
    largest = (apart @ rng.standard_normal((d, 400))).max(axis=0)
    assert largest.mean() <= width  # the width of so many points of length 1
    failed = 0
    for _ in range(200):
        kept = np.square(apart @ rng.standard_normal((d, m)) / math.sqrt(m)).sum(axis=1)
        failed += np.abs(kept - 1).max() > gamma
    assert failed <= 10
    assert embedding_dimension(math.sqrt(2 * math.log(pairs**4)), gamma, 0.01) < 4 * m  # log k


def test_margins_over_the_whole_ball_move_less_than_the_bound():
    """sup over the l1 ball is a maximum over columns. False alarms below exp(-18), as above."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, P))
    x /= np.linalg.norm(x, axis=1)[:, None]
    for m in (30, 200):
        phi = matrices(m, 400, m)
        projected = np.einsum("np,kmp->knm", x, phi)
        for clip in (math.inf, 1.0):
            length = np.linalg.norm(projected, axis=2, keepdims=True)
            rows = projected * np.minimum(1.0, clip / length)
            moved = np.abs(np.einsum("knm,kmp->knp", rows, phi) - x).max(axis=2)
            assert np.mean(moved.max(axis=1) > margin_distortion(m, WIDTH, 1.0, 5, 0.1)) <= 0.25
            assert moved.mean() <= expected_margin_distortion(m, WIDTH, 1.0)
        assert moved.mean() >= expected_margin_distortion(m, WIDTH, 1.0) / 4  # no idle bound


@pytest.mark.not_quick
def test_a_lift_is_as_near_as_the_theorem_says():
    """Five lifts; each is beyond the bound with probability below 1e-9."""
    from riata.projections import GaussianProjection

    rng = np.random.default_rng(5)
    m, p = 160, 600
    C = L1Ball(1.0, p)
    allowed = lift_error(m, C.gaussian_width().value, 1.0, 1e-9)
    assert allowed < 1.3
    for seed in range(5):
        u = C.project(rng.standard_normal(p))
        phi = GaussianProjection(m, p, seed)
        assert np.linalg.norm(lift(C, phi, phi.forward(u)) - u) <= allowed


def test_bounds_shrink_like_the_root_of_the_dimension_and_never_beyond_the_diameter():
    for bound in (
        lambda m: margin_distortion(m, 3.0, 1.0, 1000, 0.01),
        lambda m: lift_error(m, 3.0, 1.0, 0.01),
        lambda m: expected_margin_distortion(m, 3.0, 1.0),
    ):
        assert bound(40_000_000) == pytest.approx(bound(10_000_000) / 2, rel=0.01)
    assert lift_error(2, 3.0, 1.0, 0.01) == 2.0
    assert lift_error(1000, 3.0, 1.0, 0.01, missed=0.1) > lift_error(1000, 3.0, 1.0, 0.01)


@pytest.mark.parametrize(
    "call",
    [
        lambda: embedding_failure(0, 1.0, 0.5),
        lambda: embedding_failure(5, -1.0, 0.5),
        lambda: embedding_failure(5, 1.0, 1.5),
        lambda: embedding_dimension(1.0, 0.5, 0.0),
        lambda: embedding_dimension(1.0, 1e-12, 0.5),
        lambda: lift_error(5, 1.0, math.inf, 0.5),
        lambda: margin_distortion(5, 1.0, 1.0, 10, 2.0),
    ],
)
def test_impossible_arguments_are_refused(call):
    with pytest.raises(InvalidArgument):
        call()


def test_the_subgaussian_norm_is_that_of_the_definition():
    assert psi2_norm([-1.0, 1.0]) == pytest.approx(1 / math.sqrt(math.log(2)))
    assert psi2_norm([3.0]) == pytest.approx(3 / math.sqrt(math.log(2)))
    assert psi2_norm([0.0]) == 0.0
    signs = psi2_norm([-math.sqrt(3), 0.0, math.sqrt(3)], [1 / 6, 2 / 3, 1 / 6])
    assert 1 / 3 * math.exp(3 / signs**2) + 2 / 3 == pytest.approx(2.0)
    grid = np.linspace(-12, 12, 20_001)
    assert psi2_norm(grid, np.exp(-(grid**2) / 2)) == pytest.approx(math.sqrt(8 / 3), rel=1e-3)
    assert psi2_norm([0.0, 1e100]) > 1e99
    for wrong in ([np.nan], [np.inf], [[1.0]]):
        with pytest.raises(InvalidArgument):
            psi2_norm(wrong)
    for weights in ([1.0], [-1.0, 2.0], [0.0, 0.0]):
        with pytest.raises(InvalidArgument):
            psi2_norm([1.0, 2.0], weights)
