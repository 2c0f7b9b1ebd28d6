"""Events and accountants, against brute force, exact binomial sums and dp-accounting."""

import itertools
import json
import math
from decimal import Decimal, localcontext

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from scipy.optimize import brentq
from scipy.special import gammaln

from riata.errors import LedgerError, RiataError, UnsupportedEvent
from riata.privacy.accountants import (
    ACCOUNTANTS,
    GaussianAccountant,
    PureAccountant,
    RenyiAccountant,
    ZcdpAccountant,
    spent,
)
from riata.privacy.events import (
    BoundedRange,
    Composed,
    Gaussian,
    LaplaceMax,
    Pure,
    Unprotected,
    ZeroConcentrated,
    compose,
    from_json,
    leaves,
    to_json,
)

pytestmark = pytest.mark.matrix(one_in=11)

PURE, RENYI, ZCDP, GAUSSIAN = (
    PureAccountant(),
    RenyiAccountant(),
    ZcdpAccountant(),
    GaussianAccountant(),
)
LEAVES = [
    Pure(0.1),
    BoundedRange(0.3),
    LaplaceMax(0.2),
    Gaussian(2.5),
    ZeroConcentrated(0.01),
    Unprotected(),
]
REPLACE = dp_accounting.NeighboringRelation.REPLACE_ONE


def two_point_delta(loss, p, times, epsilon):
    """Exact delta at epsilon of `times` pairs whose privacy loss is loss[0] or loss[1].

    p is the probability of loss[0]; the composed loss is binomial.
    """
    k = np.arange(times + 1)
    log_choose = gammaln(times + 1) - gammaln(k + 1) - gammaln(times - k + 1)
    log_p = log_choose + k * math.log(p) + (times - k) * math.log1p(-p)
    total = k * loss[0] + (times - k) * loss[1]
    above = total > epsilon
    return float(np.sum(np.exp(log_p[above]) * -np.expm1(epsilon - total[above])))


def two_point_epsilon(loss, p, times, delta):
    """Exact epsilon at delta of the same composition."""
    if two_point_delta(loss, p, times, 0.0) <= delta:
        return 0.0
    return brentq(
        lambda e: two_point_delta(loss, p, times, e) - delta, 0.0, times * max(loss), xtol=1e-12
    )


def randomised_response_epsilon(eps, times, delta):
    return two_point_epsilon((eps, -eps), 1 / (1 + math.exp(-eps)), times, delta)


def bounded_range_pair(eps, t):
    """The pair with losses t and t - eps, and the probability of t."""
    return (t, t - eps), (math.exp(eps) - math.exp(t)) / math.expm1(eps)


# events


@pytest.mark.parametrize("leaf", LEAVES, ids=repr)
def test_an_event_survives_its_json(leaf):
    assert leaves(from_json(to_json(leaf))) == leaves(leaf)
    nested = compose((leaf, 3), (compose((leaf, 2), (Pure(1 / 3), 7)), 5))
    assert leaves(from_json(to_json(nested))) == leaves(nested)


def test_json_keeps_every_bit_of_a_number():
    values = [0.1, 1 / 3, 5e-324, 1e-17, np.nextafter(1.0, 2.0), 1e300]
    event = compose(*((Pure(float(v)), 1) for v in values))
    assert leaves(from_json(to_json(event))) == leaves(event)


def test_json_is_canonical():
    a, b = Pure(0.5), Gaussian(3.0)
    texts = {
        to_json(compose((a, 2), (b, 1))),
        to_json(compose((b, 1), (a, 1), (a, 1))),
        to_json(compose((compose((a, 1), (b, 1)), 1), (a, 1))),
    }
    assert len(texts) == 1
    assert to_json(a) == to_json(compose((a, 1)))


