"""Reports in a database that several collectors share: PostgreSQL, or SQLite for one machine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from riata.errors import CollectError
from riata.local.task import Task

_BATCH = 5_000
_TABLES = sa.MetaData()
#: Seeds as signed integers: databases have no unsigned ones.
_REPORTS = sa.Table(
    "riata_report",
    _TABLES,
    sa.Column("task", sa.LargeBinary(32), primary_key=True),
    sa.Column("seed", sa.BigInteger, primary_key=True, autoincrement=False),
)
_TOKENS = sa.Table(
    "riata_token",
    _TABLES,
    sa.Column("task", sa.LargeBinary(32), primary_key=True),
    sa.Column("seed", sa.BigInteger, primary_key=True, autoincrement=False),
)
_TASKS = sa.Table(
    "riata_task",
    _TABLES,
    sa.Column("task", sa.LargeBinary(32), primary_key=True),
    sa.Column("file", sa.LargeBinary, nullable=False),
)


class Database:
    """The reports of one task in a database that other collectors may use too.

    Parameters
    ----------
    url : str
        As SQLAlchemy has it: ``postgresql+psycopg://...``.
    task : Task
    """

    def __init__(self, url: str, task: Task) -> None:
        self._task = bytes.fromhex(task.id)
        try:
            self._engine = sa.create_engine(url, pool_pre_ping=True)
            _TABLES.create_all(self._engine)
        except (sa.exc.SQLAlchemyError, ImportError) as problem:
            raise CollectError(
                f"The database cannot be used ({type(problem).__name__}). Check its address and "
                'that its driver is installed: pip install "riata[collect,postgres]".'
            ) from None
        with self._engine.begin() as connection:
            row = {"task": self._task, "file": task.canonical}
            connection.execute(self._insert(_TASKS), [row])
            query = sa.select(sa.func.count()).where(_REPORTS.c.task == self._task)
            self._count = int(connection.execute(query.select_from(_REPORTS)).scalar_one())

    def _insert(self, table: sa.Table) -> sa.Insert:
        """An insertion that leaves out what is there already."""
        if self._engine.dialect.name == "sqlite":
            return sqlite.insert(table).on_conflict_do_nothing()
        return postgresql.insert(table).on_conflict_do_nothing()

    def __len__(self) -> int:
        """What was there at the start, and what this collector has added."""
        return self._count

    def add(self, seeds: np.ndarray, tokens: np.ndarray | None = None) -> np.ndarray:
        """Keep the reports that are new, durably, and say which were accepted, as `Directory` does.

        Of two collectors that meet the same unused token at once, only one accepts it.
        """
        with self._engine.begin() as connection:
            if tokens is None:
                self._count += self._keep(connection, _REPORTS, seeds)
                return np.ones(len(seeds), dtype=bool)
            accepted = self._held(connection, _REPORTS, seeds)
            for i in np.flatnonzero(~accepted):
                accepted[i] = self._keep(connection, _TOKENS, tokens[i : i + 1]) == 1
            self._count += self._keep(connection, _REPORTS, seeds[accepted])
            return accepted

    def _keep(self, connection: sa.Connection, table: sa.Table, words: np.ndarray) -> int:
        """Insert words that are not there, and say how many they were."""
        rows = [{"task": self._task, "seed": int(word)} for word in np.unique(words).view(np.int64)]
        new = 0
        for start in range(0, len(rows), _BATCH):
            statement = self._insert(table).values(rows[start : start + _BATCH])
            new += connection.execute(statement).rowcount
        return new

    def _held(self, connection: sa.Connection, table: sa.Table, words: np.ndarray) -> np.ndarray:
        """Which of the words are there."""
        query = sa.select(table.c.seed).where(
            table.c.task == self._task, table.c.seed.in_(words.view(np.int64).tolist())
        )
        found = np.array(connection.execute(query).scalars().all(), dtype=np.int64)
        return np.isin(words.view(np.int64), found)

    def batches(self) -> Iterator[np.ndarray]:
        """All reports, some at a time."""
        query = sa.select(_REPORTS.c.seed).where(_REPORTS.c.task == self._task)
        with self._engine.connect() as connection:
            streamed = connection.execution_options(yield_per=_BATCH).execute(query)
            for part in streamed.scalars().partitions():
                yield np.array(part, dtype=np.int64).view(np.uint64)

    def close(self) -> None:
        self._engine.dispose()
