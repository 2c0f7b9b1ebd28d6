"""The record of what was spent on a data set, and the refusal to spend more than its ceiling."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from riata.errors import BudgetExceeded, InvalidArgument, LedgerError
from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget
from riata.privacy.events import Composed, Event, compose, from_json, to_json

IN_MEMORY = ":memory:"

_VERSION = 1

_SCHEMA = """
CREATE TABLE ledger (
    version INTEGER NOT NULL,
    dataset TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    adjacency TEXT NOT NULL
);
CREATE TABLE charge (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    charged_at TEXT NOT NULL,
    event TEXT NOT NULL,
    summary TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class Charge:
    """One line of the ledger."""

    seq: int
    charged_at: str
    event: Composed
    summary: dict[str, Any]


class Ledger:
    """An append-only record of the privacy spent on one data set.

    Make one with `Ledger.create` and use it again with `Ledger.open`. Give it to estimators as
    ``ledger=``: a fit charges its whole plan before it reads a row, and a plan that does not fit
    under the ceiling is refused with nothing charged. What was charged is never refunded.

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

    def __init__(self, path: str, memory: sqlite3.Connection | None = None) -> None:
        self.path = path
        self._memory = memory
        self._pid = os.getpid()
        self._lock = threading.Lock()
        if memory is not None:
            weakref.finalize(self, memory.close)
        with self._transaction() as db:
            rows = db.execute(
                "SELECT version, dataset, epsilon, delta, adjacency FROM ledger"
            ).fetchall()
        try:
            ((version, self.dataset, *ceiling),) = rows
            self.ceiling = Budget(*ceiling)
            if version != _VERSION:
                raise ValueError("version")
        except ValueError:
            raise LedgerError(
                f"{path} is not a ledger that this version of riata can read. "
                "Check the path, or upgrade riata."
            ) from None

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, dataset: str, ceiling: Budget) -> Ledger:
        """Start the ledger of a data set.

        Parameters
        ----------
        path : path-like or ":memory:"
            A file that does not exist yet, or ":memory:" for a ledger that lives and dies with
            this process.
        dataset : str
            The name of the data set whose rows this budget protects.
        ceiling : Budget
            The most that all charges together may cost. Its delta is the one at which the total
            is computed.
        """
        if not isinstance(ceiling, Budget):
            raise InvalidArgument(
                f"ceiling must be a Budget, got {type(ceiling).__name__}. "
                "Write ceiling=Budget(epsilon, delta)."
            )
        memory, where = None, os.fspath(path)
        if where == IN_MEMORY:
            memory = sqlite3.connect(IN_MEMORY, isolation_level=None, check_same_thread=False)
        else:
            where = str(Path(where).absolute())
            try:
                os.close(os.open(where, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            except FileExistsError:
                raise LedgerError(
                    f"{where} exists: a new ledger there would forget what was spent. "
                    "Use Ledger.open, or another path."
                ) from None
            except OSError as error:
                raise LedgerError(
                    f"{where} cannot be created ({error.strerror}), so nothing could be recorded "
                    "durably. Choose a directory that you can write to."
                ) from None
        header = (_VERSION, dataset, ceiling.epsilon, ceiling.delta, ceiling.adjacency)
        db = memory or _connect(where)
        try:
            db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}")
            db.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?)", header)
            db.execute("COMMIT")
        finally:
            if memory is None:
                db.close()
        return cls(where, memory)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Ledger:
        """Open the ledger that `create` started at `path`."""
        where = Path(path).absolute()
        if not where.is_file():
            raise LedgerError(f"{where} does not exist. Start a ledger there with Ledger.create.")
        return cls(str(where))

    def charge(self, event: Event, *, adjacency: str, summary: dict[str, Any]) -> int:
        """Record a plan's whole cost, or raise `BudgetExceeded` and record nothing."""
        if adjacency != self.ceiling.adjacency:
            raise BudgetExceeded(
                f"This ledger counts {self.ceiling.adjacency} neighbours and the plan "
                f"{adjacency} ones: their costs cannot be added. "
                f"Fit with adjacency={self.ceiling.adjacency!r}."
            )
        record = (
            datetime.now(UTC).isoformat(),
            to_json(event),
            json.dumps(summary, sort_keys=True),
        )
        with self._transaction() as db:
            before = [charge.event for charge in _read(db)]
            total = self._cost([*before, event])
            if math.isinf(total.epsilon) or total.epsilon > self.ceiling.epsilon:
                used = self._cost(before)
                raise BudgetExceeded(
                    f"The plan does not fit: with it, {self.dataset!r} would have spent epsilon "
                    f"{total.epsilon:.6g} at delta {total.delta:g}, and its ceiling is "
                    f"{self.ceiling.epsilon:g}. So far {used.epsilon:.6g} is spent. Nothing was "
                    "charged. Ask for a smaller epsilon."
                )
            cursor = db.execute(
                "INSERT INTO charge (charged_at, event, summary) VALUES (?, ?, ?)", record
            )
        return int(cursor.lastrowid or 0)

    @property
    def charges(self) -> list[Charge]:
        """Every charge, in order."""
        with self._transaction() as db:
            return _read(db)

    @property
    def spent(self) -> Spent:
        """What all charges cost together, at the ceiling's delta: composed, not summed.

        Later charges may depend on what earlier models showed, so from the second charge on only
        sums that are privacy filters count.
        """
        return self._cost([charge.event for charge in self.charges])

    def _cost(self, events: Sequence[Event]) -> Spent:
        total = compose(*((event, 1) for event in events))
        return spent(total, self.ceiling.delta, adaptive=len(events) > 1)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One serialised read or read-and-append."""
        if self._memory is not None and os.getpid() != self._pid:
            raise LedgerError(
                "A ledger in memory cannot be used in another process: both would spend the same "
                'budget. Create it in a file: Ledger.create("study.db", ...).'
            )
        with self._lock:
            db = self._memory
            try:
                db = db or _connect(self.path)
                db.execute("BEGIN IMMEDIATE")
                yield db
                db.execute("COMMIT")
            except sqlite3.Error as error:
                raise LedgerError(
                    f"The ledger {self.path} cannot be used ({error}), so nothing can be spent. "
                    "Check that the file is a ledger, is writable and that the disk has room."
                ) from error
            finally:
                if db is not None and db.in_transaction:
                    db.execute("ROLLBACK")
                if db is not None and self._memory is None:
                    db.close()

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __sklearn_clone__(self) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._memory is not None:
            raise LedgerError(
                "A ledger in memory cannot be pickled: the copy would have a budget of its own. "
                'Create it in a file: Ledger.create("study.db", ...).'
            )
        return (Ledger.open, (self.path,))

    def __repr__(self) -> str:
        charges, ceiling = self.charges, self.ceiling
        used = self._cost([charge.event for charge in charges])
        return (
            f"<Ledger of {self.dataset!r}: epsilon {used.epsilon:.6g} of {ceiling.epsilon:g} spent "
            f"at delta {used.delta:g}, {ceiling.adjacency}, charges: {len(charges)}>"
        )


def _connect(path: str) -> sqlite3.Connection:
    # mode=rw: a ledger that was deleted is an error, never a new and empty one
    db = sqlite3.connect(
        f"file:{quote(path)}?mode=rw", uri=True, timeout=60.0, isolation_level=None
    )
    try:
        db.execute("PRAGMA synchronous = EXTRA")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _read(db: sqlite3.Connection) -> list[Charge]:
    rows = db.execute("SELECT seq, charged_at, event, summary FROM charge ORDER BY seq").fetchall()
    try:
        return [
            Charge(seq, at, from_json(event), json.loads(text)) for seq, at, event, text in rows
        ]
    except ValueError:
        raise LedgerError(
            "A recorded charge cannot be read. Restore the ledger from a copy that riata wrote."
        ) from None
