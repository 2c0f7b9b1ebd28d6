"""The record of what was spent on a data set, and the refusal to spend more than its ceiling."""

from __future__ import annotations

import contextlib
import json
import math
import os
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, insert

from riata.errors import BudgetExceeded, InvalidArgument, LedgerError
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget
from riata.privacy.chain import (
    Head,
    HeadFile,
    HeadInMemory,
    Line,
    following,
    new_head,
    verify,
)
from riata.privacy.events import Composed, Event, compose, from_json, to_json
from riata.privacy.storage import (
    CHARGE,
    HEADER,
    TABLES,
    VERSION,
    Storage,
    charge_row_of,
    charge_rows,
    create_file,
    datasets,
    in_file,
    in_memory,
    in_postgresql,
    locked_header,
)
from riata.privacy.unit import PrivacyUnit, check_same_unit
from riata.privacy.unit import from_json as unit_from_json
from riata.privacy.unit import to_json as unit_to_json

IN_MEMORY = ":memory:"

#: Epsilons are compared as whole numbers of this many parts of 1.
_NANO = 10**9
#: In nano-units this stays far below 2^63, the end of a database's integers.
_LARGEST_CEILING = 1e9


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
class Verified:
    """What `Ledger.verify` found to be whole."""

    dataset: str
    charges: int
    spent: Spent
    mac: str


@dataclass(frozen=True)
class _Pages:
    """What one transaction read and verified."""

    db: Connection
    header: Row[Any]
    rows: Sequence[Row[Any]]
    head: Head

    @property
    def charges(self) -> list[Charge]:
        return [_charge(row) for row in self.rows]

    @property
    def person(self) -> str:
        """The column that identifies people: the header names it, or the first charge."""
        return self.header.person or (_charge(self.rows[0]).unit.person if self.rows else "")


