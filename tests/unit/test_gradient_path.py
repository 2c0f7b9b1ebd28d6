"""Where noisy gradients lead: roots of affine functions whose Jacobian is nearly the identity."""

import numpy as np
import pytest

from riata.solvers.gradient_path import AveragedSteps, GradientRoot

NOISES = np.array([2.0] * 6 + [1.0] * 6)


def followed(jacobian, root, start, path, noises=NOISES, seed=0):
    """The last point of a path along gradients with noise; the last entry is an intercept."""
    rng, point = np.random.default_rng(seed), start
    for noise in noises:
        gradient = jacobian @ (point - root) + noise * rng.standard_normal(len(root))
        gradient[-1] *= path.constant
        point = path.advance(point, path.curvature * gradient, path.curvature * noise)
    return path.found


def jacobians(rng, q, deviation):
    e = deviation * rng.standard_normal((q, q))
    return np.eye(q) + (e + e.T) / 2**0.5


def test_with_the_identity_it_is_the_mean_of_newton_steps_by_their_precision():
    rng = np.random.default_rng(0)
    root, q = rng.standard_normal(5), 5
    path = GradientRoot(2.0, 1e-9, 1.5)
    start = root + 3.0
    steps, point = [], start
    for noise in NOISES:
        gradient = point - root + noise * rng.standard_normal(q)
        steps.append(point - gradient)
        gradient[-1] *= 1.5
        point = path.advance(point, 2 * gradient, 2 * noise)
    expected = np.average(steps, axis=0, weights=NOISES**-2)
    np.testing.assert_allclose(path.found, expected, atol=1e-5)
    assert path.noise == pytest.approx(np.sum(NOISES**-2) ** -0.5, rel=1e-4)
    np.testing.assert_allclose(path.spread, np.eye(q), atol=1e-4)


@pytest.mark.parametrize("bent", [0.15, 3.3])
def test_a_direction_of_another_curvature_converges(bent):
    """Steps of length 1 leave 0.85^12 of the way, or diverge."""
    q, start = 8, np.zeros(8)
    jacobian, root = np.diag([bent] + [1.0] * (q - 1)), np.full(8, 500.0)
    found = followed(jacobian, root, start, GradientRoot(1.0, 0.1, 1.0))
    averaged = followed(jacobian, root, start, AveragedSteps(1.0, 1.0, 6, 12, 1.0))
    assert np.abs(jacobian @ (found - root)).max() < 5 * np.sum(NOISES**-2) ** -0.5
    assert np.abs(found - root).max() < np.abs(averaged - root).max() / 3


def test_errors_are_those_of_a_simulation():
    """Squared errors of 200 paths over what they are said to be: a mean of 1 within a quarter.

    The seed is fixed. Without the distance from the root, and with the Jacobian's deviation, the
    mean has a standard error of about .04; errors are to be too large rather than too small.
    """
    rng, q, ratios = np.random.default_rng(1), 10, []
    for seed in range(200):
        jacobian, root = jacobians(rng, q, 0.05), 10 * rng.standard_normal(q)
        path = GradientRoot(1.0, 0.05, 1.0)
        found = followed(jacobian, root, np.zeros(q), path, seed=seed)
        direction = rng.standard_normal(q)
        error = path.noise * np.linalg.norm(path.spread.T @ direction)
        ratios.append(((found - root) @ direction / error) ** 2)
    assert 0.75 < np.mean(ratios) < 1.25


@pytest.mark.parametrize("size", [1e-60, 1.0, 1e60])
@pytest.mark.parametrize("noise", [1e-70, 1.0, 1e70])
def test_whatever_is_released_points_and_errors_are_finite(size, noise):
    rng, q = np.random.default_rng(0), 4
    path, point = GradientRoot(1.0, 1e12, 1.0), np.zeros(q)
    for _ in range(6):
        point = path.advance(point, size * rng.standard_normal(q), noise)
        assert np.isfinite(point).all()
        assert np.abs(point).max() <= 1e60
    assert np.isfinite(path.noise)
    assert np.isfinite(path.spread).all()


def test_steps_that_stay_where_they_are_are_no_error():
    path, point = GradientRoot(1.0, 0.1, 0.0), np.zeros(3)
    for _ in range(3):
        point = path.advance(point, np.zeros(3), 1.0)
    np.testing.assert_array_equal(point, 0.0)
    assert path.noise == pytest.approx(3**-0.5)
