"""Lemma 7, Corollary 2, Definition 2, Proposition 1 and Lemma 10 of the local paper, computed."""

import math

import numpy as np
import pytest
from scipy.special import i0
from sklearn.metrics.pairwise import rbf_kernel

from riata.errors import InvalidArgument
from riata.local.paper import (
    GeneralisedLinear,
    PaperKernelRidge,
    PaperSmoothGLM,
    feature_distortion,
    kernel_distance,
    sigm_risk,
    smooth_norm,
    smooth_norm_by_proposition_1,
)
from riata.local.paper.chebyshev import chebyshev_coefficients
from riata.local.paper.kernel_ridge import FourierFeatures
from riata.local.paper.sigm import Sigm


def softplus(m):
    return np.log1p(np.exp(-m))


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (120, 2))
    return x, np.clip(np.sin(3 * x[:, 0]) + 0.1 * rng.standard_normal(120), -1, 1)


def dual(gram, y, C):
    """The dual variables of formula (6) or (7): f = sum of alpha_i features of x_i."""
    return np.linalg.solve(gram + len(y) / C * np.eye(len(y)), y)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("components", [10, 400])
def test_predictions_differ_by_no_more_than_lemma_7_says(people, components, C):
    x, y = people
    features = FourierFeatures(2, components, "rbf", 1.0, 0).rows(x)
    exact, near = rbf_kernel(x, gamma=1.0), features @ features.T
    one, other = dual(exact, y, C), dual(near, y, C)
    gamma, r = np.abs(exact - near).max(), max(np.abs(one).sum(), np.abs(other).sum())
    apart = np.abs(exact @ one - near @ other).max()
    lipschitz = max(np.abs(a @ b - y).max() for a in (exact, near) for b in (one, other))
    assert apart <= kernel_distance(gamma, r, C, lipschitz)
    assert kernel_distance(gamma, r, C, lipschitz) <= kernel_distance(gamma, r, C) + 1e-12
    assert r <= C  # the bound on the dual variables that `distance_bound` takes


def test_the_distance_is_the_printed_formula_and_grows_with_the_excess():
    assert kernel_distance(0.04, 2.0, 3.0, 5.0) == pytest.approx(0.08 + 2 * math.sqrt(16 * 0.08))
    assert kernel_distance(0.0, 1.0) == 0.0
    assert kernel_distance(0.0, 1.0, excess=0.02) == pytest.approx(0.2)
    for wrong in ({"distortion": -0.1}, {"distortion": np.nan}, {"dual_norm": 0}, {"excess": -1.0}):
        with pytest.raises(InvalidArgument):
            kernel_distance(**({"distortion": 0.1, "dual_norm": 1.0} | wrong))


def test_features_are_rarely_further_from_the_kernel_than_the_distortion(people):
    """False alarms: 200 draws of features exceed a bound of 0.05 in none of them here."""
    x, exact = people[0][:30], rbf_kernel(people[0][:30], gamma=1.0)
    bound = feature_distortion(200, 30, 0.05)
    off = []
    for seed in range(200):
        rows = FourierFeatures(2, 200, "rbf", 1.0, seed).rows(x)
        off.append(np.abs(rows @ rows.T - exact).max())
    assert np.mean(np.array(off) > bound) <= 0.05
    assert np.mean(off) > bound / 4


def test_private_predictions_are_as_near_to_those_of_the_kernel_as_corollary_2_says(people):
    x, y = people
    exact, n = rbf_kernel(x, gamma=1.0), 10**9
    best = exact @ dual(exact, y, 1.0)  # many people with these rows have the same mean
    for seed in range(3):
        model = PaperKernelRidge(epsilon=8.0, delta=1e-6, n_components=40, random_state=seed)
        rows = model.features(2).rows(x)
        moments = rows.T @ rows / len(y), rows.T @ y / len(y), float(y @ y / len(y))
        found = model.fit_moments(n, *moments, n_features=2).predict(x)
        assert np.abs(found - best).max() <= model.distance_bound(n, 2, points=120)


def test_the_bound_of_corollary_2_falls_like_the_eighth_root():
    people = (10**10, 10**12)
    bounds = [
        PaperKernelRidge(epsilon=4.0, delta=1e-6, n_components=components).distance_bound(n, 2)
        for n, components in zip(people, (10**4, 10**5), strict=True)
    ]
    assert math.log(bounds[1] / bounds[0]) / math.log(100) == pytest.approx(-1 / 8, abs=0.02)
    model = PaperKernelRidge(epsilon=4.0, delta=1e-6, n_components=40, floor=-1.0)
    with pytest.raises(InvalidArgument, match="floor"):
        model.distance_bound(1_000, 2)