def test_leaves_multiply_through_the_tree():
    event = compose((compose((Pure(1.0), 2), (Gaussian(1.0), 1)), 3), (Pure(1.0), 4))
    assert leaves(event) == {Pure(1.0): 10, Gaussian(1.0): 3}
    assert leaves(compose()) == {}
    assert leaves(compose((Pure(1.0), 0))) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "garbage",
        "null",
        "3",
        "{}",
        '""',
        '"pure"',
        '{"event":"pure","count":1,"epsilon":1.0}',
        "[1]",
        "[null]",
        '[{"event":"free","count":1,"epsilon":1.0}]',
        '[{"event":"pure","epsilon":1.0}]',
        '[{"count":1,"epsilon":1.0}]',
        '[{"event":"pure","count":1}]',
        '[{"event":"pure","count":1,"epsilon":1.0,"discount":0.5}]',
        '[{"event":"pure","count":1,"noise_multiplier":1.0}]',
        '[{"event":"pure","count":0,"epsilon":1.0}]',
        '[{"event":"pure","count":-1,"epsilon":1.0}]',
        '[{"event":"pure","count":1.5,"epsilon":1.0}]',
        '[{"event":"pure","count":"1","epsilon":1.0}]',
        '[{"event":["pure"],"count":1,"epsilon":1.0}]',
        '[{"event":"composed","count":1,"parts":[]}]',
        '[{"event":"pure","count":1,"epsilon":"0.1"}]',
        '[{"event":"pure","count":1,"epsilon":null}]',
        '[{"event":"pure","count":1,"epsilon":[]}]',
        '[{"event":"pure","count":1,"epsilon":-1.0}]',
        '[{"event":"pure","count":1,"epsilon":NaN}]',
        '[{"event":"bounded-range","count":1,"epsilon":-1.0}]',
        '[{"event":"bounded-range","count":1,"epsilon":NaN}]',
        '[{"event":"gaussian","count":1,"noise_multiplier":0}]',
        '[{"event":"gaussian","count":1,"noise_multiplier":-1.0}]',
        '[{"event":"gaussian","count":1,"noise_multiplier":NaN}]',
        '[{"event":"zero-concentrated","count":1,"rho":-0.1}]',
        '[{"event":"zero-concentrated","count":1,"rho":NaN}]',
    ],
)
def test_json_that_is_no_known_cost_is_an_error_and_never_a_free_event(text):
    with pytest.raises(LedgerError):
        from_json(text)


@pytest.mark.parametrize("bad", [float("nan"), -1.0])
@pytest.mark.parametrize("kind", [Pure, BoundedRange, Gaussian, ZeroConcentrated])
def test_an_event_without_a_meaningful_cost_costs_no_finite_epsilon(kind, bad):
    with pytest.raises(RiataError):
        spent(compose((kind(bad), 1), (Pure(1.0), 1)), 1e-6)


# pure composition


def test_pure_epsilons_add_up():
    event = compose((Pure(0.25), 4), (BoundedRange(0.5), 3))
    assert PURE.epsilon(event, 0.0) == 2.5
    assert PURE.delta(event, 2.5) == 0.0
    assert PURE.delta(event, 2.4999) == 1.0
    assert spent(event, 0.0).epsilon == 2.5
    assert spent(event, 0.0).accountant == PURE.name


def test_a_single_pure_event_never_costs_more_than_its_epsilon():
    for eps, delta in itertools.product([1e-3, 0.1, 1.0, 20.0], [0.0, 1e-9, 1e-3]):
        assert spent(Pure(eps), delta).epsilon <= eps
        assert spent(BoundedRange(eps), delta).epsilon <= eps


def test_many_small_pure_events_are_summed_exactly():
    assert PURE.epsilon(compose((Pure(0.1), 10**6)), 0.0) == pytest.approx(1e5, rel=1e-15)
    parts = [(Pure(0.1 + i * 1e-9), 1) for i in range(1_000)]
    forwards, backwards = compose(*parts), compose(*reversed(parts))
    assert PURE.epsilon(forwards, 0.0) == PURE.epsilon(backwards, 0.0)


# Renyi divergences


@pytest.mark.parametrize("alpha", [1.01, 1.2, 2.0, 3.5, 10.0, 60.0, 400.0])
@pytest.mark.parametrize("eps", [0.02, 0.1, 0.7, 1.0, 3.0, 8.0])
def test_bounded_range_divergence_is_the_worst_of_the_two_point_family(eps, alpha):
    t = np.linspace(0, eps, 20_003)[1:-1]
    p = -np.expm1(t - eps) / -np.expm1(-eps)  # (e^eps - e^t) / (e^eps - 1)
    moments = np.logaddexp(np.log(p) + (alpha - 1) * t, np.log1p(-p) + (alpha - 1) * (t - eps))
    brute = moments.max() / (alpha - 1)
    divergence = RENYI.divergence(BoundedRange(eps), alpha)
    assert divergence >= brute * (1 - 1e-9)
    assert divergence == pytest.approx(brute, rel=1e-5)
    assert divergence <= alpha * eps**2 / 8
    assert divergence <= RENYI.divergence(Pure(eps), alpha)
    assert divergence <= eps


