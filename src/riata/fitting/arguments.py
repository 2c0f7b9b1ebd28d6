"""Arguments that fits and searches share, checked before a row is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from riata.data.schema import Schema
from riata.errors import InvalidArgument
from riata.privacy.budget import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_PERSON,
    Budget,
    default_delta,
)


def check_ledger(ledger: object, random_state: object) -> None:
    """Raise unless it is a ledger that may record this fit, or none."""
    if ledger is None:
        return
    from riata.privacy.ledger import Ledger  # SQLAlchemy is slow to import

    if not isinstance(ledger, Ledger):
        raise InvalidArgument(
            f"ledger must be a Ledger, got {type(ledger).__name__}. "
            "Make one with Ledger.create or Ledger.open."
        )
    if random_state is not None:
        raise InvalidArgument(
            "random_state makes the noise known, so the fit protects nobody, and a ledger "
            "records only real spending. Leave out random_state, or leave out the ledger."
        )


def seed_from(random_state: Any) -> int | None:
    """The seed that a random_state stands for."""
    if random_state is None:
        return None
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    raise InvalidArgument(
        f"random_state must be None or an int, got {type(random_state).__name__}. "
        "Leave it out for a private fit."
    )


def check_blank_rows(adjacency: str, schema: Schema | None) -> None:
    """Raise where a row that is not there would count as a blank one.

    A blank row of a source is a row like all others, with a label or the middle of the target's
    bounds. Under add-remove a row that is not there adds nothing to any sum.
    """
    if adjacency != ADD_REMOVE or schema is None or not schema.fixes_size:
        return
    field, value = ("rows", schema.rows) if schema.people is None else ("people", schema.people)
    raise InvalidArgument(
        f'adjacency="add-remove" does not go with {field}={value} in the schema: a blank row '
        "stands for one that is not there, so a row is replaced and never left out, and the noise "
        f'would be too small. Use adjacency="replace-one", or leave {field} out of the schema.'
    )


def budget_of(
    epsilon: float,
    delta: float | None,
    adjacency: str,
    n_rows: int,
    rows_of_a_person: int | None = None,
) -> Budget:
    """The budget of a fit on so many rows, of people if each has so many of them."""
    if rows_of_a_person is None:
        return Budget(epsilon, default_delta(n_rows) if delta is None else delta, adjacency)
    if adjacency == ADD_REMOVE:
        raise InvalidArgument(
            'adjacency="add-remove" is about rows, and the rows are of people: a person is '
            "replaced as a whole, with all of their rows. Leave adjacency out."
        )
    if adjacency == REPLACE_LABEL:
        raise InvalidArgument(
            'adjacency="replace-label" protects the target of one row, and the rows are of people: '
            "a person may have several targets, and what protects all of them together is not "
            "proven. Leave adjacency out, which protects people with all of their rows, or fit on "
            "a source whose schema names no person."
        )
    people = n_rows // rows_of_a_person
    given = default_delta(people) if delta is None else delta
    return Budget(epsilon, given, REPLACE_PERSON, rows_of_a_person)
