"""The entries of a ledger, as a transaction finds and verifies them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Row, insert

from riata.errors import BudgetExceeded, LedgerError
from riata.privacy import filters
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget
from riata.privacy.events import Event
from riata.privacy.filters import FilterSums
from riata.privacy.ledger.charge import Charge, charge_of_row
from riata.privacy.ledger.hash_chain import (
    Entry,
    Head,
    is_genuine,
    link_path,
    linked_to,
    run_rows_mac,
    verify,
)
from riata.privacy.ledger.run_rows import LOST, is_recorded
from riata.privacy.ledger.tables import (
    RUN_ROWS,
    charge_row_of,
    charge_rows,
    charge_rows_at,
    last_seq,
    macs_at,
    run_rows,
)

#: How many entries before the head every transaction verifies, beside those after it.
RECENT = 32


@dataclass(frozen=True)
class Entries:
    """What one transaction read and verified: all entries of a ledger, or the last ones.

    The last entry has the sums of all, so the last ones are enough to spend by.
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
        return recomputed_sums(
            verified_entries(self.db, self.header, self.head, self.where, whole=True)
        )

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
        """The charge of a run, verified by the links that lead to it from the last entry."""
        dataset = self.head.dataset
        row = charge_row_of(self.db, dataset, run)
        if row is None:
            return None
        known = type(row.seq) is int and 0 < row.seq <= self.head.seq
        seqs = set(link_path(self.head.seq, row.seq)) if known else {0}
        macs = {
            **macs_at(self.db, dataset, seqs | linked_to(seqs)),
            0: self.header.mac,
            self.head.seq: self.head.mac,
        }
        links = {each.seq: charge_entry(each) for each in charge_rows_at(self.db, dataset, seqs)}
        if links.keys() != seqs or not all(
            is_genuine(self.head.key, macs, seq, entry) for seq, entry in links.items()
        ):
            raise LedgerError(
                f"Charge {row.seq} of the ledger {self.where}, or one after it, was edited, moved "
                "or removed: no links lead to it from the last one, so no run can go on from it. "
                "Find out which with: riata ledger verify."
            )
        return charge_of_row(row)

    def check_new(self, run: str | None) -> None:
        """Raise if a run was charged before."""
        before = None if run is None else self.charge_of(run)
        if before is not None:
            raise LedgerError(
                f"The run {run!r} was charged before, as charge {before.seq}, and a run is charged "
                "once. Nothing was charged now. Let the other process go on with it, or start a "
                "new run."
            )

    def bind_rows(self, run: str, code: str) -> str:
        """The code of the rows that a run is over: this one, if none was recorded before."""
        key = (self.head.dataset, run)
        row = run_rows(self.db, *key)
        if row is None:
            mac = run_rows_mac(self.head.key, *key, code)
            self.db.execute(insert(RUN_ROWS).values((*key, code, mac)))
            return code
        if not is_recorded(row, self.head.key, self.head.dataset):
            raise LedgerError(
                f"What the ledger {self.where} says about the rows of the run {run} was edited, "
                "so the run cannot go on. Find out by whom."
            )
        if row.code == LOST:
            raise LedgerError(
                f"The ledger {self.where} was restored, and whether the run {run} had read rows, "
                "and which, was lost: it cannot go on, as it could be over other rows now. What "
                "was charged stays charged. Start a new run, with another file for its checkpoint."
            )
        return str(row.code)


def nano(epsilon: float, rounding: str) -> int:
    """`epsilon`, as the decimal number that Python prints, in units of 1e-9."""
    return int(Decimal(repr(float(epsilon))).scaleb(9).to_integral_value(rounding))


def decimal(units: float) -> str:
    """A number of nano-units, as a number."""
    return f"{Decimal(units).scaleb(-9).normalize():f}"


def verified_entries(
    db: Connection, header: Row[Any], seen: Head, where: str, *, whole: bool = False
) -> Entries:
    """The last entries of a ledger, or the `whole`, all verified; the head has seen some of them.

    In a transaction, with the header locked.
    """
    start = 1 if whole else max(1, min(seen.seq, last_seq(db, seen.dataset)) - RECENT + 1)
    rows = charge_rows(db, seen.dataset, start)
    earlier = {seq for seq in linked_to(range(start, start + len(rows))) if 0 < seq < start}
    before = macs_at(db, seen.dataset, earlier) if earlier else {}
    entries = [charge_entry(row) for row in rows]
    head = verify(seen, header_entry(header), entries, where, start=start, before=before)
    return Entries(db, where, header, rows, head)


def recomputed_sums(entries: Entries) -> FilterSums:
    """The sums of all entries, from their events."""
    sums = FilterSums.before(entries.ceiling)
    for charge in entries.charges:
        sums = sums.plus(charge.event)
    return sums


def header_entry(row: Row[Any]) -> Entry:
    """What the chain begins with."""
    return row[:-1], row[-1]


def charge_entry(row: Row[Any]) -> Entry:
    """What the chain goes through. The data set is in its header."""
    return row[1:-1], row[-1]
