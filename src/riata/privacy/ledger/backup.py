"""Backups of a ledger, and a restore that forgets no charge.

A backup is a ledger's entries in a file of its own, with their macs and without the key. The rules
of a restore, and why they hold, are in docs/privacy/ledger.md.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from riata.errors import InvalidArgument, LedgerError
from riata.files import durable
from riata.privacy.ledger.charge import is_charge
from riata.privacy.ledger.database import Database, create_file, file_database, read_only_database
from riata.privacy.ledger.entries import Entries, charge_entry, header_entry
from riata.privacy.ledger.hash_chain import Head, is_genuine, verify
from riata.privacy.ledger.head import HeadFile
from riata.privacy.ledger.location import PathLike, is_url, locate
from riata.privacy.ledger.tables import (
    CHARGE,
    HEADER,
    VERSION,
    charge_rows,
    charge_rows_at,
    create_tables,
)


@dataclass(frozen=True)
class Restoration:
    """What `Ledger.restore` did."""

    dataset: str
    #: How many the ledger has now, and how many of them are newer than the backup.
    charges: int
    kept: int
    changed: bool
    #: Where the damaged file is now, if there was one.
    aside: str = ""


@dataclass(frozen=True)
class _StoredEntries:
    """The entries that some place has: all of them genuine, or what can still be read."""

    header: Row[Any] | None = None
    rows: Sequence[Row[Any]] = ()
    #: Whether this is all that the place has.
    complete: bool = True

    @property
    def macs(self) -> dict[int, object]:
        return {row.seq: row.mac for row in self.rows}


def write_backup(
    entries: Entries, file: PathLike, reserved: Iterable[str | None], force: bool
) -> None:
    """Write verified entries to a file, never to a `reserved` one; `force` replaces an old one."""
    path = os.path.realpath(file)
    if path in {os.path.realpath(each) for each in reserved if each is not None}:
        raise InvalidArgument(
            f"{path} is the ledger itself, or its head. Choose another place for the backup."
        )
    if os.path.lexists(path) and not force:
        raise InvalidArgument(f"{path} exists. Choose another name, or pass --force.")
    new = _new_file(path, entries.header, entries.rows)
    os.replace(new, path)
    durable.sync_directory(path)


def restore(backup: PathLike, where: PathLike, *, head: PathLike | None = None) -> Restoration:
    """Bring a ledger back from a backup, with every charge that anything still knows of.

    Raises LedgerError if a charge would be forgotten, or might be. Nothing is changed then.
    """
    database, kept = locate(where, head)
    assert isinstance(kept, HeadFile)
    seen = kept.read()
    saved = _read_backup(os.path.realpath(backup), seen)
    if is_url(where):
        with database.transaction() as db:
            create_tables(db)
            return _restored_in(db, seen, saved, database.where)
    if os.path.lexists(database.where):
        with contextlib.suppress(_Unusable), _locked(database) as db:
            return _restored_in(db, seen, saved, database.where, swap=True)
    merged = _merged(saved, _StoredEntries(), seen, database.where)
    _check_newest(seen, saved)
    aside = _exchange(database.where, saved.header, merged)
    return replace(_result(seen, saved, merged), aside=aside)


class _Unusable(Exception):
    """A file that is no database any more."""


@contextlib.contextmanager
def _locked(database: Database) -> Iterator[Connection]:
    """A transaction, if the file is still one in which there can be one."""
    usable = False
    try:
        with database.transaction() as db:
            inspect(db).get_table_names()
            usable = True
            yield db
    except LedgerError:
        if usable:
            raise
        raise _Unusable from None


def _read_backup(path: str, seen: Head) -> _StoredEntries:
    if not os.path.isfile(path):
        raise LedgerError(f"{path} does not exist, or is no file. Say where the backup is.")
    with read_only_database(path).transaction() as db:
        header = _header(db, seen.dataset)
        if header is None:
            found = sorted(map(str, db.execute(select(HEADER.c.dataset)).scalars()))
            raise LedgerError(
                f"{path} is a backup of the ledger of {found}, and the head is that of "
                f"{seen.dataset!r}. Nothing was changed. Find the backup or the head that belongs "
                "to the other."
            )
        if header.version != VERSION:
            raise LedgerError(
                f"{path} was written by another version of riata. Nothing was changed. Restore it "
                "with that version."
            )
        rows = charge_rows(db, seen.dataset)
    fresh = replace(seen, seq=0, mac=str(header.mac))
    verify(fresh, header_entry(header), [charge_entry(row) for row in rows], path)
    return _StoredEntries(header, rows)


def _restored_in(
    db: Connection, seen: Head, saved: _StoredEntries, where: str, *, swap: bool = False
) -> Restoration:
    """Restore in a transaction. A damaged file is not written to but exchanged."""
    found = _readable(db, seen, len(saved.rows))
    merged = _merged(saved, found, seen, where)
    whole = _whole(found, seen, where)
    result = _result(seen, saved, merged)
    if whole and len(merged) == len(found.rows):
        return replace(result, changed=False)
    _check_newest(seen, saved)
    if swap:
        aside = _exchange(where, saved.header, merged)
        db.rollback()  # of a file that is elsewhere now
        return replace(result, aside=aside)
    for table in (CHARGE, HEADER):
        db.execute(delete(table).where(table.c.dataset == seen.dataset))
    _insert(db, merged, saved.header)
    return result


def _result(seen: Head, saved: _StoredEntries, merged: Sequence[Row[Any]]) -> Restoration:
    charges, old = (sum(map(is_charge, rows)) for rows in (merged, saved.rows))
    return Restoration(seen.dataset, charges, charges - old, changed=True)


def _merged(saved: _StoredEntries, found: _StoredEntries, seen: Head, where: str) -> list[Row[Any]]:
    """The backup's entries, and those after them that the ledger still has."""
    assert saved.header is not None
    later = {row.seq: row for row in found.rows}
    merged, macs = list(saved.rows), {0: saved.header.mac, **saved.macs}
    while (row := later.get(len(merged) + 1)) is not None:
        if not is_genuine(seen.key, macs, row.seq, charge_entry(row)):
            break
        merged.append(row)
        macs[row.seq] = row.mac
    own = {0: saved.header.mac, **found.macs}
    for row in found.rows:
        if row.mac != macs.get(row.seq) and is_genuine(seen.key, own, row.seq, charge_entry(row)):
            raise LedgerError(
                f"Entry {row.seq} of {where} is genuine and not in the backup, nor does it "
                "continue it: they are two histories, and both were spent. A restore would forget "
                "one. Nothing was changed. Find a newer backup; if there is none, keep both files, "
                "and start a ledger whose ceiling is lower by what both spent."
            )
    if len(merged) < seen.seq:
        raise LedgerError(
            f"The backup has {len(saved.rows)} entries, and {where} has "
            f"{len(merged) - len(saved.rows)} more that continue them, but the head has seen "
            f"{seen.seq}: a restore would forget {seen.seq - len(merged)}. Nothing was changed. "
            "Find a newer backup."
        )
    if seen.seq and merged[seen.seq - 1].mac != seen.mac:
        raise LedgerError(
            f"Entry {seen.seq} of the backup is not the one that the head has seen: they are two "
            "histories, and both were spent. Nothing was changed. Find the backup that belongs to "
            "the head."
        )
    return merged


