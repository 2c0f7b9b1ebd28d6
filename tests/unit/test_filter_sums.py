"""The running sums of a ledger: exact, the same in any order, and what the accountants say."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riata import Budget, BudgetExceeded, Ledger
from riata.errors import LedgerError, UnsupportedEvent
from riata.privacy import filters
from riata.privacy.accountants import spent
from riata.privacy.accountants.base import exact_sum, rounded
from riata.privacy.events import (
    BoundedRange,
    Gaussian,
    ObjectivePerturbed,
    Pure,
    RandomlyRepeated,
    SampledGaussian,
    Unprotected,
    ZeroConcentrated,
    compose,
)
from riata.privacy.filters import FilterSums
from riata.privacy.ledger.entries import RECENT

CEILING = Budget(3.0, 1e-6)
SMALL = st.floats(1e-6, 0.1)
LEAVES = st.one_of(
    st.builds(Pure, SMALL),
    st.builds(BoundedRange, SMALL),
    st.builds(Gaussian, st.floats(5.0, 1e4)),
    st.builds(ZeroConcentrated, st.floats(1e-9, 1e-3)),
    st.builds(ObjectivePerturbed, st.floats(5.0, 1e4), SMALL),
    st.builds(SampledGaussian, st.floats(5.0, 1e4), st.sampled_from([0.01, 0.3])),
    st.just(RandomlyRepeated((compose((Pure(0.05), 2)),), 1.0, 0.2)),
)
EVENTS = st.lists(st.tuples(LEAVES, st.integers(1, 50)), min_size=1, max_size=3).map(
    lambda parts: compose(*parts)
)


def added(events, ceiling=CEILING):
    sums = FilterSums.before(ceiling)
    for event in events:
        sums = sums.plus(event)
    return sums


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, min_size=2, max_size=6), st.randoms())
def test_the_sums_are_those_of_all_events_together_in_any_order(events, random):
    shuffled = events[:]
    random.shuffle(shuffled)
    sums = added(events)
    assert sums == added(shuffled) == added([compose(*((event, 1) for event in events))])
    together = compose(*((event, 1) for event in events))
    assert sums.spent(1e-6) == spent(together, 1e-6, adaptive=True, ceiling=CEILING)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 1e300)), max_size=8))
def test_sums_are_exact(terms):
    total = exact_sum(terms)
    assert total == sum((k * Fraction(value) for k, value in terms), Fraction())
    assert rounded(total) == (float(total) if total < Fraction(1.79e308) else rounded(total))


def test_sums_may_be_infinite():
    assert exact_sum([(1, 1.0), (2, math.inf)]) is None
    assert rounded(None) == math.inf
    assert rounded(Fraction(10) ** 400) == math.inf


@settings(max_examples=40, deadline=None)
@given(st.lists(EVENTS, max_size=4))
def test_sums_survive_their_json(events):
    sums = added(events)
    assert filters.from_json(filters.to_json(sums)) == sums


def test_sums_stay_short_however_many_charges_there_are():
    sums = FilterSums.before(CEILING)
    for number in range(2000):
        sums = sums.plus(compose((Gaussian(1e3 + number / 7), 3), (Pure(1e-9 * (number + 1)), 1)))
    assert len(filters.to_json(sums)) < 800


def test_an_event_that_nothing_protects_has_no_finite_sum():
    sums = added([Pure(0.1), Unprotected()])
    assert sums.spent(1e-6).epsilon == math.inf
    assert added([Unprotected(), Pure(0.1)]).spent(0.0).epsilon == math.inf


def test_without_a_delta_only_pure_events_have_a_cost():
    plain = Budget(3.0, 0.0)
    assert added([Pure(0.25), BoundedRange(0.5)], plain).spent(0.0).epsilon == 0.75
    with pytest.raises(UnsupportedEvent, match="positive delta"):
        added([Pure(0.25), Gaussian(9.0)], plain).spent(0.0)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", '[1, 2.0, "1/0", "1", "1"]', "[1, 2.0, 3]"]
)
def test_what_are_no_sums_cannot_be_read(text):
    with pytest.raises(LedgerError, match="sums"):
        filters.from_json(text)


# in a ledger


def charge(ledger, event):
    return ledger.charge(event, adjacency="replace-one", summary={})


def test_a_ledger_says_what_the_accountants_say_of_all_its_events(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=CEILING)
    events = [
        compose((BoundedRange(0.001 * (number + 1)), 5), (Gaussian(200.0 + number), 1))
        for number in range(RECENT + 10)
    ]
    for event in events:
        charge(ledger, event)
    together = compose(*((event, 1) for event in events))
    expected = spent(together, 1e-6, adaptive=True, ceiling=CEILING)
    assert ledger.spent == Ledger.open(tmp_path / "l.db").spent == ledger.verify().spent == expected
    assert ledger.charges[-1].total == math.ceil(1e9 * expected.epsilon)


def half(monkeypatch):
    """An accountant that is wrong: everything costs half."""
    real = FilterSums.plus
    monkeypatch.setattr(FilterSums, "plus", lambda self, event: real(self, Pure(event.epsilon / 2)))


@pytest.mark.not_quick
def test_sums_that_another_version_made_are_added_up_again(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(3.0, 0.0))
    number = RECENT + 5
    with monkeypatch.context() as patch:
        half(patch)
        for _ in range(number):
            charge(ledger, Pure(2**-6))
        assert ledger.spent.epsilon == number * 2**-7
    monkeypatch.setattr(filters, "ARITHMETIC", filters.ARITHMETIC + 1)  # the version that is right
    assert ledger.spent.epsilon == number * 2**-6
    charge(ledger, Pure(2**-6))
    assert ledger.spent.epsilon == ledger.verify().spent.epsilon == (number + 1) * 2**-6
    assert json.loads(ledger.export())["entries"][-1]["sums"][0] == filters.ARITHMETIC


def test_sums_that_are_below_what_the_events_cost_do_not_verify(tmp_path, monkeypatch):
    """A later version that finds a cost too low, and forgets to say so, is noticed."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=CEILING)
    half(monkeypatch)
    charge(ledger, Pure(0.5))
    charge(ledger, Pure(0.5))
    monkeypatch.undo()
    with pytest.raises(LedgerError, match="below what its charges cost"):
        ledger.verify()


@pytest.mark.not_quick
def test_many_charges_exhaust_the_ceiling_to_the_last_nano_unit():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(0.5, 0.0))
    for _ in range(127):
        charge(ledger, Pure(2**-8))
    with pytest.raises(BudgetExceeded):
        charge(ledger, Pure(2**-8 + 1e-9))
    charge(ledger, Pure(2**-8))
    with pytest.raises(BudgetExceeded):
        charge(ledger, Pure(1e-12))
    assert ledger.charges[-1].total == 500_000_000
