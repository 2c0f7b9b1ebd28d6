"""Where a ledger's entries are kept: SQLite or PostgreSQL, one writer at a time."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from riata.errors import InvalidArgument, LedgerError
from riata.files import durable

#: How long a transaction waits for others, in seconds.
PATIENCE = 60

#: One transaction at a time in this process, and no fork during one: the child would inherit a
#: connection, and the locks that SQLite believes to hold.
_TURN = threading.Lock()

if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(
        before=_TURN.acquire, after_in_parent=_TURN.release, after_in_child=_TURN.release
    )


@dataclass(frozen=True)
class Database:
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


def memory_database() -> Database:
    engine = create_engine(
        "sqlite://", poolclass=StaticPool, creator=lambda: _connect(":memory:", uri=False)
    )
    return _starting_with(engine, ":memory:", "BEGIN IMMEDIATE")


def file_database(path: str) -> Database:
    # mode=rw: a ledger that was deleted is an error, never a new and empty one
    uri = f"{Path(path).as_uri()}?mode=rw"
    engine = create_engine("sqlite://", poolclass=NullPool, creator=lambda: _connect(uri, uri=True))
    return _starting_with(engine, path, "BEGIN IMMEDIATE", place=partial(only_name, path))


def read_only_database(path: str) -> Database:
    """A file that nobody writes to."""
    uri = f"{Path(path).as_uri()}?mode=ro&immutable=1"
    engine = create_engine("sqlite://", poolclass=NullPool, creator=lambda: _connect(uri, uri=True))
    return _starting_with(engine, path, "BEGIN")


def postgresql_database(url: str) -> Database:
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
        engine, url, "SET LOCAL synchronous_commit = on", f"SET LOCAL lock_timeout = '{PATIENCE}s'"
    )


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
            "Go on with that one, or choose another path."
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
    engine: Engine, where: str, *statements: str, place: Callable[[], object] = lambda: None
) -> Database:
    @event.listens_for(engine, "begin")
    def begin(db: Connection) -> None:
        for statement in statements:
            db.exec_driver_sql(statement)

    return Database(where, engine, place)


def _not_a_url(url: str) -> InvalidArgument:
    return InvalidArgument(
        f"{url.split('://')[0]}:// is not the beginning of a ledger's URL. Write "
        "postgresql+psycopg://user@host/database, or the path of a file."
    )
