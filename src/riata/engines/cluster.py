"""The Dask cluster that fits use: the current one, or one of this machine."""

from __future__ import annotations

import atexit
import logging
import os

import dask
from distributed import Client, LocalCluster, get_client

#: What a cluster of our own does without: it would only take time from the workers.
LEAN = {
    "distributed.comm.compression": None,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    # Or each of a step's vectors would be given back to the system, and asked for again.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**28,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**28,
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


def _own() -> Client:
    if _OWN and _OWN[0].status == "running":
        return _OWN[0]
    logging.getLogger("riata").warning(
        "There is no Dask client, so a cluster of this machine is started. Make a "
        "distributed.Client first to use another one."
    )
    with dask.config.set(LEAN):
        cluster = LocalCluster(
            n_workers=os.cpu_count(),
            threads_per_worker=1,
            dashboard_address="localhost:0",  # or it would warn if there is another cluster
            scheduler_kwargs={"dashboard": False},
        )
        client = Client(cluster, direct_to_workers=True, set_as_default=False)
    _OWN[:] = [client]
    atexit.register(_close, client, cluster)
    return client


def _close(client: Client, cluster: LocalCluster) -> None:
    client.close()
    cluster.close()