@pytest.mark.parametrize("alpha", [1.01, 1.2, 2.0, 3.5, 10.0, 60.0])
@pytest.mark.parametrize("eps", [0.01, 0.1, 0.7, 1.0, 3.0, 8.0])
def test_pure_divergence_is_that_of_randomised_response(eps, alpha):
    p = 1 / (1 + math.exp(-eps))
    moment = p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)
    divergence = RENYI.divergence(Pure(eps), alpha)
    assert divergence == pytest.approx(math.log(moment) / (alpha - 1), rel=1e-4)
    assert divergence <= alpha * eps**2 / 2
    assert divergence <= eps


def exact_divergences(eps, alpha):
    """Bounded range and pure, with 60 digits."""
    with localcontext() as context:
        context.prec = 60
        e, a = Decimal(eps), Decimal(alpha)
        lower = (-(a - 1) * e).exp()
        t = (1 - 1 / a).ln() + (e.exp() - lower).ln() - (1 - lower).ln()
        p = (e.exp() - t.exp()) / (e.exp() - 1)
        moment = p * ((a - 1) * t).exp() + (1 - p) * ((a - 1) * (t - e)).exp()
        response = ((a * e).exp() + ((1 - a) * e).exp()) / (1 + e.exp())
        return moment.ln() / (a - 1), response.ln() / (a - 1)


@pytest.mark.parametrize("above_one", [1e-6, 1e-4, 1e-2, 1.0, 30.0, 1e3])
@pytest.mark.parametrize("eps", [1e-5, 9.9e-3, 1.01e-2, 0.02, 0.1, 1.0, 10.0, 100.0])
def test_divergences_keep_nine_digits_and_are_never_below_the_truth(eps, above_one):
    alpha = 1 + above_one
    for leaf, exact in zip(
        (BoundedRange(eps), Pure(eps)), exact_divergences(eps, alpha), strict=True
    ):
        found = Decimal(RENYI.divergence(leaf, alpha))
        assert found >= exact * (1 - Decimal("1e-9"))
        assert found <= exact * (1 + Decimal("1e-4"))


def test_divergences_grow_with_epsilon_and_order():
    eps = np.geomspace(1e-4, 50, 120)
    alpha = 1 + np.geomspace(1e-2, 1e4, 60)
    for kind in (Pure, BoundedRange):
        table = np.array([[RENYI.divergence(kind(e), a) for a in alpha] for e in eps])
        assert np.all(np.diff(table, axis=0) >= -1e-5 * table[1:])
        assert np.all(np.diff(table, axis=1) >= -1e-5 * table[:, 1:])


def test_zcdp_costs_of_the_events():
    event = compose((Gaussian(2.0), 1), (ZeroConcentrated(0.25), 2), (Pure(0.5), 4))
    assert ZCDP.rho(event) == pytest.approx(1 / 8 + 0.5 + 4 * 0.125)
    assert ZCDP.rho(BoundedRange(0.4)) == pytest.approx(0.02)
    assert ZCDP.rho(Pure(0.4)) == pytest.approx(4 * ZCDP.rho(BoundedRange(0.4)))


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.5, 5.0, 200.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_zcdp_conversion_beats_the_classical_one(rho, delta):
    classical = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert 0.3 * classical < ZCDP.epsilon(ZeroConcentrated(rho), delta) < classical


@pytest.mark.parametrize("leaf", LEAVES[:4], ids=repr)
@pytest.mark.parametrize("alpha", [1.5, 2.0, 8.0, 100.0])
def test_renyi_divergence_is_never_above_the_zcdp_one(leaf, alpha):
    assert RENYI.divergence(leaf, alpha) <= ZCDP.divergence(leaf, alpha)


# against dp-accounting

FINE_ORDERS = 1 + np.geomspace(2e-2, 1e5, 3_000)


