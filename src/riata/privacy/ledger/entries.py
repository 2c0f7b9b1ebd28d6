"""The entries of a ledger, as a transaction finds and verifies them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Row, insert

from riata.errors import BudgetExceeded, LedgerError
from riata.privacy import filters
from riata.privacy import unit as units
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget
from riata.privacy.events import Event, to_json
from riata.privacy.filters import FilterSums
from riata.privacy.ledger.charge import Charge, charge_of_row, is_charge, rows_of_run
from riata.privacy.ledger.hash_chain import (
    Entry,
    Head,
    is_genuine,
    link_path,
    linked_to,
    next_head,
    skip_link,
    verify,
)
from riata.privacy.ledger.tables import (
    CHARGE,
    charge_rows,
    charge_rows_at,
    charge_seq_of,
    last_seq,
    macs_at,
)
from riata.privacy.unit import PrivacyUnit

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
        return [charge_of_row(row) for row in self.rows if is_charge(row)]

    @cached_property
    def last(self) -> Charge | None:
        """The last charge; or the entry after it, which has its unit and its total."""
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
        return recomputed_sums(verified_entries(self.db, self.header, self.head, self.where, 1))

    def cost(self, *more: Event) -> Spent:
        """What all charges cost together, perhaps with one more that is not made.

        Nothing can have influenced the first one, so alone it may be of any accountant.
        """
        delta = self.ceiling.delta
        if self.head.seq <= 2:  # an entry about rows follows a charge, so all others have two
            events = [*(charge.event for charge in self.charges), *more]
            if len(events) == 1:
                return spent(events[0], delta)
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

    def append(
        self, run: str | None, unit: PrivacyUnit, event: Event, facts: str, total: int
    ) -> Head:
        """Add one entry to the chain; the head that has it, if the database keeps it."""
        seq, now, sums = self.head.seq + 1, datetime.now(UTC).isoformat(), self.sums.plus(event)
        fields = (
            seq, now, run, units.to_json(unit), to_json(event), facts, filters.to_json(sums), total
        )  # fmt: skip
        dataset = self.head.dataset
        far = skip_link(seq)  # its mac goes into the chain, so it is verified
        links = {far: self._verified_at(far).mac if far else self.header.mac}
        head = next_head(self.head, links, fields)
        self.db.execute(insert(CHARGE).values((dataset, *fields, head.mac)))
        return head

    def code_of_rows(self, charge: Charge) -> str | None:
        """The code of the rows that a charged run is over, if they were read.

        All entries since the charge are verified, so none was removed.
        """
        since = verified_entries(self.db, self.header, self.head, self.where, charge.seq)
        name = rows_of_run(str(charge.run))
        codes = (str(json.loads(row.summary)["code"]) for row in since.rows if row.run == name)
        return next(codes, None)

    def charge_of(self, run: str) -> Charge | None:
        """The charge of a run, verified by the links that lead to it from the last entry."""
        seq = charge_seq_of(self.db, self.head.dataset, run)
        if seq is None:
            return None
        row = self._verified_at(seq)
        if row.run != run or not is_charge(row):
            raise LedgerError(
                f"The ledger {self.where} finds entry {row.seq} for the run {run!r}, and it is "
                "that of another one: an index was edited, so no run can go on from it."
            )
        return charge_of_row(row)

    def _verified_at(self, number: object) -> Row[Any]:
        """One entry, verified by the links that lead to it from the last one.

        No other row is used than those that are verified here: a database that somebody else
        writes may answer each query with other ones.
        """
        dataset = self.head.dataset
        seq = number if type(number) is int and 0 < number <= self.head.seq else 0
        seqs = set(link_path(self.head.seq, seq)) if seq else {0}
        rows = {each.seq: each for each in charge_rows_at(self.db, dataset, seqs)}
        macs = {
            **macs_at(self.db, dataset, linked_to(seqs)),
            **{each: row.mac for each, row in rows.items()},
            0: self.header.mac,
        }
        if (
            rows.keys() != seqs
            or macs.get(self.head.seq) != self.head.mac
            or not all(
                is_genuine(self.head.key, macs, each, charge_entry(row))
                for each, row in rows.items()
            )
        ):
            raise LedgerError(
                f"Entry {number} of the ledger {self.where}, or one after it, was edited, moved "
                "or removed: no links lead to it from the last one, so no run can go on from it. "
                "Find out which with: riata ledger verify."
            )
        return rows[seq]

    def check_new(self, run: str | None) -> None:
        """Raise if a run was charged before."""
        before = None if run is None else self.charge_of(run)
        if before is not None:
            raise LedgerError(
                f"The run {run!r} was charged before, as charge {before.seq}, and a run is charged "
                "once. Nothing was charged now. Let the other process go on with it, or start a "
                "new run."
            )


def nano(epsilon: float, rounding: str) -> int:
    """`epsilon`, as the decimal number that Python prints, in units of 1e-9."""
    return int(Decimal(repr(float(epsilon))).scaleb(9).to_integral_value(rounding))


def decimal(units: float) -> str:
    """A number of nano-units, as a number."""
    return f"{Decimal(units).scaleb(-9).normalize():f}"


def verified_entries(
    db: Connection, header: Row[Any], seen: Head, where: str, first: int | None = None
) -> Entries:
    """The entries of a ledger from the `first` on, or the last ones, all verified.

    In a transaction, with the header locked. The head has seen some of them.
    """
    start = max(1, min(seen.seq, last_seq(db, seen.dataset)) - RECENT + 1)
    start = start if first is None else min(start, first)
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
