"""Calibration: a budget is spent exactly, and never exceeded."""

import math

import numpy as np
import pytest
from dp_accounting import get_sigma_gaussian

from riata.errors import UnsupportedEvent
from riata.privacy.accountants import ZcdpAccountant, spent
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.events import (
    BoundedRange,
    Gaussian,
    Pure,
    ZeroConcentrated,
    compose,
)

SLACK = 1e-9
EPSILONS = [1e-3, 0.03, 0.5, 1.0, 4.0, 60.0, 1e3]
DELTAS = [1e-9, 1e-6, 1e-3]
TIMES = [1, 13, 1_000]


def selection_and_gaussian(strength):
    """What Frank-Wolfe with an intercept composes: nine parts of rho to one."""
    rho = strength**2 / 8 / 9
    return compose((BoundedRange(strength), 1), (Gaussian(1 / math.sqrt(2 * rho)), 1))


def pure_pair(strength):
    return compose((Pure(strength), 1), (Pure(strength / 9), 1))


KINDS = {
    "pure": Pure,
    "bounded range": BoundedRange,
    "gaussian": lambda strength: Gaussian(1 / strength),
    "zero-concentrated": ZeroConcentrated,
    "selection and gaussian": selection_and_gaussian,
    "pure pair": pure_pair,
}
PURE_KINDS = ("pure", "bounded range", "pure pair")
CASES = [
    *((kind, delta, times) for kind in KINDS for delta in DELTAS for times in TIMES),
    *((kind, 0.0, times) for kind in PURE_KINDS for times in TIMES),
]


@pytest.mark.matrix(one_in=5)
@pytest.mark.parametrize(("kind", "delta", "times"), CASES)
def test_the_whole_budget_is_spent_and_not_more(kind, delta, times):
    for epsilon in EPSILONS:
        strength = calibrate(lambda s: compose((KINDS[kind](s), times)), Budget(epsilon, delta))
        total = spent(compose((KINDS[kind](strength), times)), delta).epsilon
        assert total <= epsilon
        assert total >= epsilon * (1 - SLACK)


@pytest.mark.parametrize("times", [2, 5, 37, 150, 464, 700])
def test_odd_numbers_of_selections_are_calibrated_too(times):
    # Around these the best order of the Renyi bound crosses its switch to the quadratic bound.
    for epsilon in np.geomspace(0.02, 3.0, 8):
        budget = Budget(float(epsilon), 1e-6)
        strength = calibrate(lambda s: compose((BoundedRange(s), times)), budget)
        total = spent(compose((BoundedRange(strength), times)), 1e-6).epsilon
        assert budget.epsilon * (1 - 1e-9) <= total <= budget.epsilon


@pytest.mark.parametrize("kind", ["bounded range", "pure", "selection and gaussian"])
@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 0.01])
def test_long_runs_on_small_budgets_are_calibrated_too(kind, epsilon):
    for times in (3_000, 10_000):
        strength = calibrate(lambda s, k=times: compose((KINDS[kind](s), k)), Budget(epsilon, 1e-6))
        total = spent(compose((KINDS[kind](strength), times)), 1e-6).epsilon
        assert epsilon * (1 - 1e-9) <= total <= epsilon


def test_pure_budgets_are_divided_evenly():
    for times in (1, 3, 1_000):
        strength = calibrate(lambda s, k=times: compose((Pure(s), k)), Budget(1.0, 0.0))
        assert strength == pytest.approx(1 / times, rel=1e-9)


def test_a_larger_budget_buys_more_strength():
    for kind in KINDS.values():
        strengths = [calibrate(kind, Budget(e, 1e-6)) for e in (0.01, 0.1, 1.0, 10.0)]
        assert strengths == sorted(strengths)
        assert len(set(strengths)) == 4


def test_more_releases_buy_less_strength_each():
    strengths = [
        calibrate(lambda s, k=times: compose((BoundedRange(s), k)), Budget(1.0, 1e-6))
        for times in (1, 4, 16, 64, 256)
    ]
    assert strengths == sorted(strengths, reverse=True)
    # Asymptotically four times the releases cost half the strength.
    assert strengths[-2] / strengths[-1] == pytest.approx(2.0, rel=0.02)


def test_the_gaussian_noise_is_the_analytic_one():
    for epsilon, delta in [(0.1, 1e-6), (1.0, 1e-6), (8.0, 1e-5)]:
        strength = calibrate(lambda s: Gaussian(1 / s), Budget(epsilon, delta))
        assert 1 / strength == pytest.approx(get_sigma_gaussian(epsilon, delta), rel=1e-6)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 50.0])
def test_zcdp_budget_is_the_rho_that_the_budget_buys(epsilon):
    rho = calibrate(ZeroConcentrated, Budget(epsilon, 1e-6))
    total = ZcdpAccountant().epsilon(ZeroConcentrated(rho), 1e-6)
    assert epsilon * (1 - 1e-9) <= total <= epsilon * (1 + 1e-12)


def test_a_pure_budget_buys_no_gaussian_noise():
    with pytest.raises(UnsupportedEvent, match="positive delta"):
        calibrate(lambda s: Gaussian(1 / s), Budget(1.0, 0.0))
    with pytest.raises(UnsupportedEvent, match="positive delta"):
        calibrate(ZeroConcentrated, Budget(1.0, 0.0))


def test_calibration_is_deterministic():
    budget = Budget(0.7, 1e-7)
    found = {calibrate(lambda s: compose((BoundedRange(s), 50)), budget) for _ in range(3)}
    assert len(found) == 1