def _whole(found: _StoredEntries, seen: Head, where: str) -> bool:
    """Whether the ledger needs no repair."""
    if found.header is None or not found.complete:
        return False
    try:
        entries = [charge_entry(row) for row in found.rows]
        verify(seen, header_entry(found.header), entries, where)
    except LedgerError:
        return False
    return True


def _check_newest(seen: Head, saved: _StoredEntries) -> None:
    """A head that is older than the backup does not know what was charged after it."""
    if seen.seq < len(saved.rows):
        raise LedgerError(
            f"The head has seen {seen.seq} entries, and the backup has {len(saved.rows)}: it is an "
            "old copy, and cannot tell whether more was charged since the backup. Nothing was "
            "changed. Say with --head where the newest head is."
        )


def _header(db: Connection, dataset: str) -> Row[Any] | None:
    return db.execute(select(HEADER).where(HEADER.c.dataset == dataset)).one_or_none()


def _readable(db: Connection, seen: Head, known: int) -> _StoredEntries:
    """All entries, or of a damaged table those beyond the backup that can be read one by one."""
    header, rows, complete = None, list[Row[Any]](), True
    with contextlib.suppress(SQLAlchemyError, UnicodeError):
        header = _header(db, seen.dataset)
    try:
        rows += charge_rows(db, seen.dataset)
    except (SQLAlchemyError, UnicodeError):
        complete = False
        for seq in range(known + 1, seen.seq + 1):
            with contextlib.suppress(SQLAlchemyError, UnicodeError):
                rows += charge_rows_at(db, seen.dataset, [seq])
    numbered = [row for row in rows if type(row.seq) is int and row.seq > 0]
    return _StoredEntries(header, numbered, complete and len(numbered) == len(rows))


def _exchange(where: str, header: Row[Any] | None, rows: Sequence[Row[Any]]) -> str:
    """Put a new file in the place of what is there, which is kept; returns its new name."""
    new, aside = _new_file(where, header, rows), ""
    if os.path.lexists(where):
        names = (f"{where}.damaged-{number}" for number in itertools.count(1))
        aside = next(name for name in names if not os.path.lexists(name))
        try:
            os.replace(where, aside)
        except OSError as problem:  # Windows moves no file that is open
            os.unlink(new)
            raise LedgerError(
                f"The damaged ledger {where} cannot be moved aside ({problem.strerror}). Nothing "
                "was changed. Close what uses it, rename it, and restore again."
            ) from None
    for end in ("-journal", "-wal", "-shm"):  # SQLite would apply them to the new file
        if os.path.lexists(where + end):
            os.replace(where + end, (aside or f"{where}.damaged") + end)
    os.replace(new, where)
    durable.sync_directory(where)
    return aside


def _new_file(path: str, header: Row[Any] | None, rows: Sequence[Row[Any]]) -> str:
    """A database with these entries, beside a path; returns its name."""
    new = f"{path}.new"
    for end in ("", "-journal"):  # left by a process that died
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new + end)
    create_file(new)
    database = file_database(new)
    try:
        with database.guarded(), database.engine.begin() as db:
            create_tables(db)
            _insert(db, rows, header)
    except BaseException:
        os.unlink(new)
        raise
    return new


def _insert(db: Connection, rows: Sequence[Row[Any]], header: Row[Any] | None = None) -> None:
    if header is not None:
        db.execute(insert(HEADER), [dict(header._mapping)])
    if rows:
        db.execute(insert(CHARGE), [dict(row._mapping) for row in rows])
