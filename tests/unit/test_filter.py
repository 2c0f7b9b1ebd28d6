"""What a curator lets out: lists of releases, and filters that a run spends as it decides."""

import itertools
import threading
from fractions import Fraction

import numpy as np
import pytest

from riata.bounds import Bounds
from riata.curator import Curator, Filter, Listed
from riata.engines import LocalEngine
from riata.errors import BudgetExceeded, UnsupportedEvent
from riata.losses import Squared
from riata.mechanisms import (
    Exact,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    SampledGaussianMechanism,
    TopK,
)
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.privacy import Budget
from riata.privacy.accountants import PureAccountant, ZcdpAccountant, spent
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.privacy.events import (
    BoundedRange,
    Gaussian,
    ObjectivePerturbed,
    Pure,
    SampledGaussian,
    Unprotected,
    ZeroConcentrated,
    compose,
    from_json,
    to_json,
)
from riata.problem import Problem
from riata.queries import Correlations, Gradient, GradientStep
from riata.sets import L1Ball
from riata.solvers.adaptive_budget import RemainingBudget, adaptive_budget, noise_std
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=11)

EPSILONS = [1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 1e3]
BUDGETS = [(eps, delta) for eps in EPSILONS for delta in (0.0, 1e-6)]
every_budget = pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)


def taken(account, event):
    try:
        account.take(event)
    except BudgetExceeded:
        return False
    return True


# Exact costs


def test_costs_are_exact_rational_numbers():
    zcdp, pure = ZcdpAccountant().exactly, PureAccountant().exactly
    third = Fraction(0.1)
    assert zcdp(Gaussian(0.1)) == 1 / (2 * third**2)
    assert zcdp(BoundedRange(0.1)) == third**2 / 8
    assert zcdp(Pure(0.1)) == third**2 / 2
    assert zcdp(ZeroConcentrated(0.1)) == third
    assert zcdp(compose((BoundedRange(0.1), 7), (compose((Pure(0.1), 2)), 3))) == (
        third**2 * Fraction(7, 8) + 3 * third**2
    )
    assert pure(compose((Pure(0.1), 7), (BoundedRange(0.1), 2))) == 9 * third
    assert zcdp(compose()) == pure(compose()) == 0


def test_exact_costs_agree_with_rounded_ones():
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, b = (float(v) for v in rng.lognormal(0, 3, 2))
        event = compose(
            (Gaussian(a), 3), (BoundedRange(b), 2), (Pure(a), 1), (ZeroConcentrated(b), 1)
        )
        assert float(ZcdpAccountant().exactly(event)) == pytest.approx(ZcdpAccountant().rho(event))


@pytest.mark.parametrize(
    "event", [SampledGaussian(1.0, 0.5), ObjectivePerturbed(1.0, 0.1), Unprotected()]
)
def test_events_without_an_exact_cost_pass_no_filter(event):
    for paid in (ZeroConcentrated(1e9), Pure(1e9)):
        account = Filter(paid)
        with pytest.raises(UnsupportedEvent):
            account.take(event)
        assert taken(account, Pure(1.0))


@pytest.mark.parametrize("event", [Gaussian(1e9), ZeroConcentrated(1e-30)])
def test_a_pure_filter_lets_nothing_out_that_is_not_pure(event):
    with pytest.raises(UnsupportedEvent):
        Filter(Pure(1e6)).take(event)
    with pytest.raises(UnsupportedEvent):
        Filter(Pure(1e6)).take(compose((Pure(0.1), 1), (event, 1)))


# Filters


def test_a_filter_is_used_up_to_the_last_bit_and_no_further():
    account = Filter(ZeroConcentrated(1.0))
    for _ in range(4):
        assert taken(account, ZeroConcentrated(0.25))
    assert not taken(account, ZeroConcentrated(5e-324))
    account = Filter(Pure(1.0))
    assert taken(account, Pure(1.0 - 2.0**-53))
    assert not taken(account, Pure(2.0**-53 * (1 + 2.0**-52)))
    assert taken(account, Pure(2.0**-53))
    assert not taken(account, Pure(5e-324))


