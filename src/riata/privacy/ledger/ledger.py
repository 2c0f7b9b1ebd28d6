"""The record of what was spent on a data set, and the refusal to spend more than its ceiling."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from riata.errors import LedgerError
from riata.privacy.accountants import Spent
from riata.privacy.budget import Budget
from riata.privacy.events import Event, compose
from riata.privacy.ledger.backup import Restoration, restore, write_backup
from riata.privacy.ledger.charge import Charge, protected_unit, rows_of_run, run_id
from riata.privacy.ledger.creation import create_ledger
from riata.privacy.ledger.database import Database
from riata.privacy.ledger.entries import Entries, recomputed_sums, verified_entries
from riata.privacy.ledger.export import json_text, summary_text
from riata.privacy.ledger.hash_chain import Head
from riata.privacy.ledger.head import HeadFile, HeadInMemory
from riata.privacy.ledger.location import PathLike, is_url, locate
from riata.privacy.ledger.tables import datasets, locked_header
from riata.privacy.unit import PrivacyUnit, check_same_unit

#: Between machines, the last digits of a divergence differ.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Verification:
    """What `Ledger.verify` found to be whole."""

    dataset: str
    charges: int
    spent: Spent
    mac: str


class Ledger:
    """An append-only record of the privacy spent on one data set.

    Make one with `Ledger.create` and use it again with `Ledger.open`. Give it to estimators as
    ``ledger=``: a fit charges its whole plan before it reads a row, and a plan that does not fit
    under the ceiling is refused with nothing charged. What was charged is never refunded.

    A charge costs the same however many there are: the last entry has the sums of all. A keyed
    chain runs through the charges, and a small file, the head, holds its key and its last
    link. A ledger that was edited, shortened or rolled back no longer matches its head, and nothing
    more can be spent from it.

    There is one budget however the ledger travels: copies, deep copies and scikit-learn's `clone`
    give the same ledger back, and a pickled ledger opens the same file in the other process. A
    ledger in memory belongs to one process and refuses to leave it.

    Examples
    --------
    >>> from riata import Budget, Ledger
    >>> ledger = Ledger.create(":memory:", dataset="claims-2026", ceiling=Budget(2.0, 1e-6))
    >>> ledger.spent.epsilon
    0.0
    """

    def __init__(
        self, database: Database, head: HeadFile | HeadInMemory, dataset: str | None = None
    ) -> None:
        self._database = database
        self._head = head
        self._pid = os.getpid()
        weakref.finalize(self, database.engine.dispose)
        self.path = database.where
        self.dataset = dataset if dataset is not None else self._only_dataset()
        with self._verified() as entries:
            self.ceiling = entries.ceiling

    @classmethod
    def create(
        cls,
        where: PathLike,
        *,
        dataset: str,
        ceiling: Budget,
        person: str = "",
        head: PathLike | None = None,
    ) -> Ledger:
        """Start the ledger of a data set.

        Parameters
        ----------
        where : path-like, URL or ":memory:"
            A file that does not exist yet; a PostgreSQL database as
            ``"postgresql+psycopg://user@host/database"``, which may hold the ledgers of several
            data sets; or ":memory:" for a ledger that lives and dies with this process.
        dataset : str
            The name of the data set whose rows this budget protects.
        ceiling : Budget
            The most that all charges together may cost. Its delta is the one at which the total
            is computed. Its epsilon is rounded down to nine decimals.
        person : str, optional
            With a ceiling of "replace-person": the column that identifies people. Left out, the
            first charge fixes it. Charges about people of any other column are refused.
        head : path-like, optional
            A file that does not exist yet, for the key of the chain and its last link. Beside a
            ledger in a file it is by default ``where`` with ".head" added; another disk or another
            owner is better. A ledger in PostgreSQL needs one, and each user a copy of it.
        """
        database, kept = create_ledger(where, dataset, ceiling, person, head)
        return cls(database, kept, dataset)

    @classmethod
    def open(
        cls, where: PathLike, *, dataset: str | None = None, head: PathLike | None = None
    ) -> Ledger:
        """Open the ledger that `create` started.

        Parameters
        ----------
        where : path-like or URL
            As it was given to `create`.
        dataset : str, optional
            Needed only if a database holds the ledgers of several data sets.
        head : path-like, optional
            Where the head is, if it is not beside the file.
        """
        if not is_url(where) and not Path(where).is_file():
            raise LedgerError(
                f"{Path(where).absolute()} does not exist. Start a ledger there first "
                "(`riata ledger create`), or check the path."
            )
        return cls(*locate(where, head), dataset)

    def charge(
        self,
        event: Event,
        *,
        adjacency: str,
        summary: dict[str, Any],
        unit: PrivacyUnit | None = None,
    ) -> int:
        """Record a plan's whole cost, or raise and record nothing.

        Parameters
        ----------
        event : Event
            What everything that the plan may release costs between neighbours.
        adjacency : str
        summary : dict
            Public facts, kept with the charge. Under "run", the id of a run: it is charged once.
        unit : PrivacyUnit, optional
            What the plan protects. Needed if that is a person.

        Raises
        ------
        BudgetExceeded
            If the ceiling does not allow it, or the ledger protects something else.
        LedgerError
            If the run was charged before; `charge_of` says for what.
        """
        unit, run = protected_unit(adjacency, unit), run_id(summary)
        facts = json.dumps(summary, sort_keys=True)
        with self._verified() as entries:
            check_same_unit(unit, adjacency=self.ceiling.adjacency, person=entries.person)
            entries.check_new(run)
            total = entries.total_with(event)
            self._head.write(entries.head)  # a head that cannot be written charges nothing
            head = entries.append(run, unit, event, facts, total)
        self._move_head(head)
        return head.seq

    def charge_of(self, run: str) -> Charge | None:
        """The charge of a run, if it was charged: verified by the links that lead to it.

        Parameters
        ----------
        run : str
            What the summary of the charge has under "run".
        """
        with self._verified() as entries:
            return entries.charge_of(run)

    def bind_rows(self, run: str, code: str) -> str:
        """The code of the rows that a run is over: this one, if none was recorded before.

        Parameters
        ----------
        run : str
        code : str
            A keyed digest of the rows, which reveals nothing about them.
        """
        with self._verified() as entries:
            charge, last = entries.charge_of(run), entries.last
            if charge is None or last is None:
                raise LedgerError(
                    f"The run {run!r} was not charged to the ledger {self.path}, so it reads no "
                    "rows. Charge it first."
                )
            known = entries.code_of_rows(charge)
            if known is not None:
                return known
            self._head.write(entries.head)
            facts = json.dumps({"code": code})
            head = entries.append(rows_of_run(run), last.unit, compose(), facts, last.total)
        self._move_head(head)
        return code

    def after(self, event: Event, *, adjacency: str, unit: PrivacyUnit | None = None) -> Spent:
        """What all charges would cost together with one more, which is not made."""
        unit = protected_unit(adjacency, unit)
        with self._verified() as entries:
            check_same_unit(unit, adjacency=self.ceiling.adjacency, person=entries.person)
            return entries.cost(event)

    @property
    def person(self) -> str:
        """The column that identifies the people that are protected; empty for rows.

        Also empty as long as neither `create` nor a charge named one.
        """
        with self._verified() as entries:
            return entries.person

    @property
    def charges(self) -> list[Charge]:
        """Every charge, in order. This verifies the whole chain."""
        with self._verified(first=1) as entries:
            return entries.charges

    @property
    def spent(self) -> Spent:
        """What all charges cost together, at the ceiling's delta: composed, not summed.

        Later charges may depend on what earlier models showed, so from the second charge on only
        sums that are privacy filters count.
        """
        with self._verified() as entries:
            return entries.cost()

    def verify(self) -> Verification:
        """Check every entry against the chain, the chain against its head, and the sums.

        `charges`, `show`, `export` and `backup` check every entry, too. What spends and what looks
        for one charge checks the last entries, on whose sums it depends. All raise `LedgerError`.
        """
        with self._verified(first=1) as entries:
            if entries.sums.below(recomputed_sums(entries), _TOLERANCE):
                raise LedgerError(
                    f"The sums that the ledger {self.path} recorded are below what its charges "
                    "cost, so nothing can be spent. Report this: riata wrote them."
                )
            charges = len(entries.charges)
            return Verification(self.dataset, charges, entries.cost(), entries.head.mac)

    def show(self) -> str:
        """The ceiling, what is spent and left, and one line for each charge."""
        with self._verified(first=1) as entries:
            return summary_text(entries)

    def export(self) -> str:
        """Header, entries and macs as JSON, for an archive or an auditor. Never the key."""
        with self._verified(first=1) as entries:
            return json_text(entries)

    def backup(self, file: PathLike, *, force: bool = False) -> int:
        """Write all entries and their macs to a file, while the ledger is in use.

        Parameters
        ----------
        file : path-like
            Where to. The key is not in it, so `restore` needs the head, too.
        force : bool, default=False
            Whether to replace a file that exists.

        Returns
        -------
        charges : int
            How many charges the backup has.
        """
        with self._verified(first=1) as entries:
            pass
        write_backup(entries, file, (self.path, self._head.path), force)
        return len(entries.charges)

    @classmethod
    def restore(
        cls, backup: PathLike, where: PathLike, *, head: PathLike | None = None
    ) -> Restoration:
        """Bring a ledger back from a backup, or refuse if a charge would be forgotten.

        Charges that are newer than the backup are kept, if the ledger still has them.

        Parameters
        ----------
        backup : path-like
            What `backup` wrote.
        where : path-like or URL
            Where the ledger was, or is to be.
        head : path-like, optional
            The newest head, if it is not beside the file.
        """
        result = restore(backup, where, head=head)
        found = cls.open(where, dataset=result.dataset, head=head).verify()
        if found.charges != result.charges:
            raise LedgerError(
                f"{result.charges} charges were written to {where}, and it has {found.charges}: "
                "the database dropped some. Find out who else writes to it."
            )
        return result

    def _move_head(self, written: Head) -> None:
        """After an entry is durable: see that it is there, and let the head see it."""
        with self._verified(first=written.seq) as entries:
            if {row.seq: row.mac for row in entries.rows}.get(written.seq) != written.mac:
                raise LedgerError(
                    f"Entry {written.seq} was written to the ledger {self.path} and is not there: "
                    "the database dropped it, or was rolled back just now. Nothing was released. "
                    "Find out who else writes to it."
                )

    def _only_dataset(self) -> str:
        with self._database.transaction() as db:
            known = datasets(db)
        if len(known) != 1:
            raise LedgerError(
                f"{self.path} holds the ledgers of {len(known)} data sets, {known}: this must be "
                "one, or you must say which with dataset=."
            )
        return known[0]

    @contextmanager
    def _verified(self, *, first: int | None = None) -> Iterator[Entries]:
        """One serialised transaction that starts by verifying the entries from the `first` on.

        Without a number these are the last ones, on whose sums spending depends.

        The head moves here and nowhere else: under the database's write lock, and only forward.
        """
        if self._head.path is None and os.getpid() != self._pid:
            raise LedgerError(
                "A ledger in memory cannot be used in another process: both would spend the same "
                'budget. Create it in a file: Ledger.create("study.db", ...).'
            )
        with self._database.transaction() as db:
            header = locked_header(db, self.dataset, self.path)
            seen = self._head.read()
            if seen.dataset != self.dataset:
                raise LedgerError(
                    f"{self._head.path} is the head of the ledger of {seen.dataset!r} and not of "
                    f"{self.dataset!r}, so nothing can be spent. Say with head= where the right "
                    "one is."
                )
            entries = verified_entries(db, header, seen, self.path, first)
            if entries.head != seen:
                self._head.write(entries.head)
            yield entries

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._head.path is None:
            raise LedgerError(
                "A ledger in memory cannot be pickled: the copy would have a budget of its own. "
                'Create it in a file: Ledger.create("study.db", ...).'
            )
        return (_reopen, (self.path, self.dataset, self._head.path))

    def __repr__(self) -> str:
        ceiling = self.ceiling
        with self._verified() as entries:
            used = entries.cost()
        return (
            f"<Ledger of {self.dataset!r}: epsilon {used.epsilon:.6g} of {ceiling.epsilon:g} spent "
            f"at delta {used.delta:g}, {ceiling.adjacency}>"
        )


def _reopen(where: str, dataset: str, head: str) -> Ledger:
    return Ledger.open(where, dataset=dataset, head=head)
