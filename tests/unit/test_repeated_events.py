"""What the best of a random number of runs costs, against sums over every outcome."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import norm

from riata.errors import BudgetExceeded, InvalidArgument, LedgerError, UnsupportedEvent
from riata.privacy import Budget, Ledger
from riata.privacy.accountants import (
    PureAccountant,
    RenyiAccountant,
    RepetitionAccountant,
    ZcdpAccountant,
    spent,
)
from riata.privacy.accountants.repetition import cost_of_selection, expected_repetitions
from riata.privacy.events import (
    BoundedRange,
    Gaussian,
    Pure,
    RandomlyRepeated,
    Unprotected,
    ZeroConcentrated,
    compose,
    from_json,
    leaves,
    of_group,
    to_json,
)

pytestmark = pytest.mark.matrix(one_in=11)

LAWS = [(1.0, 0.1), (1.0, 0.5), (1.0, 0.01), (0.0, 0.1), (-0.5, 0.05), (2.5, 0.3), (1.0, 1.0)]
every_law = pytest.mark.parametrize(("shape", "stop"), LAWS)


def repeated(event, shape=1.0, stop=0.1):
    return RandomlyRepeated((compose((event, 1)),), shape, stop)


def law(shape, stop):
    """P(K = 1), P(K = 2), ..., from the definition, as far as it matters."""
    if stop == 1:
        return np.array([1.0])
    k = np.arange(1, int(80 / stop))
    if shape == 0:
        weights = k * math.log1p(-stop) - np.log(k)
    else:
        weights = k * math.log1p(-stop) + gammaln(k + shape) - gammaln(k + 1)
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


def best_of(run, shape, stop):
    """The law of the largest of K outcomes, by enumeration of K."""
    below = np.concatenate([[0.0], np.cumsum(run)])
    powers = law(shape, stop)
    k = np.arange(1, len(powers) + 1)
    largest = np.array([float(np.sum(powers * q**k)) if q > 0 else 0.0 for q in below])
    return np.diff(largest)


def delta_between(p, q, epsilon):
    return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in ((p, q), (q, p)))


def divergence_between(p, q, alpha):
    return max(
        math.log(float(np.sum(a**alpha * b ** (1 - alpha)))) / (alpha - 1)
        for a, b in ((p, q), (q, p))
    )


def pure_pair(epsilon, top, middle):
    """Three outcomes in rising order: the best is likelier on one side, the next on the other."""
    e = math.exp(epsilon)
    ours = np.array([0.0, e * middle, top])
    theirs = np.array([0.0, middle, e * top])
    ours[0], theirs[0] = 1 - ours.sum(), 1 - theirs.sum()
    return ours, theirs


def gaussian_pair(noise_multiplier, order):
    """Cells of two normals, in some order."""
    edges = np.concatenate([[-np.inf], np.linspace(-3, 3.5, 100), [np.inf]])
    return tuple(
        np.diff(norm.cdf(edges - shift))[order(101)] for shift in (0, 1 / noise_multiplier)
    )


ORDERS = {
    "rising": np.arange,
    "falling": lambda n: np.arange(n)[::-1],
    "shuffled": lambda n: np.random.default_rng(1).permutation(n),
    "from the middle": lambda n: np.argsort(np.abs(np.arange(n) - 0.6 * n)),
    "to the middle": lambda n: np.argsort(-np.abs(np.arange(n) - 0.4 * n)),
    "hostile": lambda n: np.r_[n // 12 : 2 * n // 3, : n // 12, 2 * n // 3 : n],
}


@every_law
def test_the_expected_number_is_that_of_the_law(shape, stop):
    probabilities = law(shape, stop)
    mean = float(probabilities @ np.arange(1, len(probabilities) + 1))
    assert mean <= expected_repetitions(shape, stop) * (1 + 1e-11)
    assert expected_repetitions(shape, stop) == pytest.approx(mean, rel=1e-9)


@every_law
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_pure_runs_cost_no_more_than_stated(shape, stop, epsilon):
    event = repeated(Pure(epsilon), shape, stop)
    claimed = spent(event, 0.0).epsilon
    assert claimed <= (2 + shape) * epsilon * (1 + 1e-9)  # Papernot and Steinke, Corollary 3
    worst = 0.0
    for top in np.geomspace(1e-4, 0.3, 30):
        for middle in (1e-6, 1e-3, 0.1):
            pair = pure_pair(epsilon, top, middle)
            if min(map(np.min, pair)) <= 0 or pair[0][0] > math.exp(epsilon) * pair[1][0]:
                continue
            ours, theirs = (best_of(run, shape, stop) for run in pair)
            worst = max(worst, float(np.abs(np.log(ours[1:] / theirs[1:])).max()))
    assert worst <= claimed * (1 + 1e-6)
    if epsilon <= 1:
        assert worst >= 0.85 * claimed


def test_one_run_costs_what_it_costs():
    for event in (Pure(0.7), Gaussian(3.0), ZeroConcentrated(0.02)):
        once = repeated(event, stop=1.0)
        assert cost_of_selection(once) == 0
        assert spent(once, 1e-6).epsilon == pytest.approx(spent(event, 1e-6).epsilon, rel=1e-9)


@every_law
@pytest.mark.parametrize("order", ORDERS)
def test_gaussian_runs_keep_their_curve_and_divergences(shape, stop, order):
    z = 2.0
    pair = gaussian_pair(z, ORDERS[order])
    ours, theirs = (best_of(run, shape, stop) for run in pair)
    event = repeated(Gaussian(z), shape, stop)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        claim = RepetitionAccountant().delta(event, epsilon)
        assert delta_between(ours, theirs, epsilon) <= claim + 1e-12
    for alpha in (1.1, 2.0, 8.0, 30.0):
        found = divergence_between(ours, theirs, alpha)
        assert found <= RenyiAccountant().divergence(event, alpha) * (1 + 1e-9)
        assert found <= ZcdpAccountant().divergence(event, alpha) * (1 + 1e-9)


def test_the_divergence_is_that_of_the_theorem():
    event = repeated(Gaussian(4.0), stop=0.1)
    for alpha in (1.5, 10.0):
        wanted = alpha / 32 + cost_of_selection(event) + math.log(10) / (alpha - 1)
        assert RenyiAccountant().divergence(event, alpha) == pytest.approx(wanted, rel=1e-9)


def test_the_bound_for_gaussian_runs_is_not_vacuous():
    z, delta = 4.0, 1e-3
    claimed, alone = spent(repeated(Gaussian(z)), delta).epsilon, spent(Gaussian(z), delta).epsilon
    found = []
    for order in ORDERS.values():
        ours, theirs = (best_of(run, 1.0, 0.1) for run in gaussian_pair(z, order))
        found.append(brentq(lambda e, a=ours, b=theirs: delta_between(a, b, e) - delta, 0, claimed))
    assert 1.2 * alone < max(found)
    assert 0.85 * claimed < max(found) <= claimed


def test_the_curve_is_better_than_the_papers_divergences():
    rho, stop, delta = 0.028, 0.1, 1e-6
    far = math.log(1 / stop)
    alphas = 1 + np.geomspace(0.1, 1e4, 2000)
    papers = (
        rho * alphas + 2 * (2 * math.sqrt(rho * far) - rho) + math.log(1 / stop) / (alphas - 1)
        + np.log1p(-1 / alphas) - (math.log(delta) + np.log(alphas)) / (alphas - 1)
    )  # fmt: skip
    assert spent(repeated(ZeroConcentrated(rho)), delta).epsilon < 0.85 * papers.min()


def test_more_candidates_cost_what_the_worst_does():
    weak, strong = compose((Gaussian(9.0), 1)), compose((Gaussian(3.0), 4), (Pure(0.1), 1))
    both = RandomlyRepeated((weak, strong), 1.0, 0.2)
    alone = RandomlyRepeated((strong,), 1.0, 0.2)
    assert spent(both, 1e-6).epsilon == spent(alone, 1e-6).epsilon
    assert RandomlyRepeated((weak, strong, weak), 1.0, 0.2) == both


def test_several_searches_and_a_fit_compose():
    event = compose((repeated(Gaussian(20.0)), 2), (Gaussian(10.0), 1))
    parts = 2 * spent(repeated(Gaussian(20.0)), 1e-7).epsilon + spent(Gaussian(10.0), 1e-7).epsilon
    assert spent(repeated(Gaussian(20.0)), 1e-6).epsilon < spent(event, 1e-6).epsilon < 1.2 * parts
    pure = compose((repeated(Pure(0.1)), 2), (BoundedRange(0.3), 1))
    one = PureAccountant().epsilon(repeated(Pure(0.1)), 0.0)
    assert spent(pure, 0.0).epsilon == pytest.approx(2 * one + 0.3)


def test_gaussian_runs_have_no_pure_guarantee():
    with pytest.raises(UnsupportedEvent):
        spent(repeated(Gaussian(5.0)), 0.0)
    assert not PureAccountant().applies_to(repeated(Gaussian(5.0)), 0.0)


def test_a_group_of_rows_costs_what_it_costs_each_run():
    event = RandomlyRepeated((compose((Pure(0.1), 2)), compose((Gaussian(4.0), 1))), 1.0, 0.1)
    group = of_group(event, 3)
    assert (group.shape, group.stop) == (1.0, 0.1)
    found = {leaf for each in group.candidates for leaf in leaves(each)}
    assert found == {of_group(Pure(0.1), 3), of_group(Gaussian(4.0), 3)}
    assert spent(group, 1e-6).epsilon > 2 * spent(event, 1e-6).epsilon
    assert of_group(event, 1) is event


def test_the_event_survives_its_json():
    event = RandomlyRepeated((compose((Pure(0.1), 2)), compose((Gaussian(4.0), 1))), -0.5, 1 / 3)
    found = from_json(to_json(compose((event, 2), (Pure(1.0), 1))))
    assert leaves(found) == {event: 2, Pure(1.0): 1}
    assert to_json(RandomlyRepeated(event.candidates[::-1], -0.5, 1 / 3)) == to_json(event)


@pytest.mark.parametrize(
    "change",
    [
        {"candidates": []},
        {"candidates": None},
        {"candidates": "pure"},
        {"candidates": [[{"event": "free", "count": 1}]]},
        {"candidates": [[{"event": "unprotected", "count": 1}]]},
        {"stop": 0.0},
        {"stop": 1.5},
        {"stop": None},
        {"shape": -1.0},
        {"shape": "1"},
        {"discount": 0.5},
    ],
    ids=str,
)
def test_json_that_was_edited_is_no_free_event(change):
    (row,) = json.loads(to_json(repeated(Pure(0.5))))
    with pytest.raises(LedgerError):
        from_json(json.dumps([{**row, **change}]))


@pytest.mark.parametrize("leaf", [Unprotected(), repeated(Pure(0.1))], ids=["free", "nested"])
def test_runs_without_a_known_cost_are_refused(leaf):
    with pytest.raises(InvalidArgument, match="no known cost"):
        repeated(leaf)


def test_a_ledger_adds_searches_and_fits_at_the_order_of_its_ceiling():
    search = repeated(Gaussian(14.0))
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(3.0, 1e-6))
    charge = {"adjacency": "replace-one", "summary": {}}
    ledger.charge(search, **charge)
    first = ledger.spent.epsilon
    assert first == spent(search, 1e-6).epsilon
    ledger.charge(Gaussian(8.0), **charge)
    assert first < ledger.spent.epsilon < 3.0
    assert (
        ledger.spent.epsilon
        < spent(compose((search, 1), (Gaussian(8.0), 1)), 1e-6, adaptive=True).epsilon
    )
    assert leaves(ledger.charges[0].event) == {search: 1}
    ledger.charge(search, **charge)
    with pytest.raises(BudgetExceeded):
        ledger.charge(compose((search, 20)), **charge)
    assert ledger.spent.epsilon <= 3.0
    assert ledger.verify().charges == 3


def test_the_order_of_the_ceiling_refuses_no_fits_that_the_sum_of_rho_allows():
    for count in (1, 2, 3, 10):
        event = compose((BoundedRange(0.2), count), (Gaussian(9.0), count))
        with_order = spent(event, 1e-6, adaptive=True, ceiling=Budget(2.0, 1e-6)).epsilon
        assert with_order <= spent(event, 1e-6, adaptive=True).epsilon
