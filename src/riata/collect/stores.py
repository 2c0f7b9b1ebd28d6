"""Stores by their place: a directory, or the address of a database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from riata.collect.directory import DirectoryReader, DirectoryStore
from riata.collect.merging import MergedReports, earlier_version, merge, not_mergeable
from riata.collect.sql import DatabaseStore
from riata.collect.store import Store, StoreReader
from riata.local.task import Task


def open_store(place: str, task: Task) -> Store:
    """The store at a directory or at a database's address."""
    if "://" not in place:
        return DirectoryStore(place, task)
    database = DatabaseStore(place, task)
    if database.tokens_without_reports:
        database.close()
        raise earlier_version(display_address(place))
    return database


def open_reader(place: str, task: Task) -> StoreReader:
    """The reports at a directory, even while they come in, or at a database's address."""
    if "://" in place:
        return DatabaseStore(place, task)
    return DirectoryReader(place, task)


def merge_stores(places: Sequence[str], task: Task) -> MergedReports:
    """The reports of several stores, one for each token.

    Raises
    ------
    CollectError
        If a store does not say which report a token came with, and there are others.
    """
    records = []
    for place in places:
        reader = open_reader(place, task)
        try:
            if reader.tokens_without_reports and len(places) > 1:
                raise not_mergeable(display_address(place))
            records.append(reader.records())
        finally:
            reader.close()
    return merge(records)


def disk_of(place: str) -> Path | None:
    """A folder on the disk of a store, if that is on a disk of this machine."""
    if "://" not in place:
        return Path(place)
    url = make_url(place)
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database)).resolve().parent


def display_address(place: str) -> str:
    """A store's address without its password."""
    if "://" not in place:
        return place
    try:
        return make_url(place).render_as_string(hide_password=True)
    except ArgumentError:
        return "a database"