def test_sums_that_floats_would_get_wrong_are_right():
    # In floats, 1 - 10 * 0.1 == 0 one way and 1e-16 the other; exactly, ten of 0.1 exceed 1.
    account = Filter(Pure(1.0))
    assert [taken(account, Pure(0.1)) for _ in range(10)] == [True] * 9 + [False]
    # Ever so small costs would never lower a float.
    account = Filter(ZeroConcentrated(1.0))
    account.take(compose((ZeroConcentrated(2.0**-60), 2**60 - 1)))
    assert not taken(account, ZeroConcentrated(2.0**-59))
    assert taken(account, ZeroConcentrated(2.0**-60))
    assert not taken(account, ZeroConcentrated(2.0**-60))


def test_what_was_refused_costs_nothing():
    account = Filter(ZeroConcentrated(1.0))
    assert not taken(account, ZeroConcentrated(1.5))
    assert taken(account, ZeroConcentrated(1.0))


def test_events_of_any_kind_may_be_chosen_in_the_light_of_earlier_ones():
    rng = np.random.default_rng(2)
    for trial in range(50):
        account, used = Filter(ZeroConcentrated(0.5)), Fraction()
        for _ in range(60):
            size = float(rng.uniform(0, 1.2))
            event = [Gaussian(1 / (size + 1e-3)), BoundedRange(size), Pure(size / 2)][
                int(rng.integers(3))
            ]
            cost = ZcdpAccountant().exactly(event)
            accepted = taken(account, event)
            assert accepted == (used + cost <= Fraction(0.5))
            used += cost * accepted
        assert used <= Fraction(0.5), trial


def test_several_fits_share_one_filter():
    event = compose((ZeroConcentrated(0.1), 5))
    account = Filter(event)
    assert [taken(account, ZeroConcentrated(0.1)) for _ in range(6)] == [True] * 5 + [False]


def test_an_empty_plan_pays_for_nothing():
    assert not taken(Filter(compose()), Pure(1e-300))
    assert not taken(Listed(compose()), Pure(1e-300))


# Lists


def test_a_list_lets_out_what_is_on_it_and_nothing_else():
    account = Listed(compose((Gaussian(1.0), 2), (Pure(0.5), 1)))
    assert taken(account, compose((Gaussian(1.0), 1), (Pure(0.5), 1)))
    assert not taken(account, Pure(0.5))
    assert not taken(account, Gaussian(2.0))  # cheaper, but not on the list
    assert not taken(account, compose((Gaussian(1.0), 2)))
    assert taken(account, Gaussian(1.0))
    assert not taken(account, Gaussian(1.0))


# Through the curator


def curator(event, adaptive=True, **options):
    bounds = Bounds(1.0, 1.0)
    engine = LocalEngine(np.ones((4, 2)), np.ones(4), bounds)
    adjacency = options.pop("adjacency", REPLACE_ONE)
    return Curator.open(
        event,
        read=lambda: engine,
        noise=Noise(0),
        adjacency=adjacency,
        adaptive=adaptive,
        **options,
    )


PROBLEM = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 4, 2)
GRADIENT = Gradient(PROBLEM, Vector.zero(2))
CORRELATIONS = Correlations(PROBLEM, Vector.zero(2), 1.0, 1.0)


def test_a_refused_release_sums_nothing():
    class Untouched(Engine):
        def total(self, query):
            raise AssertionError("the rows were read")

    opened = Curator(Untouched(), ZeroConcentrated(0.1), Noise(0), adaptive=True)
    for mechanism in (GaussianMechanism(1.0), Exact(), SampledGaussianMechanism(10.0, 0.1)):
        with pytest.raises((BudgetExceeded, UnsupportedEvent)):
            opened.release(GRADIENT, mechanism)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_curator_spends_a_filter_on_whatever_is_asked(adjacency):
    opened = curator(ZeroConcentrated(1.0), adjacency=adjacency)
    opened.release(GRADIENT, GaussianMechanism(1.0))  # 1/2
    opened.release(CORRELATIONS, ExponentialMechanism(1.0))  # 1/8
    opened.release(GRADIENT, LaplaceMechanism(0.5))  # 1/8
    with pytest.raises(BudgetExceeded):
        opened.release(GRADIENT, GaussianMechanism(1.0))
    step = GradientStep(PROBLEM, Vector.zero(2), 1.0)
    opened.release(step, TopK(1.0, 2))  # 2/8
    with pytest.raises(BudgetExceeded):
        opened.release(GRADIENT, GaussianMechanism(1e9))
    assert "0 left" in repr(opened)


