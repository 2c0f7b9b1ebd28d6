"""The unit of privacy: whose contribution may change between neighbouring data sets."""

from __future__ import annotations

import json
from dataclasses import dataclass

from riata.errors import BudgetExceeded, InvalidArgument, LedgerError
from riata.privacy.budget import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    REPLACE_PERSON,
    Budget,
    check_adjacency,
)


@dataclass(frozen=True)
class PrivacyUnit:
    """What one charge protects: a row, its target alone, or a person with all of their rows.

    Parameters
    ----------
    adjacency : {"replace-one", "add-remove", "replace-label", "replace-person"}, \
        default="replace-one"
        Which data sets count as neighbours.
    person : str, default=""
        With "replace-person": the column that identifies a person.
    rows_of_a_person : int, default=1
        With "replace-person": how many rows of one person the fit saw.
    """

    adjacency: str = REPLACE_ONE
    person: str = ""
    rows_of_a_person: int = 1

    def __post_init__(self) -> None:
        if self.adjacency != REPLACE_PERSON:
            check_adjacency(self.adjacency)
        person = self.person
        if not isinstance(person, str) or (person and not person.isprintable()):
            raise InvalidArgument(
                f"person={person!r} must be the name of a column, in printable letters. "
                'Write person="patient_id".'
            )
        if self.adjacency == REPLACE_PERSON and not person:
            raise InvalidArgument(
                'adjacency="replace-person" protects people, and nobody said which column '
                "identifies them: people of another column are other people. Name the column, as "
                'in PrivacyUnit("replace-person", person="patient_id").'
            )
        if self.adjacency != REPLACE_PERSON and person:
            raise InvalidArgument(
                f"person={person!r} has no meaning with adjacency={self.adjacency!r}, which "
                'counts rows. Use adjacency="replace-person".'
            )
        Budget(1.0, 0.0, self.adjacency, self.rows_of_a_person)  # checks the number of rows

    @classmethod
    def of(cls, budget: Budget, person: str) -> PrivacyUnit:
        """What a plan with this budget protects; `person` is the column of people, if any."""
        people = budget.adjacency == REPLACE_PERSON
        return cls(budget.adjacency, person if people else "", budget.rows_of_a_person)

    def __str__(self) -> str:
        if self.adjacency != REPLACE_PERSON:
            return self.adjacency
        return f"{self.adjacency} by {self.person!r}"


def to_json(unit: PrivacyUnit) -> str:
    """A canonical text for the ledger."""
    return json.dumps([unit.adjacency, unit.person, unit.rows_of_a_person])


def from_json(text: str) -> PrivacyUnit:
    """The inverse of `to_json`."""
    try:
        adjacency, person, rows_of_a_person = json.loads(text)
        return PrivacyUnit(adjacency, person, rows_of_a_person)
    except (ValueError, TypeError) as error:
        raise LedgerError(
            "A recorded unit of privacy cannot be read, so nothing more can be spent. Restore the "
            "ledger from a copy that this version of riata wrote."
        ) from error


def _of_labels(unit: PrivacyUnit, adjacency: str) -> tuple[str, str]:
    """What is wrong if either the ledger or the plan protects targets alone, and what helps."""
    if adjacency == REPLACE_LABEL:
        whose = f" --person {unit.person}" * bool(unit.person)
        return (
            f"This ledger protects targets alone (replace-label), and the plan more "
            f"({unit.adjacency})",
            "Start a ledger of what the plan protects: riata ledger create --adjacency "
            f"{unit.adjacency}{whose}",
        )
    people = adjacency == REPLACE_PERSON
    return (
        f"This ledger protects {'people' if people else 'rows'} ({adjacency}), and the plan only "
        "targets (replace-label)",
        "Fit without adjacency, on a source whose schema names the column of people"
        if people
        else f"Fit with adjacency={adjacency!r}",
    )


def check_same_unit(unit: PrivacyUnit, *, adjacency: str, person: str) -> None:
    """Refuse to add costs that are about different neighbours.

    The ledger protects `adjacency`, and `person` if a charge or a ceiling named a column. The
    remedy never protects less than the plan or the ledger does.

    People of one column who count as different numbers of rows are the same people. Each charge is
    what its own fit costs between data sets that differ in everything about one person
    (docs/privacy/people.md), so the charges are about the same neighbours and compose.
    """
    if unit.adjacency == adjacency and (not person or unit.person == person):
        return
    if adjacency == REPLACE_PERSON and unit.adjacency == REPLACE_PERSON:
        what = (
            f"This ledger protects the people of the column {person!r}, and the plan those of "
            f"{unit.person!r}"
        )
        remedy = f"Name {person!r} as the person column of the schema"
    elif REPLACE_LABEL in (unit.adjacency, adjacency):
        what, remedy = _of_labels(unit, adjacency)
    elif adjacency == REPLACE_PERSON:
        column = repr(person) if person else "the column that identifies them"
        what = (
            f"This ledger protects people (replace-person), and the plan only rows "
            f"({unit.adjacency}), of which a person may have several"
        )
        remedy = (
            f"Name {column} as the person column of a schema, with rows_of_a_person, and fit on a "
            "source that is read with it"
        )
    elif unit.adjacency == REPLACE_PERSON:
        what = (
            f"This ledger counts rows ({adjacency}), and the plan protects the people of the "
            f"column {unit.person!r} (replace-person)"
        )
        remedy = (
            "Start a ledger of people: riata ledger create --adjacency replace-person --person "
            f"{unit.person}"
        )
    else:
        what = f"This ledger counts {adjacency} neighbours, and the plan {unit.adjacency} ones"
        remedy = (
            "Start a ledger with adjacency='replace-one'"
            if adjacency == ADD_REMOVE
            else f"Fit with adjacency={adjacency!r}"
        )
    raise BudgetExceeded(f"{what}: their costs cannot be added. Nothing was charged. {remedy}.")
