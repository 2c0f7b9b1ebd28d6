"""Stores by their place: a directory, or the address of a database."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from riata.collect.directory import DirectoryStore, directory_records
from riata.collect.merging import MergedReports, merge
from riata.collect.sql import DatabaseStore
from riata.collect.store import Records, Store
from riata.local.task import Task


def open_store(place: str, task: Task) -> Store:
    """The store at a directory or at a database's address."""
    return DatabaseStore(place, task) if "://" in place else DirectoryStore(place, task)


def records_at(place: str, task: Task) -> Records:
    """The reports at a directory, even while they come in, or at a database's address."""
    if "://" not in place:
        return directory_records(place, task)
    with contextlib.closing(DatabaseStore(place, task)) as database:
        return database.records()


def merge_stores(places: Sequence[str], task: Task) -> MergedReports:
    """The reports of several stores, one for each token."""
    return merge([records_at(place, task) for place in places])


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
