"""Where a ledger is: its charges in one place, and its head in another."""

from __future__ import annotations

import os

from riata.errors import InvalidArgument
from riata.privacy.ledger.database import (
    Database,
    file_database,
    memory_database,
    postgresql_database,
)
from riata.privacy.ledger.hash_chain import Head
from riata.privacy.ledger.head import HeadFile, HeadInMemory

IN_MEMORY = ":memory:"

PathLike = str | os.PathLike[str]


def is_url(where: PathLike) -> bool:
    return isinstance(where, str) and "://" in where


def locate(
    where: PathLike, head: PathLike | None, first: Head | None = None
) -> tuple[Database, HeadFile | HeadInMemory]:
    """Where the charges are and where the head is. Only a new ledger can be in memory."""
    if first is not None and where == IN_MEMORY:
        if head is not None:
            raise InvalidArgument(
                "A ledger in memory keeps its head in memory. Leave out head=, or create the "
                "ledger in a file."
            )
        return memory_database(), HeadInMemory(first)
    if not is_url(where):
        path = os.path.realpath(where)  # a link to the ledger is the ledger
        return file_database(path), HeadFile(head if head is not None else f"{path}.head")
    if head is None:
        raise InvalidArgument(
            "A ledger in a database needs head=: the path of a file of your own that remembers "
            "how far the ledger went, so that you see when it is rolled back."
        )
    return postgresql_database(str(where)), HeadFile(head)
