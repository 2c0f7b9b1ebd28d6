"""The lines of a ledger, as a transaction finds and verifies them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Row

from riata.errors import BudgetExceeded, LedgerError
from riata.privacy import filters, unit
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget
from riata.privacy.chain import Head, Line, genuine, needed, path, verify
from riata.privacy.events import Composed, Event, from_json
from riata.privacy.filters import FilterSums
from riata.privacy.storage import (
    charge_row_of,
    charge_rows,
    charge_rows_at,
    last_seq,
    macs_at,
)
from riata.privacy.unit import PrivacyUnit

#: How many lines before the head every transaction verifies, beside those after it.
RECENT = 32


@dataclass(frozen=True)
class Charge:
    """One line of the ledger."""

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


@dataclass(frozen=True)
class Lines:
    """What one transaction read and verified: all lines of a ledger, or the last ones.

    The last line has the sums of all, so the last ones are enough to spend by.
    """

    db: Connection
    where: str
    header: Row[Any]
    rows: Sequence[Row[Any]]
    head: Head

    @property
    def charges(self) -> list[Charge]:
        return [charge_of_row(row) for row in self.rows]

    @cached_property
    def last(self) -> Charge | None:
        return charge_of_row(self.rows[-1]) if self.rows else None

    @property
    def ceiling(self) -> Budget:
        header = self.header
        return Budget(header.ceiling / 10**9, json.loads(header.delta), header.adjacency)

    @property
    def person(self) -> str:
        """The column that identifies people: the header names it, or the charges, all the same."""
        return self.header.person or ("" if self.last is None else self.last.unit.person)

    @cached_property
    def sums(self) -> FilterSums:
        """What all charges cost together."""
        if not self.rows:
            return FilterSums.before(self.ceiling)
        recorded = filters.from_json(self.rows[-1].sums)
        if recorded is not None:
            return recorded
        return added_up(verified(self.db, self.header, self.head, self.where, whole=True))

    def cost(self, *more: Event) -> Spent:
        """What all charges cost together, perhaps with one more that is not made.

        Nothing can have influenced the first one, so alone it may be of any accountant.
        """
        delta = self.ceiling.delta
        if self.head.seq + len(more) == 1:
            only = more[0] if more else self.charges[0].event
            return spent(only, delta)
        sums = self.sums
        for event in more:
            sums = sums.plus(event)
        return sums.spent(delta) if self.head.seq else Spent(0.0, delta, "nothing was released")

    def total_with(self, event: Event) -> int:
        """What all charges and this one cost, in nano-units, or an error if it is too much."""
        cost, limit = self.cost(event), self.header.ceiling
        total = nano(cost.epsilon, ROUND_CEILING) if math.isfinite(cost.epsilon) else math.inf
        if total <= limit:
            return int(total)
        used = 0 if self.last is None else self.last.total
        raise BudgetExceeded(
            f"The plan does not fit: with it, {self.head.dataset!r} would have spent epsilon "
            f"{decimal(total)} at delta {cost.delta:g}, and its ceiling is {decimal(limit)}. So "
            f"far {decimal(used)} is spent. Nothing was charged. Ask for a smaller epsilon."
        )

    def charge_of(self, run: str) -> Charge | None:
        """The charge of a run, verified by the links that lead to it from the last line."""
        dataset = self.head.dataset
        row = charge_row_of(self.db, dataset, run)
        if row is None:
            return None
        known = type(row.seq) is int and 0 < row.seq <= self.head.seq
        seqs = set(path(self.head.seq, row.seq)) if known else {0}
        macs = {
            **macs_at(self.db, dataset, seqs | needed(seqs)),
            0: self.header.mac,
            self.head.seq: self.head.mac,
        }
        links = {each.seq: charge_line(each) for each in charge_rows_at(self.db, dataset, seqs)}
        if links.keys() != seqs or not all(
            genuine(self.head.key, macs, seq, line) for seq, line in links.items()
        ):
            raise LedgerError(
                f"Charge {row.seq} of the ledger {self.where}, or one after it, was edited, moved "
                "or removed: no links lead to it from the last one, so no run can go on from it. "
                "Find out which with: riata ledger verify."
            )
        return charge_of_row(row)


def nano(epsilon: float, rounding: str) -> int:
    """`epsilon`, as the decimal number that Python prints, in units of 1e-9."""
    return int(Decimal(repr(float(epsilon))).scaleb(9).to_integral_value(rounding))


def decimal(units: float) -> str:
    """A number of nano-units, as a number."""
    return f"{Decimal(units).scaleb(-9).normalize():f}"


def verified(
    db: Connection, header: Row[Any], seen: Head, where: str, *, whole: bool = False
) -> Lines:
    """The lines of a ledger: all that are verified, of which the head has seen some.

    Parameters
    ----------
    db : Connection
        In a transaction.
    header : Row
        Locked.
    seen : Head
    where : str
        The ledger, for messages.
    whole : bool, default=False
        Whether to read every line, and not only the last ones.
    """
    start = 1 if whole else max(1, min(seen.seq, last_seq(db, seen.dataset)) - RECENT + 1)
    rows = charge_rows(db, seen.dataset, start)
    earlier = {seq for seq in needed(range(start, start + len(rows))) if 0 < seq < start}
    before = macs_at(db, seen.dataset, earlier) if earlier else {}
    lines = [charge_line(row) for row in rows]
    head = verify(seen, header_line(header), lines, where, start=start, before=before)
    return Lines(db, where, header, rows, head)


def added_up(lines: Lines) -> FilterSums:
    """The sums of all lines, from their events."""
    sums = FilterSums.before(lines.ceiling)
    for charge in lines.charges:
        sums = sums.plus(charge.event)
    return sums


def header_line(row: Row[Any]) -> Line:
    """What the chain begins with."""
    return row[:-1], row[-1]


def charge_line(row: Row[Any]) -> Line:
    """What the chain goes through. The data set is in its header."""
    return row[1:-1], row[-1]


def charge_of_row(row: Row[Any]) -> Charge:
    return Charge(
        row.seq,
        row.charged_at,
        unit.from_json(row.unit),
        from_json(row.event),
        json.loads(row.summary),
        row.total,
    )
