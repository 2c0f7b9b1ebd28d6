"""One entry of a ledger: a charge, or over which rows a charged run is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from riata.errors import InvalidArgument
from riata.privacy import unit as units
from riata.privacy.events import Composed, from_json
from riata.privacy.unit import PrivacyUnit

_LONGEST_RUN = 200

#: Before the id of a run: the entry says over which rows the run is. No id has such a letter.
_ROWS = "rows\n"


@dataclass(frozen=True)
class Charge:
    """What one plan cost."""

    seq: int
    charged_at: str
    unit: PrivacyUnit
    event: Composed
    summary: dict[str, Any]
    #: The cost of all charges up to this one, in units of 1e-9 epsilon, rounded up.
    total: int

    @property
    def adjacency(self) -> str:
        return self.unit.adjacency

    @property
    def run(self) -> str | None:
        """The id of the run that the charge pays for, if it has a checkpoint."""
        return self.summary.get("run")


def rows_of_run(run: str) -> str:
    """What stands in the place of a run's id, in the entry that says over which rows it is."""
    return _ROWS + run


def is_charge(row: Row[Any]) -> bool:
    """Whether an entry is a charge, and not about the rows of a run that was charged before."""
    return not (isinstance(row.run, str) and row.run.startswith(_ROWS))


def charge_of_row(row: Row[Any]) -> Charge:
    return Charge(
        row.seq,
        row.charged_at,
        units.from_json(row.unit),
        from_json(row.event),
        json.loads(row.summary),
        row.total,
    )


def protected_unit(adjacency: str, unit: PrivacyUnit | None) -> PrivacyUnit:
    """What a plan protects. That of rows follows from their adjacency."""
    if unit is None:
        return PrivacyUnit(adjacency)
    if unit.adjacency != adjacency:
        raise InvalidArgument(
            f"adjacency={adjacency!r} and unit={unit} disagree about which data sets are "
            "neighbours. Pass the same adjacency in both."
        )
    return unit


def run_id(summary: dict[str, Any]) -> str | None:
    """The id of the run that a charge pays for, if it has one."""
    run = summary.get("run")
    if run is None:
        return None
    if not isinstance(run, str) or not run.isprintable() or not 0 < len(run) <= _LONGEST_RUN:
        raise InvalidArgument(
            f"The id of a run must be a text of 1 to {_LONGEST_RUN} printable letters, got "
            f"{run!r:.40}. Pass its name."
        )
    return run
