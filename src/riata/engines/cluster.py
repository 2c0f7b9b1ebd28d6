"""The Dask cluster that fits use: the current one, or one of this machine that others cannot use.

Whoever may speak to a Dask cluster may run code where the rows are. So every connection of a
cluster of our own is encrypted and needs a key on both sides, which only the processes of the
cluster have; nothing listens beside that, and no row is written to disk.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from typing import Any

import dask
from distributed import Client, Nanny, Scheduler, SpecCluster, Worker, get_client
from distributed.http.routing import RoutingApplication
from distributed.security import Security

#: What a cluster of our own does without: it would only take time from the workers.
LEAN = {
    "distributed.comm.compression": None,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    # Or each of a step's vectors would be given back to the system, and asked for again.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**28,
}

#: Rows that do not fit into memory are an error: Dask would write them to files in plain text.
#: Pages that Dask would serve, if it had a server in spite of `_WithoutHttp`, are left out.
_CLOSED = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}

_OWN: list[Client] = []


def current_client() -> Client:
    """The current client, or that of a cluster of this machine, one process for each core."""
    try:
        return get_client()
    except ValueError:
        return _own()


def n_workers() -> int:
    """How many workers the current cluster has."""
    return max(1, len(workers_of(current_client())))


def workers_of(client: Client) -> list[str]:
    """The addresses of the workers that are there now."""
    return list(client.scheduler_info(n_workers=-1)["workers"])


async def has_worker(client: Client, worker: str) -> bool:
    """Whether a worker is there now, asked in the client's own loop."""
    assert client.scheduler is not None
    known = await client.scheduler.identity(n_workers=-1)
    return worker in known["workers"]


class _WithoutHttp:
    """A node without the HTTP server that Dask starts beside it, with a dashboard or without.

    That server asks for no key, and shows logs, tasks and what runs.
    """

    def start_http_server(self, *arguments: Any, **options: Any) -> None:
        self.http_application = RoutingApplication([])


class _QuietScheduler(_WithoutHttp, Scheduler):
    pass


class _QuietWorker(_WithoutHttp, Worker):
    pass


def _own() -> Client:
    if _OWN and _OWN[0].status == "running":
        return _OWN[0]
    logging.getLogger("riata").warning(
        "There is no Dask client, so a cluster of this machine is started. Make a "
        "distributed.Client first to use another one."
    )
    folder = tempfile.mkdtemp(prefix="riata-dask-")  # that nobody else can enter
    security = Security.temporary()  # keys in memory: workers get theirs through a pipe
    node = {"host": "127.0.0.1", "protocol": "tls://", "security": security}
    worker = {
        "cls": Nanny,
        "options": node
        | {
            "worker_class": _QuietWorker,
            "nthreads": 1,
            "local_directory": folder,
            "silence_logs": logging.WARNING,
        },
    }
    scheduler = {
        "cls": _QuietScheduler,
        "options": node | {"port": 0, "dashboard": False, "dashboard_address": None},
    }
    with dask.config.set(LEAN | _CLOSED):
        cluster = SpecCluster(
            workers=dict.fromkeys(range(os.cpu_count() or 1), worker),
            worker=worker,
            scheduler=scheduler,
            security=security,
            silence_logs=logging.WARNING,
        )
        client = Client(cluster, direct_to_workers=True, set_as_default=False)
    _OWN[:] = [client]
    atexit.register(_close, client, cluster, folder)
    return client


def _close(client: Client, cluster: SpecCluster, folder: str) -> None:
    client.close()
    cluster.close()
    shutil.rmtree(folder, ignore_errors=True)