def dp_accounting_epsilon(event, count, delta):
    accountant = rdp.RdpAccountant(FINE_ORDERS, REPLACE)
    return accountant.compose(event, count).get_epsilon(delta)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(("z", "times"), [(0.5, 1), (1.0, 1), (4.0, 10), (30.0, 500), (5.0, 464)])
def test_gaussian_composition_agrees_with_the_analytic_formula(z, times, delta):
    reference = dp_accounting.get_epsilon_gaussian(z / math.sqrt(times), delta)
    assert GAUSSIAN.epsilon(compose((Gaussian(z), times)), delta) == pytest.approx(
        reference, rel=1e-9
    )


def test_gaussian_composition_agrees_with_a_privacy_loss_distribution():
    loss = pld.privacy_loss_distribution.from_gaussian_mechanism(
        6.0, value_discretization_interval=1e-4
    )
    mixed = compose((Gaussian(6.0), 50))
    reference = loss.self_compose(50).get_epsilon_for_delta(1e-6)
    assert GAUSSIAN.epsilon(mixed, 1e-6) == pytest.approx(reference, rel=2e-3)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(("z", "times"), [(0.7, 1), (4.0, 10), (30.0, 500)])
def test_renyi_conversion_of_gaussians_agrees_with_dp_accounting(z, times, delta):
    reference = dp_accounting_epsilon(dp_accounting.GaussianDpEvent(z), times, delta)
    ours = RENYI.epsilon(compose((Gaussian(z), times)), delta)
    assert ours <= reference * (1 + 1e-9)
    assert ours == pytest.approx(reference, rel=1e-4)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(("rho", "times"), [(1e-3, 1), (1e-3, 100), (0.2, 5)])
def test_zcdp_conversion_agrees_with_dp_accounting(rho, times, delta):
    reference = dp_accounting_epsilon(dp_accounting.ZCDpEvent(rho), times, delta)
    ours = ZCDP.epsilon(compose((ZeroConcentrated(rho), times)), delta)
    assert ours <= reference * (1 + 1e-9)
    assert ours == pytest.approx(reference, rel=1e-4)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(("eps", "times"), [(0.05, 100), (0.5, 30), (2.0, 3)])
def test_renyi_conversion_of_pure_events_agrees_with_dp_accountings_randomised_response(
    eps, times, delta
):
    event = dp_accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(eps)), 2)
    reference = dp_accounting_epsilon(event, times, delta)
    ours = RENYI.epsilon(compose((Pure(eps), times)), delta)
    assert ours == pytest.approx(reference, rel=1e-4)