class Ledger:
    """An append-only record of the privacy spent on one data set.

    Make one with `Ledger.create` and use it again with `Ledger.open`. Give it to estimators as
    ``ledger=``: a fit charges its whole plan before it reads a row, and a plan that does not fit
    under the ceiling is refused with nothing charged. What was charged is never refunded.

    A keyed chain runs through the charges, and a small file, the head, holds its key and its last
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
        self, storage: Storage, head: HeadFile | HeadInMemory, dataset: str | None = None
    ) -> None:
        self._storage = storage
        self._head = head
        self._pid = os.getpid()
        weakref.finalize(self, storage.engine.dispose)
        self.path = storage.where
        self.dataset = dataset if dataset is not None else self._only_dataset()
        with self._verified() as pages:
            header = pages.header
        self.ceiling = Budget(header.ceiling / _NANO, json.loads(header.delta), header.adjacency)

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str],
        *,
        dataset: str,
        ceiling: Budget,
        person: str = "",
        head: str | os.PathLike[str] | None = None,
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
        if not isinstance(dataset, str) or not dataset or not dataset.isprintable():
            raise InvalidArgument(
                f"dataset must be a name in printable letters, got {dataset!r}. "
                'Write dataset="claims-2026".'
            )
        if not isinstance(ceiling, Budget):
            raise InvalidArgument(
                f"ceiling must be a Budget, got {type(ceiling).__name__}. "
                "Write ceiling=Budget(epsilon, delta)."
            )
        if ceiling.epsilon > _LARGEST_CEILING:
            raise InvalidArgument(
                f"The ceiling's epsilon {ceiling.epsilon:g} is no limit: a ledger counts up to "
                f"{_LARGEST_CEILING:g}, where nothing is protected any more. "
                "Common ceilings lie between 0.1 and 10."
            )
        if person != "":
            PrivacyUnit(ceiling.adjacency, person)  # checks that it is a column of people
        limit = _nano(ceiling.epsilon, ROUND_FLOOR)
        header = (dataset, VERSION, limit, json.dumps(ceiling.delta), ceiling.adjacency, person)
        first = new_head(dataset, header)
        storage, kept = _places(where, head, first)
        with contextlib.ExitStack() as undo:  # what is removed is new: nothing was charged to it
            if isinstance(kept, HeadFile):
                if not _is_url(where):
                    create_file(storage.where)
                    undo.callback(os.unlink, storage.where)
                kept.create(first)
                undo.callback(os.unlink, kept.path)
            with storage.transaction() as db:
                TABLES.create_all(db)
                if dataset in datasets(db):
                    raise LedgerError(
                        f"{storage.where} has a ledger of {dataset!r}: a new one would forget what "
                        "was spent. Use Ledger.open, or another name."
                    )
                db.execute(insert(HEADER).values((*header, first.mac)))
            undo.pop_all()
        return cls(storage, kept, dataset)

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        dataset: str | None = None,
        head: str | os.PathLike[str] | None = None,
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
        if not _is_url(where) and not Path(where).is_file():
            raise LedgerError(
                f"{Path(where).absolute()} does not exist. Start a ledger there with Ledger.create."
            )
        return cls(*_places(where, head), dataset)

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
        unit, run = _unit(adjacency, unit), _run(summary)
        facts = json.dumps(summary, sort_keys=True)
        with self._verified() as pages:
            check_same_unit(unit, adjacency=self.ceiling.adjacency, person=pages.person)
            self._check_new(run, pages.db)
            before = [charge.event for charge in pages.charges]
            cost = self._cost([*before, event])
            total = _nano(cost.epsilon, ROUND_CEILING) if math.isfinite(cost.epsilon) else math.inf
            limit, used = pages.header.ceiling, pages.rows[-1].total if pages.rows else 0
            if total > limit:
                raise BudgetExceeded(
                    f"The plan does not fit: with it, {self.dataset!r} would have spent epsilon "
                    f"{_decimal(total)} at delta {cost.delta:g}, and its ceiling is "
                    f"{_decimal(limit)}. So far {_decimal(used)} is spent. Nothing was charged. "
                    "Ask for a smaller epsilon."
                )
            self._head.write(pages.head)  # a head that cannot be written charges nothing
            fields = (
                pages.head.seq + 1,
                datetime.now(UTC).isoformat(),
                run,
                unit_to_json(unit),
                to_json(event),
                facts,
                total,
            )
            head = following(pages.head, fields)
            pages.db.execute(insert(CHARGE).values((self.dataset, *fields, head.mac)))
        with self._verified():  # the charge is durable now, and this moves the head
            pass
        return head.seq

    def charge_of(self, run: str) -> Charge | None:
        """The charge of a run, if it was charged.

        Parameters
        ----------
        run : str
            What the summary of the charge has under "run".
        """
        with self._verified() as pages:
            row = charge_row_of(pages.db, self.dataset, run)
            return None if row is None else _charge(row)

    def _check_new(self, run: str | None, db: Connection) -> None:
        row = None if run is None else charge_row_of(db, self.dataset, run)
        if row is not None:
            raise LedgerError(
                f"The run {run!r} was charged before, as charge {row.seq}, and a run is charged "
                "once. Nothing was charged now. Let the other process go on with it, or start a "
                "new run."
            )

    def after(self, event: Event, *, adjacency: str, unit: PrivacyUnit | None = None) -> Spent:
        """What all charges would cost together with one more, which is not made."""
        unit = _unit(adjacency, unit)
        with self._verified() as pages:
            check_same_unit(unit, adjacency=self.ceiling.adjacency, person=pages.person)
            return self._cost([*(charge.event for charge in pages.charges), event])

    @property
    def person(self) -> str:
        """The column that identifies the people that are protected; empty for rows.

        Also empty as long as neither `create` nor a charge named one.
        """
        with self._verified() as pages:
            return pages.person

    @property
    def charges(self) -> list[Charge]:
        """Every charge, in order."""
        with self._verified() as pages:
            return pages.charges

    @property
    def spent(self) -> Spent:
        """What all charges cost together, at the ceiling's delta: composed, not summed.

        Later charges may depend on what earlier models showed, so from the second charge on only
        sums that are privacy filters count.
        """
        return self._cost([charge.event for charge in self.charges])

    def verify(self) -> Verified:
        """Check every line against the chain and the chain against its head.

        Every other use of the ledger does this too, and raises the same `LedgerError`.
        """
        with self._verified() as pages:
            total = self._cost([charge.event for charge in pages.charges])
            return Verified(self.dataset, len(pages.charges), total, pages.head.mac)

    def show(self) -> str:
        """The ceiling, what is spent and left, and one line a charge."""
        charges = self.charges
        used = self._cost([charge.event for charge in charges])
        limit = _nano(self.ceiling.epsilon, ROUND_FLOOR)
        total = _nano(used.epsilon, ROUND_CEILING)
        lines = [
            f"Ledger of {self.dataset!r}, {self.ceiling.adjacency}",
            f"ceiling  epsilon {_decimal(limit)} at delta {self.ceiling.delta:g}",
            f"spent    epsilon {_decimal(total)} by {used.accountant}",
            f"left     epsilon {_decimal(limit - total)}",
        ]
        for c in charges:
            what = ", ".join(str(c.summary[k]) for k in ("estimator", "solver") if k in c.summary)
            lines.append(
                f"{c.seq:>5}  {c.charged_at[:19]}Z  {what or '-'}  total {_decimal(c.total)}"
            )
        return "\n".join(lines)

    def export(self) -> str:
        """Header, charges and macs as JSON, for an archive or an auditor. Never the key."""
        with self._verified() as pages:
            pass
        charges = [
            {**row._mapping, "event": json.loads(row.event), "summary": json.loads(row.summary)}
            for row in pages.rows
        ]
        return json.dumps({"header": dict(pages.header._mapping), "charges": charges}, indent=1)

    def _cost(self, events: Sequence[Event]) -> Spent:
        total = compose(*((event, 1) for event in events))
        return spent(total, self.ceiling.delta, adaptive=len(events) > 1, ceiling=self.ceiling)

    def _only_dataset(self) -> str:
        with self._storage.transaction() as db:
            known = datasets(db)
        if len(known) != 1:
            raise LedgerError(
                f"{self.path} holds the ledgers of {len(known)} data sets, {known}: this must be "
                "one, or you must say which with dataset=."
            )
        return known[0]

    @contextmanager
    def _verified(self) -> Iterator[_Pages]:
        """One serialised transaction that starts by verifying everything.

        The head moves here and nowhere else: under the database's write lock, and only forward.
        """
        if self._head.path is None and os.getpid() != self._pid:
            raise LedgerError(
                "A ledger in memory cannot be used in another process: both would spend the same "
                'budget. Create it in a file: Ledger.create("study.db", ...).'
            )
        with self._storage.transaction() as db:
            header = locked_header(db, self.dataset, self.path)
            seen = self._head.read()
            if seen.dataset != self.dataset:
                raise LedgerError(
                    f"{self._head.path} is the head of the ledger of {seen.dataset!r} and not of "
                    f"{self.dataset!r}, so nothing can be spent. Say with head= where the right "
                    "one is."
                )
            rows = charge_rows(db, self.dataset)
            lines = [_line(row[1:]) for row in rows]
            head = verify(seen, _line(header), lines, self.path)
            if head != seen:
                self._head.write(head)
            yield _Pages(db, header, rows, head)

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
        charges, ceiling = self.charges, self.ceiling
        used = self._cost([charge.event for charge in charges])
        return (
            f"<Ledger of {self.dataset!r}: epsilon {used.epsilon:.6g} of {ceiling.epsilon:g} spent "
            f"at delta {used.delta:g}, {ceiling.adjacency}, charges: {len(charges)}>"
        )


def _is_url(where: str | os.PathLike[str]) -> bool:
    return isinstance(where, str) and "://" in where


def _places(
    where: str | os.PathLike[str],
    head: str | os.PathLike[str] | None,
    first: Head | None = None,
) -> tuple[Storage, HeadFile | HeadInMemory]:
    """Where the charges are and where the head is. Only a new ledger can be in memory."""
    if first is not None and where == IN_MEMORY:
        if head is not None:
            raise InvalidArgument(
                "A ledger in memory keeps its head in memory. Leave out head=, or create the "
                "ledger in a file."
            )
        return in_memory(), HeadInMemory(first)
    if not _is_url(where):
        path = str(Path(where).absolute())
        return in_file(path), HeadFile(head if head is not None else f"{path}.head")
    if head is None:
        raise InvalidArgument(
            "A ledger in a database needs head=: the path of a file of your own that remembers "
            "how far the ledger went, so that you see when it is rolled back."
        )
    return in_postgresql(str(where)), HeadFile(head)


def _reopen(where: str, dataset: str, head: str) -> Ledger:
    return Ledger.open(where, dataset=dataset, head=head)


def _charge(row: Row[Any]) -> Charge:
    return Charge(
        row.seq,
        row.charged_at,
        unit_from_json(row.unit),
        from_json(row.event),
        json.loads(row.summary),
        row.total,
    )


def _unit(adjacency: str, unit: PrivacyUnit | None) -> PrivacyUnit:
    """What a plan protects. That of rows follows from their adjacency."""
    if unit is None:
        return PrivacyUnit(adjacency)
    if unit.adjacency != adjacency:
        raise InvalidArgument(
            f"adjacency={adjacency!r} and unit={unit} disagree about which data sets are "
            "neighbours. Pass the same adjacency in both."
        )
    return unit


def _run(summary: dict[str, Any]) -> str | None:
    run = summary.get("run")
    if run is not None and (not isinstance(run, str) or not run):
        raise InvalidArgument(f"The id of a run must be a text, got {run!r}. Pass its name.")
    return run


def _line(row: Sequence[Any]) -> Line:
    *fields, mac = row
    return fields, mac


def _nano(epsilon: float, rounding: str) -> int:
    """`epsilon`, as the decimal number that Python prints, in units of 1e-9."""
    return int(Decimal(repr(float(epsilon))).scaleb(9).to_integral_value(rounding))


def _decimal(nano: float) -> str:
    return f"{Decimal(nano).scaleb(-9).normalize():f}"
