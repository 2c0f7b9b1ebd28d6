"""The beginning of a ledger: its header, its tables and its first head, or nothing at all."""

from __future__ import annotations

import contextlib
import json
import os
from decimal import ROUND_FLOOR

from sqlalchemy import insert

from riata.errors import InvalidArgument, LedgerError
from riata.privacy.budget import Budget
from riata.privacy.ledger.database import Database, create_file
from riata.privacy.ledger.entries import nano
from riata.privacy.ledger.hash_chain import new_head
from riata.privacy.ledger.head import HeadFile, HeadInMemory
from riata.privacy.ledger.location import PathLike, is_url, locate
from riata.privacy.ledger.tables import HEADER, VERSION, create_tables, datasets
from riata.privacy.unit import PrivacyUnit

#: In nano-units this stays far below 2^63, the end of a database's integers.
_LARGEST_CEILING = 1e9


def create_ledger(
    where: PathLike, dataset: str, ceiling: Budget, person: str, head: PathLike | None
) -> tuple[Database, HeadFile | HeadInMemory]:
    """Check the arguments of `Ledger.create`, and make what they ask for."""
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
    limit = nano(ceiling.epsilon, ROUND_FLOOR)
    header = (dataset, VERSION, limit, json.dumps(ceiling.delta), ceiling.adjacency, person)
    first = new_head(dataset, header)
    database, kept = locate(where, head, first)
    with contextlib.ExitStack() as undo:  # what is removed is new: nothing was charged to it
        if isinstance(kept, HeadFile):
            if not is_url(where):
                create_file(database.where)
                undo.callback(os.unlink, database.where)
            kept.create(first)
            undo.callback(os.unlink, kept.path)
        with database.transaction() as db:
            create_tables(db)
            if dataset in datasets(db):
                raise LedgerError(
                    f"{database.where} has a ledger of {dataset!r}: a new one would forget what "
                    "was spent. Go on with that one, or choose another name."
                )
            db.execute(insert(HEADER).values((*header, first.mac)))
        undo.pop_all()
    return database, kept