@pytest.mark.parametrize(("eps", "times"), [(0.05, 100), (0.5, 30), (2.0, 3)])
def test_pure_events_cost_at_least_what_laplace_noise_really_costs(eps, times):
    # Laplace noise is one pure mechanism; the worst pure one costs more.
    accountant = rdp.RdpAccountant(FINE_ORDERS, dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    laplace = accountant.compose(dp_accounting.LaplaceDpEvent(1 / eps), times).get_epsilon(1e-6)
    assert RENYI.epsilon(compose((Pure(eps), times)), 1e-6) >= laplace * (1 - 1e-4)


# soundness against exact compositions


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(("eps", "times"), [(0.01, 1_000), (0.1, 100), (0.5, 20), (1.0, 2)])
def test_no_accountant_is_below_the_exact_cost_of_randomised_response(eps, times, delta):
    exact = randomised_response_epsilon(eps, times, delta)
    event = compose((Pure(eps), times))
    for accountant in (PURE, RENYI, ZCDP):
        assert accountant.epsilon(event, delta) >= exact * (1 - 1e-12)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize(("eps", "times"), [(0.01, 1_000), (0.1, 100), (0.5, 20), (1.0, 2)])
def test_no_accountant_is_below_the_exact_cost_of_a_bounded_range_pair(eps, times, delta):
    event = compose((BoundedRange(eps), times))
    exact = max(
        two_point_epsilon(*bounded_range_pair(eps, t), times, delta)
        for t in np.linspace(0.05, 0.95, 19) * eps
    )
    for accountant in (PURE, RENYI, ZCDP):
        assert accountant.epsilon(event, delta) >= exact * (1 - 1e-12)
    assert spent(event, delta).epsilon <= 1.3 * exact + 1e-3


# consistency

MIXED = [
    compose((Pure(0.1), 50)),
    compose((BoundedRange(0.05), 400)),
    compose((Gaussian(3.0), 20)),
    compose((ZeroConcentrated(0.002), 9)),
    compose((BoundedRange(0.05), 100), (Gaussian(40.0), 100)),
    compose((Pure(1.0), 1), (BoundedRange(0.5), 2), (Gaussian(1.5), 1), (ZeroConcentrated(0.1), 1)),
]


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("event", MIXED, ids=range(len(MIXED)))
def test_delta_undoes_epsilon(event, delta):
    checked = 0
    for accountant in (GAUSSIAN, RENYI, ZCDP):
        if accountant.applies_to(event, delta):
            epsilon = accountant.epsilon(event, delta)
            assert accountant.delta(event, epsilon) == pytest.approx(delta, rel=1e-6, abs=0)
            assert accountant.delta(event, epsilon * 1.01) < delta
            checked += 1
    assert checked >= 2


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_the_gaussian_epsilon_is_rounded_to_the_safe_side(delta):
    for z in np.geomspace(0.05, 1e3, 60):
        event = Gaussian(float(z))
        assert GAUSSIAN.delta(event, GAUSSIAN.epsilon(event, delta)) <= delta


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("event", MIXED, ids=range(len(MIXED)))
def test_tighter_accountants_are_tighter(event, delta):
    renyi, zcdp = RENYI.epsilon(event, delta), ZCDP.epsilon(event, delta)
    assert renyi <= zcdp * (1 + 1e-9)
    if GAUSSIAN.applies_to(event, delta):
        assert GAUSSIAN.epsilon(event, delta) < renyi


@pytest.mark.parametrize("event", MIXED, ids=range(len(MIXED)))
def test_spent_is_the_smallest_proven_bound_and_names_who_proved_it(event):
    able = {a.name: a.epsilon(event, 1e-6) for a in ACCOUNTANTS if a.applies_to(event, 1e-6)}
    total = spent(event, 1e-6)
    assert total.epsilon == min(able.values()) == able[total.accountant]
    assert total.delta == 1e-6


@pytest.mark.parametrize("event", MIXED, ids=range(len(MIXED)))
def test_a_larger_delta_never_costs_more(event):
    costs = [spent(event, delta).epsilon for delta in (1e-12, 1e-9, 1e-6, 1e-3, 0.1)]
    assert costs == sorted(costs, reverse=True)


def test_spent_grows_with_repetition_but_slower_than_the_sum():
    for leaf in (Pure(0.05), BoundedRange(0.05), Gaussian(20.0), ZeroConcentrated(1e-3)):
        costs = [spent(compose((leaf, k)), 1e-6).epsilon for k in (1, 10, 100, 1_000)]
        assert costs == sorted(costs)
        assert costs[-1] < 0.5 * 1_000 * costs[0]


def test_nothing_costs_nothing():
    assert spent(compose(), 1e-6).epsilon == 0.0
    assert spent(compose(), 0.0).epsilon == 0.0


def test_no_finite_epsilon_covers_an_unprotected_release():
    for delta in (0.0, 1e-6, 0.5):
        assert spent(Unprotected(), delta).epsilon == math.inf
        event = compose((Gaussian(1e6), 1), (compose((Unprotected(), 1)), 1))
        assert spent(event, delta).epsilon == math.inf


@pytest.mark.parametrize("leaf", [Gaussian(10.0), ZeroConcentrated(1e-6)])
def test_gaussian_and_concentrated_events_have_no_pure_guarantee(leaf):
    with pytest.raises(UnsupportedEvent, match="positive delta"):
        spent(leaf, 0.0)
    with pytest.raises(UnsupportedEvent, match="positive delta"):
        spent(compose((Pure(0.1), 3), (leaf, 1)), 0.0)


def test_an_event_of_an_unknown_kind_is_refused():
    class Novel:
        epsilon = 0.0

    with pytest.raises(UnsupportedEvent):
        spent(compose((Novel(), 1)), 1e-6)


def test_composed_events_are_frozen_values():
    assert compose((Pure(1.0), 2)) == Composed(((Pure(1.0), 2),))
    with pytest.raises(AttributeError):
        Pure(1.0).epsilon = 0.0


# the numbers of calibration.md

T, DELTA = 464, 1e-6
#: Printed noise L_1 ||C|| / (n eps) sqrt(8 T ln(1/delta)) for a claimed epsilon of 1, against the
#: sensitivity 2 L_1 ||C|| / n: a noisy max with this scale b is 2 * sensitivity / b private.
PRINTED = 2 * 2 / math.sqrt(8 * T * math.log(1 / DELTA))


def test_the_privacy_of_each_step_alone_does_not_prove_the_claim_of_the_printed_laplace_scale():
    exact = randomised_response_epsilon(PRINTED, T, DELTA)
    assert exact == pytest.approx(1.67, abs=0.01)
    event = compose((Pure(PRINTED), T))
    for accountant in (RENYI, ZCDP):
        assert exact <= accountant.epsilon(event, DELTA) <= 2.2
    strong = math.sqrt(2 * T * math.log(1 / DELTA)) * PRINTED + T * PRINTED * math.expm1(PRINTED)
    assert strong == pytest.approx(2.15, abs=0.01)
    assert spent(event, DELTA).epsilon < strong


def test_a_laplace_maximum_costs_less_than_its_epsilon_alone_says():
    assert spent(compose((LaplaceMax(PRINTED), T)), DELTA).epsilon == pytest.approx(1.09, abs=0.01)
    assert spent(compose((LaplaceMax(PRINTED / 2), T)), DELTA).epsilon == pytest.approx(
        0.52, abs=0.01
    )


def test_the_printed_laplace_scale_agrees_with_dp_accountings_exact_composition():
    loss = pld.privacy_loss_distribution.from_privacy_parameters(
        pld.common.DifferentialPrivacyParameters(PRINTED, 0.0), PRINTED / 200
    )
    reference = loss.self_compose(T).get_epsilon_for_delta(DELTA)
    assert randomised_response_epsilon(PRINTED, T, DELTA) == pytest.approx(reference, rel=1e-3)


def test_gumbel_noise_of_the_printed_scale_keeps_the_claim():
    total = spent(compose((BoundedRange(PRINTED), T)), DELTA)
    assert total.epsilon == pytest.approx(0.85, abs=0.01)


def test_twice_the_printed_laplace_noise_keeps_the_claim():
    assert randomised_response_epsilon(PRINTED / 2, T, DELTA) == pytest.approx(0.79, abs=0.01)


def test_the_corrected_gaussian_variance_of_algorithm_3_is_far_too_large():
    # sigma^2 = 32 L_2^2 T ln^2(n/delta) / (n eps)^2 against the sensitivity 2 L_2 / n, n = 10,000.
    z = math.sqrt(32 * T) * math.log(1e4 / DELTA) / 2
    assert spent(compose((Gaussian(z), T)), DELTA).epsilon == pytest.approx(0.053, abs=0.002)


@pytest.mark.parametrize(("claimed", "real"), [(1, 1.66), (4, 7.87), (8, 18.3)])
def test_the_classical_gaussian_formula_on_a_ball_of_diameter_2_breaks_its_claim(claimed, real):
    z = math.sqrt(2 * math.log(1.25 / DELTA)) / claimed / 2
    assert spent(Gaussian(z), DELTA).epsilon == pytest.approx(real, rel=3e-3)


def test_json_text_of_an_event_is_plain_and_stable():
    # Ledgers written with this text must be readable for ever.
    event = compose((Pure(0.5), 2), (Gaussian(3.0), 1))
    assert json.loads(to_json(event)) == [
        {"count": 1, "event": "gaussian", "noise_multiplier": 3.0},
        {"count": 2, "epsilon": 0.5, "event": "pure"},
    ]
    for name, field in [
        ("bounded-range", "epsilon"),
        ("zero-concentrated", "rho"),
        ("gaussian", "noise_multiplier"),
        ("pure", "epsilon"),
    ]:
        assert len(leaves(from_json(f'[{{"event":"{name}","count":3,"{field}":0.25}}]'))) == 1
    assert leaves(from_json('[{"event":"unprotected","count":1}]')) == {Unprotected(): 1}
