"""What is made of releases is finite, and never an error, whatever was released.

A fit that fails after its charge has lost it. Warnings are errors here, as everywhere.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from riata.bounds import Bounds
from riata.losses import (
    Absolute,
    Cox,
    Gamma,
    Huber,
    Logistic,
    NuisanceLoss,
    OneAgainstRest,
    OrderedLogistic,
    Poisson,
    Smoothed,
    SmoothedHinge,
    Squared,
    Weighted,
    WeightedRows,
)
from riata.privacy import Budget
from riata.problem import Problem
from riata.queries import Block
from riata.queries.sizes import upper_edges
from riata.sets import L1Ball, L2Ball
from riata.solvers import AveragedGradient, ProfileGradient, ScaledGradient, WhitenedGradient
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.empirical_bayes import (
    _evidence,
    best_constant,
    covariances,
    high_length,
    high_quantile,
    known_errors,
    likely_columns,
    likely_size,
    part_to_keep,
    shrunken,
    signal_odds,
    signal_part,
    without,
)
from riata.solvers.scaled_gradient import _part_to_keep
from riata.solvers.whitened_line import Moments, likely_line

EXTREME = [0.0, 5e-324, 1e-300, 1e-150, 1e-9, 1.0, 1e9, 1e150, 1e300, 1.7e308]
sizes = st.sampled_from([*EXTREME, math.inf]) | st.floats(0.0, 1e3)
signed = st.sampled_from([*EXTREME, *(-size for size in EXTREME)]) | st.floats(-1e3, 1e3)
counts = st.integers(0, 3)


def vectors(elements=signed, least=0):
    return st.integers(least, 4).flatmap(lambda n: arrays(np.float64, n, elements=elements))


@given(arrays(np.float64, len(upper_edges()), elements=signed), sizes, st.floats(0.01, 0.99))
def test_a_quantile_of_any_counts_is_one_of_the_edges(released, noise, safe):
    edges = upper_edges()
    assert high_quantile(released, noise, edges, safe) in edges[1:]
    assert 0 < high_length(released, noise, edges, safe) <= 1


@given(vectors(), sizes, sizes)
def test_numbers_are_shrunk_towards_0(values, noise, most):
    found = shrunken(values, np.full(len(values), noise), most)
    assert np.isfinite(found).all()
    assert (np.abs(found) <= np.abs(values) * (1 + 1e-12)).all()
    assert (np.sign(found) * np.sign(values) >= 0).all()


@pytest.mark.not_quick
@given(sizes, sizes)
def test_a_part_of_the_variance_is_a_part(signal, noise):
    assert 0 <= signal_part(signal, noise) <= 1
    if 0 < max(signal, noise) < math.inf:
        assert signal_part(signal, noise) + signal_part(noise, signal) == pytest.approx(1.0)


@given(st.data(), sizes, sizes)
def test_likely_columns_of_any_model_are_columns(data, error, most):
    size, columns = data.draw(counts), data.draw(counts)
    w = data.draw(arrays(np.float64, size, elements=signed))
    matrix = data.draw(arrays(np.float64, (size, columns), elements=st.floats(-1e100, 1e100)))
    found, kept = likely_columns(w, matrix, error, most)
    assert np.isfinite(found).all()
    assert kept.shape == (columns,)


@given(sizes.filter(math.isfinite), counts, sizes, sizes)
def test_evidence_is_a_number(square, k, error, most):
    assert math.isfinite(_evidence(square, k, 3, max(error, 1e-150), most))


@pytest.mark.parametrize(("k", "error"), [(1_000, 2e-4), (600, 1e-5), (300, 1e-8)])
def test_evidence_of_noise_is_against_a_model_by_any_factor(k, error):
    # The likelihood of each size of a model was rounded to 0, beside that of noise alone.
    assert -50 * k < _evidence(k * error**2, k, k, error, 16.0) < -k / 2


def test_evidence_is_the_mean_likelihood_over_that_of_noise():
    square, k, error, most = 3.0, 2, 0.7, 5.0
    variances = most / k * 2.0 ** -np.arange(16) + error**2
    likelihoods = variances ** (-k / 2) * np.exp(-square / 2 / variances)
    of_noise = error**-k * math.exp(-square / 2 / error**2)
    known = math.log(likelihoods.mean() / of_noise)
    assert _evidence(square, k, 3, error, most) == pytest.approx(known, rel=1e-12)


@given(vectors(), sizes)
def test_odds_of_a_signal_are_positive_numbers(w, error):
    assert 0 <= signal_odds(w, error) < math.inf


@given(signed, sizes, st.floats(1e-100, 1e200))
def test_any_size_that_was_found_is_a_positive_number(found, noise, guess):
    assert 0 < likely_size(found, noise, guess) < math.inf


@given(signed | st.sampled_from([math.inf, -math.inf]), sizes, st.floats(0.0, 1e25))
def test_any_part_of_a_model_can_be_kept(part, noise, before):
    assert 0 <= part_to_keep(part, noise, before) < math.inf


moments = st.builds(
    Moments, st.floats(0.0, 1e69), signed, st.floats(1e-20, 1e9), signed, st.floats(1e-20, 1e9)
)


@given(st.lists(moments, min_size=1, max_size=2), st.floats(1e-20, 1e100), st.floats(0.0, 1e25))
def test_any_moments_lead_to_a_part_of_a_model(seen, whole, before):
    found = likely_line(seen, whole, before)
    assert 0 <= found.covariance < math.inf
    assert 0 < found.variance < math.inf
    assert 0 <= found.error < math.inf
    assert 0 < found.left <= whole


@pytest.mark.not_quick
@given(signed, st.sampled_from([1e-300, 1.0, 20.0, 1e60]))
def test_the_best_constant_is_within_its_bound(slope, bound):
    for loss in (Logistic(), SmoothedHinge(0.3), OneAgainstRest(Logistic(), 1)):
        constant, curvature = best_constant(loss, slope, bound)
        assert abs(constant) <= bound
        assert 0 <= curvature < math.inf


@given(arrays(np.float64, (3, 2), elements=st.floats(-1e100, 1e100)), sizes)
def test_errors_of_columns_are_positive_or_unknown(matrix, error):
    root = min(error, 1e100) * without(matrix, np.array([False, True])) @ matrix
    errors = known_errors(covariances(root, np.array([False, False, True])))
    assert not (errors < 0).any()


# Whole runs

LOSSES = [
    Squared(), Huber(0.5), Huber(1e-60), Huber(1e60), Logistic(), SmoothedHinge(1e-50),
    SmoothedHinge(1e50), Poisson(3.0), Gamma(0.2), WeightedRows(Poisson(3.0), 1.0, 1.0, 2.0),
    Weighted(OneAgainstRest(Logistic(), 1), (1e-50, 1e50)), Smoothed(Absolute(), 0.3),
    OrderedLogistic(2), OrderedLogistic(5), Cox((1.0,)), Cox((1e-9, 1.0, 1e9)),
]  # fmt: skip


class AnyReleases:
    """In place of a curator: releases that are as far out as a mechanism would ever lead."""

    def __init__(self, rng, alike, n_features):
        self.rng, self.alike, self.n_features = rng, alike, n_features

    def release(self, query, mechanism):
        none = Block(np.zeros((0, self.n_features)), np.zeros(0))
        shape = query.block_sum(none).shape
        noise, row = noise_std(mechanism, query), query.row_bound("l2")
        sizes = np.array([0.0, row / 2, row, noise, 40 * noise, 1e-3 * noise, row + 40 * noise])
        found = self.rng.choice(np.concatenate([sizes, -sizes]), 1 if self.alike else shape)
        return query.from_total(np.broadcast_to(found, shape) / query.unit)


def any_problem(loss, n, p, intercept, rng):
    """Bounds and sets of any size."""
    wide = 10.0 ** rng.choice([-60.0, 0.0, 60.0], 3)
    x = wide[0] if rng.integers(2) else np.clip(wide[0] * 10.0 ** rng.uniform(-99, 0, p), 1e-60, 1)
    ball = (L1Ball, L2Ball)[rng.integers(2)](float(wide[2]))
    return Problem(loss, ball, Bounds(x, wide[1]), n, p, fit_intercept=intercept)


def solution_of_any_releases(solver, problem, epsilon, alike, rng):
    plan = solver.plan(problem, Budget(epsilon, 1e-6))
    solution = solver.run(plan, problem, AnyReleases(rng, alike, problem.n_features))
    assert np.isfinite(solution.theta.dense()).all()
    assert math.isfinite(solution.theta.offset)
    return solution


@pytest.mark.not_quick
@settings(max_examples=60)
@given(
    st.sampled_from([WhitenedGradient, AveragedGradient]), st.sampled_from(LOSSES),
    st.sampled_from([1, 20, 2**30]), st.integers(1, 6), st.sampled_from([1e-9, 1.0, 1e6]),
    st.sampled_from([1, 4]), st.booleans(), st.booleans(), st.randoms(use_true_random=False),
)  # fmt: skip
def test_a_run_ends_with_a_model_whatever_was_released(
    solver, loss, n, p, epsilon, steps, intercept, alike, random
):
    rng = np.random.default_rng(random.getrandbits(32))
    problem = any_problem(loss, n, p, intercept, rng)
    solver = ProfileGradient if isinstance(loss, NuisanceLoss) else solver
    solution = solution_of_any_releases(solver(steps), problem, epsilon, alike, rng)
    assert not np.isinf(solution.errors).any()


@pytest.mark.not_quick
@settings(max_examples=60)
@given(
    st.sampled_from([loss for loss in LOSSES if not isinstance(loss, NuisanceLoss)]),
    st.sampled_from([1, 20, 2**30]), st.integers(1, 6), st.sampled_from([1e-9, 1.0, 1e6]),
    st.sampled_from([1, 4]), st.booleans(), st.booleans(), st.randoms(use_true_random=False),
)  # fmt: skip
def test_scaled_gradients_end_with_a_part_of_a_model_whatever_was_released(
    loss, n, p, epsilon, steps, intercept, alike, random
):
    rng = np.random.default_rng(random.getrandbits(32))
    problem = any_problem(loss, n, p, intercept, rng)
    solution_of_any_releases(ScaledGradient(steps), problem, epsilon, alike, rng)


@given(signed | st.sampled_from([math.inf, -math.inf]))
def test_any_gain_keeps_a_part_of_a_model(gain):
    assert 0 <= _part_to_keep(gain) <= 1