def test_a_plan_that_is_no_pool_is_a_list():
    opened = curator(ZeroConcentrated(1.0), adaptive=False)
    with pytest.raises(BudgetExceeded, match="outside what was charged"):
        opened.release(GRADIENT, GaussianMechanism(10.0))


def test_each_part_has_a_filter_of_its_own():
    opened = curator(Pure(1.0), parts=2)
    for part in (0, 1):
        opened.release(GRADIENT, LaplaceMechanism(1.0), part)
        with pytest.raises(BudgetExceeded):
            opened.release(CORRELATIONS, PermuteAndFlip(1e-9), part)


def test_threads_do_not_spend_the_same_twice():
    opened, done = curator(ZeroConcentrated(1.0)), []

    def spend():
        for _ in range(50):
            try:
                opened.release(GRADIENT, LaplaceMechanism(0.25))  # 1/32
                done.append(1)
            except BudgetExceeded:
                return

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 32


# Pools and purses


@every_budget
@pytest.mark.parametrize("fits", [1, 2, 3, 5, 7, 10])
def test_a_pool_never_exceeds_its_budget(epsilon, delta, fits):
    paid = adaptive_budget(Budget(epsilon, delta), fits)
    event = compose((paid, fits))
    assert spent(event, delta).epsilon <= epsilon
    assert from_json(to_json(event)) == event  # what a ledger keeps is the same budget
    if delta == 0:
        assert PureAccountant().exactly(event) <= Fraction(epsilon)
        assert paid.epsilon * fits >= epsilon * (1 - 1e-12)
    else:
        assert spent(event, delta).epsilon >= epsilon * (1 - 1e-6)


@every_budget
@pytest.mark.parametrize("fits", [1, 5])
def test_a_purse_can_always_be_emptied_through_the_filter(epsilon, delta, fits):
    paid = adaptive_budget(Budget(epsilon, delta), fits)
    account, rng = Filter(compose((paid, fits))), np.random.default_rng(3)
    for _ in range(fits):
        remaining = RemainingBudget.of(paid)
        whole = remaining.left
        shares = rng.dirichlet(np.full(600, 0.3))
        for share, kind in zip(shares, itertools.cycle(("selection", "measurement")), strict=False):
            if share:
                account.take(getattr(remaining, kind)(float(share) * whole * (1 - 1e-12)).event)
        if remaining.left:
            account.take(remaining.measurement(remaining.left).event)
        assert remaining.left <= 1e-12 * whole


@pytest.mark.parametrize("amount", [1e-12, 1e-3, 0.7, 40.0])
def test_what_a_purse_sells_costs_what_was_paid(amount):
    for remaining, cost in (
        (RemainingBudget(100.0, False), ZcdpAccountant().exactly),
        (RemainingBudget(100.0, True), PureAccountant().exactly),
    ):
        for mechanism in (remaining.selection(amount), remaining.measurement(amount)):
            assert float(cost(mechanism.event)) == pytest.approx(amount, rel=1e-14)
        assert remaining.left == pytest.approx(100.0 - 2 * amount)


def test_the_spread_of_noise_is_its_standard_deviation():
    assert noise_std(GaussianMechanism(3.0), GRADIENT) == pytest.approx(
        3 * GRADIENT.sensitivity("l2")
    )
    assert noise_std(LaplaceMechanism(0.5), GRADIENT) == pytest.approx(
        2 * np.sqrt(2) * GRADIENT.sensitivity("l1")
    )
