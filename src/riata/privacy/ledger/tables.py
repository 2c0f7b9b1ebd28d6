"""The tables of a ledger, and what is read from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    MetaData,
    Row,
    Table,
    Text,
    UniqueConstraint,
    func,
    select,
)

from riata.errors import LedgerError

#: Of the tables below, and of what stands in them.
VERSION = 2

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
    Column("run", Text),  # of a fit with a checkpoint; or `rows_of_run`, of its rows
    Column("unit", Text, nullable=False),
    Column("event", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("sums", Text, nullable=False),  # of all charges up to this one, exactly
    Column("total", BigInteger, nullable=False),  # nano-epsilon of all charges up to this one
    Column("mac", Text, nullable=False),
    UniqueConstraint("dataset", "run"),  # a run is charged once, and is over one list of rows
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


def charge_seq_of(db: Connection, dataset: str, run: str) -> object:
    """The number that is stored with the charge of a run, if there is one. Nothing proves it."""
    wanted = select(CHARGE.c.seq).where(CHARGE.c.dataset == dataset, CHARGE.c.run == run)
    return db.execute(wanted).scalars().one_or_none()