@pytest.mark.parametrize("k", [0, 1, 5, 20])
@pytest.mark.parametrize("r", [0.5, 2.0])
def test_the_smooth_norm_of_an_exponential(k, r):
    exact = math.pi * r ** (k + 1) * i0(r)
    assert smooth_norm(np.exp, k, r, circle=max(1.0, k)) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("r", [0.3, 1.0, 4.0])
def test_the_logistic_loss_is_as_smooth_as_proposition_1_says(r):
    for k in range(1, 16):
        assert smooth_norm(softplus, k, r) <= smooth_norm_by_proposition_1(k, r)
    # its proof: derivatives of order k + 1 are at most k!
    assert math.pi * r**16 * math.factorial(15) <= smooth_norm_by_proposition_1(15, r)


def test_the_smooth_norm_bounds_the_error_of_an_expansion():
    t, p = np.linspace(-1, 1, 501), 9
    a = chebyshev_coefficients(lambda s: softplus(2 * s), p)
    a[0] /= 2
    off = np.abs(np.polynomial.chebyshev.chebval(t, a) - softplus(2 * t)).max()
    for k in range(1, 8):
        assert off <= 2 * smooth_norm(softplus, k, 2.0) / (math.pi * k * (p - k) ** k)


def test_a_function_with_a_singularity_on_the_circle_is_refused():
    with pytest.raises(InvalidArgument, match="smaller circle"), np.errstate(all="ignore"):
        smooth_norm(lambda m: 1 / (m - m[0, 0]), 2, 1.0)
    for wrong in ({"k": -1}, {"r": 0.0}, {"circle": np.nan}):
        with pytest.raises(InvalidArgument):
            smooth_norm(np.exp, **({"k": 1, "r": 1.0} | wrong))
    with pytest.raises(InvalidArgument):
        smooth_norm_by_proposition_1(0, 1.0)


@pytest.mark.parametrize("steps", [1, 2, 40, 1_000])
@pytest.mark.parametrize(
    ("straight", "sigma"), [(True, 0.3), (True, 10.0), (False, 0.0), (False, 0.3), (False, 10.0)]
)
def test_the_method_is_as_good_as_lemma_10_says(steps, straight, sigma):
    """The mean of 60 runs in the plane; a bound is exceeded only if it is wrong by far."""
    rng, best, excess = np.random.default_rng(steps), np.array([0.6, -0.8]), []
    L = 0.0 if straight else 1.0
    for _ in range(60):
        method = Sigm(2, L, sigma)
        for _ in range(steps):
            exact = -best if straight else method.point - best
            method.step(exact + sigma * rng.standard_normal(2) / math.sqrt(2))
        w = method.answer
        excess.append(1 - best @ w if straight else np.sum((w - best) ** 2) / 2)
    assert np.mean(excess) <= sigm_risk(steps, L, sigma)


def test_lemma_10_has_the_constant_1_61_and_counts_inexactness_once():
    assert sigm_risk(10**10, 1.0, 1.0) * 10**5 == pytest.approx(1.6099, abs=1e-3)
    assert sigm_risk(100, 1.0, 0.0) == pytest.approx(1 / (100 * math.sqrt(2)))
    assert sigm_risk(7, 1.0, 1.0, 0.5) == pytest.approx(sigm_risk(7, 1.0, 1.0) + 0.5)
    with pytest.raises(InvalidArgument, match="steps"):
        sigm_risk(0, 1.0, 1.0)


def test_as_many_people_as_the_lemmas_say_are_enough():
    model = PaperSmoothGLM(epsilon=200.0, delta=1e-6, loss="squared")
    size = model.sample_size(0.2, n_features=2)
    smoothness = 1.0
    assert sigm_risk(size.people, smoothness, size.sigma) <= 0.1
    assert sigm_risk(size.people - 1, smoothness, size.sigma) > 0.1
    rng, excess = np.random.default_rng(3), []
    for seed in range(5):
        x = rng.standard_normal((size.people, 2))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = x @ [0.6, -0.3]
        fitted = PaperSmoothGLM(epsilon=200.0, delta=1e-6, loss="squared", random_state=seed)
        excess.append(np.mean((x @ fitted.fit(x, y).coef_ - y) ** 2) / 2)
    assert np.mean(excess) <= 0.2


def test_both_expansions_are_near_enough_for_an_inexactness_of_half():
    loss, radius, alpha = GeneralisedLinear(np.ones_like, np.tanh), 2.0, 0.3
    size = PaperSmoothGLM(epsilon=8.0, delta=1e-6, loss=loss, radius=radius).sample_size(alpha, 3)
    t = np.linspace(-1, 1, 301)
    c1, c2 = loss.coefficients(radius, size.degree)
    off = sum(
        np.abs(np.polynomial.polynomial.polyval(t, c) - slope(radius * t)).max()
        for c, slope in ((c1, np.ones_like), (c2, np.tanh))
    )
    assert 4 * radius * off <= alpha / 2  # 4 times how far a gradient is off
