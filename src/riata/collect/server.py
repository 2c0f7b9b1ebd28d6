"""Starting a collector."""

from __future__ import annotations

from pathlib import Path

from riata.collect.address_limits import Limits, Proxies
from riata.collect.committer import Committer
from riata.collect.stores import disk_of, open_store
from riata.collect.tokens import Tokens
from riata.errors import CollectError
from riata.local.task import Task


def serve(
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
    """Serve a task until the process is told to stop.

    The store is a directory, or the address of a database; `people` reports are expected. Without
    the file of a key of one-time `tokens` anybody may send. The X-Forwarded-For of `proxies` is
    believed.
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
    dashboard = Dashboard(people, None if "://" in place else Path(place) / "model.json")
    collector = Collector(
        task, Committer(open_store(place, task), limits.most_reports or None),
        tokens=None if tokens is None else Tokens.at(tokens, task.id),
        dashboard=dashboard, limits=limits, disk=disk_of(place),
    )  # fmt: skip
    print(f"Dashboard: http://{host}:{port}/dashboard#{dashboard.key}", flush=True)
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
