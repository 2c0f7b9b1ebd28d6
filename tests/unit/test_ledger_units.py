"""The unit of privacy of a ledger: charges about other neighbours are refused, with a remedy."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riata import Budget, BudgetExceeded, Ledger, PrivateErm, PrivateLasso
from riata.data import Schema, read
from riata.errors import InvalidArgument, LedgerError
from riata.losses import Squared
from riata.privacy import unit as units
from riata.privacy.events import Pure, of_group
from riata.privacy.unit import PrivacyUnit
from riata.sets import L1Ball

PEOPLE = Budget(2.0, 0.0, "replace-person")
PATIENT = PrivacyUnit("replace-person", "patient")
VISIT = PrivacyUnit("replace-person", "visit")


def make(ceiling, **options):
    return Ledger.create(":memory:", dataset="hospital", ceiling=ceiling, **options)


def charge(ledger, unit, epsilon=0.1):
    return ledger.charge(Pure(epsilon), adjacency=unit.adjacency, unit=unit, summary={})


# the first charge, or create, says who a person is


def test_the_first_charge_of_a_ledger_of_people_says_who_they_are():
    ledger = make(PEOPLE)
    assert ledger.person == ""
    charge(ledger, PATIENT)
    assert ledger.person == "patient"
    with pytest.raises(BudgetExceeded, match="column 'patient', and the plan those of 'visit'"):
        charge(ledger, VISIT)
    assert [c.unit for c in ledger.charges] == [PATIENT]
    assert ledger.spent.epsilon == 0.1


def test_create_may_say_who_they_are(tmp_path):
    path = tmp_path / "l.db"
    Ledger.create(path, dataset="hospital", ceiling=PEOPLE, person="patient")
    ledger = Ledger.open(path)
    assert ledger.person == "patient"
    with pytest.raises(BudgetExceeded, match="'visit'"):
        charge(ledger, VISIT)
    assert ledger.charges == []
    charge(ledger, PATIENT)
    assert "by 'patient'" in ledger.show()


def test_a_first_charge_that_is_refused_says_nothing_about_people():
    ledger = make(PEOPLE)
    with pytest.raises(BudgetExceeded):
        charge(ledger, VISIT, 99.0)
    assert ledger.person == ""
    charge(ledger, PATIENT)


@pytest.mark.parametrize("other", ["Patient", "patient ", "patients", "visit", "PATIENT"])
def test_people_of_another_column_are_other_people(other):
    ledger = make(PEOPLE, person="patient")
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        charge(ledger, PrivacyUnit("replace-person", other))
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        ledger.after(
            Pure(0.1),
            adjacency="replace-person",
            unit=PrivacyUnit("replace-person", other),
        )


def test_after_many_charges_the_person_is_still_known(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", ceiling=PEOPLE)
    for _ in range(40):
        charge(ledger, PATIENT, 0.001)
    with pytest.raises(BudgetExceeded, match="'patient'"):
        charge(Ledger.open(tmp_path / "l.db"), VISIT)


# different numbers of rows of the same people


def test_fits_that_see_different_numbers_of_rows_of_the_same_people_are_added():
    """Each is charged what it costs to change everything about one person, so they compose."""
    ledger = make(PEOPLE)
    for rows in (1, 3, 10):
        unit = PrivacyUnit("replace-person", "patient", rows)
        ledger.charge(of_group(Pure(0.01), rows), adjacency="replace-person", unit=unit, summary={})
    assert [c.unit.rows_of_a_person for c in ledger.charges] == [1, 3, 10]
    assert ledger.spent.epsilon == pytest.approx(0.14)


# rows and people


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_ledger_of_people_takes_no_charge_about_rows(adjacency):
    for person in ("", "patient"):
        ledger = make(PEOPLE, person=person)
        with pytest.raises(BudgetExceeded) as caught:
            charge(ledger, PrivacyUnit(adjacency))
        message = str(caught.value)
        assert "person column" in message
        assert "replace-person" in message
        assert f"adjacency={adjacency!r}" not in message  # never less than the ledger protects
        assert (repr(person) in message) == bool(person)
        assert ledger.charges == []


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_ledger_of_rows_takes_no_charge_about_people_and_does_not_ask_for_less(adjacency):
    ledger = make(Budget(2.0, 0.0, adjacency))
    with pytest.raises(BudgetExceeded) as caught:
        charge(ledger, PATIENT)
    message = str(caught.value)
    assert "--adjacency replace-person --person patient" in message
    assert "Fit with adjacency" not in message
    assert ledger.charges == []


def test_rows_are_replaced_or_removed_and_the_remedy_is_the_stronger():
    with pytest.raises(BudgetExceeded, match="Fit with adjacency='replace-one'"):
        charge(make(Budget(1.0, 0.0)), PrivacyUnit("add-remove"))
    ledger = make(Budget(1.0, 0.0, "add-remove"))
    with pytest.raises(BudgetExceeded, match="Start a ledger with adjacency='replace-one'"):
        charge(ledger, PrivacyUnit("replace-one"))


UNITS = st.one_of(
    st.sampled_from([PrivacyUnit("replace-one"), PrivacyUnit("add-remove")]),
    st.builds(
        PrivacyUnit,
        st.just("replace-person"),
        st.sampled_from(["patient", "visit", "house"]),
        st.integers(1, 9),
    ),
)


@settings(deadline=None, max_examples=30)
@given(st.lists(UNITS, min_size=1, max_size=5), st.sampled_from(["", "patient"]))
def test_all_charges_of_a_ledger_are_about_the_same_neighbours(wanted, person):
    ceiling = Budget(2.0, 0.0, "replace-person" if person else wanted[0].adjacency)
    ledger = make(ceiling, person=person)
    for unit in wanted:
        try:
            charge(ledger, unit, 0.125)
        except BudgetExceeded:
            continue
    made = ledger.charges
    assert {(c.unit.adjacency, c.unit.person) for c in made} <= {(ceiling.adjacency, ledger.person)}
    assert ledger.spent.epsilon == 0.125 * len(made)
    fitting = [
        unit
        for unit in wanted
        if (unit.adjacency, unit.person) == (ceiling.adjacency, ledger.person)
    ]
    assert len(made) == len(fitting)


# what is no unit


@pytest.mark.parametrize(
    "wrong",
    [
        {"adjacency": "replace-person"},
        {"adjacency": "replace-person", "person": ""},
        {"adjacency": "replace-person", "person": 3},
        {"adjacency": "replace-person", "person": "two\nlines"},
        {"adjacency": "replace-person", "person": "p", "rows_of_a_person": 0},
        {"adjacency": "replace-person", "person": "p", "rows_of_a_person": True},
        {"adjacency": "replace-one", "person": "p"},
        {"adjacency": "add-remove", "rows_of_a_person": 2},
        {"adjacency": "nonsense"},
    ],
)
def test_what_is_no_unit_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        PrivacyUnit(**wrong)


def test_a_charge_about_people_must_say_who_they_are():
    ledger = make(PEOPLE)
    with pytest.raises(InvalidArgument, match="which column"):
        ledger.charge(Pure(0.1), adjacency="replace-person", summary={})
    with pytest.raises(InvalidArgument, match="disagree"):
        ledger.charge(Pure(0.1), adjacency="replace-one", unit=PATIENT, summary={})
    assert ledger.charges == []


@pytest.mark.parametrize("person", ["p", 3])
def test_a_ledger_of_rows_has_no_column_of_people(tmp_path, person):
    with pytest.raises(InvalidArgument):
        Ledger.create(tmp_path / "l.db", dataset="d", ceiling=Budget(1.0), person=person)
    assert list(tmp_path.iterdir()) == []


@settings(deadline=None)
@given(UNITS)
def test_a_unit_survives_its_json(unit):
    assert units.from_json(units.to_json(unit)) == unit


@pytest.mark.parametrize("text", ["", "{}", "[1]", '["replace-person","",1]', "null", '["x"]'])
def test_what_is_no_unit_cannot_be_read(text):
    with pytest.raises(LedgerError, match="unit of privacy"):
        units.from_json(text)


# fits


N = 400
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "patient": RNG.integers(0, 50, N),
        "visit": np.arange(N),
        "x": RNG.uniform(0, 1, N),
        "y": RNG.uniform(0, 1, N),
    }
)


def source(person=None, rows=1):
    table = {
        "ignore_others": True,
        "features": [{"name": "x", "kind": "number", "bounds": [0, 1]}],
        "target": {"name": "y", "bounds": [0, 1]},
    }
    if person:
        table |= {"person": person, "rows_of_a_person": rows}
    return read(FRAME, Schema.from_table(table))


@pytest.mark.parametrize(
    "estimator",
    [
        lambda ledger: PrivateLasso(0.5, 1e-6, ledger=ledger, solver="frank-wolfe", steps=2),
        lambda ledger: PrivateErm(Squared(), L1Ball(1.0), 0.5, 1e-6, ledger=ledger),
    ],
    ids=["lasso", "erm"],
)
def test_fits_on_people_and_on_visits_do_not_share_a_ledger(estimator):
    """The finding: a ledger of people added up patients and visits."""
    ledger = make(Budget(2.0, 1e-6, "replace-person"))
    estimator(ledger).fit(source("patient"))
    for other in (source("visit"), source("visit", 2), source()):
        with pytest.raises(BudgetExceeded, match="Nothing was charged"):
            estimator(ledger).fit(other)
    estimator(ledger).fit(source("patient", 3))
    assert [c.unit for c in ledger.charges] == [
        PATIENT,
        PrivacyUnit("replace-person", "patient", 3),
    ]


def test_a_fit_about_people_on_a_ledger_of_rows_is_told_to_start_one_of_people():
    ledger = make(Budget(2.0, 1e-6))
    with pytest.raises(BudgetExceeded, match="--adjacency replace-person --person patient"):
        PrivateLasso(0.5, 1e-6, ledger=ledger).fit(source("patient"))
    assert ledger.charges == []
