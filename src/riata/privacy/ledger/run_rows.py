"""Over which rows runs with a checkpoint are, in backups and after a restore.

A run is over one list of rows: the ledger records their code when they are first read. A restore
that cannot tell whether rows were read must not let the run read others.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row

from riata.privacy.ledger.hash_chain import run_rows_mac

#: In the place of a code: whether rows were read, and which, was lost.
LOST = "lost"


def is_recorded(row: Row[Any], key: bytes, dataset: str) -> bool:
    """Whether the ledger with this key recorded it."""
    fields = (row.run, row.code, row.mac)
    if row.dataset != dataset or not all(type(each) is str for each in fields):
        return False
    return hmac.compare_digest(row.mac, run_rows_mac(key, dataset, row.run, row.code))


def recorded(known: Iterable[Row[Any]], key: bytes, dataset: str) -> dict[str, str]:
    """The code of the rows of each run, or that it is lost, because two of them differ."""
    codes: dict[str, str] = {}
    for row in known:
        if is_recorded(row, key, dataset):
            codes[row.run] = row.code if codes.get(row.run, row.code) == row.code else LOST
    return codes


def restored(
    runs: Iterable[str | None], known: Iterable[Row[Any]], key: bytes, dataset: str
) -> list[dict[str, str]]:
    """What a restored ledger records about each charged run: what is known, or that it is lost."""
    codes = recorded(known, key, dataset)
    return [
        {"dataset": dataset, "run": run, "code": code, "mac": run_rows_mac(key, dataset, run, code)}
        for run in runs
        if run is not None
        for code in [codes.get(run, LOST)]
    ]
