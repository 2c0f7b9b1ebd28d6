"""Where a ledger's lines are kept: SQLite or PostgreSQL, one writer at a time."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

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
    func,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from riata.errors import InvalidArgument, LedgerError
from riata.files import durable

#: How long a transaction waits for others, in seconds.
PATIENCE = 60

#: Of the tables below, and of what stands in them.
VERSION = 1

TABLES = MetaData()

#: PostgreSQL's lock for making the tables: any number that others are unlikely to use.
_CREATION = int.from_bytes(b"riata", "big")

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
    Column("sums", Text, nullable=False),  # of all charges up to this one, exactly
    Column("total", BigInteger, nullable=False),  # nano-epsilon of all charges up to this one
    Column("mac", Text, nullable=False),
    UniqueConstraint("dataset", "run"),  # a run is charged once
)

#: Over which rows a run with a checkpoint is: a keyed code of them, that reveals nothing.
RUN_ROWS = Table(
    "run_rows",
    TABLES,
    Column("dataset", Text, primary_key=True),
    Column("run", Text, primary_key=True),
    Column("code", Text, nullable=False),
    Column("mac", Text, nullable=False),
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
    #: Raises if locks and journals do not hold in this place; else says which file is there.
    place: Callable[[], object] = field(default=lambda: None)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One serialised read or read-and-append. In PostgreSQL, lock the header first."""
        with _TURN, self.guarded():
            before = self.place()  # before SQLite looks for a journal
            with self.engine.begin() as db:
                if self.place() != before:
                    raise LedgerError(
                        f"The ledger {self.where} was exchanged for another file just now. "
                        "Nothing was charged. Try again."
                    )
                yield db

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """What the database says, as an error of the ledger."""
        try:
            yield
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
    uri = f"{Path(path).as_uri()}?mode=rw"
    engine = create_engine("sqlite://", poolclass=NullPool, creator=lambda: _connect(uri, uri=True))
    return _starting_with(engine, path, "BEGIN IMMEDIATE", place=partial(only_name, path))


def in_file_for_reading(path: str) -> Storage:
    """A file that nobody writes to."""
    uri = f"{Path(path).as_uri()}?mode=ro&immutable=1"
    engine = create_engine("sqlite://", poolclass=NullPool, creator=lambda: _connect(uri, uri=True))
    return _starting_with(engine, path, "BEGIN")


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


def create_tables(db: Connection) -> None:
    """Make the tables where there are none. Whoever else does so at the same time waits."""
    if db.dialect.name == "postgresql":  # which does not serialise the making of tables
        db.execute(select(func.pg_advisory_xact_lock(_CREATION)))
    TABLES.create_all(db)


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


def last_seq(db: Connection, dataset: str) -> int:
    """The last number of a charge, or 0."""
    last = db.execute(select(func.max(CHARGE.c.seq)).where(CHARGE.c.dataset == dataset)).scalar()
    return last if type(last) is int else 0  # SQLite lets anything stand in a column


def charge_rows(db: Connection, dataset: str, start: int = 1) -> Sequence[Row[Any]]:
    """The charges from a number on."""
    wanted = select(CHARGE).where(CHARGE.c.dataset == dataset)
    if start > 1:  # otherwise all, also what has an impossible number
        wanted = wanted.where(CHARGE.c.seq >= start)
    return db.execute(wanted.order_by(CHARGE.c.seq)).all()


def charge_rows_at(db: Connection, dataset: str, seqs: Collection[int]) -> Sequence[Row[Any]]:
    """The charges that have these numbers."""
    wanted = select(CHARGE).where(CHARGE.c.dataset == dataset, CHARGE.c.seq.in_(seqs))
    return db.execute(wanted.order_by(CHARGE.c.seq)).all()


def macs_at(db: Connection, dataset: str, seqs: Collection[int]) -> dict[int, object]:
    """The macs that are stored with these numbers."""
    wanted = select(CHARGE.c.seq, CHARGE.c.mac)
    found = db.execute(wanted.where(CHARGE.c.dataset == dataset, CHARGE.c.seq.in_(seqs)))
    return {row.seq: row.mac for row in found}


def charge_row_of(db: Connection, dataset: str, run: str) -> Row[Any] | None:
    """The charge of a run."""
    wanted = select(CHARGE).where(CHARGE.c.dataset == dataset, CHARGE.c.run == run)
    return db.execute(wanted).one_or_none()


def create_file(path: str) -> None:
    """An empty SQLite file of our own.

    With a rollback journal, which is SQLite's default: its locks are on the file itself, whatever
    it is called. Those of a WAL are on a file beside it.
    """
    try:
        durable.create(path, b"")
    except FileExistsError:
        raise LedgerError(
            f"{path} exists: a new ledger there would forget what was spent. "
            "Use Ledger.open, or another path."
        ) from None
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be created ({error.strerror}), so nothing could be recorded durably. "
            "Choose a directory that you can write to, on a disk with room."
        ) from None


def only_name(path: str) -> tuple[int, int]:
    """Which file has this name, or an error if it has a second one.

    SQLite's journal lies beside the name that was used. Whoever comes by another name after a crash
    does not find it, and reads what was half written.
    """
    try:
        file = os.stat(path)
    except OSError as error:
        raise LedgerError(
            f"The ledger {path} cannot be found any more ({error.strerror}), so nothing can be "
            "spent. Put it back where it was."
        ) from None
    if file.st_nlink > 1:
        raise LedgerError(
            f"The file {path} has {file.st_nlink} names (hard links), so nothing can be spent: "
            "after a crash one of them would not see what the other was writing. Remove the "
            "others, and make copies with: riata ledger backup."
        )
    if path in _mount_points():
        raise LedgerError(
            f"The file {path} is mounted by itself, so nothing can be spent: under its other name "
            "it has another directory, and after a crash one would not see what the other was "
            "writing. Mount the directory that it is in."
        )
    return file.st_dev, file.st_ino


def _mount_points() -> set[str]:
    """Where something is mounted, as far as the system says: Linux does."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            fields = [line.split(b" ")[4] for line in file]
    except (OSError, IndexError):
        return set()
    octal = re.compile(rb"\\([0-7]{3})")
    return {
        os.fsdecode(octal.sub(lambda found: bytes([int(found[1], 8)]), each)) for each in fields
    }


def _connect(database: str, *, uri: bool) -> sqlite3.Connection:
    db = sqlite3.connect(
        database, uri=uri, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        db.execute("PRAGMA synchronous = EXTRA")  # or a commit may come undone with the power
        (mode,) = db.execute("PRAGMA journal_mode = DELETE").fetchone()
        if mode == "wal":  # somebody changed it, and has the file open
            raise sqlite3.OperationalError("it is in WAL mode, whose locks depend on its name")
    except BaseException:
        db.close()
        raise
    return db


def _starting_with(
    engine: Engine,
    where: str,
    *statements: str,
    place: Callable[[], object] = lambda: None,
) -> Storage:
    @event.listens_for(engine, "begin")
    def begin(db: Connection) -> None:
        for statement in statements:
            db.exec_driver_sql(statement)

    return Storage(where, engine, place)


def _not_a_url(url: str) -> InvalidArgument:
    return InvalidArgument(
        f"{url.split('://')[0]}:// is not the beginning of a ledger's URL. Write "
        "postgresql+psycopg://user@host/database, or the path of a file."
    )
