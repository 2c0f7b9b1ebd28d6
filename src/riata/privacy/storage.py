"""Where a ledger's lines are kept: SQLite or PostgreSQL, one writer at a time."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    Row,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from riata.errors import InvalidArgument, LedgerError
from riata.privacy.chain import sync_directory

#: How long a transaction waits for others, in seconds.
PATIENCE = 60

#: Of the tables below, and of what stands in them.
VERSION = 1

TABLES = MetaData()

HEADER = Table(
    "ledger",
    TABLES,
    Column("dataset", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("ceiling", BigInteger, nullable=False),  # in nano-epsilon
    Column("delta", Text, nullable=False),
    Column("adjacency", Text, nullable=False),
    Column("person", Text, nullable=False),  # the column of people; empty: the first charge's
    Column("mac", Text, nullable=False),
)

CHARGE = Table(
    "charge",
    TABLES,
    Column("dataset", Text, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("charged_at", Text, nullable=False),
    Column("run", Text),  # of a fit with a checkpoint
    Column("unit", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("total", BigInteger, nullable=False),  # nano-epsilon of all charges up to this one
    Column("mac", Text, nullable=False),
    UniqueConstraint("dataset", "run"),  # a run is charged once
)

#: One transaction at a time in this process, and no fork during one: the child would inherit a
#: connection, and the locks that SQLite believes to hold.
_TURN = threading.Lock()

if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(
        before=_TURN.acquire, after_in_parent=_TURN.release, after_in_child=_TURN.release
    )


@dataclass(frozen=True)
class Storage:
    """A database, and how to open it again."""

    where: str
    engine: Engine

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One serialised read or read-and-append. In PostgreSQL, lock the header first."""
        with _TURN:
            try:
                with self.engine.begin() as db:
                    yield db
            except (SQLAlchemyError, UnicodeError) as error:  # damaged text in a damaged file
                reason = " ".join(str(getattr(error, "orig", None) or error).split())
                raise LedgerError(
                    f"The ledger {self.where} cannot be used ({reason}), so nothing can be spent. "
                    "Check that it is a ledger, that it is writable and that the disk has room."
                ) from error


def in_memory() -> Storage:
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, creator=lambda: _connect(":memory:", uri=False)
    )
    return _starting_with(engine, ":memory:", "BEGIN IMMEDIATE")


def in_file(path: str) -> Storage:
    # mode=rw: a ledger that was deleted is an error, never a new and empty one
    uri = f"file:{quote(path)}?mode=rw"
    engine = create_engine("sqlite://", poolclass=NullPool, creator=lambda: _connect(uri, uri=True))
    return _starting_with(engine, path, "BEGIN IMMEDIATE")


def in_postgresql(url: str) -> Storage:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise _not_a_url(url) from None
    if parsed.get_backend_name() != "postgresql":
        raise _not_a_url(url)
    if parsed.password is not None or "password" in parsed.query:
        raise InvalidArgument(
            "The URL of a ledger must not contain a password: every pickled model would carry it. "
            "Put the password into ~/.pgpass or PGPASSWORD, where PostgreSQL's client finds it."
        )
    try:
        engine = create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            poolclass=NullPool,
            isolation_level="READ COMMITTED",
            connect_args={"connect_timeout": PATIENCE},
        )
    except (ModuleNotFoundError, NoSuchModuleError):
        raise LedgerError(
            "A ledger in PostgreSQL needs psycopg. Install it with: pip install 'riata[postgres]'."
        ) from None
    return _starting_with(
        engine,
        url,
        "SET LOCAL synchronous_commit = on",
        f"SET LOCAL lock_timeout = '{PATIENCE}s'",
    )


def datasets(db: Connection) -> list[str]:
    return sorted(map(str, db.execute(select(HEADER.c.dataset)).scalars()))


def locked_header(db: Connection, dataset: str, where: str) -> Row[Any]:
    """The header's row, locked: whoever else wants to write waits here or before."""
    wanted = select(HEADER).where(HEADER.c.dataset == dataset).with_for_update()
    row = db.execute(wanted).one_or_none()
    if row is None:
        raise LedgerError(
            f"{where} has no ledger of {dataset!r}, only of {datasets(db)}. Check dataset=."
        )
    if row.version != VERSION:
        raise LedgerError(
            f"{where} is not a ledger that this version of riata can read. "
            "Check the path, or upgrade riata."
        )
    return row


def charge_rows(db: Connection, dataset: str) -> Sequence[Row[Any]]:
    return db.execute(
        select(CHARGE).where(CHARGE.c.dataset == dataset).order_by(CHARGE.c.seq)
    ).all()


def charge_row_of(db: Connection, dataset: str, run: str) -> Row[Any] | None:
    return db.execute(
        select(CHARGE).where(CHARGE.c.dataset == dataset, CHARGE.c.run == run)
    ).one_or_none()


def create_file(path: str) -> None:
    """An empty SQLite file of our own, in WAL mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise LedgerError(
            f"{path} exists: a new ledger there would forget what was spent. "
            "Use Ledger.open, or another path."
        ) from None
    except OSError as error:
        raise _cannot_be_created(path, error) from None
    try:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
        sync_directory(path)
    except (sqlite3.Error, OSError) as error:
        os.unlink(path)
        raise _cannot_be_created(path, error) from None


def _cannot_be_created(path: str, error: Exception) -> LedgerError:
    return LedgerError(
        f"{path} cannot be created ({getattr(error, 'strerror', None) or error}), so nothing could "
        "be recorded durably. Choose a directory that you can write to, on a disk with room."
    )


def _connect(database: str, *, uri: bool) -> sqlite3.Connection:
    db = sqlite3.connect(
        database, uri=uri, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute("PRAGMA synchronous = FULL")
    except BaseException:
        db.close()
        raise
    return db


def _starting_with(engine: Engine, where: str, *statements: str) -> Storage:
    @event.listens_for(engine, "begin")
    def begin(db: Connection) -> None:
        for statement in statements:
            db.exec_driver_sql(statement)

    return Storage(where, engine)


def _not_a_url(url: str) -> InvalidArgument:
    return InvalidArgument(
        f"{url.split('://')[0]}:// is not the beginning of a ledger's URL. Write "
        "postgresql+psycopg://user@host/database, or the path of a file."
    )
