"""Reports in a database that several collectors share: PostgreSQL, or SQLite for one machine."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from riata.collect.store import Records, accepted_reports
from riata.errors import CollectError
from riata.files import durable
from riata.local.report_format import first_occurrences
from riata.local.task import Task

_BATCH = 5_000
_PROBE_BYTES = 1 << 12
_TABLES = sa.MetaData()
#: Seeds as signed integers: databases have no unsigned ones. Without the numbers that SQLite gives
#: to rows as they come, which would tell when a report came.
_REPORTS = sa.Table(
    "riata_report",
    _TABLES,
    sa.Column("task", sa.LargeBinary(32), primary_key=True),
    sa.Column("seed", sa.BigInteger, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)
#: Which report a token came with. Each report stands in the table above too.
_PAIRS = sa.Table(
    "riata_pair",
    _TABLES,
    sa.Column("task", sa.LargeBinary(32), primary_key=True),
    sa.Column("token", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
#: Where `probe` writes.
_PROBES = sa.Table(
    "riata_probe",
    _TABLES,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("filler", sa.LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
_TASKS = sa.Table(
    "riata_task",
    _TABLES,
    sa.Column("task", sa.LargeBinary(32), primary_key=True),
    sa.Column("file", sa.LargeBinary, nullable=False),
)


class DatabaseStore:
    """The reports of one task in a database, by its URL, that other collectors may use too."""

    def __init__(self, url: str, task: Task) -> None:
        self._task = bytes.fromhex(task.id)
        self._written = False
        self._certain = True
        try:
            # Without hide_parameters an error's text would hold reports.
            self._engine = sa.create_engine(url, pool_pre_ping=True, hide_parameters=True)
            self._restrict_file()
            if self._engine.dialect.name not in ("sqlite", "postgresql"):
                raise CollectError(
                    f"The database is {self._engine.dialect.name}. Reports can be kept in "
                    "PostgreSQL or SQLite."
                )
            self._create_tables()
            self._count = self._begin(task)
        except (sa.exc.SQLAlchemyError, ImportError) as problem:
            raise CollectError(
                f"The database cannot be used ({type(problem).__name__}). Check its address and "
                'that its driver is installed: pip install "riata[collect,postgres]".'
            ) from None

    def _restrict_file(self) -> None:
        """A new file of SQLite is closed to other users."""
        path = self._engine.url.database
        if self._engine.dialect.name == "sqlite" and path not in (None, "", ":memory:"):
            with contextlib.suppress(OSError):  # SQLite will say what is wrong
                durable.write_new(path, b"")

    def _create_tables(self) -> None:
        try:
            _TABLES.create_all(self._engine)
        except sa.exc.DBAPIError:  # another collector began at the same moment
            _TABLES.create_all(self._engine)

    def _begin(self, task: Task) -> int:
        """Name the task, and say how many reports it has."""
        with self._engine.begin() as connection:
            row = {"task": self._task, "file": task.canonical}
            connection.execute(self._insert(_TASKS), [row])
            return self._count_reports(connection)

    def _count_reports(self, connection: sa.Connection) -> int:
        query = sa.select(sa.func.count()).where(_REPORTS.c.task == self._task)
        return int(connection.execute(query.select_from(_REPORTS)).scalar_one())

    def _insert(self, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
        """An insertion that leaves out what is there already."""
        if self._engine.dialect.name == "sqlite":
            return sqlite.insert(table).on_conflict_do_nothing()
        return postgresql.insert(table).on_conflict_do_nothing()

    def __len__(self) -> int:
        """What was there at the start, and what this collector has added.

        After an error, which may have come before or after the rows were kept, all that is there.
        """
        return self._count

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray:
        """As `Store.add`, with tokens and reports in one transaction.

        Of two collectors that meet the same unused token at once, only one accepts it.
        """
        try:
            with self._transaction() as connection:
                accepted = np.ones(len(seeds), dtype=bool)
                if tokens is not None:
                    # In the order of the tokens, then of the reports: collectors that wait for
                    # each other's rows never do so in a circle.
                    unused = self._insert_pairs(connection, seeds, tokens)
                    accepted = accepted_reports(seeds, unused, self._stored(connection, seeds))
                new = self._insert_reports(connection, seeds[accepted])
        except BaseException:
            self._certain = False
            with contextlib.suppress(Exception):
                self._recount()
            raise
        self._count += new
        self._written = True
        with contextlib.suppress(Exception):  # the reports are kept, whatever comes of it
            self._recount()
        return accepted

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except sa.exc.DBAPIError as problem:
            raise _without_room(problem) or problem from None

    def _recount(self) -> None:
        """Count what is there, if an error has left that open."""
        if not self._certain:
            with self._engine.connect() as connection:
                self._count = self._count_reports(connection)
            self._certain = True

    def _insert_pairs(
        self, connection: sa.Connection, seeds: np.ndarray, tokens: np.ndarray
    ) -> np.ndarray:
        """Insert the tokens that are not there with their reports, and say which they are."""
        first = np.flatnonzero(first_occurrences(tokens))
        signed = tokens.view(np.int64)
        first = first[np.argsort(signed[first])]
        pairs = zip(signed[first].tolist(), seeds.view(np.int64)[first].tolist(), strict=True)
        rows = [{"task": self._task, "token": token, "seed": seed} for token, seed in pairs]
        new = self._insert_new(connection, rows, _PAIRS.c.token)
        unused = np.zeros(len(tokens), dtype=bool)
        unused[first] = np.isin(signed[first], np.array(new, dtype=np.int64))
        return unused

    def _insert_reports(self, connection: sa.Connection, seeds: np.ndarray) -> int:
        """Insert the reports that are not there, and say how many they are."""
        rows = [{"task": self._task, "seed": seed} for seed in _signed(seeds)]
        return len(self._insert_new(connection, rows, _REPORTS.c.seed))

    def _insert_new(
        self, connection: sa.Connection, rows: list[dict[str, Any]], key: sa.Column[int]
    ) -> list[int]:
        """Insert the rows that are not in the table of a key, and return their keys."""
        new: list[int] = []
        for start in range(0, len(rows), _BATCH):
            statement = self._insert(key.table).values(rows[start : start + _BATCH])
            new += connection.execute(statement.returning(key)).scalars()
        return new

    def contains(self, seeds: np.ndarray) -> np.ndarray:
        with self._engine.connect() as connection:
            return self._stored(connection, seeds)

    def probe(self) -> None:
        row = {"id": secrets.randbits(63), "filler": bytes(_PROBE_BYTES)}
        with self._transaction() as connection:
            connection.execute(sa.insert(_PROBES), row)
        with self._transaction() as connection:
            connection.execute(sa.delete(_PROBES).where(_PROBES.c.id == row["id"]))
        self._recount()

    def _stored(self, connection: sa.Connection, seeds: np.ndarray) -> np.ndarray:
        """Which of the reports are there."""
        asked, found = _signed(seeds), list[int]()
        for start in range(0, len(asked), _BATCH):
            query = sa.select(_REPORTS.c.seed).where(
                _REPORTS.c.task == self._task, _REPORTS.c.seed.in_(asked[start : start + _BATCH])
            )
            found += connection.execute(query).scalars()
        return np.isin(seeds, np.array(found, dtype=np.int64).view(np.uint64))

    def records(self) -> Records:
        reports = sa.select(_REPORTS.c.seed).where(_REPORTS.c.task == self._task)
        pairs = sa.select(_PAIRS.c.seed, _PAIRS.c.token).where(_PAIRS.c.task == self._task)
        with self._engine.connect() as connection:
            # In this order: a report that is found and had a token is found with it.
            seeds = np.array(connection.execute(reports).scalars().all(), dtype=np.int64)
            rows = np.array([tuple(row) for row in connection.execute(pairs)], dtype=np.int64)
        words, both = seeds.view(np.uint64), rows.reshape(-1, 2).view(np.uint64)
        return Records(words[~np.isin(words, both[:, 0])], both[:, 0], both[:, 1])

    def close(self) -> None:
        """Let go of the database, with all rows of SQLite in the order of their keys."""
        if self._engine.dialect.name == "sqlite" and self._written:
            with contextlib.suppress(sa.exc.DBAPIError), self._engine.connect() as connection:
                connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")
        self._engine.dispose()


def _signed(words: np.ndarray) -> list[int]:
    """Each word once, in order, as databases have them."""
    once: list[int] = np.unique(words.view(np.int64)).tolist()
    return once


def _without_room(problem: sa.exc.DBAPIError) -> OSError | None:
    """The error of a full disk, if it is one: 53100 in PostgreSQL, SQLITE_FULL in SQLite."""
    full = getattr(problem.orig, "sqlstate", None) == "53100" or (
        getattr(problem.orig, "sqlite_errorname", None) == "SQLITE_FULL"
    )
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if full else None
