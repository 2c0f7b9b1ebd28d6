"""Starting a collector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from riata.collect.address_limits import Limits, Proxies
from riata.collect.committer import Committer, Store
from riata.collect.directory import DirectoryReader, DirectoryStore
from riata.collect.records import Merged, Reader, earlier_version, merge, not_mergeable
from riata.collect.sql import DatabaseStore
from riata.collect.tokens import Tokens
from riata.errors import CollectError
from riata.local.task import Task


def open_store(place: str, task: Task) -> Store:
    """The store at a directory or at a database's address."""
    if "://" not in place:
        return DirectoryStore(place, task)
    database = DatabaseStore(place, task)
    if database.tokens_without_reports:
        database.close()
        raise earlier_version(shown(place))
    return database


def open_reader(place: str, task: Task) -> Reader:
    """The reports at a directory, even while they come in, or at a database's address."""
    if "://" in place:
        return DatabaseStore(place, task)
    return DirectoryReader(place, task)


def merge_stores(places: Sequence[str], task: Task) -> Merged:
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
                raise not_mergeable(shown(place))
            records.append(reader.records())
        finally:
            reader.close()
    return merge(records)


def run(
    task: Task,
    place: str,
    host: str,
    port: int,
    *,
    people: int = 0,
    tokens: Path | None = None,
    limits: Limits | None = None,
    proxies: Proxies | None = None,
) -> None:
    """Serve until the process is told to stop.

    Parameters
    ----------
    task : Task
    place : str
        A directory, or the address of a database.
    host, port : str, int
    people : int, default=0
        How many reports are expected, for the dashboard.
    tokens : path, optional
        The file with the key of one-time tokens. Without it anybody may send.
    limits : Limits, optional
        What one address may take, and how many reports may come without tokens.
    proxies : Proxies, optional
        Whose X-Forwarded-For is believed.
    """
    try:
        import uvicorn

        from riata.collect.connection_limits import limited_protocol
        from riata.collect.dashboard import Dashboard
        from riata.collect.service import Collector, application
    except ImportError:
        raise CollectError(
            'The collector needs Starlette and uvicorn. Install them: pip install "riata[collect]".'
        ) from None
    limits = limits or Limits.with_defaults(tokens=tokens is not None, people=people)
    proxies = proxies or Proxies()
    key = None if tokens is None else Tokens.at(tokens, task.id)
    collector = Collector(
        task,
        Committer(open_store(place, task), limits.most_reports or None),
        tokens=key,
        dashboard=Dashboard(people, None if "://" in place else Path(place) / "model.json"),
        limits=limits,
        disk=_disk(place),
    )
    assert collector.dashboard is not None
    print(f"Dashboard: http://{host}:{port}/dashboard#{collector.dashboard.key}", flush=True)
    # No access log: it would hold addresses. No warnings: anybody's nonsense would fill the disk.
    uvicorn.run(
        application(collector),
        host=host,
        port=port,
        http=limited_protocol(limits, proxies, collector.refusals),
        ws="none",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies.names,
    )


def _disk(place: str) -> Path | None:
    """A folder on the disk of a store, if that is on a disk of this machine."""
    if "://" not in place:
        return Path(place)
    url = make_url(place)
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database)).resolve().parent


def shown(place: str) -> str:
    """A store's address without its password."""
    if "://" not in place:
        return place
    try:
        return make_url(place).render_as_string(hide_password=True)
    except ArgumentError:
        return "a database"
